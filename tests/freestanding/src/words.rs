//! The one line that the program writes, put together without a heap.

use core::fmt;

/// Text of at most 200 bytes; what is beyond is cut off.
pub(crate) struct Line {
    bytes: [u8; 200],
    len: usize,
}

impl Line {
    /// No text.
    pub(crate) const fn new() -> Self {
        Line { bytes: [0; 200], len: 0 }
    }
    /// The text so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.len..];
        let len = text.len().min(room.len());
        room[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        Ok(())
    }
}
