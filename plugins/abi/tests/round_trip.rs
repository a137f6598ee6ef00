//! One test source over a backend as it is and over the same backend behind the tables: the results are the same.
//!
//! # Safety
//! Mappings are used between `map` and `unmap`, inside their length.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)] // These are tests.

mod common;

use common::{Watch, open};
use std::slice;
use wharf_abi::{DynDevice, text};
use wharf_core::{
    bits::{Access, MemoryType, Usage},
    device::{
        Block, Describe, Device, Gauge, Hint, HostAccess, Kernel, Lane, Op, PEER_HOST, Param, Programs, Step,
        SymbolKind, Want, property,
    },
    fault::{Fault, Kind},
};
use wharf_null::{IMAGE, Knobs, Null};

wharf_abi::plugin! {
    struct NullPlugin,
    backend: Null,
    id: "null", vendor: "Wharf", version: "1",
    devices: devices,
    roles: [programs, host_access, properties],
}

fn devices() -> Result<Vec<Null>, Fault> {
    Ok(vec![Null::new(Knobs { depth: 40, ..Knobs::default() })])
}

fn device() -> DynDevice {
    open::<NullPlugin>().devices().unwrap().remove(0)
}

fn want(len: u64) -> Want {
    let (kind, access, usage) = (MemoryType::DEVICE_VISIBLE, Access::ALL, Usage::ALL);
    Want { len, align: 0, kind: kind.bits(), access: access.bits(), usage: usage.bits() }
}

