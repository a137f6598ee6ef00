//! Lookups: what readers do.

use super::{
    HEIGHT, Tree, fetch,
    node::{Inner, Leaf, Link, Node, Word},
};
use crate::{env::Lock, ranges::Range};

impl<L: Lock> Tree<L> {
    /// The range that holds the address, base and interior alike.
    #[inline]
    pub fn find(&self, address: u64) -> Option<Range> {
        if address == u64::MAX {
            return None; // No range ends after it.
        }
        loop {
            let from = self.clock.begin();
            let range = last_before(&self.root, address);
            if self.clock.holds(from) {
                return range.filter(|range| address < range.end);
            }
        }
    }

    /// The first range that begins at `from` or after it: listing in order. A range that is there all the time is not
    /// missed, whatever happens to others.
    pub fn next(&self, mut from: u64) -> Option<Range> {
        while from < u64::MAX {
            let begun = self.clock.begin();
            let (range, bound) = next_within(&self.root, from);
            if !self.clock.holds(begun) {
                continue;
            }
            if range.is_some() {
                return range;
            }
            from = bound?; // Where the next leaf begins, and with it a range, unless that has been taken out meanwhile.
        }
        None
    }
}

/// The last range that begins at `address` or before it, within the leaf of the address.
#[inline(always)]
fn last_before(root: &Word, address: u64) -> Option<Range> {
    let mut link = root.follow()?;
    for _ in 0..HEIGHT {
        match link.node() {
            Node::Leaf(leaf) => return leaf.range_before(leaf.at_most(address)),
            Node::Inner(inner) => {
                link = inner.word(inner.place(address)).follow()?;
                fetch::keys(link);
            }
        }
    }
    None
}

/// The first range at `from` or after it within the leaf of that address, and the bound after the leaf.
pub(super) fn next_within(root: &Word, from: u64) -> (Option<Range>, Option<u64>) {
    let mut bound = None;
    let mut word = root;
    for _ in 0..HEIGHT {
        match word.follow().map(Link::node) {
            None => break,
            Some(Node::Leaf(leaf)) => return (leaf.next(from), bound),
            Some(Node::Inner(inner)) => {
                let at = inner.place(from);
                bound = inner.bound_after(at).or(bound);
                word = inner.word(at);
            }
        }
    }
    (None, bound)
}

/// The way from the root to a leaf: inner nodes, and at which child the way goes on.
pub(super) struct Path<'t>(pub(super) heapless::Vec<(&'t Inner, usize), HEIGHT>);

impl<'t> Path<'t> {
    pub(super) const fn new() -> Self {
        Path(heapless::Vec::new())
    }
    /// Goes to the leaf of an address, below `u64::MAX`; for the writer, so that the tree stands still. `None`: the set is
    /// empty.
    pub(super) fn go(&mut self, root: &'t Word, address: u64) -> Option<&'t Leaf> {
        let mut link = root.follow()?;
        loop {
            match link.node() {
                Node::Leaf(leaf) => return Some(leaf),
                Node::Inner(inner) => {
                    let at = inner.place(address);
                    self.0.push((inner, at)).ok()?;
                    link = inner.word(at).follow()?;
                    fetch::all(link);
                }
            }
        }
    }
    /// The bound after the leaf, and the step at which it is kept.
    pub(super) fn bound(&self) -> Option<(usize, u64)> {
        let steps = self.0.iter().enumerate().rev();
        steps.filter_map(|(depth, (inner, at))| Some((depth, inner.bound_after(*at)?))).next()
    }
    /// The word that leads to the node at `depth`.
    pub(super) fn word(&self, root: &'t Word, depth: usize) -> &'t Word {
        match depth.checked_sub(1) {
            None => root,
            Some(above) => {
                let (inner, at) = self.0[above];
                inner.word(at)
            }
        }
    }
}
