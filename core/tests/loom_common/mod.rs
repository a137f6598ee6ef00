//! What models share: loom's mutex as a lock of core, and how a model is run.
//!
//! # Safety
//! The only unsafe code is the lock's promise to let one closure run at a time, which loom's mutex keeps.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // Each test binary uses its part.
#![allow(unsafe_code)]

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use wharf_core::env::Lock;

pub struct LoomLock(OnceLock<loom::sync::Mutex<()>>);

impl LoomLock {
    fn mutex(&self) -> &loom::sync::Mutex<()> {
        self.0.get_or_init(|| loom::sync::Mutex::new(()))
    }
}

// SAFETY: a mutex lets one closure run at a time and deadlocks on nesting.
unsafe impl Lock for LoomLock {
    const NEW: Self = LoomLock(OnceLock::new());
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _inside = self.mutex().lock().unwrap();
        f()
    }
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let _inside = self.mutex().try_lock().ok()?;
        Some(f())
    }
}

/// Runs `f` in every order of its threads with at most so many preemptions.
pub fn every_order(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 20_000;
    let runs = std::sync::Arc::new(AtomicU64::new(0));
    let counted = runs.clone();
    model.check(move || {
        counted.fetch_add(1, Relaxed);
        f();
    });
    println!("{} orders", runs.load(Relaxed));
}
