//! What outlives what: late frees, closed queues, released timelines.

use super::cases;
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, around, at, point, want},
    ensure, ensure_eq,
    need::Need::*,
};
use wharf_core::{
    fault::{Fault, Kind, Site, Why},
    runtime::{Around, Next},
};

cases! {
    "lifetime.free_waits_for_its_last_use", [], "memory freed with work under way is given back after it (architecture 4, late)" => late;
    "lifetime.free_at_once_when_idle", [], "with all queues idle a free is immediate (architecture 4)" => at_once;
    "lifetime.late_memory_is_stale", [], "memory freed late takes no new work and is not found (architecture 4 states)" => stale;
    "lifetime.later_work_does_not_hold_a_free", [], "work submitted after the free does not delay it for ever (architecture 4, late)" => later;
    "lifetime.other_queues_hold_a_free", [Lanes(2)], "a free waits for every queue that was busy (architecture 4, late)" => others;
    "lifetime.released_timeline_still_signals", [], "a timeline that held work names lives until that work has ended (core submit)" => timeline;
    "lifetime.closed_queue_frees_its_memory", [], "queue closed, memory freed, program of work still to come: all end (architecture 3)" => everything;
    "lifetime.many_rounds_leave_nothing", [], "200 rounds of queue, memory, timeline and work leave nothing (liboffload 4 row 37)" => rounds;
    "lifetime.failed_queue_frees_its_memory", [], "memory used by work of a queue that failed is given back (architecture 3, failure)" => failed;
    "lifetime.stale_timeline_in_held_wait", [], "an operation holds the timelines it waits for (core submit)" => held_wait;
}

fn late(ctx: &Ctx) -> Outcome {
    let (queue, root, gate) = (ctx.in_order()?, ctx.memory(64)?, ctx.new_timeline(0)?);
    ctx.fill(queue, &ctx.whole(root)?, &[1], &around(&[at(gate, 1)], &[]))?;
    ctx.free(root)?;
    ensure!(ctx.is_late(root), "freed memory with work under way is not late");
    ctx.signal(gate, 1)?;
    ctx.finish(queue)?;
    ctx.until("the late free", || !ctx.is_late(root))
}

fn at_once(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(64)?);
    ctx.fill(queue, &ctx.whole(root)?, &[1], &Around::NONE)?;
    ctx.finish(queue)?;
    ctx.free(root)?;
    ensure!(!ctx.is_late(root), "freed memory of idle queues is late");
    ensure_eq!(ctx.live().len(), 0);
    Ok(())
}

fn stale(ctx: &Ctx) -> Outcome {
    let (queue, root, gate) = (ctx.in_order()?, ctx.memory(64)?, ctx.new_timeline(0)?);
    let base = ctx.allocation(root)?.base;
    let whole = ctx.whole(root)?;
    ctx.fill(queue, &whole, &[1], &around(&[at(gate, 1)], &[]))?;
    ctx.free(root)?;
    refused(ctx.allocation(root), Kind::InvalidHandle)?;
    refused(ctx.find(Some(0), base), Kind::NotFound)?;
    refused(ctx.fill(queue, &whole, &[1], &Around::NONE), Kind::InvalidHandle)?;
    refused(ctx.free(root), Kind::InvalidHandle)?;
    ctx.signal(gate, 1)?;
    ctx.finish(queue)
}

fn later(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(64)?);
    let (first, second) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    ctx.fill(queue, &ctx.whole(root)?, &[1], &around(&[at(first, 1)], &[]))?;
    ctx.free(root)?;
    // Held for good as far as the free is concerned.
    ctx.barrier(queue, &around(&[at(second, 1)], &[]))?;
    ctx.signal(first, 1)?;
    ctx.until("the late free", || !ctx.is_late(root))?;
    ctx.signal(second, 1)?;
    ctx.finish(queue)
}

