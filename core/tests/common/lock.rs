//! A mutex of the tests' own, called as std's is. Std is built without the thread sanitizer, which therefore does not see
//! what std's mutex orders where threads meet in it, and takes that for races; it sees this one.
//!
//! # Safety
//! `taken` is true exactly while a guard lives, and only a guard reaches the value.
#![allow(unsafe_code)]

use std::{
    cell::UnsafeCell,
    convert::Infallible,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicBool, Ordering::*},
};

#[derive(Default)]
pub struct Mutex<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one guard at a time reaches the value, which only moves from thread to thread.
unsafe impl<T: Send> Sync for Mutex<T> {}

pub struct Guard<'a, T>(&'a Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Mutex { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }
    pub fn lock(&self) -> Result<Guard<'_, T>, Infallible> {
        loop {
            if let Some(guard) = self.try_lock() {
                return Ok(guard);
            }
            std::thread::yield_now();
        }
    }
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.taken.compare_exchange(false, true, Acquire, Relaxed).is_ok().then(|| Guard(self))
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        unsafe { &*self.0.value.get() }
    }
}
impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, and borrowed alone.
        unsafe { &mut *self.0.value.get() }
    }
}
impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.taken.store(false, Release);
    }
}
