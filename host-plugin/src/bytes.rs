//! Bytes captured by `submit`: patterns, updates and kernel arguments. Short ones lie inside the step, so that a
//! small launch allocates nothing.
//!
//! # Safety
//! `len` bytes behind [`Bytes::as_ptr`] are initialised: only [`Bytes::capture`] raises `len`, after it has copied as many.
#![allow(unsafe_code)]

use crate::limits::INLINE;
use std::{mem::MaybeUninit, ptr, slice};

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Line([MaybeUninit<u8>; 16]);

const HOLE: Line = Line([MaybeUninit::uninit(); 16]);

/// Captured bytes, aligned to 16.
#[repr(C)] // Length first: few bytes lie in one cache line with it.
pub(crate) struct Bytes {
    heap: Option<Box<[Line]>>,
    len: usize,
    inline: [Line; INLINE / 16],
}

impl Bytes {
    /// No bytes.
    #[inline(always)]
    pub(crate) const fn none() -> Bytes {
        Bytes { heap: None, len: 0, inline: [HOLE; INLINE / 16] }
    }

    /// Becomes a copy of `bytes`. `false`, with nothing changed: no memory.
    #[inline]
    #[must_use]
    pub(crate) fn capture(&mut self, bytes: &[u8]) -> bool {
        let to: *mut u8 = if bytes.len() <= INLINE {
            self.inline.as_mut_ptr().cast()
        } else {
            let Some(lines) = lines(bytes.len()) else { return false };
            self.heap.insert(lines).as_mut_ptr().cast()
        };
        // SAFETY: `to` leads to at least `bytes.len()` bytes of our own, just made or not in use.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        self.len = bytes.len();
        true
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

/// Room for `len` bytes.
#[cold]
fn lines(len: usize) -> Option<Box<[Line]>> {
    let mut lines = Vec::new();
    lines.try_reserve_exact(len.div_ceil(16)).ok()?;
    lines.resize(len.div_ceil(16), HOLE);
    Some(lines.into_boxed_slice())
}
