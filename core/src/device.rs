//! The roles of a backend: all that core asks of a device. The same backend source is linked statically or put behind
//! the C tables of the plugin ABI.
//!
//! Core decides order, splitting, staging, waits across backends and when memory is really freed; a backend holds no
//! policy. What a backend lacks is data ([`Caps`]) or a trait it does not implement, never a default method that lies.
//!
//! Who synchronises: core lets one thread at a time into a lane's `submit`; everything else may be called from any
//! thread, with no lock of core held. Progress comes back through the lane's [`Tick`], which takes
//! no lock and may be used inside `submit` or from an interrupt.

use crate::{env::Deadline, fault::Fault, tick::Tick};

/// What a device is and takes: plain data, asked before any call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Bit n: operations of kind n ([`Op::kind`]) are taken. Core does the rest itself or refuses.
    pub ops: u64,
    /// Instance of the backend: lanes with equal numbers may name each other in [`Op::After`].
    pub backend: u16,
    /// Address space of device memory: 0 is the process', any other number this backend's own.
    pub space: u16,
    /// Lanes of this backend wait for one another without the host.
    pub native_wait: bool,
    /// Unfinished steps a lane takes at least; more are held by core. At least 1.
    pub depth: u16,
    /// How progress arrives.
    pub pace: Pace,
    /// Lanes the device can have at once.
    pub lanes: u16,
    /// Alignment of allocations, and the least a zero-copy import needs. A power of two.
    pub align: u32,
    /// Most bytes of kernel arguments.
    pub args_max: u32,
    /// Most work-items in a group.
    pub group_max: u32,
    /// Most bytes of dynamic shared memory of a group.
    pub shared_max: u32,
    /// Longest pattern of a fill; core does longer ones by updates and copies.
    pub pattern_max: u32,
    /// Patterns are 1, 2, 4 … bytes long, and the target is aligned to that; core does others.
    pub pattern_pow2: bool,
    /// Most bytes of an update, at least 1; core splits longer ones.
    pub update_max: u32,
    /// Most bytes of an allocation; [`u64::MAX`] where that is not known.
    pub alloc_max: u64,
    /// Memory the host reaches through `HostAccess::map`.
    pub mappable: bool,
    /// A mapping is a view of the memory itself: flush and invalidate do nothing.
    pub coherent: bool,
    /// The device reads and writes ordinary process memory (space 0) as the far side of a copy without registration.
    pub host_copies: bool,
}

impl Caps {
    /// Whether operations of this kind are taken.
    pub const fn takes(&self, kind: u32) -> bool {
        self.ops >> kind & 1 == 1
    }
}

/// How a backend's progress reaches the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The backend raises the word by itself for every step, and tells whoever sleeps on it, whatever `tell` says.
    Pushed,
    /// By itself for steps with `tell`; the rest when polled.
    OnRequest,
    /// Only in `Gauge::poll` or `Gauge::wait`; worth asking every so many nanoseconds.
    Polled {
        /// Nanoseconds between two looks.
        every_ns: u32,
    },
}

/// A wish for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Bytes, at least 1.
    pub len: u64,
    /// Least alignment, a power of two; 0 leaves it to the backend.
    pub align: u64,
    /// Bits of [`MemoryType`](crate::bits::MemoryType).
    pub kind: u32,
    /// Bits of [`Access`](crate::bits::Access).
    pub access: u32,
    /// Bits of [`Usage`](crate::bits::Usage).
    pub usage: u32,
}

/// Memory that a backend gave out: address and length as the device sees it, and the backend's own word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First address, in the address space the device's [`Caps`] name (host and shared memory: the process').
    pub base: u64,
    /// Bytes.
    pub len: u64,
    /// The backend's own word.
    pub native: u64,
}

/// The far side of a copy: process memory.
pub const PEER_HOST: u16 = u16::MAX;

/// A call on the host in the order of a lane.
#[derive(Clone, Copy)]
pub struct HostCall {
    /// Called once with `user`, on a thread of the backend's choice, never inside `submit` or a wait.
    pub call: unsafe extern "C" fn(user: *mut ()),
    /// Handed to `call`.
    pub user: *mut (),
}

