//! Places for what is made or taken once, when the program starts, and stays.
//!
//! # Safety
//! Who sets the flag first is the only one that ever writes the value or refers to it.
#![allow(unsafe_code)]

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    sync::atomic::{AtomicBool, Ordering::*},
};

/// A place in a static.
pub struct Place<T> {
    taken: AtomicBool,
    cell: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is reached through the one reference that `put` gives out.
unsafe impl<T: Send> Sync for Place<T> {}

impl<T> Place<T> {
    /// An empty place.
    #[allow(clippy::new_without_default)] // For statics.
    pub const fn new() -> Self {
        Place { taken: AtomicBool::new(false), cell: UnsafeCell::new(MaybeUninit::uninit()) }
    }
    /// Puts the value here, once.
    ///
    /// # Panics
    /// The second time.
    #[allow(clippy::mut_from_ref)] // Once.
    pub fn put(&'static self, value: T) -> &'static mut T {
        assert!(!self.taken.swap(true, AcqRel), "a place is taken once");
        // SAFETY: the flag was not set, so this is the only reference there will be.
        unsafe { &mut *self.cell.get() }.write(value)
    }
}

/// Bytes in a static, all 0 at first; too many to pass through the stack.
#[repr(align(64))]
pub struct Room<const BYTES: usize> {
    taken: AtomicBool,
    cell: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: the bytes are reached through the one reference that `take` gives out.
unsafe impl<const BYTES: usize> Sync for Room<BYTES> {}

impl<const BYTES: usize> Room<BYTES> {
    /// All 0.
    #[allow(clippy::new_without_default)] // For statics.
    pub const fn new() -> Self {
        Room { taken: AtomicBool::new(false), cell: UnsafeCell::new([0; BYTES]) }
    }
    /// The bytes, once.
    ///
    /// # Panics
    /// The second time.
    #[allow(clippy::mut_from_ref)] // Once.
    pub fn take(&'static self) -> &'static mut [u8] {
        assert!(!self.taken.swap(true, AcqRel), "a room is taken once");
        // SAFETY: the flag was not set, so this is the only reference there will be.
        unsafe { &mut *self.cell.get() }
    }
}
