//! Taking a range out.

use super::{
    Tree, Writer,
    change::{Beside, Change, MERGED, SPARSE},
    find::Path,
    node::{KEYS, Leaf, Node},
};
use crate::{env::Lock, ranges::Range};
use heapless::Vec;

impl<L: Lock> Tree<L> {
    /// Takes the range out if it is there exactly so, slot included.
    pub fn remove(&self, range: Range) -> bool {
        range.start < range.end && self.write(|writer| writer.remove(range).is_some())
    }
}

impl<'t> Writer<'t, '_> {
    pub(super) fn remove(&mut self, old: Range) -> Option<()> {
        let mut path = Path::new();
        let leaf = path.go(self.root, old.start)?;
        let at = leaf.at_most(old.start).checked_sub(1)?;
        if leaf.range(at) != old {
            return None;
        }
        let left = leaf.count() - 1;
        let change = if left == 0 {
            Change::Gone
        } else if left < SPARSE
            && let Some(beside) = Beside::of(&path, path.0.len())
            && let Node::Leaf(other) = beside.link.node()
            && left + other.count() <= MERGED
        {
            self.note(beside.link);
            Change::Merged(beside.first, self.merge(leaf, at, other, beside.after).into())
        } else {
            let new = self.leaf();
            new.copy_without(leaf, at);
            self.clock.removal();
            self.replace(&path, leaf, new);
            self.clock.removal();
            return Some(());
        };
        self.note(leaf.into());
        self.clock.removal();
        self.settle(&path, change);
        self.clock.removal();
        Some(())
    }

    /// One leaf of all that is in two, less what is at `at` of the first named.
    fn merge(&mut self, leaf: &Leaf, at: usize, other: &Leaf, other_after: bool) -> &'t Leaf {
        let stay = (0..leaf.count()).filter(|i| *i != at).map(|i| leaf.range(i));
        let others = (0..other.count()).map(|i| other.range(i));
        let all: Vec<Range, KEYS> =
            if other_after { stay.chain(others).collect() } else { others.chain(stay).collect() };
        self.leaf_of(&all)
    }
}
