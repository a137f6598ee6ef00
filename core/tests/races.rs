//! What another thread can do between two steps of a call, done right there; and pump threads that leave.
//!
//! # Safety
//! Jobs are made of functions that ignore their pointer.
#![allow(clippy::unwrap_used, unsafe_code)]

mod common;
use common::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use wharf_core::{device::Op, fault::*, runtime::*, timeline::*};

#[test]
fn a_job_that_is_over_before_its_handle_is_out_leaves_its_slot() {
    static STEPS: AtomicU32 = AtomicU32::new(0);
    unsafe fn step(_: *const (), _: &Growing) -> Worked {
        STEPS.fetch_add(1, SeqCst);
        Worked::Over
    }
    unsafe fn end(_: *const ()) {}
    let (rt, _) = growing(1);
    whenever_unlocked(|| {
        rt.poll();
    });
    // SAFETY: the functions look at no data.
    rt.enlist(unsafe { Work::new(std::ptr::null(), step, end) }).unwrap();
    assert_eq!(rt.poll(), Next::Idle);
    assert_eq!(STEPS.load(SeqCst), 1);
    assert!(rt.drain(after_ms(1000)), "no job is left");
    assert_eq!(rt.bell().interest.load(SeqCst), 0);
}

/// Ends `timeline` once, and lets the next one have its slot; says which that is.
fn replaced(
    rt: &'static Growing,
    timeline: wharf_core::handle::Handle<Timeline>,
) -> &'static std::sync::Mutex<u64> {
    let next: &'static std::sync::Mutex<u64> = Box::leak(Box::default());
    let mut once = true;
    whenever_unlocked(move || {
        if std::mem::take(&mut once) {
            rt.release_timeline(timeline);
            *next.lock().unwrap() = rt.timeline(0).unwrap().raw();
        }
    });
    next
}

#[test]
fn a_signal_or_failure_of_a_timeline_that_ends_meanwhile_misses_the_next_one_in_its_slot() {
    let (rt, _) = growing(1);
    for fails in [false, true] {
        let old = rt.timeline(0).unwrap();
        let next = replaced(rt, old);
        let said = if fails {
            rt.fail(old, &Fault::caller(Kind::DataLoss, Site::Read, Why::Unknown, [0; 2]))
        } else {
            rt.signal(old, 7)
        };
        assert_eq!(said.unwrap_err().kind, Kind::InvalidHandle);
        let next = wharf_core::handle::Handle::from_raw(*next.lock().unwrap());
        assert_eq!(rt.query(next), Ok(0));
    }
}

#[test]
fn whoever_waits_pumps_for_himself_once_the_pump_thread_has_left() {
    for _ in 0..5 {
        let (rt, sims) = growing(1);
        let stop: &'static AtomicBool = Box::leak(Box::default());
        let pump = std::thread::spawn(|| rt.pump_until(|| stop.load(SeqCst)));
        while rt.bell().pumps.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let gate = rt.timeline(0).unwrap();
        let queue = rt.queue(0, QueueOptions::default()).unwrap();
        sims[0].0.at_once.store(true, SeqCst);
        let shut = [Point { timeline: gate, value: 1 }];
        let end = rt.submit(queue, &shut, Op::Barrier, &[], wharf_core::device::Hint::None).unwrap().unwrap();
        let begun = std::time::Instant::now();
        let waiter = std::thread::spawn(move || rt.wait(end, after_ms(5000)));
        std::thread::sleep(std::time::Duration::from_millis(5)); // Most likely asleep by now; right if not, too.
        stop.store(true, SeqCst);
        rt.ring();
        pump.join().unwrap();
        rt.signal(gate, 1).unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()));
        assert!(begun.elapsed().as_millis() < 4000, "woken, not timed out");
    }
}

#[test]
fn failures_leave_no_slot_taken_whichever_way_they_went() {
    let (rt, sims) = growing(1);
    let cause = Fault::caller(Kind::DataLoss, Site::Read, Why::Native, [1, 2]).with_native(42);
    for round in 0..200u64 {
        let order = if round % 2 == 0 { Order::InOrder } else { Order::Free };
        let queue = rt.queue(0, QueueOptions { order, profile: false }).unwrap();
        let (gate, done) = (rt.timeline(0).unwrap(), rt.timeline(0).unwrap());
        let gate_point = [Point { timeline: gate, value: 1 }];
        let signal = |value| [Point { timeline: done, value }];
        if round % 3 == 0 {
            rt.fail(gate, &cause).unwrap();
        }
        for value in 1..4 {
            let hint = wharf_core::device::Hint::None;
            let _ = rt.submit(queue, &gate_point, Op::Barrier, &signal(value), hint);
        }
        match round % 3 {
            1 => rt.fail(gate, &cause).unwrap(),
            2 => rt.release_timeline(gate),
            _ => {}
        }
        rt.poll();
        assert!(rt.query(done).is_err());
        if round % 5 == 0 {
            let lane = sims[0].0.lanes.lock().unwrap().len() - 1;
            sims[0].0.fail_lane(lane, &cause);
        }
        sims[0].0.drain();
        let _ = rt.close(queue);
        rt.release_timeline(done);
        if round % 3 != 2 {
            rt.release_timeline(gate);
        }
        rt.poll();
    }
    assert_eq!(rt.failures_dropped(), 0, "200 rounds found a free slot each time");
    assert!(rt.drain(after_ms(1000)));
    assert_eq!(rt.bell().interest.load(SeqCst), 0, "what was counted was taken off again");
    // All slots are free: as many failures as there are keep their details.
    let kept: Vec<_> = (0..FAILURES).map(|_| rt.timeline(0).unwrap()).collect();
    kept.iter().for_each(|timeline| rt.fail(*timeline, &cause).unwrap());
    assert_eq!(rt.failures_dropped(), 0);
    kept.iter().for_each(|timeline| assert_eq!(rt.query(*timeline), Err(cause)));
}
