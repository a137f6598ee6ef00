//! The growing form for targets without atomics of 64 bits: an ordered tree under a lock.

use super::{Meet, Range, Ranges};
use crate::env::{Lock, Mutex};
use alloc::collections::BTreeMap;

/// Any number of ranges, keyed by their first address.
pub struct Locked<L>(Mutex<L, BTreeMap<u64, (u64, u32)>>);

fn range((&start, &(end, slot)): (&u64, &(u64, u32))) -> Range {
    Range { start, end, slot }
}

impl<L: Lock> Ranges for Locked<L> {
    const NEW: Self = Locked(Mutex::new(BTreeMap::new()));

    fn insert(&self, new: Range) -> Result<(), Meet> {
        self.0.with(|map| {
            // Disjoint ranges end in the order in which they begin, so only the last that begins before the new end,
            // and those before it that end after the new start, can meet it: the first of these is reported.
            let met = map.range(..new.end).rev().map(range).take_while(|r| r.end > new.start).last();
            match met {
                Some(held) => Err(Meet::Range(held)),
                None => {
                    map.insert(new.start, (new.end, new.slot));
                    Ok(())
                }
            }
        })
    }

    fn remove(&self, old: Range) -> bool {
        self.0.with(|map| {
            let there = map.get(&old.start) == Some(&(old.end, old.slot));
            if there {
                map.remove(&old.start);
            }
            there
        })
    }

    fn find(&self, address: u64) -> Option<Range> {
        self.0.with(|map| map.range(..=address).next_back().map(range).filter(|r| address < r.end))
    }

    fn next(&self, from: u64) -> Option<Range> {
        self.0.with(|map| map.range(from..).next().map(range))
    }
}
