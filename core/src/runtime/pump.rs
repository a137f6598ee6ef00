//! The pump: moves everything that can move. Any thread, a main loop, a waiter; never an interrupt.

use super::{
    Order, Queue, Runtime,
    lane::LaneState,
    node::{Node, NodeList, Place},
    submit::{Handed, Order1},
};
use crate::{
    device::{Device, Gauge, Hint, Pace},
    env::{Deadline, Env},
    fault::Fault,
    sync::fence,
    timeline::{Failure, wake},
};
use core::sync::atomic::Ordering::*;

/// When to pump next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing waits.
    Idle,
    /// Something waits; the bell will ring.
    Told,
    /// Something waits on a backend that must be asked: after so many nanoseconds.
    In(u64),
}

impl Next {
    fn sooner(self, other: Next) -> Next {
        match (self, other) {
            (Next::In(a), Next::In(b)) => Next::In(a.min(b)),
            (Next::In(a), _) | (_, Next::In(a)) => Next::In(a),
            (Next::Idle, Next::Idle) => Next::Idle,
            _ => Next::Told,
        }
    }
}

impl<D: Device, E: Env> Runtime<D, E> {
    /// Moves held operations, due signals, jobs and late frees as far as they go. When somebody else is pumping, that
    /// one rings when he is through, so that nothing which came up meanwhile is left lying.
    pub fn poll(&self) -> Next {
        let next = self.pass_or_mark();
        // A pump thread that sleeps for good does not know that a backend must be asked from now on.
        let asleep = self.bell.pumps.load(SeqCst) != 0 && self.bell.dozing.load(SeqCst) == 0;
        if asleep && matches!(next, Next::In(_)) {
            self.bell.ring::<E>();
        }
        next
    }

    fn pass_or_mark(&self) -> Next {
        let passed = self.pump.try_with(|()| self.pass()).or_else(|| self.try_again());
        fence(SeqCst); // The lock is seen to be free before the mark is looked at; see `try_again`.
        if passed.is_some() && self.missed.load(Relaxed) != 0 && self.missed.swap(0, SeqCst) != 0 {
            self.bell.ring::<E>();
        }
        passed.unwrap_or(Next::Told)
    }

    /// A whole pass, after whoever pumps is through.
    pub(crate) fn pass_now(&self) {
        self.pump.with(|()| self.pass());
    }

    /// Leaves a mark for the one who pumps. He may have left just before it, so the lock is tried once more: if it is
    /// still held, the mark was there before he leaves.
    fn try_again(&self) -> Option<Next> {
        self.missed.store(1, SeqCst);
        self.pump.try_with(|()| self.pass())
    }

    fn pass(&self) -> Next {
        // Jobs first: what they submit to a lane that must be polled is then seen below.
        let mut next = self.run_works();
        for slot in 0..self.lanes.used() {
            if let Some(queue) = self.lanes.body(slot) {
                next = next.sooner(self.pump_lane(slot, queue));
            }
        }
        if self.run_late() > 0 { next.sooner(Next::Told) } else { next }
    }

    /// Promises to pump on this thread until `stop` says otherwise, sleeping on the bell in between.
    pub fn pump_until(&self, stop: impl Fn() -> bool) {
        self.bell.pumps.fetch_add(1, SeqCst);
        while !stop() {
            // Who counted his interest and rang before this is either seen by the writer of what he waits for, or what
            // was written is seen by the pass.
            fence(SeqCst);
            let seen = self.bell.epoch.load(Acquire);
            let at_most = match self.pass_or_mark() {
                Next::In(ns) => ns,
                Next::Idle | Next::Told => u64::MAX,
            };
            let dozes = u32::from(at_most != u64::MAX);
            self.bell.interest.fetch_add(1, SeqCst);
            self.bell.dozing.fetch_add(dozes, SeqCst);
            if !stop() {
                E::sleep(&self.bell.epoch, seen, Deadline::None, at_most);
            }
            self.bell.dozing.fetch_sub(dozes, SeqCst);
            self.bell.interest.fetch_sub(1, Relaxed);
        }
        self.bell.pumps.fetch_sub(1, SeqCst);
        fence(SeqCst);
        self.bell.ring::<E>();
        // Whoever sleeps on a timeline relied on this thread and has to pump for himself from now on.
        (0..self.timelines.used()).filter_map(|slot| self.timelines.body(slot)).for_each(wake::<E>);
    }

