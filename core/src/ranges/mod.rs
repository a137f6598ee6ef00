//! Which allocation holds this address: one ordered set of disjoint ranges for each address space.
//!
//! One contract and one model test for all forms: [`Sorted`], an array of fixed capacity, and (feature `alloc`) `Tree`,
//! which grows and whose readers take no lock; on targets without atomics of 64 bits, `Tree` is `Locked`. The set holds where a range begins and ends and the slot of its record; the record has the last word,
//! so an answer that has just gone stale does no harm.

#[cfg(feature = "alloc")]
mod locked;
mod sorted;
#[cfg(all(feature = "alloc", target_has_atomic = "64"))]
mod sync;
#[cfg(all(feature = "alloc", target_has_atomic = "64"))]
mod tree;

#[cfg(feature = "alloc")]
pub use locked::Locked;
#[cfg(all(feature = "alloc", not(target_has_atomic = "64")))]
pub use locked::Locked as Tree;
pub use sorted::Sorted;
#[cfg(all(feature = "alloc", target_has_atomic = "64", not(loom)))]
pub use tree::Indexed;
#[cfg(all(feature = "alloc", target_has_atomic = "64"))]
pub use tree::{Reader, Tree};

/// `start..end`, not empty, and the slot of the record that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Slot of the record.
    pub slot: u32,
}

impl Range {
    /// The range of `len` bytes from `start`; `None` if it is empty or would pass the last address.
    pub const fn of(start: u64, len: u64, slot: u32) -> Option<Range> {
        match start.checked_add(len) {
            Some(end) if len > 0 => Some(Range { start, end, slot }),
            _ => None,
        }
    }
    /// Whether the two share an address.
    pub const fn meets(&self, other: &Range) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// Why a range was not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meet {
    /// It meets this one (the first in order).
    Range(Range),
    /// No room is left.
    Full,
}

/// An ordered set of disjoint ranges.
pub trait Ranges: Send + Sync + 'static {
    /// The empty set.
    const NEW: Self;
    /// Enters a range that meets no other.
    fn insert(&self, range: Range) -> Result<(), Meet>;
    /// Takes the range out if it is there exactly so, slot included.
    fn remove(&self, range: Range) -> bool;
    /// The range that holds the address, base and interior alike.
    fn find(&self, address: u64) -> Option<Range>;
    /// The first range that begins at `from` or after it: listing in order.
    fn next(&self, from: u64) -> Option<Range>;
}

/// Enters `range` after the backend gave it out. Whatever it meets that `gone` says is on its way out (its memory
/// has gone back to the backend already, else the address could not have been given again) is taken over, not fought.
pub fn enter<R: Ranges>(ranges: &R, range: Range, gone: impl Fn(u32) -> bool) -> Result<(), Meet> {
    loop {
        match ranges.insert(range) {
            Err(Meet::Range(old)) if gone(old.slot) => {
                ranges.remove(old);
            }
            // It may have left since it was met, and its slot be another's by now: only one that is still there clashes.
            Err(Meet::Range(old)) if ranges.find(old.start) != Some(old) => {}
            other => return other,
        }
    }
}
