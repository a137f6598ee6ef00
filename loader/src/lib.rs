//! Wharf moves data and work to devices whose backends are plugins, found and opened at run time.
//!
//! - [`Runtime`]: the plugins that were found ([`plugin`] says where) and their devices.
//! - [`Device`]: memory ([`Buffer`]), queues ([`Queue`]), programs ([`Program`], [`Kernel`]), and facts.
//! - [`Parameters`]: the tensors of IRPA, GGUF and safetensors archives; [`Device::load`], [`Device::gather`] and
//!   [`Device::scatter`] move them in one batch over several timelines ([`Load`]).
//! - [`NewArchive`]: an archive that is to be written.
//! - [`Event`]: a moment in the life of a queue, to wait for or to make another queue wait for.
//! - [`Error`]: what, where, why, and what to do next.
//!
//! # Example
//!
//! A net of two layers, loaded from an archive and run over 1,797 images (`loader/examples/digits.rs`):
//!
//! ```no_run
#![doc = include_str!("../examples/digits.rs")]
//! ```
#![deny(unsafe_code)]

mod args;
mod buffer;
mod calls;
mod device;
mod engine;
mod error;
mod event;
mod files;
mod fork;
mod layers;
mod list;
mod load;
pub mod near;
pub mod os;
mod parameters;
pub mod plugin;
mod program;
mod queue;
mod replay;
mod runtime;
mod stage;
mod submitted;
mod write;

pub use args::Args;
pub use buffer::Buffer;
pub use device::{Device, Memory};
pub use error::{Error, ErrorKind, Result};
pub use event::Event;
pub use layers::LayerInUse;
pub use list::{CommandList, ListArgs, Operand, Recording, Slot};
pub use load::{Io, Load, LoadOptions, STAGING_DEFAULT, Span};
pub use parameters::{ArchiveFile, Content, Mode, Parameters, Tensor, TensorPlace, is_index};
pub use program::{Kernel, Program};
pub use queue::{Burst, Queue};
pub use replay::Replayed;
pub use runtime::{Builder, Runtime};
pub use submitted::Submitted;
pub use wharf_core::{
    archive,
    bits::{Access, MemoryType, Usage},
    buffer::Overlap,
    device::{Block, Caps, Param, SymbolKind, Times, property},
    runtime::{
        Allocation, DeviceStatistics, Heap, Order, PoolLimits, PoolStatistics, QueueOptions, Statistics,
    },
};
pub use wharf_layers::{Finding, FindingKind};
pub use write::{NewArchive, NewTensor, Written, alignment};
