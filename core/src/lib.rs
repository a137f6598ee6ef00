//! The core of Wharf: what decides. It knows no clock, thread, file or driver; time, progress and bytes come in as
//! arguments and decisions go out, so the same code runs on a server, in a simulator and on a microcontroller.
//!
//! - [`fault`]: the one error, with who broke the contract and with which values.
//! - [`device`]: the roles of a backend, all that core asks of it.
//! - [`word`], [`tick`], [`timeline`]: time. Everything asynchronous ends as a value on a timeline.
//! - [`handle`]: generational handles and the tables behind them.
//! - [`ranges`], [`record`], [`buffer`]: memory; which allocation holds an address, who may touch it.
//! - [`runtime`]: queues, held operations, the pump, waits.
//! - [`batch`]: load, gather and scatter over many entries and several timelines.
//! - [`archive`]: strict readers for IRPA, GGUF and safetensors.
#![no_std]
#![deny(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(not(target_has_atomic = "32"))]
compile_error!(
    "wharf-core needs 32-bit compare-and-swap (for example thumbv7m or riscv32ima, not thumbv6m or riscv32i)"
);

pub mod archive;
pub mod barrier;
pub mod batch;
mod bit_text;
pub mod bits;
pub mod buffer;
pub mod device;
pub mod env;
pub mod fault;
pub mod handle;
pub mod ranges;
pub mod record;
pub mod runtime;
#[cfg(not(loom))]
mod sync;
#[cfg(loom)]
pub mod sync;
#[cfg(feature = "alloc")]
pub mod texts;
pub mod tick;
pub mod timeline;
pub mod word;
