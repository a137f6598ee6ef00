//! The host's first look at a plugin, the same for C and Rust: descriptor and tables are proven to be what they must
//! be and copied into our own, zeroed ones, so that later calls read host memory and a missing function is NULL.
//!
//! # Safety
//! The plugin's promise is that of its library: pointers that are aligned and not null, with the right magic, point to
//! what the ABI says, for as long as the library is loaded, which is for ever.
#![allow(unsafe_code)]

use crate::{
    meta,
    refusal::Refusal,
    sized,
    sized::Bad,
    tables::{
        DRAFT, DeviceV1, EntryFn, HostV1, MAGIC, MAJOR, MINOR, MemoryV1, PluginV1, ProgramV1, QueueV1,
        Sized32, Str, To, id,
    },
};
use core::{ffi::c_void, mem::MaybeUninit, ptr};
use std::string::String;

/// A plugin that was looked at and not yet begun.
pub struct Opened {
    /// Its short name.
    pub id: String,
    /// Who made it.
    pub vendor: String,
    /// Its own version.
    pub version: String,
    /// What tells its builds apart, perhaps nothing.
    pub build: String,
    /// Minor version of the ABI that it was built with.
    pub minor: u16,
    /// Bits of [`plugin_flag`](crate::tables::plugin_flag).
    pub flags: u64,
    pub(crate) calls: Calls,
}

/// Our copies of a plugin's tables.
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    pub(crate) plugin: PluginV1,
    pub(crate) device: DeviceV1,
    pub(crate) memory: MemoryV1,
    pub(crate) queue: QueueV1,
    pub(crate) program: Option<ProgramV1>,
}

/// Calls the entry and looks at all that it leads to. No device is touched.
///
/// # Errors
/// The first thing that keeps the plugin from being used here.
///
/// # Safety
/// `entry` is the entry of a plugin in a library that is never unloaded.
pub unsafe fn negotiate(entry: EntryFn) -> Result<Opened, Refusal> {
    // SAFETY: the entry takes any two numbers.
    let from = unsafe { entry(MAJOR.into(), MINOR.into()) };
    // SAFETY: the entry's answer.
    let plugin = unsafe { descriptor(from.0) }?;
    let [id, vendor, version, build] = names(&plugin)?;
    let query = plugin.query.ok_or(Refusal::Missing { table: "wharf_plugin_v1", function: "query" })?;
    // SAFETY: the plugin's own function.
    let ask = |id: &'static str| unsafe { table(query, id) };
    let device = ask(id::DEVICE)?.ok_or(Refusal::NoTable { table: id::DEVICE })?;
    let memory = ask(id::MEMORY)?.ok_or(Refusal::NoTable { table: id::MEMORY })?;
    let queue = ask(id::QUEUE)?.ok_or(Refusal::NoTable { table: id::QUEUE })?;
    let program = ask(id::PROGRAM)?;
    let calls = Calls {
        plugin,
        // SAFETY: what `query` answered for this table.
        device: unsafe { copy::<DeviceV1>(device, id::DEVICE) }?,
        // SAFETY: what `query` answered for this table.
        memory: unsafe { copy::<MemoryV1>(memory, id::MEMORY) }?,
        // SAFETY: what `query` answered for this table.
        queue: unsafe { copy::<QueueV1>(queue, id::QUEUE) }?,
        program: match program {
            // SAFETY: what `query` answered for this table.
            Some(program) => Some(unsafe { copy::<ProgramV1>(program, id::PROGRAM) }?),
            None => None,
        },
    };
    mandatory(&calls)?;
    Ok(Opened { id, vendor, version, build, minor: plugin.head.minor, flags: plugin.flags, calls })
}

/// Our copy of a descriptor, once its beginning is proven.
///
/// # Safety
/// Null, misaligned, or a descriptor of the plugin's.
unsafe fn descriptor(from: *const PluginV1) -> Result<PluginV1, Refusal> {
    if from.is_null() {
        return Err(Refusal::Refused { host_major: MAJOR, host_minor: MINOR });
    }
    if !from.is_aligned() {
        let needed = align_of::<PluginV1>() as u64;
        return Err(Refusal::Value { what: "address of the descriptor", given: from.addr() as u64, needed });
    }
    // SAFETY: not null, aligned, and at least a magic by the entry's promise.
    let magic = unsafe { from.cast::<[u8; 8]>().read() };
    if magic != MAGIC {
        let given = u64::from_be_bytes(magic);
        return Err(Refusal::Value {
            what: "magic of the descriptor",
            given,
            needed: u64::from_be_bytes(MAGIC),
        });
    }
    // SAFETY: the magic is right, so a head follows it.
    let head = unsafe { &raw const (*from).head };
    // SAFETY: as above.
    let head = unsafe { head.read() };
    if head.major != MAJOR {
        return Err(Refusal::Major { host: MAJOR, plugin: head.major });
    }
    let least = core::mem::offset_of!(PluginV1, open) as u32;
    if head.struct_size < least || head.struct_size > sized::STRUCT_LEN_MAX {
        let needed = size_of::<PluginV1>() as u64;
        return Err(Refusal::Value {
            what: "size of the descriptor",
            given: head.struct_size.into(),
            needed,
        });
    }
    let mut own = MaybeUninit::<PluginV1>::zeroed();
    let len = sized::whole_words(size_of::<PluginV1>().min(head.struct_size as usize));
    // SAFETY: the descriptor has that many bytes, and `own` no fewer.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), own.as_mut_ptr().cast(), len) };
    // SAFETY: numbers, addresses and nullable functions: zero bytes and the plugin's bytes are values of them.
    let own = unsafe { own.assume_init() };
    if own.draft != DRAFT {
        return Err(Refusal::Draft { host: DRAFT, plugin: own.draft });
    }
    if own.min_host_minor > MINOR {
        return Err(Refusal::MinHostMinor { host: MINOR, needs: own.min_host_minor });
    }
    Ok(own)
}

