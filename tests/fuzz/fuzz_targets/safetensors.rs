//! Any bytes as a safetensors file.
#![no_main]

use wharf_core::archive::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wharf_fuzz::archive(Format::Safetensors, bytes));
