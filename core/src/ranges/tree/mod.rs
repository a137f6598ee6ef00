//! The growing form: a B+tree that readers walk while a writer changes it, without a lock and without waiting.
//!
//! Writers take the lock. They never change a leaf, nor the bounds of an inner node, that a reader may come to: they
//! fill new nodes and make them part of the tree with one store, of the root or of a child's word. So each store turns
//! one right tree into the next, and what a node held when it left the tree it holds until it is used again.
//!
//! **Every range lies within the bounds of its leaf**, its end included: entering a range that passes the bound after its leaf
//! first moves that bound up, which is possible as the ranges there begin after it. So one leaf answers `find`, and whatever
//! a new range meets is in one leaf or first in the next.
//!
//! # Why a lookup is right
//! A node goes out of the tree by a store, the *unlinking* (for a node whose parent goes with it, the store that unlinks the
//! parent). Then its operation retires it: the retirement gets the number `n`, counted in `Clock::retired`, which
//! becomes `n + 1` by a release store. Before a node of number `n` is filled again, `Clock::reused` becomes at least
//! `n + 1`, and a release fence follows. A lookup reads `from = retired` (acquire), walks, makes an acquire fence, and is
//! accepted if `reused <= from`.
//!
//! 1. *A lookup meets only nodes that retire as `from` or later, if ever.* Say that it met `x`, retired as `n < from`. Then the unlinking
//!    of `x` happens before the walk. Take the first node `y` on the way to `x` that was unlinked by then. The lookup read a
//!    word of a node still in the tree, or the root, and found `y`; but the last store into that word which happens before the
//!    read is of something else, and coherence forbids reading older values. (If the word was read in a later use of its
//!    node, see 2.)
//! 2. *An accepted lookup reads each node as it was in the use in which it met it.* The acquire load of the word that leads to a node sees
//!    all that was filled in before the release store of the word, so no older use shows. If it read a value of a later use,
//!    it read what was stored after the fence that follows `reused >= n + 1`, where `n >= from` by 1; its own fence makes it
//!    see that `reused`, and it is rejected.
//! 3. *So the answer was right at a moment within the lookup.* Along the way each node was in the tree when its word was read or,
//!    if its parent had left by then, when the parent left, and that was after the lookup read the word of the parent.
//!    The leaf is immutable and holds all that the tree of that moment knows about the address. What an operation
//!    has done before the lookup began is seen, again by coherence.
//!
//! Numbers have 64 bits and do not wrap. `reused` is stored and read with release and acquire too, so that after a
//! rejection the next `from` is at least the number that was in the way.
//!
//! # Progress
//! A lookup takes no lock, writes nothing and waits for nobody, also if a writer is stopped in the middle of its work. It starts
//! anew only if nodes that retired since it began are in use again, which takes several completed
//! operations (see `arena`) within this one lookup: lookups are lock-free. A walk ends after [`HEIGHT`] steps whatever it
//! reads.
//!
//! # Safety
//! The only unsafe code here takes nodes from the arenas, for as long as the tree is borrowed.
#![allow(unsafe_code)]

mod arena;
#[cfg(not(loom))]
mod bases;
mod change;
mod fetch;
mod find;
#[cfg(not(loom))]
mod indexed;
mod insert;
mod node;
mod reader;
mod remove;

use super::sync::{Acquire, AtomicU64, Relaxed, Release, constructor, fence};
use crate::env::{Lock, Mutex};
use arena::Arena;
#[cfg(not(loom))]
pub use indexed::Indexed;
use node::{Inner, Leaf, Link, Node, Word};
pub use reader::Reader;

/// Nodes from the root to a leaf, at most. A tree as high has more leaves than memory could hold: nodes of less than a
/// quarter are merged with their neighbours.
const HEIGHT: usize = 24;

/// Any number of ranges, keyed by their first address. Readers take no lock.
pub struct Tree<L> {
    root: Word,
    clock: Clock,
    writing: Mutex<L, Arenas>,
}

impl<L: Lock> Tree<L> {
    constructor! {
        /// The empty set.
        pub fn new() -> Self {
            let arenas = Arenas { leaves: Arena::new(Leaf::new), inners: Arena::new(Inner::new) };
            Tree { root: Word::new(), clock: Clock::new(), writing: Mutex::new(arenas) }
        }
    }

    /// Bytes of memory that the set has taken, which it keeps until it goes.
    pub fn bytes(&self) -> usize {
        self.writing.with(|arenas| arenas.leaves.bytes() + arenas.inners.bytes())
    }

