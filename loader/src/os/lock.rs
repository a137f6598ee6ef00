//! The lock of lanes and tables: one compare-and-swap to enter, a bounded spin when somebody is inside, then sleep.
//! Leaving is a store, a fence and a look at the sleepers.
//!
//! # Safety
//! `word` is 1 exactly while a closure runs: only the compare-and-swap from 0 lets one in, and it is stored 0 after.
#![allow(unsafe_code)]

use super::{
    park,
    sync::{AtomicU32, fence},
};
use core::sync::atomic::Ordering::*;
use wharf_core::env::Lock;

/// Turns of the spin before a thread sleeps.
const SPINS: u32 = if cfg!(loom) { 1 } else { 300 };

/// A lock of eight bytes that sleeps when it must.
#[derive(Debug)]
pub struct OsLock {
    word: AtomicU32,
    sleepers: AtomicU32,
}

impl OsLock {
    fn try_enter(&self) -> bool {
        self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn enter_slowly(&self) {
        for _ in 0..SPINS {
            if self.word.load(Relaxed) == 0 && self.try_enter() {
                return;
            }
            core::hint::spin_loop();
        }
        self.sleepers.fetch_add(1, Relaxed);
        fence(SeqCst); // Whoever leaves sees the sleeper, or is seen to have left.
        while self.word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            park::sleep(&self.word, 1, None);
        }
        self.sleepers.fetch_sub(1, Relaxed);
    }

    fn leave(&self) {
        self.word.store(0, Release);
        fence(SeqCst);
        if self.sleepers.load(Relaxed) != 0 {
            park::wake_one(&self.word);
        }
    }
}

/// Leaves also when the closure unwinds.
struct Inside<'a>(&'a OsLock);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

// SAFETY: `word` lets one closure in at a time; a nested call finds it 1 and waits for ever, it does not run.
unsafe impl Lock for OsLock {
    const NEW: Self = OsLock { word: AtomicU32::new(0), sleepers: AtomicU32::new(0) };

    #[inline]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        if !self.try_enter() {
            self.enter_slowly();
        }
        let _inside = Inside(self);
        f()
    }

    #[inline]
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        if !self.try_enter() {
            return None;
        }
        let _inside = Inside(self);
        Some(f())
    }
}
