//! A heap of 64 KiB, and the environment of a runtime whose tables grow in it.
//!
//! # Safety
//! The heap's bytes are a static of this file; each is given out once, or again after the allocation that ended last was
//! given back. There is one main loop, and interrupts allocate nothing.
#![allow(unsafe_code)]

use crate::env::{Flag, sleep};
use alloc::alloc::{GlobalAlloc, Layout};
use core::{
    cell::UnsafeCell,
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, AtomicUsize, Ordering::*},
};
use wharf_core::{
    env::{Deadline, Env},
    ranges::Tree,
};

extern crate alloc;

/// Bytes of the heap.
pub const BYTES: usize = 64 << 10;

/// Gives out bytes in ascending order; only the last allocation makes room again when it is given back.
pub struct Bump {
    used: AtomicUsize,
    bytes: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: the bytes are reached through the allocations only.
unsafe impl Sync for Bump {}

/// The heap of a bare target; an ordinary program has its own.
#[cfg_attr(target_os = "none", global_allocator)]
pub static HEAP: Bump = Bump { used: AtomicUsize::new(0), bytes: UnsafeCell::new([0; BYTES]) };

impl Bump {
    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}

// SAFETY: `alloc` answers null, or bytes of the static that no live allocation has, aligned as wanted.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.bytes.get().cast::<u8>();
        let from = (base.addr() + self.used()).next_multiple_of(layout.align()) - base.addr();
        let end = from.saturating_add(layout.size());
        if end > BYTES {
            return ptr::null_mut();
        }
        self.used.store(end, Relaxed);
        base.wrapping_add(from)
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let from = at.addr() - self.bytes.get().addr();
        if from + layout.size() == self.used() {
            self.used.store(from, Relaxed);
        }
    }
}

/// One main loop and a heap.
pub struct Roomy;

impl Env for Roomy {
    type Lock = Flag;
    type Ranges = Tree<Flag>;
    fn sleep(word: &AtomicU32, seen: u32, until: Deadline, _: u64) -> bool {
        sleep(word, seen, until)
    }
    fn wake(_: &AtomicU32) {}
    fn grow(layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: core asks for at least one byte.
        NonNull::new(unsafe { alloc::alloc::alloc(layout) })
    }
}
