//! Command lists submitted: everything is checked under the lane's lock, then all or nothing is accepted.
//!
//! Each operation has its own value on the lane's timeline; the last one's is the point of the list. Operations go over
//! in arrays, and the backend takes a prefix.
//!
//! - *Holding.* Where the waits are not met, or something is held before it, all of the list is held, an operation to a
//!   node: the waits at the first, the signals at the last. Nodes capture bytes and addresses, so the list and its
//!   binding table may be gone by then. Where the waits are met, nodes for what the backend has no place for are made
//!   first, so that a store that is too small is `ResourceExhausted` with nothing under way. A queue in order keeps the
//!   nodes together by its own rule; on a free queue a node that stays keeps the rest of its list behind it
//!   (`Place::Before`), and others pass.
//! - *Failure.* A failed wait, or a backend that refuses the first operation: nothing of the list runs and the signals
//!   fail. A refusal further on: what was taken runs, the rest does not, and only then do the signals fail; on a queue
//!   in order the point is given out and fails with the queue, as for any held operation that is refused. On a free
//!   queue without signals nobody would be told, so the call answers the fault.
//! - *Late frees.* Checks and hand-over are one critical section, so a free either is seen by the checks or finds the
//!   operations counted in `accepted`; each node carries its own number there. Bindings are resolved once, before
//!   anything is handed over: a free in the middle of it changes nothing.

use super::{
    Around, CommandList, Order, Queue, Runtime, Span,
    lane::LaneState,
    list::{Recorded, Stage, Use},
    list_run::{Args, Bound, Run, Table},
    node::{self, Node, NodeList, Place},
    submit::{Accepted, Handed},
    transfer::peer_of,
};
use crate::{
    buffer::{Home, WHOLE},
    device::{Device, Hint, Lane, Op, Pace, Step},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    timeline::Point,
};
use core::{ops::Range, sync::atomic::Ordering::*};

/// Operations that go over in one array.
const CHUNK: usize = 16;

impl<D: Device, E: Env> Runtime<D, E> {
    /// Submits a list: its operations run one after the other, once `waits` are reached (and, on a queue in order,
    /// everything before has ended); then `signals` are signalled. `bindings` are copied: what slot `n` stands for is
    /// `bindings[n]`, whose length may be [`WHOLE`]; a null root where no operation refers to the slot. The point that
    /// the last operation ends at, on a queue in order. A list without operations is a barrier.
    ///
    /// # Errors
    /// `FailedPrecondition` for a list that has not ended; `InvalidDevice` for a queue of another device; `InvalidHandle`
    /// if memory or a kernel of the list is gone; `InvalidArgument` for no bindings, or none for a slot that is used, or
    /// lengths that do not go together or overlap; `OutOfRange` for fewer bindings than needed or references past their
    /// ends; `PermissionDenied`; `ResourceExhausted`; as [`Runtime::submit`]. In every case nothing of the list runs, but
    /// for a free queue whose backend refuses in the middle of a list without signals.
    pub fn execute<H: Home>(
        &self,
        queue: Handle<Queue<D, E>>,
        list: &CommandList<'_, H>,
        bindings: &[Span],
        around: &Around<'_>,
    ) -> Result<Option<Point>, Fault> {
        let list = &list.recorded;
        self.issue_by(queue, around.signals, |lane| {
            list.must_be(Stage::Ended, Site::Submit)?;
            if let Some(fault) = self.queue_failure(lane) {
                return Err(fault);
            }
            if lane.device as usize != list.device {
                let devices = [list.device as u64, lane.device.into()];
                return Err(Fault::caller(Kind::InvalidDevice, Site::Submit, Why::Mismatch, devices));
            }
            self.check_uses(list)?;
            if list.commands().is_empty() {
                return self.accept(lane, around, Op::Barrier);
            }
            self.check_waits(lane, around.waits)?;
            let mut table = Table::new();
            let run = |table| Run { list, table };
            if list.bound {
                self.bind(lane, list, bindings, &mut table)?;
                run(&table).check()?;
            }
            self.accept_list(lane, run(&table), around)
        })
    }

    /// Memory and kernels that the list names directly are still there.
    fn check_uses(&self, list: &Recorded<'_>) -> Result<(), Fault> {
        list.room.uses.as_slice().iter().try_for_each(|used| match *used {
            Use::Root(root) => self.allocation(root).map(drop),
            Use::Kernel(kernel) => self.kernel_info(kernel).map(drop),
        })
    }

