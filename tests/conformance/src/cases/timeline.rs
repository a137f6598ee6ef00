//! Timelines: a value that only grows, or a failure that stays.

use super::cases;
use crate::{
    case::{Fail, Outcome, refused},
    ctx::{Ctx, around, at},
    ensure, ensure_eq,
};
use std::thread;
use wharf_core::{
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    timeline::Look,
};

cases! {
    "timeline.begins_at_its_value", [], "the initial value counts as signalled (iree 1.3)" => begins;
    "timeline.unused", [], "timelines that nobody uses come and go (iree semaphore NoOp)" => unused;
    "timeline.signal_only_up", [], "a signal at or below the value is InvalidArgument and changes nothing (decisions, signal)" => only_up;
    "timeline.a_later_signal_satisfies", [], "a signal beyond a value reaches it (iree 1.3)" => later;
    "timeline.highest_value", [], "any u64 below 2^64-1 can be signalled (decisions, timeline payload)" => highest;
    "timeline.failure_stays", [], "the first failure stays whole: kind, site, why, values (iree 1.3)" => failure_stays;
    "timeline.signal_after_failure", [], "a signal after the failure answers the failure, the value stays (design 3.1)" => signal_after;
    "timeline.reached_stays_reached", [], "a reached point stays reached after a failure; query tells the failure (decisions)" => reached_stays;
    "timeline.many_failures", [], "more failures than slots for details still tell their kind (architecture 3)" => many_failures;
    "timeline.queue_timelines_are_the_backends", [], "a queue's timeline cannot be signalled, failed or named as a signal: FailedPrecondition (core signal)" => of_queue;
    "timeline.stale_handles", [], "a released timeline is InvalidHandle everywhere (design 3.3)" => stale;
    "timeline.owners_keep_it", [], "a timeline lives until its last owner lets go (core signal)" => owners;
    "timeline.signal_past_fails_the_timeline", [], "an operation that is to signal a value already passed fails that timeline, so nobody waits for ever (core raise)" => signal_past;
    "timeline.an_operation_signals_several", [], "an operation signals all its points when it has ended (iree 1.4)" => several;
    "timeline.destroyed_with_waiters_cancels", [], "a waiter on a timeline that ends gets Cancelled (iree 1.3)" => destroyed;
    "timeline.threads_signal_in_turn", [], "points signalled by many threads are all reached (iree 1.3)" => threads;
}

fn cause() -> Fault {
    Fault::caller(Kind::DataLoss, Site::Read, Why::Entry, [7, 9]).with_native(-5)
}

fn begins(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(17)?;
    ensure_eq!(ctx.query(timeline), Ok(17));
    ensure_eq!(ctx.look(at(timeline, 17))?, Look::Reached);
    ensure_eq!(ctx.look(at(timeline, 18))?, Look::Ahead);
    ctx.reach(at(timeline, 0))?;
    ctx.reach(at(timeline, 17))?;
    refused(ctx.timeline(u64::MAX), Kind::InvalidArgument)?;
    Ok(())
}

fn unused(ctx: &Ctx) -> Outcome {
    for n in 0..1000 {
        let timeline = ctx.timeline(n)?;
        ensure_eq!(ctx.query(timeline), Ok(n));
        ctx.release_timeline(timeline);
        refused(ctx.query(timeline), Kind::InvalidHandle)?;
    }
    Ok(())
}

fn only_up(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(5)?;
    for value in [0, 4, 5] {
        refused(ctx.signal(timeline, value), Kind::InvalidArgument)?;
        ensure_eq!(ctx.query(timeline), Ok(5));
    }
    ctx.signal(timeline, 6)?;
    ensure_eq!(ctx.query(timeline), Ok(6));
    Ok(())
}

fn later(ctx: &Ctx) -> Outcome {
    let (timeline, queue) = (ctx.new_timeline(0)?, ctx.in_order()?);
    let waits = [at(timeline, 3), at(timeline, 40)];
    let end = crate::ctx::point(ctx.barrier(queue, &around(&waits, &[]))?)?;
    ctx.ahead(end)?;
    ctx.signal(timeline, 100)?;
    ctx.reach(end)
}

fn highest(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(1 << 63)?;
    ctx.signal(timeline, u64::MAX - 1)?;
    ensure_eq!(ctx.query(timeline), Ok(u64::MAX - 1));
    refused(ctx.signal(timeline, u64::MAX), Kind::InvalidArgument)?;
    refused(ctx.signal(ctx.new_timeline(0)?, u64::MAX), Kind::InvalidArgument)?;
    Ok(())
}

fn failure_stays(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(3)?;
    ctx.fail(timeline, &cause())?;
    ctx.fail(timeline, &Fault::caller(Kind::Io, Site::Write, Why::Unknown, [0; 2]))?;
    ensure_eq!(ctx.query(timeline), Err(cause()));
    ensure_eq!(ctx.look(at(timeline, 4))?, Look::Failed(cause()));
    ensure_eq!(ctx.wait(at(timeline, 4), ctx.soon()), Err(cause()));
    Ok(())
}

fn signal_after(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(3)?;
    ctx.fail(timeline, &cause())?;
    ensure_eq!(ctx.signal(timeline, 10), Err(cause()));
    ensure_eq!(ctx.look(at(timeline, 3))?, Look::Reached);
    ensure_eq!(ctx.look(at(timeline, 10))?, Look::Failed(cause()));
    Ok(())
}

