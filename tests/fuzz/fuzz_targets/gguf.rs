//! Any bytes as a GGUF file.
#![no_main]

use wharf_core::archive::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wharf_fuzz::archive(Format::Gguf, bytes));
