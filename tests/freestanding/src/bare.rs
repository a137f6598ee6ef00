//! An environment without threads: a lock that is a flag, a clock that counts how often somebody slept.
//!
//! # Safety
//! [`Flag`] lets one closure in at a time: who finds the flag set is nested in another and the program ends.
#![allow(unsafe_code)]

use core::{
    alloc::Layout,
    ptr::NonNull,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*},
};
use wharf_core::{
    env::{Deadline, Env, Lock},
    ranges::Sorted,
};

/// A lock for one thread.
pub(crate) struct Flag(AtomicBool);

// SAFETY: the flag is set exactly while a closure runs, and `with` never goes on when it finds it set.
unsafe impl Lock for Flag {
    const NEW: Self = Flag(AtomicBool::new(false));
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        assert!(!self.0.swap(true, Acquire), "nested");
        let result = f();
        self.0.store(false, Release);
        result
    }
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        if self.0.swap(true, Acquire) {
            return None;
        }
        let result = f();
        self.0.store(false, Release);
        Some(result)
    }
}

static CLOCK: AtomicU64 = AtomicU64::new(0);

/// A deadline after so many sleeps.
pub(crate) fn after(sleeps: u64) -> Deadline {
    Some(CLOCK.load(Relaxed) + sleeps)
}

/// One thread, no heap.
pub(crate) struct Bare;

impl Env for Bare {
    type Lock = Flag;
    type Ranges = Sorted<Flag, 8>;
    fn sleep(_: &AtomicU32, _: u32, until: Deadline, _: u64) -> bool {
        let now = CLOCK.fetch_add(1, Relaxed);
        until.is_none_or(|until| now < until)
    }
    fn wake(_: &AtomicU32) {}
    fn grow(_: Layout) -> Option<NonNull<u8>> {
        None
    }
}
