//! Panics and errors of a backend behind tables: stopped, told in its own words, and never those of another object.

#![allow(clippy::unwrap_used)] // These are tests.

mod common;

use common::{
    Watch, open,
    toy::{self, ToyPlugin, order, turn},
};
use std::sync::atomic::Ordering::*;
use wharf_abi::{DynDevice, text};
use wharf_core::{
    device::{
        Block, Device, Gauge, Hint, HostAccess, Lane, Op, PEER_HOST, Pace, Param, Programs, Step, Want,
    },
    fault::{Blame, Fault, Kind},
};

const WANT: Want = Want { len: 8, align: 0, kind: 0, access: 0, usage: 0 };
const BLOCK: Block = Block { base: 0, len: 8, native: 0 };

fn step(op: Op<'_>, done: u64) -> Step<'_> {
    Step { op, done, tell: true, stamp: false }
}

fn panics_in(call: &'static str, run: impl Fn(&DynDevice) -> Result<(), Fault>) {
    order(|orders| *orders = toy::Orders { take: usize::MAX, ..Default::default() });
    let devices = open::<ToyPlugin>().devices().unwrap();
    order(|orders| orders.panic_in = call);
    let fault = run(&devices[0]).unwrap_err();
    assert_eq!((fault.kind, fault.blame), (Kind::Panicked, Blame::Backend), "{call}");
    assert!(text::of(&fault).contains("the toy was told to"), "{call}: {}", text::of(&fault));
    order(|orders| orders.panic_in = "");
    let fault = run(&devices[0]).unwrap_err();
    assert_eq!(fault.kind, Kind::FailedPrecondition, "{call}");
    assert!(text::of(&fault).contains("an earlier call on it panicked"), "{}", text::of(&fault));
    run(&devices[1]).unwrap();
}

#[test]
fn a_panic_in_a_call_about_a_device_poisons_that_device_only() {
    let _turn = turn();
    panics_in("allocate", |device| device.allocate(&WANT).map(drop));
    panics_in("free", |device| device.free(&BLOCK));
    panics_in("lane", |device| device.lane(Watch::new().tick()).map(drop));
    panics_in("load", |device| device.load(b"toy").map(drop));
    panics_in("unload", |device| device.unload(1));
    panics_in("kernel", |device| device.kernel(1, b"k", &[]).map(drop));
    panics_in("global", |device| device.global(1, b"g").map(drop));
    panics_in("symbol", |device| device.symbol(1, 0, &mut []).map(drop));
    panics_in("params", |device| device.params(1, &mut [Param::default()]).map(drop));
    panics_in("occupancy", |device| device.occupancy(1, 0).map(drop));
}

#[test]
fn a_panic_in_accepts_is_a_no() {
    let _turn = turn();
    let devices = open::<ToyPlugin>().devices().unwrap();
    assert!(devices[0].accepts(b"toy"));
    order(|orders| orders.panic_in = "accepts");
    assert!(!devices[0].accepts(b"toy"));
    order(|orders| orders.panic_in = "");
    assert!(!devices[0].accepts(b"toy") && devices[1].accepts(b"toy"));
}

#[test]
fn a_panic_while_listing_is_an_error_that_is_repeated_until_the_plugin_is_closed() {
    let _turn = turn();
    for call in ["devices", "caps"] {
        let plugin = open::<ToyPlugin>();
        order(|orders| orders.panic_in = call);
        assert_eq!(plugin.devices().map(drop).unwrap_err().kind, Kind::Panicked, "{call}");
        order(|orders| orders.panic_in = "");
        let repeated = plugin.devices().map(drop).unwrap_err().kind;
        assert_eq!(repeated, if call == "devices" { Kind::Panicked } else { Kind::FailedPrecondition });
        plugin.close().unwrap();
        assert_eq!(plugin.devices().unwrap().len(), 2);
    }
}

#[test]
fn a_panic_in_submit_fails_the_timeline_and_poisons_the_queue_only() {
    let _turn = turn();
    let device = open::<ToyPlugin>().devices().unwrap().remove(0);
    let watch = Watch::new();
    let (mut lane, gauge, _) = device.lane(watch.tick()).unwrap();
    let (mut other, _, _) = device.lane(Watch::new().tick()).unwrap();
    order(|orders| orders.panic_in = "submit");
    let (taken, fault) = lane.submit(&[step(Op::Barrier, 1)], Hint::None).unwrap_err();
    assert_eq!((taken, fault.kind, watch.fault()), (0, Kind::Panicked, Some(fault)));
    order(|orders| orders.panic_in = "");
    let (_, fault) = lane.submit(&[step(Op::Barrier, 1)], Hint::None).unwrap_err();
    assert_eq!(fault.kind, Kind::FailedPrecondition);
    gauge.poll();
    assert_eq!(watch.faults.lock().unwrap().len(), 2);
    other.submit(&[step(Op::Barrier, 1)], Hint::None).unwrap();
}

#[test]
fn a_panic_while_watching_fails_the_timeline() {
    let _turn = turn();
    let device = open::<ToyPlugin>().devices().unwrap().remove(0);
    for (call, look) in
        [("poll", (|g| g.poll()) as fn(&wharf_abi::DynGauge)), ("wait", |g| assert!(g.wait(1, None)))]
    {
        let watch = Watch::new();
        let (lane, gauge, _) = device.lane(watch.tick()).unwrap();
        order(|orders| orders.panic_in = call);
        look(&gauge);
        order(|orders| orders.panic_in = "");
        assert_eq!(watch.fault().unwrap().kind, Kind::Panicked, "{call}");
        drop(lane);
    }
    let (lane, gauge, _) = device.lane(Watch::new().tick()).unwrap();
    order(|orders| orders.panic_in = "times");
    assert_eq!(gauge.times(4), None);
    order(|orders| orders.panic_in = "destroy");
    drop(lane);
    order(|orders| orders.panic_in = "");
    gauge.poll();
    device.allocate(&WANT).unwrap();
}

#[test]
fn an_error_comes_with_code_blame_and_the_backends_own_words() {
    let _turn = turn();
    let device = open::<ToyPlugin>().devices().unwrap().remove(0);
    order(|orders| orders.fail_in = "allocate");
    let fault = device.allocate(&WANT).unwrap_err();
    assert_eq!((fault.kind, fault.blame, fault.native), (Kind::DeviceLost, Blame::Driver, -7));
    assert!(text::of(&fault).ends_with("the toy is broken"), "{}", text::of(&fault));
    order(|orders| orders.fail_in = "poll");
    let watch = Watch::new();
    let (_lane, gauge, _) = device.lane(watch.tick()).unwrap();
    gauge.poll();
    let fault = watch.fault().unwrap();
    assert_eq!(fault.kind, Kind::DeviceLost);
    assert!(text::of(&fault).contains("the toy is broken"));
}

#[test]
fn no_driver_is_no_device_and_a_reason() {
    let _turn = turn();
    order(|orders| orders.no_driver = true);
    let plugin = open::<ToyPlugin>();
    assert_eq!(plugin.reason(), None);
    assert_eq!(plugin.devices().unwrap().len(), 0);
    assert_eq!(plugin.reason().as_deref(), Some("the toy is broken"));
}

#[test]
fn what_crosses_is_what_was_given() {
    let _turn = turn();
    let device = open::<ToyPlugin>().devices().unwrap().remove(1);
    let caps = device.caps();
    assert_eq!((caps.pace, caps.lanes, caps.space), (Pace::OnRequest, 2000, 3));
    let watch = Watch::new();
    let (mut lane, gauge, _) = device.lane(watch.tick()).unwrap();
    let (_other, _, name) = device.lane(Watch::new().tick()).unwrap();
    let long = [7u8; 300];
    let mut steps = vec![
        step(Op::Copy { from: 1, to: 2, len: 3, peers: [1, PEER_HOST] }, 1),
        step(Op::Fill { to: 1, len: 3, pattern: &long[..3] }, 2),
        step(Op::Update { to: 1, bytes: &[] }, 3),
        step(Op::Launch { kernel: 6, groups: [1; 3], size: [1; 3], shared: 0, args: &long }, 4),
        step(Op::After { lane: name, value: 1 }, 5),
    ];
    steps.resize(37, step(Op::Prefetch { at: 1, len: 1, to_host: true }, 6));
    assert_eq!(lane.submit(&steps, Hint::None).unwrap(), 37);
    let seen = toy::SEEN.lock().unwrap();
    assert_eq!(seen[..5], [(1, 0x1_ffff), (2, 3), (3, 0), (4, 300), (5, 1)]);
    assert_eq!((seen.len(), seen[36]), (37, (9, 0)));
    drop(seen);
    assert_eq!((watch.word.get(), watch.told.load(Acquire)), (6, 37));
    assert!(gauge.wait(6, Some(77)) && !gauge.wait(6, None));
    assert_eq!(gauge.times(4).map(|t| (t.begin_ns, t.end_ns)), Some((10, 12)));
    let copy = Op::Copy { from: 1, to: 2, len: 3, peers: [2, 0] };
    let (taken, fault) = lane.submit(&[step(Op::Barrier, 7), step(copy, 8)], Hint::None).unwrap_err();
    assert_eq!((taken, fault.kind), (1, Kind::InvalidDevice));
}

#[test]
fn a_full_queue_takes_a_prefix() {
    let _turn = turn();
    let device = open::<ToyPlugin>().devices().unwrap().remove(0);
    for take in [0, 1, 7, 8, 9, 16, 17, 40] {
        order(|orders| orders.take = take);
        let (mut lane, _, _) = device.lane(Watch::new().tick()).unwrap();
        assert_eq!(lane.submit(&[step(Op::Barrier, 1); 40], Hint::None).unwrap(), take);
        assert_eq!(lane.submit(&[], Hint::None).unwrap(), 0);
    }
}

#[test]
fn queues_and_devices_end_when_they_are_given_up() {
    let _turn = turn();
    let (lanes, devices) = (toy::LANES.load(Acquire), toy::DEVICES.load(Acquire));
    let plugin = open::<ToyPlugin>();
    let device = plugin.devices().unwrap().remove(0);
    for _ in 0..1000 {
        let (mut lane, gauge, _) = device.lane(Watch::new().tick()).unwrap();
        assert_eq!(toy::LANES.load(Acquire), lanes + 1);
        lane.submit(&[step(Op::Barrier, 1)], Hint::None).unwrap();
        assert_eq!(plugin.close().unwrap_err().kind, Kind::FailedPrecondition);
        drop(lane);
        gauge.poll();
        assert!(!gauge.wait(1, Some(77)));
    }
    assert_eq!((toy::LANES.load(Acquire), toy::DEVICES.load(Acquire)), (lanes, devices + 2));
    plugin.close().unwrap();
    assert_eq!(toy::DEVICES.load(Acquire), devices);
    assert_eq!(device.allocate(&WANT).unwrap_err().kind, Kind::FailedPrecondition);
    let again = plugin.devices().unwrap();
    again[0].allocate(&WANT).unwrap();
    assert_eq!(device.allocate(&WANT).unwrap_err().kind, Kind::FailedPrecondition);
}

#[test]
fn roles_that_are_not_there_are_told_and_unsupported() {
    let _turn = turn();
    let device = open::<ToyPlugin>().devices().unwrap().remove(0);
    assert!(device.has_programs() && !device.has_host_access() && !device.has_properties());
    assert_eq!(device.map(&BLOCK, 0, 8).unwrap_err().kind, Kind::Unsupported);
    assert_eq!(device.sync(&BLOCK, 0, 8, true).unwrap_err().kind, Kind::Unsupported);
    let describe = wharf_core::device::Describe::property(&device, 2, &mut []);
    assert_eq!(describe.unwrap_err().kind, Kind::Unsupported);
}

#[test]
fn a_plugin_is_opened_once_at_a_time() {
    let _turn = turn();
    let first = open::<ToyPlugin>();
    let second = open::<ToyPlugin>();
    first.devices().unwrap();
    assert_eq!(second.devices().map(drop).unwrap_err().kind, Kind::FailedPrecondition);
}
