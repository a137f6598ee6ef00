//! Layers: devices over a device. A [`Layered`] device hands each call of the roles to a [`Chain`] of layers before and
//! after the device below sees it; without a chain calls go straight through.
//!
//! - [`Validation`]: what the rules of the roles forbid, and what is left over at the end.
//! - [`Trace`]: a timeline of calls and operations for Perfetto.
//! - [`capture::Capture`]: a run as a file that can be run again.
//! - [`Faults`]: failures, delays and losses on purpose.
//!
//! Nothing here opens a file, reads a clock or starts a thread: an [`Outside`] and sinks bring these in, so that a layer
//! stands on a microcontroller as it does in a desktop's loader. [`choice`] reads the words in which people choose layers.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod call;
pub mod capture;
mod chain;
pub mod choice;
mod device;
mod faults;
mod lane;
mod trace;
mod validation;

pub use call::{Answer, At, Call, End, Facts, Layer, Outcome};
pub use chain::{Chain, Outside};
pub use device::Layered;
pub use faults::{FaultPlan, Faults};
pub use lane::{LayeredGauge, LayeredLane};
pub use trace::{Sink, Trace};
pub use validation::{Finding, FindingKind, Validation};
