//! From a submitted operation to the backend: checked, then handed over or held.
//!
//! A wait has four answers. Reached: drop it. Failed: the operation fails. Already handed to the same backend, which
//! can wait natively, on a queue in order: hand that wait over too. Else: hold the operation. So native waits form no cycle and never name
//! work that a backend has not seen.

use super::{
    Around, Order, Queue, Runtime,
    lane::LaneState,
    node::{self, Node},
};
use crate::{
    device::{Caps, Device, Hint, Lane, Op, Pace, Step, op},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    sync::fence,
    timeline::{Failure, Point, tell},
};
use core::sync::atomic::Ordering::*;

/// What a wait point asks for.
enum Need {
    Met,
    Native,
    Later,
    Dead(Failure),
}

/// What became of an operation that was to be handed over.
pub(crate) enum Handed {
    Taken,
    /// Something is still ahead.
    Hold,
    /// The backend is full.
    Full,
    /// A wait failed.
    Dead(Failure),
}

/// The point of what was accepted, and the failure of what will not run, for its signals.
pub(crate) type Accepted = Result<(Option<Point>, Option<Failure>), Fault>;

/// What is to be handed over.
#[derive(Clone, Copy)]
pub(crate) struct Order1<'a> {
    pub(crate) op: Op<'a>,
    pub(crate) waits: &'a [Point],
    pub(crate) value: u64,
    pub(crate) tell: bool,
    pub(crate) stamp: bool,
    pub(crate) hint: Hint,
}

impl<D: Device, E: Env> Runtime<D, E> {
    /// Submits one operation by addresses that the caller has checked: it runs once all `waits` are reached (and, on a
    /// queue in order, everything before it has ended), then `signals` are signalled. Never waits. Borrowed bytes are
    /// captured. The point that it ends at, on a queue in order.
    ///
    /// # Errors
    /// What is wrong with the call, or the failure of the queue; then `signals` fail with the same fault. A failure
    /// while it runs, or of a wait, comes by the point and the signals.
    pub fn submit(
        &self,
        queue: Handle<Queue<D, E>>,
        waits: &[Point],
        op: Op<'_>,
        signals: &[Point],
        hint: Hint,
    ) -> Result<Option<Point>, Fault> {
        self.issue(queue, &Around { waits, signals, hint }, |_, _| Ok(op))
    }

