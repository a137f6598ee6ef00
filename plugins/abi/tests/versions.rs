//! Plugins of other ages and broken ones, simulated by changing the tables of a good one.
//!
//! # Safety
//! Changed tables are leaked and begin as the real ones, so every pointer that a test hands over is what its reader
//! takes it for, except where the reader must find out.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)] // These are tests.

mod common;

use common::{
    Watch,
    toy::{ToyPlugin, turn},
};
use std::{cell::RefCell, ffi::c_void, ptr, sync::Arc};
use wharf_abi::{
    Instance, Refusal, export, negotiate,
    tables::{
        Alloc, Block, Caps, DRAFT, DeviceV1, EntryFn, Ext, Head, HostV1, MINOR, MemoryV1, Op, PluginV1,
        ProgramV1, QueueArgs, QueueV1, Sized32, Status, Str, To, ext_flag, id,
    },
    text,
};
use wharf_core::{
    device::{self, Device, Gauge, Hint, HostAccess, Lane, Programs, Step, Want},
    fault::Kind,
};

const WANT: Want = Want { len: 8, align: 0, kind: 0, access: 0, usage: 0 };

/// A plugin whose tables a test has changed. Room behind each for fields of a later minor.
#[derive(Clone, Copy)]
struct Fake {
    plugin: Longer<PluginV1>,
    device: Longer<DeviceV1>,
    memory: Longer<MemoryV1>,
    queue: Longer<QueueV1>,
    program: Longer<ProgramV1>,
    answer: Option<fn() -> To<PluginV1>>,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Longer<T> {
    table: T,
    later: [u64; 2],
}

thread_local! {
    static FAKE: RefCell<Option<&'static Fake>> = const { RefCell::new(None) };
}

fn fake() -> &'static Fake {
    FAKE.with(|fake| fake.borrow().expect("set"))
}

unsafe extern "C" fn fake_entry(_: u32, _: u32) -> To<PluginV1> {
    match fake().answer {
        Some(answer) => answer(),
        None => To(&raw const fake().plugin.table),
    }
}

unsafe extern "C" fn fake_query(name: Str, _: u32, table: *mut *const c_void) -> Status {
    // SAFETY: a name of the host's, for the call.
    let name = unsafe { std::slice::from_raw_parts(name.ptr, name.len as usize) };
    let at: *const c_void = match std::str::from_utf8(name).unwrap() {
        id::DEVICE => (&raw const fake().device).cast(),
        id::MEMORY => (&raw const fake().memory).cast(),
        id::QUEUE => (&raw const fake().queue).cast(),
        id::PROGRAM => (&raw const fake().program).cast(),
        _ => ptr::null(),
    };
    // SAFETY: the host's place.
    unsafe { table.write(at) };
    Status::OK
}

fn real<T: Copy>(plugin: &PluginV1, name: &str) -> Longer<T> {
    let mut at = ptr::null();
    // SAFETY: a query of the toy's; name and place live for the call.
    let status = unsafe { plugin.query.unwrap()(Str::new(name), 1, &raw mut at) };
    assert_eq!(status, Status::OK);
    // SAFETY: the toy's table of this name, whose type the caller says.
    Longer { table: unsafe { at.cast::<T>().read() }, later: [!0; 2] }
}

fn with(change: impl FnOnce(&mut Fake)) -> Result<Arc<Instance>, Refusal> {
    // SAFETY: the toy's entry.
    let entry = unsafe { export::entry::<ToyPlugin>(1, 0) };
    // SAFETY: the toy's descriptor.
    let mut plugin = unsafe { *entry.0 };
    let mut fake = Fake {
        device: real(&plugin, id::DEVICE),
        memory: real(&plugin, id::MEMORY),
        queue: real(&plugin, id::QUEUE),
        program: real(&plugin, id::PROGRAM),
        plugin: Longer {
            table: {
                plugin.query = Some(fake_query);
                plugin
            },
            later: [!0; 2],
        },
        answer: None,
    };
    change(&mut fake);
    FAKE.with(|place| *place.borrow_mut() = Some(Box::leak(Box::new(fake))));
    // SAFETY: an entry of this program.
    Ok(Instance::new(unsafe { negotiate(fake_entry as EntryFn) }?, 1))
}

fn refusal(change: impl FnOnce(&mut Fake)) -> Refusal {
    with(change).map(drop).unwrap_err()
}

