//! A reader with a memory: the launch loop, which asks for the same few allocations again and again.
//!
//! What it remembers holds as long as nothing has been taken out of the tree since. A removal makes `Clock::removals` odd
//! before it unlinks and even after. A range is remembered with the even number read before it was looked up; while the
//! number is the same, no removal has begun that this reader could know of, so the range is still there.

use super::Tree;
use crate::{env::Lock, ranges::Range};
use core::hint::select_unpredictable;

/// Ranges it remembers.
const REMEMBERED: usize = 8;

/// Looks ranges up in a tree, and remembers the last eight until anything is taken out. One for each thread.
pub struct Reader<'t, L> {
    tree: &'t Tree<L>,
    removals: u64,
    starts: [u64; REMEMBERED],
    lens: [u64; REMEMBERED],
    slots: [u32; REMEMBERED],
    next: usize,
}

impl<'t, L: Lock> Reader<'t, L> {
    /// Remembers nothing yet.
    pub fn new(tree: &'t Tree<L>) -> Self {
        let (starts, lens, slots) = ([0; REMEMBERED], [0; REMEMBERED], [0; REMEMBERED]);
        Reader { tree, removals: 0, starts, lens, slots, next: 0 }
    }

    /// The range that holds the address, as [`Tree::find`].
    #[inline]
    pub fn find(&mut self, address: u64) -> Option<Range> {
        let removals = self.tree.clock.removals();
        if removals == self.removals {
            // Ranges are disjoint, so at most one holds the address; which one no branch predictor knows.
            let mut at = REMEMBERED;
            for place in 0..REMEMBERED {
                let holds = address.wrapping_sub(self.starts[place]) < self.lens[place];
                at = select_unpredictable(holds, place, at);
            }
            if at < REMEMBERED {
                let start = self.starts[at];
                return Some(Range { start, end: start + self.lens[at], slot: self.slots[at] });
            }
        }
        self.learn(address, removals)
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, address: u64, removals: u64) -> Option<Range> {
        let found = self.tree.find(address)?;
        if removals.is_multiple_of(2) {
            if removals != self.removals {
                self.lens = [0; REMEMBERED];
                self.removals = removals;
            }
            self.starts[self.next] = found.start;
            self.lens[self.next] = found.end - found.start;
            self.slots[self.next] = found.slot;
            self.next = (self.next + 1) % REMEMBERED;
        }
        Some(found)
    }
}
