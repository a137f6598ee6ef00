//! Buffers: values that keep their root allocation alive. The last one to go frees it.

use crate::{
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    record::Record,
    runtime::{Runtime, Span},
};
use core::fmt;

/// A length that stands for "the rest of the buffer", only where a call says so.
pub const WHOLE: u64 = u64::MAX;

/// Where the root allocations of buffers live.
pub trait Home: Clone {
    /// One reference more to a root that is alive.
    fn retain(&self, root: Handle<Record>) -> Result<(), Fault>;
    /// One less.
    fn release(&self, root: Handle<Record>);
}

impl<D: crate::device::Device, E: crate::env::Env> Home for &'static Runtime<D, E> {
    fn retain(&self, root: Handle<Record>) -> Result<(), Fault> {
        Runtime::retain(self, root)
    }
    fn release(&self, root: Handle<Record>) {
        // A refusal leaves the memory live and is counted; a drop has nobody to tell.
        let _ = Runtime::release(self, root);
    }
}

/// How two buffers lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Overlap {
    /// They share no byte.
    Disjoint = 0,
    /// They share some.
    Partial = 1,
    /// They are the same bytes.
    Complete = 2,
}

/// `len` bytes of a root allocation that it keeps alive.
pub struct Buffer<H: Home> {
    home: H,
    root: Handle<Record>,
    offset: u64,
    len: u64,
}

impl<H: Home> Buffer<H> {
    /// A buffer over a whole root, whose one reference it takes over.
    pub fn adopt(home: H, root: Handle<Record>, len: u64) -> Self {
        Buffer { home, root, offset: 0, len }
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The root's record.
    pub fn root(&self) -> Handle<Record> {
        self.root
    }

    /// First byte, from the root's start.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the root lives.
    pub fn home(&self) -> &H {
        &self.home
    }

    /// The buffer as operations take it.
    pub fn span(&self) -> Span {
        Span { root: self.root, offset: self.offset, len: self.len }
    }

    /// Checks `len` bytes at `offset` (or the rest, for [`WHOLE`]) and answers them relative to the root.
    ///
    /// # Errors
    /// `OutOfRange` if the range does not lie inside.
    pub fn range(&self, offset: u64, len: u64) -> Result<Span, Fault> {
        let out = |why, values| Fault::caller(Kind::OutOfRange, Site::Subspan, why, values);
        if offset > self.len {
            return Err(out(Why::PastEnd, [offset, self.len]));
        }
        let len = if len == WHOLE { self.len - offset } else { len };
        let end = offset.checked_add(len).ok_or(out(Why::Overflow, [offset, len]))?;
        if end > self.len {
            return Err(out(Why::PastEnd, [end, self.len]));
        }
        Ok(Span { root: self.root, offset: self.offset + offset, len })
    }

    /// A part of this buffer, relative to the same root, which it keeps alive too.
    ///
    /// # Errors
    /// `OutOfRange`; `InvalidHandle` if the root was freed.
    pub fn subspan(&self, offset: u64, len: u64) -> Result<Self, Fault> {
        let span = self.range(offset, len)?;
        self.home.retain(self.root)?;
        Ok(Buffer { home: self.home.clone(), root: self.root, offset: span.offset, len: span.len })
    }

    /// One more buffer of the same bytes.
    ///
    /// # Errors
    /// `InvalidHandle` if the root was freed.
    pub fn share(&self) -> Result<Self, Fault> {
        self.subspan(0, self.len)
    }

    /// How this buffer lies to another of the same runtime. Without bytes nothing is shared.
    pub fn overlap(&self, other: &Self) -> Overlap {
        let (a, b) = (self.offset, other.offset);
        if self.root != other.root
            || self.len == 0
            || other.len == 0
            || a + self.len <= b
            || b + other.len <= a
        {
            Overlap::Disjoint
        } else if a == b && self.len == other.len {
            Overlap::Complete
        } else {
            Overlap::Partial
        }
    }
}

impl<H: Home> Drop for Buffer<H> {
    fn drop(&mut self) {
        self.home.release(self.root);
    }
}

impl<H: Home> fmt::Debug for Buffer<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:?} at {} + {})", self.root, self.offset, self.len)
    }
}
