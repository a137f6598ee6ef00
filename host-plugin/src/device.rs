//! The device: its workers, lanes, memory and programs.

use crate::{
    cpu, fence, lane,
    lane::{HostGauge, HostLane},
    limits,
    memory::Memory,
    pool::Pool,
    program::Shelf,
    registry::Registry,
};
use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering::*},
};
use wharf_core::{
    device::{Block, Caps, Device, Pace, Want, op},
    fault::Fault,
    tick::Tick,
};

/// The CPU of this process as a device.
pub struct HostDevice {
    pub(crate) pool: Arc<Pool>,
    pub(crate) memory: Memory,
    pub(crate) shelf: Shelf,
    lanes: Arc<Registry>,
    backend: u16,
}

impl Default for HostDevice {
    fn default() -> Self {
        Self::new()
    }
}

impl HostDevice {
    /// A device with a worker for every processor that this process may use. No thread starts before there is work.
    pub fn new() -> Self {
        Self::with_workers(cpu::threads())
    }

    /// A device with `workers` workers, at least one.
    pub fn with_workers(workers: usize) -> Self {
        static BACKENDS: AtomicU16 = AtomicU16::new(1);
        fence::set_up();
        Self {
            pool: Pool::new(workers),
            memory: Memory::default(),
            shelf: Shelf::default(),
            lanes: Arc::default(),
            backend: BACKENDS.fetch_add(1, Relaxed),
        }
    }

    /// The same device under a number of the caller's: devices with equal numbers may name each other's lanes, so each
    /// device of a process has its own. Whoever joins backends numbers them.
    pub fn numbered(mut self, backend: u16) -> Self {
        self.backend = backend;
        self
    }

    /// Threads that live now: workers, and stand-ins for those inside host calls.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }
}

impl Device for HostDevice {
    type Lane = HostLane;
    type Gauge = HostGauge;

    fn caps(&self) -> Caps {
        Caps {
            ops: (1 << op::READ | 1 << op::WRITE) ^ ((1 << (op::PREFETCH + 1)) - 1),
            backend: self.backend,
            space: 0,
            native_wait: true,
            depth: limits::DEPTH,
            pace: Pace::Pushed,
            lanes: limits::LANES_MAX,
            align: limits::ALIGN,
            args_max: limits::ARGS_MAX,
            group_max: limits::GROUP_MAX,
            shared_max: limits::SHARED_MAX,
            pattern_max: u32::MAX,
            pattern_pow2: false,
            update_max: u32::MAX,
            alloc_max: u64::MAX,
            mappable: true,
            coherent: true,
            host_copies: true,
        }
    }

    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        self.memory.allocate(want)
    }

    fn free(&self, block: &Block) -> Result<(), Fault> {
        self.memory.free(block)
    }

    fn lane(&self, tick: Tick) -> Result<(HostLane, HostGauge, usize), Fault> {
        lane::open(&self.pool, &self.lanes, tick)
    }
}

impl Drop for HostDevice {
    fn drop(&mut self) {
        self.pool.stop();
    }
}
