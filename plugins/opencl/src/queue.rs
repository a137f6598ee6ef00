//! Lanes: an in-order queue of the driver each. An event is made for a step that asks to be told of, and one for all that
//! is under way when somebody polls or waits; the driver's callback, or whoever looks first, raises the timeline.
//!
//! Two locks of a lane: `inner` is held while commands are enqueued, `state` for a moment while the timeline is raised. The
//! callback takes the second only, since a driver may hold locks of its own while it calls.
//!
//! # Safety
//! Addresses of operations were resolved and checked by core: they are good until the operation has ended. Bytes that core
//! lends for `submit` are copied and kept until then.
#![allow(unsafe_code)]

use crate::{
    device::{Card, DEPTH, LANES_MAX},
    ffi::{Answer, Enqueued, Event, Mem, Queue, Refusal},
    memory::Store,
    program,
    text::with_text,
};
use opencl_sys as cl;
use std::{
    collections::VecDeque,
    ffi::c_void,
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::*},
    },
};
use wharf_core::{
    device::{Gauge, Hint, Lane, Op, PEER_HOST, Step, Times},
    env::Deadline,
    fault::{Blame, Fault, Kind, Site, Why},
    tick::Tick,
};

/// Stamped steps whose events a lane keeps.
const STAMPS: usize = 1024;

/// The submitting end.
pub struct OpenclLane {
    track: Arc<Track>,
    _place: Place,
}

