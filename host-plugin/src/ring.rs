//! The steps of a lane that were handed over and have not ended: one producer (`submit`), one consumer (whoever runs
//! the lane). Segments of cells in a chain; an empty segment goes back to the producer, so that an idle lane stays in
//! a few cache lines and a deep one grows only as far as it needs.
//!
//! # Safety
//! [`Back`] is the only producer of its ring. The consumer's functions are `unsafe`: their caller runs the lane, and
//! only one thread does (the `RUN` bit of the track). Cells from `head` to `tail` are initialised: `tail` is raised
//! after a cell was written, `head` after it was dropped.
#![allow(unsafe_code)]

use crate::step::Cell;
use std::{
    alloc::{Layout, alloc},
    cell::UnsafeCell,
    mem::MaybeUninit,
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, AtomicU64, Ordering::*},
};

/// Cells of a segment.
const SEGMENT: u64 = 32;

#[repr(C)] // The link lies at the beginning.
struct Segment {
    next: AtomicPtr<Segment>,
    cells: [UnsafeCell<MaybeUninit<Cell>>; SEGMENT as usize],
}

/// Where the consumer is: the segment whose first cell has the number `base`.
struct Front {
    segment: *mut Segment,
    base: u64,
    /// The producer's `tail` when last looked at: its cache line is left to it while there is work.
    tail_seen: u64,
}

/// A value in cache lines of its own.
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// The shared part.
pub(crate) struct Ring {
    tail: Apart<AtomicU64>,
    head: Apart<AtomicU64>,
    front: UnsafeCell<Front>,
    spare: Apart<AtomicPtr<Segment>>,
}

// SAFETY: cells move from the producer to the consumer by `tail` (release, acquire); a cell's raw pointers are those
// of host calls, which may be made on any thread, and the rest of it is `Send`.
unsafe impl Send for Ring {}
// SAFETY: `front` is the consumer's alone (module rule), the rest is atomic.
unsafe impl Sync for Ring {}

/// The producer's part.
pub(crate) struct Back {
    segment: NonNull<Segment>,
    tail: u64,
    /// Where the segment ends.
    end: u64,
    head_seen: u64,
    spare: *mut Segment,
}

// SAFETY: it owns its spare segments, and the segment it writes to is shared by the rules of the module.
unsafe impl Send for Back {}

fn segment() -> Option<NonNull<Segment>> {
    // SAFETY: the layout is not empty.
    let raw = unsafe { alloc(Layout::new::<Segment>()) }.cast::<Segment>();
    let new = NonNull::new(raw)?;
    // SAFETY: fresh memory of this layout, which begins with the link; the cells need no value.
    unsafe { raw.cast::<AtomicPtr<Segment>>().write(AtomicPtr::new(ptr::null_mut())) };
    Some(new)
}

/// Frees a chain of segments without cells.
fn free(mut chain: *mut Segment) {
    while !chain.is_null() {
        // SAFETY: the chain is the caller's alone, and `segment` made each with the layout a box has.
        let own = unsafe { Box::from_raw(chain) };
        chain = own.next.load(Relaxed);
    }
}

impl Ring {
    /// An empty ring and its producer; `None` if there is no memory.
    pub(crate) fn new() -> Option<(Ring, Back)> {
        let first = segment()?;
        let ring = Ring {
            tail: Apart(AtomicU64::new(0)),
            head: Apart(AtomicU64::new(0)),
            front: UnsafeCell::new(Front { segment: first.as_ptr(), base: 0, tail_seen: 0 }),
            spare: Apart(AtomicPtr::new(ptr::null_mut())),
        };
        Some((ring, Back { segment: first, tail: 0, end: SEGMENT, head_seen: 0, spare: ptr::null_mut() }))
    }

    /// Whether steps wait.
    #[inline]
    pub(crate) fn pending(&self) -> bool {
        self.tail.0.load(Acquire) != self.head.0.load(Relaxed)
    }

    /// The oldest step.
    ///
    /// # Safety
    /// The caller runs the lane, and drops the reference before [`Ring::pop`].
    #[inline]
    pub(crate) unsafe fn front(&self) -> Option<&Cell> {
        let head = self.head.0.load(Relaxed);
        // SAFETY: `front` is the consumer's, and the caller is the consumer.
        let front = unsafe { &mut *self.front.get() };
        if head == front.tail_seen {
            front.tail_seen = self.tail.0.load(Acquire);
            if head == front.tail_seen {
                return None;
            }
        }
        if head - front.base == SEGMENT {
            self.step_on(front);
        }
        // SAFETY: the segment lives until the consumer gives it back.
        let cell = unsafe { &(*front.segment).cells[(head - front.base) as usize] };
        // SAFETY: `head < tail`, so the producer has written the cell and does not touch it any more.
        let cell = unsafe { &*cell.get() };
        // SAFETY: as above.
        Some(unsafe { cell.assume_init_ref() })
    }

