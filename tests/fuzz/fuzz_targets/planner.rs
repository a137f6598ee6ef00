//! Batches chosen by any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wharf_fuzz::plan(bytes));
