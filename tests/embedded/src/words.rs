//! A line of text in an array, ended by a NUL as semihosting takes it.

use core::fmt;

const BYTES: usize = 400;

/// A line.
pub struct Line {
    bytes: [u8; BYTES + 1],
    len: usize,
}

impl Line {
    /// An empty line.
    #[allow(clippy::new_without_default)] // Nobody wants a default line.
    pub const fn new() -> Self {
        Line { bytes: [0; BYTES + 1], len: 0 }
    }
    /// What was written.
    pub fn text(&self) -> &core::ffi::CStr {
        core::ffi::CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        if end > BYTES {
            return Err(fmt::Error);
        }
        self.bytes[self.len..end].copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}
