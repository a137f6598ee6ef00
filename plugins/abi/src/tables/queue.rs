//! Table "wharf.queue": in-order queues and the operations they take.
//!
//! # Safety
//! [`OpArgs`] is described to the type check as the ten words that it is.
#![allow(unsafe_code)]

use super::{Ext, Head, Status, To};
use abi_stable::{StableAbi, abi_stability::GetStaticEquivalent_, type_layout::TypeLayout};
use core::ffi::c_void;

/// [`QueueV1::submit`].
pub type SubmitFn = unsafe extern "C" fn(
    queue: u64,
    ops: To<Op>,
    count: u32,
    stride: u32,
    hint: u32,
    taken: *mut u32,
) -> Status;

/// Queues. `wait`, `times` and `cancel` may be NULL.
#[repr(C)]
#[derive(Clone, Copy, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = QueueV1Ref, prefix_fields = QueueV1Fields)))]
pub struct QueueV1 {
    /// Size and version.
    pub head: Head,
    /// A queue of the device.
    pub create: Option<unsafe extern "C" fn(device: u64, args: To<QueueArgs>, queue: *mut u64) -> Status>,
    /// Ends a queue whose work has ended or that has failed. No `tell` or `fail` of it after the return.
    pub destroy: Option<unsafe extern "C" fn(queue: u64) -> Status>,
    /// Takes a prefix of `count` operations that lie `stride` bytes apart, and says how long it was in `taken`, on
    /// error too: then the operation behind the prefix was refused. Fewer than all with success: the queue is full.
    /// Whenever it takes fewer than all it starts what it has, whatever the hints said. What operations point to is
    /// captured before the return. Never waits for the device, never runs work.
    pub submit: Option<
        unsafe extern "C" fn(
            queue: u64,
            ops: To<Op>,
            count: u32,
            stride: u32,
            hint: u32,
            taken: *mut u32,
        ) -> Status,
    >,
    /// Brings the value up to date.
    pub poll: Option<unsafe extern "C" fn(queue: u64) -> Status>,
    /// Sleeps, or runs the queue's next work, until `value` is reached, the queue failed or the deadline passed (all
    /// success). `Unsupported` without a text: sleep elsewhere. `deadline_ns`: on the host's monotonic clock (the
    /// system's, where it has one: `CLOCK_MONOTONIC`); `u64::MAX` never.
    pub wait: Option<unsafe extern "C" fn(queue: u64, value: u64, deadline_ns: u64) -> Status>,
    /// When the stamped operation that ended as `value` began and ended; `NotFound` without a text if not kept.
    pub times:
        Option<unsafe extern "C" fn(queue: u64, value: u64, begin_ns: *mut u64, end_ns: *mut u64) -> Status>,
    /// Ends work that has not begun. Reserved.
    #[sabi(last_prefix_field)]
    pub cancel: Option<unsafe extern "C" fn(queue: u64) -> Status>,
}

/// How to make a queue.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = QueueArgsRef, prefix_fields = QueueArgsFields)))]
pub struct QueueArgs {
    /// Bytes of this struct.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// 0 ordinary, above is more urgent.
    pub priority: i32,
    /// 0.
    pub reserved: u32,
    /// Raised with a release store, by one thread at a time, never down; then `tell` for operations that ask.
    pub value: *mut u64,
    /// For `tell` and `fail`.
    pub cookie: *mut c_void,
    /// Extension chain or NULL.
    #[sabi(last_prefix_field)]
    pub next: *const Ext,
}

/// One operation.
#[repr(C)]
#[derive(Clone, Copy, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = OpRef, prefix_fields = OpFields)))]
pub struct Op {
    /// Number of the kind, as in [`op`](wharf_core::device::op).
    pub kind: u16,
    /// Bits of [`op_flag`].
    pub flags: u16,
    /// 0.
    pub reserved: u32,
    /// What the queue's value shows once this and all before has ended; 0 nothing.
    pub done: u64,
    /// Extension chain or NULL.
    pub next: *const Ext,
    /// By kind.
    #[sabi(last_prefix_field)]
    pub args: OpArgs,
}

/// Bits of [`Op::flags`].
pub mod op_flag {
    /// Somebody looks at exactly this value: `tell` when it is there.
    pub const TELL: u16 = 1;
    /// Keep begin and end for `times`.
    pub const STAMP: u16 = 2;
}

/// Numbers of `hint` of `submit`.
pub mod hint {
    /// See to it that the work runs.
    pub const NONE: u32 = 0;
    /// More follows at once.
    pub const MORE: u32 = 1;
    /// `wait` for the last operation follows on this thread.
    pub const WAITING: u32 = 2;
}

/// Arguments of an operation, by its kind.
#[repr(C)]
#[derive(Clone, Copy)]
pub union OpArgs {
    /// Room for kinds to come.
    pub words: [u64; 10],
    /// Copy.
    pub copy: CopyArgs,
    /// Fill.
    pub fill: FillArgs,
    /// Update.
    pub update: UpdateArgs,
    /// Launch.
    pub launch: LaunchArgs,
    /// After.
    pub after: AfterArgs,
    /// Call.
    pub call: CallArgs,
    /// Read and write.
    pub file: FileArgs,
    /// Prefetch.
    pub prefetch: PrefetchArgs,
}

// SAFETY: ten words are what the union is in memory; new kinds add members, never size.
unsafe impl GetStaticEquivalent_ for OpArgs {
    type StaticEquivalent = [u64; 10];
}
// SAFETY: as above.
unsafe impl StableAbi for OpArgs {
    type IsNonZeroType = <[u64; 10] as StableAbi>::IsNonZeroType;
    const LAYOUT: &'static TypeLayout = <[u64; 10] as StableAbi>::LAYOUT;
}

/// `len` bytes from address to address; handles of the devices that hold them, 0 process memory.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CopyArgs {
    pub from: u64,
    pub to: u64,
    pub len: u64,
    pub from_device: u64,
    pub to_device: u64,
}

/// `pattern` again and again over `len` bytes.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FillArgs {
    pub to: u64,
    pub len: u64,
    pub pattern: *const u8,
    pub pattern_len: u64,
}

/// Bytes captured during `submit`.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UpdateArgs {
    pub to: u64,
    pub len: u64,
    pub bytes: *const u8,
}

/// A kernel over a grid of groups.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchArgs {
    pub kernel: u64,
    pub groups: [u32; 3],
    pub size: [u32; 3],
    pub shared: u32,
    pub args_len: u32,
    pub args: *const u8,
}

/// Wait until another queue of this plugin shows `value`.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AfterArgs {
    pub queue: u64,
    pub value: u64,
}

/// A host function, in order.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CallArgs {
    pub call: Option<unsafe extern "C" fn(user: *mut ())>,
    pub user: *mut (),
}

/// Between a file of the plugin and memory.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FileArgs {
    pub file: u64,
    pub at: u64,
    pub address: u64,
    pub len: u64,
}

/// Move managed memory towards the device, or the host if `to_host` is not 0.
#[allow(missing_docs)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PrefetchArgs {
    pub at: u64,
    pub len: u64,
    pub to_host: u64,
}

const _: () = {
    assert!(size_of::<LaunchArgs>() == 48 && core::mem::offset_of!(LaunchArgs, args) == 40);
    assert!(size_of::<CopyArgs>() == 40 && size_of::<FillArgs>() == 32 && size_of::<FileArgs>() == 32);
};
