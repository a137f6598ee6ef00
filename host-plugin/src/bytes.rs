//! Bytes captured by `submit`: patterns, updates and kernel arguments. Short ones lie inside the step, so that a
//! small launch allocates nothing.
//!
//! # Safety
//! `len` bytes behind [`Bytes::as_ptr`] are initialised: only [`Bytes::capture`] makes a value, and it copies them.
#![allow(unsafe_code)]

use crate::limits::INLINE;
use std::{mem::MaybeUninit, ptr, slice};

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Line([MaybeUninit<u8>; 16]);

/// Captured bytes, aligned to 16.
pub(crate) struct Bytes {
    heap: Option<Box<[Line]>>,
    len: usize,
    inline: [Line; INLINE / 16],
}

impl Bytes {
    /// A copy of `bytes`; `None` if there is no memory for it.
    #[inline]
    pub(crate) fn capture(bytes: &[u8]) -> Option<Bytes> {
        const HOLE: Line = Line([MaybeUninit::uninit(); 16]);
        let mut own = Bytes { heap: None, len: bytes.len(), inline: [HOLE; INLINE / 16] };
        let to: *mut u8 = if bytes.len() <= INLINE {
            own.inline.as_mut_ptr().cast()
        } else {
            let mut lines = Vec::new();
            lines.try_reserve_exact(bytes.len().div_ceil(16)).ok()?;
            lines.resize(bytes.len().div_ceil(16), HOLE);
            own.heap.insert(lines.into_boxed_slice()).as_mut_ptr().cast()
        };
        // SAFETY: `to` leads to at least `bytes.len()` bytes of our own, just made.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Some(own)
    }

    /// Where they lie, aligned to 16.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *const u8 {
        match &self.heap {
            None => self.inline.as_ptr().cast(),
            Some(heap) => heap.as_ptr().cast(),
        }
    }

    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: `capture` initialised `len` bytes there, and they live as long as `self`.
        unsafe { slice::from_raw_parts(self.as_ptr(), self.len) }
    }
}