/// One of the lanes that the device has at once.
struct Place(Arc<AtomicU64>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// The watching end.
#[derive(Clone)]
pub struct OpenclGauge(Arc<Track>);

/// What both ends share.
struct Track {
    card: Arc<Card>,
    progress: Arc<Progress>,
    inner: Mutex<Inner>,
}

/// How far the lane is. All that callbacks hold: dropping it calls no driver.
struct Progress {
    tick: Tick,
    reached: AtomicU64,
    /// Held by whoever raises the timeline: once it has failed it stays as it is.
    state: Mutex<Option<Fault>>,
}

struct Inner {
    queue: Queue,
    profiling: bool,
    /// Something was enqueued and not flushed.
    unsent: bool,
    /// Value of the last step that was enqueued.
    handed: u64,
    /// Events with a callback, by value.
    marks: VecDeque<(u64, Event)>,
    stamps: VecDeque<(u64, Event)>,
    /// Bytes that commands up to a value read.
    kept: VecDeque<(u64, Box<[u8]>)>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a lane.
pub(crate) fn open(
    card: &Arc<Card>,
    open: &Arc<AtomicU64>,
    tick: Tick,
) -> Result<(OpenclLane, OpenclGauge), Fault> {
    let room = |count| (count < LANES_MAX.into()).then_some(count + 1);
    open.fetch_update(Relaxed, Relaxed, room).map_err(|_| Fault::full(Site::Queue, LANES_MAX.into()))?;
    let place = Place(open.clone());
    let queue = card.context(Site::Queue)?.queue(card.id, false);
    let queue = queue.map_err(|refusal| refusal.fault(Site::Queue))?;
    let progress = Arc::new(Progress { tick, reached: AtomicU64::new(0), state: Mutex::new(None) });
    let inner = Inner {
        queue,
        profiling: false,
        unsent: false,
        handed: 0,
        marks: VecDeque::new(),
        stamps: VecDeque::new(),
        kept: VecDeque::new(),
    };
    let track = Arc::new(Track { card: card.clone(), progress, inner: Mutex::new(inner) });
    let gauge = OpenclGauge(track.clone());
    Ok((OpenclLane { track, _place: place }, gauge))
}

impl Progress {
    fn reached(&self) -> u64 {
        self.reached.load(Acquire)
    }

    fn fault(&self) -> Option<Fault> {
        *lock(&self.state)
    }

    /// All up to `value` has ended with this status of its event.
    fn ended(&self, value: u64, status: i32) {
        if status < 0 {
            return self.fail(Refusal { call: "a command of the queue", code: status });
        }
        let failed = lock(&self.state);
        if failed.is_none() && value > self.reached() {
            self.reached.store(value, Release);
            self.tick.advance(value);
        }
    }

    /// The lane is over; the first cause stays.
    fn fail(&self, refusal: Refusal) {
        let Refusal { call, code } = refusal;
        let lost = code == cl::CL_DEVICE_NOT_AVAILABLE;
        let kind = if lost { Kind::DeviceLost } else { Kind::BackendFailure };
        let fault = Fault::new(kind, Blame::Driver, Site::Submit, Why::Native, [0; 2]).with_native(code);
        let fault = with_text(fault, format!("{call} ended with {code}"));
        let mut failed = lock(&self.state);
        if failed.is_none() {
            *failed = Some(fault);
            self.tick.fail(&fault);
        }
    }
}

impl Lane for OpenclLane {
    fn submit(&mut self, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)> {
        let track = &self.track;
        if let Some(fault) = track.progress.fault() {
            return Err((0, fault.at(Site::Submit)));
        }
        let (mut taken, mut refused) = (0, None);
        for step in steps {
            if track.is_full() {
                break;
            }
            if let Err(fault) = track.take(step) {
                refused = Some(fault);
                break;
            }
            taken += 1;
        }
        // A caller that was cut short does not go on as its hint said.
        if hint != Hint::More || taken < steps.len() {
            track.send();
        }
        match refused {
            None => Ok(taken),
            Some(fault) => Err((taken, fault)),
        }
    }
}

impl Drop for OpenclLane {
    fn drop(&mut self) {
        if self.track.progress.reached() < lock(&self.track.inner).handed {
            // It failed with work under way: nobody knows when the driver lets go of what that uses, so it stays.
            std::mem::forget(self.track.clone());
        }
    }
}

impl Gauge for OpenclGauge {
    fn poll(&self) {
        let track = &self.0;
        let mut inner = lock(&track.inner);
        if inner.handed > track.progress.reached() && inner.last_mark() < inner.handed {
            track.mark_all(&mut inner);
        }
        while let Some((value, event)) = inner.marks.front() {
            match event.status() {
                Ok(status) if status > 0 => break,
                Ok(status) => track.progress.ended(*value, status),
                Err(refusal) => track.progress.fail(refusal),
            }
            inner.marks.pop_front();
        }
        track.prune(&mut inner);
        track.flush(&mut inner);
    }

    /// Sleeps in the driver. A driver knows no deadline: with one, the callback wakes whoever core lets sleep.
    fn wait(&self, value: u64, until: Deadline) -> bool {
        let track = &self.0;
        match track.event(value) {
            Ok(None) => true,
            Ok(Some(_)) if until.is_some() => false,
            Ok(Some((mark, event))) => {
                match event.wait() {
                    Ok(()) => track.progress.ended(mark, cl::CL_COMPLETE),
                    Err(refusal) => match event.status() {
                        Ok(status) if status < 0 => track.progress.ended(mark, status),
                        _ => track.progress.fail(refusal),
                    },
                }
                true
            }
            Err(refusal) => {
                track.progress.fail(refusal);
                true
            }
        }
    }

    fn times(&self, value: u64) -> Option<Times> {
        if self.0.progress.reached() < value {
            return None;
        }
        let inner = lock(&self.0.inner);
        let at = inner.stamps.binary_search_by_key(&value, |(value, _)| *value).ok()?;
        let event = &inner.stamps[at].1;
        let begin_ns = event.time(cl::CL_PROFILING_COMMAND_START).ok()?;
        let end_ns = event.time(cl::CL_PROFILING_COMMAND_END).ok()?;
        Some(Times { begin_ns, end_ns: end_ns.max(begin_ns) })
    }
}

impl Inner {
    fn last_mark(&self) -> u64 {
        self.marks.back().map_or(0, |(value, _)| *value)
    }
}

impl Track {
    fn is_full(&self) -> bool {
        let mut inner = lock(&self.inner);
        self.prune(&mut inner);
        inner.handed - self.progress.reached().min(inner.handed) >= DEPTH.into()
    }

    /// Lets go of what belongs to steps that have ended.
    fn prune(&self, inner: &mut Inner) {
        let reached = self.progress.reached();
        while inner.marks.front().is_some_and(|(value, _)| *value <= reached) {
            inner.marks.pop_front();
        }
        while inner.kept.front().is_some_and(|(value, _)| *value <= reached) {
            inner.kept.pop_front();
        }
    }

    fn send(&self) {
        self.flush(&mut lock(&self.inner));
    }

    fn flush(&self, inner: &mut Inner) {
        if std::mem::take(&mut inner.unsent)
            && let Err(refusal) = inner.queue.flush()
        {
            self.progress.fail(refusal);
        }
    }

    /// An event at or behind `value`, and its own value, sent off; `None`: reached.
    fn event(&self, value: u64) -> Answer<Option<(u64, Event)>> {
        if self.progress.reached() >= value || self.progress.fault().is_some() {
            return Ok(None);
        }
        let mut inner = lock(&self.inner);
        if inner.last_mark() < value && self.progress.reached() < value {
            self.mark_all(&mut inner);
        }
        self.flush(&mut inner);
        Ok(inner.marks.iter().find(|(mark, _)| *mark >= value).cloned())
    }

    /// An event for all that is under way.
    fn mark_all(&self, inner: &mut Inner) {
        match inner.queue.marker() {
            Ok(event) => self.mark(inner, inner.handed, event),
            Err(refusal) => self.progress.fail(refusal),
        }
        inner.unsent = true;
    }

    /// From now on the driver tells when this event has ended.
    fn mark(&self, inner: &mut Inner, value: u64, event: Event) {
        let progress = self.progress.clone();
        let set = event.on_end(move |status| progress.ended(value, status));
        inner.marks.push_back((value, event));
        if let Err(refusal) = set {
            self.progress.fail(refusal);
        }
    }

    /// Enqueues a step.
    fn take(&self, step: &Step<'_>) -> Result<(), Fault> {
        let mut inner = lock(&self.inner);
        if step.stamp && !inner.profiling {
            self.profile(&mut inner).map_err(|refusal| refusal.fault(Site::Submit))?;
        }
        let event = self.enqueue(&mut inner, step, step.tell || step.stamp)?;
        inner.unsent = true;
        if step.done == 0 {
            return Ok(());
        }
        inner.handed = step.done;
        let Some(event) = event else { return Ok(()) };
        if step.stamp {
            if inner.stamps.len() == STAMPS {
                inner.stamps.pop_front();
            }
            inner.stamps.push_back((step.done, event.clone()));
        }
        if step.tell {
            self.mark(&mut inner, step.done, event);
        }
        Ok(())
    }

    /// A queue keeps times or does not from its beginning: the first stamped step gets a new one, behind all before.
    fn profile(&self, inner: &mut Inner) -> Answer {
        let Ok(context) = self.card.context(Site::Submit) else { return Ok(()) };
        let queue = context.queue(self.card.id, true)?;
        if inner.handed > self.progress.reached() {
            let before = inner.queue.marker()?;
            inner.queue.flush()?;
            queue.barrier(&before)?;
        }
        (inner.queue, inner.profiling) = (queue, true);
        Ok(())
    }

    fn enqueue(&self, inner: &mut Inner, step: &Step<'_>, tell: bool) -> Result<Option<Event>, Fault> {
        let of = |site: Site| move |refusal: Refusal| refusal.fault(site);
        let queue = &inner.queue;
        match step.op {
            Op::Barrier if tell => queue.marker().map(Some).map_err(of(Site::Barrier)),
            Op::Barrier => Ok(None),
            Op::Copy { from, to, len, peers } => self.copy(queue, [from, to], len, peers, tell),
            Op::Fill { to, len, pattern } => self.fill(queue, to, len, pattern, tell),
            Op::Update { to, bytes } => {
                let kept: Box<[u8]> = bytes.into();
                let event = self.update(queue, to, &kept, tell)?;
                inner.kept.push_back((step.done.max(inner.handed), kept));
                Ok(event)
            }
            Op::Launch { kernel, groups, size, shared, args } => {
                let launch = program::Launch { groups, size, shared, args, tell };
                // SAFETY: the word came from `Programs::kernel` of this device, and core keeps its program loaded.
                unsafe { program::launch(&self.card, queue, kernel, &launch) }
            }
            ref other => {
                let values = [other.kind().into(), 0];
                Err(Fault::backend(Kind::Unsupported, Site::Submit, Why::Missing, values))
            }
        }
    }

    fn copy(
        &self,
        queue: &Queue,
        [from, to]: [u64; 2],
        len: u64,
        peers: [u16; 2],
        tell: bool,
    ) -> Result<Option<Event>, Fault> {
        let size = len as usize;
        let copied: Enqueued = match self.card.memory.kind() {
            // SAFETY: both sides are good until the command has ended (module rule).
            Store::Shared { .. } => unsafe { queue.svm_copy(target(to), source(from), size, tell) },
            Store::Buffers => {
                let side = |peer: u16, at| match peer {
                    PEER_HOST => Ok(None),
                    _ => self.card.memory.buffer(at, len, Site::Copy).map(Some),
                };
                match (side(peers[0], from)?, side(peers[1], to)?) {
                    (Some((a, at)), Some((b, to))) => queue.copy((&a, at), (&b, to), size, tell),
                    // SAFETY: the target is good until the command has ended (module rule).
                    (Some((mem, at)), None) => unsafe { queue.read(&mem, at, target(to), size, tell) },
                    // SAFETY: the source is good until the command has ended (module rule).
                    (None, Some((mem, at))) => unsafe { queue.write(&mem, at, source(from), size, tell) },
                    (None, None) => {
                        let context = self.card.context(Site::Copy)?;
                        context
                            .buffer(size)
                            .and_then(|between| through(queue, &between, from, to, size, tell))
                    }
                }
            }
        };
        copied.map_err(|refusal| refusal.fault(Site::Copy))
    }

    fn fill(
        &self,
        queue: &Queue,
        to: u64,
        len: u64,
        pattern: &[u8],
        tell: bool,
    ) -> Result<Option<Event>, Fault> {
        let filled: Enqueued = match self.card.memory.kind() {
            // SAFETY: the target is good until the command has ended (module rule).
            Store::Shared { .. } => unsafe { queue.svm_fill(target(to), pattern, len as usize, tell) },
            Store::Buffers => {
                let (mem, at) = self.card.memory.buffer(to, len, Site::Fill)?;
                queue.fill(&mem, at, pattern, len as usize, tell)
            }
        };
        filled.map_err(|refusal| refusal.fault(Site::Fill))
    }

    /// The bytes are kept by the caller until the step has ended.
    fn update(&self, queue: &Queue, to: u64, kept: &[u8], tell: bool) -> Result<Option<Event>, Fault> {
        let from = kept.as_ptr().cast();
        let updated: Enqueued = match self.card.memory.kind() {
            // SAFETY: the target is good until the command has ended (module rule), the source kept so long.
            Store::Shared { .. } => unsafe { queue.svm_copy(target(to), from, kept.len(), tell) },
            Store::Buffers => {
                let (mem, at) = self.card.memory.buffer(to, kept.len() as u64, Site::Update)?;
                // SAFETY: the source is kept until the command has ended.
                unsafe { queue.write(&mem, at, from, kept.len(), tell) }
            }
        };
        updated.map_err(|refusal| refusal.fault(Site::Update))
    }
}

/// From the host to the host in the order of a queue, by a buffer between, which the driver keeps as long as it needs it.
fn through(queue: &Queue, between: &Mem, from: u64, to: u64, len: usize, tell: bool) -> Enqueued {
    // SAFETY: the source is good until the command has ended (module rule).
    unsafe { queue.write(between, 0, source(from), len, false) }?;
    // SAFETY: the target is good until the command has ended (module rule).
    unsafe { queue.read(between, 0, target(to), len, tell) }
}

fn source(at: u64) -> *const c_void {
    ptr::with_exposed_provenance(at as usize)
}

fn target(at: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(at as usize)
}