/// One operation as a backend sees it: addresses are resolved, ranges and access are checked.
#[derive(Clone, Copy)]
pub enum Op<'a> {
    /// Nothing but its place in the order.
    Barrier,
    /// `len` bytes from address to address. `peers`: index of the device that holds each side, [`PEER_HOST`] for
    /// process memory.
    Copy {
        /// Source address.
        from: u64,
        /// Target address.
        to: u64,
        /// Bytes.
        len: u64,
        /// Device of source and target.
        peers: [u16; 2],
    },
    /// `pattern` again and again over `len` bytes, a multiple of its length.
    Fill {
        /// Target address.
        to: u64,
        /// Bytes.
        len: u64,
        /// 1 byte or more.
        pattern: &'a [u8],
    },
    /// Bytes captured during `submit`.
    Update {
        /// Target address.
        to: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// A kernel over a grid of groups.
    Launch {
        /// The backend's word for the kernel.
        kernel: u64,
        /// Groups in x, y, z; none zero.
        groups: [u32; 3],
        /// Work-items of a group in x, y, z; none zero.
        size: [u32; 3],
        /// Bytes of dynamic shared memory of a group.
        shared: u32,
        /// Packed arguments in C layout, captured during `submit`.
        args: &'a [u8],
    },
    /// Wait for another lane of this backend; the operation waited for was handed over before.
    After {
        /// The other lane's name ([`Device::lane`]).
        lane: usize,
        /// The value its timeline must reach.
        value: u64,
    },
    /// A host function, in order.
    Call(HostCall),
    /// From a file of this backend into memory.
    Read {
        /// The backend's word for the file.
        file: u64,
        /// Offset in the file.
        at: u64,
        /// Target address.
        to: u64,
        /// Bytes.
        len: u64,
    },
    /// From memory into a file of this backend.
    Write {
        /// The backend's word for the file.
        file: u64,
        /// Offset in the file.
        at: u64,
        /// Source address.
        from: u64,
        /// Bytes.
        len: u64,
    },
    /// Move managed memory towards the device (`to_host` false) or the host; a hint.
    Prefetch {
        /// Address.
        at: u64,
        /// Bytes.
        len: u64,
        /// Towards the host.
        to_host: bool,
    },
}

impl Op<'_> {
    /// Number of the kind, the bit in [`Caps::ops`] and the number in the ABI.
    pub const fn kind(&self) -> u32 {
        match self {
            Op::Barrier => op::BARRIER,
            Op::Copy { .. } => op::COPY,
            Op::Fill { .. } => op::FILL,
            Op::Update { .. } => op::UPDATE,
            Op::Launch { .. } => op::LAUNCH,
            Op::After { .. } => op::AFTER,
            Op::Call(_) => op::CALL,
            Op::Read { .. } => op::READ,
            Op::Write { .. } => op::WRITE,
            Op::Prefetch { .. } => op::PREFETCH,
        }
    }
}

/// Numbers of the kinds of [`Op`].
#[allow(missing_docs)] // Each is named after its operation.
pub mod op {
    pub const BARRIER: u32 = 0;
    pub const COPY: u32 = 1;
    pub const FILL: u32 = 2;
    pub const UPDATE: u32 = 3;
    pub const LAUNCH: u32 = 4;
    pub const AFTER: u32 = 5;
    pub const CALL: u32 = 6;
    pub const READ: u32 = 7;
    pub const WRITE: u32 = 8;
    pub const PREFETCH: u32 = 9;
}

/// An operation and what is wanted when it has ended.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// What to do.
    pub op: Op<'a>,
    /// What the lane's timeline shows once this step and all before it have ended; 0: nothing to show.
    pub done: u64,
    /// Somebody will look at exactly this point: a backend that pushes only on request records an event for it.
    pub tell: bool,
    /// Keep when it began and ended for [`Gauge::times`].
    pub stamp: bool,
}

/// What the caller of `submit` does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nothing special: see to it that the work runs.
    None,
    /// More follows at once; wake nobody yet.
    More,
    /// The caller waits for the last step with [`Gauge::wait`] on this thread next; wake nobody, run it there.
    Waiting,
}

/// When a step began and ended, in nanoseconds on one clock of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Begin.
    pub begin_ns: u64,
    /// End, not before the begin.
    pub end_ns: u64,
}

