//! The rig over core's runtime: every call goes straight through.
//!
//! # Safety
//! Unsafe functions hand their caller's promise on, word for word.
#![allow(unsafe_code)]

use super::{
    BatchRun, Batches, Code, Devices, List, Lists, Memory, PiecesOf, Queue, Queues, Rig, Submitted, Time,
    View, batch,
};
use wharf::os::Os;
use wharf_core::{
    batch::{Direction, Totals},
    bits::Access,
    device::{
        Block, Caps, Describe, Device, HostAccess, HostCall, Op, Param, Programs, SymbolKind, Times, Want,
    },
    env::Deadline,
    fault::Fault,
    handle::Handle,
    record::Record,
    runtime::{
        Allocation, Around, Command, KernelInfo, KernelRecord, LaunchArgs, Next, ProgramRecord, QueueOptions,
        ReleaseFn, Runtime, Span, Store,
    },
    timeline::{Look, Point, Timeline},
};

/// All roles of a backend.
pub trait Backend: Device + Programs + HostAccess + Describe {}
impl<D: Device + Programs + HostAccess + Describe> Backend for D {}

/// A runtime of its own over devices that others may use too.
pub struct Over<D: Backend>(pub(super) &'static Runtime<D, Os>);

impl<D: Backend> Over<D> {
    /// A fresh runtime. It is never given back, like the statics that it stands for.
    pub fn new(devices: &'static [D]) -> Self {
        let store: &'static Store<D, Os, 2, 4, 8, 8> = Box::leak(Box::new(Store::new()));
        Over(Box::leak(Box::new(Runtime::new(store.parts(), devices, 0))))
    }
}

impl<D: Backend> Rig for Over<D> {}

impl<D: Backend> Devices for Over<D> {
    fn devices(&self) -> usize {
        self.0.devices().len()
    }
    fn caps(&self, device: usize) -> Caps {
        self.0.devices()[device].caps()
    }
    fn property(&self, device: usize, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault> {
        self.0.devices()[device].property(id, out)
    }
    fn accepts(&self, device: usize, image: &[u8]) -> bool {
        self.0.devices()[device].accepts(image)
    }
}

impl<D: Backend> Memory for Over<D> {
    fn allocate(&self, device: usize, want: &Want) -> Result<Handle<Record>, Fault> {
        self.0.allocate(device, want)
    }
    unsafe fn wrap(
        &self,
        device: usize,
        host: *mut u8,
        want: &Want,
        release: Option<(ReleaseFn, *mut ())>,
    ) -> Result<Handle<Record>, Fault> {
        // SAFETY: the caller's promise is the one asked for.
        unsafe { self.0.wrap(device, host, want, release) }
    }
    fn allocation(&self, record: Handle<Record>) -> Result<Allocation, Fault> {
        self.0.allocation(record)
    }
    fn find(&self, device: Option<usize>, address: u64) -> Result<Allocation, Fault> {
        self.0.find(device, address)
    }
    fn live(&self) -> Vec<Allocation> {
        let mut all = Vec::new();
        self.0.each_allocation(|known| all.push(*known));
        all
    }
    fn retain(&self, record: Handle<Record>) -> Result<(), Fault> {
        self.0.retain(record)
    }
    fn release(&self, record: Handle<Record>) -> Result<(), Fault> {
        self.0.release(record)
    }
    fn free(&self, record: Handle<Record>) -> Result<(), Fault> {
        self.0.free(record)
    }
    fn is_late(&self, record: Handle<Record>) -> bool {
        self.0.is_late(record)
    }
    fn frees_refused(&self) -> u32 {
        self.0.frees_refused()
    }
    fn alloca(
        &self,
        queue: Queue,
        want: &Want,
        around: &Around<'_>,
    ) -> Result<(Handle<Record>, Option<Point>), Fault> {
        self.0.alloca(queue.of(), want, around)
    }
    fn dealloca(&self, queue: Queue, record: Handle<Record>, around: &Around<'_>) -> Submitted {
        self.0.dealloca(queue.of(), record, around)
    }
    fn touchable_now(&self, record: Handle<Record>) -> Result<(), Fault> {
        self.0.touchable_now(record)
    }
}

impl<D: Backend> View for Over<D> {
    fn map(&self, span: &Span, access: Access) -> Result<*mut u8, Fault> {
        self.0.map(span, access)
    }
    fn unmap(&self, span: &Span) -> Result<(), Fault> {
        self.0.unmap(span)
    }
    fn flush(&self, span: &Span) -> Result<(), Fault> {
        self.0.flush(span)
    }
    fn invalidate(&self, span: &Span) -> Result<(), Fault> {
        self.0.invalidate(span)
    }
    unsafe fn register(
        &self,
        device: usize,
        host: *mut u8,
        len: u64,
        access: Access,
    ) -> Result<Handle<Record>, Fault> {
        // SAFETY: the caller's promise is the one asked for.
        unsafe { self.0.register(device, host, len, access) }
    }
    fn unregister(&self, device: usize, host: *const u8) -> Result<(), Fault> {
        self.0.unregister(device, host)
    }
}

impl<D: Backend> Time for Over<D> {
    fn timeline(&self, initial: u64) -> Result<Handle<Timeline>, Fault> {
        self.0.timeline(initial)
    }
    fn retain_timeline(&self, timeline: Handle<Timeline>) -> Result<(), Fault> {
        self.0.retain_timeline(timeline)
    }
    fn release_timeline(&self, timeline: Handle<Timeline>) {
        self.0.release_timeline(timeline);
    }
    fn look(&self, point: Point) -> Result<Look, Fault> {
        self.0.look(point)
    }
    fn query(&self, timeline: Handle<Timeline>) -> Result<u64, Fault> {
        self.0.query(timeline)
    }
    fn signal(&self, timeline: Handle<Timeline>, value: u64) -> Result<(), Fault> {
        self.0.signal(timeline, value)
    }
    fn fail(&self, timeline: Handle<Timeline>, cause: &Fault) -> Result<(), Fault> {
        self.0.fail(timeline, cause)
    }
    fn wait(&self, point: Point, until: Deadline) -> Result<(), Fault> {
        self.0.wait(point, until)
    }
    fn wait_all(&self, points: &[Point], until: Deadline) -> Result<(), Fault> {
        self.0.wait_all(points, until)
    }
    fn wait_any(&self, points: &[Point], until: Deadline) -> Result<(), Fault> {
        self.0.wait_any(points, until)
    }
    fn failures_dropped(&self) -> u32 {
        self.0.failures_dropped()
    }
    fn poll(&self) -> Next {
        self.0.poll()
    }
    fn drain(&self, until: Deadline) -> bool {
        self.0.drain(until)
    }
    fn interest(&self) -> u32 {
        self.0.bell().interest.load(core::sync::atomic::Ordering::SeqCst)
    }
    fn pumps(&self) -> u32 {
        self.0.bell().pumps.load(core::sync::atomic::Ordering::SeqCst)
    }
    fn pump_until(&self, stop: &dyn Fn() -> bool) {
        self.0.pump_until(stop);
    }
    fn ring(&self) {
        self.0.ring();
    }
}

impl Queue {
    pub(super) fn of<D: Backend>(self) -> Handle<wharf_core::runtime::Queue<D, Os>> {
        Handle::from_raw(self.0)
    }
}

impl<D: Backend> Queues for Over<D> {
    fn queue(&self, device: usize, options: QueueOptions) -> Result<Queue, Fault> {
        self.0.queue(device, options).map(|queue| Queue(queue.raw()))
    }
    fn close(&self, queue: Queue) -> Result<(), Fault> {
        self.0.close(queue.of())
    }
    fn tail(&self, queue: Queue) -> Result<Point, Fault> {
        self.0.tail(queue.of())
    }
    fn is_idle(&self, queue: Queue) -> Result<bool, Fault> {
        self.0.is_idle(queue.of())
    }
    fn queue_device(&self, queue: Queue) -> Result<usize, Fault> {
        self.0.queue_device(queue.of())
    }
    fn times(&self, queue: Queue, point: Point) -> Result<Times, Fault> {
        self.0.times(queue.of(), point)
    }
    fn sync(&self, queue: Queue, until: Deadline) -> Result<(), Fault> {
        self.0.sync(queue.of(), until)
    }
    fn submit(&self, queue: Queue, op: Op<'_>, around: &Around<'_>) -> Submitted {
        self.0.submit(queue.of(), around.waits, op, around.signals, around.hint)
    }
    fn barrier(&self, queue: Queue, around: &Around<'_>) -> Submitted {
        self.0.barrier(queue.of(), around)
    }
    fn copy(&self, queue: Queue, from: &Span, to: &Span, around: &Around<'_>) -> Submitted {
        self.0.copy(queue.of(), from, to, around)
    }
    unsafe fn copy_in(&self, queue: Queue, from: *const u8, to: &Span, around: &Around<'_>) -> Submitted {
        // SAFETY: the caller's promise is the one asked for.
        unsafe { self.0.copy_in(queue.of(), from, to, around) }
    }
    unsafe fn copy_out(&self, queue: Queue, from: &Span, to: *mut u8, around: &Around<'_>) -> Submitted {
        // SAFETY: the caller's promise is the one asked for.
        unsafe { self.0.copy_out(queue.of(), from, to, around) }
    }
    fn fill(&self, queue: Queue, to: &Span, pattern: &[u8], around: &Around<'_>) -> Submitted {
        self.0.fill(queue.of(), to, pattern, around)
    }
    fn update(&self, queue: Queue, to: &Span, bytes: &[u8], around: &Around<'_>) -> Submitted {
        self.0.update(queue.of(), to, bytes, around)
    }
    fn prefetch(&self, queue: Queue, span: &Span, to_host: bool, around: &Around<'_>) -> Submitted {
        self.0.prefetch(queue.of(), span, to_host, around)
    }
    fn launch(
        &self,
        queue: Queue,
        kernel: Handle<KernelRecord>,
        args: &LaunchArgs<'_>,
        around: &Around<'_>,
    ) -> Submitted {
        self.0.launch(queue.of(), kernel, args, around)
    }
    unsafe fn host_call(&self, queue: Queue, call: HostCall, around: &Around<'_>) -> Submitted {
        // SAFETY: the caller's promise is the one asked for.
        unsafe { self.0.host_call(queue.of(), call, around) }
    }
}

impl<D: Backend> Batches for Over<D> {
    fn check(&self, pieces: &PiecesOf, direction: Direction) -> Result<Totals, Fault> {
        wharf_core::batch::check(pieces, direction)
    }
    fn batch(
        &self,
        pieces: PiecesOf,
        direction: Direction,
        queues: &[Queue],
        waits: &[Point],
        signals: &[Point],
    ) -> Result<Box<dyn BatchRun>, Fault> {
        batch::start(self.0, pieces, direction, queues, waits, signals)
    }
}

impl<D: Backend> Lists for Over<D> {
    fn record(&self, list: &mut List, command: &Command<'_>) -> Result<(), Fault> {
        self.0.record(list, command)
    }
    fn execute(&self, queue: Queue, list: &List, bindings: &[Span], around: &Around<'_>) -> Submitted {
        self.0.execute(queue.of(), list, bindings, around)
    }
}

impl<D: Backend> Code for Over<D> {
    fn load(&self, device: usize, image: &[u8]) -> Result<Handle<ProgramRecord>, Fault> {
        self.0.load(device, image)
    }
    fn unload(&self, program: Handle<ProgramRecord>) -> Result<(), Fault> {
        self.0.unload(program)
    }
    fn kernel(
        &self,
        program: Handle<ProgramRecord>,
        name: &str,
        layout: &[Param],
    ) -> Result<Handle<KernelRecord>, Fault> {
        self.0.kernel(program, name.as_bytes(), layout)
    }
    fn kernel_info(&self, kernel: Handle<KernelRecord>) -> Result<KernelInfo, Fault> {
        self.0.kernel_info(kernel)
    }
    fn global(&self, program: Handle<ProgramRecord>, name: &str) -> Result<Block, Fault> {
        self.0.global(program, name.as_bytes())
    }
    fn symbol(
        &self,
        program: Handle<ProgramRecord>,
        index: u32,
        out: &mut [u8],
    ) -> Result<Option<(usize, SymbolKind)>, Fault> {
        self.0.symbol(program, index, out)
    }
    fn params(&self, kernel: Handle<KernelRecord>, out: &mut [Param]) -> Result<usize, Fault> {
        self.0.params(kernel, out)
    }
    fn occupancy(&self, kernel: Handle<KernelRecord>, shared: u64) -> Result<u32, Fault> {
        self.0.occupancy(kernel, shared)
    }
}
