//! A lane of a plugin's device. Handing over 16 steps or fewer needs no heap: they are written to the stack in the
//! form of the tables and cross in one call.
//!
//! # Safety
//! The queue handle is alive from `create` until the lane's drop, which calls `destroy`; gauges look at the cell's
//! generation first, and core keeps the lane alive while it uses one.
#![allow(unsafe_code)]

use super::{
    cell::Cell,
    device::DynDevice,
    instance::{Instance, need},
};
use crate::{
    code,
    negotiate::Calls,
    tables::{
        self, AfterArgs, CallArgs, CopyArgs, FileArgs, FillArgs, LaunchArgs, OpArgs, PrefetchArgs, QueueArgs,
        Sized32, Status, SubmitFn, To, UpdateArgs, hint, op_flag,
    },
};
use core::{mem::MaybeUninit, ptr, sync::atomic::Ordering::*};
use std::sync::Arc;
use wharf_core::{
    device::{Gauge, Hint, Lane, Op, PEER_HOST, Step, Times},
    env::Deadline,
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// Steps that cross in one call.
const BATCH: usize = 16;

/// The submitting end of a plugin's lane.
pub struct DynLane {
    submit: SubmitFn,
    queue: u64,
    peers: Peers,
    cell: &'static Cell,
    calls: &'static Calls,
    instance: Arc<Instance>,
}

/// The watching end of a plugin's lane.
#[derive(Clone, Copy)]
pub struct DynGauge {
    poll: unsafe extern "C" fn(u64) -> Status,
    queue: u64,
    cell: &'static Cell,
    calls: &'static Calls,
    generation: u32,
}

impl DynLane {
    pub(super) fn new(
        device: &DynDevice,
        calls: &'static Calls,
        tick: Tick,
    ) -> Result<(Self, DynGauge, usize), Fault> {
        let create = need(calls.queue.create, Site::Queue)?;
        let (submit, poll) = (need(calls.queue.submit, Site::Queue)?, need(calls.queue.poll, Site::Queue)?);
        let cell = Cell::take(tick, calls);
        let mut args = QueueArgs::empty();
        args.value = tick.parts().0.as_ptr();
        args.cookie = ptr::from_ref(cell).cast_mut().cast();
        let mut queue = 0u64;
        // SAFETY: a started device; the word is core's for ever, the cell is never freed, the rest lives for the call.
        let status = unsafe { create(device.handle, To(&raw const args), &raw mut queue) };
        if status.code != 0 || queue == 0 {
            cell.end();
            calls.check(status, Site::Queue)?;
            // The plugin says it made a queue, so the cell may be in use: it is not given back.
            return Err(code::broken(
                Site::Queue,
                Why::Stale,
                [0; 2],
                "the plugin made a queue with handle 0",
            ));
        }
        device.instance.lanes().fetch_add(1, AcqRel);
        let instance = device.instance.clone();
        let lane = DynLane { submit, queue, peers: device.peers, cell, calls, instance };
        let gauge = DynGauge { poll, queue, cell, calls, generation: cell.generation() };
        Ok((lane, gauge, queue as usize))
    }
}

impl Drop for DynLane {
    fn drop(&mut self) {
        self.cell.end();
        let destroyed = need(self.calls.queue.destroy, Site::Close).and_then(|destroy| {
            // SAFETY: alive, and core ends a lane when nothing of it is pending or inside.
            self.calls.check(unsafe { destroy(self.queue) }, Site::Close)
        });
        // A plugin that failed may still tell: then the cell is left to it.
        if destroyed.is_ok() {
            self.cell.give_back();
        }
        self.instance.lanes().fetch_sub(1, AcqRel);
    }
}

impl Lane for DynLane {
    fn submit(&mut self, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)> {
        // One step is the ordinary case, and worth a copy of the code without the loop.
        if steps.len() == 1 {
            return self.hand_over::<1>(steps, hint);
        }
        if steps.len() <= BATCH {
            return self.hand_over::<BATCH>(steps, hint);
        }
        let mut n = 0;
        while n < steps.len() {
            let batch = &steps[n..steps.len().min(n + BATCH)];
            let last = n + batch.len() == steps.len();
            let taken = self.hand_over::<BATCH>(batch, if last { hint } else { Hint::More });
            let taken = taken.map_err(|(taken, fault)| (n + taken, fault))?;
            n += taken;
            if taken < batch.len() {
                break;
            }
        }
        Ok(n)
    }
}

impl DynLane {
    #[inline]
    fn hand_over<const N: usize>(&mut self, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)> {
        let mut ops = [const { MaybeUninit::<tables::Op>::uninit() }; N];
        let (mut ready, mut refused) = (0u32, None);
        for (place, step) in ops.iter_mut().zip(steps) {
            if !encode(step, &self.peers, place) {
                refused = Some(step);
                break;
            }
            ready += 1;
        }
        let hint = match hint {
            Hint::None => hint::NONE,
            Hint::More => hint::MORE,
            Hint::Waiting => hint::WAITING,
        };
        let (mut taken, stride) = (0u32, size_of::<tables::Op>() as u32);
        // SAFETY: a live queue, entered by this thread alone (`&mut self`); `ready` operations were written, and
        // they and what they borrow live for the call.
        let status = unsafe {
            (self.submit)(self.queue, To(ops.as_ptr().cast()), ready, stride, hint, &raw mut taken)
        };
        if status.code != 0 || taken != ready {
            return self.short(status, taken, ready);
        }
        match refused {
            Some(step) => Err((taken as usize, refusal(step, &self.peers))),
            None => Ok(taken as usize),
        }
    }

    /// Fewer were taken than were given, or an error.
    #[cold]
    fn short(&self, status: Status, taken: u32, given: u32) -> Result<usize, (usize, Fault)> {
        if taken > given {
            let text = "the plugin says it took more operations than it was given";
            let fault = code::broken(Site::Submit, Why::Limit, [taken.into(), given.into()], text);
            self.cell.fail(&fault);
            return Err((0, fault));
        }
        if status.code == 0 {
            return Ok(taken as usize);
        }
        let fault = self.calls.failure(status, Site::Submit);
        // What was taken before will never end.
        if fault.kind == Kind::Panicked {
            self.cell.fail(&fault);
        }
        Err((taken as usize, fault))
    }
}

/// Writes a step as it crosses, each kind straight to its place: a detour over a value costs more than the call.
/// `false`: it cannot cross, and [`refusal`] says why.
#[inline(always)]
fn encode(step: &Step<'_>, peers: &Peers, place: &mut MaybeUninit<tables::Op>) -> bool {
    let tell = if step.tell { op_flag::TELL } else { 0 };
    let stamp = if step.stamp { op_flag::STAMP } else { 0 };
    let (kind, done) = (step.op.kind() as u16, step.done);
    let mut put = |args| {
        place.write(tables::Op { kind, flags: tell | stamp, reserved: 0, done, next: ptr::null(), args });
    };
    match step.op {
        Op::Barrier => put(OpArgs { after: AfterArgs { queue: 0, value: 0 } }),
        Op::Copy { from, to, len, peers: [a, b] } => {
            let (Some(from_device), Some(to_device)) = (peers.handle(a), peers.handle(b)) else {
                return false;
            };
            put(OpArgs { copy: CopyArgs { from, to, len, from_device, to_device } });
        }
        Op::Fill { to, len, pattern } => {
            let pattern_len = pattern.len() as u64;
            put(OpArgs { fill: FillArgs { to, len, pattern: pattern.as_ptr(), pattern_len } });
        }
        Op::Update { to, bytes } => {
            put(OpArgs { update: UpdateArgs { to, len: bytes.len() as u64, bytes: bytes.as_ptr() } });
        }
        Op::Launch { kernel, groups, size, shared, args } => {
            let Ok(args_len) = u32::try_from(args.len()) else { return false };
            put(OpArgs {
                launch: LaunchArgs { kernel, groups, size, shared, args_len, args: args.as_ptr() },
            });
        }
        Op::After { lane, value } => put(OpArgs { after: AfterArgs { queue: lane as u64, value } }),
        Op::Call(call) => put(OpArgs { call: CallArgs { call: Some(call.call), user: call.user } }),
        Op::Read { file, at, to, len } => put(OpArgs { file: FileArgs { file, at, address: to, len } }),
        Op::Write { file, at, from, len } => put(OpArgs { file: FileArgs { file, at, address: from, len } }),
        Op::Prefetch { at, len, to_host } => {
            put(OpArgs { prefetch: PrefetchArgs { at, len, to_host: to_host.into() } });
        }
    }
    true
}

/// Why a step cannot cross.
#[cold]
fn refusal(step: &Step<'_>, peers: &Peers) -> Fault {
    if let Op::Launch { args, .. } = step.op {
        let values = [args.len() as u64, u32::MAX.into()];
        return Fault::caller(Kind::InvalidArgument, Site::Launch, Why::Limit, values);
    }
    let index = match step.op {
        Op::Copy { peers: [a, b], .. } => {
            if peers.handle(a).is_none() {
                a
            } else {
                b
            }
        }
        _ => 0,
    };
    Fault::caller(Kind::InvalidDevice, Site::Copy, Why::Limit, [index.into(), peers.last().into()])
}

/// The plugin's devices as core numbers them: one after the other from `first` on.
#[derive(Clone, Copy)]
pub(super) struct Peers {
    pub(super) first: u16,
    pub(super) handles: &'static [u64],
}

impl Peers {
    /// The handle of a device of this plugin, 0 for the host.
    #[inline(always)]
    fn handle(&self, index: u16) -> Option<u64> {
        if index == PEER_HOST {
            return Some(0);
        }
        self.handles.get(usize::from(index.checked_sub(self.first)?)).copied()
    }

    /// The number of its last device.
    fn last(&self) -> u16 {
        self.first + (self.handles.len() as u16).saturating_sub(1)
    }
}

impl DynGauge {
    #[inline]
    fn over(&self) -> bool {
        self.cell.generation() != self.generation
    }
}

impl Gauge for DynGauge {
    fn poll(&self) {
        if self.over() {
            return;
        }
        // SAFETY: the lane is alive (its generation was seen), and core keeps it so during the call.
        let status = unsafe { (self.poll)(self.queue) };
        if status.code != 0 {
            self.cell.failed(status);
        }
    }

    fn wait(&self, value: u64, until: Deadline) -> bool {
        let Some(wait) = self.calls.queue.wait.filter(|_| !self.over()) else { return false };
        // SAFETY: as in `poll`.
        let status = unsafe { wait(self.queue, value, until.unwrap_or(u64::MAX)) };
        if status.code == 0 {
            return true;
        }
        match code::decode(status.code).0 {
            Kind::Unsupported if status.err == 0 => return false,
            Kind::DeadlineExceeded if status.err == 0 => {}
            _ => self.cell.failed(status),
        }
        true
    }

    fn times(&self, value: u64) -> Option<Times> {
        let times = self.calls.queue.times.filter(|_| !self.over())?;
        let (mut begin_ns, mut end_ns) = (0, 0);
        // SAFETY: as in `poll`; the places live for the call.
        let status = unsafe { times(self.queue, value, &raw mut begin_ns, &raw mut end_ns) };
        if status.err != 0 {
            // Nobody can be told: the words are given up.
            let _ = self.calls.text(status.err);
        }
        (status.code == 0 && begin_ns <= end_ns).then_some(Times { begin_ns, end_ns })
    }
}
