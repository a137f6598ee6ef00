//! Buffers of device memory.

use crate::{engine::EngineHome, error::Result};
use std::fmt;
use wharf_core::{
    buffer::{self, Overlap},
    runtime::Span,
};

/// Device memory, or a part of it; the last one over the same root frees it.
pub struct Buffer(pub(crate) buffer::Buffer<EngineHome>);

impl Buffer {
    /// Bytes.
    pub fn len(&self) -> u64 {
        self.0.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The address of the first byte as kernels see it; 0 for a buffer without bytes.
    ///
    /// # Errors
    /// If the memory was freed.
    pub fn address(&self) -> Result<u64> {
        let known = self.0.home().0.core()?.allocation(self.0.root())?;
        Ok(if known.len == 0 { 0 } else { known.base + self.0.offset() })
    }
    /// A part that keeps the whole alive.
    ///
    /// # Errors
    /// If it does not lie inside.
    pub fn slice(&self, offset: u64, len: u64) -> Result<Buffer> {
        Ok(Buffer(self.0.subspan(offset, len)?))
    }
    /// One more buffer of the same bytes.
    ///
    /// # Errors
    /// If the memory was freed.
    pub fn share(&self) -> Result<Buffer> {
        Ok(Buffer(self.0.share()?))
    }
    /// How this buffer lies to another of the same runtime.
    pub fn overlap(&self, other: &Buffer) -> Overlap {
        self.0.overlap(&other.0)
    }
    pub(crate) fn span(&self) -> Span {
        self.0.span()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