fn names(plugin: &PluginV1) -> Result<[String; 4], Refusal> {
    let names = &plugin.names;
    let id = text(names.id, "id of the plugin")?;
    if !meta::is_id(id.as_bytes()) {
        return Err(Refusal::Text { what: "id of the plugin" });
    }
    let vendor = text(names.vendor, "vendor of the plugin")?;
    let version = text(names.version, "version of the plugin")?;
    Ok([id, vendor, version, text(names.build, "build of the plugin")?])
}

fn text(from: Str, what: &'static str) -> Result<String, Refusal> {
    if from.len > meta::TEXT_LEN_MAX as u64 {
        return Err(Refusal::Value { what, given: from.len, needed: meta::TEXT_LEN_MAX as u64 });
    }
    if from.len == 0 {
        return Ok(String::new());
    }
    if from.ptr.is_null() {
        return Err(Refusal::Text { what });
    }
    // SAFETY: not null, a few bytes, and by the descriptor's promise text for the plugin's life.
    let bytes = unsafe { core::slice::from_raw_parts(from.ptr, from.len as usize) };
    core::str::from_utf8(bytes).map(Into::into).map_err(|_| Refusal::Text { what })
}

/// A table by name, if the plugin has it.
///
/// # Safety
/// `query` is a plugin's.
unsafe fn table(
    query: unsafe extern "C" fn(Str, u32, *mut *const c_void) -> crate::tables::Status,
    id: &'static str,
) -> Result<Option<*const c_void>, Refusal> {
    let mut at = ptr::null();
    // SAFETY: name and place live for the call.
    let status = unsafe { query(Str::new(id), MAJOR.into(), &raw mut at) };
    Ok((status.code == 0 && !at.is_null()).then_some(at))
}

/// Our copy of a table.
///
/// # Safety
/// Misaligned, or a table of this type.
unsafe fn copy<T: Sized32>(from: *const c_void, what: &'static str) -> Result<T, Refusal> {
    // SAFETY: the caller's promise is ours.
    unsafe { sized::read(To(from.cast::<T>())) }.map_err(|bad| match bad {
        Bad::Null => Refusal::NoTable { table: what },
        Bad::Misaligned => Refusal::Value { what, given: from.addr() as u64, needed: align_of::<T>() as u64 },
        Bad::Short { size, least } => Refusal::Value { what, given: size.into(), needed: least.into() },
        Bad::Long { size } => {
            Refusal::Value { what, given: size.into(), needed: sized::STRUCT_LEN_MAX.into() }
        }
    })
}

fn mandatory(calls: &Calls) -> Result<(), Refusal> {
    let Calls { plugin, device, memory, queue, program } = calls;
    let heads = [
        (id::DEVICE, device.head),
        (id::MEMORY, memory.head),
        (id::QUEUE, queue.head),
        (id::PROGRAM, program.map_or(device.head, |program| program.head)),
    ];
    for (what, head) in heads {
        if head.major != MAJOR {
            return Err(Refusal::Value { what, given: head.major.into(), needed: MAJOR.into() });
        }
    }
    let functions = [
        ("wharf_plugin_v1", "open", plugin.open.is_some()),
        ("wharf_plugin_v1", "error_text", plugin.error_text.is_some()),
        ("wharf_plugin_v1", "error_drop", plugin.error_drop.is_some()),
        (id::DEVICE, "list", device.list.is_some()),
        (id::DEVICE, "start", device.start.is_some()),
        (id::DEVICE, "stop", device.stop.is_some()),
        (id::DEVICE, "caps", device.caps.is_some()),
        (id::MEMORY, "allocate", memory.allocate.is_some()),
        (id::MEMORY, "free", memory.free.is_some()),
        (id::QUEUE, "create", queue.create.is_some()),
        (id::QUEUE, "destroy", queue.destroy.is_some()),
        (id::QUEUE, "submit", queue.submit.is_some()),
        (id::QUEUE, "poll", queue.poll.is_some()),
        (id::PROGRAM, "load", program.is_none_or(|p| p.load.is_some())),
        (id::PROGRAM, "unload", program.is_none_or(|p| p.unload.is_some())),
        (id::PROGRAM, "kernel", program.is_none_or(|p| p.kernel.is_some())),
    ];
    match functions.into_iter().find(|(_, _, there)| !there) {
        Some((table, function, _)) => Err(Refusal::Missing { table, function }),
        None => Ok(()),
    }
}

/// What this host offers to plugins.
pub(crate) const fn host_table(
    tell: unsafe extern "C" fn(*mut c_void),
    fail: unsafe extern "C" fn(*mut c_void, crate::tables::Status),
    log: unsafe extern "C" fn(i32, Str, Str),
    query: unsafe extern "C" fn(Str, u32, *mut *const c_void) -> crate::tables::Status,
) -> HostV1 {
    HostV1 {
        head: crate::tables::Head::of::<HostV1>(),
        tell: Some(tell),
        fail: Some(fail),
        log: Some(log),
        query: Some(query),
    }
}
