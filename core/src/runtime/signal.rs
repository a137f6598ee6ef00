//! Timelines as a caller sees them: make, share, look, signal, fail, end.

use super::Runtime;
use crate::{
    device::Device,
    env::Env,
    fault::{Blame, Fault, Kind, Site, Why},
    handle::Handle,
    timeline::{Failure, Look, Point, Timeline, tell},
};
use core::sync::atomic::Ordering::*;

/// The highest value a timeline can show.
const VALUE_MAX: u64 = u64::MAX - 1;

impl<D: Device, E: Env> Runtime<D, E> {
    /// A timeline of the caller's that stands at `initial`, with one owner.
    ///
    /// # Errors
    /// `ResourceExhausted` when all slots are in use.
    pub fn timeline(&self, initial: u64) -> Result<Handle<Timeline>, Fault> {
        if initial > VALUE_MAX {
            return Err(Fault::caller(
                Kind::InvalidArgument,
                Site::Timeline,
                Why::Limit,
                [initial, VALUE_MAX],
            ));
        }
        self.timelines
            .insert::<E>(|t, _| t.begin(initial, self.bell, self.failures))
            .ok_or(Fault::full(Site::Timeline, self.timelines.used() as u64))
    }

    pub(crate) fn time(&self, timeline: Handle<Timeline>, site: Site) -> Result<&'static Timeline, Fault> {
        self.timelines.get(timeline).ok_or(Fault::stale(site, timeline.raw()))
    }

    /// One owner more: the timeline, with its value and failure, stays at least until he lets go.
    ///
    /// # Errors
    /// `InvalidHandle` if it is gone.
    pub fn retain_timeline(&self, timeline: Handle<Timeline>) -> Result<(), Fault> {
        let retained = self.within_timeline(timeline, Timeline::retain);
        if retained == Some(true) { Ok(()) } else { Err(Fault::stale(Site::Timeline, timeline.raw())) }
    }

    /// Keeps a timeline's slot from its next turn while `f` is inside; `None`: its turn is over.
    fn within_timeline<R>(
        &self,
        timeline: Handle<Timeline>,
        f: impl FnOnce(&'static Timeline) -> R,
    ) -> Option<R> {
        let time = self.timelines.get(timeline)?;
        if !time.pins.pin() {
            return None;
        }
        // The turn may have ended before the pin, which then keeps the next one.
        let result = self.timelines.live(timeline).then(|| f(time));
        if time.pins.unpin() {
            self.recycle_timeline(timeline.slot(), time);
        }
        result
    }

    /// One owner less. With the last one the timeline ends: whoever still waits on it gets `Cancelled`.
    pub fn release_timeline(&self, timeline: Handle<Timeline>) {
        self.within_timeline(timeline, |time| {
            if time.release() {
                let kept = self.failures.keep(&cancelled(timeline));
                self.failures.set(time, kept);
                tell::<E>(time, self.bell);
                self.end_timeline(timeline, time);
            }
        });
    }

    /// Ends the turn of a timeline that nobody owns or watches any more. The caller is inside, so the slot goes to
    /// whoever leaves last.
    fn end_timeline(&self, timeline: Handle<Timeline>, time: &'static Timeline) {
        if time.is_left() && self.timelines.end(timeline) && time.pins.end() {
            self.recycle_timeline(timeline.slot(), time);
        }
    }

    /// A held operation waits for a point: the timeline's slot stays until [`Runtime::unwatch`]. `false`: it has ended.
    pub(crate) fn watch(&self, timeline: Handle<Timeline>) -> bool {
        self.within_timeline(timeline, |time| time.watchers.fetch_add(1, SeqCst)).is_some()
    }

    /// The operation does not wait any more.
    pub(crate) fn unwatch(&self, timeline: Handle<Timeline>) {
        self.within_timeline(timeline, |time| {
            let _ = time.watchers.fetch_update(SeqCst, Relaxed, |n| n.checked_sub(1));
            self.end_timeline(timeline, time);
        });
    }

    /// Gives an ended and unpinned timeline's slot to the next turn. Not while somebody signals or fails it, so that
    /// who finds the turn on in there writes into this turn.
    pub(crate) fn recycle_timeline(&self, slot: u32, time: &'static Timeline) {
        self.signalling.with(|()| {
            let failure = time.failed.swap(0, AcqRel);
            if failure != 0 {
                self.failures.drop(Failure(failure));
            }
            self.timelines.reuse(slot);
        });
    }

    /// How a point stands. A point that was reached stays reached, whatever failed later.
    ///
    /// # Errors
    /// `InvalidHandle` if the timeline is gone.
    pub fn look(&self, point: Point) -> Result<Look, Fault> {
        let time = self.time(point.timeline, Site::Query)?;
        let look = match time.look(point.value) {
            Ok(true) => Look::Reached,
            Ok(false) => Look::Ahead,
            Err(failure) => Look::Failed(self.failures.read(failure)),
        };
        if self.timelines.live(point.timeline) {
            Ok(look)
        } else {
            Err(Fault::stale(Site::Query, point.timeline.raw()))
        }
    }

    /// The timeline's value.
    ///
    /// # Errors
    /// The failure, if it failed; `InvalidHandle` if it is gone.
    pub fn query(&self, timeline: Handle<Timeline>) -> Result<u64, Fault> {
        let time = self.time(timeline, Site::Query)?;
        let (value, failed) = (time.value.get(), time.failed.load(Acquire));
        let fault = (failed != 0).then(|| self.failures.read(Failure(failed)));
        if !self.timelines.live(timeline) {
            return Err(Fault::stale(Site::Query, timeline.raw()));
        }
        fault.map_or(Ok(value), Err)
    }

    /// The timeline reaches `value`. Waiting before signalling is legal, and a larger value satisfies smaller waits.
    ///
    /// # Errors
    /// `InvalidArgument` at or below the current value, which stays; the failure, if it failed; `FailedPrecondition`
    /// for the timeline of a queue, which its backend writes.
    pub fn signal(&self, timeline: Handle<Timeline>, value: u64) -> Result<(), Fault> {
        let time = self.time(timeline, Site::Signal)?;
        self.signalling.with(|()| {
            if !self.timelines.live(timeline) {
                return Err(Fault::stale(Site::Signal, timeline.raw()));
            }
            if time.lane.load(Relaxed) != 0 {
                return Err(Fault::caller(
                    Kind::FailedPrecondition,
                    Site::Signal,
                    Why::Stale,
                    [timeline.raw(), 0],
                ));
            }
            let failed = time.failed.load(Acquire);
            if failed != 0 {
                return Err(self.failures.read(Failure(failed)));
            }
            let now = time.value.get();
            if value <= now {
                return Err(Fault::caller(Kind::InvalidArgument, Site::Signal, Why::Past, [value, now]));
            }
            if value > VALUE_MAX {
                return Err(Fault::caller(
                    Kind::InvalidArgument,
                    Site::Signal,
                    Why::Limit,
                    [value, VALUE_MAX],
                ));
            }
            time.value.set(value);
            Ok(())
        })?;
        tell::<E>(time, self.bell);
        Ok(())
    }

    /// The timeline fails: no point above its value will be reached. The first cause stays.
    ///
    /// # Errors
    /// `InvalidHandle` if it is gone; `FailedPrecondition` for the timeline of a queue.
    pub fn fail(&self, timeline: Handle<Timeline>, cause: &Fault) -> Result<(), Fault> {
        let time = self.time(timeline, Site::Fail)?;
        if time.lane.load(Relaxed) != 0 {
            return Err(Fault::caller(Kind::FailedPrecondition, Site::Fail, Why::Stale, [timeline.raw(), 0]));
        }
        if self.fail_with(timeline, time, cause) {
            Ok(())
        } else {
            Err(Fault::stale(Site::Fail, timeline.raw()))
        }
    }

    /// Fails a timeline, unless its turn is over by now.
    fn fail_with(&self, timeline: Handle<Timeline>, time: &'static Timeline, cause: &Fault) -> bool {
        let live = self.signalling.with(|()| {
            let live = self.timelines.live(timeline);
            if live {
                self.failures.set(time, self.failures.keep(cause));
            }
            live
        });
        tell::<E>(time, self.bell);
        live
    }

    /// Signals what an operation or batch was asked to signal. A point that cannot be signalled (its timeline was
    /// signalled past it by another) fails its timeline, so that nobody waits for ever.
    pub(crate) fn raise(&self, point: Point) {
        if let Err(why) = self.signal(point.timeline, point.value)
            && let Ok(time) = self.time(point.timeline, Site::Signal)
        {
            self.fail_with(point.timeline, time, &why);
        }
    }

    /// Checks the points an operation is to signal: live timelines of the caller's.
    pub(crate) fn check_signals(&self, signals: &[Point]) -> Result<(), Fault> {
        for point in signals {
            let time = self.time(point.timeline, Site::Signal)?;
            if time.lane.load(Relaxed) != 0 {
                return Err(Fault::caller(
                    Kind::FailedPrecondition,
                    Site::Signal,
                    Why::Stale,
                    [point.timeline.raw(), 0],
                ));
            }
        }
        Ok(())
    }

    /// Fails the points of an operation that will not run.
    pub(crate) fn fail_signals(&self, signals: &[Point], cause: &Fault) {
        for point in signals {
            if let Ok(time) = self.time(point.timeline, Site::Fail)
                && time.lane.load(Relaxed) == 0
            {
                self.fail_with(point.timeline, time, cause);
            }
        }
    }

    /// A timeline that ended before it reached what somebody waits for.
    pub(crate) fn abandoned(timeline: Handle<Timeline>) -> Fault {
        cancelled(timeline)
    }

    /// The runtime's own mistake, said instead of a panic.
    pub(crate) fn bug(site: Site) -> Fault {
        Fault::new(Kind::Internal, Blame::Wharf, site, Why::Unknown, [0; 2])
    }
}

fn cancelled(timeline: Handle<Timeline>) -> Fault {
    Fault::caller(Kind::Cancelled, Site::Timeline, Why::Stale, [timeline.raw(), 0])
}
