//! A case's own runtime: what it makes is noted, taken down afterwards, and then nothing may be left.
//!
//! # Safety
//! Host memory handed to copies is the context's own and is given back after all queues have drained.
#![allow(unsafe_code)]

use crate::{
    case::{Fail, Outcome, refused},
    host::{Host, HostBlocks},
    images::Sample,
    need::Facts,
    rig::{List, Queue, Rig},
};
use std::{
    ops::Deref,
    ptr::NonNull,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};
use wharf::os::deadline;
use wharf_core::{
    bits::{Access, MemoryType, Usage},
    buffer::Home,
    device::Want,
    env::Deadline,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    record::Record,
    runtime::{
        Around, Command, CommandList, KernelRecord, ListRoom, Order, ProgramRecord, QueueOptions, Span,
    },
    timeline::{Look, Point, Timeline},
};

/// How long anything may take before it counts as stuck.
pub const LIMIT: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Made {
    queues: Vec<Queue>,
    timelines: Vec<Handle<Timeline>>,
    records: Vec<Handle<Record>>,
    programs: Vec<Handle<ProgramRecord>>,
}

/// The runtime of a case. Everything of [`Rig`] can be called on it.
pub struct Ctx {
    rig: Arc<dyn Rig>,
    facts: Facts,
    pumps: bool,
    limit: Duration,
    made: Mutex<Made>,
    blocks: HostBlocks,
}

impl Deref for Ctx {
    type Target = dyn Rig;
    fn deref(&self) -> &(dyn Rig + 'static) {
        &*self.rig
    }
}

impl Ctx {
    pub(crate) fn new(rig: Box<dyn Rig>, facts: Facts, pumps: bool, limit: Duration) -> Self {
        Ctx { rig: rig.into(), facts, pumps, limit, made: Mutex::default(), blocks: HostBlocks::default() }
    }

