//! What core needs from the place it runs in: a lock, a way to sleep and wake, perhaps more memory. A desktop, a poll
//! loop and a simulator differ here and nowhere else.
//!
//! # Safety
//! The only unsafe code is [`Mutex`]'s access to its value, which rests on the promise that [`Lock`] makes.
#![allow(unsafe_code)]

use crate::{ranges::Ranges, sync::AtomicU32};
use core::{alloc::Layout, cell::UnsafeCell, ptr::NonNull};

/// Nanoseconds on the clock of the environment, which core never reads; `None` waits for ever.
pub type Deadline = Option<u64>;

/// Mutual exclusion as closures, so that a critical section, a flag and a futex all fit.
///
/// # Safety
/// `with` never lets two closures of one lock run at once, not even nested in each other (a critical section alone
/// permits nesting: it must count or trap).
pub unsafe trait Lock: Send + Sync + 'static {
    /// An open lock; all bits zero, so that a store of locks needs no image in flash.
    const NEW: Self;
    /// Runs `f` alone.
    fn with<R>(&self, f: impl FnOnce() -> R) -> R;
    /// Runs `f` alone, or answers `None` at once when somebody is inside.
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R>;
}

/// The environment of a runtime.
pub trait Env: Sized + 'static {
    /// The lock of lanes and tables.
    type Lock: Lock;
    /// The set of ranges behind raw pointers: a tree where there is a heap, a sorted array where there is none.
    type Ranges: Ranges;
    /// Sleeps while `*word == seen`, at most `at_most_ns` (`u64::MAX`: no such limit); may wake early. `false`: the
    /// deadline has passed.
    fn sleep(word: &AtomicU32, seen: u32, until: Deadline, at_most_ns: u64) -> bool;
    /// Wakes all that sleep on `word`.
    fn wake(word: &AtomicU32);
    /// Memory for a full table, never given back. `None`: what the store was declared with is all there is.
    fn grow(layout: Layout) -> Option<NonNull<u8>>;
}

/// A value behind a [`Lock`].
pub struct Mutex<L, T> {
    lock: L,
    cell: UnsafeCell<T>,
}

// SAFETY: `Lock` promises that one closure runs at a time, and the value only moves from thread to thread.
unsafe impl<L: Lock, T: Send> Sync for Mutex<L, T> {}

impl<L: Lock, T> Mutex<L, T> {
    /// An open mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self { lock: L::NEW, cell: UnsafeCell::new(value) }
    }
    /// Runs `f` on the value, alone.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.lock.with(|| {
            // SAFETY: inside `Lock::with`, so no other reference to the value exists.
            f(unsafe { &mut *self.cell.get() })
        })
    }
    /// Runs `f` on the value if nobody is inside.
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.lock.try_with(|| {
            // SAFETY: as in `with`.
            f(unsafe { &mut *self.cell.get() })
        })
    }
}
