//! Waits: any, all, deadlines, who moves what a waiter needs.

use super::cases;
use crate::{
    case::{Fail, Outcome, refused},
    ctx::{Ctx, around, at, point},
    ensure, ensure_eq,
};
use std::{
    thread,
    time::{Duration, Instant},
};
use wharf::os::deadline;
use wharf_core::{
    fault::{Fault, Kind, Site, Why},
    runtime::Around,
};

cases! {
    "wait.reached_returns_at_once", [], "a wait for a value that was reached returns, also with a deadline in the past (iree 1.3)" => reached;
    "wait.deadline_zero_is_a_poll", [], "a deadline in the past is DeadlineExceeded at once (iree 1.3 timeouts)" => poll;
    "wait.deadline_passes", [], "a wait ends at its deadline, not before (iree 1.3 timeouts)" => passes;
    "wait.before_signal", [], "waiting before signalling is legal, to any depth (iree 1.3)" => before;
    "wait.by_many_threads", [], "all waiters of a timeline wake at its signal (iree 1.3)" => many;
    "wait.all_of_none_and_any_of_none", [], "no points are reached at once (iree 1.3 multi-wait)" => none;
    "wait.all_needs_each", [], "all waits for the last of its points (iree 1.3 multi-wait)" => all;
    "wait.any_needs_one", [], "any returns at the first of its points (iree 1.3 multi-wait)" => any;
    "wait.failure_ends_all_and_any", [], "a failed point ends both kinds with its failure, also beside reached ones (iree 1.3)" => failure;
    "wait.several_deadlines", [], "waits on several points end at their deadline (iree 1.3)" => several_deadlines;
    "wait.failure_wakes_waiters", [], "every waiter wakes with the failure (iree 1.3)" => wakes;
    "wait.one_point_again_and_again", [], "the same point is waited for 10 times (liboffload olSyncEvent)" => again;
    "wait.across_queues_of_a_timeline", [], "a queue's point is waited for by one thread while another submits (iree 1.3)" => beside;
    "wait.pumps_that_meet_forget_nothing", [], "what one pump finds locked by another is still seen to (architecture 3, the pump)" => meet;
    "wait.pump_thread_polls_a_polled_device", [], "with a pump thread asleep, a waiter for fresh work on a device that must be polled is served (architecture 3, liveness)" => pump_polls;
}

fn cause() -> Fault {
    Fault::caller(Kind::DataLoss, Site::Read, Why::Unknown, [1, 2])
}

fn past() -> wharf_core::env::Deadline {
    Some(0)
}

fn reached(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(4)?;
    for value in [0, 4] {
        ensure_eq!(ctx.wait(at(timeline, value), past()), Ok(()));
        ensure_eq!(ctx.wait_all(&[at(timeline, value), at(timeline, 1)], past()), Ok(()));
        ensure_eq!(ctx.wait_any(&[at(timeline, 9), at(timeline, value)], past()), Ok(()));
    }
    Ok(())
}

fn poll(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(4)?;
    refused(ctx.wait(at(timeline, 5), past()), Kind::DeadlineExceeded)?;
    refused(ctx.wait(at(timeline, 5), past()), Kind::DeadlineExceeded)?;
    let queue = ctx.in_order()?;
    let waits = [at(timeline, 5)];
    ctx.barrier(queue, &around(&waits, &[]))?;
    refused(ctx.sync(queue, past()), Kind::DeadlineExceeded)?;
    ctx.signal(timeline, 5)?;
    ctx.finish(queue)
}

fn passes(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(0)?;
    let begin = Instant::now();
    refused(ctx.wait(at(timeline, 1), deadline(Duration::from_millis(30))), Kind::DeadlineExceeded)?;
    let took = begin.elapsed();
    ensure!(took >= Duration::from_millis(30), "expected at least 30 ms, got {took:?}");
    ensure!(took < Duration::from_secs(5), "expected about 30 ms, got {took:?}");
    Ok(())
}

fn before(ctx: &Ctx) -> Outcome {
    let (timeline, queue) = (ctx.new_timeline(0)?, ctx.in_order()?);
    let depth = 40u64;
    let mut ends = Vec::new();
    for value in 1..=depth {
        let waits = [at(timeline, value)];
        ends.push(point(ctx.barrier(queue, &around(&waits, &[]))?)?);
    }
    for value in 1..=depth {
        ctx.ahead(ends[value as usize - 1])?;
        ctx.signal(timeline, value)?;
        ctx.reach(ends[value as usize - 1])?;
    }
    Ok(())
}

