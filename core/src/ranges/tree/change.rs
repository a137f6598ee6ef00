//! How a change goes up from a leaf: as far as nodes split, merge or vanish, then one store that makes all of it part
//! of the tree, then the retirement of what it replaced.
//!
//! # Safety
//! All links that are stored here are of nodes of this tree's arenas: they come from its own words or from [`Writer`].
#![allow(unsafe_code)]

use super::{
    Writer,
    find::Path,
    node::{CHILDREN, Child, Inner, Leaf, Link, Node},
};
use crate::ranges::sync::{Relaxed, Release};
use heapless::Vec;

/// A node of fewer entries is merged with a neighbour, if there is room for as many again.
pub(super) const SPARSE: usize = CHILDREN / 4 + 1;
/// The most that a merged node holds.
pub(super) const MERGED: usize = CHILDREN - SPARSE;

/// What comes in the place of one node, or of two.
#[derive(Clone, Copy)]
pub(super) enum Change<'t> {
    /// Nothing: it is empty.
    Gone,
    /// One.
    One(Link<'t>),
    /// Two, the second with the bound between them.
    Two(Link<'t>, Child<'t>),
    /// One, for the node at this place of its parent and the next.
    Merged(usize, Link<'t>),
}

/// The children of one node or of two.
type Children<'t> = Vec<Child<'t>, { CHILDREN + 1 }>;

impl<'t> Writer<'t, '_> {
    /// Puts `new` in the place of `old`, the leaf of `path`: all that most operations do.
    pub(super) fn replace(&mut self, path: &Path<'t>, old: &'t Leaf, new: &'t Leaf) {
        // SAFETY: see the module.
        unsafe { path.word(self.root, path.0.len()).store(Some(new.into()), Release) };
        self.arenas.leaves.retire(old, self.clock.retired());
        self.clock.retire(1);
    }

    /// Puts `change` in the place of the leaf of `path`, with one store; the leaf is noted already if it goes.
    pub(super) fn settle(&mut self, path: &Path<'t>, mut change: Change<'t>) {
        let mut depth = path.0.len();
        while depth > 0 && !matches!(change, Change::One(_)) {
            depth -= 1;
            let (inner, at) = path.0[depth];
            let mut children = inner.children().collect();
            splice(&mut children, at, change);
            self.note(inner.into());
            change = self.rewrite(path, depth, &children);
        }
        let link = match change {
            Change::Gone => None,
            Change::One(link) | Change::Merged(_, link) if depth > 0 => Some(link),
            Change::One(link) | Change::Merged(_, link) => Some(self.collapse(link)),
            Change::Two(left, right) => Some(self.inner_of(&[Child { from: 0, link: left }, right])),
        };
        // SAFETY: see the module.
        unsafe { path.word(self.root, depth).store(link, Release) };
        self.retire();
    }

    /// What comes in the place of the inner node at `depth`, which shall have these children.
    fn rewrite(&mut self, path: &Path<'t>, depth: usize, children: &[Child<'t>]) -> Change<'t> {
        if children.is_empty() {
            return Change::Gone;
        }
        if children.len() > CHILDREN {
            // At the end of a full node, as ascending addresses come: the node stays full.
            let (inner, at) = path.0[depth];
            let cut = if at + 1 == inner.count() { CHILDREN } else { CHILDREN / 2 };
            let right = Child { from: children[cut].from, link: self.inner_of(&children[cut..]) };
            return Change::Two(self.inner_of(&children[..cut]), right);
        }
        if children.len() < SPARSE
            && let Some(beside) = Beside::of(path, depth)
            && let Node::Inner(other) = beside.link.node()
            && children.len() + other.count() <= MERGED
        {
            let (first, second): (Children<'t>, Children<'t>) = match beside.after {
                true => (children.iter().copied().collect(), other.children().collect()),
                false => (other.children().collect(), children.iter().copied().collect()),
            };
            let between = Child { from: beside.bound, ..second[0] };
            let both = first.into_iter().chain([between]).chain(second.iter().skip(1).copied());
            let merged = self.inner_of(&both.collect::<Children<'t>>());
            self.note(beside.link);
            return Change::Merged(beside.first, merged);
        }
        Change::One(self.inner_of(children))
    }

    /// A root of one child is none: the child is.
    fn collapse(&mut self, mut root: Link<'t>) -> Link<'t> {
        while let Node::Inner(inner) = root.node()
            && inner.count() == 1
            && let Some(child) = inner.word(0).load(Relaxed)
        {
            self.note(root);
            root = child;
        }
        root
    }

    /// A new inner node.
    fn inner_of(&mut self, children: &[Child<'_>]) -> Link<'t> {
        let inner = self.inner();
        // SAFETY: see the module.
        unsafe { inner.write(children) };
        inner.into()
    }

    /// Moves the bound after the child that `path` takes at `depth` up to `bound`.
    pub(super) fn raise(&mut self, path: &mut Path<'t>, depth: usize, bound: u64) {
        let (old, at) = path.0[depth];
        let mut children: Children<'t> = old.children().collect();
        children[at + 1].from = bound;
        let new: &'t Inner = self.inner();
        // SAFETY: see the module.
        unsafe { new.write(&children) };
        // SAFETY: see the module.
        unsafe { path.word(self.root, depth).store(Some(new.into()), Release) };
        self.note(old.into());
        self.retire();
        path.0[depth] = (new, at);
    }
}

fn splice<'t>(children: &mut Children<'t>, at: usize, change: Change<'t>) {
    match change {
        Change::Gone => {
            children.remove(at);
        }
        Change::One(link) => children[at].link = link,
        Change::Two(left, right) => {
            children[at].link = left;
            let inserted = children.insert(at + 1, right);
            debug_assert!(inserted.is_ok(), "a node has room for one child too many");
        }
        Change::Merged(first, link) => {
            children[first].link = link;
            children.remove(first + 1);
        }
    }
}

/// A neighbour under the same parent.
pub(super) struct Beside<'t> {
    pub(super) link: Link<'t>,
    /// Whether it comes after the node.
    pub(super) after: bool,
    /// The place of the first of the two.
    pub(super) first: usize,
    /// The bound between the two.
    bound: u64,
}

impl<'t> Beside<'t> {
    /// The neighbour of the node at `depth` of `path`, if its parent has two children.
    pub(super) fn of(path: &Path<'t>, depth: usize) -> Option<Self> {
        let (parent, at) = path.0[depth.checked_sub(1)?];
        let after = at + 1 < parent.count();
        let (first, place) = if after { (at, at + 1) } else { (at.checked_sub(1)?, at.checked_sub(1)?) };
        let link = parent.word(place).load(Relaxed)?;
        Some(Beside { link, after, first, bound: parent.bound_after(first)? })
    }
}