/// A device.
pub trait Device: Sized + Sync + 'static {
    /// The submitting end of its lanes.
    type Lane: Lane;
    /// The watching end of its lanes.
    type Gauge: Gauge;
    /// What it is and takes. Always the same answer.
    fn caps(&self) -> Caps;
    /// Memory of `want.len` bytes or more.
    fn allocate(&self, want: &Want) -> Result<Block, Fault>;
    /// Gives memory back. On error the block is as it was.
    fn free(&self, block: &Block) -> Result<(), Fault>;
    /// An in-order stream of steps. `tick` is where its progress goes; the number names the lane in [`Op::After`].
    /// Dropping the lane ends it: core does so only when all its work has ended or the lane has failed.
    fn lane(&self, tick: Tick) -> Result<(Self::Lane, Self::Gauge, usize), Fault>;
}

/// The submitting end of a lane. Core lets one thread in at a time.
pub trait Lane: Send {
    /// Takes a prefix of `steps` and says how long it was; fewer than all means full, the rest comes again later. What
    /// was taken up to then is started, whatever the hints said: its caller does not go on as he thought.
    /// Borrowed bytes are captured before the return. Never waits for the device, never runs work.
    ///
    /// # Errors
    /// `(n, fault)`: `steps[..n]` were taken and `steps[n]` was refused.
    fn submit(&mut self, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)>;
}

/// The watching end of a lane: any thread, beside `submit`. Core keeps the lane alive while it is used.
pub trait Gauge: Clone + Send + Sync {
    /// Brings the timeline up to date.
    fn poll(&self);
    /// Sleeps in the driver, or helps by running the lane's next work, until `value` is reached, the lane failed or
    /// the deadline passed. `false`: cannot do that, sleep elsewhere.
    fn wait(&self, value: u64, until: Deadline) -> bool;
    /// Times of the stamped step that ended as `value`; `None` if it was not stamped, has not ended, or is too old.
    fn times(&self, value: u64) -> Option<Times>;
}

/// The gauge of a backend that pushes all progress and keeps no times.
impl Gauge for () {
    fn poll(&self) {}
    fn wait(&self, _: u64, _: Deadline) -> bool {
        false
    }
    fn times(&self, _: u64) -> Option<Times> {
        None
    }
}

/// Offset, size and alignment of one kernel argument in the packed block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Param {
    /// Bytes from the start of the block.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// 0; room for kinds of parameter.
    pub flags: u32,
}

/// A kernel as a backend describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The backend's own word.
    pub native: u64,
    /// Bytes of the packed arguments; [`Kernel::UNCHECKED`] if the image does not tell.
    pub args_len: u32,
    /// Number of parameters, 0 if the image does not tell.
    pub params: u32,
    /// Most work-items in a group.
    pub group_max: u32,
    /// Bytes of shared memory a group needs beside the dynamic part.
    pub shared_static: u32,
}

impl Kernel {
    /// `args_len` of a kernel whose image does not list its parameters.
    pub const UNCHECKED: u32 = u32::MAX;
}

/// What a name in a program stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A kernel.
    Kernel,
    /// A global variable.
    Global,
}

