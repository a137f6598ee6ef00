//! Where the causes of failed timelines are kept: a few counted slots of plain words, claimed without a lock, since a
//! lane may fail in an interrupt. When all are in use the kind still travels with the timeline; only details are lost.

use super::Timeline;
use crate::fault::{Blame, Fault, Kind, Site, Why};
use core::sync::atomic::{AtomicU32, Ordering::*};

/// Failures whose details a runtime keeps at once.
pub const FAILURES: usize = 32;

struct Kept {
    /// Timelines and others that name the slot; 0: free.
    count: AtomicU32,
    words: [AtomicU32; 8],
}

/// The slots, and how often none was free.
pub(crate) struct Failures {
    kept: [Kept; FAILURES],
    dropped: AtomicU32,
}

/// A failure by name: kind in the top byte, slot + 1 below. Owned: each copy that is kept counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure(pub(crate) u32);

impl Failure {
    fn slot(self) -> Option<usize> {
        ((self.0 & 0xff_ffff) as usize).checked_sub(1).filter(|slot| *slot < FAILURES)
    }
    fn kind(self) -> Kind {
        Kind::from_number((self.0 >> 24) as u8)
    }
}

impl Failures {
    /// Room for [`FAILURES`].
    pub(crate) const NEW: Self = Failures {
        kept: [const { Kept { count: AtomicU32::new(0), words: [const { AtomicU32::new(0) }; 8] } };
            FAILURES],
        dropped: AtomicU32::new(0),
    };

    /// How many failures lost their details.
    pub(crate) fn dropped(&self) -> u32 {
        self.dropped.load(Relaxed)
    }

    /// Keeps a fault for one owner.
    pub(crate) fn keep(&self, fault: &Fault) -> Failure {
        let kind = (fault.kind.number() as u32) << 24;
        for (slot, kept) in self.kept.iter().enumerate() {
            if kept.count.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                for (to, word) in kept.words.iter().zip(fault.to_words()) {
                    to.store(word, Release);
                }
                return Failure(kind | (slot as u32 + 1));
            }
        }
        self.dropped.fetch_add(1, Relaxed);
        Failure(kind)
    }

    /// One more owner of a failure that the caller knows to be kept.
    pub(crate) fn share(&self, failure: Failure) -> Failure {
        if let Some(slot) = failure.slot() {
            self.kept[slot].count.fetch_add(1, Relaxed);
        }
        failure
    }

    /// One owner less.
    pub(crate) fn drop(&self, failure: Failure) {
        if let Some(slot) = failure.slot() {
            self.kept[slot].count.fetch_sub(1, Release);
        }
    }

    /// The fault, as far as it was kept. The caller makes sure that an owner is left while it reads, or looks afterwards
    /// whether the timeline's turn is still on: who has read a word of the next failure then finds it over.
    pub(crate) fn read(&self, failure: Failure) -> Fault {
        match failure.slot() {
            Some(slot) => Fault::from_words(core::array::from_fn(|i| self.kept[slot].words[i].load(Acquire))),
            None => Fault::new(failure.kind(), Blame::Backend, Site::Wait, Why::Unknown, [0; 2]),
        }
    }

    /// Fails a timeline, unless it has failed: the first cause stays. Takes over the caller's ownership.
    pub(crate) fn set(&self, timeline: &Timeline, failure: Failure) -> bool {
        let first = timeline.failed.compare_exchange(0, failure.0, AcqRel, Relaxed).is_ok();
        if !first {
            self.drop(failure);
        }
        first
    }
}
