//! The two ends of a lane: submitting and watching.
//!
//! # Safety
//! A [`HostLane`] holds the producer of its own track's ring, made together with it.
#![allow(unsafe_code)]

use crate::{
    drive::{self, Goal},
    limits,
    pool::Pool,
    registry::Registry,
    ring::{Back, Ring},
    step::Cell,
    track::Track,
};
use std::{hint, sync::Arc};
use wharf_core::{
    device::{Gauge, Hint, Lane, Step, Times},
    env::Deadline,
    fault::{Blame, Fault, Kind, Site, Why},
    tick::Tick,
};

/// The submitting end.
pub struct HostLane {
    track: Arc<Track>,
    back: Back,
    lanes: Arc<Registry>,
    name: usize,
}

/// The watching end.
#[derive(Clone)]
pub struct HostGauge {
    track: Arc<Track>,
}

/// Makes a lane.
pub(crate) fn open(
    pool: &Arc<Pool>,
    lanes: &Arc<Registry>,
    tick: Tick,
) -> Result<(HostLane, HostGauge, usize), Fault> {
    let (ring, back) = Ring::new().ok_or(Fault::full(Site::Queue, limits::LANES_MAX.into()))?;
    let track = Arc::new(Track::new(ring, pool.clone(), tick));
    let name = lanes.enter(&track).ok_or(Fault::full(Site::Queue, limits::LANES_MAX.into()))?;
    let gauge = HostGauge { track: track.clone() };
    Ok((HostLane { track, back, lanes: lanes.clone(), name }, gauge, name))
}

impl HostLane {
    #[inline]
    fn hand(&mut self, step: &Step<'_>) -> Result<(), Fault> {
        // SAFETY: the producer and the ring were made together, and the track keeps the ring alive.
        let place = unsafe { self.back.place(&self.track.ring) };
        let place = place.ok_or(Fault::full(Site::Submit, limits::DEPTH.into()))?;
        Cell::capture(place, step, &self.track, &self.lanes)?;
        // SAFETY: captured, so written.
        unsafe { self.back.push() };
        Ok(())
    }
}

impl Lane for HostLane {
    #[inline]
    fn submit(&mut self, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)> {
        if self.track.stopped() {
            let over =
                Fault::new(Kind::FailedPrecondition, Blame::Caller, Site::Submit, Why::Unknown, [0; 2]);
            return Err((0, self.track.fault().map_or(over, |fault| fault.at(Site::Submit))));
        }
        let (mut taken, mut refused) = (0, None);
        for step in steps {
            if self.back.unfinished(&self.track.ring, limits::DEPTH.into()) >= limits::DEPTH.into() {
                break;
            }
            if let Err(fault) = self.hand(step) {
                refused = Some(fault);
                break;
            }
            taken += 1;
        }
        self.back.publish(&self.track.ring);
        // A caller that was cut short does not go on as its hint said.
        if hint == Hint::None || taken < steps.len() {
            self.track.kick();
        }
        match refused {
            None => Ok(taken),
            Some(fault) => Err((taken, fault)),
        }
    }
}

impl Drop for HostLane {
    fn drop(&mut self) {
        self.lanes.leave(self.name);
        self.track.close(drive::is_running(&self.track));
    }
}

impl Gauge for HostGauge {
    /// Nothing to bring up to date: progress is pushed. Work that a `More` or `Waiting` left lying is sent off.
    fn poll(&self) {
        if self.track.ring.pending() && !self.track.attended() {
            self.track.kick();
        }
    }

    /// Runs the lane's next work itself where no worker is at it. With a deadline, which is a time on a clock that a
    /// device does not know, it runs only what ends soon, looks for a moment and leaves the sleeping to core.
    #[inline]
    fn wait(&self, value: u64, until: Deadline) -> bool {
        let track = &self.track;
        let goal = Goal { value, brief: until.is_some() };
        if track.reached() >= value {
            return true;
        }
        if track.claim() {
            drive::help(track, goal);
            if track.reached() >= value {
                return true;
            }
        }
        wait_on(track, goal)
    }

    fn times(&self, value: u64) -> Option<Times> {
        self.track.times.of(value)
    }
}

#[cold]
fn wait_on(track: &Arc<Track>, goal: Goal) -> bool {
    let ended = || track.reached() >= goal.value || track.over();
    loop {
        for look in 0..limits::WAIT_LOOKS {
            if ended() {
                return true;
            }
            if track.ring.pending() && !track.attended() && track.claim() {
                drive::help(track, goal);
            }
            // Rarer and rarer, since each look takes a cache line from the runner.
            for _ in 0..=look.min(16) {
                hint::spin_loop();
            }
        }
        // From here on this thread sleeps, here or in core: what is left must be with the workers.
        if track.ring.pending() {
            track.kick();
        }
        if goal.brief {
            return ended();
        }
        track.sleep(goal.value);
    }
}
