//! What cases are written against: the runtime of core without its type parameters, so that a case is compiled once
//! and runs over every backend. Each trait is one part of `wharf_core::runtime::Runtime`, call for call; what a call
//! means and how it fails is written there.

mod batch;
pub(crate) mod over;

pub use batch::{BatchRun, Entry, PiecesOf};
pub use over::Over;

use crate::ctx::HomeOf;
use wharf_core::{
    batch::{Direction, Totals},
    bits::Access,
    device::{Block, Caps, HostCall, Op, Param, SymbolKind, Times, Want},
    env::Deadline,
    fault::Fault,
    handle::Handle,
    record::Record,
    runtime::{
        Allocation, Around, Command, CommandList, KernelInfo, KernelRecord, LaunchArgs, Next, ProgramRecord,
        QueueOptions, ReleaseFn, Span,
    },
    timeline::{Look, Point, Timeline},
};

/// A queue of any backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue(pub u64);

/// Where an operation ends, on a queue in order.
pub type Submitted = Result<Option<Point>, Fault>;

/// Devices and what they say of themselves.
#[allow(missing_docs)] // Each is named after the call of core that it is.
pub trait Devices {
    fn devices(&self) -> usize;
    fn caps(&self, device: usize) -> Caps;
    fn property(&self, device: usize, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault>;
    fn accepts(&self, device: usize, image: &[u8]) -> bool;
}

/// Memory.
#[allow(missing_docs)] // As above.
pub trait Memory {
    fn allocate(&self, device: usize, want: &Want) -> Result<Handle<Record>, Fault>;
    /// # Safety
    /// As `Runtime::wrap`.
    #[allow(unsafe_code)] // A contract is handed on.
    unsafe fn wrap(
        &self,
        device: usize,
        host: *mut u8,
        want: &Want,
        release: Option<(ReleaseFn, *mut ())>,
    ) -> Result<Handle<Record>, Fault>;
    fn allocation(&self, record: Handle<Record>) -> Result<Allocation, Fault>;
    fn find(&self, device: Option<usize>, address: u64) -> Result<Allocation, Fault>;
    fn live(&self) -> Vec<Allocation>;
    fn retain(&self, record: Handle<Record>) -> Result<(), Fault>;
    fn release(&self, record: Handle<Record>) -> Result<(), Fault>;
    fn free(&self, record: Handle<Record>) -> Result<(), Fault>;
    fn is_late(&self, record: Handle<Record>) -> bool;
    fn frees_refused(&self) -> u32;
    /// # Errors
    /// As `Runtime::alloca`.
    fn alloca(
        &self,
        queue: Queue,
        want: &Want,
        around: &Around<'_>,
    ) -> Result<(Handle<Record>, Option<Point>), Fault>;
    fn dealloca(&self, queue: Queue, record: Handle<Record>, around: &Around<'_>) -> Submitted;
    fn touchable_now(&self, record: Handle<Record>) -> Result<(), Fault>;
}

/// The host's view of memory.
#[allow(missing_docs)] // As above.
pub trait View {
    fn map(&self, span: &Span, access: Access) -> Result<*mut u8, Fault>;
    fn unmap(&self, span: &Span) -> Result<(), Fault>;
    fn flush(&self, span: &Span) -> Result<(), Fault>;
    fn invalidate(&self, span: &Span) -> Result<(), Fault>;
    /// # Safety
    /// As `Runtime::register`.
    #[allow(unsafe_code)] // A contract is handed on.
    unsafe fn register(
        &self,
        device: usize,
        host: *mut u8,
        len: u64,
        access: Access,
    ) -> Result<Handle<Record>, Fault>;
    fn unregister(&self, device: usize, host: *const u8) -> Result<(), Fault>;
}

/// Timelines, waits and the pump.
#[allow(missing_docs)] // As above.
pub trait Time {
    fn timeline(&self, initial: u64) -> Result<Handle<Timeline>, Fault>;
    fn retain_timeline(&self, timeline: Handle<Timeline>) -> Result<(), Fault>;
    fn release_timeline(&self, timeline: Handle<Timeline>);
    fn look(&self, point: Point) -> Result<Look, Fault>;
    fn query(&self, timeline: Handle<Timeline>) -> Result<u64, Fault>;
    fn signal(&self, timeline: Handle<Timeline>, value: u64) -> Result<(), Fault>;
    fn fail(&self, timeline: Handle<Timeline>, cause: &Fault) -> Result<(), Fault>;
    fn wait(&self, point: Point, until: Deadline) -> Result<(), Fault>;
    fn wait_all(&self, points: &[Point], until: Deadline) -> Result<(), Fault>;
    fn wait_any(&self, points: &[Point], until: Deadline) -> Result<(), Fault>;
    fn failures_dropped(&self) -> u32;
    fn poll(&self) -> Next;
    fn drain(&self, until: Deadline) -> bool;
    /// Sleepers on the bell, held operations, due signals, jobs, late frees.
    fn interest(&self) -> u32;
    /// Threads that promise to pump.
    fn pumps(&self) -> u32;
    /// Pumps on this thread until `stop`.
    fn pump_until(&self, stop: &dyn Fn() -> bool);
    fn ring(&self);
}

/// Queues and the operations that go in.
#[allow(missing_docs)] // As above.
pub trait Queues {
    fn queue(&self, device: usize, options: QueueOptions) -> Result<Queue, Fault>;
    fn close(&self, queue: Queue) -> Result<(), Fault>;
    fn tail(&self, queue: Queue) -> Result<Point, Fault>;
    fn is_idle(&self, queue: Queue) -> Result<bool, Fault>;
    fn queue_device(&self, queue: Queue) -> Result<usize, Fault>;
    fn times(&self, queue: Queue, point: Point) -> Result<Times, Fault>;
    fn sync(&self, queue: Queue, until: Deadline) -> Result<(), Fault>;
    fn submit(&self, queue: Queue, op: Op<'_>, around: &Around<'_>) -> Submitted;
    fn barrier(&self, queue: Queue, around: &Around<'_>) -> Submitted;
    fn copy(&self, queue: Queue, from: &Span, to: &Span, around: &Around<'_>) -> Submitted;
    /// # Safety
    /// As `Runtime::copy_in`.
    #[allow(unsafe_code)] // A contract is handed on.
    unsafe fn copy_in(&self, queue: Queue, from: *const u8, to: &Span, around: &Around<'_>) -> Submitted;
    /// # Safety
    /// As `Runtime::copy_out`.
    #[allow(unsafe_code)] // A contract is handed on.
    unsafe fn copy_out(&self, queue: Queue, from: &Span, to: *mut u8, around: &Around<'_>) -> Submitted;
    fn fill(&self, queue: Queue, to: &Span, pattern: &[u8], around: &Around<'_>) -> Submitted;
    fn update(&self, queue: Queue, to: &Span, bytes: &[u8], around: &Around<'_>) -> Submitted;
    fn prefetch(&self, queue: Queue, span: &Span, to_host: bool, around: &Around<'_>) -> Submitted;
    fn launch(
        &self,
        queue: Queue,
        kernel: Handle<KernelRecord>,
        args: &LaunchArgs<'_>,
        around: &Around<'_>,
    ) -> Submitted;
    /// # Safety
    /// As `Runtime::host_call`.
    #[allow(unsafe_code)] // A contract is handed on.
    unsafe fn host_call(&self, queue: Queue, call: HostCall, around: &Around<'_>) -> Submitted;
}

/// Batches, as jobs of the pump.
pub trait Batches {
    /// Phase one.
    ///
    /// # Errors
    /// As `wharf_core::batch::check`.
    fn check(&self, pieces: &PiecesOf, direction: Direction) -> Result<Totals, Fault>;
    /// Both phases: checks, then hands the batch to the pump.
    ///
    /// # Errors
    /// What phase one says; then nothing was submitted and the signals stand as they were.
    fn batch(
        &self,
        pieces: PiecesOf,
        direction: Direction,
        queues: &[Queue],
        waits: &[Point],
        signals: &[Point],
    ) -> Result<Box<dyn BatchRun>, Fault>;
}

/// A command list of any backend.
pub type List = CommandList<'static, HomeOf>;

/// Command lists.
#[allow(missing_docs)] // As above.
pub trait Lists {
    fn record(&self, list: &mut List, command: &Command<'_>) -> Result<(), Fault>;
    fn execute(&self, queue: Queue, list: &List, bindings: &[Span], around: &Around<'_>) -> Submitted;
}

/// Programs.
#[allow(missing_docs)] // As above.
pub trait Code {
    fn load(&self, device: usize, image: &[u8]) -> Result<Handle<ProgramRecord>, Fault>;
    fn unload(&self, program: Handle<ProgramRecord>) -> Result<(), Fault>;
    fn kernel(
        &self,
        program: Handle<ProgramRecord>,
        name: &str,
        layout: &[Param],
    ) -> Result<Handle<KernelRecord>, Fault>;
    fn kernel_info(&self, kernel: Handle<KernelRecord>) -> Result<KernelInfo, Fault>;
    fn global(&self, program: Handle<ProgramRecord>, name: &str) -> Result<Block, Fault>;
    fn symbol(
        &self,
        program: Handle<ProgramRecord>,
        index: u32,
        out: &mut [u8],
    ) -> Result<Option<(usize, SymbolKind)>, Fault>;
    fn params(&self, kernel: Handle<KernelRecord>, out: &mut [Param]) -> Result<usize, Fault>;
    fn occupancy(&self, kernel: Handle<KernelRecord>, shared: u64) -> Result<u32, Fault>;
}

/// A runtime.
pub trait Rig: Devices + Memory + View + Time + Queues + Batches + Lists + Code + Send + Sync {}
