//! Table "wharf.device": which devices there are and what they are.

use super::{Head, Status, To};
use abi_stable::StableAbi;

/// Devices. `property` and `peer` may be NULL.
#[repr(C)]
#[derive(Clone, Copy, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = DeviceV1Ref, prefix_fields = DeviceV1Fields)))]
pub struct DeviceV1 {
    /// Size and version.
    pub head: Head,
    /// Writes at most `cap` handles and the number of devices. Always the same between `open` and `close`. No driver
    /// is no error: the count is 0, the code is 0, and `err` of the status may hold the reason.
    pub list: Option<unsafe extern "C" fn(devices: *mut u64, cap: u32, count: *mut u32) -> Status>,
    /// Before the first use of a device, except for `caps`, `property` and `accepts`. Again is no error.
    pub start: Option<unsafe extern "C" fn(device: u64) -> Status>,
    /// After the last use; `start` may follow.
    pub stop: Option<unsafe extern "C" fn(device: u64) -> Status>,
    /// What the device is and takes; always the same. The caller has set `struct_size`.
    pub caps: Option<unsafe extern "C" fn(device: u64, out: To<Caps>) -> Status>,
    /// Writes at most `cap` bytes of a property and its whole length; `NotFound` without a text if it has none.
    pub property:
        Option<unsafe extern "C" fn(device: u64, id: u32, buf: *mut u8, cap: u64, len: *mut u64) -> Status>,
    /// Whether copies from one device to another go without the host.
    #[sabi(last_prefix_field)]
    pub peer: Option<unsafe extern "C" fn(from: u64, to: u64, can: *mut u32) -> Status>,
}

/// What a device is and takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = CapsRef, prefix_fields = CapsFields)))]
pub struct Caps {
    /// Bytes of this struct.
    pub struct_size: u32,
    /// Address space of device memory: 0 the process', else the plugin's own number.
    pub space: u32,
    /// Bit n: operations of kind n are taken.
    pub ops: u64,
    /// Bits of [`caps_flag`].
    pub flags: u64,
    /// One of [`pace`].
    pub pace: u32,
    /// With [`pace::POLLED`]: nanoseconds between two looks.
    pub poll_ns: u32,
    /// Unfinished operations a queue takes at least, 1 or more.
    pub depth: u32,
    /// Queues at once.
    pub lanes: u32,
    /// Alignment of allocations, a power of two.
    pub align: u32,
    /// Most bytes of kernel arguments.
    pub args_max: u32,
    /// Most work-items in a group.
    pub group_max: u32,
    /// Most bytes of dynamic shared memory of a group.
    pub shared_max: u32,
    /// Longest pattern of a fill, 1 or more if fills are taken.
    pub pattern_max: u32,
    /// Most bytes of an update, 1 or more if updates are taken.
    pub update_max: u32,
    /// Most bytes of an allocation; all ones where that is not known.
    #[sabi(last_prefix_field)]
    pub alloc_max: u64,
}

/// Bits of [`Caps::flags`].
pub mod caps_flag {
    /// Queues of this plugin wait for one another without the host.
    pub const NATIVE_WAIT: u64 = 1;
    /// Memory can be mapped.
    pub const MAPPABLE: u64 = 2;
    /// A mapping is a view of the memory itself.
    pub const COHERENT: u64 = 4;
    /// Copies reach ordinary process memory.
    pub const HOST_COPIES: u64 = 8;
    /// Patterns of fills are a power of two long, and their targets aligned to that.
    pub const PATTERN_POW2: u64 = 16;
}

/// How progress reaches a queue's value; numbers of [`Caps::pace`].
pub mod pace {
    /// By itself for every operation.
    pub const PUSHED: u32 = 0;
    /// By itself for operations with the tell flag, the rest in `poll`.
    pub const ON_REQUEST: u32 = 1;
    /// Only in `poll` and `wait`.
    pub const POLLED: u32 = 2;
}
