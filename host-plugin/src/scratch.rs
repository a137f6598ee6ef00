//! Shared memory of groups: one buffer a thread, grown on demand and kept. Its contents are what an earlier group left;
//! kernels must not read what they have not written (as on other devices), and clearing it would cost more than small
//! groups do.
//!
//! # Safety
//! A buffer belongs to one thread and is lent to one launch at a time: it is taken out of the thread's slot meanwhile,
//! so that a kernel that comes to run another one inside a call of the host gets a buffer of its own.
#![allow(unsafe_code)]

use std::{
    alloc::{Layout, alloc, dealloc},
    cell::Cell,
    ptr::NonNull,
};
use wharf_core::fault::{Fault, Site};

const ALIGN: usize = 64;

#[repr(align(64))]
struct Aligned;

/// Where no shared memory was asked for: aligned as a buffer is.
pub(crate) const EMPTY: NonNull<u8> = NonNull::<Aligned>::dangling().cast();

struct Buffer {
    base: NonNull<u8>,
    layout: Layout,
}

impl Buffer {
    fn new(len: usize) -> Option<Buffer> {
        let layout = Layout::from_size_align(len.next_power_of_two(), ALIGN).ok()?;
        // SAFETY: the layout is not empty: `len` is at least 1.
        let base = NonNull::new(unsafe { alloc(layout) })?;
        Some(Buffer { base, layout })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: made by `alloc` with this layout, and nobody uses it any more.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

thread_local! {
    static KEPT: Cell<Option<Buffer>> = const { Cell::new(None) };
}

/// Lends `len` bytes (at least 1), aligned to 64, to `f`.
pub(crate) fn with(len: usize, f: impl FnOnce(*mut u8)) -> Result<(), Fault> {
    let kept = KEPT.take().filter(|kept| kept.layout.size() >= len);
    let buffer = kept.or_else(|| Buffer::new(len)).ok_or_else(|| Fault::full(Site::Launch, len as u64))?;
    f(buffer.base.as_ptr());
    KEPT.set(Some(buffer));
    Ok(())
}
