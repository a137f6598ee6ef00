//! A memory-to-memory DMA engine: a few channels with short descriptor rings, memory from a region that is handed in.
//! No heap, no thread: work moves in [`Engine::tick`], called by a timer interrupt, a thread or a test. It lives in a
//! static, and [`Dma`] is the device over it.
//!
//! ```ignore
//! static ENGINE: Engine<CriticalSection, 2, 4, 32> = Engine::new();
//! let device = Dma::new(&ENGINE, region);
//! ```
#![no_std]
#![deny(unsafe_code)]

mod engine;
mod region;

pub use engine::{BURST_LEN, DmaLane, Engine, PATTERN_LEN_MAX, UPDATE_LEN_MAX};

use wharf_core::{
    device::{Block, Caps, Describe, Device, HostAccess, Pace, Want, op, property},
    env::Lock,
    fault::Fault,
    tick::Tick,
};

/// Alignment of allocations.
pub const ALIGN: u32 = 16;

/// The device: an engine with `CHANNELS` lanes of `DEPTH` descriptors and at most `BLOCKS` allocations.
pub struct Dma<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize>(
    &'static Engine<L, CHANNELS, DEPTH, BLOCKS>,
);

impl<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize>
    Dma<L, CHANNELS, DEPTH, BLOCKS>
{
    /// The device over `engine`, whose memory is `region` from here on.
    pub fn new(engine: &'static Engine<L, CHANNELS, DEPTH, BLOCKS>, region: &'static mut [u8]) -> Self {
        engine.give(region);
        Dma(engine)
    }
}

impl<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize> Device
    for Dma<L, CHANNELS, DEPTH, BLOCKS>
{
    type Lane = DmaLane<L, CHANNELS, DEPTH, BLOCKS>;
    type Gauge = ();

    fn caps(&self) -> Caps {
        Caps {
            ops: 1 << op::BARRIER | 1 << op::COPY | 1 << op::FILL | 1 << op::UPDATE,
            backend: 0,
            space: 0,
            native_wait: false,
            depth: DEPTH as u16,
            pace: Pace::Pushed,
            lanes: CHANNELS as u16,
            align: ALIGN,
            args_max: 0,
            group_max: 0,
            shared_max: 0,
            pattern_max: PATTERN_LEN_MAX as u32,
            pattern_pow2: false,
            update_max: UPDATE_LEN_MAX as u32,
            alloc_max: u64::MAX,
            mappable: true,
            coherent: true,
            host_copies: true,
        }
    }

    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        let base = self.0.allocate(want.len, want.align.max(ALIGN.into()))?;
        Ok(Block { base, len: want.len, native: 0 })
    }

    fn free(&self, block: &Block) -> Result<(), Fault> {
        self.0.free(block.base)
    }

    fn lane(&self, tick: Tick) -> Result<(Self::Lane, (), usize), Fault> {
        let (lane, number) = DmaLane::new(self.0, tick)?;
        Ok((lane, (), number))
    }
}

// Device memory is process memory, and the engine reads it where it is.
impl<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize> HostAccess
    for Dma<L, CHANNELS, DEPTH, BLOCKS>
{
    fn map(&self, block: &Block, offset: u64, _len: u64) -> Result<*mut u8, Fault> {
        Ok(core::ptr::with_exposed_provenance_mut((block.base + offset) as usize))
    }
    fn unmap(&self, _: &Block, _: u64, _: u64) -> Result<(), Fault> {
        Ok(())
    }
    fn sync(&self, _: &Block, _: u64, _: u64, _: bool) -> Result<(), Fault> {
        Ok(())
    }
    fn register(&self, host: *mut u8, len: u64, _access: u32) -> Result<Block, Fault> {
        Ok(Block { base: host.expose_provenance() as u64, len, native: 0 })
    }
    fn unregister(&self, _: &Block) -> Result<(), Fault> {
        Ok(())
    }
}

impl<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize> Describe
    for Dma<L, CHANNELS, DEPTH, BLOCKS>
{
    fn property(&self, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault> {
        let len = self.0.region_len().to_le_bytes();
        let value: &[u8] = match id {
            property::NAME | property::PRODUCT_NAME => b"dma engine",
            property::VENDOR => b"Wharf",
            property::GLOBAL_MEM_SIZE => &len,
            property::MEMORY_KIND => b"unified",
            _ => return Ok(None),
        };
        let fits = value.len().min(out.len());
        out[..fits].copy_from_slice(&value[..fits]);
        Ok(Some(value.len()))
    }
}