#[test]
fn an_older_plugin_lacks_functions_and_a_newer_one_has_more() {
    let _turn = turn();
    let older = with(|fake| {
        fake.memory.table.head.struct_size = 8 + 2 * 8;
        fake.program.table.head.struct_size = 8 + 4 * 8;
        fake.queue.table.head.struct_size = 8 + 4 * 8;
    });
    let device = older.unwrap().devices().unwrap().remove(0);
    device.allocate(&WANT).unwrap();
    device.load(b"toy").unwrap();
    assert_eq!(device.global(1, b"x").unwrap_err().kind, Kind::Unsupported);
    let block = device::Block { base: 0, len: 8, native: 0 };
    assert_eq!(device.map(&block, 0, 1).unwrap_err().kind, Kind::Unsupported);
    let (lane, gauge, _) = device.lane(Watch::new().tick()).unwrap();
    assert!(!gauge.wait(1, Some(77)) && gauge.times(4).is_none());
    drop((lane, device));
    let newer = with(|fake| {
        fake.plugin.table.head.struct_size += 16;
        fake.plugin.table.head.minor = 9;
        fake.memory.table.head.struct_size += 16;
        fake.queue.table.head.struct_size += 16;
    });
    let newer = newer.unwrap();
    assert_eq!(newer.opened().minor, 9);
    newer.devices().unwrap()[0].allocate(&WANT).unwrap();
}

#[test]
fn a_descriptor_that_cannot_be_is_refused_with_its_reason() {
    let null = refusal(|fake| fake.answer = Some(|| To::NULL));
    assert_eq!(null.class(), "refused");
    let odd = refusal(|fake| {
        fake.answer = Some(|| To((&raw const fake_plugin().reserved).cast::<u8>().wrapping_add(1).cast()))
    });
    assert!(odd.to_string().starts_with("address of the descriptor"), "{odd}");
    let magic = refusal(|fake| fake.plugin.table.magic[0] = b'X');
    assert!(magic.to_string().starts_with("magic"), "{magic}");
    for size in [0, 8, 95, 5000, u32::MAX] {
        let size = refusal(|fake| fake.plugin.table.head.struct_size = size);
        assert!(size.to_string().starts_with("size of the descriptor"), "{size}");
    }
    let half = refusal(|fake| fake.plugin.table.head.struct_size = 100);
    assert_eq!(half, Refusal::Missing { table: "wharf_plugin_v1", function: "query" });
    let short = refusal(|fake| fake.plugin.table.head.struct_size -= 8);
    assert_eq!(short, Refusal::Missing { table: "wharf_plugin_v1", function: "error_drop" });
    for refusal in [magic, short, odd] {
        assert_eq!(refusal.class(), "bad_descriptor");
        assert!(!refusal.to_string().contains('\n'));
    }
}

fn fake_plugin() -> &'static PluginV1 {
    &fake().plugin.table
}

#[test]
fn another_major_draft_or_minimum_says_which_side_to_upgrade() {
    let newer = refusal(|fake| fake.plugin.table.head.major = 2);
    assert_eq!(newer.to_string(), "plugin has abi major 2, host has 1: upgrade the host");
    assert_eq!(newer.class(), "too_new");
    let older = refusal(|fake| fake.plugin.table.head.major = 0);
    assert_eq!((older.class(), older), ("too_old", Refusal::Major { host: 1, plugin: 0 }));
    let draft = refusal(|fake| fake.plugin.table.draft = DRAFT + 1);
    let both = [DRAFT + 1, DRAFT].map(|number| format!("draft {number}"));
    assert!(both.iter().all(|number| draft.to_string().contains(number)), "{draft}");
    assert!(draft.to_string().ends_with("upgrade the host"));
    let minimum = refusal(|fake| fake.plugin.table.min_host_minor = MINOR + 1);
    assert_eq!(
        (minimum.class(), minimum),
        ("too_new", Refusal::MinHostMinor { host: MINOR, needs: MINOR + 1 })
    );
}