fn reached_stays(ctx: &Ctx) -> Outcome {
    let (timeline, queue) = (ctx.new_timeline(0)?, ctx.in_order()?);
    ctx.signal(timeline, 3)?;
    ctx.fail(timeline, &cause())?;
    ensure_eq!(ctx.look(at(timeline, 3))?, Look::Reached);
    ctx.reach(at(timeline, 3))?;
    // An operation that waits for the reached point runs.
    let waits = [at(timeline, 3)];
    ctx.reach(crate::ctx::point(ctx.barrier(queue, &around(&waits, &[]))?)?)?;
    ensure_eq!(ctx.query(timeline), Err(cause()));
    Ok(())
}

fn many_failures(ctx: &Ctx) -> Outcome {
    for n in 0..100u64 {
        let timeline = ctx.new_timeline(0)?;
        ctx.fail(timeline, &Fault { values: [n, 0], ..cause() })?;
        refused(ctx.query(timeline), Kind::DataLoss)?;
    }
    ensure!(ctx.failures_dropped() > 0, "expected more failures than slots");
    Ok(())
}

fn of_queue(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let tail = ctx.tail(queue)?;
    refused(ctx.signal(tail.timeline, 5), Kind::FailedPrecondition)?;
    refused(ctx.fail(tail.timeline, &cause()), Kind::FailedPrecondition)?;
    let signals = [at(tail.timeline, 5)];
    refused(ctx.barrier(queue, &around(&[], &signals)), Kind::FailedPrecondition)?;
    ctx.finish(queue)
}

fn stale(ctx: &Ctx) -> Outcome {
    let (timeline, queue) = (ctx.timeline(0)?, ctx.in_order()?);
    ctx.release_timeline(timeline);
    for timeline in [timeline, Handle::from_raw(0), Handle::from_raw(u64::MAX)] {
        let points = [at(timeline, 1)];
        refused(ctx.query(timeline), Kind::InvalidHandle)?;
        refused(ctx.signal(timeline, 1), Kind::InvalidHandle)?;
        refused(ctx.fail(timeline, &cause()), Kind::InvalidHandle)?;
        refused(ctx.look(points[0]), Kind::InvalidHandle)?;
        refused(ctx.wait(points[0], ctx.soon()), Kind::InvalidHandle)?;
        refused(ctx.retain_timeline(timeline), Kind::InvalidHandle)?;
        refused(ctx.barrier(queue, &around(&points, &[])), Kind::InvalidHandle)?;
        refused(ctx.barrier(queue, &around(&[], &points)), Kind::InvalidHandle)?;
        ctx.release_timeline(timeline);
    }
    ctx.finish(queue)
}

fn owners(ctx: &Ctx) -> Outcome {
    let timeline = ctx.timeline(0)?;
    ctx.retain_timeline(timeline)?;
    ctx.release_timeline(timeline);
    ctx.signal(timeline, 1)?;
    ctx.release_timeline(timeline);
    refused(ctx.query(timeline), Kind::InvalidHandle)?;
    Ok(())
}

fn signal_past(ctx: &Ctx) -> Outcome {
    let (timeline, gate, queue) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?, ctx.in_order()?);
    let (waits, signals) = ([at(gate, 1)], [at(timeline, 2)]);
    let end = crate::ctx::point(ctx.barrier(queue, &around(&waits, &signals))?)?;
    ctx.signal(timeline, 5)?;
    ctx.signal(gate, 1)?;
    ctx.reach(end)?;
    ctx.fails(at(timeline, 6), Kind::InvalidArgument)?;
    Ok(())
}

fn several(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let timelines: Vec<_> = (0..5).map(|n| ctx.new_timeline(n)).collect::<Outcome<_>>()?;
    let signals: Vec<_> = timelines.iter().map(|timeline| at(*timeline, 10)).collect();
    ctx.barrier(queue, &around(&[], &signals))?;
    ctx.wait_all(&signals, ctx.soon())?;
    for timeline in timelines {
        ensure_eq!(ctx.query(timeline), Ok(10));
    }
    Ok(())
}

fn destroyed(ctx: &Ctx) -> Outcome {
    let timeline = ctx.timeline(0)?;
    thread::scope(|scope| {
        let waiter = scope.spawn(|| ctx.wait(at(timeline, 1), ctx.soon()));
        thread::sleep(std::time::Duration::from_millis(5));
        ctx.release_timeline(timeline);
        let waited = waiter.join().map_err(|_| Fail::new("the waiter panicked"))?;
        // Who comes after the end meets a handle that is stale.
        match waited {
            Err(fault) if [Kind::Cancelled, Kind::InvalidHandle].contains(&fault.kind) => Ok(()),
            other => Err(Fail::new(format!("expected Cancelled, got {other:?}"))),
        }
    })
}

fn threads(ctx: &Ctx) -> Outcome {
    let timelines: Vec<_> = (0..8).map(|_| ctx.new_timeline(0)).collect::<Outcome<_>>()?;
    thread::scope(|scope| {
        for timeline in &timelines {
            scope.spawn(move || (1..=200).try_for_each(|value| ctx.signal(*timeline, value)));
        }
        for value in [1, 100, 200] {
            let points: Vec<_> = timelines.iter().map(|timeline| at(*timeline, value)).collect();
            ctx.wait_all(&points, ctx.soon())?;
        }
        Ok(())
    })
}
