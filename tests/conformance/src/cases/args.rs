//! Packed arguments of kernels, each aligned to its own size, as C lays a structure out.

/// A block of arguments.
#[derive(Default)]
pub(super) struct Args(pub(super) Vec<u8>);

impl Args {
    pub(super) fn with(mut self, bytes: &[u8]) -> Args {
        self.0.resize(self.0.len().next_multiple_of(bytes.len()), 0);
        self.0.extend_from_slice(bytes);
        self
    }
    pub(super) fn u32(self, value: u32) -> Args {
        self.with(&value.to_ne_bytes())
    }
    pub(super) fn u64(self, value: u64) -> Args {
        self.with(&value.to_ne_bytes())
    }
    /// Rounds the block up to its alignment, as the size of a structure is.
    pub(super) fn end(mut self, align: usize) -> Vec<u8> {
        self.0.resize(self.0.len().next_multiple_of(align), 0);
        self.0
    }
}