fn others(ctx: &Ctx) -> Outcome {
    let (a, b, root) = (ctx.in_order()?, ctx.in_order()?, ctx.memory(64)?);
    let (gate, whole) = (ctx.new_timeline(0)?, ctx.whole(root)?);
    ctx.fill(a, &whole, &[1], &Around::NONE)?;
    ctx.fill(b, &whole, &[2], &around(&[at(gate, 1)], &[]))?;
    ctx.finish(a)?;
    ctx.free(root)?;
    for _ in 0..20 {
        ctx.move_on();
        ensure!(ctx.is_late(root), "freed although the second queue still uses it");
    }
    ctx.signal(gate, 1)?;
    ctx.finish(b)?;
    ctx.until("the late free", || !ctx.is_late(root))
}

fn timeline(ctx: &Ctx) -> Outcome {
    let (queue, gate, done) = (ctx.in_order()?, ctx.new_timeline(0)?, ctx.timeline(0)?);
    ctx.retain_timeline(done)?;
    ctx.barrier(queue, &around(&[at(gate, 1)], &[at(done, 1)]))?;
    ctx.release_timeline(done);
    ctx.signal(gate, 1)?;
    ctx.reach(at(done, 1))?;
    ctx.release_timeline(done);
    ctx.finish(queue)
}

fn everything(ctx: &Ctx) -> Outcome {
    let (queue, root, gate) = (ctx.in_order()?, ctx.memory(64)?, ctx.new_timeline(0)?);
    let done = ctx.new_timeline(0)?;
    let out = ctx.host(64);
    let whole = ctx.whole(root)?;
    ctx.fill(queue, &whole, &[4], &around(&[at(gate, 1)], &[]))?;
    ctx.copy_to(queue, &whole, out, &around(&[], &[at(done, 1)]))?;
    ctx.free(root)?;
    ctx.close(queue)?;
    ctx.signal(gate, 1)?;
    ctx.reach(at(done, 1))?;
    same(&out.bytes(), &[4; 64])?;
    ctx.until("the end of all", || ctx.poll() == Next::Idle && !ctx.is_late(root))
}

fn rounds(ctx: &Ctx) -> Outcome {
    for n in 0..200u32 {
        let (queue, root, done) =
            (ctx.queue(0, Default::default())?, ctx.allocate(0, &want(64))?, ctx.timeline(0)?);
        let end = point(ctx.fill(queue, &ctx.whole(root)?, &[n as u8], &around(&[], &[at(done, 1)]))?)?;
        ctx.retain_timeline(end.timeline)?;
        ctx.close(queue)?;
        ctx.release(root)?;
        ctx.reach(at(done, 1))?;
        ctx.reach(end)?;
        ctx.release_timeline(end.timeline);
        ctx.release_timeline(done);
        ctx.until("the end of the round", || ctx.poll() == Next::Idle && !ctx.is_late(root))?;
    }
    Ok(())
}

fn failed(ctx: &Ctx) -> Outcome {
    let (queue, root, gate) = (ctx.in_order()?, ctx.memory(64)?, ctx.new_timeline(0)?);
    let end = point(ctx.fill(queue, &ctx.whole(root)?, &[1], &around(&[at(gate, 1)], &[]))?)?;
    ctx.free(root)?;
    ctx.fail(gate, &Fault::caller(Kind::Io, Site::Read, Why::Unknown, [0; 2]))?;
    ctx.fails(end, Kind::Io)?;
    ctx.until("the late free", || !ctx.is_late(root))
}

fn held_wait(ctx: &Ctx) -> Outcome {
    let (queue, gate, first) = (ctx.in_order()?, ctx.timeline(0)?, ctx.new_timeline(0)?);
    ctx.barrier(queue, &around(&[at(first, 1)], &[]))?;
    let end = point(ctx.barrier(queue, &around(&[at(gate, 1)], &[]))?)?;
    ctx.signal(gate, 1)?;
    ctx.release_timeline(gate);
    // The value was reached; the held operation is an owner and still sees it.
    ctx.signal(first, 1)?;
    ctx.reach(end)
}