    /// Runs `f` beside a pump thread, where the mode has one.
    pub(crate) fn pumped<R>(&self, f: impl FnOnce() -> R) -> R {
        if !self.pumps {
            return f();
        }
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let pump = scope.spawn(|| self.pump_until(&|| stop.load(SeqCst)));
            // Else the check's first waits would do the pumping.
            while self.rig.pumps() == 0 {
                thread::yield_now();
            }
            let answer = f();
            stop.store(true, SeqCst);
            while !pump.is_finished() {
                self.ring();
                thread::yield_now();
            }
            answer
        })
    }

    fn made(&self) -> std::sync::MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The target's name and roles.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The sample image, which the case's needs promised.
    ///
    /// # Errors
    /// If the needs did not.
    pub fn sample(&self) -> Outcome<&'static Sample> {
        self.facts.sample.ok_or_else(|| Fail::new("the case does not say that it needs programs"))
    }

    /// The name of the sample's global and its length, which the case's needs promised.
    ///
    /// # Errors
    /// If the needs did not.
    pub fn sample_global(&self) -> Outcome<(&'static str, u64)> {
        self.sample()?.global.ok_or_else(|| Fail::new("the case does not say that it needs a global"))
    }

    /// Arguments of the sample's idle kernel.
    ///
    /// # Errors
    /// As `Runtime::global`.
    pub fn idle_args(&self, program: Handle<ProgramRecord>) -> Outcome<Vec<u8>> {
        let sample = self.sample()?;
        let address = match sample.global {
            Some((name, _)) => self.rig.global(program, name)?.base,
            None => 0,
        };
        Ok((sample.idle_args)(address))
    }

    /// The moment from which on a wait counts as stuck.
    pub fn soon(&self) -> Deadline {
        deadline(self.limit)
    }

    /// A queue in order on the device under test.
    ///
    /// # Errors
    /// As `Runtime::queue`.
    #[track_caller]
    pub fn in_order(&self) -> Outcome<Queue> {
        self.queue_on(0, QueueOptions::default())
    }

    /// A queue of free order on the device under test.
    ///
    /// # Errors
    /// As `Runtime::queue`.
    #[track_caller]
    pub fn free_order(&self) -> Outcome<Queue> {
        self.queue_on(0, QueueOptions { order: Order::Free, profile: false })
    }

    /// A queue.
    ///
    /// # Errors
    /// As `Runtime::queue`.
    #[track_caller]
    pub fn queue_on(&self, device: usize, options: QueueOptions) -> Outcome<Queue> {
        Ok(self.queue(device, options)?)
    }

    /// A timeline.
    ///
    /// # Errors
    /// As `Runtime::timeline`.
    #[track_caller]
    pub fn new_timeline(&self, initial: u64) -> Outcome<Handle<Timeline>> {
        Ok(self.timeline(initial)?)
    }

    /// Memory of the device under test for transfers and kernels.
    ///
    /// # Errors
    /// As `Runtime::allocate`.
    #[track_caller]
    pub fn memory(&self, len: u64) -> Outcome<Handle<Record>> {
        self.memory_as(0, &want(len))
    }

    /// Memory that the host can map.
    ///
    /// # Errors
    /// As `Runtime::allocate`.
    #[track_caller]
    pub fn mappable(&self, len: u64) -> Outcome<Handle<Record>> {
        let kind = MemoryType::HOST_VISIBLE | MemoryType::DEVICE_LOCAL;
        self.memory_as(0, &Want { kind: kind.bits(), usage: Usage::ALL.bits(), ..want(len) })
    }

    /// Memory.
    ///
    /// # Errors
    /// As `Runtime::allocate`.
    #[track_caller]
    pub fn memory_as(&self, device: usize, want: &Want) -> Outcome<Handle<Record>> {
        Ok(self.allocate(device, want)?)
    }

    /// Notes memory that came about otherwise.
    pub fn note(&self, record: Handle<Record>) -> Handle<Record> {
        self.made().records.push(record);
        record
    }

    /// The sample program.
    ///
    /// # Errors
    /// As `Runtime::load`.
    #[track_caller]
    pub fn program(&self) -> Outcome<Handle<ProgramRecord>> {
        let sample = self.sample()?;
        Ok(self.load(0, sample.image)?)
    }

    /// A kernel of a new sample program.
    ///
    /// # Errors
    /// As `Runtime::kernel`.
    #[track_caller]
    pub fn sample_kernel(&self, name: &str) -> Outcome<Handle<KernelRecord>> {
        let program = self.program()?;
        Ok(self.rig.kernel(program, name, &[])?)
    }

    /// `Runtime::queue`, noted.
    ///
    /// # Errors
    /// As `Runtime::queue`.
    pub fn queue(&self, device: usize, options: QueueOptions) -> Result<Queue, Fault> {
        let queue = self.rig.queue(device, options)?;
        self.made().queues.push(queue);
        Ok(queue)
    }

    /// `Runtime::timeline`, noted.
    ///
    /// # Errors
    /// As `Runtime::timeline`.
    pub fn timeline(&self, initial: u64) -> Result<Handle<Timeline>, Fault> {
        let timeline = self.rig.timeline(initial)?;
        self.made().timelines.push(timeline);
        Ok(timeline)
    }

    /// `Runtime::allocate`, noted.
    ///
    /// # Errors
    /// As `Runtime::allocate`.
    pub fn allocate(&self, device: usize, want: &Want) -> Result<Handle<Record>, Fault> {
        Ok(self.note(self.rig.allocate(device, want)?))
    }

    /// `Runtime::alloca`, noted.
    ///
    /// # Errors
    /// As `Runtime::alloca`.
    #[track_caller]
    pub fn alloca(
        &self,
        queue: Queue,
        want: &Want,
        around: &Around<'_>,
    ) -> Outcome<(Handle<Record>, Option<Point>)> {
        let (record, end) = self.rig.alloca(queue, want, around)?;
        Ok((self.note(record), end))
    }

    /// `Runtime::load`, noted.
    ///
    /// # Errors
    /// As `Runtime::load`.
    pub fn load(&self, device: usize, image: &[u8]) -> Result<Handle<ProgramRecord>, Fault> {
        let program = self.rig.load(device, image)?;
        self.made().programs.push(program);
        Ok(program)
    }

    /// Host memory of zeros.
    pub fn host(&self, len: usize) -> Host {
        self.blocks.make(len)
    }

    /// Host memory with these bytes.
    pub fn host_of(&self, bytes: &[u8]) -> Host {
        let host = self.host(bytes.len());
        host.put(bytes);
        host
    }

    /// The runtime as a home of buffers.
    pub fn home(&self) -> HomeOf {
        HomeOf(self.rig.clone())
    }

    /// A list that is being recorded for the device under test.
    ///
    /// # Errors
    /// As `CommandList::begin`.
    #[track_caller]
    pub fn list(&self, slots: u32) -> Outcome<List> {
        let mut list = CommandList::new(self.home(), ListRoom::growing());
        list.begin(0, slots)?;
        Ok(list)
    }

    /// A list of these operations, ready to be submitted.
    ///
    /// # Errors
    /// As `Runtime::record`.
    #[track_caller]
    pub fn list_of(&self, slots: u32, commands: &[Command<'_>]) -> Outcome<List> {
        let mut list = self.list(slots)?;
        for command in commands {
            self.rig.record(&mut list, command)?;
        }
        list.end()?;
        Ok(list)
    }

    /// Host memory of the context as memory of the device under test.
    ///
    /// # Errors
    /// As `Runtime::wrap`.
    #[track_caller]
    pub fn wrapped(&self, host: Host, want: &Want) -> Outcome<Handle<Record>> {
        // SAFETY: the context gives host memory back after it has released its records.
        let record = unsafe { self.rig.wrap(0, host.ptr(), want, None) }?;
        Ok(self.note(record))
    }

    /// As [`Ctx::wrapped`], counting releases; the record is the caller's.
    ///
    /// # Errors
    /// As `Runtime::wrap`.
    #[track_caller]
    pub fn wrapped_counted(
        &self,
        host: Host,
        want: &Want,
        count: &'static AtomicU32,
    ) -> Outcome<Handle<Record>> {
        let user = std::ptr::from_ref(count).cast_mut().cast();
        // SAFETY: the context gives host memory back after its queues have drained; the counter is there for ever.
        Ok(unsafe { self.rig.wrap(0, host.ptr(), want, Some((released, user))) }?)
    }

    /// A wrap of an address that must be refused.
    ///
    /// # Errors
    /// As `Runtime::wrap`.
    pub fn wrap_raw(
        &self,
        address: u64,
        len: u64,
        align: u64,
        count: &'static AtomicU32,
    ) -> Result<Handle<Record>, Fault> {
        let user = std::ptr::from_ref(count).cast_mut().cast();
        let host = std::ptr::without_provenance_mut(address as usize);
        // SAFETY: nothing is ever submitted on it, and the counter is there for ever.
        unsafe { self.rig.wrap(0, host, &Want { align, ..want(len) }, Some((released, user))) }
    }

    /// A mapping as host memory. The case does not use it after the unmap.
    ///
    /// # Errors
    /// As `Runtime::map`.
    #[track_caller]
    pub fn view(&self, span: &Span, access: Access) -> Outcome<Host> {
        let at = NonNull::new(self.rig.map(span, access)?)
            .ok_or_else(|| Fail::new("memory was mapped to null"))?;
        // SAFETY: mapped, so long; cases unmap after their last look.
        Ok(unsafe { Host::at(at, span.len as usize) })
    }

    /// Registers host memory of the context.
    ///
    /// # Errors
    /// As `Runtime::register`.
    #[track_caller]
    pub fn registered(&self, host: Host) -> Outcome<Handle<Record>> {
        // SAFETY: the context gives host memory back after it has released its records.
        let record = unsafe { self.rig.register(0, host.ptr(), host.len(), Access::ALL) }?;
        Ok(self.note(record))
    }

    /// A registration that must be refused.
    ///
    /// # Errors
    /// As `Runtime::register`.
    pub fn register_raw(&self, address: u64, len: u64) -> Result<Handle<Record>, Fault> {
        let host = std::ptr::without_provenance_mut(address as usize);
        // SAFETY: nothing is ever submitted on it.
        unsafe { self.rig.register(0, host, len, Access::ALL) }
    }

    /// All of a root.
    ///
    /// # Errors
    /// If it is not live.
    #[track_caller]
    pub fn whole(&self, root: Handle<Record>) -> Outcome<Span> {
        Ok(Span { root, offset: 0, len: self.rig.allocation(root)?.len })
    }

    /// Copies host memory in.
    ///
    /// # Errors
    /// As `Runtime::copy_in`.
    pub fn copy_from(
        &self,
        queue: Queue,
        from: Host,
        to: &Span,
        around: &Around<'_>,
    ) -> crate::rig::Submitted {
        assert!(to.len <= from.len(), "the case copies past its host memory");
        // SAFETY: as long as said, and given back after the queues have drained.
        unsafe { self.rig.copy_in(queue, from.ptr(), to, around) }
    }

    /// Copies out into host memory.
    ///
    /// # Errors
    /// As `Runtime::copy_out`.
    pub fn copy_to(&self, queue: Queue, from: &Span, to: Host, around: &Around<'_>) -> crate::rig::Submitted {
        assert!(from.len <= to.len(), "the case copies past its host memory");
        // SAFETY: as long as said, and given back after the queues have drained.
        unsafe { self.rig.copy_out(queue, from, to.ptr(), around) }
    }

    /// A copy in or out that must be refused, whatever length it names.
    ///
    /// # Errors
    /// As `Runtime::copy_in`, as `Runtime::copy_out`.
    pub fn copy_raw(&self, queue: Queue, host: Host, span: &Span, into: bool) -> crate::rig::Submitted {
        if into {
            // SAFETY: nothing is copied, since no memory has a span of that length; the caller sees that it is refused.
            unsafe { self.rig.copy_in(queue, host.ptr(), span, &Around::NONE) }
        } else {
            // SAFETY: as above.
            unsafe { self.rig.copy_out(queue, span, host.ptr(), &Around::NONE) }
        }
    }

    /// Writes bytes and waits.
    ///
    /// # Errors
    /// As `Runtime::copy_in` and `Runtime::sync`.
    #[track_caller]
    pub fn write(&self, queue: Queue, root: Handle<Record>, offset: u64, bytes: &[u8]) -> Outcome {
        let span = Span { root, offset, len: bytes.len() as u64 };
        self.copy_from(queue, self.host_of(bytes), &span, &Around::NONE)?;
        self.finish(queue)
    }

    /// Waits for everything before, and reads all bytes of a root.
    ///
    /// # Errors
    /// As `Runtime::copy_out` and `Runtime::sync`.
    #[track_caller]
    pub fn read_all(&self, queue: Queue, root: Handle<Record>) -> Outcome<Vec<u8>> {
        let span = self.whole(root)?;
        let host = self.host(span.len as usize);
        self.copy_to(queue, &span, host, &Around::NONE)?;
        self.finish(queue)?;
        Ok(host.bytes())
    }

    /// Waits for everything on the queue.
    ///
    /// # Errors
    /// As `Runtime::sync`.
    #[track_caller]
    pub fn finish(&self, queue: Queue) -> Outcome {
        Ok(self.rig.sync(queue, self.soon())?)
    }

    /// Waits for a point.
    ///
    /// # Errors
    /// As `Runtime::wait`.
    #[track_caller]
    pub fn reach(&self, point: Point) -> Outcome {
        Ok(self.rig.wait(point, self.soon())?)
    }

    /// Checks that a point has not been reached and has not failed.
    ///
    /// # Errors
    /// How it stands instead.
    #[track_caller]
    pub fn ahead(&self, point: Point) -> Outcome {
        self.move_on();
        match self.rig.look(point)? {
            Look::Ahead => Ok(()),
            other => Err(Fail::new(format!("expected point {} ahead, got {other:?}", point.value))),
        }
    }

    /// Waits for a point that must fail with this kind.
    ///
    /// # Errors
    /// What it came to instead.
    #[track_caller]
    pub fn fails(&self, point: Point, kind: Kind) -> Outcome<Fault> {
        refused(self.rig.wait(point, self.soon()), kind)
    }

    /// Polls where nobody else does.
    pub fn move_on(&self) {
        if !self.pumps {
            self.rig.poll();
        }
    }

    /// Polls until the condition holds.
    ///
    /// # Errors
    /// If it never does.
    #[track_caller]
    pub fn until(&self, what: &str, mut holds: impl FnMut() -> bool) -> Outcome {
        let end = Instant::now() + self.limit;
        while !holds() {
            if Instant::now() >= end {
                return Err(Fail::new(format!("{what} never came")));
            }
            self.move_on();
            thread::yield_now();
        }
        Ok(())
    }

    /// Takes down what the case made.
    pub(crate) fn take_down(&self) -> Outcome {
        let made = std::mem::take(&mut *self.made());
        // Whatever still waits for a timeline of the case fails, so that the queues drain.
        let cancelled = Fault::caller(Kind::Cancelled, Site::Timeline, Why::Unknown, [0; 2]);
        for timeline in made.timelines {
            let _ = self.rig.fail(timeline, &cancelled); // Unless it is gone.
            self.rig.release_timeline(timeline);
        }
        for queue in made.queues {
            let _ = self.rig.close(queue); // Unless the case did.
        }
        if !self.rig.drain(self.soon()) {
            return Err(Fail::new("expected the closed queues to drain, got stuck work or late frees"));
        }
        for program in made.programs {
            let _ = self.rig.unload(program);
        }
        for record in made.records {
            while self.rig.release(record).is_ok() {}
        }
        self.rig.poll();
        self.blocks.end();
        Ok(())
    }

    /// Nothing may be left: no live memory, nobody on the bell, no refused free.
    pub(crate) fn nothing_left(&self) -> Outcome {
        self.rig.poll();
        let live = self.rig.live();
        if let Some(first) = live.first() {
            return Err(Fail::new(format!(
                "expected no live memory, got {} pieces, first {first:?}",
                live.len()
            )));
        }
        let (interest, refused) = (self.rig.interest(), self.rig.frees_refused());
        if interest != 0 || refused != 0 {
            return Err(Fail::new(format!(
                "expected nothing held, got bell interest {interest}, refused frees {refused}"
            )));
        }
        Ok(())
    }
}

