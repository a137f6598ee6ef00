//! Table "wharf.program": images, kernels, globals.

use super::{Block, Ext, Head, Param, Status, Str, To};
use abi_stable::StableAbi;
use core::ffi::c_void;

/// Programs. All but `load`, `unload` and `kernel` may be NULL.
#[repr(C)]
#[derive(Clone, Copy, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = ProgramV1Ref, prefix_fields = ProgramV1Fields)))]
pub struct ProgramV1 {
    /// Size and version.
    pub head: Head,
    /// Whether `load` would take the image; good before `start`. `InvalidImage` without a text: no.
    pub accepts: Option<unsafe extern "C" fn(device: u64, image: *const c_void, len: u64) -> Status>,
    /// Loads an image; nothing of it is kept borrowed.
    pub load: Option<
        unsafe extern "C" fn(
            device: u64,
            image: *const c_void,
            len: u64,
            next: *const Ext,
            program: *mut u64,
        ) -> Status,
    >,
    /// Drops a program and its kernels.
    pub unload: Option<unsafe extern "C" fn(device: u64, program: u64) -> Status>,
    /// A kernel by name. `layout`: the caller's idea of the parameters, none if `count` is 0.
    pub kernel: Option<
        unsafe extern "C" fn(
            device: u64,
            program: u64,
            name: Str,
            layout: *const Param,
            count: u32,
            out: To<Kernel>,
        ) -> Status,
    >,
    /// Address and size of a global by name.
    pub global: Option<unsafe extern "C" fn(device: u64, program: u64, name: Str, out: *mut Block) -> Status>,
    /// Name, whole length of the name and kind ([`symbol`]) of symbol `index`; `NotFound` without a text past the last.
    pub symbol: Option<
        unsafe extern "C" fn(
            device: u64,
            program: u64,
            index: u32,
            buf: *mut u8,
            cap: u64,
            len: *mut u64,
            kind: *mut u32,
        ) -> Status,
    >,
    /// Parameters of a kernel, as many as fit, and how many there are.
    pub params: Option<
        unsafe extern "C" fn(device: u64, kernel: u64, out: *mut Param, cap: u32, count: *mut u32) -> Status,
    >,
    /// Work-items in a group that use the device best with so much dynamic shared memory.
    #[sabi(last_prefix_field)]
    pub occupancy:
        Option<unsafe extern "C" fn(device: u64, kernel: u64, shared: u64, items: *mut u32) -> Status>,
}

/// A kernel. The caller has set `struct_size`.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = KernelRef, prefix_fields = KernelFields)))]
pub struct Kernel {
    /// Bytes of this struct.
    pub struct_size: u32,
    /// Number of parameters, 0 if the image does not tell.
    pub params: u32,
    /// The plugin's word, for launches.
    pub native: u64,
    /// Bytes of the packed arguments, `u32::MAX` if the image does not tell.
    pub args_len: u32,
    /// Most work-items in a group.
    pub group_max: u32,
    /// Bytes of shared memory of a group beside the dynamic part.
    pub shared_static: u32,
    /// 0.
    #[sabi(last_prefix_field)]
    pub flags: u32,
}

/// Kinds of [`ProgramV1::symbol`].
pub mod symbol {
    /// A kernel.
    pub const KERNEL: u32 = 0;
    /// A global variable.
    pub const GLOBAL: u32 = 1;
}
