//! The values that never change within the major: status, text, extension chain, block, parameter.

use abi_stable::StableAbi;

/// What every table begins with.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, StableAbi)]
pub struct Head {
    /// Bytes of the table as its maker knows it.
    pub struct_size: u32,
    /// Major version of the ABI.
    pub major: u16,
    /// Minor version that the maker was built with.
    pub minor: u16,
}

impl Head {
    /// The head of a table of this version.
    pub const fn of<T>() -> Self {
        Head { struct_size: size_of::<T>() as u32, major: super::MAJOR, minor: super::MINOR }
    }
}

/// Borrowed UTF-8 text, not terminated; for the call, or for the plugin's life where a table says so.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct Str {
    /// First byte; any value if `len` is 0.
    pub ptr: *const u8,
    /// Bytes.
    pub len: u64,
}

// SAFETY argument kept in types: a `Str` is only an address; reading through it is what is unsafe.
#[allow(unsafe_code)]
// SAFETY: nothing is read through a `Str` without an unsafe block of the reader's own.
unsafe impl Sync for Str {}
#[allow(unsafe_code)]
// SAFETY: as for `Sync`.
unsafe impl Send for Str {}

impl Str {
    /// The text as it crosses.
    pub const fn new(text: &str) -> Self {
        Str { ptr: text.as_ptr(), len: text.len() as u64 }
    }
    /// Bytes as they cross (a name may be any bytes).
    pub const fn bytes(bytes: &[u8]) -> Self {
        Str { ptr: bytes.as_ptr(), len: bytes.len() as u64 }
    }
}

/// What a call answers.
///
/// `code` is 0 for success. Otherwise its low byte is a number of [`Kind`](wharf_core::fault::Kind) (an unknown one
/// reads as `BackendFailure`) and its second byte one of [`Blame`](wharf_core::fault::Blame); the other bytes are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, StableAbi)]
#[must_use]
pub struct Status {
    /// 0, or kind and blame.
    pub code: i32,
    /// Code of the driver or the system, 0 none.
    pub native: u32,
    /// Key of a text in the plugin's error store, 0 none. The receiver fetches it with `error_text` and gives it up
    /// with `error_drop`. A success may carry one: `list` says so why there is no device.
    pub err: u64,
}

impl Status {
    /// Success.
    pub const OK: Status = Status { code: 0, native: 0, err: 0 };
}

/// A link of an extension chain. The body follows the head in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct Ext {
    /// What it is.
    pub kind: u32,
    /// Bytes, head included.
    pub size: u32,
    /// Bits of [`ext_flag`].
    pub flags: u32,
    /// 0.
    pub reserved: u32,
    /// The next link or NULL; really `*const Ext`, but the type check knows no recursive types.
    pub next: *const core::ffi::c_void,
}

/// Bits of [`Ext::flags`].
pub mod ext_flag {
    /// Who does not know it refuses the call with `Unsupported`; otherwise it is skipped.
    pub const REQUIRED: u32 = 1;
}

/// Memory that a device gave out.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, StableAbi)]
pub struct Block {
    /// First address, in the address space the device's caps name.
    pub base: u64,
    /// Bytes.
    pub len: u64,
    /// The plugin's own word.
    pub native: u64,
}

/// One parameter of a kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, StableAbi)]
pub struct Param {
    /// Bytes from the start of the packed arguments.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// 0.
    pub flags: u32,
}