    /// Wakes the pump thread, for example to see that it should stop.
    pub fn ring(&self) {
        self.bell.ring::<E>();
    }

    /// Pumps until no lane is left: every queue was closed and its work has ended. `false`: not in time.
    pub fn drain(&self, until: Deadline) -> bool {
        let lanes = || {
            (0..self.lanes.used())
                .any(|slot| self.lanes.body(slot).is_some_and(|q| q.cell.with(|c| c.get().is_some())))
        };
        self.bell.interest.fetch_add(1, SeqCst);
        let mut in_time = true;
        while in_time && (lanes() || self.has_works()) {
            let seen = self.bell.epoch.load(Acquire);
            let at_most = if let Next::In(ns) = self.poll() { ns } else { 1_000_000 };
            in_time = E::sleep(&self.bell.epoch, seen, until, at_most);
        }
        self.pass_now(); // Whoever else pumps may be in the middle of the late list.
        self.trim_all();
        self.bell.interest.fetch_sub(1, Relaxed);
        in_time && self.late_count() == 0
    }

    fn pump_lane(&self, slot: u32, queue: &'static Queue<D, E>) -> Next {
        let (next, ended) = queue.cell.with(|cell| {
            let Some(lane) = cell.get() else { return (Next::Idle, None) };
            let poll_ns = poll_ns(lane.caps.pace);
            if poll_ns.is_some() {
                lane.gauge.poll();
            }
            self.settle(lane);
            let full = match lane.order {
                Order::InOrder => self.move_in_order(lane),
                Order::Free => self.move_free(lane),
            };
            self.settle(lane);
            self.give_signals(lane);
            let next = match poll_ns {
                Some(ns) if !lane.idle() => Next::In(ns),
                // Full of native waits, whose ends nobody tells of: what it has been given to tell of has ended.
                _ if full && lane.time.reached(lane.time.handed.get()) => Next::In(ON_REQUEST_NS),
                _ if lane.drained() && !lane.closing => Next::Idle,
                _ => Next::Told,
            };
            let over = lane.closing && lane.drained() && queue.pins.end_if_free();
            (if over { Next::Idle } else { next }, if over { cell.take() } else { None })
        });
        if let Some(state) = ended {
            self.end_lane(slot, queue, state);
        }
        next
    }

    /// Drops a closed lane outside its lock (that may join a thread) and gives the slot to the next turn.
    fn end_lane(&self, slot: u32, queue: &'static Queue<D, E>, state: LaneState<D>) {
        let (timeline, time) = (state.timeline, state.time);
        drop(state);
        time.lane.store(0, Release);
        self.release_timeline(timeline);
        queue.pins.reset();
        self.lanes.reuse(slot);
        self.bell.interest.fetch_sub(1, Relaxed);
    }

    /// Hands over from the front until something has to wait. Whether it is the backend that has no place.
    fn move_in_order(&self, lane: &mut LaneState<D>) -> bool {
        while let Some(node) = lane.held.pop() {
            if let Some(cause) = self.queue_failure(lane) {
                self.fail_held(lane, node, &cause);
                continue;
            }
            let value = node.value();
            match self.try_node(lane, &node, value) {
                Ok(Handed::Taken) => self.after_hand_over(lane, node),
                Ok(kept @ (Handed::Hold | Handed::Full)) => {
                    lane.held.push_front(node);
                    return matches!(kept, Handed::Full);
                }
                Ok(Handed::Dead(failure)) => self.refuse(lane, node, failure),
                Err(fault) => self.refuse(lane, node, self.failures.keep(&fault)),
            }
        }
        false
    }

