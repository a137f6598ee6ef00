//! Memory for many tensors: small ones share blocks, since an allocation of its own for each of thousands costs more than
//! its bytes, and a block lies on large pages where the system has them. Buffers begin as aligned as allocations do.

use crate::{buffer::Buffer, device::Device, error::Result};

/// Longest tensor that shares a block.
const SMALL_MAX: u64 = 64 << 10;
/// Bytes of a block; the last one is as long as what is left for it.
const BLOCK: u64 = 4 << 20;

/// Buffers of a load, one after the other.
pub(super) struct Blocks<'a> {
    device: &'a Device,
    align: u64,
    /// Bytes that small tensors will still ask for.
    left: u64,
    block: Option<Buffer>,
    at: u64,
}

impl<'a> Blocks<'a> {
    /// For buffers of these lengths, in any order.
    pub(super) fn new(device: &'a Device, lens: impl Iterator<Item = u64>) -> Blocks<'a> {
        let align = u64::from(device.caps().align).max(1);
        let left = lens.filter(|len| is_small(*len)).map(|len| len.next_multiple_of(align)).sum();
        Blocks { device, align, left, block: None, at: 0 }
    }

    /// The next buffer.
    ///
    /// # Errors
    /// As [`Device::allocate`].
    pub(super) fn buffer(&mut self, len: u64) -> Result<Buffer> {
        if !is_small(len) {
            return self.device.allocate(len);
        }
        let padded = len.next_multiple_of(self.align);
        let block = match self.block.take() {
            Some(block) if padded <= block.len() - self.at => block,
            _ => {
                self.at = 0;
                self.device.allocate(self.left.clamp(padded, BLOCK))?
            }
        };
        let buffer = block.slice(self.at, len)?;
        self.at += padded;
        self.left = self.left.saturating_sub(padded);
        // Full, it is kept alive by its buffers alone.
        self.block = Some(block).filter(|block| self.at < block.len());
        Ok(buffer)
    }
}

fn is_small(len: u64) -> bool {
    (1..=SMALL_MAX).contains(&len)
}
