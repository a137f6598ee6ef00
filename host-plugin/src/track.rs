//! What the two ends of a lane and whoever runs it share: the steps, who runs them, how far they are, who waits.
//!
//! A track is *run* by one thread at a time, the holder of the `RUN` bit: a worker that found the track in the
//! pool's queue (`QUEUED`) and watches it from then on (`WATCHED`), or a thread in
//! [`Gauge::wait`](wharf_core::device::Gauge::wait) that helps itself. Who hands over work while such a thread runs it
//! leaves a `NOTE`, so that the runner looks again before it lets go. A track that waits for another is `PARKED`:
//! nobody runs it until that one resumes it. All changes of hands go through this one word.
//!
//! A submitter that finds the track queued or watched writes nothing: whoever takes the last of the two bits away
//! passes a heavy fence and looks for work once more ([`fence`]).

use crate::{
    fence,
    pool::Pool,
    ring::{Apart, Ring},
    times::Times,
    watch::{Watches, Who},
};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering::*},
    },
    thread,
};
use wharf_core::{
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// A thread runs it.
const RUN: u32 = 1;
/// It is in the pool's queue, or about to be.
const QUEUED: u32 = 2;
/// Something changed while it ran.
const NOTE: u32 = 4;
/// It waits for another track.
const PARKED: u32 = 8;
/// Its runner is inside a host call and touches nothing of the lane.
const CALL: u32 = 16;
/// A worker looks for new work here.
const WATCHED: u32 = 128;
/// The lane was dropped.
const CLOSED: u32 = 32;
/// The lane failed.
const FAILED: u32 = 64;
/// No step of it runs any more.
const OVER: u32 = CLOSED | FAILED;

/// The state of a lane.
pub(crate) struct Track {
    pub(crate) ring: Ring,
    pub(crate) pool: Arc<Pool>,
    pub(crate) tick: Tick,
    pub(crate) times: Times,
    state: Apart<AtomicU32>,
    reached: Apart<AtomicU64>,
    watches: Watches,
    fault: OnceLock<Fault>,
}

impl Track {
    pub(crate) fn new(ring: Ring, pool: Arc<Pool>, tick: Tick) -> Self {
        Self {
            ring,
            pool,
            tick,
            times: Times::default(),
            state: Apart(AtomicU32::new(0)),
            reached: Apart(AtomicU64::new(0)),
            watches: Watches::default(),
            fault: OnceLock::new(),
        }
    }

    /// The value that all steps before have reached.
    #[inline]
    pub(crate) fn reached(&self) -> u64 {
        self.reached.0.load(Acquire)
    }

    /// No step runs any more.
    #[inline]
    pub(crate) fn over(&self) -> bool {
        self.state.0.load(Acquire) & OVER != 0
    }

    /// Why the lane is over, if it failed.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault.get().copied()
    }

    /// Somebody runs it, or will without being asked again.
    pub(crate) fn attended(&self) -> bool {
        fence::light();
        self.state.0.load(Acquire) & (RUN | QUEUED | WATCHED | PARKED | OVER) != 0
    }

    /// Changes the state by `change`, which answers the new one or `None` to leave it. Answers the old state.
    #[inline]
    fn turn(&self, change: impl Fn(u32) -> Option<u32>) -> Result<u32, u32> {
        self.state.0.fetch_update(AcqRel, Acquire, change)
    }

    /// Sees to it that work handed over before is run.
    #[inline]
    pub(crate) fn kick(self: &Arc<Self>) {
        fence::light();
        if self.state.0.load(Relaxed) & (QUEUED | WATCHED) == 0 {
            self.call();
        }
    }

    fn call(self: &Arc<Self>) {
        // Also where nothing changes the word is written: the runner's own write then comes after ours, and it sees
        // the work, or before, and we see that it let go.
        let old = self.turn(|s| {
            Some(match s {
                s if s & OVER != 0 => return None,
                s if s & RUN != 0 => s | NOTE,
                s if s & (QUEUED | WATCHED | PARKED) != 0 => s,
                s => s | QUEUED,
            })
        });
        if old.is_ok_and(|s| s & (RUN | QUEUED | WATCHED | PARKED) == 0) {
            self.pool.push(self.clone());
        }
    }

    /// What it was parked for has come.
    fn resume(self: &Arc<Self>) {
        let old = self.turn(|s| {
            Some(match s {
                s if s & OVER != 0 => return None,
                s if s & RUN != 0 => s | NOTE,
                s => s & !PARKED | QUEUED,
            })
        });
        if old.is_ok_and(|s| s & (RUN | QUEUED) == 0) {
            self.pool.push(self.clone());
        }
    }

    /// A waiter takes the run.
    #[inline]
    pub(crate) fn claim(&self) -> bool {
        let state = self.state.0.load(Relaxed);
        state & (RUN | PARKED | OVER) == 0
            && self.state.0.compare_exchange(state, state & !NOTE | RUN, Acquire, Relaxed).is_ok()
    }

    /// A worker that took it from the queue takes the run, and watches it.
    pub(crate) fn claim_queued(self: &Arc<Self>) -> bool {
        let free = |s: u32| s & (RUN | PARKED | OVER) == 0;
        let old =
            self.turn(|s| Some(if free(s) { s & !(QUEUED | NOTE) | RUN | WATCHED } else { s & !QUEUED }));
        if old.is_ok_and(free) {
            return true;
        }
        self.look_again();
        false
    }

    /// A worker that watches takes the run again if there is work, unless a waiter was faster.
    pub(crate) fn reclaim(&self) -> bool {
        self.ring.pending() && self.claim()
    }

    /// The worker goes. Work that came meanwhile is queued.
    pub(crate) fn leave(self: &Arc<Self>) {
        self.state.0.fetch_and(!WATCHED, AcqRel);
        self.look_again();
    }

    /// The other half of what a submitter leaves out in [`Track::kick`].
    fn look_again(self: &Arc<Self>) {
        fence::heavy();
        if self.ring.pending() {
            self.call();
        }
    }

    /// The runner found nothing more and lets go. `false`: look again.
    #[inline]
    pub(crate) fn release(&self) -> bool {
        self.turn(|s| (s & NOTE == 0 || s & OVER != 0).then_some(s & !(RUN | NOTE)))
            .map_err(|_| self.state.0.fetch_and(!NOTE, AcqRel))
            .is_ok()
    }

    /// The runner lets go of a track with steps left, which go to the pool.
    pub(crate) fn hand_over(self: &Arc<Self>) {
        let old = self.turn(|s| {
            let s = s & !(RUN | NOTE | WATCHED);
            Some(if s & OVER != 0 { s } else { s | QUEUED })
        });
        if old.is_ok_and(|s| s & (QUEUED | OVER) == 0) {
            self.pool.push(self.clone());
        }
    }

    /// The runner lets go until it is resumed. `false`: look again.
    pub(crate) fn park(&self) -> bool {
        self.turn(|s| (s & (NOTE | OVER) == 0).then_some(s & !(RUN | WATCHED) | PARKED))
            .map_err(|_| self.state.0.fetch_and(!NOTE, AcqRel))
            .is_ok()
    }

    /// The runner leaves the lane alone for the time of a host call.
    pub(crate) fn enter_call(&self) {
        self.state.0.fetch_or(CALL, AcqRel);
    }

    /// The host call has ended. `false`: the lane is over, nothing of it may be touched.
    pub(crate) fn leave_call(&self) -> bool {
        self.state.0.fetch_and(!CALL, AcqRel) & OVER == 0
    }

    /// The runner raises the timeline, and wakes whom that concerns.
    #[inline]
    pub(crate) fn raise(&self, value: u64, tell: bool) {
        self.tick.advance_quietly(value);
        self.reached.0.store(value, Release);
        fence::light();
        if self.watches.least() <= value {
            self.wake();
        }
        if tell {
            self.tick.tell();
        }
    }

    /// Wakes everybody who waits for what was reached, or all if the lane is over.
    #[cold]
    fn wake(&self) {
        for who in self.watches.take(self.reached()) {
            match who {
                Who::Thread(thread) => thread.unpark(),
                Who::Track(track) => track.resume(),
            }
        }
    }

    /// Whether the runner has to stop.
    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.watches.least() == 0
    }

    fn watch(&self, value: u64, who: Who) {
        self.watches.enter(value, who);
        fence::heavy();
    }

    /// Whether a track that is run as `other` need not wait for `value` here; else it is entered to be resumed.
    pub(crate) fn passed(self: &Arc<Self>, value: u64, other: &Arc<Track>) -> bool {
        if self.reached() >= value || self.over() {
            return true;
        }
        // Its last submit may have left the run to a wait that has not come.
        self.kick();
        let who = Who::Track(other.clone());
        self.watch(value, Who::Track(other.clone()));
        let passed = self.reached() >= value || self.over();
        if passed {
            self.watches.leave(&who);
        }
        passed
    }

    /// Sleeps until `value` is reached or the lane is over.
    pub(crate) fn sleep(&self, value: u64) {
        let who = Who::Thread(thread::current());
        self.watch(value, Who::Thread(thread::current()));
        while self.reached() < value && !self.over() {
            thread::park();
        }
        self.watches.leave(&who);
    }

    /// The runner ends the lane: what is left never runs.
    pub(crate) fn fail(&self, fault: &Fault) {
        let _ = self.fault.set(*fault);
        let first = self.state.0.fetch_or(FAILED, AcqRel) & OVER == 0;
        self.watches.end();
        if first {
            self.tick.fail(fault);
        }
        self.wake();
        self.state.0.fetch_and(!(RUN | NOTE), AcqRel);
    }

    /// The runner lets go of a lane that is over.
    pub(crate) fn abandon(&self) {
        self.state.0.fetch_and(!(RUN | NOTE), AcqRel);
    }

    /// The lane is dropped: when this returns nobody touches its tick any more. Waits for the step that is running,
    /// but not for a host call, and not if the caller (`own`) is the runner.
    pub(crate) fn close(&self, own: bool) {
        self.state.0.fetch_or(CLOSED, AcqRel);
        if self.ring.pending() {
            let _ = self.fault.set(Fault::caller(Kind::Cancelled, Site::Close, Why::Unknown, [0; 2]));
        }
        self.watches.end();
        let busy = || self.state.0.load(Acquire) & (RUN | CALL) == RUN;
        let mut turns = 0_u32;
        while !own && busy() {
            turns += 1;
            if turns < 100 { std::hint::spin_loop() } else { thread::yield_now() }
        }
        self.wake();
    }
}