/// Programs and kernels.
pub trait Programs: Device {
    /// Whether [`Programs::load`] would take the image; works before the device is started.
    fn accepts(&self, image: &[u8]) -> bool;
    /// Loads an image from memory; nothing of it is kept borrowed.
    fn load(&self, image: &[u8]) -> Result<u64, Fault>;
    /// Drops a program and its kernels; core calls it when nothing that uses it can still run.
    fn unload(&self, program: u64) -> Result<(), Fault>;
    /// A kernel by name. `layout` is the caller's idea of the parameters, empty if it has none.
    fn kernel(&self, program: u64, name: &[u8], layout: &[Param]) -> Result<Kernel, Fault>;
    /// Address and size of a global by name.
    fn global(&self, program: u64, name: &[u8]) -> Result<Block, Fault>;
    /// The name of symbol `index` (a prefix if `out` is short), its whole length and kind; `None` past the last.
    fn symbol(&self, program: u64, index: u32, out: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault>;
    /// The kernel's parameters (as many as fit) and how many there are.
    fn params(&self, kernel: u64, out: &mut [Param]) -> Result<usize, Fault>;
    /// The number of work-items in a group that uses the device best with so much dynamic shared memory.
    fn occupancy(&self, kernel: u64, shared: u64) -> Result<u32, Fault>;
}

/// The host's view of device memory, and host memory shown to the device.
pub trait HostAccess: Device {
    /// A host address of `len` bytes at `offset` of the block; offset and length were checked.
    fn map(&self, block: &Block, offset: u64, len: u64) -> Result<*mut u8, Fault>;
    /// Ends a mapping. One that has ended already is left as it is, without an error.
    fn unmap(&self, block: &Block, offset: u64, len: u64) -> Result<(), Fault>;
    /// Makes host writes visible to the device (`to_device`), or device writes visible to the host.
    fn sync(&self, block: &Block, offset: u64, len: u64, to_device: bool) -> Result<(), Fault>;
    /// Shows host memory to the device. Counting, containment and overlap are core's.
    fn register(&self, host: *mut u8, len: u64, access: u32) -> Result<Block, Fault>;
    /// Ends a registration.
    fn unregister(&self, block: &Block) -> Result<(), Fault>;
}

/// Facts about a device. Numbers below 0x100 and the encodings of their values are liboffload's `ol_device_info_t`
/// (base revision); strings are UTF-8 without a NUL, integers and booleans (one byte) little-endian.
pub trait Describe: Device {
    /// Writes as much of the value as fits and answers its whole length; `None` if the device has no such fact.
    fn property(&self, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault>;
}

/// Numbers of properties.
#[allow(missing_docs)] // Names and meanings are those of liboffload's device info.
pub mod property {
    pub const TYPE: u32 = 0;
    pub const PLATFORM: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PRODUCT_NAME: u32 = 3;
    pub const UID: u32 = 4;
    pub const VENDOR: u32 = 5;
    pub const DRIVER_VERSION: u32 = 6;
    pub const MAX_WORK_GROUP_SIZE: u32 = 7;
    pub const MAX_WORK_GROUP_SIZE_PER_DIMENSION: u32 = 8;
    pub const MAX_WORK_SIZE: u32 = 9;
    pub const MAX_WORK_SIZE_PER_DIMENSION: u32 = 10;
    pub const VENDOR_ID: u32 = 11;
    pub const NUM_COMPUTE_UNITS: u32 = 12;
    pub const MAX_CLOCK_FREQUENCY: u32 = 13;
    pub const MEMORY_CLOCK_RATE: u32 = 14;
    pub const ADDRESS_BITS: u32 = 15;
    pub const MAX_MEM_ALLOC_SIZE: u32 = 16;
    pub const GLOBAL_MEM_SIZE: u32 = 17;
    pub const WORK_GROUP_LOCAL_MEM_SIZE: u32 = 18;
    pub const SINGLE_FP_CONFIG: u32 = 19;
    pub const DOUBLE_FP_CONFIG: u32 = 20;
    pub const HALF_FP_CONFIG: u32 = 21;
    pub const NATIVE_VECTOR_WIDTH_CHAR: u32 = 22;
    pub const NATIVE_VECTOR_WIDTH_SHORT: u32 = 23;
    pub const NATIVE_VECTOR_WIDTH_INT: u32 = 24;
    pub const NATIVE_VECTOR_WIDTH_LONG: u32 = 25;
    pub const NATIVE_VECTOR_WIDTH_FLOAT: u32 = 26;
    pub const NATIVE_VECTOR_WIDTH_DOUBLE: u32 = 27;
    pub const NATIVE_VECTOR_WIDTH_HALF: u32 = 28;
    pub const SINGLE_FP_SUPPORT: u32 = 29;
    pub const DOUBLE_FP_SUPPORT: u32 = 30;
    pub const HALF_FP_SUPPORT: u32 = 31;
    /// Bytes that can be allocated now, u64, never above `GLOBAL_MEM_SIZE`.
    pub const MEMORY_FREE: u32 = 0x100;
    /// How `MEMORY_FREE` was found, or why it is not known; text.
    pub const MEMORY_NOTE: u32 = 0x101;
    /// "host", "unified" or "dedicated"; text.
    pub const MEMORY_KIND: u32 = 0x102;
}
