//! One suite of behaviour that every backend of Wharf passes, linked in or behind the plugin tables.
//!
//! A [`Case`] is written once, against [`rig::Rig`]: the runtime of core without its type parameters. A [`Target`] is a
//! backend in one of its forms, a [`Mode`] a way to drive it. What a case needs is data ([`Need`]); where a target lacks
//! it the case is skipped and says why. A case fails by an error with expected and actual values, never by a panic.
//!
//! - [`case`], [`need`]: cases and what they need; [`cases`]: all of them.
//! - [`rig`]: what cases are written against, over any backend.
//! - [`ctx`]: a case's own runtime, and what is left of it afterwards.
//! - [`target`], [`plugins`], [`library`], [`images`]: backends in their forms, and their kernels.
//! - [`shallow`], [`lacking`]: devices over devices: one step at a time, without native waits, without a role.
//! - [`run`], [`report`], [`known`]: the runner, its result, failures that are known.
#![deny(unsafe_code)]

pub mod case;
pub mod cases;
pub mod ctx;
pub mod gate;
pub mod host;
pub mod images;
pub mod known;
pub mod lacking;
mod layers;
pub mod library;
pub mod mode;
pub mod need;
pub mod plugins;
pub mod report;
pub mod rig;
mod run;
pub mod shallow;
pub mod target;

pub use case::{Case, Fail, Outcome};
pub use ctx::Ctx;
pub use mode::Mode;
pub use need::Need;
pub use report::{Line, Report, Result};
pub use run::{Options, run};
pub use target::Target;
