//! Order, waits between lanes, host calls that block, and who runs what.
#![allow(clippy::unwrap_used)] // Helpers are tests too.

mod common;

use common::*;
use std::{
    sync::atomic::{AtomicU64, Ordering::*},
    thread,
};
use wharf_core::{device::*, fault::Kind};
use wharf_host::{HostDevice, limits};

/// Each step copies what the one before wrote: any step out of order leaves a gap.
fn chain(line: &mut Line, cells: &mut [u64], steps: usize) {
    let base = address(cells);
    for i in 0..steps {
        let [from, to] = [i, i + 1].map(|n| base + 8 * (n % cells.len()) as u64);
        line.put(Op::Copy { from, to, len: 8, peers: [PEER_HOST; 2] });
        let bytes = (i as u64).to_ne_bytes();
        line.put(Op::Update { to, bytes: &bytes });
    }
}

#[test]
fn steps_of_a_lane_run_in_order() {
    for workers in [1, 2, 4] {
        let device = HostDevice::with_workers(workers);
        let mut line = Line::new(&device);
        let mut cells = [0_u64; 7];
        chain(&mut line, &mut cells, 10_000);
        line.finish();
        assert_eq!(cells[10_000 % 7], 9_999);
        assert_eq!(line.probe.told.load(SeqCst), 20_000);
    }
}

#[test]
fn workers_alone_finish_what_nobody_waits_for() {
    let device = HostDevice::with_workers(2);
    let mut line = Line::new(&device);
    let mut cells = [0_u64; 3];
    chain(&mut line, &mut cells, 1_000);
    until("the last step", || line.reached() == line.last);
    assert_eq!(cells[1_000 % 3], 999);
}

#[test]
fn twenty_threads_each_drive_a_lane() {
    let device = HostDevice::with_workers(2);
    thread::scope(|scope| {
        for seed in 0..20 {
            let mut line = Line::new(&device);
            scope.spawn(move || {
                let mut cells = [0_u64; 5];
                for round in 0..20 {
                    chain(&mut line, &mut cells, 50 + seed);
                    if round % 2 == 0 {
                        line.finish();
                        assert_eq!(cells[(50 + seed) % 5], 49 + seed as u64);
                    }
                }
                line.finish();
            });
        }
    });
}

#[test]
fn a_blocked_lane_holds_only_itself() {
    for workers in [1, 2] {
        let device = HostDevice::with_workers(workers);
        let (gate, after) = (Gate::leaked(), counter());
        let mut held = Line::new(&device);
        held.put(gate.call());
        held.put(add_one(after));
        until("the call", || gate.entered.load(SeqCst) == 1);
        for _ in 0..5 {
            let mut other = Line::new(&device);
            let count = counter();
            for _ in 0..100 {
                other.put(add_one(count));
            }
            until("another lane", || other.reached() == 100);
            assert_eq!(count.load(SeqCst), 100);
        }
        assert_eq!((held.reached(), after.load(SeqCst)), (0, 0));
        gate.open();
        held.finish();
        assert_eq!(after.load(SeqCst), 1);
        until("the end of stand-ins", || device.threads() <= workers);
    }
}

#[test]
fn many_blocked_lanes_cost_threads_and_no_progress() {
    let device = HostDevice::with_workers(2);
    let gate = Gate::leaked();
    let mut held: Vec<Line> = (0..40).map(|_| Line::new(&device)).collect();
    for line in &mut held {
        line.put(gate.call());
    }
    until("all calls", || gate.entered.load(SeqCst) == 40);
    assert!(device.threads() <= 42, "{}", device.threads());
    let mut other = Line::new(&device);
    let count = counter();
    other.put(add_one(count));
    until("another lane", || other.reached() == 1);
    gate.open();
    for line in &held {
        line.finish();
    }
    until("the end of stand-ins", || device.threads() <= 2);
}