    /// Drops the oldest step.
    ///
    /// # Safety
    /// The caller runs the lane, and [`Ring::front`] has just answered this step.
    #[inline]
    pub(crate) unsafe fn pop(&self) {
        let head = self.head.0.load(Relaxed);
        // SAFETY: `front` is the consumer's, and the caller is the consumer.
        let front = unsafe { &*self.front.get() };
        // SAFETY: the segment lives until the consumer gives it back.
        let cell = unsafe { (*front.segment).cells[(head - front.base) as usize].get() };
        // SAFETY: cells before `tail` are the consumer's, and `front`'s reference is gone.
        let cell = unsafe { &mut *cell };
        // SAFETY: the cell is initialised (`front` answered it), and is not seen again after `head` has moved on.
        unsafe { cell.assume_init_drop() };
        self.head.0.store(head + 1, Release);
    }

    /// Goes from an emptied segment to the next and gives the old one back; a next one is linked, since a step waits.
    #[cold]
    fn step_on(&self, front: &mut Front) {
        // SAFETY: the consumer's segment, alive until it is given back below.
        let link = unsafe { &(*front.segment).next };
        let old = std::mem::replace(&mut front.segment, link.load(Acquire));
        front.base += SEGMENT;
        let mut top = self.spare.0.load(Relaxed);
        loop {
            link.store(top, Relaxed);
            match self.spare.0.compare_exchange_weak(top, old, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: nobody else has the ring any more, so this thread is the consumer.
        while unsafe { self.front() }.is_some() {
            // SAFETY: as above.
            unsafe { self.pop() };
        }
        free(self.front.get_mut().segment);
        free(*self.spare.0.get_mut());
    }
}

impl Back {
    /// Steps that were handed over and have not ended, as far as is known without asking the other side unless that
    /// number reaches `limit`.
    #[inline]
    pub(crate) fn unfinished(&mut self, ring: &Ring, limit: u64) -> u64 {
        if self.tail - self.head_seen >= limit {
            self.head_seen = ring.head.0.load(Acquire);
        }
        self.tail - self.head_seen
    }

    /// The place of the next step, to be written before [`Back::push`]; `None`: no memory.
    ///
    /// # Safety
    /// `ring` was made together with this, and lives.
    #[inline]
    pub(crate) unsafe fn place(&mut self, ring: &Ring) -> Option<&mut MaybeUninit<Cell>> {
        if self.tail == self.end && !self.extend(ring) {
            return None;
        }
        // SAFETY: the producer's segment lives until the consumer has gone past its last cell.
        let slot = unsafe { &self.segment.as_ref().cells[(self.tail % SEGMENT) as usize] };
        // SAFETY: cells from `tail` on are the producer's alone.
        Some(unsafe { &mut *slot.get() })
    }

    /// Counts the step that was written to [`Back::place`]; [`Back::publish`] will show it.
    ///
    /// # Safety
    /// It was written.
    #[inline]
    pub(crate) unsafe fn push(&mut self) {
        self.tail += 1;
    }

    /// Shows all steps that were pushed.
    #[inline]
    pub(crate) fn publish(&self, ring: &Ring) {
        ring.tail.0.store(self.tail, Release);
    }

    #[cold]
    fn extend(&mut self, ring: &Ring) -> bool {
        if self.spare.is_null() {
            self.spare = ring.spare.0.swap(ptr::null_mut(), Acquire);
        }
        let new = match NonNull::new(self.spare) {
            None => segment(),
            Some(own) => {
                // SAFETY: the spare chain is the producer's alone since the swap.
                let link = unsafe { &own.as_ref().next };
                self.spare = link.swap(ptr::null_mut(), Relaxed);
                Some(own)
            }
        };
        let Some(new) = new else { return false };
        // SAFETY: the old segment has cells that are not published or not consumed, or is the consumer's current
        // one, which it does not give back before a next one is linked.
        unsafe { self.segment.as_ref() }.next.store(new.as_ptr(), Release);
        self.segment = new;
        self.end += SEGMENT;
        true
    }
}

impl Drop for Back {
    fn drop(&mut self) {
        free(self.spare);
    }
}
