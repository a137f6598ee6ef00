//! The null device: nothing but the roles of a backend, in the shape that is hardest for core. Its memory lies in an
//! address space of its own (addresses mean nothing to the process), a queue holds one unfinished step, progress
//! happens only when it is polled, queues cannot wait for one another, and a mapping is a copy that only `sync` moves.
//! Bytes do move: behind every address is host memory.

mod lane;
mod program;
mod space;

pub use lane::{NullGauge, NullLane};
pub use program::IMAGE;

use space::Space;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, Ordering::*},
};
use wharf_core::{
    bits::MemoryType,
    device::{Block, Caps, Describe, Device, HostAccess, Pace, Want, op, property},
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// First address of the device's memory.
pub const BASE: u64 = 0x1_0000_0000;
/// Alignment of its allocations.
pub const ALIGN: u32 = 64;
/// Its address space.
pub const SPACE: u16 = 1;

/// What can be had differently, for tests.
#[derive(Clone, Copy, Debug)]
pub struct Knobs {
    /// Unfinished steps a queue takes.
    pub depth: u16,
    /// Queues at once.
    pub lanes: u16,
    /// Bytes of memory.
    pub memory_len: u64,
    /// Whether memory can be mapped.
    pub mappable: bool,
    /// How often polling is worth it.
    pub poll_ns: u32,
}

impl Default for Knobs {
    fn default() -> Self {
        Knobs { depth: 1, lanes: 8, memory_len: 64 << 20, mappable: true, poll_ns: 1_000 }
    }
}

/// The device.
pub struct Null {
    knobs: Knobs,
    shared: Arc<Shared>,
}

/// What the device and its lanes share.
pub(crate) struct Shared {
    space: Mutex<Space>,
    lanes: AtomicU32,
}

impl Shared {
    pub(crate) fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn lane_is_gone(&self) {
        self.lanes.fetch_sub(1, AcqRel);
    }
}

/// The devices of the backend: one, as it comes.
///
/// # Errors
/// None; the type is that of a backend whose driver may be missing.
pub fn devices() -> Result<Vec<Null>, Fault> {
    Ok(vec![Null::default()])
}

impl Default for Null {
    fn default() -> Self {
        Null::new(Knobs::default())
    }
}

impl Null {
    /// A device of this kind.
    pub fn new(knobs: Knobs) -> Self {
        let space = Mutex::new(Space::new(BASE, knobs.memory_len));
        Null { knobs, shared: Arc::new(Shared { space, lanes: AtomicU32::new(0) }) }
    }

    pub(crate) fn space(&self) -> MutexGuard<'_, Space> {
        self.shared.space()
    }
}

impl Device for Null {
    type Lane = NullLane;
    type Gauge = NullGauge;

    fn caps(&self) -> Caps {
        Caps {
            ops: 1 << op::BARRIER | 1 << op::COPY | 1 << op::FILL | 1 << op::UPDATE | 1 << op::LAUNCH,
            backend: 0,
            space: SPACE,
            native_wait: false,
            depth: self.knobs.depth,
            pace: Pace::Polled { every_ns: self.knobs.poll_ns },
            lanes: self.knobs.lanes,
            align: ALIGN,
            args_max: 256,
            group_max: 256,
            shared_max: 0,
            pattern_max: u32::MAX,
            pattern_pow2: false,
            update_max: u32::MAX,
            alloc_max: u64::MAX,
            mappable: self.knobs.mappable,
            coherent: false,
            host_copies: true,
        }
    }

    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        let align = want.align.max(ALIGN.into());
        if !align.is_power_of_two() {
            let values = [align, ALIGN.into()];
            return Err(Fault::caller(Kind::InvalidArgument, Site::Allocate, Why::Multiple, values));
        }
        let visible = want.kind & MemoryType::HOST_VISIBLE.bits();
        if visible != 0 && !self.knobs.mappable {
            let values = [visible.into(), 0];
            return Err(Fault::backend(Kind::Unsupported, Site::Allocate, Why::Bits, values));
        }
        let base = self.space().allocate(want.len, align)?;
        Ok(Block { base, len: want.len, native: base })
    }

    fn free(&self, block: &Block) -> Result<(), Fault> {
        self.space().free(block.base)
    }

    fn lane(&self, tick: Tick) -> Result<(NullLane, NullGauge, usize), Fault> {
        let most = u32::from(self.knobs.lanes);
        let taken = self.shared.lanes.fetch_update(AcqRel, Acquire, |n| (n < most).then_some(n + 1));
        let Ok(number) = taken else {
            let values = [most.into(), 0];
            return Err(Fault::backend(Kind::ResourceExhausted, Site::Queue, Why::Full, values));
        };
        let (lane, gauge) = lane::pair(self.shared.clone(), self.knobs.depth.into(), tick);
        Ok((lane, gauge, number as usize))
    }
}

impl HostAccess for Null {
    fn map(&self, block: &Block, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        if !self.knobs.mappable {
            return Err(Fault::backend(Kind::Unsupported, Site::Map, Why::Unknown, [0; 2]));
        }
        self.space().map(block.base, offset, len)
    }

    fn unmap(&self, block: &Block, offset: u64, _len: u64) -> Result<(), Fault> {
        self.space().unmap(block.base, offset);
        Ok(())
    }

    fn sync(&self, block: &Block, offset: u64, len: u64, to_device: bool) -> Result<(), Fault> {
        self.space().sync(block.base, offset, len, to_device)
    }

    // Copies reach process memory as it is, so there is nothing to prepare.
    fn register(&self, host: *mut u8, len: u64, _access: u32) -> Result<Block, Fault> {
        let base = host.expose_provenance() as u64;
        Ok(Block { base, len, native: 0 })
    }

    fn unregister(&self, _block: &Block) -> Result<(), Fault> {
        Ok(())
    }
}

impl Describe for Null {
    fn property(&self, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault> {
        let free;
        let size = self.knobs.memory_len.to_le_bytes();
        let value: &[u8] = match id {
            property::NAME | property::PRODUCT_NAME => b"null device",
            property::VENDOR => b"Wharf",
            property::DRIVER_VERSION => env!("CARGO_PKG_VERSION").as_bytes(),
            property::GLOBAL_MEM_SIZE | property::MAX_MEM_ALLOC_SIZE => &size,
            property::MEMORY_KIND => b"dedicated",
            property::MEMORY_FREE => {
                free = self.space().free_len().to_le_bytes();
                &free
            }
            _ => return Ok(None),
        };
        let fits = value.len().min(out.len());
        out[..fits].copy_from_slice(&value[..fits]);
        Ok(Some(value.len()))
    }
}
