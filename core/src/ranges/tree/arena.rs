//! Nodes of one kind: where they come from, where they rest, when they are used again.
//!
//! Memory grows by segments that never move and are freed with the tree. A node that was taken out of the tree rests in a queue
//! with the number of its retirement. It is used again, oldest first, preferably not before [`REST`] others have retired:
//! a lookup that overlaps with the reuse of a node it may have met is rejected, so resting is what lets lookups
//! succeed, not what makes them right (the proof is in the parent module).
//!
//! # Safety
//! Segments are leaked boxes that this file alone owns; they are freed in `Drop` only. [`Arena::take`] gives out
//! references that say nothing of that and is `unsafe`.
#![allow(unsafe_code)]

use super::Clock;
use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::ptr::NonNull;

/// Retirements between the retirement of a node and its next use, while memory lasts.
const REST: u64 = if cfg!(loom) { 0 } else { 8 };
/// Nodes in the first segment, and in the largest.
const SEGMENT: core::ops::RangeInclusive<usize> = 4..=4096;

/// Nodes of one kind.
pub(super) struct Arena<T: 'static> {
    segments: Vec<NonNull<[T]>>,
    total: usize,
    /// Nodes of the last segment that were never used.
    fresh: &'static [T],
    /// Retired nodes and their numbers, ascending; has room for all nodes.
    resting: VecDeque<(NonNull<T>, u64)>,
    blank: fn() -> T,
}

// SAFETY: the pointers are to nodes that this arena owns, and nothing here belongs to a thread.
unsafe impl<T: Send + Sync> Send for Arena<T> {}

impl<T> Arena<T> {
    /// No nodes; `blank` makes one that was never used.
    pub(super) const fn new(blank: fn() -> T) -> Self {
        Arena { segments: Vec::new(), total: 0, fresh: &[], resting: VecDeque::new(), blank }
    }

    /// Makes sure of `count` further nodes; `false` if memory is short.
    pub(super) fn reserve(&mut self, count: usize) -> bool {
        self.fresh.len() + self.resting.len() >= count || self.grow(count)
    }

    /// An eighth more, so that at most an eighth is idle.
    fn grow(&mut self, at_least: usize) -> bool {
        let len = (self.total / 8).clamp(*SEGMENT.start(), *SEGMENT.end()).max(at_least);
        let mut nodes = Vec::new();
        if self.segments.try_reserve(1).is_err()
            || self.resting.try_reserve_exact(self.total + len - self.resting.len()).is_err()
            || nodes.try_reserve_exact(len).is_err()
        {
            return false;
        }
        for node in self.fresh {
            self.resting.push_front((NonNull::from(node), 0));
        }
        nodes.extend(core::iter::repeat_with(self.blank).take(len));
        let segment = NonNull::from(Box::leak(nodes.into_boxed_slice()));
        self.segments.push(segment);
        self.total += len;
        // SAFETY: leaked just now, only shared from here on, and freed after the last use of `fresh`, in `drop`.
        self.fresh = unsafe { segment.as_ref() };
        true
    }

    /// A node that nobody can reach, except overtaken lookups, which will be rejected.
    ///
    /// # Safety
    /// The reference is not used after the arena is dropped.
    pub(super) unsafe fn take<'t>(&mut self, clock: &Clock) -> &'t T {
        let rested = self.resting.front().is_some_and(|(_, number)| number + REST < clock.retired());
        if !rested && (!self.fresh.is_empty() || self.grow(1)) {
            let (node, rest) = self.fresh.split_first().expect("grown just now");
            self.fresh = rest;
            return node;
        }
        let (node, number) = self.resting.pop_front().expect("an operation reserves what it takes");
        clock.reuse(number);
        // SAFETY: a node of this arena, of which only shared references exist, valid as long as the caller promises.
        unsafe { node.as_ref() }
    }

    /// Lets a node rest that was taken out of the tree as number `number`.
    pub(super) fn retire(&mut self, node: &T, number: u64) {
        self.resting.push_back((NonNull::from(node), number));
    }

    pub(super) fn bytes(&self) -> usize {
        self.total * size_of::<T>()
            + self.resting.capacity() * size_of::<(NonNull<T>, u64)>()
            + self.segments.capacity() * size_of::<NonNull<[T]>>()
    }
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        self.fresh = &[];
        for segment in self.segments.drain(..) {
            // SAFETY: from `Box::leak` in `grow`, freed once; nobody else has a reference any more, as the tree is gone.
            drop(unsafe { Box::from_raw(segment.as_ptr()) });
        }
    }
}