extern "C" fn released(user: *mut ()) {
    // SAFETY: the counter of `wrapped_counted` or `wrap_raw`, there for ever.
    unsafe { &*user.cast::<AtomicU32>() }.fetch_add(1, SeqCst);
}

/// Where the roots of buffers live.
#[derive(Clone)]
pub struct HomeOf(Arc<dyn Rig>);

impl Home for HomeOf {
    fn retain(&self, root: Handle<Record>) -> Result<(), Fault> {
        self.0.retain(root)
    }
    fn release(&self, root: Handle<Record>) {
        let _ = self.0.release(root); // A refusal is counted, and looked at in the end.
    }
}

/// Device memory for transfers and kernels.
pub fn want(len: u64) -> Want {
    Want { len, align: 0, kind: 0, access: Access::ALL.bits(), usage: 0 }
}

/// Waits for these points, signals those.
pub fn around<'a>(waits: &'a [Point], signals: &'a [Point]) -> Around<'a> {
    Around { waits, signals, ..Around::NONE }
}

/// A point.
pub fn at(timeline: Handle<Timeline>, value: u64) -> Point {
    Point { timeline, value }
}

/// Part of a root.
pub fn span(root: Handle<Record>, offset: u64, len: u64) -> Span {
    Span { root, offset, len }
}

/// The point of an operation on a queue in order.
///
/// # Errors
/// If the queue gave none.
#[track_caller]
pub fn point(submitted: Option<Point>) -> Outcome<Point> {
    submitted.ok_or_else(|| Fail::new("expected a point of a queue in order, got none"))
}
