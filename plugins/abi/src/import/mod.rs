//! Import: a plugin behind tables as a backend of core. [`Instance`] is the plugin, begun at first need; [`DynDevice`]
//! one of its devices, with all roles: what it lacks is asked first ([`DynDevice::has_programs`] and so on), and
//! answers `Unsupported` otherwise.
//!
//! Whatever a plugin answers is proven before it is believed; what cannot be is a `BackendFailure` of its.

mod cell;
mod device;
mod host;
mod instance;
mod lane;
mod memory;
mod program;

pub use device::DynDevice;
pub use host::{LogSink, set_log_sink};
pub use instance::Instance;
pub use lane::{DynGauge, DynLane};