fn many(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(0)?;
    thread::scope(|scope| {
        let waiters: Vec<_> =
            (0..8).map(|n| scope.spawn(move || ctx.wait(at(timeline, 1 + n % 3), ctx.soon()))).collect();
        thread::sleep(Duration::from_millis(2));
        ctx.signal(timeline, 3)?;
        for waiter in waiters {
            waiter.join().map_err(|_| Fail::new("a waiter panicked"))??;
        }
        Ok(())
    })
}

fn none(ctx: &Ctx) -> Outcome {
    ensure_eq!(ctx.wait_all(&[], past()), Ok(()));
    ensure_eq!(ctx.wait_any(&[], past()), Ok(()));
    Ok(())
}

fn two(ctx: &Ctx) -> Outcome<[wharf_core::timeline::Point; 2]> {
    Ok([at(ctx.new_timeline(0)?, 1), at(ctx.new_timeline(0)?, 1)])
}

fn all(ctx: &Ctx) -> Outcome {
    let points = two(ctx)?;
    ctx.signal(points[0].timeline, 1)?;
    refused(ctx.wait_all(&points, deadline(Duration::from_millis(3))), Kind::DeadlineExceeded)?;
    thread::scope(|scope| {
        let waiter = scope.spawn(|| ctx.wait_all(&points, ctx.soon()));
        ctx.signal(points[1].timeline, 1)?;
        Ok(waiter.join().map_err(|_| Fail::new("the waiter panicked"))??)
    })
}

fn any(ctx: &Ctx) -> Outcome {
    let points = two(ctx)?;
    refused(ctx.wait_any(&points, past()), Kind::DeadlineExceeded)?;
    thread::scope(|scope| {
        let waiter = scope.spawn(|| ctx.wait_any(&points, ctx.soon()));
        ctx.signal(points[1].timeline, 1)?;
        Ok(waiter.join().map_err(|_| Fail::new("the waiter panicked"))??)
    })
}

fn failure(ctx: &Ctx) -> Outcome {
    let points = two(ctx)?;
    ctx.signal(points[0].timeline, 1)?;
    ctx.fail(points[1].timeline, &cause())?;
    refused(ctx.wait_all(&points, ctx.soon()), Kind::DataLoss)?;
    refused(ctx.wait_any(&points, ctx.soon()), Kind::DataLoss)?;
    Ok(())
}

fn several_deadlines(ctx: &Ctx) -> Outcome {
    let points = two(ctx)?;
    for wait in [true, false] {
        let until = deadline(Duration::from_millis(10));
        let begin = Instant::now();
        let waited = if wait { ctx.wait_all(&points, until) } else { ctx.wait_any(&points, until) };
        refused(waited, Kind::DeadlineExceeded)?;
        ensure!(begin.elapsed() >= Duration::from_millis(10), "the wait ended before its deadline");
    }
    Ok(())
}

fn wakes(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(0)?;
    thread::scope(|scope| {
        let waiters: Vec<_> =
            (1..5).map(|n| scope.spawn(move || ctx.wait(at(timeline, n), ctx.soon()))).collect();
        thread::sleep(Duration::from_millis(2));
        ctx.fail(timeline, &cause())?;
        for waiter in waiters {
            ensure_eq!(waiter.join().map_err(|_| Fail::new("a waiter panicked"))?, Err(cause()));
        }
        Ok(())
    })
}

fn again(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let end = point(ctx.barrier(queue, &Around::NONE)?)?;
    for _ in 0..10 {
        ctx.reach(end)?;
    }
    Ok(())
}

fn beside(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let timeline = ctx.tail(queue)?.timeline;
    thread::scope(|scope| {
        let waiter = scope.spawn(move || ctx.wait(at(timeline, 100), ctx.soon()));
        for _ in 0..100 {
            ctx.barrier(queue, &Around::NONE)?;
        }
        ctx.finish(queue)?;
        Ok(waiter.join().map_err(|_| Fail::new("the waiter panicked"))??)
    })
}

fn pump_polls(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    // Long enough for a pump thread to find nothing to do and sleep.
    thread::sleep(Duration::from_millis(20));
    let end = point(ctx.barrier(queue, &Around::NONE)?)?;
    ctx.reach(end)
}

fn meet(ctx: &Ctx) -> Outcome {
    let (root, timeline) = (ctx.memory(64)?, ctx.new_timeline(0)?);
    let whole = ctx.whole(root)?;
    for value in 1..=300 {
        let queue = ctx.queue(0, Default::default())?;
        let signals = [at(timeline, value)];
        ctx.fill(queue, &whole, &[value as u8], &around(&[], &signals))?;
        // A close pumps once, beside whoever promised to.
        ctx.close(queue)?;
        ctx.wait(signals[0], deadline(Duration::from_millis(400)))?;
        let end = deadline(Duration::from_millis(400));
        while ctx.interest() > 1 && wharf::os::now_ns() < end.unwrap_or(0) {
            thread::yield_now();
        }
    }
    Ok(())
}
