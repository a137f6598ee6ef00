//! Several operations that are accepted as one: those of a command list, or the pieces of what a device does not do at
//! once.
//!
//! Each operation has its own value on the lane's timeline; the last one's is the point of the sequence. Operations go over
//! in arrays, and the backend takes a prefix.
//!
//! - *Holding.* Where the waits are not met, or something is held before it, all of it is held, an operation to a
//!   node: the waits at the first, the signals at the last. Nodes capture bytes and addresses, so what they were
//!   made from may be gone by then. Where the waits are met, nodes for what the backend has no place for are made
//!   first, so that a store that is too small is `ResourceExhausted` with nothing under way. A queue in order keeps the
//!   nodes together by its own rule; on a free queue a node that stays keeps the rest of its sequence behind it
//!   (`Place::Before`), and others pass.
//! - *Failure.* A failed wait, or a backend that refuses the first operation: nothing of it runs and the signals
//!   fail. A refusal further on: what was taken runs, the rest does not, and only then do the signals fail; on a queue
//!   in order the point is given out and fails with the queue, as for any held operation that is refused. On a free
//!   queue without signals nobody would be told, so the call answers the fault.
//! - *Late frees.* Checks and hand-over are one critical section, so a free either is seen by the checks or finds the
//!   operations counted in `accepted`; each node carries its own number there.

use super::{
    Around, Order, Runtime,
    lane::LaneState,
    list_run::Args,
    node::{self, Node, NodeList, Place},
    submit::{Accepted, Handed},
};
use crate::{
    device::{Device, Hint, Lane, Op, Pace, Step},
    env::Env,
    fault::{Fault, Site},
    timeline::Point,
};
use core::{ops::Range, sync::atomic::Ordering::*};

/// Operations that go over in one array.
const CHUNK: usize = 16;

/// Operations by number, at least one. Each can be made again and again, and comes out the same.
pub(super) trait Sequence: Copy {
    fn len(&self) -> usize;
    /// Writes what operations of `range` borrow from, for as many as fit; where the next one begins.
    fn prepare(&self, range: Range<usize>, _args: &mut Args) -> usize {
        range.end
    }
    /// Operation number `i` as a backend takes it; what was prepared comes off the front of `args`.
    fn op<'p>(&'p self, i: usize, args: &mut &'p [u8]) -> Result<Op<'p>, Fault>;
}

impl<D: Device, E: Env> Runtime<D, E> {
    /// Everything is checked: hands over or holds.
    pub(super) fn accept_sequence<S: Sequence>(
        &self,
        lane: &mut LaneState<D>,
        run: S,
        around: &Around<'_>,
    ) -> Accepted {
        let (count, first) = (run.len(), lane.tail + 1);
        let last = lane.tail + count as u64;
        let may_pass = lane.order == Order::Free || lane.held.is_empty();
        let ready = if may_pass { self.hand_waits(lane, around.waits)? } else { Handed::Hold };
        let mut failed = None;
        match ready {
            Handed::Taken => self.start(lane, run, around)?,
            Handed::Hold | Handed::Full => {
                let nodes = self.nodes_of(lane, run, 0..count, around.waits, around.signals)?;
                self.push_held(lane, nodes);
                if lane.order == Order::InOrder {
                    lane.tail = last;
                }
            }
            Handed::Dead(failure) => {
                if lane.order == Order::InOrder {
                    lane.tail = last;
                    self.poison(lane, first, self.failures.share(failure));
                }
                failed = Some(failure);
            }
        }
        lane.accepted += count as u64;
        let point = Point { timeline: lane.timeline, value: last };
        Ok(((lane.order == Order::InOrder).then_some(point), failed))
    }

    /// Hands over as much as the backend takes, and holds the rest.
    fn start<S: Sequence>(&self, lane: &mut LaneState<D>, run: S, around: &Around<'_>) -> Result<(), Fault> {
        let (count, first, signals) = (run.len(), lane.tail + 1, around.signals);
        let unfinished = lane.time.handed.get().saturating_sub(lane.time.value.get());
        let room = u64::from(lane.caps.depth).saturating_sub(unfinished).min(count as u64) as usize;
        let mut held = self.nodes_of(lane, run, room..count, &[], signals)?;
        let of_these = if room == count { signals } else { &[] };
        let mut due = self.due(lane, first + count as u64 - 1, of_these)?;
        let around = if room == count { *around } else { Around { hint: Hint::None, ..*around } };
        let (taken, mut refused) = self.hand_all(lane, run, room, &around);
        if taken < room && refused.is_none() {
            match self.nodes_of(lane, run, taken..room, &[], of_these) {
                Err(fault) => refused = Some(fault),
                Ok(front) => {
                    let behind = core::mem::replace(&mut held, front);
                    each(behind, |node| held.push(node));
                    due.take().into_iter().for_each(|node| self.nodes.give(node));
                }
            }
        }
        let told = due.or_else(|| refused.is_some().then(|| self.last_of(&mut held)).flatten());
        if let Some(fault) = refused
            && taken == 0
        {
            told.into_iter().for_each(|node| self.nodes.give(node));
            return Err(fault);
        }
        let ended = first + taken as u64 - 1;
        lane.tail = if lane.order == Order::InOrder { first + count as u64 - 1 } else { ended };
        if taken > 0 {
            lane.time.handed.set(ended);
            self.wake_to_poll(lane);
        }
        match refused {
            None => {
                told.into_iter().for_each(|node| self.expect_signals(lane, node));
                self.push_held(lane, held);
                Ok(())
            }
            Some(fault) => self.end_early(lane, fault, ended, told),
        }
    }

