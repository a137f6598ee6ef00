//! Copies, fills and updates of process memory, large ones shared among workers.
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

/// Bytes of the block in which a pattern is laid out before it is copied on.
const BLOCK: usize = 4096;

/// `pattern` again and again over `len` bytes; the last time as much of it as fits.
pub(crate) fn fill(to: u64, len: u64, pattern: &[u8], pool: &Arc<Pool>) {
    if len == 0 || pattern.is_empty() {
        return;
    }
    // One byte again and again, however long the pattern is: memset knows the machine best.
    if pattern.iter().all(|byte| *byte == pattern[0]) {
        let set = |first: u64, part: u64| {
            // SAFETY: inside the target, live memory (module rule).
            unsafe { ptr::write_bytes(at(to + first), pattern[0], part as usize) }
        };
        return pieces(len, PIECE, pool, &set);
    }
    let mut block = [0; BLOCK];
    let unit = if pattern.len() > BLOCK / 2 {
        pattern
    } else {
        let whole = BLOCK / pattern.len() * pattern.len();
        let used = whole.min(len.div_ceil(pattern.len() as u64) as usize * pattern.len());
        for part in block[..used].chunks_exact_mut(pattern.len()) {
            part.copy_from_slice(pattern);
        }
        &block[..used]
    };
    let piece = PIECE.next_multiple_of(unit.len() as u64);
    pieces(len, piece, pool, &|first, part| lay(to + first, part, unit));
}

/// Calls `f` for offset and length of pieces, which are shared among workers if there are several.
fn pieces(len: u64, piece: u64, pool: &Arc<Pool>, f: &(dyn Fn(u64, u64) + Sync)) {
    if len < 2 * piece || pool.width() == 1 {
        return f(0, len);
    }
    spread::share(pool, 0, len.div_ceil(piece), &|n| f(n * piece, piece.min(len - n * piece)));
}

/// Lays `unit` end to end over `len` bytes.
fn lay(to: u64, len: u64, unit: &[u8]) {
    let mut done = 0;
    while done < len {
        let part = (unit.len() as u64).min(len - done) as usize;
        // SAFETY: inside the target, live memory (module rule); the unit is our own or captured.
        unsafe { ptr::copy_nonoverlapping(unit.as_ptr(), at(to + done), part) };
        done += part as u64;
    }
}

/// A hint that memory will be used.
pub(crate) fn prefetch(address: u64, len: u64) {
    const PAGE: u64 = 4096;
    let first = address & !(PAGE - 1);
    let Some(end) = address.checked_add(len) else { return };
    // SAFETY: `MADV_WILLNEED` changes no contents, and answers an error for what is not mapped.
    unsafe { libc::madvise(at(first).cast(), (end - first) as usize, libc::MADV_WILLNEED) };
}
