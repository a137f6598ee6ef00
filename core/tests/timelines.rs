//! Timelines, queues, waits and failures over a device that runs only when told. Rules and codes: IREE's semaphore
//! semantics (status numbers 1 CANCELLED, 3 INVALID_ARGUMENT, 4 DEADLINE_EXCEEDED) and liboffload's queues.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use wharf_core::{
    device::{Hint, HostCall, Op},
    fault::*,
    runtime::*,
    timeline::*,
};

fn in_order() -> QueueOptions {
    QueueOptions::default()
}
fn free() -> QueueOptions {
    QueueOptions { order: Order::Free, profile: false }
}
fn kind<T: std::fmt::Debug>(r: Result<T, Fault>) -> Kind {
    r.unwrap_err().kind
}
fn root_cause() -> Fault {
    Fault::backend(Kind::DataLoss, Site::Read, Why::Native, [1, 2]).with_native(42)
}

#[test]
fn a_value_only_grows_and_a_refused_signal_changes_nothing() {
    let (rt, _) = growing(1);
    let t = rt.timeline(2).unwrap();
    assert_eq!(rt.query(t), Ok(2));
    rt.signal(t, 3).unwrap();
    assert_eq!(kind(rt.signal(t, 3)), Kind::InvalidArgument);
    assert_eq!(kind(rt.signal(t, 1)), Kind::InvalidArgument);
    assert_eq!(rt.query(t), Ok(3));
    rt.signal(t, 45).unwrap();
    assert_eq!(rt.query(t), Ok(45));
    assert_eq!(kind(rt.signal(t, u64::MAX)), Kind::InvalidArgument);
    rt.signal(t, u64::MAX - 1).unwrap();
}

#[test]
fn the_first_failure_stays_whole_and_reached_points_stay_reached() {
    let (rt, _) = growing(1);
    let t = rt.timeline(5).unwrap();
    rt.fail(t, &root_cause()).unwrap();
    rt.fail(t, &Fault::caller(Kind::Cancelled, Site::Wait, Why::Unknown, [0; 2])).unwrap();
    assert_eq!(rt.query(t), Err(root_cause()));
    assert_eq!(rt.look(Point { timeline: t, value: 5 }), Ok(Look::Reached));
    assert_eq!(rt.look(Point { timeline: t, value: 6 }), Ok(Look::Failed(root_cause())));
    assert_eq!(rt.wait(Point { timeline: t, value: 6 }, None), Err(root_cause()));
    assert_eq!(rt.signal(t, 7), Err(root_cause()), "a signal after a failure returns the failure");
    assert_eq!(rt.wait(Point { timeline: t, value: 5 }, None), Ok(()));
}

#[test]
fn a_wait_polls_and_keeps_its_deadline() {
    let (rt, _) = growing(1);
    let t = rt.timeline(0).unwrap();
    let p = Point { timeline: t, value: 1 };
    assert_eq!(kind(rt.wait(p, Some(0))), Kind::DeadlineExceeded);
    assert_eq!(kind(rt.wait(p, after_ms(5))), Kind::DeadlineExceeded);
    assert_eq!(Kind::DeadlineExceeded.status(), 4);
    assert_eq!(rt.wait_all(&[], Some(0)), Ok(()));
    assert_eq!(rt.wait_any(&[], Some(0)), Ok(()));
}

#[test]
fn any_and_all_over_two_timelines() {
    let (rt, _) = growing(1);
    let (a, b) = (rt.timeline(0).unwrap(), rt.timeline(0).unwrap());
    let points = [Point { timeline: a, value: 1 }, Point { timeline: b, value: 1 }];
    rt.signal(b, 9).unwrap();
    assert_eq!(rt.wait_any(&points, Some(0)), Ok(()));
    assert_eq!(kind(rt.wait_all(&points, Some(0))), Kind::DeadlineExceeded);
    rt.signal(a, 1).unwrap();
    assert_eq!(rt.wait_all(&points, Some(0)), Ok(()));
    let c = rt.timeline(0).unwrap();
    rt.fail(c, &root_cause()).unwrap();
    let with_failed = [points[0], Point { timeline: c, value: 1 }];
    assert_eq!(rt.wait_any(&with_failed, None), Err(root_cause()), "a failure ends ANY too, and comes whole");
    assert_eq!(rt.wait_all(&with_failed, None), Err(root_cause()));
}

