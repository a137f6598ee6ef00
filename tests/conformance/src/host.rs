//! Host memory that operations work on. It belongs to the case's context and outlives every operation, also when the
//! check fails half way.
//!
//! # Safety
//! A block lives until its owner is dropped, which the context does only after its queues have drained. Cases look at
//! bytes while no operation writes them.
#![allow(unsafe_code)]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ptr::NonNull,
    sync::{Mutex, PoisonError},
};

/// A page, so that every device's alignment fits.
const ALIGN: usize = 4096;

/// A piece of host memory.
#[derive(Clone, Copy)]
pub struct Host {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: an address and a length; who uses the bytes when is the case's order of operations.
unsafe impl Send for Host {}
// SAFETY: as for `Send`.
unsafe impl Sync for Host {}

impl Host {
    /// Memory at an address that somebody else keeps alive.
    ///
    /// # Safety
    /// `len` bytes there can be read and written until the last use of this.
    pub(crate) unsafe fn at(at: NonNull<u8>, len: usize) -> Host {
        Host { at, len }
    }
    /// First byte.
    pub fn ptr(self) -> *mut u8 {
        self.at.as_ptr()
    }
    /// Its address as devices that reach process memory see it.
    pub fn address(self) -> u64 {
        self.at.as_ptr().expose_provenance() as u64
    }
    /// Bytes.
    pub fn len(self) -> u64 {
        self.len as u64
    }
    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
    /// A copy of all bytes.
    pub fn bytes(self) -> Vec<u8> {
        // SAFETY: `len` bytes that live, and are not written now.
        unsafe { std::slice::from_raw_parts(self.ptr(), self.len) }.to_vec()
    }
    /// Writes from the start on.
    pub fn put(self, bytes: &[u8]) {
        assert!(bytes.len() <= self.len, "more bytes than the host memory has");
        // SAFETY: inside the block, which is not used otherwise now.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr(), bytes.len()) };
    }
    /// The part from `offset` on.
    pub fn part(self, offset: usize, len: usize) -> Host {
        assert!(offset + len <= self.len, "past the end of the host memory");
        // SAFETY: inside the block.
        Host { at: unsafe { self.at.add(offset) }, len }
    }
    /// The bytes as little-endian words.
    pub fn words(self) -> Vec<u32> {
        self.bytes()
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect()
    }
}

/// Blocks of a context.
#[derive(Default)]
pub(crate) struct HostBlocks(Mutex<Vec<Host>>);

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len.max(1), ALIGN).unwrap_or(Layout::new::<u64>())
}

impl HostBlocks {
    pub(crate) fn make(&self, len: usize) -> Host {
        // SAFETY: the layout is not empty.
        let at = unsafe { alloc_zeroed(layout(len)) };
        let host = Host { at: NonNull::new(at).expect("a few bytes are there"), len };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(host);
        host
    }

    /// Gives all blocks back: no operation can use them any more.
    pub(crate) fn end(&self) {
        for host in self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // SAFETY: made by `make` with this layout, taken out once.
            unsafe { dealloc(host.ptr(), layout(host.len)) };
        }
    }
}
