//! Queues over backends' lanes, timelines, memory records and programs: the part of core that decides.
//!
//! A [`Runtime`] starts no thread and reads no clock. Whoever waits or calls [`Runtime::poll`] moves held work along:
//! a main loop on a microcontroller, a thread of the loader on a desktop, a simulator in tests.
//!
//! Locks, in the order in which they may be taken: pump, lane, signal, lists. No backend is called with any lock held,
//! except `Lane::submit` and `Gauge::poll`, which run under their own lane's lock and call back nothing but its tick.

mod alloca;
mod heaps;
mod host;
mod lane;
mod late;
mod list;
mod list_record;
mod list_room;
mod list_run;
mod list_submit;
mod memory;
mod node;
mod part;
mod pieces;
mod pool;
mod program;
mod pump;
mod queue;
mod register;
mod sequence;
mod signal;
mod statistics;
mod store;
mod submit;
mod transfer;
mod wait;
mod work;

pub use heaps::{Compatibility, Heap};
pub use host::ReleaseFn;
pub use lane::{Order, Queue};
pub use list::{
    ArgRef, BOUND_ARGS_MAX, BYTES_MAX, COMMANDS_MAX, Command, CommandList, Ref, SLOTS_MAX, UPDATE_MAX,
};
pub use list_room::{ListRoom, ListStorage};
pub use memory::{Allocation, MEMORY_TYPES_HOST};
pub use node::{BLOCK as NODE_BYTES, NodeBlock, POINTS_MAX};
pub use pool::{PoolLimits, PoolStatistics};
pub use program::{KernelInfo, KernelRecord, ProgramRecord};
pub use pump::Next;
pub use queue::QueueOptions;
pub use statistics::{DeviceStatistics, Statistics};
pub use store::{Parts, Store};
pub use transfer::{Around, LaunchArgs, Span};
pub use work::{Work, WorkSlot, Worked};

use crate::{
    device::Device,
    env::{Env, Mutex},
    fault::{Fault, Site, Why},
    handle::Table,
    record::{Record, Space},
    sync::AtomicU32,
    timeline::{Bell, Failures, Timeline},
};
use core::sync::atomic::AtomicU32 as Counter;
use late::LateList;
use node::Nodes;
use pool::PoolSlot;
use statistics::StatisticsSlot;

pub(crate) use late::LateLink;

/// A set of devices and everything made on them.
pub struct Runtime<D: Device, E: Env> {
    devices: &'static [D],
    pub(crate) lanes: Table<E::Lock, Queue<D, E>>,
    pub(crate) timelines: Table<E::Lock, Timeline>,
    pub(crate) records: Table<E::Lock, Record>,
    pub(crate) spaces: Table<E::Lock, Space<E>>,
    pub(crate) programs: Table<E::Lock, ProgramRecord>,
    pub(crate) kernels: Table<E::Lock, KernelRecord>,
    pub(crate) works: Table<E::Lock, WorkSlot<D, E>>,
    pub(crate) statistics: Table<E::Lock, StatisticsSlot<E>>,
    pub(crate) pools: Table<E::Lock, PoolSlot<E>>,
    pub(crate) nodes: Nodes<E::Lock>,
    pub(crate) late: LateList<E::Lock>,
    pub(crate) failures: &'static Failures,
    pub(crate) bell: &'static Bell,
    pub(crate) pump: Mutex<E::Lock, ()>,
    pub(crate) signalling: Mutex<E::Lock, ()>,
    pub(crate) spacing: Mutex<E::Lock, ()>,
    pub(crate) refused: Counter,
    /// Somebody wanted to pump while another did.
    pub(crate) missed: AtomicU32,
}

impl<D: Device, E: Env> Runtime<D, E> {
    /// A runtime over `devices` that keeps everything in `parts` ([`Store::parts`]). `realm`, 0 to 15, tells handles of
    /// several runtimes in one process apart.
    pub const fn new(parts: Parts<D, E>, devices: &'static [D], realm: u8) -> Self {
        Runtime {
            devices,
            lanes: Table::new(parts.lanes, realm),
            timelines: Table::new(parts.timelines, realm),
            records: Table::new(parts.records, realm),
            spaces: Table::new(parts.spaces, realm),
            programs: Table::new(parts.programs, realm),
            kernels: Table::new(parts.kernels, realm),
            works: Table::new(parts.works, realm),
            statistics: Table::new(parts.statistics, realm),
            pools: Table::new(parts.pools, realm),
            nodes: Nodes::new(parts.nodes),
            late: LateList::NEW,
            failures: parts.failures,
            bell: parts.bell,
            pump: Mutex::new(()),
            signalling: Mutex::new(()),
            spacing: Mutex::new(()),
            refused: Counter::new(0),
            missed: AtomicU32::new(0),
        }
    }

    /// The devices, in the order of their numbers.
    pub fn devices(&self) -> &'static [D] {
        self.devices
    }

    /// What the pump sleeps on.
    pub fn bell(&self) -> &'static Bell {
        self.bell
    }

    /// How many failures lost their details because all slots were in use.
    pub fn failures_dropped(&self) -> u32 {
        self.failures.dropped()
    }

    pub(crate) fn late_count(&self) -> u32 {
        self.late.count()
    }

    pub(crate) fn device(&self, index: usize, site: Site) -> Result<&'static D, Fault> {
        let known = self.devices.len() as u64;
        let fault = Fault::caller(
            crate::fault::Kind::InvalidDevice,
            site,
            Why::Limit,
            [index as u64, known.saturating_sub(1)],
        );
        self.devices.get(index).ok_or(fault)
    }
}