fn step(op: Op<'_>, done: u64) -> Step<'_> {
    Step { op, done, tell: true, stamp: true }
}

fn all<D: Device + Programs + HostAccess + Describe>(device: &D) {
    caps(device);
    bytes_move(device);
    programs(device);
    mappings(device);
    properties(device);
    faults(device);
}

fn caps<D: Device>(device: &D) {
    let want = Null::new(Knobs { depth: 40, ..Knobs::default() }).caps();
    let got = device.caps();
    assert_eq!(wharf_core::device::Caps { backend: want.backend, ..got }, want);
}

fn bytes_move<D: Device>(device: &D) {
    let block = device.allocate(&want(64)).unwrap();
    let watch = Watch::new();
    let (mut lane, gauge, _) = device.lane(watch.tick()).unwrap();
    let mut host = [0u8; 64];
    let to = host.as_mut_ptr().expose_provenance() as u64;
    let steps = [
        step(Op::Fill { to: block.base, len: 64, pattern: &[1, 2] }, 1),
        step(Op::Update { to: block.base + 4, bytes: b"abcd" }, 2),
        step(Op::Barrier, 0),
        step(Op::Copy { from: block.base, to: block.base + 32, len: 16, peers: [0, 0] }, 4),
        step(Op::Copy { from: block.base, to, len: 64, peers: [0, PEER_HOST] }, 5),
    ];
    assert_eq!(lane.submit(&steps, Hint::None).unwrap(), 5);
    assert_eq!(watch.word.get(), 0);
    assert!(!gauge.wait(5, Some(0)));
    gauge.poll();
    assert_eq!((watch.word.get(), watch.told.load(std::sync::atomic::Ordering::Acquire)), (5, 4));
    assert_eq!(&host[..10], b"\x01\x02\x01\x02abcd\x01\x02");
    assert_eq!(&host[32..42], &host[..10].to_vec());
    let times = gauge.times(4).unwrap();
    assert!(times.begin_ns <= times.end_ns);
    assert_eq!(gauge.times(3), None);
    drop(lane);
    device.free(&block).unwrap();
}

fn programs<D: Device + Programs>(device: &D) {
    assert!(device.accepts(IMAGE) && !device.accepts(b"") && !device.accepts(b"\x7fELF"));
    assert_eq!(device.load(b"\x7fELF").unwrap_err().kind, Kind::InvalidImage);
    let program = device.load(IMAGE).unwrap();
    let mut name = [0; 8];
    assert_eq!(device.symbol(program, 0, &mut name).unwrap(), Some((3, SymbolKind::Kernel)));
    assert_eq!(device.symbol(program, 1, &mut name[..2]).unwrap(), Some((6, SymbolKind::Global)));
    assert_eq!((&name[..3], device.symbol(program, 2, &mut []).unwrap()), (&b"and"[..], None));
    let kernel = device.kernel(program, b"add", &[]).unwrap();
    assert_eq!(kernel, Kernel { native: 1, args_len: 17, params: 3, group_max: 256, shared_static: 0 });
    let mut params = [Param::default(); 3];
    assert_eq!(device.params(kernel.native, &mut params).unwrap(), 3);
    assert_eq!(device.kernel(program, b"add", &params).unwrap(), kernel);
    assert_eq!(device.kernel(program, b"add", &params[1..]).unwrap_err().kind, Kind::InvalidArgument);
    assert_eq!(device.kernel(program, b"answer", &[]).unwrap_err().kind, Kind::SymbolKind);
    assert_eq!(device.occupancy(kernel.native, 0).unwrap(), 256);
    let answer = device.global(program, b"answer").unwrap();
    assert_eq!(device.global(program, b"question").unwrap_err().kind, Kind::NotFound);

    let watch = Watch::new();
    let (mut lane, gauge, _) = device.lane(watch.tick()).unwrap();
    let mut args = answer.base.to_le_bytes().to_vec();
    args.extend(answer.len.to_le_bytes());
    args.push(3);
    let launch =
        Op::Launch { kernel: kernel.native, groups: [1, 1, 1], size: [1, 1, 1], shared: 0, args: &args };
    let mut host = [0u8; 8];
    let to = host.as_mut_ptr().expose_provenance() as u64;
    let copy = Op::Copy { from: answer.base, to, len: 8, peers: [0, PEER_HOST] };
    assert_eq!(lane.submit(&[step(launch, 1), step(copy, 2)], Hint::Waiting).unwrap(), 2);
    gauge.poll();
    assert_eq!(u64::from_le_bytes(host), 45);
    drop(lane);
    device.unload(program).unwrap();
}

fn mappings<D: HostAccess>(device: &D) {
    let block = device.allocate(&want(64)).unwrap();
    let host = device.map(&block, 8, 16).unwrap();
    // SAFETY: mapped, 16 bytes.
    unsafe { slice::from_raw_parts_mut(host, 16) }.fill(9);
    device.sync(&block, 8, 16, true).unwrap();
    // SAFETY: mapped, 16 bytes.
    unsafe { slice::from_raw_parts_mut(host, 16) }.fill(0);
    device.sync(&block, 8, 8, false).unwrap();
    // SAFETY: mapped, 16 bytes.
    let bytes = unsafe { slice::from_raw_parts(host, 16) };
    assert_eq!(bytes, [[9; 8], [0; 8]].concat());
    device.unmap(&block, 8, 16).unwrap();
    device.unmap(&block, 8, 16).unwrap(); // A second time does no harm.
    assert_eq!(device.sync(&block, 8, 16, true).unwrap_err().kind, Kind::NotFound);
    device.free(&block).unwrap();
    let mut own = [0u8; 8];
    let shown = device.register(own.as_mut_ptr(), 8, 3).unwrap();
    assert_eq!((shown.base, shown.len), (own.as_mut_ptr() as u64, 8));
    device.unregister(&shown).unwrap();
}

fn properties<D: Describe>(device: &D) {
    let mut out = [0; 8];
    assert_eq!(device.property(property::NAME, &mut out).unwrap(), Some(11));
    assert_eq!(&out, b"null dev");
    assert_eq!(device.property(property::NAME, &mut []).unwrap(), Some(11));
    assert_eq!(device.property(0xffff, &mut out).unwrap(), None);
}

fn faults<D: Device>(device: &D) {
    let fault = device.allocate(&want(1 << 40)).unwrap_err();
    assert_eq!(
        (fault.kind, device.allocate(&want(0)).unwrap_err().kind),
        (Kind::ResourceExhausted, Kind::ResourceExhausted)
    );
    assert!(text::of(&fault).contains("above the limit"), "{}", text::of(&fault));
    let fault = device.free(&Block { base: 5, len: 1, native: 0 }).unwrap_err();
    assert_eq!(fault.kind, Kind::NotFound);
    let watch = Watch::new();
    let (mut lane, gauge, _) = device.lane(watch.tick()).unwrap();
    let bad =
        [step(Op::Barrier, 1), step(Op::Prefetch { at: 0, len: 1, to_host: false }, 2), step(Op::Barrier, 3)];
    let (taken, fault) = lane.submit(&bad, Hint::None).unwrap_err();
    assert_eq!((taken, fault.kind), (1, Kind::Unsupported));
    assert_eq!(lane.submit(&[step(Op::Fill { to: 1, len: 1, pattern: &[0] }, 2)], Hint::None).unwrap(), 1);
    gauge.poll();
    assert_eq!((watch.word.get(), watch.fault().unwrap().kind), (1, Kind::NotFound));
    let full = vec![step(Op::Barrier, 0); 64];
    let watch = Watch::new();
    let (mut other, gauge, _) = device.lane(watch.tick()).unwrap();
    assert_eq!(other.submit(&full, Hint::More).unwrap(), 40);
    gauge.poll();
    assert_eq!(other.submit(&full, Hint::More).unwrap(), 40);
}

#[test]
fn the_null_device_behaves_the_same_linked_in() {
    all(&devices().unwrap()[0]);
}

#[test]
fn the_null_device_behaves_the_same_behind_tables() {
    let device = device();
    assert!(device.has_programs() && device.has_host_access() && device.has_properties());
    assert_eq!(device.caps().backend, 7);
    all(&device);
    drop(device);
}
