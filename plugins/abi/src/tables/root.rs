//! The root module by which abi_stable compares a Rust plugin's idea of all these types with the host's.

use super::{
    AllocRef, CapsRef, DeviceV1Ref, EntryFn, ForeignRef, HostV1Ref, KernelRef, MemoryV1Ref, OpRef, PluginV1,
    PluginV1Ref, ProgramV1Ref, QueueArgsRef, QueueV1Ref, To,
};
use abi_stable::{
    StableAbi, library::RootModule, package_version_strings, prefix_type::PrefixTypeTrait,
    sabi_types::VersionStrings,
};

/// The entry, and the type of everything that is reached through it. Only `entry` has a value: the others make the
/// type check walk types that calls pass as [`To`].
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = RootRef, prefix_fields = RootFields)))]
pub struct Root {
    /// As the C symbol `wharf_plugin_entry_v1`.
    #[sabi(last_prefix_field)]
    pub entry: unsafe extern "C" fn(host_major: u32, host_minor: u32) -> To<PluginV1>,
    /// Types of the descriptor and the host's table.
    pub base: Option<extern "C" fn() -> BaseRef>,
    /// Types of the plugin's tables.
    pub tables: Option<extern "C" fn() -> TablesRef>,
    /// Types of the argument structs.
    pub arguments: Option<extern "C" fn() -> ArgumentsRef>,
}

/// Types of the two tables that begin everything.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = BaseRef, prefix_fields = BaseFields)))]
pub struct Base {
    /// Of the descriptor.
    pub plugin: Option<PluginV1Ref>,
    /// Of the host's table.
    #[sabi(last_prefix_field)]
    pub host: Option<HostV1Ref>,
}

/// Types of the tables of `query`.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = TablesRef, prefix_fields = TablesFields)))]
pub struct Tables {
    /// Of the table of devices.
    pub device: Option<DeviceV1Ref>,
    /// Of the table of memory.
    pub memory: Option<MemoryV1Ref>,
    /// Of the table of queues.
    pub queue: Option<QueueV1Ref>,
    /// Of the table of programs.
    #[sabi(last_prefix_field)]
    pub program: Option<ProgramV1Ref>,
}

/// Types of the structs that calls point to.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = ArgumentsRef, prefix_fields = ArgumentsFields)))]
pub struct Arguments {
    /// Of caps.
    pub caps: Option<CapsRef>,
    /// Of a wish for memory.
    pub alloc: Option<AllocRef>,
    /// Of memory of the system.
    pub foreign: Option<ForeignRef>,
    /// Of what makes a queue.
    pub queue: Option<QueueArgsRef>,
    /// Of an operation.
    pub op: Option<OpRef>,
    /// Of a kernel.
    #[sabi(last_prefix_field)]
    pub kernel: Option<KernelRef>,
}

impl RootModule for RootRef {
    abi_stable::declare_root_module_statics! {RootRef}
    const BASE_NAME: &'static str = "wharf_plugin";
    const NAME: &'static str = "wharf plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}

impl Root {
    /// The root module of a plugin with this entry.
    pub fn with_entry(entry: EntryFn) -> RootRef {
        Root { entry, base: None, tables: None, arguments: None }.leak_into_prefix()
    }
}

const _: () = assert!(size_of::<EntryFn>() == 8);
