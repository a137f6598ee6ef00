//! The two kinds of node, and the words that lead to them.
//!
//! A leaf holds ranges, an inner node the words of its children and the bounds between them. All fields are atomics:
//! a lookup that was overtaken may read a node while a writer fills it anew. It then reads nonsense, which the caller
//! rejects, but no torn values and nothing out of bounds.
//!
//! Keys beyond the last one in use are `u64::MAX`, which no range begins at, so searches need no length. The arrays have
//! one element more than a search looks at; that of the keys holds the count.
//!
//! # Safety
//! A [`Word`] holds nothing or a node that lives at least as long as the word itself: the words of a tree, its root
//! and those in its nodes, only ever hold nodes of the tree's own arenas, which free nothing before the tree goes.
//! [`Word::store`] is where that could be broken, so it is `unsafe`. A node of either kind stays of that kind.
#![allow(unsafe_code)]

use crate::ranges::{
    Range,
    sync::{Acquire, AtomicPtr, AtomicU32, AtomicU64, Ordering, Relaxed, constructor},
};
use core::{array, hint::select_unpredictable, marker::PhantomData, ptr::NonNull};

/// Ranges a leaf holds and bounds an inner node holds, at most: one less than a power of two.
pub(super) const KEYS: usize = if cfg!(loom) { 3 } else { 31 };
/// Children an inner node has at most.
pub(super) const CHILDREN: usize = KEYS + 1;
const COUNT: usize = KEYS;

/// Sorted keys and their count.
struct Keys([AtomicU64; KEYS + 1]);

impl Keys {
    fn new() -> Self {
        Keys(array::from_fn(|i| AtomicU64::new(if i == COUNT { 0 } else { u64::MAX })))
    }
    fn count(&self) -> usize {
        self.0[COUNT].load(Relaxed) as usize
    }
    /// Sets the count and empties what was in use beyond it.
    fn set_count(&self, count: usize) {
        for key in &self.0[count..self.count().max(count)] {
            key.store(u64::MAX, Relaxed);
        }
        self.0[COUNT].store(count as u64, Relaxed);
    }
    /// How many keys are at most `key`, which is below `u64::MAX`: a binary search whose every step is a select, since
    /// no branch predictor knows the answers.
    #[inline(always)]
    fn at_most(&self, key: u64) -> usize {
        let (mut below, mut step) = (0, CHILDREN / 2);
        while step > 0 {
            let more = self.0[below + step - 1].load(Relaxed) <= key;
            below = select_unpredictable(more, below + step, below);
            step /= 2;
        }
        below
    }
}

/// Ranges in order.
#[repr(C, align(64))]
pub(super) struct Leaf {
    starts: Keys,
    ends: [AtomicU64; KEYS + 1],
    slots: [AtomicU32; KEYS + 1],
}

impl Leaf {
    pub(super) fn new() -> Self {
        Leaf {
            starts: Keys::new(),
            ends: array::from_fn(|_| AtomicU64::new(0)),
            slots: array::from_fn(|_| AtomicU32::new(0)),
        }
    }
    pub(super) fn count(&self) -> usize {
        self.starts.count()
    }
    #[inline(always)]
    pub(super) fn range(&self, at: usize) -> Range {
        Range {
            start: self.starts.0[at].load(Relaxed),
            end: self.ends[at].load(Relaxed),
            slot: self.slots[at].load(Relaxed),
        }
    }
    /// How many ranges begin at `address`, which is below `u64::MAX`, or before it.
    #[inline(always)]
    pub(super) fn at_most(&self, address: u64) -> usize {
        self.starts.at_most(address)
    }
    /// The last of the first `count` ranges.
    #[inline(always)]
    pub(super) fn range_before(&self, count: usize) -> Option<Range> {
        Some(self.range(count.checked_sub(1)?))
    }
    /// The first range that begins at `from` or after it.
    pub(super) fn next(&self, from: u64) -> Option<Range> {
        let at = from.checked_sub(1).map_or(0, |before| self.starts.at_most(before));
        let range = (at < KEYS).then(|| self.range(at))?;
        (range.start < u64::MAX).then_some(range)
    }

    fn set(&self, at: usize, range: Range) {
        self.starts.0[at].store(range.start, Relaxed);
        self.ends[at].store(range.end, Relaxed);
        self.slots[at].store(range.slot, Relaxed);
    }
    /// Becomes a copy of `old` with `range` put in at `at`.
    pub(super) fn copy_with(&self, old: &Leaf, at: usize, range: Range) {
        let count = old.count();
        self.copy(old, 0..at, 0);
        self.set(at, range);
        self.copy(old, at..count, at + 1);
        self.starts.set_count(count + 1);
    }
    /// Becomes a copy of `old` without its range at `at`.
    pub(super) fn copy_without(&self, old: &Leaf, at: usize) {
        let count = old.count();
        self.copy(old, 0..at, 0);
        self.copy(old, at + 1..count, at);
        self.starts.set_count(count - 1);
    }
    #[inline]
    fn copy(&self, old: &Leaf, from: core::ops::Range<usize>, to: usize) {
        let end = to + from.len();
        copy(&old.starts.0[from.clone()], &self.starts.0[to..end]);
        copy(&old.ends[from.clone()], &self.ends[to..end]);
        for (from, to) in old.slots[from].iter().zip(&self.slots[to..end]) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
    /// Becomes a leaf of these ranges.
    pub(super) fn write(&self, ranges: &[Range]) {
        for (at, range) in ranges.iter().enumerate() {
            self.set(at, *range);
        }
        self.starts.set_count(ranges.len());
    }
}

fn copy(from: &[AtomicU64], to: &[AtomicU64]) {
    for (from, to) in from.iter().zip(to) {
        to.store(from.load(Relaxed), Relaxed);
    }
}

/// A child, and the bound before it; that of the first child is not kept.
#[derive(Clone, Copy)]
pub(super) struct Child<'t> {
    pub(super) from: u64,
    pub(super) link: Link<'t>,
}

