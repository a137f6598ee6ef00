//! The devices of the firmware as one type: a runtime takes devices of one kind, and a board's parts are of several.

use crate::{
    cpu::{Cpu, CpuLane, Port},
    env::Flag,
};
use wharf_core::{
    device::{
        Block, Caps, Device, Gauge, Hint, Kernel, Lane, Param, Programs, Step, SymbolKind, Times, Want,
    },
    env::Deadline,
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// Channels of the engine.
pub const CHANNELS: usize = 2;
/// Descriptors of a channel.
const DEPTH: usize = 4;
/// Allocations in the region.
pub const BLOCKS: usize = 16;

/// The DMA engine, in a static.
pub type Engine = wharf_dma::Engine<Flag, CHANNELS, DEPTH, BLOCKS>;
/// The engine as a device.
pub type Dma = wharf_dma::Dma<Flag, CHANNELS, DEPTH, BLOCKS>;

/// Number of the engine among the devices.
pub const DMA: usize = 0;
/// Number of the processor.
pub const CPU: usize = 1;
/// What `load` takes for the kernels that are linked in.
pub const LINKED: &[u8] = b"linked in";

/// A part of the board.
pub enum Part {
    /// Memory and two channels that move it.
    Dma(Dma),
    /// Kernels.
    Cpu(&'static Cpu),
}

/// The submitting end.
pub enum Way {
    /// A channel.
    Dma(<Dma as Device>::Lane),
    /// The queue of kernels.
    Cpu(CpuLane),
}

/// The watching end; a channel needs none.
#[derive(Clone)]
pub struct Watch(Option<Port>);

impl Device for Part {
    type Lane = Way;
    type Gauge = Watch;

    fn caps(&self) -> Caps {
        match self {
            Part::Dma(dma) => dma.caps(),
            Part::Cpu(cpu) => cpu.caps(),
        }
    }
    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        match self {
            Part::Dma(dma) => dma.allocate(want),
            Part::Cpu(_) => Err(lacks(Site::Allocate)),
        }
    }
    fn free(&self, block: &Block) -> Result<(), Fault> {
        match self {
            Part::Dma(dma) => dma.free(block),
            Part::Cpu(_) => Err(lacks(Site::Free)),
        }
    }
    fn lane(&self, tick: Tick) -> Result<(Way, Watch, usize), Fault> {
        match self {
            Part::Dma(dma) => dma.lane(tick).map(|(lane, (), number)| (Way::Dma(lane), Watch(None), number)),
            Part::Cpu(cpu) => cpu.lane(tick).map(|(lane, port)| (Way::Cpu(lane), Watch(Some(port)), 0)),
        }
    }
}

impl Lane for Way {
    fn submit(&mut self, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)> {
        match self {
            Way::Dma(lane) => lane.submit(steps, hint),
            Way::Cpu(lane) => lane.submit(steps, hint),
        }
    }
}

impl Gauge for Watch {
    fn poll(&self) {
        self.0.iter().for_each(Gauge::poll);
    }
    fn wait(&self, _: u64, _: Deadline) -> bool {
        false
    }
    fn times(&self, _: u64) -> Option<Times> {
        None
    }
}

impl Programs for Part {
    fn accepts(&self, image: &[u8]) -> bool {
        matches!(self, Part::Cpu(_)) && image == LINKED
    }
    fn load(&self, image: &[u8]) -> Result<u64, Fault> {
        let wrong = Fault::backend(Kind::InvalidImage, Site::Load, Why::Unknown, [0; 2]);
        self.accepts(image).then_some(1).ok_or(wrong)
    }
    fn unload(&self, _: u64) -> Result<(), Fault> {
        Ok(())
    }
    fn kernel(&self, _: u64, name: &[u8], _: &[Param]) -> Result<Kernel, Fault> {
        match self {
            Part::Dma(_) => Err(lacks(Site::Kernel)),
            Part::Cpu(cpu) => cpu.kernel(name),
        }
    }
    fn global(&self, _: u64, _: &[u8]) -> Result<Block, Fault> {
        Err(Fault::backend(Kind::NotFound, Site::Global, Why::Unknown, [0; 2]))
    }
    fn symbol(&self, _: u64, _: u32, _: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault> {
        Ok(None)
    }
    fn params(&self, _: u64, _: &mut [Param]) -> Result<usize, Fault> {
        Ok(0)
    }
    fn occupancy(&self, _: u64, _: u64) -> Result<u32, Fault> {
        Ok(1)
    }
}

fn lacks(site: Site) -> Fault {
    Fault::backend(Kind::Unsupported, site, Why::Missing, [0; 2])
}
