//! Entering a range.
//!
//! # Safety
//! The root gets a leaf of this tree's arena.
#![allow(unsafe_code)]

use super::{
    HEIGHT, Tree, Writer,
    change::Change,
    find::{Path, next_within},
    node::{CHILDREN, Child, KEYS, Leaf},
};
use crate::{
    env::Lock,
    ranges::{Meet, Range, sync::Release},
};
use heapless::Vec;

impl<L: Lock> Tree<L> {
    /// Enters a range that meets no other.
    ///
    /// # Errors
    /// The first range in order that it meets, or that memory is short.
    ///
    /// # Panics
    /// If the range is empty, which [`Range::of`] does not make.
    pub fn insert(&self, range: Range) -> Result<(), Meet> {
        assert!(range.start < range.end, "a range that is empty");
        self.write(|writer| writer.insert(range))
    }
}

impl<'t> Writer<'t, '_> {
    pub(super) fn insert(&mut self, new: Range) -> Result<(), Meet> {
        let mut path = Path::new();
        let Some(old) = path.go(self.root, new.start) else {
            return self.first(new);
        };
        let at = old.at_most(new.start);
        if let Some(before) = old.range_before(at)
            && before.end > new.start
        {
            return Err(Meet::Range(before));
        }
        let raise = self.passes(&path, old, at, &new)?;
        self.reserve(&path, old)?;
        if let Some(depth) = raise {
            self.raise(&mut path, depth, new.end);
        }
        if old.count() < KEYS {
            let leaf = self.leaf();
            leaf.copy_with(old, at, new);
            self.replace(&path, old, leaf);
        } else {
            let change = self.split(old, at, new);
            self.settle(&path, change);
        }
        Ok(())
    }

    fn first(&mut self, new: Range) -> Result<(), Meet> {
        if !self.arenas.leaves.reserve(2) {
            return Err(Meet::Full);
        }
        let leaf = self.leaf_of(&[new]);
        // SAFETY: see the module.
        unsafe { self.root.store(Some(leaf.into()), Release) };
        Ok(())
    }

    /// Whether `new`, to be put in at `at`, passes the bound after its leaf, and then the depth at which that is kept.
    fn passes(&self, path: &Path<'t>, leaf: &Leaf, at: usize, new: &Range) -> Result<Option<usize>, Meet> {
        let (after, depth) = if at < leaf.count() {
            (Some(leaf.range(at)), None)
        } else {
            match path.bound() {
                Some((depth, bound)) if bound < new.end => (next_within(self.root, bound).0, Some(depth)),
                _ => (None, None),
            }
        };
        match after {
            Some(after) if after.start < new.end => Err(Meet::Range(after)),
            _ => Ok(depth),
        }
    }

    /// Makes sure of the nodes that this operation may take, and leaves as many as a `remove` may take: what that takes
    /// it also retires, so a `remove` never lacks memory.
    fn reserve(&mut self, path: &Path<'t>, leaf: &Leaf) -> Result<(), Meet> {
        let height = path.0.len();
        let leaves = self.arenas.leaves.reserve(3);
        let inners = leaf.count() < KEYS || self.arenas.inners.reserve(3 * height + 4);
        if leaves && inners && height + 2 < HEIGHT { Ok(()) } else { Err(Meet::Full) }
    }

    /// A full leaf and `new` at `at` of it, as two leaves. At either end the leaf stays as it is, so that ascending and
    /// descending addresses leave full leaves behind.
    fn split(&mut self, old: &'t Leaf, at: usize, new: Range) -> Change<'t> {
        match at {
            0 => {
                let from = old.range(0).start;
                Change::Two(self.leaf_of(&[new]).into(), Child { from, link: old.into() })
            }
            KEYS => Change::Two(old.into(), Child { from: new.start, link: self.leaf_of(&[new]).into() }),
            _ => {
                let ranges =
                    (0..at).map(|i| old.range(i)).chain([new]).chain((at..KEYS).map(|i| old.range(i)));
                let ranges: Vec<Range, CHILDREN> = ranges.collect();
                let (left, right) = ranges.split_at(CHILDREN / 2);
                self.note(old.into());
                let second = Child { from: right[0].start, link: self.leaf_of(right).into() };
                Change::Two(self.leaf_of(left).into(), second)
            }
        }
    }
}
