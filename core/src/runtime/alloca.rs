//! Memory in the order of a queue: a handle at once, memory that may be used from a point on, and given back at one.
//!
//! The backend's allocate is no operation of a lane, so the memory is there early; what the order brings is who may use
//! it when. Operations may name it at once (they wait for the point themselves, or follow on the same queue); the host
//! may touch it between the two points only.

use super::{Around, Order, Queue, Runtime, late::LateItem};
use crate::{
    device::{Device, Op, Want},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    record::{Record, state},
    timeline::{Look, Point},
};
use core::sync::atomic::Ordering::*;

impl<D: Device, E: Env> Runtime<D, E> {
    /// Memory on the queue's device that may be used once the operation has ended. The point that it ends at, on a queue
    /// in order; on one of free order the first signal says so, and there must be one.
    ///
    /// # Errors
    /// As [`Runtime::allocate`] and [`Runtime::submit`]; in every case the signals fail too and nothing is left
    /// allocated. `InvalidArgument` without a signal on a queue of free order.
    pub fn alloca(
        &self,
        queue: Handle<Queue<D, E>>,
        want: &Want,
        around: &Around<'_>,
    ) -> Result<(Handle<Record>, Option<Point>), Fault> {
        let allocated = self.alloca_checks(queue, around).and_then(|device| self.allocate(device, want));
        let record = allocated.inspect_err(|fault| self.fail_signals(around.signals, fault))?;
        let submitted = self.submit(queue, around.waits, Op::Barrier, around.signals, around.hint);
        let point = submitted.inspect_err(|_| {
            let _ = self.free(record);
        })?;
        let commit = point.or(around.signals.first().copied()).ok_or(Self::bug(Site::Allocate))?;
        self.within(record, Site::Allocate, |body| {
            if self.watch(commit.timeline) {
                body.commit_value.set(commit.value);
                body.commit_timeline.set(commit.timeline.raw());
                if body.go(state::LIVE, state::PENDING) {
                    self.committed(body);
                } else {
                    self.uncommit(body); // Freed by somebody who found it by its address.
                }
            }
            Ok((record, point))
        })
    }

    fn alloca_checks(&self, queue: Handle<Queue<D, E>>, around: &Around<'_>) -> Result<usize, Fault> {
        let (device, order) =
            self.inside(queue, Site::Allocate, |lane| Ok((lane.device as usize, lane.order)))?;
        if order == Order::Free && around.signals.is_empty() {
            return Err(Fault::caller(Kind::InvalidArgument, Site::Allocate, Why::Zero, [0; 2]));
        }
        Ok(device)
    }

    /// Gives memory back once the operation has ended and nothing uses it any more. Until then it may not be touched by
    /// the host. If the operation fails the memory stays. For memory that was not allocated in the order of a queue this
    /// is a barrier, and its owner frees it.
    ///
    /// # Errors
    /// `FailedPrecondition` if its return is queued already; as [`Runtime::submit`]. The signals fail too.
    pub fn dealloca(
        &self,
        queue: Handle<Queue<D, E>>,
        record: Handle<Record>,
        around: &Around<'_>,
    ) -> Result<Option<Point>, Fault> {
        let begun = self.begin_close(queue, record, around);
        let closes = begun.inspect_err(|fault| self.fail_signals(around.signals, fault))?;
        let submitted = self.submit(queue, around.waits, Op::Barrier, around.signals, around.hint);
        let Some(body) = closes else { return submitted };
        let end = match &submitted {
            Ok(point) => point.or(around.signals.first().copied()).filter(|end| self.watch(end.timeline)),
            Err(_) => None,
        };
        match end {
            Some(end) => {
                body.late.begin_after(end);
                self.be_late(LateItem::Record(record.slot()));
                self.poll();
            }
            None => body.state.store(state::LIVE, Release),
        }
        submitted
    }

    /// Marks memory as to be given back; `None` if it was not allocated in the order of a queue.
    fn begin_close(
        &self,
        queue: Handle<Queue<D, E>>,
        record: Handle<Record>,
        around: &Around<'_>,
    ) -> Result<Option<&'static Record>, Fault> {
        self.alloca_checks(queue, around).map_err(|fault| fault.at(Site::Free))?;
        self.within(record, Site::Free, |body| {
            if body.commit_timeline.get() == 0 && body.commit_value.get() == 0 {
                return Ok(None);
            }
            self.committed(body);
            // A queue in order gives back what it has not come to allocate yet, in that order.
            if body.go(state::PENDING, state::CLOSING) {
                self.uncommit(body);
            } else if !body.go(state::LIVE, state::CLOSING) {
                let now = body.state.load(Acquire) as u64;
                return Err(Fault::caller(Kind::FailedPrecondition, Site::Free, Why::State, [now, 0]));
            }
            Ok(Some(body))
        })
    }

    /// Pending memory whose point is reached is live; one whose point never will be stays pending, and whoever touches
    /// it is told.
    pub(crate) fn committed(&self, body: &Record) {
        let timeline = Handle::from_raw(body.commit_timeline.get());
        if timeline == Handle::NULL || body.state.load(Acquire) != state::PENDING {
            return;
        }
        if self.look(Point { timeline, value: body.commit_value.get() }) == Ok(Look::Reached)
            && body.go(state::PENDING, state::LIVE)
        {
            self.uncommit(body);
        }
    }

    /// Whether the host may touch memory now.
    ///
    /// # Errors
    /// `FailedPrecondition` before its allocation is reached and after its return was queued; `InvalidHandle`.
    pub fn touchable_now(&self, record: Handle<Record>) -> Result<(), Fault> {
        self.touchable(record, Site::Map)
    }

    pub(crate) fn touchable(&self, record: Handle<Record>, site: Site) -> Result<(), Fault> {
        self.within(record, site, |body| self.touchable_body(body, site))
    }

    pub(crate) fn touchable_body(&self, body: &Record, site: Site) -> Result<(), Fault> {
        self.committed(body);
        match body.state.load(Acquire) {
            state::LIVE => Ok(()),
            now => Err(Fault::caller(Kind::FailedPrecondition, site, Why::State, [now as u64, 0])),
        }
    }

    /// A return whose point was reached: nothing new may use the memory.
    pub(crate) fn close_now(&self, item: LateItem) {
        if let LateItem::Record(slot) = item
            && let Some(body) = self.records.body(slot)
        {
            body.go(state::CLOSING, state::LATE);
        }
    }

    /// A return that failed: the memory is live again.
    pub(crate) fn keep_open(&self, item: LateItem) {
        if let LateItem::Record(slot) = item
            && let Some(body) = self.records.body(slot)
        {
            body.go(state::CLOSING, state::LIVE);
        }
    }
}