    /// As [`Runtime::submit`]; the operation is made, and checked, under the lane's lock from the number and caps of
    /// its device.
    pub(crate) fn issue<'a>(
        &self,
        queue: Handle<Queue<D, E>>,
        around: &Around<'_>,
        make: impl FnOnce(usize, &Caps) -> Result<Op<'a>, Fault>,
    ) -> Result<Option<Point>, Fault> {
        self.issue_by(queue, around.signals, |lane| {
            let op = make(lane.device as usize, &lane.caps)?;
            self.accept(lane, around, op)
        })
    }

    /// Runs `accept` under the lane's lock, and fails `signals` where it says that nothing will run.
    pub(crate) fn issue_by(
        &self,
        queue: Handle<Queue<D, E>>,
        signals: &[Point],
        accept: impl FnOnce(&mut LaneState<D>) -> Accepted,
    ) -> Result<Option<Point>, Fault> {
        let submitted = self.check_signals(signals).and_then(|()| self.inside(queue, Site::Submit, accept));
        match submitted {
            Ok((point, None)) => Ok(point),
            Ok((point, Some(failure))) => {
                // A wait had failed: nothing wrong with this call, so only the points tell.
                let cause = self.failures.read(failure);
                self.fail_signals(signals, &cause);
                self.failures.drop(failure);
                Ok(point)
            }
            Err(fault) => {
                self.fail_signals(signals, &fault);
                Err(fault)
            }
        }
    }

    /// Under the lane's lock. A failure comes back for the signals of an operation that will not run.
    pub(crate) fn accept(&self, lane: &mut LaneState<D>, around: &Around<'_>, op: Op<'_>) -> Accepted {
        let Around { waits, signals, hint } = *around;
        if let Some(fault) = self.queue_failure(lane) {
            return Err(fault);
        }
        if !lane.caps.takes(op.kind()) || op.kind() == op::AFTER {
            return Err(Fault::backend(Kind::Unsupported, Site::Submit, Why::Missing, [op.kind() as u64, 0]));
        }
        self.check_waits(lane, waits)?;
        let value = lane.tail + 1;
        let may_pass = lane.order == Order::Free || lane.held.is_empty();
        // A backend that pushes tells of every step; one that pushes on request is spared what nobody looks at.
        let quiet = hint == Hint::More && signals.is_empty() && lane.caps.pace == Pace::OnRequest;
        let order = Order1 { op, waits, value, tell: !quiet, stamp: lane.stamp, hint };
        // Before the backend has it: an operation that was handed over cannot be refused any more.
        let due = if may_pass { self.due(lane, value, signals)? } else { None };
        let handed = if may_pass { self.hand_over(lane, &order) } else { Ok(Handed::Hold) };
        let due = match (due, &handed) {
            (Some(node), Err(_) | Ok(Handed::Hold | Handed::Full | Handed::Dead(_))) => {
                self.nodes.give(node);
                None
            }
            (due, _) => due,
        };
        let mut failed = None;
        match handed? {
            Handed::Taken => {
                lane.tail = value;
                self.wake_to_poll(lane);
                if let Some(node) = due {
                    self.expect_signals(lane, node);
                }
            }
            Handed::Hold | Handed::Full => self.hold(lane, &order, signals)?,
            Handed::Dead(failure) if lane.order == Order::InOrder => {
                lane.tail = value;
                self.poison(lane, value, self.failures.share(failure));
                failed = Some(failure);
            }
            Handed::Dead(failure) => failed = Some(failure),
        }
        lane.accepted += 1;
        let point = Point { timeline: lane.timeline, value };
        Ok(((lane.order == Order::InOrder).then_some(point), failed))
    }

    /// A lane that must be asked has work: a pump thread that sleeps for good has to begin asking.
    pub(crate) fn wake_to_poll(&self, lane: &LaneState<D>) {
        if lane.time.polled.load(Relaxed) != 0
            && self.bell.pumps.load(SeqCst) != 0
            && self.bell.dozing.load(SeqCst) == 0
        {
            self.bell.ring::<E>();
        }
    }

    /// A wait for a point of the queue itself that is still to come would never end.
    pub(crate) fn check_waits(&self, lane: &LaneState<D>, waits: &[Point]) -> Result<(), Fault> {
        for point in waits {
            self.time(point.timeline, Site::Wait)?;
            if point.timeline == lane.timeline && point.value > lane.tail {
                return Err(Fault::caller(
                    Kind::InvalidArgument,
                    Site::Wait,
                    Why::Limit,
                    [point.value, lane.tail],
                ));
            }
        }
        Ok(())
    }

    /// Holds an operation in core, with everything it borrowed.
    fn hold(&self, lane: &mut LaneState<D>, order: &Order1<'_>, signals: &[Point]) -> Result<(), Fault> {
        let parts = node::Parts {
            op: order.op,
            waits: order.waits,
            signals,
            value: order.value,
            order: lane.accepted + 1,
            stamp: order.stamp,
            place: node::Place::Alone,
        };
        let node = self.nodes.make::<E>(&parts).ok_or(Fault::full(Site::Submit, self.nodes.capacity()))?;
        for point in order.waits.iter().chain(signals) {
            // Checked to be live; should it end right now, the wait will find it gone.
            self.watch(point.timeline);
        }
        if lane.order == Order::InOrder {
            lane.tail = order.value;
        }
        lane.held.push(node);
        self.bell.interest.fetch_add(1, SeqCst);
        self.bell.ring::<E>();
        Ok(())
    }

    /// A node for what is due when the lane reaches `value`, if anything is.
    pub(crate) fn due(
        &self,
        lane: &LaneState<D>,
        value: u64,
        signals: &[Point],
    ) -> Result<Option<Node>, Fault> {
        if signals.is_empty() {
            return Ok(None);
        }
        let order = lane.accepted + 1;
        let place = node::Place::Alone;
        let parts = node::Parts { op: Op::Barrier, waits: &[], signals, value, order, stamp: false, place };
        let node = self.nodes.make::<E>(&parts);
        node.map(Some).ok_or(Fault::full(Site::Submit, self.nodes.capacity()))
    }

    /// Notes what is due, now that the backend has the operation.
    pub(crate) fn expect_signals(&self, lane: &mut LaneState<D>, node: Node) {
        for point in node.signals() {
            self.watch(point.timeline);
        }
        lane.signals.push(node);
        self.bell.interest.fetch_add(1, SeqCst);
        self.bell.ring::<E>();
    }

    /// Lets go of a node and of the timelines it kept.
    pub(crate) fn let_go(&self, node: Node) {
        for point in node.waits().iter().chain(node.signals()) {
            self.unwatch(point.timeline);
        }
        self.nodes.give(node);
        self.bell.interest.fetch_sub(1, Relaxed);
    }

    fn need(&self, own: &LaneState<D>, point: Point) -> Need {
        let Ok(time) = self.time(point.timeline, Site::Wait) else {
            return Need::Dead(self.failures.keep(&Self::abandoned(point.timeline)));
        };
        let look = time.look(point.value);
        if !self.timelines.live(point.timeline) {
            // Not held yet, so nothing kept the slot: what was seen may be the next turn's.
            return Need::Dead(self.failures.keep(&Self::abandoned(point.timeline)));
        }
        match look {
            Ok(true) => return Need::Met,
            Err(failure) => return Need::Dead(self.failures.share(failure)),
            Ok(false) => {}
        }
        if core::ptr::eq(time, own.time) && own.order == Order::InOrder {
            return Need::Met; // Its own earlier work; order sees to it.
        }
        let backend = own.time.backend.load(Relaxed);
        // A lane is in order: on a queue of free order a native wait would hold what comes after it.
        let same = backend != 0 && own.order == Order::InOrder && time.backend.load(Relaxed) == backend;
        if same && time.handed.get() >= point.value { Need::Native } else { Need::Later }
    }

    /// Gives the operation and its native waits to the backend, if nothing it waits for has to be held.
    pub(crate) fn hand_over(&self, lane: &mut LaneState<D>, order: &Order1<'_>) -> Result<Handed, Fault> {
        match self.hand_waits(lane, order.waits)? {
            Handed::Taken => {}
            other => return Ok(other),
        }
        let step = Step { op: order.op, done: order.value, tell: order.tell, stamp: order.stamp };
        match lane.lane.submit(&[step], order.hint) {
            Ok(0) => Ok(Handed::Full),
            Ok(_) => {
                lane.time.handed.set(order.value);
                Ok(Handed::Taken)
            }
            Err((_, fault)) => Err(fault),
        }
    }

    /// Gives native waits to the backend, if nothing has to be held. `Taken`: nothing is left to wait for.
    pub(crate) fn hand_waits(&self, lane: &mut LaneState<D>, waits: &[Point]) -> Result<Handed, Fault> {
        for point in waits {
            match self.need(lane, *point) {
                Need::Met | Need::Native => {}
                Need::Later => return Ok(Handed::Hold),
                Need::Dead(failure) => return Ok(Handed::Dead(failure)),
            }
        }
        // A wait that leaves no room for what follows it must be started by itself.
        let unfinished = lane.time.handed.get().saturating_sub(lane.time.value.get());
        let fits = unfinished.saturating_add(waits.len() as u64) < lane.caps.depth.into();
        let hint = if fits { Hint::More } else { Hint::None };
        for point in waits {
            match self.need(lane, *point) {
                Need::Native => match self.wait_natively(lane, *point, hint)? {
                    Handed::Taken => {}
                    other => return Ok(other),
                },
                Need::Dead(failure) => return Ok(Handed::Dead(failure)),
                _ => {}
            }
        }
        Ok(Handed::Taken)
    }

    /// Hands a wait for another lane over; that lane is pinned until the backend knows of it.
    fn wait_natively(&self, lane: &mut LaneState<D>, point: Point, hint: Hint) -> Result<Handed, Fault> {
        let Ok(time) = self.time(point.timeline, Site::Wait) else { return Ok(Handed::Hold) };
        let slot = time.lane.load(Acquire);
        let Some(other) = slot.checked_sub(1).and_then(|slot| self.lanes.body(slot)) else {
            return Ok(Handed::Hold);
        };
        if !other.pins.pin() {
            return Ok(Handed::Hold);
        }
        // Pinned, the lane stays; if it is still that of the point and the point is ahead, its name is good.
        let ahead = time.lane.load(Acquire) == slot && time.look(point.value) == Ok(false);
        let taken = if ahead {
            let after = Op::After { lane: time.native.load(Relaxed), value: point.value };
            let taken = lane.lane.submit(&[Step { op: after, done: 0, tell: false, stamp: false }], hint);
            taken.map(|n| if n == 1 { Handed::Taken } else { Handed::Full })
        } else if time.reached(point.value) {
            Ok(Handed::Taken)
        } else {
            Ok(Handed::Hold)
        };
        self.leave(&other.pins);
        taken.map_err(|(_, fault)| fault)
    }

    /// From `value` on the queue fails, once everything before has ended. Takes over the failure.
    pub(crate) fn poison(&self, lane: &mut LaneState<D>, value: u64, failure: Failure) {
        if lane.poison.is_some() {
            self.failures.drop(failure);
            return;
        }
        lane.poison = Some((value, failure));
        self.bell.interest.fetch_add(1, SeqCst);
        fence(SeqCst); // Nobody rings here: the backend sees the interest, or its progress is seen now.
        self.settle(lane);
    }

    /// Applies a poison whose time has come.
    pub(crate) fn settle(&self, lane: &mut LaneState<D>) {
        if let Some((value, failure)) = lane.poison
            && (lane.time.reached(value - 1) || lane.time.failed.load(Acquire) != 0)
        {
            lane.poison = None;
            self.failures.set(lane.time, failure);
            self.bell.interest.fetch_sub(1, Relaxed);
            tell::<E>(lane.time, self.bell);
        }
    }
}