#[test]
fn waiters_wake_whoever_signals_with_and_without_a_pump_thread() {
    for pumped in [false, true] {
        let (rt, _) = growing(1);
        let stop: &'static std::sync::atomic::AtomicBool = Box::leak(Box::default());
        let pump = pumped
            .then(|| std::thread::spawn(|| rt.pump_until(|| stop.load(std::sync::atomic::Ordering::SeqCst))));
        let (a, b) = (rt.timeline(0).unwrap(), rt.timeline(0).unwrap());
        let other = std::thread::spawn(move || {
            for i in 1..=500 {
                rt.wait(Point { timeline: a, value: i }, after_ms(20_000)).unwrap();
                rt.signal(b, i).unwrap();
            }
        });
        for i in 1..=500 {
            rt.signal(a, i).unwrap();
            rt.wait(Point { timeline: b, value: i }, after_ms(20_000)).unwrap();
        }
        other.join().unwrap();
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        rt.ring();
        if let Some(pump) = pump {
            pump.join().unwrap();
        }
    }
}

#[test]
fn ending_a_timeline_cancels_its_waiters_and_makes_its_handle_stale() {
    let (rt, _) = growing(1);
    let t = rt.timeline(0).unwrap();
    let p = Point { timeline: t, value: 1 };
    let waiter = std::thread::spawn(move || rt.wait(p, after_ms(20_000)));
    while !waiter.is_finished() && rt.bell().interest.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    rt.release_timeline(t);
    assert_eq!(kind(waiter.join().unwrap()), Kind::Cancelled);
    assert_eq!(kind(rt.look(p)), Kind::InvalidHandle);
    assert_eq!(kind(rt.signal(t, 3)), Kind::InvalidHandle);
    let next = rt.timeline(0).unwrap();
    assert_ne!(next, t, "a slot's next turn has another handle");
    assert_eq!(rt.query(next), Ok(0), "and nothing of the last one's failure");
}

