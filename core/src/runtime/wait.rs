//! Waiting for points: look, pump, help the backend, sleep where the writer rings.
//!
//! A thread that waits is a pump as long as no thread has promised to be one: it counts itself on the bell before it
//! looks, so that whatever happens after the look rings it. With a pump thread it sleeps on the timeline itself.

use super::{Queue, Runtime};
use crate::{
    device::{Device, Gauge},
    env::{Deadline, Env},
    fault::{Blame, Fault, Kind, Site, Why},
    handle::{Handle, Pins},
    runtime::Next,
    sync::fence,
    timeline::{Look, Point, Timeline},
};
use core::sync::atomic::Ordering::*;

impl<D: Device, E: Env> Runtime<D, E> {
    /// Returns once the point is reached.
    ///
    /// # Errors
    /// The failure of its timeline; `DeadlineExceeded`; `Cancelled` if the timeline ends meanwhile; `InvalidHandle`.
    pub fn wait(&self, point: Point, until: Deadline) -> Result<(), Fault> {
        let time = self.time(point.timeline, Site::Wait)?;
        if time.reached(point.value) && self.timelines.live(point.timeline) {
            return Ok(());
        }
        if !time.pins.pin() {
            return Err(Fault::stale(Site::Wait, point.timeline.raw()));
        }
        let waited = if self.timelines.live(point.timeline) {
            self.wait_pinned(time, point, until)
        } else {
            Err(Fault::stale(Site::Wait, point.timeline.raw()))
        };
        if time.pins.unpin() {
            self.recycle_timeline(point.timeline.slot(), time);
        }
        waited
    }

