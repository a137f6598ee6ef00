//! Arguments of a launch, packed in C layout.

use crate::{buffer::Buffer, error::Result};

/// A packed block of arguments: each at the next offset that its alignment allows, and the whole as long as the C struct
/// of them, padding at the end included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    bytes: Vec<u8>,
    /// Where the last argument ends; what follows is padding.
    end: usize,
    align: usize,
}

impl Args {
    /// No arguments.
    pub fn new() -> Self {
        Args::default()
    }
    /// The address of a buffer.
    ///
    /// # Errors
    /// If the buffer's memory was freed.
    pub fn buffer(self, buffer: &Buffer) -> Result<Self> {
        Ok(self.u64(buffer.address()?))
    }
    /// An unsigned byte.
    #[must_use]
    pub fn u8(self, value: u8) -> Self {
        self.push(&value.to_ne_bytes())
    }
    /// A signed byte.
    #[must_use]
    pub fn i8(self, value: i8) -> Self {
        self.push(&value.to_ne_bytes())
    }
    /// 16 bits.
    #[must_use]
    pub fn i16(self, value: i16) -> Self {
        self.push(&value.to_ne_bytes())
    }
    /// 32 bits.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.push(&value.to_ne_bytes())
    }
    /// 32 bits, signed.
    #[must_use]
    pub fn i32(self, value: i32) -> Self {
        self.push(&value.to_ne_bytes())
    }
    /// 64 bits.
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.push(&value.to_ne_bytes())
    }
    /// A float.
    #[must_use]
    pub fn f32(self, value: f32) -> Self {
        self.push(&value.to_ne_bytes())
    }
    /// A double.
    #[must_use]
    pub fn f64(self, value: f64) -> Self {
        self.push(&value.to_ne_bytes())
    }
    /// Bytes of a struct, with its alignment (a power of two).
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8], align: usize) -> Self {
        let align = align.max(1);
        self.align = self.align.max(align);
        self.bytes.resize(self.end.next_multiple_of(align), 0);
        self.bytes.extend_from_slice(bytes);
        self.end = self.bytes.len();
        self.bytes.resize(self.end.next_multiple_of(self.align), 0);
        self
    }
    /// Where the last argument ends.
    pub(crate) fn end(&self) -> usize {
        self.end
    }
    /// The block.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A scalar is aligned to its size.
    fn push(self, bytes: &[u8]) -> Self {
        self.bytes(bytes, bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Args;

    #[test]
    fn arguments_lie_where_c_puts_them() {
        #[repr(C)]
        struct Packed(i8, u64, i16, u32, u8);
        let args = Args::new().i8(-1).u64(7).i16(3).u32(9).u8(1);
        let at = |offset: usize, len: usize| args.as_bytes()[offset..offset + len].to_vec();
        assert_eq!(at(std::mem::offset_of!(Packed, 1), 8), 7u64.to_ne_bytes());
        assert_eq!(at(std::mem::offset_of!(Packed, 2), 2), 3i16.to_ne_bytes());
        assert_eq!(at(std::mem::offset_of!(Packed, 3), 4), 9u32.to_ne_bytes());
        assert_eq!(at(std::mem::offset_of!(Packed, 4), 1), [1]);
        assert_eq!(args.as_bytes().len(), size_of::<Packed>());
        assert_eq!(Args::new().u8(1).u8(2).as_bytes(), [1, 2]);
    }
}
