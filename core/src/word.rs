//! A 64-bit value that one writer at a time raises and anyone reads without waiting, on targets with and without
//! 64-bit atomics.

use crate::sync::AtomicU32;
use core::sync::atomic::Ordering::*;

/// The word behind a timeline: the target's own 64-bit atomic, or three 32-bit words.
#[cfg(target_has_atomic = "64")]
pub type Word64 = Whole64;
/// The word behind a timeline: the target's own 64-bit atomic, or three 32-bit words.
#[cfg(not(target_has_atomic = "64"))]
pub type Word64 = Split64;

/// One 64-bit atomic. Its address crosses the ABI, so it is exactly a `u64` in memory.
#[cfg(target_has_atomic = "64")]
#[repr(transparent)]
#[derive(Debug)]
pub struct Whole64(crate::sync::AtomicU64);

#[cfg(target_has_atomic = "64")]
impl Whole64 {
    /// A word that holds `value`.
    pub const fn new(value: u64) -> Self {
        Self(crate::sync::AtomicU64::new(value))
    }
    /// The value now; everything written before it was set is visible.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Acquire)
    }
    /// Sets the value. One writer at a time.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Release);
    }
    /// The address, for a backend behind C tables.
    pub fn as_ptr(&self) -> *mut u64 {
        self.0.as_ptr()
    }
}

/// A `u64` in three 32-bit words: one writer at a time, values never go down, readers never wait.
///
/// The writer stores the high half in front, then the low half, then the high half at the back. A reader loads
/// them in the opposite order. If both high halves agree, the low half belongs to them or to a later value under
/// the same high half. If they differ, a carry is under way: the new high half is already decided, and the first
/// value after the carry (low half zero) is one that the writer has committed to reach.
#[derive(Debug)]
pub struct Split64 {
    front: AtomicU32,
    low: AtomicU32,
    back: AtomicU32,
}

impl Split64 {
    /// A word that holds `value`.
    pub const fn new(value: u64) -> Self {
        let high = AtomicU32::new((value >> 32) as u32);
        Self { front: high, low: AtomicU32::new(value as u32), back: AtomicU32::new((value >> 32) as u32) }
    }
    /// The value now, or a value between the last and the one that is being written.
    #[inline]
    pub fn get(&self) -> u64 {
        let back = self.back.load(Acquire);
        let low = self.low.load(Acquire);
        let front = self.front.load(Acquire);
        (front as u64) << 32 | if front == back { low as u64 } else { 0 }
    }
    /// Sets the value, never below the one before, except while nobody else knows the word. One writer at a time.
    #[inline]
    pub fn set(&self, value: u64) {
        self.front.store((value >> 32) as u32, Release);
        self.low.store(value as u32, Release);
        self.back.store((value >> 32) as u32, Release);
    }
}
