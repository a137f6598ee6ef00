//! Table "wharf.memory": memory, and the host's view of it.
#![allow(clippy::len_without_is_empty)] // Of accessors that abi_stable derives.

use super::{Block, Ext, Head, Status, To};
use abi_stable::StableAbi;
use core::ffi::c_void;

/// Memory. All but `allocate` and `free` may be NULL.
#[repr(C)]
#[derive(Clone, Copy, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = MemoryV1Ref, prefix_fields = MemoryV1Fields)))]
pub struct MemoryV1 {
    /// Size and version.
    pub head: Head,
    /// Memory of `len` bytes or more.
    pub allocate: Option<unsafe extern "C" fn(device: u64, want: To<Alloc>, out: *mut Block) -> Status>,
    /// Gives memory back; on error the block is as it was.
    pub free: Option<unsafe extern "C" fn(device: u64, block: *const Block) -> Status>,
    /// A host address of a part of the block.
    pub map: Option<
        unsafe extern "C" fn(
            device: u64,
            block: *const Block,
            offset: u64,
            len: u64,
            access: u32,
            host: *mut *mut c_void,
        ) -> Status,
    >,
    /// Ends a mapping.
    pub unmap:
        Option<unsafe extern "C" fn(device: u64, block: *const Block, offset: u64, len: u64) -> Status>,
    /// Makes host writes visible to the device.
    pub flush:
        Option<unsafe extern "C" fn(device: u64, block: *const Block, offset: u64, len: u64) -> Status>,
    /// Makes device writes visible to the host.
    pub invalidate:
        Option<unsafe extern "C" fn(device: u64, block: *const Block, offset: u64, len: u64) -> Status>,
    /// Shows host memory to the device.
    pub register_host: Option<
        unsafe extern "C" fn(
            device: u64,
            host: *mut c_void,
            len: u64,
            access: u32,
            out: *mut Block,
        ) -> Status,
    >,
    /// Ends a registration.
    pub unregister_host: Option<unsafe extern "C" fn(device: u64, block: *const Block) -> Status>,
    /// Memory that another part of the system made.
    pub import_: Option<unsafe extern "C" fn(device: u64, from: To<Foreign>, out: *mut Block) -> Status>,
    /// Memory for another part of the system.
    #[sabi(last_prefix_field)]
    pub export_:
        Option<unsafe extern "C" fn(device: u64, block: *const Block, kind: u32, out: To<Foreign>) -> Status>,
}

/// A wish for memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = AllocRef, prefix_fields = AllocFields)))]
pub struct Alloc {
    /// Bytes of this struct.
    pub struct_size: u32,
    /// Bits of memory type.
    pub kind: u32,
    /// Bytes, 1 or more.
    pub len: u64,
    /// Least alignment, a power of two; 0 leaves it to the plugin.
    pub align: u64,
    /// Bits of access.
    pub access: u32,
    /// Bits of usage.
    pub usage: u32,
    /// Extension chain or NULL.
    #[sabi(last_prefix_field)]
    pub next: *const Ext,
}

/// Memory as the system names it: a file descriptor, a dma-buf. Reserved: no kind is defined yet.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = ForeignRef, prefix_fields = ForeignFields)))]
pub struct Foreign {
    /// Bytes of this struct.
    pub struct_size: u32,
    /// What `handle` is.
    pub kind: u32,
    /// The system's word.
    pub handle: u64,
    /// Bytes into it.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Bits of access.
    pub access: u32,
    /// 0.
    pub flags: u32,
    /// Extension chain or NULL.
    #[sabi(last_prefix_field)]
    pub next: *const Ext,
}