    fn wait_pinned(&self, time: &'static Timeline, point: Point, until: Deadline) -> Result<(), Fault> {
        let stand = || match time.look(point.value) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(failure) => Some(Err(self.failures.read(failure))),
        };
        if let Some(over) = stand() {
            return over;
        }
        if self.help(time, point.value, until)
            && let Some(over) = stand()
        {
            return over;
        }
        // A lane that must be asked is asked by whoever waits for it: the pump thread sleeps while nothing was held.
        if self.bell.pumps.load(Acquire) == 0 || time.polled.load(Relaxed) != 0 {
            return self.wait_at_bell(until, stand);
        }
        loop {
            time.sleepers.fetch_add(1, SeqCst);
            fence(SeqCst);
            let seen = time.epoch.load(Acquire);
            let over = stand();
            // A pump thread that leaves after this look sees the sleeper and wakes it.
            let pumped = self.bell.pumps.load(Acquire) != 0;
            let in_time = over.is_some() || !pumped || E::sleep(&time.epoch, seen, until, u64::MAX);
            time.sleepers.fetch_sub(1, Relaxed);
            if let Some(over) = over.or_else(&stand) {
                return over;
            }
            if !in_time {
                return Err(late());
            }
            if self.bell.pumps.load(Acquire) == 0 {
                return self.wait_at_bell(until, stand);
            }
        }
    }

    /// Lets the backend wait, or run the queue's next work on this thread, if it has all that the point needs.
    fn help(&self, time: &'static Timeline, value: u64, until: Deadline) -> bool {
        let Some(queue) = time.lane.load(Acquire).checked_sub(1).and_then(|slot| self.lanes.body(slot))
        else {
            return false;
        };
        if time.handed.get() < value || !queue.pins.pin() {
            return false;
        }
        let gauge = queue.cell.with(|cell| {
            cell.get().filter(|lane| core::ptr::eq(lane.time, time)).map(|lane| lane.gauge.clone())
        });
        let helped = gauge.is_some_and(|gauge| gauge.wait(value, until));
        self.leave(&queue.pins);
        helped
    }

    /// Lets go of what was pinned. Who wants to end it, and could not while it was pinned, is told.
    pub(crate) fn leave(&self, pins: &Pins) {
        if pins.leave() {
            self.bell.ring::<E>();
        }
    }

    /// Pumps and sleeps on the bell until `stand` has an answer.
    pub(crate) fn wait_at_bell(
        &self,
        until: Deadline,
        mut stand: impl FnMut() -> Option<Result<(), Fault>>,
    ) -> Result<(), Fault> {
        self.bell.interest.fetch_add(1, SeqCst);
        let waited = loop {
            fence(SeqCst);
            let seen = self.bell.epoch.load(Acquire);
            let next = self.poll();
            if let Some(over) = stand() {
                break over;
            }
            let at_most = if let Next::In(ns) = next { ns } else { u64::MAX };
            if !E::sleep(&self.bell.epoch, seen, until, at_most) {
                break stand().unwrap_or_else(|| Err(late()));
            }
        };
        if self.bell.interest.fetch_sub(1, AcqRel) > 1 {
            self.bell.ring::<E>(); // Somebody else may have to take over the pumping.
        }
        waited
    }

    /// Returns once all points are reached, or one has failed.
    ///
    /// # Errors
    /// The first failure met; `DeadlineExceeded`; `InvalidHandle`. None for no points.
    pub fn wait_all(&self, points: &[Point], until: Deadline) -> Result<(), Fault> {
        if let [point] = points {
            return self.wait(*point, until);
        }
        self.wait_at_bell(until, || {
            let mut all = true;
            for point in points {
                match self.look(*point) {
                    Ok(Look::Reached) => {}
                    Ok(Look::Ahead) => all = false,
                    Ok(Look::Failed(fault)) => return Some(Err(fault)), // Whole, as its cause gave it.
                    Err(fault) => return Some(Err(fault.at(Site::Wait))),
                }
            }
            all.then_some(Ok(()))
        })
    }

    /// Returns once one of the points is reached, or one has failed. Nothing to wait for is reached at once.
    ///
    /// # Errors
    /// The first failure met; `DeadlineExceeded`; `InvalidHandle`.
    pub fn wait_any(&self, points: &[Point], until: Deadline) -> Result<(), Fault> {
        self.wait_at_bell(until, || {
            let mut any = points.is_empty();
            for point in points {
                match self.look(*point) {
                    Ok(Look::Reached) => any = true,
                    Ok(Look::Ahead) => {}
                    Ok(Look::Failed(fault)) => return Some(Err(fault)), // Whole, as its cause gave it.
                    Err(fault) => return Some(Err(fault.at(Site::Wait))),
                }
            }
            any.then_some(Ok(()))
        })
    }

    /// Returns once everything submitted to the queue so far has ended.
    ///
    /// # Errors
    /// The queue's failure; `DeadlineExceeded`; `InvalidHandle`.
    pub fn sync(&self, queue: Handle<Queue<D, E>>, until: Deadline) -> Result<(), Fault> {
        let (point, free) = self.inside(queue, Site::Wait, |lane| {
            let point = Point { timeline: lane.timeline, value: lane.tail };
            Ok((point, lane.order == super::Order::Free))
        })?;
        if free {
            return self.wait_at_bell(until, || match self.is_idle_now(queue) {
                Ok(false) => None,
                Ok(true) => Some(Ok(())),
                Err(fault) => Some(Err(fault)),
            });
        }
        self.wait(point, until)?;
        // Everything before a failure has been reached; the failure itself must not be lost.
        self.inside(queue, Site::Wait, |lane| self.queue_failure(lane).map_or(Ok(()), Err))
    }

    fn is_idle_now(&self, queue: Handle<Queue<D, E>>) -> Result<bool, Fault> {
        self.inside(queue, Site::Wait, |lane| match self.queue_failure(lane) {
            Some(fault) => Err(fault),
            None => Ok(lane.drained()),
        })
    }
}

fn late() -> Fault {
    Fault::new(Kind::DeadlineExceeded, Blame::Wharf, Site::Wait, Why::Unknown, [0; 2])
}
