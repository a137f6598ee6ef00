//! The fixed form: a sorted array under a lock, for targets with no heap and at most a few hundred allocations.

use super::{Meet, Range, Ranges};
use crate::env::{Lock, Mutex};

struct Sorting<const N: usize> {
    count: usize,
    all: [Range; N],
}

impl<const N: usize> Sorting<N> {
    fn live(&self) -> &[Range] {
        &self.all[..self.count]
    }
    /// Index of the first range that ends after `address`.
    fn first_ending_after(&self, address: u64) -> usize {
        self.live().partition_point(|r| r.end <= address)
    }
}

/// At most `N` ranges in an array.
pub struct Sorted<L, const N: usize>(Mutex<L, Sorting<N>>);

impl<L: Lock, const N: usize> Ranges for Sorted<L, N> {
    const NEW: Self = Sorted(Mutex::new(Sorting { count: 0, all: [Range { start: 0, end: 0, slot: 0 }; N] }));

    fn insert(&self, range: Range) -> Result<(), Meet> {
        self.0.with(|s| {
            let at = s.first_ending_after(range.start);
            if let Some(held) = s.live().get(at).filter(|held| held.meets(&range)) {
                return Err(Meet::Range(*held));
            }
            if s.count == N {
                return Err(Meet::Full);
            }
            s.all.copy_within(at..s.count, at + 1);
            s.all[at] = range;
            s.count += 1;
            Ok(())
        })
    }

    fn remove(&self, range: Range) -> bool {
        self.0.with(|s| {
            let at = s.live().partition_point(|r| r.start < range.start);
            if s.live().get(at) != Some(&range) {
                return false;
            }
            s.all.copy_within(at + 1..s.count, at);
            s.count -= 1;
            true
        })
    }

    fn find(&self, address: u64) -> Option<Range> {
        self.0.with(|s| s.live().get(s.first_ending_after(address)).filter(|r| r.start <= address).copied())
    }

    fn next(&self, from: u64) -> Option<Range> {
        self.0.with(|s| s.live().get(s.live().partition_point(|r| r.start < from)).copied())
    }
}