#[test]
fn a_waiter_helps_itself_but_never_runs_a_host_call() {
    static CALLED_ON: AtomicU64 = AtomicU64::new(0);
    extern "C" fn note(_: *mut ()) {
        CALLED_ON.store(thread_number(), SeqCst);
    }
    fn thread_number() -> u64 {
        thread_local!(static OWN: u64 = { static NEXT: AtomicU64 = AtomicU64::new(1); NEXT.fetch_add(1, SeqCst) });
        OWN.with(|own| *own)
    }
    let device = HostDevice::with_workers(1);
    let mut line = Line::new(&device);
    let mut cell = [0_u8; 4];
    let value = line.push(Op::Update { to: address(&mut cell), bytes: b"here" }, Hint::Waiting);
    assert_eq!((device.threads(), cell), (0, [0; 4]), "submit runs nothing and wakes nobody");
    assert!(line.gauge.wait(value, None));
    assert_eq!((device.threads(), &cell), (0, b"here"));
    line.push(Op::Call(HostCall { call: note, user: std::ptr::null_mut() }), Hint::Waiting);
    line.finish();
    assert_ne!(CALLED_ON.load(SeqCst), thread_number());
    assert_ne!(CALLED_ON.load(SeqCst), 0);
}

#[test]
fn a_waiter_with_a_deadline_sends_work_off_and_comes_back() {
    let device = HostDevice::with_workers(1);
    let (gate, mut line) = (Gate::leaked(), Line::new(&device));
    line.push(gate.call(), Hint::Waiting);
    assert!(!line.gauge.wait(line.last, Some(0)));
    until("the call", || gate.entered.load(SeqCst) == 1);
    gate.open();
    until("its end", || line.reached() == 1);
}

#[test]
fn a_poll_sends_off_what_a_hint_left_lying() {
    for hint in [Hint::More, Hint::Waiting] {
        let device = HostDevice::with_workers(1);
        let mut line = Line::new(&device);
        line.push(Op::Barrier, hint);
        assert_eq!(device.threads(), 0);
        line.gauge.poll();
        until("the step", || line.reached() == 1);
        line.push(Op::Barrier, hint);
        line.put(Op::Barrier);
        until("both steps", || line.reached() == 3);
    }
}

#[test]
fn sixteen_lanes_wait_for_one_another() {
    for workers in [1, 2, 4] {
        let device = HostDevice::with_workers(workers);
        let mut lines: Vec<Line> = (0..16).map(|_| Line::new(&device)).collect();
        let mut cells = [0_u64; 17];
        let base = address(&mut cells);
        let gate = Gate::leaked();
        cells[0] = 1;
        lines[0].put(gate.call());
        for i in 0..16 {
            if i > 0 {
                let (lane, value) = (lines[i - 1].name, lines[i - 1].last);
                lines[i].put(Op::After { lane, value });
            }
            let (from, to) = (base + 8 * i as u64, base + 8 * (i as u64 + 1));
            lines[i].put(Op::Copy { from, to, len: 8, peers: [PEER_HOST; 2] });
        }
        assert_eq!(lines[15].reached(), 0);
        gate.open();
        // The last first: everything it needs comes about through the workers or through this waiter.
        for line in lines.iter().rev() {
            line.finish();
        }
        assert_eq!(cells, [1; 17]);
    }
}

#[test]
fn lanes_that_wait_crosswise_alternate() {
    let device = HostDevice::with_workers(2);
    let (mut a, mut b) = (Line::new(&device), Line::new(&device));
    let mut cell = [0_u64; 1];
    let to = address(&mut cell);
    for i in 0..2_000_u64 {
        let (x, y) = if i % 2 == 0 { (&mut a, &b) } else { (&mut b, &a) };
        x.put(Op::After { lane: y.name, value: y.last });
        x.put(Op::Update { to, bytes: &i.to_ne_bytes() });
    }
    b.finish();
    a.finish();
    assert_eq!(cell[0], 1_999);
}

#[test]
fn a_wait_kicks_a_lane_that_was_left_to_a_waiter() {
    let device = HostDevice::with_workers(2);
    let (mut a, mut b) = (Line::new(&device), Line::new(&device));
    a.push(Op::Barrier, Hint::Waiting);
    b.put(Op::After { lane: a.name, value: a.last });
    until("the waiting lane", || b.reached() == 1);
}

#[test]
fn a_wait_on_a_lane_that_is_gone_passes() {
    let device = HostDevice::with_workers(2);
    let (mut a, mut b) = (Line::new(&device), Line::new(&device));
    let value = a.put(Op::Barrier);
    a.finish();
    let name = a.name;
    drop(a);
    // The place may be taken again; the old name does not lead there.
    let again = Line::new(&device);
    assert_ne!(again.name, name);
    b.put(Op::After { lane: name, value });
    b.finish();
}

