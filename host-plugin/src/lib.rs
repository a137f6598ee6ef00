//! The CPU as a device of Wharf: the reference backend. Lanes run on real threads, kernels come from ELF images that
//! are loaded from memory, and memory is the process' own.
//!
//! - [`HostDevice`]: the device; the roles of `wharf_core::device` are implemented on it.
//! - [`limits`]: every limit, by name.
//! - [`text()`]: messages of the system's linker, by the key in a fault.
//!
//! Inside: a lane is a `track` with a `ring` of captured steps; `drive` runs it, on a worker of the `pool` or on the
//! thread that waits; `spread` shares one large step among workers. `elf` reads an image, `object` loads it, `program`
//! finds kernels and globals. `cpu` and `describe` answer what the device is.
//!
//! A kernel that traps ends the process: it runs in it.
#![deny(unsafe_code)]

mod bytes;
mod cpu;
mod describe;
mod device;
mod drive;
mod elf;
mod fence;
mod fill;
mod lane;
mod launch;
pub mod limits;
mod memory;
mod object;
mod pool;
mod program;
mod registry;
mod ring;
mod scratch;
mod spread;
mod step;
mod text;
mod times;
mod track;
mod transfer;
mod watch;

pub use device::HostDevice;
pub use lane::{HostGauge, HostLane};
pub use text::text;