#[test]
fn a_queue_in_order_holds_what_follows_a_held_operation() {
    for native in [false, true] {
        let (rt, sims) = growing(1);
        sims[0].0.caps.lock().unwrap().native_wait = native;
        let q = rt.queue(0, in_order()).unwrap();
        let t = rt.timeline(0).unwrap();
        let p1 = rt.submit(q, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
        let p2 =
            rt.submit(q, &[Point { timeline: t, value: 5 }], Op::Barrier, &[], Hint::None).unwrap().unwrap();
        let p3 = rt.submit(q, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
        sims[0].0.drain();
        rt.poll();
        sims[0].0.drain();
        assert_eq!(rt.look(p1), Ok(Look::Reached));
        assert_eq!(rt.look(p3), Ok(Look::Ahead));
        assert_eq!(rt.is_idle(q), Ok(false));
        rt.signal(t, 4).unwrap();
        rt.poll();
        assert_eq!(sims[0].0.drain(), 0);
        rt.signal(t, 6).unwrap();
        rt.poll();
        sims[0].0.drain();
        assert_eq!((rt.look(p2), rt.look(p3)), (Ok(Look::Reached), Ok(Look::Reached)));
        assert_eq!(rt.is_idle(q), Ok(true));
    }
}

#[test]
fn a_free_queue_lets_others_pass_and_fails_only_the_signals_of_what_failed() {
    let (rt, sims) = growing(1);
    let q = rt.queue(0, free()).unwrap();
    let (t, a, b) = (rt.timeline(0).unwrap(), rt.timeline(0).unwrap(), rt.timeline(0).unwrap());
    let one = |timeline| [Point { timeline, value: 1 }];
    assert_eq!(rt.submit(q, &one(t), Op::Barrier, &one(a), Hint::None).unwrap(), None);
    rt.submit(q, &[], Op::Barrier, &one(b), Hint::None).unwrap();
    sims[0].0.drain();
    rt.poll();
    assert_eq!((rt.query(a), rt.query(b)), (Ok(0), Ok(1)));
    rt.fail(t, &root_cause()).unwrap();
    rt.poll();
    assert_eq!(rt.query(a), Err(root_cause()));
    let c = rt.timeline(0).unwrap();
    rt.submit(q, &[], Op::Barrier, &one(c), Hint::None).unwrap();
    sims[0].0.drain();
    rt.poll();
    assert_eq!(rt.query(c), Ok(1), "the queue goes on");
    rt.sync(q, after_ms(1000)).unwrap();
    assert_eq!(kind(rt.tail(q)), Kind::FailedPrecondition);
}

#[test]
fn a_failed_wait_reaches_all_that_follows_and_nothing_before() {
    let (rt, sims) = growing(1);
    let (q, q2) = (rt.queue(0, in_order()).unwrap(), rt.queue(0, in_order()).unwrap());
    let t = rt.timeline(0).unwrap();
    let s = rt.timeline(0).unwrap();
    let p1 = rt.submit(q, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
    let wait = [Point { timeline: t, value: 1 }];
    let p2 =
        rt.submit(q, &wait, Op::Barrier, &[Point { timeline: s, value: 1 }], Hint::None).unwrap().unwrap();
    let p3 = rt.submit(q2, &[p2], Op::Barrier, &[], Hint::None).unwrap().unwrap();
    rt.fail(t, &root_cause()).unwrap();
    rt.poll();
    assert_eq!(rt.look(p1), Ok(Look::Ahead), "what came before still runs");
    assert_eq!(rt.query(s), Err(root_cause()), "the signals of what will not run fail with the first cause");
    assert_eq!(
        rt.submit(q, &[], Op::Barrier, &[], Hint::None),
        Err(root_cause()),
        "the failure sticks to the queue"
    );
    sims[0].0.drain();
    rt.poll();
    rt.poll();
    assert_eq!(rt.wait(p1, Some(0)), Ok(()));
    assert_eq!(rt.wait(p2, Some(0)), Err(root_cause()));
    assert_eq!(rt.wait(p3, Some(0)), Err(root_cause()));
    assert_eq!(rt.sync(q, Some(0)), Err(root_cause()));
}

#[test]
fn a_wait_that_had_failed_already_fails_the_points_not_the_call() {
    let (rt, _) = growing(1);
    let q = rt.queue(0, in_order()).unwrap();
    let (t, s) = (rt.timeline(0).unwrap(), rt.timeline(0).unwrap());
    rt.fail(t, &root_cause()).unwrap();
    let signals = [Point { timeline: s, value: 1 }];
    let p =
        rt.submit(q, &[Point { timeline: t, value: 1 }], Op::Barrier, &signals, Hint::None).unwrap().unwrap();
    assert_eq!(rt.wait(p, Some(0)), Err(root_cause()));
    assert_eq!(rt.query(s), Err(root_cause()));
}

#[test]
fn a_refused_call_fails_its_signals_with_the_same_fault_and_the_queue_goes_on() {
    let (rt, sims) = growing(1);
    let q = rt.queue(0, in_order()).unwrap();
    let s = rt.timeline(0).unwrap();
    let signals = [Point { timeline: s, value: 1 }];
    let read = Op::Read { file: 0, at: 0, to: 0, len: 1 };
    let fault = rt.submit(q, &[], read, &signals, Hint::None).unwrap_err();
    assert_eq!(fault.kind, Kind::Unsupported);
    assert_eq!(rt.query(s), Err(fault));
    let p = rt.submit(q, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
    sims[0].0.drain();
    assert_eq!(rt.wait(p, Some(0)), Ok(()));
    let own_future = Point { timeline: p.timeline, value: p.value + 1 };
    assert_eq!(kind(rt.submit(q, &[own_future], Op::Barrier, &[], Hint::None)), Kind::InvalidArgument);
    assert_eq!(
        kind(rt.signal(p.timeline, 99)),
        Kind::FailedPrecondition,
        "a queue's timeline is its backend's"
    );
    assert_eq!(kind(rt.fail(p.timeline, &fault)), Kind::FailedPrecondition);
}

#[test]
fn a_lane_that_fails_fails_every_unreached_point_and_only_its_queue() {
    let (rt, sims) = growing(2);
    let (q, other) = (rt.queue(0, in_order()).unwrap(), rt.queue(1, in_order()).unwrap());
    let s = rt.timeline(0).unwrap();
    let p1 = rt.submit(q, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
    sims[0].0.drain();
    let p2 = rt.submit(q, &[], Op::Barrier, &[Point { timeline: s, value: 1 }], Hint::None).unwrap().unwrap();
    sims[0].0.fail_lane(0, &root_cause());
    rt.poll();
    assert_eq!(rt.look(p1), Ok(Look::Reached));
    assert_eq!(rt.wait(p2, None), Err(root_cause()));
    assert_eq!(rt.query(s), Err(root_cause()));
    assert_eq!(rt.submit(q, &[], Op::Barrier, &[], Hint::None), Err(root_cause()));
    let p = rt.submit(other, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
    sims[1].0.drain();
    assert_eq!(rt.wait(p, None), Ok(()));
    rt.close(q).unwrap();
    assert_eq!(kind(rt.tail(q)), Kind::InvalidHandle);
}

#[test]
fn a_backend_that_refuses_a_held_operation_fails_it_and_what_follows() {
    let (rt, sims) = growing(1);
    let q = rt.queue(0, in_order()).unwrap();
    let t = rt.timeline(0).unwrap();
    let wait = [Point { timeline: t, value: 1 }];
    let p1 = rt.submit(q, &wait, Op::Barrier, &[], Hint::None).unwrap().unwrap();
    let p2 = rt.submit(q, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
    sims[0].0.refuse_submit_at.store(0, std::sync::atomic::Ordering::SeqCst);
    rt.signal(t, 1).unwrap();
    rt.poll();
    for p in [p1, p2] {
        let fault = rt.wait(p, None).unwrap_err();
        assert_eq!((fault.kind, fault.native, fault.blame), (Kind::BackendFailure, 5, Blame::Backend));
    }
}

#[test]
fn depth_one_holds_in_core_and_never_blocks_the_caller() {
    let (rt, sims) = growing(1);
    sims[0].0.caps.lock().unwrap().depth = 1;
    let q = rt.queue(0, in_order()).unwrap();
    let points: Vec<_> =
        (0..100).map(|_| rt.submit(q, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap()).collect();
    for (i, p) in points.iter().enumerate() {
        assert_eq!(rt.look(*p), Ok(Look::Ahead));
        assert_eq!(sims[0].0.drain(), 1, "one at a time, operation {i}");
        assert_eq!(rt.look(*p), Ok(Look::Reached));
        rt.poll();
    }
}

#[test]
fn points_outlive_their_queue_and_slots_come_again() {
    let (rt, sims) = growing(1);
    for _ in 0..500 {
        let q = rt.queue(0, in_order()).unwrap();
        let p = rt.submit(q, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
        rt.retain_timeline(p.timeline).unwrap();
        rt.close(q).unwrap();
        assert_eq!(kind(rt.submit(q, &[], Op::Barrier, &[], Hint::None)), Kind::InvalidHandle);
        assert_eq!(rt.look(p), Ok(Look::Ahead), "closing ends no work");
        sims[0].0.drain();
        rt.wait(p, Some(0)).unwrap();
        rt.poll();
        rt.release_timeline(p.timeline);
        assert_eq!(kind(rt.look(p)), Kind::InvalidHandle);
        sims[0].0.lanes.lock().unwrap().clear();
    }
    assert_eq!(rt.bell().interest.load(std::sync::atomic::Ordering::SeqCst), 0, "nothing is left to pump");
}

#[test]
fn sixteen_queues_chained_run_in_order_whatever_the_backend_offers() {
    for (native, devices) in [(false, 1), (true, 1), (true, 2)] {
        let (rt, sims) = growing(devices);
        for (i, sim) in sims.iter().enumerate() {
            let mut caps = sim.0.caps.lock().unwrap();
            caps.native_wait = native;
            caps.backend = i as u16;
        }
        let t = rt.timeline(0).unwrap();
        let mut p = Point { timeline: t, value: 1 };
        static ORDER: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());
        extern "C" fn note(user: *mut ()) {
            ORDER.lock().unwrap().push(user as usize);
        }
        ORDER.lock().unwrap().clear();
        for i in 0..16 {
            let q = rt.queue(i % devices, in_order()).unwrap();
            let call = Op::Call(HostCall { call: note, user: i as *mut () });
            p = rt.submit(q, &[p], call, &[], Hint::None).unwrap().unwrap();
        }
        sims.iter().for_each(|s| assert_eq!(s.0.drain(), 0));
        rt.signal(t, 1).unwrap();
        for _ in 0..40 {
            rt.poll();
            sims.iter().for_each(|s| {
                s.0.drain();
            });
        }
        assert_eq!(rt.wait(p, Some(0)), Ok(()));
        assert_eq!(*ORDER.lock().unwrap(), (0..16).collect::<Vec<_>>());
    }
}

#[test]
fn twenty_threads_on_one_queue() {
    let (rt, sims) = growing(1);
    sims[0].0.at_once.store(true, std::sync::atomic::Ordering::SeqCst);
    let q = rt.queue(0, in_order()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                for i in 0..200 {
                    let p = rt.submit(q, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
                    if i % 16 == 0 {
                        rt.wait(p, after_ms(20_000)).unwrap();
                    }
                }
            });
        }
    });
    let tail = rt.tail(q).unwrap();
    assert_eq!(tail.value, 4000);
    rt.wait(tail, after_ms(20_000)).unwrap();
    let log = sims[0].0.log.lock().unwrap();
    assert!(log.windows(2).all(|w| w[0] < w[1]), "values never go back");
}

#[test]
fn a_fixed_store_refuses_at_its_limits_and_goes_on_below_them() {
    let (rt, sim) = fixed();
    let q = rt.queue(0, in_order()).unwrap();
    let _q2 = rt.queue(0, in_order()).unwrap();
    assert_eq!(kind(rt.queue(0, in_order())), Kind::ResourceExhausted, "two queues");
    let (a, b) = (rt.timeline(0).unwrap(), rt.timeline(0).unwrap());
    assert_eq!(kind(rt.timeline(0)), Kind::ResourceExhausted, "four timelines, two of them the queues'");
    let wait = [Point { timeline: a, value: 1 }];
    for _ in 0..4 {
        rt.submit(q, &wait, Op::Barrier, &[], Hint::None).unwrap();
    }
    let full = rt.submit(q, &wait, Op::Barrier, &[Point { timeline: b, value: 1 }], Hint::None);
    assert_eq!(kind(full), Kind::ResourceExhausted, "four held operations");
    assert!(rt.query(b).is_err(), "and the signals of the refused one fail");
    rt.signal(a, 1).unwrap();
    rt.poll();
    sim.drain();
    rt.poll();
    assert_eq!(rt.is_idle(q), Ok(true));
    rt.submit(q, &wait, Op::Barrier, &[], Hint::None).unwrap();
}

/// The queue, the end and the waits of an operation.
type Submitted = (usize, Point, Vec<Point>);

/// No operation ends before all it waits for, or before the one in front of it.
fn check_order(rt: &Growing, ops: &[Submitted], seed: u64) {
    for (i, (q, p, waits)) in ops.iter().enumerate() {
        if rt.look(*p) != Ok(Look::Reached) {
            continue;
        }
        for w in waits {
            assert_eq!(rt.look(*w), Ok(Look::Reached), "seed {seed} op {i} ran before its wait");
        }
        if let Some((_, before, _)) = ops[..i].iter().rev().find(|o| o.0 == *q) {
            assert_eq!(rt.look(*before), Ok(Look::Reached), "seed {seed} op {i} overtook");
        }
    }
}

/// Random programs over random queues: the order that each queue promises is kept, every point is reached or failed as
/// its cause says. The model: an operation on a queue in order fails if one of its waits or the one before it failed.
#[test]
fn random_programs_keep_their_order() {
    for seed in 0..300u64 {
        let mut rng = Rng(seed);
        let (rt, sims) = growing(2);
        for (i, sim) in sims.iter().enumerate() {
            let mut caps = sim.0.caps.lock().unwrap();
            caps.backend = i as u16;
            caps.native_wait = rng.below(2) == 0;
            caps.depth = 1 + rng.below(4) as u16;
        }
        let queues: Vec<_> = (0..4).map(|i| rt.queue(i % 2, in_order()).unwrap()).collect();
        let users: Vec<_> = (0..3).map(|_| rt.timeline(0).unwrap()).collect();
        let mut ops: Vec<Submitted> = vec![];
        let mut user_state = [0u64; 3];
        for _ in 0..40 {
            match rng.below(10) {
                0..=5 => {
                    let q = rng.below(4) as usize;
                    let mut waits = vec![];
                    for _ in 0..rng.below(3) {
                        if rng.below(3) == 0 || ops.is_empty() {
                            let u = rng.below(3) as usize;
                            waits.push(Point { timeline: users[u], value: user_state[u] + rng.below(3) });
                        } else {
                            waits.push(ops[rng.below(ops.len() as u64) as usize].1);
                        }
                    }
                    let p = rt.submit(queues[q], &waits, Op::Barrier, &[], Hint::None).unwrap().unwrap();
                    ops.push((q, p, waits));
                }
                6 => {
                    let u = rng.below(3) as usize;
                    user_state[u] += 1 + rng.below(2);
                    rt.signal(users[u], user_state[u]).unwrap();
                }
                7 => drop(rt.poll()),
                _ => {
                    let s = &sims[rng.below(2) as usize];
                    let lanes = s.0.lanes.lock().unwrap().len() as u64;
                    s.0.step(rng.below(lanes) as usize);
                }
            }
            check_order(rt, &ops, seed);
        }
        for u in &users {
            let _ = rt.signal(*u, 1000);
        }
        for _ in 0..200 {
            rt.poll();
            sims.iter().for_each(|s| {
                s.0.drain();
            });
        }
        for (_, p, _) in &ops {
            assert_eq!(rt.wait(*p, Some(0)), Ok(()), "seed {seed}: everything ends");
        }
        assert_eq!(
            rt.bell().interest.load(std::sync::atomic::Ordering::SeqCst),
            0,
            "seed {seed}: nothing left behind"
        );
    }
}

#[test]
fn an_operation_whose_signals_cannot_be_kept_is_not_handed_over() {
    let (rt, sim) = fixed();
    let done = rt.timeline(0).unwrap();
    let point = |value| [Point { timeline: done, value }];
    let queue = rt.queue(0, in_order()).unwrap();
    for value in 1..=4 {
        rt.submit(queue, &[], Op::Barrier, &point(value), Hint::None).unwrap();
    }
    let full = rt.submit(queue, &[], Op::Barrier, &[point(5)[0]; 1], Hint::None);
    assert_eq!(kind(full), Kind::ResourceExhausted);
    assert_eq!(sim.drain(), 4, "the refused operation does not run");
}

#[test]
fn a_wait_on_a_queue_of_free_order_holds_nothing_else_though_the_backend_could_wait() {
    let (rt, sims) = growing(1);
    sims[0].0.caps.lock().unwrap().native_wait = true;
    let (shut, queue) = (rt.queue(0, in_order()).unwrap(), rt.queue(0, free()).unwrap());
    let ahead = rt.submit(shut, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
    let done = [rt.timeline(0).unwrap(), rt.timeline(0).unwrap()];
    let point = |i: usize| [Point { timeline: done[i], value: 1 }];
    rt.submit(queue, &[ahead], Op::Barrier, &point(0), Hint::None).unwrap();
    rt.submit(queue, &[], Op::Barrier, &point(1), Hint::None).unwrap();
    while sims[0].0.step(1) {}
    rt.poll();
    assert_eq!((rt.query(done[0]), rt.query(done[1])), (Ok(0), Ok(1)));
    sims[0].0.drain();
    rt.poll();
    sims[0].0.drain();
    rt.poll();
    assert_eq!(rt.query(done[0]), Ok(1));
}

#[test]
fn an_operation_has_at_most_1024_points_to_wait_for_and_as_many_to_signal() {
    assert_eq!(POINTS_MAX, 1024);
    let (rt, sims) = growing(1);
    let q = rt.queue(0, in_order()).unwrap();
    let points = |count: usize| -> Vec<Point> {
        (0..count).map(|_| Point { timeline: rt.timeline(0).unwrap(), value: 1 }).collect()
    };
    let (waits, signals) = (points(POINTS_MAX + 1), points(POINTS_MAX + 1));
    let most = POINTS_MAX;
    let p = rt.submit(q, &waits[..most], Op::Barrier, &signals[..most], Hint::None).unwrap().unwrap();
    let other = points(1);
    let too_many_waits = rt.submit(q, &waits, Op::Barrier, &other, Hint::None).unwrap_err();
    assert_eq!(
        (too_many_waits.kind, rt.query(other[0].timeline)),
        (Kind::ResourceExhausted, Err(too_many_waits))
    );
    let late = points(POINTS_MAX + 1);
    assert_eq!(kind(rt.submit(q, &waits[..1], Op::Barrier, &late, Hint::None)), Kind::ResourceExhausted);
    assert!(late.iter().all(|point| rt.query(point.timeline).is_err()), "each is told");
    waits[..most].iter().for_each(|wait| rt.signal(wait.timeline, 1).unwrap());
    rt.poll();
    sims[0].0.drain();
    rt.poll();
    rt.wait(p, Some(0)).unwrap();
    assert!(signals[..most].iter().all(|signal| rt.query(signal.timeline) == Ok(1)));
}

#[test]
fn a_lane_that_a_native_wait_fills_takes_what_follows_when_the_wait_is_over() {
    let (rt, sims) = growing(1);
    let sim = sims[0].0;
    (sim.caps.lock().unwrap().native_wait, sim.caps.lock().unwrap().depth) = (true, 1);
    let (first, second) = (rt.queue(0, in_order()).unwrap(), rt.queue(0, in_order()).unwrap());
    let gate = rt.submit(first, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap();
    let end = rt.submit(second, &[gate], Op::Barrier, &[], Hint::None).unwrap().unwrap();
    assert_eq!(
        sim.lanes.lock().unwrap()[1].hinted_more,
        0,
        "the wait fills the lane, so it is started by itself"
    );
    let waiter = std::thread::spawn(move || rt.wait(end, after_ms(5000)));
    let tries = || sim.submits.load(std::sync::atomic::Ordering::SeqCst);
    let tried = tries();
    assert!(sim.step(0), "the point that is waited for");
    while tries() == tried {
        std::thread::yield_now(); // Whoever waits pumps, and finds the lane still full.
    }
    assert!(sim.step(1), "the wait, whose end the backend tells nobody of");
    while !waiter.is_finished() {
        sim.step(1);
        std::thread::yield_now();
    }
    assert_eq!(waiter.join().unwrap(), Ok(()));
}
