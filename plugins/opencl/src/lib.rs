//! OpenCL devices of Wharf: every device of every platform behind the ICD loader, which is opened at run time. A machine
//! without it has no device and a reason.
//!
//! - [`devices`]: all devices, in an order that does not depend on that of the loader.
//! - [`text()`]: the driver's own words, by the key in a fault.
//!
//! Inside, in the order in which the files of every driver's backend are read: `ffi` has the calls, each with a `Result`;
//! `device` says what a device is; `memory` gives it out, as shared virtual memory where the driver has it, else as
//! buffers at addresses of a space of the backend's own; `queue` enqueues and watches; `program` builds and finds kernels.
//!
//! Not offered, since OpenCL has no way to do it: addresses of globals, and host calls (a callback runs on the driver's
//! thread, which must not block). Core or the loader does without.
#![deny(unsafe_code)]

mod device;
mod ffi;
mod memory;
mod program;
mod queue;
mod text;

pub use device::{OpenclDevice, devices};
pub use queue::{OpenclGauge, OpenclLane};
pub use text::text;
