//! Command lists submitted: everything is checked under the lane's lock, then all or nothing is accepted
//! ([`sequence`](super::sequence)). Bindings are resolved once, before anything is handed over: a free in the middle of
//! it changes nothing.
use super::{
    Around, CommandList, Queue, Runtime, Span,
    lane::LaneState,
    list::{Recorded, Stage, Use},
    list_run::{Bound, Run, Table},
    transfer::peer_of,
};
use crate::{
    buffer::{Home, WHOLE},
    device::{Device, Op},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    timeline::Point,
};

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
            self.accept_sequence(lane, run(&table), around)
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
            access: known.access,
            usage: known.usage,
            peer: peer_of(&known, lane.device as usize, &lane.caps),
            device: known.device,
        })
    }
}
