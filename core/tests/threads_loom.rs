//! Words, sleepers, handles and pins in every order of their atomics that the memory model permits:
//! `RUSTFLAGS="--cfg loom" cargo test -p wharf-core --features alloc --test threads_loom --release`.
//!
//! The models are the runtime's own calls over a device that does nothing. Each first does once what its threads do
//! later, since loom's atomics are made when they are touched (`core/src/sync.rs`).
#![cfg(loom)]
#![allow(clippy::unwrap_used)]

mod loom_common;

use loom::{
    sync::{Arc, Condvar, Mutex},
    thread,
};
use loom_common::{LoomLock, every_order};
use std::{alloc::Layout, cell::RefCell, ptr::NonNull, sync::atomic::Ordering::*};
use wharf_core::{
    device::{Block, Caps, Device, Gauge, Hint, Lane, Op, Pace, Step, Times, Want, op},
    env::{Deadline, Env},
    fault::{Fault, Kind},
    runtime::{QueueOptions, Runtime, Store},
    sync::AtomicU32,
    tick::Tick,
    timeline::Point,
    word::Split64,
};

/// Loom's lock; whoever sleeps does so on one condition for all, and a run in which nobody wakes him fails.
struct Model;
type Lot = Arc<(Mutex<()>, Condvar)>;
thread_local! {
    static LOT: RefCell<Option<Lot>> = const { RefCell::new(None) };
}

fn lot() -> Lot {
    LOT.with_borrow(|lot| lot.clone().unwrap())
}

impl Env for Model {
    type Lock = LoomLock;
    type Ranges = wharf_core::ranges::Sorted<LoomLock, 4>;
    fn sleep(word: &AtomicU32, seen: u32, until: Deadline, _: u64) -> bool {
        if until.is_some() {
            return false;
        }
        let lot = lot();
        let mut guard = lot.0.lock().unwrap();
        while word.load(Acquire) == seen {
            guard = lot.1.wait(guard).unwrap();
        }
        true
    }
    fn wake(_: &AtomicU32) {
        let lot = lot();
        drop(lot.0.lock().unwrap());
        lot.1.notify_all();
    }
    fn grow(_: Layout) -> Option<NonNull<u8>> {
        None
    }
}

/// A device whose work ends when its gauge is asked to wait.
struct Idle;
struct IdleLane;
#[derive(Clone)]
struct IdleGauge(Tick);

impl Device for Idle {
    type Lane = IdleLane;
    type Gauge = IdleGauge;
    fn caps(&self) -> Caps {
        Caps {
            ops: 1 << op::BARRIER as u64,
            backend: 1,
            space: 0,
            native_wait: false,
            depth: 64,
            pace: Pace::Pushed,
            lanes: u16::MAX,
            align: 16,
            args_max: 0,
            group_max: 0,
            shared_max: 0,
            mappable: false,
            coherent: false,
            host_copies: true,
        }
    }
    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        Ok(Block { base: 4096, len: want.len, native: 0 })
    }
    fn free(&self, _: &Block) -> Result<(), Fault> {
        Ok(())
    }
    fn lane(&self, tick: Tick) -> Result<(IdleLane, IdleGauge, usize), Fault> {
        Ok((IdleLane, IdleGauge(tick), 0))
    }
}
impl Lane for IdleLane {
    fn submit(&mut self, steps: &[Step<'_>], _: Hint) -> Result<usize, (usize, Fault)> {
        Ok(steps.len())
    }
}
impl Gauge for IdleGauge {
    fn poll(&self) {}
    fn wait(&self, value: u64, _: Deadline) -> bool {
        self.0.advance(value);
        true
    }
    fn times(&self, _: u64) -> Option<Times> {
        None
    }
}

type Rt = Runtime<Idle, Model>;

/// A runtime for one run.
fn runtime() -> &'static Rt {
    LOT.set(Some(Arc::new((Mutex::new(()), Condvar::new()))));
    let store: &'static Store<Idle, Model, 1, 1, 1, 1> = Box::leak(Box::new(Store::new()));
    let rt: &'static Rt = Box::leak(Box::new(Runtime::new(store.parts(), Box::leak(Box::new([Idle])), 1)));
    rt.ring();
    rt.poll();
    rt
}

fn over() {
    LOT.set(None);
}

