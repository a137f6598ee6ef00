//! An environment without threads: a lock that is a flag, a clock that the timer interrupt counts, a sleep that waits for
//! an interrupt.
//!
//! # Safety
//! [`Flag`] lets one closure in at a time: the main loop never meets itself inside, and an interrupt only ever tries.
#![allow(unsafe_code)]

use crate::board;
use core::{
    alloc::Layout,
    ptr::NonNull,
    sync::atomic::{AtomicBool, AtomicU32, Ordering::*},
};
use wharf_core::{
    env::{Deadline, Env, Lock},
    ranges::Sorted,
};

/// A lock between one main loop and its interrupts: no interrupt is masked, since one that finds the flag set goes away
/// and comes back with the next tick.
pub struct Flag(AtomicBool);

// SAFETY: the flag is set exactly while a closure runs, and `with` never goes on when it finds it set.
unsafe impl Lock for Flag {
    const NEW: Self = Flag(AtomicBool::new(false));
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        self.try_with(f).expect("the main loop is not inside, and interrupts only try")
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

/// A deadline so many milliseconds from now.
pub fn after_ms(ms: u64) -> Deadline {
    Some(board::now_ns() + ms * 1_000_000)
}

/// Waits for an interrupt if nobody has rung. One between the look and the sleep is not lost for long: the timer's next
/// one ends it.
pub(crate) fn sleep(word: &AtomicU32, seen: u32, until: Deadline) -> bool {
    if word.load(Acquire) == seen {
        board::sleep();
    }
    until.is_none_or(|until| board::now_ns() < until)
}

/// One main loop, no heap.
pub struct Bare;

/// Allocations that can be live at once.
pub const RANGES: usize = 8;

impl Env for Bare {
    type Lock = Flag;
    type Ranges = Sorted<Flag, RANGES>;
    fn sleep(word: &AtomicU32, seen: u32, until: Deadline, _: u64) -> bool {
        sleep(word, seen, until)
    }
    fn wake(_: &AtomicU32) {}
    fn grow(_: Layout) -> Option<NonNull<u8>> {
        None
    }
}