#[test]
fn a_wait_for_work_that_never_runs_fails_the_lane() {
    let device = HostDevice::with_workers(2);
    let gate = Gate::leaked();
    let (mut a, mut b) = (Line::new(&device), Line::new(&device));
    a.put(gate.call());
    let value = a.put(Op::Barrier);
    b.put(Op::After { lane: a.name, value });
    b.put(Op::Barrier);
    until("the call", || gate.entered.load(SeqCst) == 1);
    let probe = a.probe;
    drop(a);
    until("the failure", || b.probe.failed.lock().unwrap().is_some());
    assert_eq!(b.probe.failed.lock().unwrap().unwrap().kind, Kind::Cancelled);
    assert!(b.gauge.wait(b.last, None), "a wait ends when the lane has failed");
    let refused = b.lane.submit(&[Step { op: Op::Barrier, done: 9, tell: true, stamp: false }], Hint::None);
    assert_eq!(refused.unwrap_err().0, 0);
    gate.open();
    until("the end of the call", || device.threads() <= 2);
    assert_eq!((probe.word.get(), b.reached()), (0, 0), "a dropped lane's word is not touched");
}

#[test]
fn a_full_lane_takes_a_prefix_and_goes_on() {
    let device = HostDevice::with_workers(1);
    let gate = Gate::leaked();
    let mut line = Line::new(&device);
    line.put(gate.call());
    let depth = usize::from(limits::DEPTH);
    let steps: Vec<_> = (2..=2 * depth as u64)
        .map(|done| Step { op: Op::Barrier, done, tell: false, stamp: false })
        .collect();
    let taken = line.lane.submit(&steps, Hint::More).unwrap();
    assert_eq!(taken, depth - 1);
    assert_eq!(line.lane.submit(&steps[taken..], Hint::More).unwrap(), 0);
    gate.open();
    until("the taken steps", || line.reached() == depth as u64);
    assert_eq!(line.lane.submit(&steps[taken..], Hint::None).unwrap(), depth);
    until("the rest", || line.reached() == 2 * depth as u64);
    until("the word that it is idle", || line.probe.told.load(SeqCst) == 2 * depth as u64);
}

#[test]
fn steps_without_a_value_show_nothing() {
    let device = HostDevice::with_workers(1);
    let mut line = Line::new(&device);
    let silent = Step { op: Op::Barrier, done: 0, tell: false, stamp: false };
    let last = Step { done: 5, tell: true, ..silent };
    assert_eq!(line.lane.submit(&[silent, silent, last], Hint::Waiting).unwrap(), 3);
    assert!(line.gauge.wait(5, None));
    assert_eq!(line.reached(), 5);
}

#[test]
fn stamped_steps_have_times_in_order() {
    let device = HostDevice::with_workers(2);
    let mut line = Line::new(&device);
    let most = limits::TIMES_MAX as u64;
    for done in 1..=most + 10 {
        let step = Step { op: Op::Barrier, done, tell: false, stamp: done % 2 == 0 || done > 10 };
        while line.lane.submit(&[step], Hint::None).unwrap() == 0 {}
    }
    assert!(line.gauge.wait(most + 10, None));
    assert_eq!(line.gauge.times(most + 9).map(|t| t.begin_ns <= t.end_ns), Some(true));
    assert_eq!(line.gauge.times(2), None, "too old");
    let mut before = 0;
    for value in 11..=most + 10 {
        let times = line.gauge.times(value).unwrap();
        assert!(before <= times.begin_ns && times.begin_ns <= times.end_ns);
        before = times.end_ns;
    }
    assert_eq!(line.gauge.times(most + 11), None);
}

#[test]
fn lanes_come_and_go_without_end() {
    let device = HostDevice::with_workers(2);
    for _ in 0..20_000 {
        let mut line = Line::new(&device);
        line.push(Op::Barrier, Hint::Waiting);
        line.finish();
    }
    let all: Vec<Line> = (0..limits::LANES_MAX).map(|_| Line::new(&device)).collect();
    let probe = all[0].probe;
    let tick = all[0].tick();
    assert_eq!(device.lane(tick).err().unwrap().kind, Kind::ResourceExhausted);
    assert_eq!(probe.word.get(), 0);
}