    /// Hands over whatever can go; the rest keeps its order. Whether the backend had no place for some of it.
    fn move_free(&self, lane: &mut LaneState<D>) -> bool {
        let mut full = false;
        let mut all = core::mem::replace(&mut lane.held, NodeList::NEW);
        let mut behind = false; // The operation before it in its list stayed.
        while let Some(mut node) = all.pop() {
            let value = lane.tail + 1;
            let place = node.place();
            if behind {
                behind = place == Place::Before;
                lane.held.push(node);
                continue;
            }
            let failure = match lane.time.failed.load(Acquire) {
                0 => match self.try_node(lane, &node, value) {
                    Ok(Handed::Taken) => {
                        lane.tail = value;
                        node.set_value(value);
                        self.after_hand_over(lane, node);
                        continue;
                    }
                    Ok(kept @ (Handed::Hold | Handed::Full)) => {
                        full |= matches!(kept, Handed::Full);
                        behind = place == Place::Before;
                        lane.held.push(node);
                        continue;
                    }
                    Ok(Handed::Dead(failure)) => failure,
                    Err(fault) => self.failures.keep(&fault),
                },
                code => self.failures.share(Failure(code)),
            };
            if place != Place::Alone {
                self.break_off(lane, node, &mut all, failure);
                continue;
            }
            self.fail_signals(node.signals(), &self.failures.read(failure));
            self.failures.drop(failure);
            self.let_go(node);
        }
        full
    }

    /// Never hinted as followed by more: what follows may have to stay held, and nobody would start this one.
    fn try_node(&self, lane: &mut LaneState<D>, node: &Node, value: u64) -> Result<Handed, Fault> {
        let hint = Hint::None;
        let order =
            Order1 { op: node.op(), waits: node.waits(), value, tell: true, stamp: node.stamp(), hint };
        self.hand_over(lane, &order)
    }

    /// A node that was handed over stays if signals are due when it ends.
    fn after_hand_over(&self, lane: &mut LaneState<D>, node: Node) {
        if node.signals().is_empty() {
            self.let_go(node);
        } else {
            lane.signals.push(node);
        }
    }

    /// The first operation that cannot run poisons a queue in order; those behind it go the same way.
    fn refuse(&self, lane: &mut LaneState<D>, node: Node, failure: Failure) {
        let value = node.value();
        let cause = self.failures.read(failure);
        self.fail_held(lane, node, &cause);
        self.poison(lane, value, failure);
    }

    /// What was held on a queue in order that fails. Something of its list may be under way: then the signals fail with
    /// the queue, which waits for that.
    fn fail_held(&self, lane: &mut LaneState<D>, node: Node, cause: &Fault) {
        if node.place() == Place::Alone {
            self.fail_signals(node.signals(), cause);
            self.let_go(node);
        } else {
            self.after_hand_over(lane, node);
        }
    }

    /// An operation of a list on a free queue cannot run: nor do those behind it in the list, and its signals fail once
    /// what was handed over of it has ended. Takes over the failure.
    fn break_off(&self, lane: &mut LaneState<D>, node: Node, all: &mut NodeList, failure: Failure) {
        let mut last = node;
        while last.place() == Place::Before
            && let Some(next) = all.pop()
        {
            self.let_go(core::mem::replace(&mut last, next));
        }
        last.set_value(lane.tail);
        if last.signals().is_empty() {
            self.failures.drop(failure);
        } else {
            last.set_failure(failure);
        }
        self.after_hand_over(lane, last);
    }

    /// Signals what is due; a failed lane fails what is left.
    fn give_signals(&self, lane: &mut LaneState<D>) {
        while let Some(node) = lane.signals.first() {
            let value = node.value();
            let cause = match lane.time.look(value) {
                Ok(false) => return,
                Ok(true) => node.failure().map(|failure| self.failures.read(failure)),
                Err(failure) => Some(self.failures.read(failure)),
            };
            let Some(node) = lane.signals.pop() else { return };
            if let Some(failure) = node.failure() {
                self.failures.drop(failure);
            }
            match cause {
                None => node.signals().iter().for_each(|point| self.raise(*point)),
                Some(cause) => self.fail_signals(node.signals(), &cause),
            }
            self.let_go(node);
        }
    }
}

/// How often a lane with work must be asked; `None`: never, it tells by itself.
pub(crate) fn poll_ns(pace: Pace) -> Option<u64> {
    match pace {
        Pace::Pushed => None,
        Pace::OnRequest => Some(ON_REQUEST_NS),
        Pace::Polled { every_ns } => Some(every_ns.into()),
    }
}

/// A lane that tells only of what it was asked to tell is looked at so often while somebody waits for the rest, and one
/// that is full of what it does not tell of.
const ON_REQUEST_NS: u64 = 100_000;
