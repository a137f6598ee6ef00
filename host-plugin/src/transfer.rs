//! Copies and updates of process memory, large ones shared among workers.
//!
//! # Safety
//! Addresses are what core resolved and checked: both sides of an operation lie in live memory until it has ended.
#![allow(unsafe_code)]

use crate::{limits::PIECE, pool::Pool, spread};
use std::{ptr, sync::Arc};

fn at(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// As memmove.
pub(crate) fn copy(from: u64, to: u64, len: u64, pool: &Arc<Pool>) {
    let apart = from.abs_diff(to) >= len;
    if len < 2 * PIECE || pool.width() == 1 || !apart {
        // SAFETY: both sides lie in live memory (module rule); they may overlap.
        unsafe { ptr::copy(at(from), at(to), len as usize) };
        return;
    }
    spread::share(pool, 0, len.div_ceil(PIECE), &|piece| {
        let first = piece * PIECE;
        let part = PIECE.min(len - first) as usize;
        // SAFETY: inside both sides, which are apart.
        unsafe { ptr::copy_nonoverlapping(at(from + first), at(to + first), part) }
    });
}

/// Captured bytes to memory.
pub(crate) fn update(to: u64, bytes: &[u8]) {
    // SAFETY: the target is live memory (module rule); the bytes are our own.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at(to), bytes.len()) }
}

/// A hint that memory will be used.
pub(crate) fn prefetch(address: u64, len: u64) {
    const PAGE: u64 = 4096;
    let first = address & !(PAGE - 1);
    let Some(end) = address.checked_add(len) else { return };
    // SAFETY: `MADV_WILLNEED` changes no contents, and answers an error for what is not mapped.
    unsafe { libc::madvise(at(first).cast(), (end - first) as usize, libc::MADV_WILLNEED) };
}
