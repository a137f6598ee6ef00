//! The two tables that begin everything: what the host offers and what a plugin is.

use super::{Ext, Head, Status, Str, To};
use abi_stable::StableAbi;
use core::ffi::c_void;

/// What `wharf_plugin_entry_v1` is: called with the host's major and minor, answers the descriptor or NULL (refused).
pub type EntryFn = unsafe extern "C" fn(host_major: u32, host_minor: u32) -> To<PluginV1>;

/// First bytes of [`PluginV1`].
pub const MAGIC: [u8; 8] = *b"WHARFPL1";

/// What a host offers. Lives at least until `close` has returned.
#[repr(C)]
#[derive(Clone, Copy, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = HostV1Ref, prefix_fields = HostV1Fields)))]
pub struct HostV1 {
    /// Size and version.
    pub head: Head,
    /// After a queue's value was raised for an operation with the tell flag. Any thread, also inside `submit`; takes
    /// no lock. `cookie` is [`QueueArgs::cookie`](super::QueueArgs).
    pub tell: Option<unsafe extern "C" fn(cookie: *mut c_void)>,
    /// The queue is over: no value still ahead will be reached. The first call counts. `why.err` is fetched inside.
    pub fail: Option<unsafe extern "C" fn(cookie: *mut c_void, why: Status)>,
    /// A line for the host's log; level 1 error, 2 warning, 3 information, 4 debug, 5 trace.
    pub log: Option<unsafe extern "C" fn(level: i32, target: Str, text: Str)>,
    /// A further table of the host by name and major; `NotFound` if it has none.
    #[sabi(last_prefix_field)]
    pub query: Option<unsafe extern "C" fn(id: Str, major: u32, table: *mut *const c_void) -> Status>,
}

/// Texts of a plugin, for its whole life.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct Names {
    /// Short and stable: lower-case letters, digits, `_`, `-` and `.`; what a user types.
    pub id: Str,
    /// Who made it.
    pub vendor: Str,
    /// Its own version.
    pub version: Str,
    /// Anything that tells builds apart; may be empty.
    pub build: Str,
}

/// What a plugin is. All functions but `close` are mandatory.
#[repr(C)]
#[derive(Clone, Copy, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginV1Ref, prefix_fields = PluginV1Fields)))]
pub struct PluginV1 {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// Size and version.
    pub head: Head,
    /// Least minor version of a host that it works with.
    pub min_host_minor: u16,
    /// [`DRAFT`](super::DRAFT) that it was built with.
    pub draft: u16,
    /// 0.
    pub reserved: u32,
    /// Bits of [`plugin_flag`].
    pub flags: u64,
    /// Its names.
    pub names: Names,
    /// Begins. `host` lives until `close` has returned. A second call before that is `FailedPrecondition`.
    pub open: Option<unsafe extern "C" fn(host: To<HostV1>, config: *const Ext) -> Status>,
    /// Ends: devices that are left answer `FailedPrecondition` from here on.
    pub close: Option<unsafe extern "C" fn() -> Status>,
    /// A table by name and major, for the plugin's whole life; `NotFound` if it has none. Good before `open`.
    pub query: Option<unsafe extern "C" fn(id: Str, major: u32, table: *mut *const c_void) -> Status>,
    /// Writes at most `cap` bytes of the text to `buf` and its whole length to `len`. `NotFound` once it was dropped
    /// or pushed out by newer ones.
    pub error_text: Option<unsafe extern "C" fn(err: u64, buf: *mut u8, cap: u64, len: *mut u64) -> Status>,
    /// The text is no longer needed.
    #[sabi(last_prefix_field)]
    pub error_drop: Option<unsafe extern "C" fn(err: u64)>,
}

/// Bits of [`PluginV1::flags`].
pub mod plugin_flag {
    /// Panics or exceptions are stopped inside the plugin; without it they end the process.
    pub const CONTAINS_PANICS: u64 = 1;
    /// Built with the address sanitizer: only for a host that is too.
    pub const SANITIZER_ADDRESS: u64 = 0x100;
    /// Built with the thread sanitizer.
    pub const SANITIZER_THREAD: u64 = 0x200;
    /// Built with the memory sanitizer.
    pub const SANITIZER_MEMORY: u64 = 0x400;
}