#[test]
fn a_table_that_cannot_be_is_refused_with_its_reason() {
    let missing = refusal(|fake| fake.queue.table.submit = None);
    assert_eq!(missing.to_string(), "mandatory function submit of wharf.queue is null");
    let missing = refusal(|fake| fake.device.table.head.struct_size = 16);
    assert_eq!(missing, Refusal::Missing { table: id::DEVICE, function: "start" });
    let missing = refusal(|fake| fake.program.table.load = None);
    assert_eq!(missing, Refusal::Missing { table: id::PROGRAM, function: "load" });
    let size = refusal(|fake| fake.memory.table.head.struct_size = 4);
    assert_eq!(size, Refusal::Value { what: id::MEMORY, given: 4, needed: 8 });
    let major = refusal(|fake| fake.queue.table.head = Head { major: 2, ..fake.queue.table.head });
    assert_eq!(major, Refusal::Value { what: id::QUEUE, given: 2, needed: 1 });
    let no_query = refusal(|fake| fake.plugin.table.query = None);
    assert_eq!(no_query, Refusal::Missing { table: "wharf_plugin_v1", function: "query" });
}

#[test]
fn names_that_are_none_are_refused() {
    let id = refusal(|fake| fake.plugin.table.names.id = Str::new("A B"));
    assert_eq!(id, Refusal::Text { what: "id of the plugin" });
    let null = refusal(|fake| fake.plugin.table.names.vendor = Str { ptr: ptr::null(), len: 3 });
    assert_eq!(null, Refusal::Text { what: "vendor of the plugin" });
    let bytes = refusal(|fake| fake.plugin.table.names.version = Str::bytes(b"\xff"));
    assert_eq!(bytes, Refusal::Text { what: "version of the plugin" });
    let long = refusal(|fake| fake.plugin.table.names.build.len = u64::MAX);
    assert_eq!(long.class(), "bad_descriptor");
}

unsafe extern "C" fn liar_list(_: *mut u64, _: u32, count: *mut u32) -> Status {
    // SAFETY: the host's place.
    unsafe { count.write(u32::MAX) };
    Status::OK
}
unsafe extern "C" fn null_list(_: *mut u64, _: u32, count: *mut u32) -> Status {
    // SAFETY: the host's place.
    unsafe { count.write(3) };
    Status::OK
}
unsafe extern "C" fn liar_caps(_: u64, out: To<Caps>) -> Status {
    // SAFETY: the host's place.
    unsafe { (*out.as_mut()).align = 3 };
    Status::OK
}
unsafe extern "C" fn short_block(_: u64, _: To<Alloc>, out: *mut Block) -> Status {
    // SAFETY: the host's place.
    unsafe { out.write(Block { base: 0, len: 7, native: 0 }) };
    Status::OK
}
unsafe extern "C" fn no_queue(_: u64, _: To<QueueArgs>, _: *mut u64) -> Status {
    Status::OK
}
unsafe extern "C" fn greedy(_: u64, _: To<Op>, _: u32, _: u32, _: u32, taken: *mut u32) -> Status {
    // SAFETY: the host's place.
    unsafe { taken.write(99) };
    Status::OK
}
unsafe extern "C" fn garbage(_: u64, _: *const Block) -> Status {
    Status { code: -77, native: 3, err: 0xdead_beef_0000 }
}
unsafe extern "C" fn odd_text(_: u64, buf: *mut u8, cap: u64, len: *mut u64) -> Status {
    // SAFETY: the host's place for as many bytes as it says.
    unsafe { ptr::write_bytes(buf, 0xff, cap as usize) };
    // SAFETY: the host's place.
    unsafe { len.write(u64::MAX) };
    Status::OK
}

#[test]
fn answers_that_cannot_be_are_failures_of_the_backend() {
    let _turn = turn();
    let kind = |list| {
        let plugin = with(|fake| fake.device.table.list = Some(list)).unwrap();
        plugin.devices().map(drop).unwrap_err().kind
    };
    assert_eq!((kind(liar_list), kind(null_list)), (Kind::BackendFailure, Kind::BackendFailure));
    let plugin = with(|fake| fake.device.table.caps = Some(liar_caps)).unwrap();
    let fault = plugin.devices().map(drop).unwrap_err();
    assert!(
        text::of(&fault).contains("pace") || text::of(&fault).contains("alignment"),
        "{}",
        text::of(&fault)
    );
    drop(plugin);
    let plugin = with(|fake| {
        fake.memory.table.allocate = Some(short_block);
        fake.memory.table.free = Some(garbage);
        fake.plugin.table.error_text = Some(odd_text);
        fake.queue.table.submit = Some(greedy);
    });
    let device = plugin.unwrap().devices().unwrap().remove(0);
    assert_eq!(device.allocate(&WANT).unwrap_err().kind, Kind::BackendFailure);
    let fault = device.free(&device::Block { base: 0, len: 8, native: 0 }).unwrap_err();
    assert_eq!((fault.kind, fault.native), (Kind::BackendFailure, 3));
    assert!(text::get(fault.text).unwrap().starts_with('\u{fffd}'));
    let watch = Watch::new();
    let (mut lane, _, _) = device.lane(watch.tick()).unwrap();
    let step = Step { op: device::Op::Barrier, done: 1, tell: false, stamp: false };
    let (taken, fault) = lane.submit(&[step], Hint::None).unwrap_err();
    assert_eq!((taken, fault.kind, watch.fault()), (0, Kind::BackendFailure, Some(fault)));
    drop((lane, device));
    let device = with(|fake| fake.queue.table.create = Some(no_queue)).unwrap().devices().unwrap().remove(0);
    assert_eq!(device.lane(Watch::new().tick()).map(drop).unwrap_err().kind, Kind::BackendFailure);
}

