//! Queues: made, closed, asked.

use super::cases;
use crate::{
    case::{Fail, Outcome, refused, same},
    ctx::{Ctx, around, at, point},
    ensure, ensure_eq,
    need::Need::*,
    rig::Queue,
};
use std::thread;
use wharf_core::{
    fault::Kind,
    runtime::{Around, QueueOptions},
    timeline::Look,
};

cases! {
    "queue.device_is_the_creators", [], "a queue says which device it is on (liboffload olGetQueueInfo)" => device;
    "queue.empty_is_idle_and_synced", [], "an empty queue is idle and its sync returns (liboffload olSyncQueue, olQueryQueue)" => empty;
    "queue.idle_is_exact", [], "pending while blocked, idle when all has ended (liboffload 4 row 24)" => idle;
    "queue.tail_counts_operations", [], "each operation ends at the next value, in both kinds of wait (design 3.1)" => tail;
    "queue.free_order_has_no_tail", [], "a free queue gives no points; its tail is FailedPrecondition (architecture 3)" => free_tail;
    "queue.closed_handle_is_stale", [], "every call on a closed, null or foreign queue is InvalidHandle (design 3.3)" => closed;
    "queue.closed_with_work_still_runs", [], "what was submitted before the close runs (liboffload olDestroyQueue)" => closed_runs;
    "queue.closed_with_held_work_still_runs", [], "what was held at the close runs once its wait is reached (liboffload olDestroyQueue)" => closed_held;
    "queue.thousand_made_and_closed", [], "1,000 queues in a row, with work, leave nothing (liboffload issue: queues leak streams)" => thousand;
    "queue.too_many_are_refused", [], "more than the device has are ResourceExhausted, a closed one makes room (core queue)" => too_many;
    "queue.sync_of_free_order", [], "sync waits for all on a free queue (core wait)" => sync_free;
    "queue.close_while_waited_for", [], "a wait for a retained point goes on over the close (liboffload olDestroyQueue)" => close_waited;
    "queue.threads_open_and_close", [Lanes(8)], "8 threads each open a queue, use it and close it, again and again (liboffload 4 rows 15 to 19)" => threads;
    "queue.second_is_independent", [Lanes(2)], "a blocked queue does not hold another up (liboffload olWaitEvents)" => independent;
}

fn device(ctx: &Ctx) -> Outcome {
    for n in 0..ctx.devices() {
        let queue = ctx.queue_on(n, QueueOptions::default())?;
        ensure_eq!(ctx.queue_device(queue)?, n);
    }
    Ok(())
}

fn empty(ctx: &Ctx) -> Outcome {
    for queue in [ctx.in_order()?, ctx.free_order()?] {
        ensure!(ctx.is_idle(queue)?, "an empty queue is not idle");
        ctx.finish(queue)?;
    }
    Ok(())
}

fn idle(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    ctx.barrier(queue, &around(&waits, &[]))?;
    ensure!(!ctx.is_idle(queue)?, "a blocked queue is idle");
    ctx.signal(gate, 1)?;
    ctx.finish(queue)?;
    ctx.until("the idle queue", || ctx.is_idle(queue) == Ok(true))
}

fn tail(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    for n in 1..=20 {
        let around = if n == 10 { around(&waits, &[]) } else { Around::NONE };
        let end = point(ctx.barrier(queue, &around)?)?;
        ensure_eq!((end.value, end), (n, ctx.tail(queue)?));
    }
    ctx.signal(gate, 1)?;
    ctx.finish(queue)
}

fn free_tail(ctx: &Ctx) -> Outcome {
    let queue = ctx.free_order()?;
    ensure_eq!(ctx.barrier(queue, &Around::NONE)?, None);
    refused(ctx.tail(queue), Kind::FailedPrecondition)?;
    ctx.finish(queue)
}

fn closed(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    ctx.close(queue)?;
    let timeline = ctx.new_timeline(0)?;
    for queue in [queue, Queue(0), Queue(u64::MAX), Queue(timeline.raw())] {
        refused(ctx.close(queue), Kind::InvalidHandle)?;
        refused(ctx.barrier(queue, &Around::NONE), Kind::InvalidHandle)?;
        refused(ctx.sync(queue, ctx.soon()), Kind::InvalidHandle)?;
        refused(ctx.is_idle(queue), Kind::InvalidHandle)?;
        refused(ctx.tail(queue), Kind::InvalidHandle)?;
        refused(ctx.queue_device(queue), Kind::InvalidHandle)?;
    }
    Ok(())
}

