//! Taking a range out.

use super::{
    Tree, Writer,
    change::{Beside, Change, MERGED, SPARSE, Unlinked, note},
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
    fn remove(&mut self, old: Range) -> Option<()> {
        let path = Path::to(self.root, old.start)?;
        let at = path.leaf.at_most(old.start).checked_sub(1)?;
        if path.leaf.range(at) != old {
            return None;
        }
        let mut unlinked = Unlinked::new();
        note(&mut unlinked, path.leaf.into());
        let left = path.leaf.count() - 1;
        let change = if left == 0 {
            Change::Gone
        } else if left < SPARSE
            && let Some(beside) = Beside::of(&path, path.steps.len())
            && let Node::Leaf(other) = beside.link.node()
            && left + other.count() <= MERGED
        {
            note(&mut unlinked, beside.link);
            Change::Merged(beside.first, self.merge(path.leaf, at, other, beside.after).into())
        } else {
            let leaf = self.leaf();
            leaf.copy_without(path.leaf, at);
            Change::One(leaf.into())
        };
        self.settle(&path, change, unlinked);
        Some(())
    }

    /// One leaf of all that is in two, less what is at `at` of the first named.
    fn merge(&mut self, leaf: &Leaf, at: usize, other: &Leaf, other_after: bool) -> &'t Leaf {
        let stay = (0..leaf.count()).filter(|i| *i != at).map(|i| leaf.range(i));
        let others = (0..other.count()).map(|i| other.range(i));
        let all: Vec<Range, KEYS> =
            if other_after { stay.chain(others).collect() } else { others.chain(stay).collect() };
        let merged = self.leaf();
        merged.write(&all);
        merged
    }
}
