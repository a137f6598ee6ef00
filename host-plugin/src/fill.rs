//! Fills of process memory with a pattern of any length. What is larger than the caches goes past them where the
//! machine can do that: a line that is overwritten whole need not be read first.
//!
//! # Safety
//! Addresses are what core resolved and checked: the target lies in live memory until the operation has ended.
#![allow(unsafe_code)]

use crate::{
    limits::{PIECE, STREAM},
    pool::Pool,
    spread,
};
use std::{ptr, sync::Arc};

fn at(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Bytes of the block in which a pattern is laid out before it is copied on.
const BLOCK: usize = 4096;
/// What one store past the caches writes.
const LANE: usize = 16;

/// `pattern` again and again over `len` bytes; the last time as much of it as fits.
pub(crate) fn fill(to: u64, len: u64, pattern: &[u8], pool: &Arc<Pool>) {
    if len == 0 || pattern.is_empty() {
        return;
    }
    // One byte again and again, however long the pattern is.
    let uniform = pattern.iter().all(|byte| *byte == pattern[0]);
    let pattern = if uniform { &pattern[..1] } else { pattern };
    if len < STREAM && uniform {
        let set = |first: u64, part: u64| {
            // SAFETY: inside the target, live memory (module rule).
            unsafe { ptr::write_bytes(at(to + first), pattern[0], part as usize) }
        };
        return pieces(len, PIECE, pool, &set);
    }
    // The pattern as often as it fits, and once more in part, so that the block may be read from any phase on.
    let mut block = [0; BLOCK];
    let period = BLOCK / 2 / pattern.len() * pattern.len();
    if period == 0 {
        let piece = PIECE.next_multiple_of(pattern.len() as u64);
        return pieces(len, piece, pool, &|first, part| lay(to + first, part, pattern));
    }
    for (place, byte) in block.iter_mut().zip(pattern.iter().cycle()) {
        *place = *byte;
    }
    let piece = PIECE.next_multiple_of(period as u64);
    let turns = LANE / gcd(LANE, pattern.len());
    let streams = len >= STREAM && pattern.len() * turns <= BLOCK / 2;
    pieces(len, piece, pool, &|first, part| {
        if streams {
            stream(to + first, part, &block, pattern.len() * turns);
        } else {
            lay(to + first, part, &block[..period]);
        }
    });
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
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

/// As [`lay`] past the caches. `block` repeats every `period` bytes, a multiple of [`LANE`] and at most half of it.
#[cfg(target_arch = "x86_64")]
fn stream(to: u64, len: u64, block: &[u8; BLOCK], period: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    let head = (to.wrapping_neg() % LANE as u64).min(len);
    lay(to, head, &block[..LANE]);
    let whole = (len - head) / LANE as u64 * LANE as u64;
    let (mut phase, mut done) = (head as usize % period, head);
    // As many whole periods as fit behind any phase.
    let turn = BLOCK / 2 / period * period;
    phase %= turn;
    while done < head + whole {
        let part = ((head + whole - done) as usize).min(turn);
        for lane in (0..part).step_by(LANE) {
            // SAFETY: `phase + lane + LANE` is at most twice half a block.
            let from = unsafe { block.as_ptr().add(phase + lane) }.cast::<__m128i>();
            // SAFETY: inside the block; SSE2 is part of x86-64.
            let bytes = unsafe { _mm_loadu_si128(from) };
            // SAFETY: aligned since `head`, inside the target, live memory (module rule).
            unsafe { _mm_stream_si128(at(to + done + lane as u64).cast(), bytes) };
        }
        done += part as u64;
    }
    // Stores past the caches are ordered with nothing until here.
    // SAFETY: SSE is part of x86-64.
    unsafe { _mm_sfence() };
    let left = (len - done) as usize;
    let phase = done as usize % period;
    lay(to + done, left as u64, &block[phase..phase + left.max(1)]);
}

#[cfg(not(target_arch = "x86_64"))]
fn stream(to: u64, len: u64, block: &[u8; BLOCK], period: usize) {
    lay(to, len, &block[..period]);
}
