//! All the memory of a runtime, by type. Without [`Env::grow`] its capacities are the limits; with it they are where
//! the tables begin.

use super::{
    lane::Queue,
    node::NodeBlock,
    pool::PoolSlot,
    program::{KernelRecord, ProgramRecord},
    statistics::StatisticsSlot,
    work::WorkSlot,
};
use crate::{
    device::Device,
    env::Env,
    handle::Slot,
    record::{Record, Space},
    timeline::{Bell, Failures, Timeline},
};

/// Address spaces and sets of registrations, programs and jobs a store begins with.
const SPACES: usize = 4;
const PROGRAMS: usize = 4;
const KERNELS: usize = 16;
const WORKS: usize = 4;
/// Devices whose memory is counted.
const COUNTED: usize = 4;

/// Queues, timelines, records of memory, and operations that can be held; each a power of two. All bits zero, so that
/// a `static` store takes no flash.
pub struct Store<
    D: Device,
    E: Env,
    const LANES: usize,
    const TIMELINES: usize,
    const RECORDS: usize,
    const HELD: usize,
> {
    lanes: [Slot<Queue<D, E>>; LANES],
    timelines: [Slot<Timeline>; TIMELINES],
    records: [Slot<Record>; RECORDS],
    spaces: [Slot<Space<E>>; SPACES],
    programs: [Slot<ProgramRecord>; PROGRAMS],
    kernels: [Slot<KernelRecord>; KERNELS],
    works: [Slot<WorkSlot<D, E>>; WORKS],
    statistics: [Slot<StatisticsSlot<E>>; COUNTED],
    pools: [Slot<PoolSlot<E>>; COUNTED],
    nodes: [NodeBlock; HELD],
    failures: Failures,
    bell: Bell,
}

impl<D: Device, E: Env, const L: usize, const T: usize, const R: usize, const H: usize>
    Store<D, E, L, T, R, H>
{
    /// An empty store.
    #[allow(clippy::new_without_default)] // `Default` is not const, and a store is a static.
    pub const fn new() -> Self {
        Store {
            lanes: [const { Slot::NEW }; L],
            timelines: [const { Slot::NEW }; T],
            records: [const { Slot::NEW }; R],
            spaces: [const { Slot::NEW }; SPACES],
            programs: [const { Slot::NEW }; PROGRAMS],
            kernels: [const { Slot::NEW }; KERNELS],
            works: [const { Slot::NEW }; WORKS],
            statistics: [const { Slot::NEW }; COUNTED],
            pools: [const { Slot::NEW }; COUNTED],
            nodes: [const { NodeBlock::NEW }; H],
            failures: Failures::NEW,
            bell: Bell::NEW,
        }
    }

    /// The store without its capacities.
    pub const fn parts(&'static self) -> Parts<D, E> {
        Parts {
            lanes: &self.lanes,
            timelines: &self.timelines,
            records: &self.records,
            spaces: &self.spaces,
            programs: &self.programs,
            kernels: &self.kernels,
            works: &self.works,
            statistics: &self.statistics,
            pools: &self.pools,
            nodes: &self.nodes,
            failures: &self.failures,
            bell: &self.bell,
        }
    }
}

/// A store as a runtime takes it. One runtime for each store.
pub struct Parts<D: Device, E: Env> {
    pub(crate) lanes: &'static [Slot<Queue<D, E>>],
    pub(crate) timelines: &'static [Slot<Timeline>],
    pub(crate) records: &'static [Slot<Record>],
    pub(crate) spaces: &'static [Slot<Space<E>>],
    pub(crate) programs: &'static [Slot<ProgramRecord>],
    pub(crate) kernels: &'static [Slot<KernelRecord>],
    pub(crate) works: &'static [Slot<WorkSlot<D, E>>],
    pub(crate) statistics: &'static [Slot<StatisticsSlot<E>>],
    pub(crate) pools: &'static [Slot<PoolSlot<E>>],
    pub(crate) nodes: &'static [NodeBlock],
    pub(crate) failures: &'static Failures,
    pub(crate) bell: &'static Bell,
}
