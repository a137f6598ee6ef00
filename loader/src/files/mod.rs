//! Files as a backend: its lanes read and write files at offsets, on threads of their own. It is linked into the loader
//! and never listed; batches stage through it what is not mapped.

mod direct;
mod lane;
mod open;

pub(crate) use open::OpenFile;

use lane::FileLane;
use wharf_abi::{export, tables::EntryFn};
use wharf_core::{
    device::{Block, Caps, Device, Pace, Want, op},
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// Lanes at once: several batches of eight.
const LANES_MAX: u16 = 1024;
/// Unfinished steps a lane takes.
const DEPTH: u16 = 64;

/// The device of files.
pub(crate) struct Files;

wharf_abi::plugin! {
    /// The backend of files behind the tables of the ABI, like any other.
    struct FilesPlugin,
    backend: Files,
    id: "files",
    vendor: "Wharf",
    version: env!("CARGO_PKG_VERSION"),
    devices: || Ok(vec![Files]),
    roles: [],
}

/// The entry of the backend, for the registry.
pub(crate) const ENTRY: EntryFn = export::entry::<FilesPlugin>;

impl Device for Files {
    type Lane = FileLane;
    type Gauge = ();

    fn caps(&self) -> Caps {
        Caps {
            ops: 1 << op::BARRIER | 1 << op::READ | 1 << op::WRITE,
            backend: 0,
            space: 0,
            native_wait: false,
            depth: DEPTH,
            pace: Pace::Pushed,
            lanes: LANES_MAX,
            align: 1,
            args_max: 0,
            group_max: 0,
            shared_max: 0,
            pattern_max: u32::MAX,
            pattern_pow2: false,
            update_max: u32::MAX,
            alloc_max: u64::MAX,
            mappable: false,
            coherent: false,
            host_copies: false,
        }
    }

    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        Err(Fault::backend(Kind::Unsupported, Site::Allocate, Why::Memory, [want.len, 0]))
    }

    fn free(&self, block: &Block) -> Result<(), Fault> {
        Err(Fault::backend(Kind::InvalidArgument, Site::Free, Why::Address, [block.base, 0]))
    }

    fn lane(&self, tick: Tick) -> Result<(FileLane, (), usize), Fault> {
        FileLane::start(tick, DEPTH.into()).map(|lane| (lane, (), 0))
    }
}
