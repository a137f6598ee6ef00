//! Events: points on a queue's timeline, and their times.

use super::cases;
use crate::{
    case::{Outcome, refused},
    ctx::{Ctx, around, at, point},
    ensure, ensure_eq,
    need::Need::*,
    rig::Queue,
};
use wharf_core::{
    fault::Kind,
    runtime::{Around, Order, QueueOptions},
    timeline::Look,
};

cases! {
    "event.on_an_empty_queue_is_complete", [], "the tail of an empty queue is reached (liboffload issue: event on an empty queue never completes)" => empty;
    "event.of_work_is_complete_after_it", [], "an event is ahead until its work has ended, then stays reached (liboffload olSyncEvent)" => of_work;
    "event.outlives_its_queue", [], "a retained point is good after the queue is gone (liboffload olDestroyQueue, 4 row 26)" => outlives;
    "event.ten_syncs", [], "an event can be waited for 10 times (liboffload olSyncEvent)" => ten;
    "event.earlier_events_are_reached_too", [], "a reached point implies all before it (iree 1.3)" => earlier;
    "event.times_are_ordered", [Times], "begin is not after end, operations in order do not overlap (liboffload olGetEventElapsedTime)" => times;
    "event.times_are_repeatable", [Times], "the same answer twice (liboffload olGetEventElapsedTime)" => repeatable;
    "event.times_need_profiling", [], "without profiling InvalidArgument (decisions, elapsed time)" => not_profiled;
    "event.times_need_the_end", [Times], "before the end FailedPrecondition (liboffload 4 row 28)" => not_ended;
    "event.times_of_another_queue", [Times, Lanes(2)], "a point of another queue or timeline is InvalidArgument (liboffload olGetEventElapsedTime)" => other_queue;
    "event.times_of_held_work", [Times], "work that core held is stamped too (design 3.1)" => held;
}

fn profiled(ctx: &Ctx) -> Outcome<Queue> {
    ctx.queue_on(0, QueueOptions { order: Order::InOrder, profile: true })
}

fn empty(ctx: &Ctx) -> Outcome {
    let event = ctx.tail(ctx.in_order()?)?;
    ensure_eq!(ctx.look(event)?, Look::Reached);
    ctx.reach(event)
}

fn of_work(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    ctx.barrier(queue, &around(&waits, &[]))?;
    let event = ctx.tail(queue)?;
    ctx.ahead(event)?;
    ctx.signal(gate, 1)?;
    ctx.reach(event)?;
    ctx.barrier(queue, &Around::NONE)?;
    ensure_eq!(ctx.look(event)?, Look::Reached);
    Ok(())
}

fn outlives(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    ctx.barrier(queue, &Around::NONE)?;
    let event = ctx.tail(queue)?;
    ctx.retain_timeline(event.timeline)?;
    ctx.close(queue)?;
    ctx.reach(event)?;
    ctx.until("the queue's end", || ctx.poll() == wharf_core::runtime::Next::Idle)?;
    ensure_eq!(ctx.look(event)?, Look::Reached);
    ctx.reach(event)?;
    ctx.release_timeline(event.timeline);
    refused(ctx.look(event), Kind::InvalidHandle)?;
    Ok(())
}

fn ten(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(4096)?);
    let event = point(ctx.fill(queue, &ctx.whole(root)?, &[1], &Around::NONE)?)?;
    (0..10).try_for_each(|_| ctx.reach(event))
}

fn earlier(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let events: Vec<_> =
        (0..10).map(|_| point(ctx.barrier(queue, &Around::NONE)?)).collect::<Outcome<_>>()?;
    ctx.reach(events[9])?;
    for event in events {
        ensure_eq!(ctx.look(event)?, Look::Reached);
    }
    Ok(())
}

fn times(ctx: &Ctx) -> Outcome {
    let (queue, root) = (profiled(ctx)?, ctx.memory(65_536)?);
    let mut ends = Vec::new();
    for n in 0..5 {
        ends.push(point(ctx.fill(queue, &ctx.whole(root)?, &[n], &Around::NONE)?)?);
    }
    ctx.finish(queue)?;
    let mut last = 0;
    for end in ends {
        let times = ctx.times(queue, end)?;
        ensure!(times.begin_ns <= times.end_ns, "expected begin before end, got {times:?}");
        ensure!(times.begin_ns >= last, "expected a begin at or after {last}, got {times:?}");
        last = times.end_ns;
    }
    Ok(())
}

fn repeatable(ctx: &Ctx) -> Outcome {
    let queue = profiled(ctx)?;
    let end = point(ctx.barrier(queue, &Around::NONE)?)?;
    ctx.reach(end)?;
    ensure_eq!(ctx.times(queue, end)?, ctx.times(queue, end)?);
    Ok(())
}

fn not_profiled(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let end = point(ctx.barrier(queue, &Around::NONE)?)?;
    ctx.reach(end)?;
    refused(ctx.times(queue, end), Kind::InvalidArgument)?;
    Ok(())
}

fn not_ended(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (profiled(ctx)?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    let end = point(ctx.barrier(queue, &around(&waits, &[]))?)?;
    refused(ctx.times(queue, end), Kind::FailedPrecondition)?;
    ctx.signal(gate, 1)?;
    ctx.reach(end)?;
    ctx.times(queue, end)?;
    Ok(())
}

fn other_queue(ctx: &Ctx) -> Outcome {
    let (a, b) = (profiled(ctx)?, profiled(ctx)?);
    let end = point(ctx.barrier(a, &Around::NONE)?)?;
    ctx.reach(end)?;
    refused(ctx.times(b, end), Kind::InvalidArgument)?;
    refused(ctx.times(a, at(ctx.new_timeline(5)?, 1)), Kind::InvalidArgument)?;
    Ok(())
}

fn held(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (profiled(ctx)?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    let end = point(ctx.barrier(queue, &around(&waits, &[]))?)?;
    ctx.signal(gate, 1)?;
    ctx.reach(end)?;
    ctx.times(queue, end)?;
    Ok(())
}
