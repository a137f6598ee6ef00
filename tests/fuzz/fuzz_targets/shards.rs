//! Any bytes as the index of a sharded set.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wharf_fuzz::shards(bytes));
