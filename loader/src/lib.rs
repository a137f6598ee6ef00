//! Wharf moves data and work to devices whose backends are plugins, found and opened at run time.
#![deny(unsafe_code)]

mod args;
mod buffer;
mod calls;
mod device;
mod engine;
mod error;
mod event;
mod load;
pub mod near;
pub mod os;
mod parameters;
pub mod plugin;
mod program;
mod queue;
mod runtime;

pub use args::Args;
pub use buffer::Buffer;
pub use device::{Device, Memory};
pub use error::{Error, ErrorKind, Result};
pub use event::Event;
pub use load::{Load, LoadOptions, Span};
pub use parameters::{ArchiveFile, Mode, Parameters, Tensor, TensorPlace};
pub use program::{Kernel, Program};
pub use queue::Queue;
pub use runtime::{Builder, Runtime};
pub use wharf_core::{
    buffer::Overlap,
    device::{Block, Caps, Param, SymbolKind, Times, property},
    runtime::{Order, QueueOptions},
};