    /// Runs `f` as the only writer.
    fn write<'t, R>(&'t self, f: impl FnOnce(&mut Writer<'t, '_>) -> R) -> R {
        self.writing.with(|arenas| {
            f(&mut Writer { root: &self.root, clock: &self.clock, arenas, unlinked: Unlinked::new() })
        })
    }
}

#[cfg(not(loom))]
impl<L: Lock> Default for Tree<L> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(loom))]
impl<L: Lock> super::Ranges for Tree<L> {
    const NEW: Self = Tree::new();
    fn insert(&self, range: super::Range) -> Result<(), super::Meet> {
        self.insert(range)
    }
    fn remove(&self, range: super::Range) -> bool {
        self.remove(range)
    }
    fn find(&self, address: u64) -> Option<super::Range> {
        self.find(address)
    }
    fn next(&self, from: u64) -> Option<super::Range> {
        self.next(from)
    }
}

struct Arenas {
    leaves: Arena<Leaf>,
    inners: Arena<Inner>,
}

/// Which nodes have left the tree, and which of these are in use again. Only the writer stores.
struct Clock {
    retired: AtomicU64,
    reused: AtomicU64,
    /// Twice the ranges that were taken out, odd while one is on its way.
    removals: AtomicU64,
}

impl Clock {
    constructor! {
        fn new() -> Self {
            Clock { retired: AtomicU64::new(0), reused: AtomicU64::new(0), removals: AtomicU64::new(0) }
        }
    }
    /// Begins a lookup.
    #[inline(always)]
    fn begin(&self) -> u64 {
        self.retired.load(Acquire)
    }
    /// Whether what was read since `from` began may be trusted.
    #[inline(always)]
    fn holds(&self, from: u64) -> bool {
        fence(Acquire);
        self.reused.load(Acquire) <= from
    }
    /// How many nodes have retired since `from` began.
    #[cfg(not(loom))]
    #[inline(always)]
    fn retired_since(&self, from: u64) -> u64 {
        self.begin() - from
    }
    #[inline(always)]
    fn removals(&self) -> u64 {
        self.removals.load(Acquire)
    }
    /// A removal is about to unlink, or has.
    fn removal(&self) {
        self.removals.store(self.removals.load(Relaxed) + 1, Release);
    }
    /// The number of the next retirement; for the writer.
    fn retired(&self) -> u64 {
        self.retired.load(Relaxed)
    }
    /// `count` nodes have been unlinked.
    fn retire(&self, count: u64) {
        self.retired.store(self.retired() + count, Release);
    }
    /// The node that retired as `number` is about to be filled.
    fn reuse(&self, number: u64) {
        if self.reused.load(Relaxed) <= number {
            self.reused.store(number + 1, Release);
        }
        fence(Release);
    }
}

/// What a store unlinks: at each height a node and its neighbour, and roots that were not needed.
type Unlinked<'t> = heapless::Vec<Link<'t>, { 3 * HEIGHT }>;

/// The one writer, for the length of an operation.
struct Writer<'t, 'w> {
    root: &'t Word,
    clock: &'t Clock,
    arenas: &'w mut Arenas,
    unlinked: Unlinked<'t>,
}

impl<'t> Writer<'t, '_> {
    fn leaf(&mut self) -> &'t Leaf {
        // SAFETY: the arena goes with the tree, which is borrowed for `'t`.
        unsafe { self.arenas.leaves.take(self.clock) }
    }
    fn inner(&mut self) -> &'t Inner {
        // SAFETY: as in `leaf`.
        unsafe { self.arenas.inners.take(self.clock) }
    }
    /// A new leaf of these ranges.
    fn leaf_of(&mut self, ranges: &[super::Range]) -> &'t Leaf {
        let leaf = self.leaf();
        leaf.write(ranges);
        leaf
    }
    /// The next store will unlink this.
    fn note(&mut self, link: Link<'t>) {
        let noted = self.unlinked.push(link);
        debug_assert!(noted.is_ok(), "no operation unlinks as many");
    }
    /// Lets what was unlinked rest.
    fn retire(&mut self) {
        for (node, number) in self.unlinked.iter().zip(self.clock.retired()..) {
            match node.node() {
                Node::Leaf(leaf) => self.arenas.leaves.retire(leaf, number),
                Node::Inner(inner) => self.arenas.inners.retire(inner, number),
            }
        }
        self.clock.retire(self.unlinked.len() as u64);
        self.unlinked.clear();
    }
}