unsafe extern "C" fn nothing(_: *mut c_void) {}
unsafe extern "C" fn no_fail(_: *mut c_void, _: Status) {}

/// The toy's tables, called as a host in C would.
fn begun() -> (PluginV1, u64) {
    // SAFETY: the toy's entry.
    let entry = unsafe { export::entry::<ToyPlugin>(1, 0) };
    // SAFETY: the toy's descriptor.
    let plugin = unsafe { *entry.0 };
    let mut host = HostV1::empty();
    host.head = Head::of::<HostV1>();
    host.tell = Some(nothing);
    host.fail = Some(no_fail);
    // SAFETY: a host table that lives for the call; the toy keeps a copy.
    assert_eq!(unsafe { plugin.open.unwrap()(To(&raw const host), ptr::null()) }, Status::OK);
    let device = real::<DeviceV1>(&plugin, id::DEVICE).table;
    let (mut handles, mut count) = ([0u64; 2], 0u32);
    // SAFETY: places for two handles and the count.
    assert_eq!(unsafe { device.list.unwrap()(handles.as_mut_ptr(), 2, &raw mut count) }, Status::OK);
    // SAFETY: a handle that was listed.
    assert_eq!(unsafe { device.start.unwrap()(handles[0]) }, Status::OK);
    (plugin, handles[0])
}

fn close(plugin: &PluginV1) {
    // SAFETY: nothing of the toy is in use.
    assert_eq!(unsafe { plugin.close.unwrap()() }, Status::OK);
}

fn kind(status: Status) -> Kind {
    wharf_abi::code::decode(status.code).0
}

fn link(flags: u32, next: *const Ext) -> Ext {
    Ext { kind: 0x7777, size: size_of::<Ext>() as u32, flags, reserved: 0, next: next.cast() }
}

#[test]
fn an_unknown_extension_is_skipped_unless_it_is_required() {
    let _turn = turn();
    let (plugin, device) = begun();
    let memory = real::<MemoryV1>(&plugin, id::MEMORY).table;
    let mut block = Block { base: 0, len: 0, native: 0 };
    let mut allocate = |next: *const Ext| {
        let mut want = Alloc::empty();
        (want.len, want.next) = (8, next);
        // SAFETY: a started device; want, chain and place live for the call.
        unsafe { memory.allocate.unwrap()(device, To(&raw const want), &raw mut block) }
    };
    let (optional, required) = (link(0, ptr::null()), link(ext_flag::REQUIRED, ptr::null()));
    assert_eq!(allocate(&raw const optional), Status::OK);
    assert_eq!(kind(allocate(&raw const required)), Kind::Unsupported);
    let both = link(0, &raw const required);
    assert_eq!(kind(allocate(&raw const both)), Kind::Unsupported);
    let mut ring = link(0, ptr::null());
    ring.next = (&raw const ring).cast();
    assert_eq!(kind(allocate(&raw const ring)), Kind::InvalidArgument);
    close(&plugin);
}

