//! Timelines: a signal that nobody waits for, a look at a point that was reached, and a word handed from core to core and
//! back; against what the standard library has for the same.

use std::{
    hint::{black_box, spin_loop},
    process::ExitCode,
    sync::{
        Condvar, Mutex,
        atomic::{AtomicU64, Ordering::*},
        mpsc,
    },
    thread,
    time::Duration,
};
use wharf::os::Os;
use wharf_bench::{
    args::{self, Args, Fail},
    devices,
    row::{Goal, Row},
    time::{Effort, Times, clocked, in_turn},
};
use wharf_core::{
    fault::Fault,
    handle::Handle,
    runtime::Runtime,
    timeline::{Point, Timeline},
};
use wharf_host::HostDevice;

type Core = Runtime<HostDevice, Os>;

fn main() -> ExitCode {
    args::main(run)
}

fn run(args: &Args, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
    let core = devices::core(HostDevice::new());
    let effort = Effort { rounds: args.pick(31, 3), round: Duration::from_millis(args.pick(5, 1)) };
    let mut row = |name: &str, times: (Times, Times), baseline, goal| {
        let (value, baseline_value) = (times.0.into(), times.1.into());
        give(Row { name: name.into(), value, unit: "ns", baseline, baseline_value, goal });
    };
    row(
        "signal without waiters",
        in_turn(effort, signals(core)?, notify),
        "mutex and condvar",
        Goal::Most(10.0),
    );
    row(
        "look at a reached point",
        in_turn(effort, looks(core)?, locked),
        "look under a mutex",
        Goal::Most(5.0),
    );
    row("look at a reached point (again)", in_turn(effort, looks(core)?, loads), "atomic load", Goal::None);
    let hand = Effort { rounds: args.pick(21, 3), round: Duration::from_millis(args.pick(20, 2)) };
    row(
        "handoff between threads",
        in_turn(hand, handoffs(core)?, channels),
        "two channels",
        Goal::Most(300.0),
    );
    row(
        "handoff between threads (again)",
        in_turn(hand, handoffs(core)?, spins),
        "two atomics, spinning",
        Goal::None,
    );
    Ok(())
}

fn timeline(core: &Core) -> Result<Handle<Timeline>, Fail> {
    core.timeline(0).map_err(|fault| format!("{fault:?}").into())
}

fn well<T>(answer: Result<T, Fault>) -> T {
    answer.unwrap_or_else(|fault| panic!("a live timeline: {fault:?}"))
}

fn signals(core: &'static Core) -> Result<impl FnMut(u64) -> Duration, Fail> {
    let (timeline, mut value) = (timeline(core)?, 0);
    Ok(move |count| {
        clocked(|| {
            for _ in 0..count {
                value += 1;
                well(core.signal(timeline, value));
            }
        })
    })
}

fn notify(count: u64) -> Duration {
    let (value, changed) = (Mutex::new(0u64), Condvar::new());
    clocked(|| {
        for _ in 0..count {
            *value.lock().expect("nobody panics inside") += 1;
            black_box(&changed).notify_all();
        }
    })
}

fn looks(core: &'static Core) -> Result<impl FnMut(u64) -> Duration, Fail> {
    let point = Point { timeline: timeline(core)?, value: 1 };
    well(core.signal(point.timeline, 2));
    Ok(move |count| clocked(|| (0..count).for_each(|_| _ = black_box(well(core.look(black_box(point)))))))
}

fn locked(count: u64) -> Duration {
    let value = Mutex::new(2u64);
    let look = || *black_box(&value).lock().expect("nobody panics inside") >= 1;
    clocked(|| (0..count).for_each(|_| _ = black_box(look())))
}

fn loads(count: u64) -> Duration {
    let value = AtomicU64::new(2);
    clocked(|| (0..count).for_each(|_| _ = black_box(black_box(&value).load(Acquire) >= 1)))
}

/// Half of there and back is one handoff.
fn handoffs(core: &'static Core) -> Result<impl FnMut(u64) -> Duration, Fail> {
    let (there, back, mut from) = (timeline(core)?, timeline(core)?, 0);
    Ok(move |count| {
        let point = |timeline, i| Point { timeline, value: from + i };
        let took = thread::scope(|scope| {
            scope.spawn(|| {
                for i in 1..=count + 1 {
                    well(core.wait(point(there, i), None));
                    well(core.signal(back, from + i));
                }
            });
            let turn = |i| {
                well(core.signal(there, from + i));
                well(core.wait(point(back, i), None));
            };
            turn(1);
            clocked(|| (2..=count + 1).for_each(turn))
        });
        from += count + 1;
        took / 2
    })
}

fn channels(count: u64) -> Duration {
    let ((to, there), (answer, back)) = (mpsc::sync_channel::<()>(1), mpsc::sync_channel::<()>(1));
    thread::scope(|scope| {
        scope.spawn(move || while there.recv().is_ok() && answer.send(()).is_ok() {});
        let turn = || to.send(()).is_ok() && back.recv().is_ok();
        turn();
        let took = clocked(|| (0..count).for_each(|_| _ = turn()));
        drop(to);
        took / 2
    })
}

fn spins(count: u64) -> Duration {
    let (there, back) = (AtomicU64::new(0), AtomicU64::new(0));
    // With fewer cores than threads a spin would wait for the other's turn.
    let until = |word: &AtomicU64, value| {
        let mut looks = 0u32;
        while word.load(Acquire) < value {
            looks += 1;
            if looks.is_multiple_of(20_000) { thread::yield_now() } else { spin_loop() }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1..=count + 1 {
                until(&there, i);
                back.store(i, Release);
            }
        });
        let turn = |i| {
            there.store(i, Release);
            until(&back, i);
        };
        turn(1);
        clocked(|| (2..=count + 1).for_each(turn)) / 2
    })
}