    /// Resolves the bindings.
    fn bind(
        &self,
        lane: &LaneState<D>,
        list: &Recorded<'_>,
        bindings: &[Span],
        table: &mut Table,
    ) -> Result<(), Fault> {
        let (needed, given) = (list.needed as usize, bindings.len());
        if given < needed {
            let kind = if given == 0 { Kind::InvalidArgument } else { Kind::OutOfRange };
            return Err(Fault::caller(kind, Site::Submit, Why::Mismatch, [given as u64, needed as u64]));
        }
        for span in &bindings[..needed] {
            let bound = if span.root == Handle::NULL { None } else { Some(self.bind_one(lane, span)?) };
            if table.push(bound).is_err() {
                return Err(Self::bug(Site::Submit));
            }
        }
        Ok(())
    }

    fn bind_one(&self, lane: &LaneState<D>, span: &Span) -> Result<Bound, Fault> {
        let known = self.allocation(span.root).map_err(|fault| fault.at(Site::Submit))?;
        let past = |end| Fault::caller(Kind::OutOfRange, Site::Submit, Why::PastEnd, [end, known.len]);
        let left = known.len.checked_sub(span.offset).ok_or(past(span.offset))?;
        let len = if span.len == WHOLE { left } else { span.len };
        if len > left {
            return Err(past(span.offset.saturating_add(len)));
        }
        Ok(Bound {
            address: known.base + span.offset,
            len,
            root: span.root,
            access: known.access,
            usage: known.usage,
            peer: peer_of(&known, lane.device as usize, &lane.caps),
            device: known.device,
        })
    }

    /// Everything is checked: hands over or holds.
    fn accept_list(&self, lane: &mut LaneState<D>, run: Run<'_>, around: &Around<'_>) -> Accepted {
        let (count, first) = (run.len(), lane.tail + 1);
        let last = lane.tail + count as u64;
        let may_pass = lane.order == Order::Free || lane.held.is_empty();
        let ready = if may_pass { self.hand_waits(lane, around.waits)? } else { Handed::Hold };
        let mut failed = None;
        match ready {
            Handed::Taken => self.start_list(lane, run, around)?,
            Handed::Hold | Handed::Full => {
                let nodes = self.list_nodes(lane, run, 0..count, around.waits, around.signals)?;
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
    fn start_list(&self, lane: &mut LaneState<D>, run: Run<'_>, around: &Around<'_>) -> Result<(), Fault> {
        let (count, first, signals) = (run.len(), lane.tail + 1, around.signals);
        let unfinished = lane.time.handed.get().saturating_sub(lane.time.value.get());
        let room = u64::from(lane.caps.depth).saturating_sub(unfinished).min(count as u64) as usize;
        let mut held = self.list_nodes(lane, run, room..count, &[], signals)?;
        let of_these = if room == count { signals } else { &[] };
        let mut due = self.due(lane, first + count as u64 - 1, of_these)?;
        let around = if room == count { *around } else { Around { hint: Hint::None, ..*around } };
        let (taken, mut refused) = self.hand_list(lane, run, room, &around);
        if taken < room && refused.is_none() {
            match self.list_nodes(lane, run, taken..room, &[], of_these) {
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
    fn hand_list(
        &self,
        lane: &mut LaneState<D>,
        run: Run<'_>,
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
            let end = if run.list.bound {
                run.patch(at..count.min(at + CHUNK), &mut args)
            } else {
                count.min(at + CHUNK)
            };
            let mut patched = args.as_slice();
            for (i, saved) in (at..end).zip(&run.list.commands()[at..end]) {
                let op = match run.op(saved, &mut patched) {
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
    fn list_nodes(
        &self,
        lane: &LaneState<D>,
        run: Run<'_>,
        range: Range<usize>,
        waits: &[Point],
        signals: &[Point],
    ) -> Result<NodeList, Fault> {
        let mut nodes = NodeList::NEW;
        let full = Fault::full(Site::Submit, self.nodes.capacity());
        for i in range.clone() {
            let last = i + 1 == run.len();
            let mut args = Args::new();
            run.patch(i..i + 1, &mut args);
            let made = run.op(&run.list.commands()[i], &mut args.as_slice()).and_then(|op| {
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
