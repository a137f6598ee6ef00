//! Memory: what was given out, from the process' allocator, and the host's view of it, which is the memory itself.
//!
//! # Safety
//! Every block in the table was made by `alloc` with the layout beside it and is freed by whoever takes it out.
#![allow(unsafe_code)]

use crate::{cpu, device::HostDevice, limits};
use std::{
    alloc::{Layout, alloc, dealloc},
    collections::HashMap,
    ptr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::*},
    },
};
use wharf_core::{
    device::{Block, HostAccess, Want},
    fault::{Fault, Kind, Site, Why},
};

/// Blocks from this length on begin on a large page, which makes the first touch several times cheaper.
const LARGE: u64 = 4 << 20;
const LARGE_PAGE: u64 = 2 << 20;
const SHARDS: usize = 16;

/// Blocks that live.
#[derive(Default)]
pub(crate) struct Memory {
    shards: [Mutex<HashMap<u64, Layout>>; SHARDS],
    live: AtomicU64,
}

impl Memory {
    fn shard(&self, base: u64) -> MutexGuard<'_, HashMap<u64, Layout>> {
        let at = (base >> 6).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60;
        self.shards[at as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that live.
    pub(crate) fn live(&self) -> u64 {
        self.live.load(Relaxed)
    }

    pub(crate) fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        let refuse = |why, values| Err(Fault::caller(Kind::InvalidArgument, Site::Allocate, why, values));
        if want.len == 0 {
            return refuse(Why::Zero, [0, 0]);
        }
        if want.align != 0 && !want.align.is_power_of_two() {
            return refuse(Why::Multiple, [want.align, 1 << want.align.ilog2()]);
        }
        if want.align > limits::ALIGN_MAX {
            let values = [want.align, limits::ALIGN_MAX];
            return Err(Fault::caller(Kind::ResourceExhausted, Site::Allocate, Why::Limit, values));
        }
        let total = cpu::memory_total();
        if want.len > total {
            let values = [want.len, total];
            return Err(Fault::caller(Kind::ResourceExhausted, Site::Allocate, Why::Limit, values));
        }
        let least = if want.len >= LARGE { LARGE_PAGE } else { limits::ALIGN.into() };
        let exhausted =
            Fault::backend(Kind::ResourceExhausted, Site::Allocate, Why::Limit, [want.len, total]);
        let layout = Layout::from_size_align(want.len as usize, want.align.max(least) as usize);
        let layout = layout.map_err(|_| exhausted)?;
        // SAFETY: the layout is not empty: `len` is at least 1.
        let base = unsafe { alloc(layout) };
        if base.is_null() {
            return Err(exhausted);
        }
        if want.len >= LARGE {
            // SAFETY: a hint about fresh memory of our own, which begins on a page.
            unsafe { libc::madvise(base.cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        let block = Block { base: base.expose_provenance() as u64, len: want.len, native: 0 };
        self.shard(block.base).insert(block.base, layout);
        self.live.fetch_add(want.len, Relaxed);
        Ok(block)
    }

    pub(crate) fn free(&self, block: &Block) -> Result<(), Fault> {
        let layout = self.shard(block.base).remove(&block.base);
        let layout = layout.ok_or(unknown(Site::Free, block))?;
        self.live.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: taken out of the table, so made by `alloc` with this layout and freed only here.
        unsafe { dealloc(ptr::with_exposed_provenance_mut(block.base as usize), layout) };
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for shard in &mut self.shards {
            for (base, layout) in shard.get_mut().unwrap_or_else(PoisonError::into_inner).drain() {
                // SAFETY: as in `free`; the device is gone, and with it every use of its memory.
                unsafe { dealloc(ptr::with_exposed_provenance_mut(base as usize), layout) };
            }
        }
    }
}

fn unknown(site: Site, block: &Block) -> Fault {
    Fault::caller(Kind::InvalidArgument, site, Why::Address, [block.base, 0])
}

impl HostAccess for HostDevice {
    fn map(&self, block: &Block, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        let end = offset.checked_add(len).filter(|end| *end <= block.len);
        if end.is_none() {
            let values = [offset.saturating_add(len), block.len];
            return Err(Fault::caller(Kind::OutOfRange, Site::Map, Why::PastEnd, values));
        }
        Ok(ptr::with_exposed_provenance_mut((block.base + offset) as usize))
    }

    fn unmap(&self, _: &Block, _: u64, _: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn sync(&self, _: &Block, _: u64, _: u64, _: bool) -> Result<(), Fault> {
        Ok(())
    }

    /// The device reads and writes process memory as it is: there is nothing to do but to answer the same range.
    fn register(&self, host: *mut u8, len: u64, access: u32) -> Result<Block, Fault> {
        let base = host.expose_provenance() as u64;
        if base == 0 || len == 0 {
            let which = u64::from(base != 0);
            return Err(Fault::caller(Kind::InvalidArgument, Site::Register, Why::Zero, [which, 0]));
        }
        if base.checked_add(len).is_none() {
            return Err(Fault::caller(Kind::InvalidArgument, Site::Register, Why::Overflow, [base, len]));
        }
        Ok(Block { base, len, native: access.into() })
    }

    fn unregister(&self, _: &Block) -> Result<(), Fault> {
        Ok(())
    }
}
