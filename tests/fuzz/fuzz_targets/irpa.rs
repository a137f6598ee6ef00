//! Any bytes as a IRPA file.
#![no_main]

use wharf_core::archive::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wharf_fuzz::archive(Format::Irpa, bytes));