/// Children in order. What lies below the first bound is in the first child, what is at the last or above in the last.
#[repr(C, align(64))]
pub(super) struct Inner {
    bounds: Keys,
    children: [Word; CHILDREN],
}

impl Inner {
    pub(super) fn new() -> Self {
        Inner { bounds: Keys::new(), children: array::from_fn(|_| Word::new()) }
    }
    /// How many children there are.
    pub(super) fn count(&self) -> usize {
        self.bounds.count() + 1
    }
    /// Which child an address, below `u64::MAX`, belongs to.
    #[inline(always)]
    pub(super) fn place(&self, address: u64) -> usize {
        self.bounds.at_most(address)
    }
    /// The bound after the child at `at`, unless it is the last.
    pub(super) fn bound_after(&self, at: usize) -> Option<u64> {
        let bound = if at == KEYS { u64::MAX } else { self.bounds.0[at].load(Relaxed) };
        (bound < u64::MAX).then_some(bound)
    }
    #[inline(always)]
    pub(super) fn word(&self, at: usize) -> &Word {
        &self.children[at]
    }
    pub(super) fn children(&self) -> impl Iterator<Item = Child<'_>> {
        (0..self.count()).filter_map(|at| {
            let from = if at == 0 { 0 } else { self.bounds.0[at - 1].load(Relaxed) };
            Some(Child { from, link: self.word(at).load(Relaxed)? })
        })
    }
    /// Becomes a node of these children, one or more.
    ///
    /// # Safety
    /// As for [`Word::store`], for each child.
    pub(super) unsafe fn write(&self, children: &[Child<'_>]) {
        for (at, child) in children.iter().enumerate() {
            if at > 0 {
                self.bounds.0[at - 1].store(child.from, Relaxed);
            }
            // SAFETY: the caller's promise.
            unsafe { self.word(at).store(Some(child.link), Relaxed) };
        }
        self.bounds.set_count(children.len() - 1);
    }
}

/// A node that lives for `'t`.
#[derive(Clone, Copy)]
pub(super) struct Link<'t> {
    /// The address of the node; its lowest bit is set if the node is a leaf.
    tagged: NonNull<Inner>,
    node: PhantomData<&'t Inner>,
}

/// What a link leads to.
#[derive(Clone, Copy)]
pub(super) enum Node<'t> {
    Leaf(&'t Leaf),
    Inner(&'t Inner),
}

const LEAF: usize = 1;

impl<'t> From<&'t Leaf> for Link<'t> {
    fn from(leaf: &'t Leaf) -> Self {
        Link { tagged: NonNull::from(leaf).cast().map_addr(|address| address | LEAF), node: PhantomData }
    }
}

impl<'t> From<&'t Inner> for Link<'t> {
    fn from(inner: &'t Inner) -> Self {
        Link { tagged: NonNull::from(inner), node: PhantomData }
    }
}

impl<'t> Link<'t> {
    #[inline(always)]
    pub(super) fn node(self) -> Node<'t> {
        let tagged = self.tagged.as_ptr();
        if tagged.addr() & LEAF == 0 {
            // SAFETY: not tagged, so made from a `&'t Inner`.
            Node::Inner(unsafe { &*tagged })
        } else {
            // SAFETY: tagged, so made from a `&'t Leaf`, whose address has the bit clear by alignment.
            Node::Leaf(unsafe { &*tagged.map_addr(|address| address & !LEAF).cast() })
        }
    }
    /// The first byte of the node, to be fetched ahead.
    #[inline(always)]
    pub(super) fn bytes(self) -> *const u8 {
        self.tagged.as_ptr().map_addr(|address| address & !LEAF).cast()
    }
}

/// A link or none, read and replaced as one.
pub(super) struct Word(AtomicPtr<Inner>);

impl Word {
    constructor! {
        pub(super) fn new() -> Self {
            Word(AtomicPtr::new(core::ptr::null_mut()))
        }
    }
    #[inline(always)]
    pub(super) fn load(&self, order: Ordering) -> Option<Link<'_>> {
        // What is stored was a link of a node that lives as long as `self` (see `store`), so the lifetime fits.
        Some(Link { tagged: NonNull::new(self.0.load(order))?, node: PhantomData })
    }
    /// The link that is read by those who look from now on.
    #[inline(always)]
    pub(super) fn follow(&self) -> Option<Link<'_>> {
        self.load(Acquire)
    }
    /// Replaces the link.
    ///
    /// # Safety
    /// The node lives at least as long as the word.
    pub(super) unsafe fn store(&self, link: Option<Link<'_>>, order: Ordering) {
        self.0.store(link.map_or(core::ptr::null_mut(), |link| link.tagged.as_ptr()), order);
    }
}