    /// The backend refused in the middle: `ended` is the value of the last operation it took.
    fn end_early(
        &self,
        lane: &mut LaneState<D>,
        fault: Fault,
        ended: u64,
        told: Option<Node>,
    ) -> Result<(), Fault> {
        if lane.order == Order::InOrder {
            if let Some(mut node) = told {
                node.set_value(lane.tail);
                self.expect_signals(lane, node);
            }
            self.poison(lane, ended + 1, self.failures.keep(&fault));
            return Ok(());
        }
        let mut node = told.ok_or(fault)?;
        node.set_value(ended);
        node.set_failure(self.failures.keep(&fault));
        self.expect_signals(lane, node);
        Ok(())
    }

    /// The node that carries the signals; the others are given back.
    fn last_of(&self, held: &mut NodeList) -> Option<Node> {
        let mut last: Option<Node> = None;
        each(core::mem::replace(held, NodeList::NEW), |node| {
            last.replace(node).into_iter().for_each(|node| self.nodes.give(node));
        });
        let node = last?;
        if node.signals().is_empty() {
            self.nodes.give(node);
            return None;
        }
        Some(node)
    }

    /// Gives the first `count` operations to the backend: how many it took, and why not more.
    fn hand_all<S: Sequence>(
        &self,
        lane: &mut LaneState<D>,
        run: S,
        count: usize,
        around: &Around<'_>,
    ) -> (usize, Option<Fault>) {
        let quiet =
            around.hint == Hint::More && around.signals.is_empty() && lane.caps.pace == Pace::OnRequest;
        let (first, stamp) = (lane.tail + 1, lane.stamp);
        let mut at = 0;
        while at < count {
            let mut args = Args::new();
            let mut steps = heapless::Vec::<Step<'_>, CHUNK>::new();
            let end = run.prepare(at..count.min(at + CHUNK), &mut args);
            let mut patched = args.as_slice();
            for i in at..end {
                let op = match run.op(i, &mut patched) {
                    Ok(op) => op,
                    Err(fault) => return (at, Some(fault)),
                };
                let tell = i + 1 == count && !quiet;
                let _ = steps.push(Step { op, done: first + i as u64, tell, stamp });
            }
            let hint = if end == count { around.hint } else { Hint::More };
            match lane.lane.submit(&steps, hint) {
                Ok(taken) if taken == steps.len() => at = end,
                Ok(taken) => return (at + taken, None),
                Err((taken, fault)) => return (at + taken, Some(fault)),
            }
        }
        (at, None)
    }

    /// Nodes for some of the operations; all or none.
    fn nodes_of<S: Sequence>(
        &self,
        lane: &LaneState<D>,
        run: S,
        range: Range<usize>,
        waits: &[Point],
        signals: &[Point],
    ) -> Result<NodeList, Fault> {
        let mut nodes = NodeList::NEW;
        let full = Fault::full(Site::Submit, self.nodes.capacity());
        for i in range.clone() {
            let last = i + 1 == run.len();
            let mut args = Args::new();
            run.prepare(i..i + 1, &mut args);
            let made = run.op(i, &mut args.as_slice()).and_then(|op| {
                let parts = node::Parts {
                    op,
                    waits: if i == range.start { waits } else { &[] },
                    signals: if last { signals } else { &[] },
                    value: lane.tail + 1 + i as u64,
                    order: lane.accepted + 1 + i as u64,
                    stamp: lane.stamp,
                    place: if last { Place::Last } else { Place::Before },
                };
                self.nodes.make::<E>(&parts).ok_or(full)
            });
            match made {
                Ok(node) => nodes.push(node),
                Err(fault) => {
                    each(nodes, |node| self.nodes.give(node));
                    return Err(fault);
                }
            }
        }
        Ok(nodes)
    }

    fn push_held(&self, lane: &mut LaneState<D>, nodes: NodeList) {
        let mut count = 0;
        each(nodes, |node| {
            self.watch_all(&node);
            lane.held.push(node);
            count += 1;
        });
        if count > 0 {
            self.bell.interest.fetch_add(count, SeqCst);
            self.bell.ring::<E>();
        }
    }

    fn watch_all(&self, node: &Node) {
        for point in node.waits().iter().chain(node.signals()) {
            self.watch(point.timeline);
        }
    }
}

fn each(mut nodes: NodeList, mut f: impl FnMut(Node)) {
    while let Some(node) = nodes.pop() {
        f(node);
    }
}
