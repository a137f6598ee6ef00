//! A large step shared among workers: numbered pieces that whoever is there takes from one counter.
//!
//! # Safety
//! A [`Spread`] refers to a closure on the stack of the thread that made it. That thread leaves [`share`] only after
//! the spread was withdrawn from the pool (so nobody joins any more) and all who had joined have left.
#![allow(unsafe_code)]

use crate::pool::Pool;
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::*},
    },
    thread::{self, Thread},
};

/// What is done with a piece.
type Piece<'a> = dyn Fn(u64) + Sync + 'a;

/// Pieces that are being worked on.
pub(crate) struct Spread {
    next: AtomicU64,
    pieces: u64,
    /// Workers beside the owner that are at it, and how many may be.
    helpers: AtomicUsize,
    most: usize,
    owner: Thread,
    work: *const Piece<'static>,
}

// SAFETY: `work` is only called while its owner waits (module rule), and is `Sync`.
unsafe impl Send for Spread {}
// SAFETY: as for `Send`; all else is atomic.
unsafe impl Sync for Spread {}

/// Does `work` for every piece from `first` to `pieces`, with idle workers of the pool.
pub(crate) fn share(pool: &Arc<Pool>, first: u64, pieces: u64, work: &Piece<'_>) {
    let most = (pool.width() as u64 - 1).min(pieces.saturating_sub(first + 1)) as usize;
    if most == 0 {
        (first..pieces).for_each(work);
        return;
    }
    let erased: *const Piece<'_> = work;
    let spread = Arc::new(Spread {
        next: AtomicU64::new(first),
        pieces,
        helpers: AtomicUsize::new(0),
        most,
        owner: thread::current(),
        // SAFETY: only the lifetime changes, and the closure is not used after this function (module rule).
        work: unsafe { std::mem::transmute::<*const Piece<'_>, *const Piece<'static>>(erased) },
    });
    pool.offer(spread.clone());
    spread.pieces();
    pool.withdraw(&spread);
    let mut turns = 0_u32;
    while spread.helpers.load(Acquire) != 0 {
        turns += 1;
        if turns < 2_000 { hint::spin_loop() } else { thread::park() }
    }
}

impl Spread {
    /// How many more workers have something to do here.
    pub(crate) fn room(&self) -> usize {
        let left = self.pieces.saturating_sub(self.next.load(Relaxed));
        (self.most.saturating_sub(self.helpers.load(Relaxed)) as u64).min(left) as usize
    }

    /// Takes a place. Called under the pool's lock while the spread is offered, so not after it was withdrawn.
    pub(crate) fn join(&self) -> bool {
        let room = self.room() != 0;
        if room {
            self.helpers.fetch_add(1, Relaxed);
        }
        room
    }

    /// Works as one who joined, and leaves.
    pub(crate) fn help(&self) {
        self.pieces();
        if self.helpers.fetch_sub(1, Release) == 1 {
            self.owner.unpark();
        }
    }

    fn pieces(&self) {
        loop {
            let piece = self.next.fetch_add(1, Relaxed);
            if piece >= self.pieces {
                return;
            }
            // SAFETY: this thread is the owner or has joined, so the owner is still inside `share`.
            let work = unsafe { &*self.work };
            work(piece);
        }
    }
}
