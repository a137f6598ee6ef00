//! Plugins as vendors ship them: what a file says before anything of it runs, what keeps it from being used, and how it
//! is chosen. The plugins are the host's, as it is or with a few bytes changed, and small ones in C.
#![allow(clippy::unwrap_used)]

#[path = "shipped/choice.rs"]
mod choice;
#[path = "shipped/common.rs"]
mod common;
#[path = "shipped/inspect.rs"]
mod inspect;
#[path = "shipped/isolation.rs"]
mod isolation;
#[path = "shipped/manifests.rs"]
mod manifests;
#[path = "shipped/refused.rs"]
mod refused;
#[path = "shipped/trust.rs"]
mod trust;
#[path = "shipped/twice.rs"]
mod twice;
