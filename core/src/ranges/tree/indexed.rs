//! A tree with an index of bases, for those who ask mostly for what they allocated and have the memory.
//!
//! The tree decides; the index only answers sooner. A range is entered in the tree first and leaves it last, so what the
//! index holds is in the tree; what the index does not hold, or holds while a writer changes it, the tree is asked for. So
//! nobody waits here either, and the index may leave out what does not fit.

use super::{Reader, Tree, bases::Bases};
use crate::{
    env::Lock,
    ranges::{Meet, Range, Ranges},
};

/// Any number of ranges, and an index of where they begin. Readers take no lock.
pub struct Indexed<L> {
    tree: Tree<L>,
    bases: Bases,
}

impl<L: Lock> Indexed<L> {
    /// The range that begins at the address.
    #[inline]
    pub fn find_base(&self, address: u64) -> Option<Range> {
        let from = self.tree.clock.begin();
        match self.bases.look(address) {
            Some(range) if self.tree.clock.retired_since(from) < Bases::VALID_FOR => Some(range),
            _ => self.tree.find(address).filter(|range| range.start == address),
        }
    }
    /// A reader of the tree.
    pub fn reader(&self) -> Reader<'_, L> {
        Reader::new(&self.tree)
    }
    /// Bytes of memory that the set has taken, which it keeps until it goes.
    pub fn bytes(&self) -> usize {
        self.tree.bytes() + self.bases.bytes()
    }
}

impl<L: Lock> Ranges for Indexed<L> {
    const NEW: Self = Indexed { tree: Tree::new(), bases: Bases::new() };
    fn insert(&self, range: Range) -> Result<(), Meet> {
        assert!(range.start < range.end, "a range that is empty");
        self.tree.write(|writer| {
            writer.insert(range)?;
            self.bases.enter(range);
            Ok(())
        })
    }
    fn remove(&self, range: Range) -> bool {
        range.start < range.end
            && self.tree.write(|writer| {
                self.bases.leave(range);
                writer.remove(range).is_some()
            })
    }
    fn find(&self, address: u64) -> Option<Range> {
        self.tree.find(address)
    }
    fn next(&self, from: u64) -> Option<Range> {
        self.tree.next(from)
    }
}
