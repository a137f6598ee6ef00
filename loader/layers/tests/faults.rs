//! Each fault arrives where it was planned, and looks like a device's own.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Dev, StdLock, device, fill, open, pass};
use wharf_core::{
    device::{Device, Gauge, Op, Pace, Want},
    fault::{Kind, Site},
};
use wharf_layers::{FaultPlan, Faults};

fn faulty(plan: &str) -> Dev {
    device(vec![Box::new(Faults::<StdLock>::new(FaultPlan::parse(plan).unwrap()))])
}

const WANT: Want = Want { len: 64, align: 64, kind: 0, access: 0, usage: 0 };

#[test]
fn the_third_allocation_fails_and_no_other() {
    let device = faulty("fail=allocate:3");
    let kinds: Vec<Option<Kind>> =
        (0..5).map(|_| device.allocate(&WANT).err().map(|fault| fault.kind)).collect();
    assert_eq!(kinds, [None, None, Some(Kind::ResourceExhausted), None, None]);
}

#[test]
fn an_operation_fails_after_those_before_it_were_taken() {
    let device = faulty("fail=fill:2");
    let block = device.allocate(&WANT).unwrap();
    let mut queue = open(&device);
    let (n, fault) =
        queue.submit(&[fill(block.base, 8), Op::Barrier, fill(block.base, 8), Op::Barrier]).unwrap_err();
    assert_eq!((n, fault.kind, fault.site), (2, Kind::BackendFailure, Site::Fill));
    queue.gauge.poll();
    assert_eq!(queue.reached(), 2);
    assert_eq!(queue.submit(&[fill(block.base, 8)]), Ok(1)); // Only the second.
}

#[test]
fn an_operation_breaks_its_queue_once_those_before_it_have_shown() {
    let device = faulty("break=fill:2");
    let block = device.allocate(&WANT).unwrap();
    let mut queue = open(&device);
    queue.submit(&[fill(block.base, 8), Op::Barrier, fill(block.base, 8), Op::Barrier]).unwrap();
    queue.gauge.poll();
    queue.gauge.poll();
    let fault = queue.failed().unwrap();
    assert_eq!((queue.reached(), fault.kind, fault.site), (2, Kind::BackendFailure, Site::Fill));
}

#[test]
fn an_end_is_shown_late() {
    let device = faulty("delay=fill:10ms");
    assert!(matches!(device.caps().pace, Pace::Polled { .. }) && !device.caps().native_wait);
    let block = device.allocate(&WANT).unwrap();
    let mut queue = open(&device);
    queue.submit(&[Op::Barrier, fill(block.base, 8), Op::Barrier]).unwrap();
    queue.gauge.poll();
    assert_eq!(queue.reached(), 1);
    pass(5_000_000);
    queue.gauge.poll();
    assert_eq!(queue.reached(), 1);
    pass(5_000_000);
    queue.gauge.poll();
    assert_eq!(queue.reached(), 3);
}

#[test]
fn queues_end_in_another_order_and_each_in_its_own() {
    let mut swapped = 0;
    for seed in 0..16 {
        let device = faulty(&format!("reorder=1ms+seed={seed}"));
        let (mut one, mut two) = (open(&device), open(&device));
        one.submit(&[Op::Barrier]).unwrap();
        two.submit(&[Op::Barrier, Op::Barrier]).unwrap();
        let mut last = 0;
        for _ in 0..400 {
            one.gauge.poll();
            two.gauge.poll();
            swapped += u32::from(two.reached() > 0 && one.reached() == 0);
            assert!(two.reached() >= last);
            last = two.reached();
            pass(10_000);
        }
        assert_eq!((one.reached(), two.reached()), (1, 2));
    }
    assert!(swapped > 0);
}

#[test]
fn a_lost_device_refuses_everything_and_fails_what_is_under_way_once_it_has_ended() {
    let device = faulty("lose=after:2");
    let block = device.allocate(&WANT).unwrap();
    let (mut one, mut two) = (open(&device), open(&device));
    one.submit(&[fill(block.base, 8)]).unwrap();
    let (n, fault) = two.submit(&[Op::Barrier, Op::Barrier]).unwrap_err();
    assert_eq!((n, fault.kind), (1, Kind::DeviceLost));
    assert_eq!(one.failed(), None); // The fill may still write.
    one.gauge.poll();
    assert_eq!((one.reached(), one.failed().map(|fault| fault.kind)), (0, Some(Kind::DeviceLost)));
    assert_eq!(device.allocate(&WANT).unwrap_err().kind, Kind::DeviceLost);
    assert_eq!(device.free(&block).unwrap_err().kind, Kind::DeviceLost);
    assert_eq!(one.submit(&[Op::Barrier]).unwrap_err().1.kind, Kind::DeviceLost);
}
