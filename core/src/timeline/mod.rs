//! Timelines: a word that only grows, or fails once with a cause that stays. A user's semaphore, a queue and a batch are
//! the same object; they differ in who writes the word.

mod failures;
mod sleep;

pub(crate) use failures::Failures;
pub use failures::{FAILURES, Failure};
pub(crate) use sleep::{failed, tell, told, wake};

use crate::{
    fault::Fault,
    handle::{Body, Handle, Pins},
    sync::{AtomicPtr, AtomicU32, AtomicUsize},
    word::Word64,
};
use core::sync::atomic::Ordering::*;

/// A value on a timeline. Copy it freely; it is looked up on use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// Which timeline.
    pub timeline: Handle<Timeline>,
    /// Which value.
    pub value: u64,
}

/// How a point stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The value was reached; that stays so, whatever fails later.
    Reached,
    /// Not yet.
    Ahead,
    /// It will never be reached.
    Failed(Fault),
}

/// What the pump sleeps on, and whoever has to pump for himself.
pub struct Bell {
    /// Rung: the number changes.
    pub epoch: AtomicU32,
    /// Sleepers on the bell, held operations, jobs, late frees: while it is 0 nobody needs a ring.
    pub interest: AtomicU32,
    /// Threads that promise to pump whenever the bell rings. While it is 0, whoever waits is the pump.
    pub pumps: AtomicU32,
    /// Pump threads that wake by themselves after a while, to ask backends that must be asked.
    pub dozing: AtomicU32,
}

impl Bell {
    /// A silent bell.
    pub const NEW: Self = Bell {
        epoch: AtomicU32::new(0),
        interest: AtomicU32::new(0),
        pumps: AtomicU32::new(0),
        dozing: AtomicU32::new(0),
    };
}

/// One timeline. All fields are atomics: readers copy and look at the generation again.
pub struct Timeline {
    pub(crate) value: Word64,
    /// 0, or kind in the top byte and slot of the details + 1 below (0: the details were dropped).
    pub(crate) failed: AtomicU32,
    pub(crate) epoch: AtomicU32,
    pub(crate) sleepers: AtomicU32,
    /// Of a queue: the last value whose operation the backend has.
    pub(crate) handed: Word64,
    /// Of a queue: the backend's name of the lane, for native waits.
    pub(crate) native: AtomicUsize,
    /// Of a queue: slot + 1.
    pub(crate) lane: AtomicU32,
    /// Of a queue whose backend has native waits: instance of the backend + 1.
    pub(crate) backend: AtomicU32,
    /// Of a queue whose backend must be asked: not 0.
    pub(crate) polled: AtomicU32,
    /// Owners: the creator or the queue, events. With the last one, what was not reached never will be.
    pub(crate) owners: AtomicU32,
    /// Operations that are held for one of its points; they keep the slot, not the hope.
    pub(crate) watchers: AtomicU32,
    /// Threads that sleep here.
    pub(crate) pins: Pins,
    pub(crate) bell: AtomicPtr<Bell>,
    pub(crate) failures: AtomicPtr<Failures>,
}

impl Body for Timeline {
    const NEW: Self = Timeline {
        value: Word64::new(0),
        failed: AtomicU32::new(0),
        epoch: AtomicU32::new(0),
        sleepers: AtomicU32::new(0),
        handed: Word64::new(0),
        native: AtomicUsize::new(0),
        lane: AtomicU32::new(0),
        backend: AtomicU32::new(0),
        polled: AtomicU32::new(0),
        owners: AtomicU32::new(0),
        watchers: AtomicU32::new(0),
        pins: Pins::NEW,
        bell: AtomicPtr::new(core::ptr::null_mut()),
        failures: AtomicPtr::new(core::ptr::null_mut()),
    };
    const KIND: u8 = 2;
}

impl Timeline {
    /// Makes the timeline ready for a new turn, before anyone can reach it.
    pub(crate) fn begin(&self, initial: u64, bell: &'static Bell, failures: &'static Failures) {
        self.value.set(initial);
        self.failed.store(0, Relaxed);
        self.handed.set(0);
        self.native.store(0, Relaxed);
        self.lane.store(0, Relaxed);
        self.backend.store(0, Relaxed);
        self.polled.store(0, Relaxed);
        self.watchers.store(0, Relaxed);
        self.owners.store(1, Relaxed);
        self.bell.store(core::ptr::from_ref(bell).cast_mut(), Relaxed);
        self.failures.store(core::ptr::from_ref(failures).cast_mut(), Relaxed);
    }

    /// Whether the value was reached, without asking for a failure.
    #[inline]
    pub(crate) fn reached(&self, value: u64) -> bool {
        self.value.get() >= value
    }

    /// How the point stands; the code of a failure is looked up by who needs it. A point that was reached stays
    /// reached, so the value is looked at first, and again after a failure was seen: it may have come in between.
    #[inline]
    pub(crate) fn look(&self, value: u64) -> Result<bool, Failure> {
        if self.reached(value) {
            return Ok(true);
        }
        match self.failed.load(Acquire) {
            0 => Ok(false),
            code if !self.reached(value) => Err(Failure(code)),
            _ => Ok(true),
        }
    }

    /// One more owner; `false` if there is none left to join.
    pub(crate) fn retain(&self) -> bool {
        self.owners.fetch_update(AcqRel, Relaxed, |n| (n > 0).then(|| n + 1)).is_ok()
    }

    /// One owner less; `true` for the last.
    pub(crate) fn release(&self) -> bool {
        self.owners.fetch_update(SeqCst, Relaxed, |n| n.checked_sub(1)) == Ok(1)
    }

    /// Whether nobody is left who owns or watches it.
    pub(crate) fn is_left(&self) -> bool {
        self.owners.load(SeqCst) == 0 && self.watchers.load(SeqCst) == 0
    }
}
