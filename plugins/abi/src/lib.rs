//! The plugin ABI of Wharf: C tables, and both ways through them.
//!
//! - [`tables`]: the ABI itself, `repr(C)` types of its own.
//! - [`export`](mod@export), [`plugin`](mod@plugin): any backend of core behind the tables; the macros that make a plugin of it.
//! - [`handshake`], [`negotiate`](mod@negotiate): a host's first look at a plugin, by abi_stable and by C.
//! - [`import`]: a plugin behind the tables as a backend of core.
//! - [`errors`], [`text`]: words of errors, on the plugin's and on the host's side.
//! - [`meta`]: what a plugin file says about itself without being run; [`cpu`]: what it asks of the processor.
#![deny(unsafe_code)]

pub mod code;
pub mod cpu;
pub mod errors;
pub mod export;
mod guard;
pub mod handshake;
pub mod import;
pub mod meta;
pub mod negotiate;
pub mod plugin;
pub mod refusal;
mod sized;
pub mod tables;
pub mod text;

pub use import::{DynDevice, DynGauge, DynLane, Instance};
pub use negotiate::{Opened, negotiate};
pub use refusal::Refusal;
#[doc(hidden)] // Named by the macros.
pub use wharf_core::fault::Fault;