fn closed_runs(ctx: &Ctx) -> Outcome {
    let (queue, root, timeline) = (ctx.in_order()?, ctx.memory(256)?, ctx.new_timeline(0)?);
    let out = ctx.host(256);
    for n in 0..=40 {
        ctx.fill(queue, &ctx.whole(root)?, &[n], &Around::NONE)?;
    }
    let signals = [at(timeline, 1)];
    ctx.copy_to(queue, &ctx.whole(root)?, out, &around(&[], &signals))?;
    ctx.close(queue)?;
    ctx.reach(signals[0])?;
    same(&out.bytes(), &[40; 256])
}

fn closed_held(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(64)?);
    let (gate, timeline) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let out = ctx.host(64);
    let (waits, signals) = ([at(gate, 1)], [at(timeline, 1)]);
    ctx.fill(queue, &ctx.whole(root)?, &[8], &around(&waits, &[]))?;
    ctx.copy_to(queue, &ctx.whole(root)?, out, &around(&[], &signals))?;
    ctx.close(queue)?;
    ctx.ahead(signals[0])?;
    ctx.signal(gate, 1)?;
    ctx.reach(signals[0])?;
    same(&out.bytes(), &[8; 64])
}

fn thousand(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(64)?;
    let whole = ctx.whole(root)?;
    for n in 0..1000u32 {
        let mut queue = ctx.queue(0, QueueOptions::default());
        // The lane of the one before may be just on its way out.
        ctx.until("a queue", || {
            if queue.as_ref().is_err_and(|fault| fault.kind == Kind::ResourceExhausted) {
                queue = ctx.queue(0, QueueOptions::default());
            }
            queue.as_ref().err().is_none_or(|fault| fault.kind != Kind::ResourceExhausted)
        })?;
        let queue = queue?;
        ctx.fill(queue, &whole, &[n as u8], &Around::NONE)?;
        ctx.close(queue)?;
    }
    ctx.until("the last queue's end", || ctx.poll() == wharf_core::runtime::Next::Idle)
}

fn too_many(ctx: &Ctx) -> Outcome {
    let most = ctx.caps(0).lanes;
    if most > 256 {
        // Not worth the memory; the bound itself is the backend's own test.
        return Ok(());
    }
    let mut queues = Vec::new();
    for _ in 0..most {
        queues.push(ctx.in_order()?);
    }
    refused(ctx.queue(0, QueueOptions::default()), Kind::ResourceExhausted)?;
    ctx.close(queues[0])?;
    ctx.until("room for a queue", || match ctx.queue(0, QueueOptions::default()) {
        Ok(queue) => ctx.close(queue).is_ok(),
        Err(_) => false,
    })
}

fn sync_free(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.free_order()?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    ctx.barrier(queue, &around(&waits, &[]))?;
    ctx.barrier(queue, &Around::NONE)?;
    refused(ctx.sync(queue, Some(0)), Kind::DeadlineExceeded)?;
    ctx.signal(gate, 1)?;
    ctx.finish(queue)?;
    ensure!(ctx.is_idle(queue)?, "a synced queue is not idle");
    Ok(())
}

fn close_waited(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    let end = point(ctx.barrier(queue, &around(&waits, &[]))?)?;
    ctx.retain_timeline(end.timeline)?;
    ctx.close(queue)?;
    ctx.signal(gate, 1)?;
    ctx.reach(end)?;
    ensure_eq!(ctx.look(end)?, Look::Reached);
    ctx.release_timeline(end.timeline);
    Ok(())
}

fn independent(ctx: &Ctx) -> Outcome {
    let (blocked, other, gate) = (ctx.in_order()?, ctx.in_order()?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    let end = point(ctx.barrier(blocked, &around(&waits, &[]))?)?;
    for _ in 0..20 {
        ctx.barrier(other, &Around::NONE)?;
    }
    ctx.finish(other)?;
    ctx.ahead(end)?;
    ctx.signal(gate, 1)?;
    ctx.finish(blocked)
}

fn threads(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(64)?;
    let whole = ctx.whole(root)?;
    let body = || -> Outcome {
        for n in 0..5 {
            let mut queue = ctx.queue(0, QueueOptions::default());
            // A lane that was closed may be just on its way out.
            ctx.until("a queue", || {
                if queue.is_err() {
                    ctx.poll();
                    queue = ctx.queue(0, QueueOptions::default());
                }
                queue.is_ok()
            })?;
            let queue = queue?;
            for turn in 0..4 {
                ctx.fill(queue, &whole, &[n * 8 + turn], &Around::NONE)?;
            }
            ctx.finish(queue)?;
            ctx.close(queue)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(body)).collect();
        all.into_iter().try_for_each(|t| t.join().map_err(|_| Fail::new("a thread panicked"))?)
    })
}