#[test]
fn an_argument_struct_of_another_age_is_read_by_the_smaller_size() {
    let _turn = turn();
    let (plugin, device) = begun();
    let table = real::<DeviceV1>(&plugin, id::DEVICE).table;
    let mut longer = Longer { table: Caps::empty(), later: [5; 2] };
    longer.table.struct_size += 16;
    // SAFETY: a listed device, and a place that is as long as it says.
    assert_eq!(unsafe { table.caps.unwrap()(device, To::to_mut(&raw mut longer.table)) }, Status::OK);
    assert_eq!((longer.table.align, longer.table.struct_size, longer.later), (256, 88, [5; 2]));
    let mut short = Caps::empty();
    short.struct_size = 40;
    // SAFETY: as above.
    let status = unsafe { table.caps.unwrap()(device, To::to_mut(&raw mut short)) };
    assert_eq!((kind(status), short.ops), (Kind::InvalidArgument, 0));
    close(&plugin);
}

#[test]
fn a_text_is_read_in_two_calls_and_gone_once_dropped() {
    let _turn = turn();
    let (plugin, device) = begun();
    let memory = real::<MemoryV1>(&plugin, id::MEMORY).table;
    // SAFETY: a started device; null is found.
    let status = unsafe { memory.free.unwrap()(device, ptr::null()) };
    assert_eq!(kind(status), Kind::InvalidArgument);
    let read = plugin.error_text.unwrap();
    let (mut len, mut buf) = (0u64, [b'.'; 128]);
    // SAFETY: a place for the length.
    assert_eq!(unsafe { read(status.err, ptr::null_mut(), 0, &raw mut len) }, Status::OK);
    // SAFETY: places for four bytes and the length.
    assert_eq!(unsafe { read(status.err, buf.as_mut_ptr(), 4, &raw mut len) }, Status::OK);
    assert_eq!(&buf[..6], b"free..");
    // SAFETY: as above.
    assert_eq!(unsafe { read(status.err, buf.as_mut_ptr(), len, &raw mut len) }, Status::OK);
    assert_eq!(&buf[..len as usize], b"free: invalid argument: argument 1 is zero");
    // SAFETY: the key is not used again, but to see that it is gone.
    unsafe { plugin.error_drop.unwrap()(status.err) };
    // SAFETY: as above.
    assert_eq!(kind(unsafe { read(status.err, ptr::null_mut(), 0, &raw mut len) }), Kind::NotFound);
    close(&plugin);
}

#[test]
fn operations_may_lie_further_apart_and_not_closer() {
    let _turn = turn();
    let (plugin, device) = begun();
    let queues = real::<QueueV1>(&plugin, id::QUEUE).table;
    let (mut value, mut queue, mut taken) = (0u64, 0u64, 0u32);
    let mut args = QueueArgs::empty();
    args.value = &raw mut value;
    // SAFETY: a started device; the value outlives the queue.
    assert_eq!(unsafe { queues.create.unwrap()(device, To(&raw const args), &raw mut queue) }, Status::OK);
    let args = wharf_abi::tables::OpArgs { words: [0; 10] };
    let op = Op { kind: 0, flags: 0, reserved: 0, done: 1, next: ptr::null(), args };
    let mut ops = [Longer { table: op, later: [!0; 2] }; 12];
    (ops[11].table.done, ops[10].table.kind) = (12, 0);
    let mut submit = |count: u32, stride: u32, ops: &[Longer<Op>]| {
        // SAFETY: a live queue, and operations as far apart as is said, unless that is found to be wrong.
        let status = unsafe {
            queues.submit.unwrap()(queue, To(ops.as_ptr().cast()), count, stride, 0, &raw mut taken)
        };
        (status, taken)
    };
    assert_eq!(submit(12, 120, &ops), (Status::OK, 12));
    for stride in [0, 96, 108] {
        let (status, taken) = submit(1, stride, &ops);
        assert_eq!((kind(status), taken), (Kind::InvalidArgument, 0));
    }
    ops[9].table.kind = 900;
    let (status, taken) = submit(12, 120, &ops);
    assert_eq!((kind(status), taken), (Kind::Unsupported, 9));
    // SAFETY: nothing of the queue is pending.
    assert_eq!(unsafe { queues.destroy.unwrap()(queue) }, Status::OK);
    assert_eq!(value, 1);
    // SAFETY: null is found.
    assert_eq!(kind(unsafe { queues.poll.unwrap()(0) }), Kind::InvalidHandle);
    close(&plugin);
    let memory = real::<MemoryV1>(&plugin, id::MEMORY).table;
    let block = Block { base: 0, len: 0, native: 0 };
    // SAFETY: a handle of a device that is closed, whose slot stays.
    assert_eq!(kind(unsafe { memory.free.unwrap()(device, &raw const block) }), Kind::FailedPrecondition);
}
