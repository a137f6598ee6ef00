//! Fetching a node ahead, so that its cache lines come together and not one by one as the search gets to them.
//!
//! # Safety
//! A prefetch has no effect on the meaning of a program, whatever its address.
#![allow(unsafe_code)]

use super::node::Link;

/// Lines that hold the keys of a node, and all that it holds.
const LINES_KEYS: usize = 4;
const LINES_LEAF: usize = 10;
const LINE_BYTES: usize = 64;

/// Asks for the keys of a node, for a reader.
#[inline(always)]
pub(super) fn keys(link: Link<'_>) {
    lines(link, LINES_KEYS);
}

/// Asks for all of a node, for a writer that will copy it.
#[inline(always)]
pub(super) fn all(link: Link<'_>) {
    lines(link, LINES_LEAF);
}

#[inline(always)]
fn lines(link: Link<'_>, count: usize) {
    let first = link.bytes();
    for line in 0..count {
        ask(first.wrapping_add(line * LINE_BYTES));
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse", not(loom)))]
#[inline(always)]
fn ask(byte: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: see the module.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(byte.cast()) };
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse", not(loom))))]
#[inline(always)]
fn ask(_: *const u8) {}
