//! Pins keep a slot from its next turn while somebody is inside without a lock. A turn ends in one of two ways. With
//! [`Pins::end`] it is over at once and the slot goes to whoever leaves last. With [`Pins::end_if_free`] it is over only
//! if nobody is inside; who tried in vain tries again when the last one out tells him ([`Pins::leave`]).

use crate::sync::AtomicU32;
use core::sync::atomic::Ordering::*;

/// The turn is over; the slot waits for its last pin.
const ENDED: u32 = 1 << 31;
/// Somebody wants to end the turn and may have found others inside.
const WANTED: u32 = 1 << 30;

/// A count of pins and whether the turn is over.
pub(crate) struct Pins(AtomicU32);

impl Pins {
    pub(crate) const NEW: Self = Pins(AtomicU32::new(0));

    /// One pin more, unless the turn is over. Whoever pinned looks at the generation again.
    pub(crate) fn pin(&self) -> bool {
        self.0.fetch_update(AcqRel, Relaxed, |n| (n & ENDED == 0).then(|| n + 1)).is_ok()
    }
    /// One pin less; `true` if the slot is now the caller's to reuse.
    pub(crate) fn unpin(&self) -> bool {
        self.0.fetch_sub(1, AcqRel) == ENDED + 1 && self.claim()
    }
    /// The turn is over; `true` if the slot is now the caller's to reuse, `false` if the last pin will have it.
    pub(crate) fn end(&self) -> bool {
        self.0.fetch_or(ENDED, AcqRel);
        self.claim()
    }
    /// Ends the turn only if nobody is inside. If it says `false`, the last one to leave is told to tell.
    pub(crate) fn end_if_free(&self) -> bool {
        self.0.fetch_or(WANTED, AcqRel);
        self.0.compare_exchange(WANTED, ENDED, AcqRel, Relaxed).is_ok()
    }
    /// One pin less, where turns end by `end_if_free`; `true` if somebody waits for the slot to be free, as it is now.
    pub(crate) fn leave(&self) -> bool {
        self.0.fetch_sub(1, AcqRel) == WANTED + 1
    }
    /// Opens the slot again, after `end_if_free`.
    pub(crate) fn reset(&self) {
        self.0.store(0, Release);
    }
    /// Exactly one of those who find the slot ended and unpinned gets it.
    fn claim(&self) -> bool {
        self.0.compare_exchange(ENDED, 0, AcqRel, Relaxed).is_ok()
    }
}
