//! Running a lane's steps in order and raising its timeline after each.
//!
//! # Safety
//! [`run`] and [`help`] are entered by the thread that has just got the `RUN` bit of the track, and let it go once, at
//! their end; so this thread is the consumer of the ring in between. A host call is made as its submitter promised.
#![allow(unsafe_code)]

use crate::{
    cpu, fill,
    limits::{BRIEF, LINGER_LOOKS, LINGER_PAUSE, TURN},
    step::{Cell, Work},
    times,
    track::Track,
    transfer,
};
use std::{
    cell, hint, ptr,
    sync::{Arc, LazyLock},
};
use wharf_core::{
    device::HostCall,
    fault::{Fault, Kind, Site, Why},
};

/// How far a waiter runs a lane.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    /// The value it waits for.
    pub(crate) value: u64,
    /// Only what ends soon: the wait has a deadline.
    pub(crate) brief: bool,
}

impl Goal {
    /// A host call is for workers: a user's function never runs inside somebody's wait.
    fn permits(self, work: &Work) -> bool {
        match work {
            Work::Call(_) => false,
            Work::Launch(_) => !self.brief,
            Work::Copy { len, .. } | Work::Fill { len, .. } => !self.brief || *len <= BRIEF,
            _ => true,
        }
    }
}

enum End {
    Done,
    Parked,
    /// The lane was dropped while its runner was inside a host call.
    Gone,
    Failed(Fault),
}

thread_local! {
    /// The track that this thread runs, so that a lane dropped by its own runner does not wait for itself.
    static RUNNING: cell::Cell<*const Track> = const { cell::Cell::new(ptr::null()) };
}

/// Whether this thread runs `track`.
pub(crate) fn is_running(track: &Arc<Track>) -> bool {
    RUNNING.get() == Arc::as_ptr(track)
}

/// A worker, which holds the run, goes on until the lane has been idle for a while, is parked or over, or others wait
/// too long. In between it leaves pauses, so that its looks do not hold up the submitter, nor keep a waiter from
/// helping itself.
pub(crate) fn run(track: &Arc<Track>) {
    let outer = RUNNING.replace(Arc::as_ptr(track));
    while steps(track, None) == Left::Idle {
        if !linger(track) {
            track.leave();
            break;
        }
    }
    RUNNING.set(outer);
}

/// Looks for new work for a while. `true`: there is some, and this thread has the run again.
fn linger(track: &Arc<Track>) -> bool {
    if !*SEVERAL {
        return false;
    }
    for _ in 0..LINGER_LOOKS {
        for _ in 0..LINGER_PAUSE {
            hint::spin_loop();
        }
        if track.reclaim() {
            return true;
        }
        if track.pool.waiting() || track.over() {
            return false;
        }
    }
    false
}

/// Spinning is of use only beside others.
static SEVERAL: LazyLock<bool> = LazyLock::new(|| cpu::threads() > 1);

/// How the run was let go.
#[derive(PartialEq, Eq)]
enum Left {
    /// Nothing was left to do.
    Idle,
    /// Somebody or something else goes on, or nothing does.
    Gone,
}

/// A waiter, which holds the run, goes on until its goal.
#[inline]
pub(crate) fn help(track: &Arc<Track>, goal: Goal) {
    let outer = RUNNING.replace(Arc::as_ptr(track));
    steps(track, Some(goal));
    RUNNING.set(outer);
}

#[inline]
fn steps(track: &Arc<Track>, goal: Option<Goal>) -> Left {
    let (mut turns, mut untold) = (0, false);
    // Before the run is let go, whoever looks at the lane is told where it stands.
    let tell = |untold: &mut bool| {
        if std::mem::take(untold) {
            track.tick.tell();
        }
    };
    loop {
        if track.stopped() {
            track.abandon();
            return Left::Gone;
        }
        // SAFETY: this thread holds the run (module rule), and `cell` is not used after `pop`.
        let Some(cell) = (unsafe { track.ring.front() }) else {
            tell(&mut untold);
            if track.release() {
                return Left::Idle;
            }
            continue;
        };
        let stop = match goal {
            Some(goal) => track.reached() >= goal.value || !goal.permits(&cell.work),
            None => turns == TURN && track.pool.waiting(),
        };
        if stop {
            tell(&mut untold);
            track.hand_over();
            return Left::Gone;
        }
        turns = if turns == TURN { 0 } else { turns + 1 };
        let begin = if cell.stamp { times::now() } else { 0 };
        let small = matches!(&cell.work, Work::Launch(launch) if launch.small(cell.bytes.as_ptr()));
        match if small { End::Done } else { work(track, cell) } {
            End::Done => {}
            End::Parked => {
                tell(&mut untold);
                if track.park() {
                    return Left::Gone;
                }
                continue;
            }
            End::Gone => {
                track.abandon();
                return Left::Gone;
            }
            End::Failed(fault) => {
                track.fail(&fault);
                return Left::Gone;
            }
        }
        let (done, told) = (cell.done, cell.tell);
        if cell.stamp && done != 0 {
            track.times.keep(done, begin, times::now());
        }
        // SAFETY: as above; this is the step that `front` answered.
        unsafe { track.ring.pop() };
        if done != 0 {
            track.raise(done, told);
            untold = !told;
        }
    }
}

/// All but the one launch that is so small that a call would show.
#[inline(never)]
fn work(track: &Arc<Track>, cell: &Cell) -> End {
    match &cell.work {
        Work::Launch(launch) => match launch.run(cell.bytes.as_ptr(), &track.pool) {
            Ok(()) => End::Done,
            Err(fault) => End::Failed(fault),
        },
        Work::Nothing => End::Done,
        Work::Copy { from, to, len } => {
            transfer::copy(*from, *to, *len, &track.pool);
            End::Done
        }
        Work::Fill { to, len } => {
            fill::fill(*to, *len, cell.bytes.as_slice(), &track.pool);
            End::Done
        }
        Work::Update { to } => {
            transfer::update(*to, cell.bytes.as_slice());
            End::Done
        }
        Work::Prefetch { at, len } => {
            transfer::prefetch(*at, *len);
            End::Done
        }
        Work::After { track: other, value } => after(track, other, *value),
        Work::Call(call) => host_call(track, *call),
    }
}

fn after(track: &Arc<Track>, other: &Arc<Track>, value: u64) -> End {
    if !other.passed(value, track) {
        return End::Parked;
    }
    if other.reached() >= value {
        return End::Done;
    }
    // It ended on the way: what follows depends on work that never ran.
    let lost = Fault::caller(Kind::Cancelled, Site::Wait, Why::Past, [value, other.reached()]);
    End::Failed(other.fault().unwrap_or(lost).at(Site::Wait))
}

fn host_call(track: &Arc<Track>, call: HostCall) -> End {
    track.pool.enter_call();
    track.enter_call();
    // SAFETY: the submitter promised that the function takes `user`, once, on any thread.
    unsafe { (call.call)(call.user) };
    let stays = track.leave_call();
    track.pool.leave_call();
    if stays { End::Done } else { End::Gone }
}