#[test]
fn a_word_in_three_parts_shows_no_value_that_was_not_committed() {
    const STEPS: [u64; 3] = [0xffff_ffff, 0x1_0000_0002, 0x2_0000_0000];
    every_order(4, || {
        let word = Arc::new(Split64::new(0xffff_fffe));
        word.set(0xffff_fffe);
        let _ = word.get();
        let reader = thread::spawn({
            let word = word.clone();
            move || {
                let first = word.get();
                let second = word.get();
                assert!(first <= second, "{first:#x} then {second:#x}");
                for seen in [first, second] {
                    // One that was set, or in a carry the first value after it.
                    let known = seen == 0xffff_fffe || STEPS.contains(&seen) || seen == 0x1_0000_0000;
                    assert!(known, "{seen:#x}");
                }
            }
        });
        STEPS.into_iter().for_each(|value| word.set(value));
        reader.join().unwrap();
        assert_eq!(word.get(), STEPS[2]);
    });
}

/// One waits and one signals. With a pump the sleeper is on the timeline, else on the bell.
fn wakes(pumps: u32) {
    every_order(3, move || {
        let rt = runtime();
        let timeline = rt.timeline(0).unwrap();
        rt.signal(timeline, 1).unwrap();
        rt.wait(Point { timeline, value: 1 }, None).unwrap();
        let _ = rt.wait(Point { timeline, value: 2 }, Some(0)); // In vain: touches what a sleeper does.
        rt.bell().pumps.store(pumps, SeqCst);
        let _ = rt.wait(Point { timeline, value: 2 }, Some(0));
        let waiter = thread::spawn(move || rt.wait(Point { timeline, value: 2 }, None));
        rt.signal(timeline, 2).unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()));
        over();
    });
}

#[test]
fn who_sleeps_on_a_timeline_is_woken() {
    wakes(1);
}

#[test]
fn who_sleeps_on_the_bell_is_woken() {
    wakes(0);
}

#[test]
fn a_timeline_that_ends_meanwhile_leaves_the_next_turn_of_its_slot_alone() {
    every_order(2, || {
        let rt = runtime();
        let old = rt.timeline(0).unwrap();
        rt.retain_timeline(old).unwrap();
        rt.release_timeline(old);
        let _ = rt.wait(Point { timeline: old, value: 1 }, Some(0));
        let stray = thread::spawn(move || {
            // Kept, or found to be over.
            if rt.retain_timeline(old).is_ok() {
                assert_eq!(rt.query(old), Ok(0));
                rt.release_timeline(old);
            }
        });
        rt.release_timeline(old);
        let next = rt.timeline(5);
        stray.join().unwrap();
        // There is one slot: it is still the other's, or this turn's with one owner.
        if let Ok(next) = next {
            assert_eq!(rt.query(next), Ok(5));
            rt.release_timeline(next);
            assert!(rt.query(next).is_err(), "its one owner has let go of it");
        }
        assert!(rt.timeline(0).is_ok(), "the slot comes again");
        over();
    });
}

#[test]
fn a_stale_release_leaves_the_next_record_of_the_slot_alone() {
    every_order(3, || {
        let rt = runtime();
        let want = Want { len: 16, align: 0, kind: 0, access: 0, usage: 0 };
        let first = rt.allocate(0, &want).unwrap();
        rt.retain(first).unwrap();
        rt.release(first).unwrap();
        rt.release(first).unwrap();
        let old = rt.allocate(0, &want).unwrap();
        let stray = thread::spawn(move || rt.release(old));
        let mine = rt.release(old);
        let next = rt.allocate(0, &want);
        let strays = stray.join().unwrap();
        assert!(mine.is_ok() != strays.is_ok(), "one of them was the last: {mine:?} {strays:?}");
        rt.poll();
        // There is one slot: the other was still inside it, or it is this record's, with one reference.
        match next {
            Ok(next) => {
                assert!(rt.allocation(next).is_ok());
                assert_eq!(rt.release(next), Ok(()));
            }
            Err(fault) => assert_eq!(fault.kind, Kind::ResourceExhausted),
        }
        rt.poll();
        assert!(rt.allocate(0, &want).is_ok(), "the slot comes again");
        over();
    });
}

#[test]
fn a_lane_that_closes_with_somebody_inside_is_rung_for() {
    every_order(2, || {
        let rt = runtime();
        let first = rt.queue(0, QueueOptions::default()).unwrap();
        let end = rt.submit(first, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
        let _ = rt.wait(end, Some(0));
        rt.close(first).unwrap();
        let queue = rt.queue(0, QueueOptions::default()).unwrap();
        let end = rt.submit(queue, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
        let helper = thread::spawn(move || rt.wait(end, Some(0)));
        rt.close(queue).unwrap();
        // A pump: it sleeps until it is rung, and nobody else polls.
        assert!(rt.drain(None));
        let _ = helper.join().unwrap();
        over();
    });
}
