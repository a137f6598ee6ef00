//! Host calls in the order of a queue.

use super::cases;
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, around, at, point},
    ensure, ensure_eq,
    gate::{Gate, Log},
    need::Need::*,
};
use std::{thread, time::Duration};
use wharf_core::{
    device::op,
    fault::{Fault, Kind, Site, Why},
    runtime::Around,
};

cases! {
    "hostcall.runs_once", [HostCalls], "a host call runs once, before its point is reached (liboffload olLaunchHostFunction)" => once;
    "hostcall.in_order", [HostCalls], "100 host calls of a queue run in the order of their submits (liboffload Sequence)" => in_order;
    "hostcall.between_operations", [HostCalls], "a host call runs after the operation before and before the one behind (liboffload Sequence)" => between;
    "hostcall.blocks_its_queue", [HostCalls], "work behind a call that blocks for 300 ms does not run early (liboffload SuccessBlocking)" => blocks;
    "hostcall.blocks_no_other_queue", [HostCalls, Lanes(2)], "while a call blocks, other queues work (design 3.2)" => others;
    "hostcall.several_block_at_once", [HostCalls, Lanes(4)], "calls of several queues block at the same time (decisions, host call)" => several;
    "hostcall.waits_for_points", [HostCalls], "a host call with a wait runs after it (iree 1.4 queue_host_call)" => waits;
    "hostcall.signals_points", [HostCalls], "signals of a host call fire after it (iree 1.4 queue_host_call)" => signals;
    "hostcall.unmet_wait_never_calls", [HostCalls], "a host call whose wait failed is never called (iree 1.4)" => never;
    "hostcall.on_a_closed_queue", [HostCalls], "a host call submitted before the close runs (liboffload olDestroyQueue)" => closed;
    "hostcall.signals_another_queue", [HostCalls, Lanes(2)], "a host call that waits for another queue's host call runs after it (iree 1.4)" => signals_another;
    "hostcall.refused_where_there_are_none", [], "a device without host calls answers Unsupported (design 3.2)" => unsupported;
}

fn once(ctx: &Ctx) -> Outcome {
    let (queue, log) = (ctx.in_order()?, Log::new());
    let end = point(log.call(ctx, queue, 7, &Around::NONE)?)?;
    ctx.reach(end)?;
    ensure_eq!(log.all(), [7]);
    ctx.finish(queue)?;
    ensure_eq!(log.all(), [7]);
    Ok(())
}

fn in_order(ctx: &Ctx) -> Outcome {
    let (queue, log) = (ctx.in_order()?, Log::new());
    for n in 0..100 {
        log.call(ctx, queue, n, &Around::NONE)?;
    }
    ctx.finish(queue)?;
    ensure_eq!(log.all(), (0..100).collect::<Vec<_>>());
    Ok(())
}

fn between(ctx: &Ctx) -> Outcome {
    let (queue, root, gate) = (ctx.in_order()?, ctx.memory(16)?, Gate::new());
    let (before, after) = (ctx.host(16), ctx.host(16));
    ctx.fill(queue, &ctx.whole(root)?, &[1], &Around::NONE)?;
    ctx.copy_to(queue, &ctx.whole(root)?, before, &Around::NONE)?;
    gate.call(ctx, queue, &Around::NONE)?;
    ctx.fill(queue, &ctx.whole(root)?, &[2], &Around::NONE)?;
    let end = point(ctx.copy_to(queue, &ctx.whole(root)?, after, &Around::NONE)?)?;
    ctx.until("the host call", || gate.entered() == 1)?;
    same(&before.bytes(), &[1; 16])?;
    same(&after.bytes(), &[0; 16])?;
    gate.open();
    ctx.reach(end)?;
    same(&after.bytes(), &[2; 16])
}

fn blocks(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, Gate::new());
    gate.call(ctx, queue, &Around::NONE)?;
    let end = point(ctx.barrier(queue, &Around::NONE)?)?;
    let until = wharf::os::deadline(Duration::from_millis(300));
    refused(ctx.wait(end, until), Kind::DeadlineExceeded)?;
    ensure_eq!(gate.entered(), 1);
    gate.open();
    ctx.reach(end)
}

fn others(ctx: &Ctx) -> Outcome {
    let (blocked, other, gate) = (ctx.in_order()?, ctx.in_order()?, Gate::new());
    let end = point(gate.call(ctx, blocked, &Around::NONE)?)?;
    ctx.until("the host call", || gate.entered() == 1)?;
    let (root, log) = (ctx.memory(64)?, Log::new());
    for n in 0..50 {
        ctx.fill(other, &ctx.whole(root)?, &[n], &Around::NONE)?;
        log.call(ctx, other, n.into(), &Around::NONE)?;
    }
    same(&ctx.read_all(other, root)?, &[49; 64])?;
    ensure_eq!(log.all().len(), 50);
    ctx.ahead(end)?;
    gate.open();
    ctx.reach(end)
}

fn several(ctx: &Ctx) -> Outcome {
    let gate = Gate::new();
    for _ in 0..4 {
        gate.call(ctx, ctx.in_order()?, &Around::NONE)?;
    }
    ctx.until("four calls at once", || gate.entered() == 4)?;
    gate.open();
    Ok(())
}

fn waits(ctx: &Ctx) -> Outcome {
    let (queue, gate, log) = (ctx.in_order()?, ctx.new_timeline(0)?, Log::new());
    let end = point(log.call(ctx, queue, 1, &around(&[at(gate, 1)], &[]))?)?;
    ctx.ahead(end)?;
    ensure!(log.all().is_empty(), "called before its wait");
    ctx.signal(gate, 1)?;
    ctx.reach(end)?;
    ensure_eq!(log.all(), [1]);
    Ok(())
}

fn signals(ctx: &Ctx) -> Outcome {
    let (queue, done, gate) = (ctx.in_order()?, ctx.new_timeline(0)?, Gate::new());
    gate.call(ctx, queue, &around(&[], &[at(done, 1)]))?;
    ctx.until("the host call", || gate.entered() == 1)?;
    ctx.ahead(at(done, 1))?;
    gate.open();
    ctx.reach(at(done, 1))
}

fn never(ctx: &Ctx) -> Outcome {
    let (queue, gate, log) = (ctx.in_order()?, ctx.new_timeline(0)?, Log::new());
    let end = point(log.call(ctx, queue, 1, &around(&[at(gate, 1)], &[]))?)?;
    ctx.fail(gate, &Fault::caller(Kind::Io, Site::Read, Why::Unknown, [0; 2]))?;
    ctx.fails(end, Kind::Io)?;
    thread::sleep(Duration::from_millis(5));
    ensure!(log.all().is_empty(), "called although its wait failed");
    Ok(())
}

fn closed(ctx: &Ctx) -> Outcome {
    let (queue, log) = (ctx.in_order()?, Log::new());
    for n in 0..10 {
        log.call(ctx, queue, n, &Around::NONE)?;
    }
    ctx.close(queue)?;
    ctx.until("the calls", || log.all().len() == 10)
}

fn signals_another(ctx: &Ctx) -> Outcome {
    let (queue, other, gate) = (ctx.in_order()?, ctx.in_order()?, ctx.new_timeline(0)?);
    let log = Log::new();
    let last = point(log.call(ctx, other, 2, &around(&[at(gate, 1)], &[]))?)?;
    log.call(ctx, queue, 1, &around(&[], &[at(gate, 1)]))?;
    ctx.reach(last)?;
    ensure_eq!(log.all(), [1, 2]);
    Ok(())
}

fn unsupported(ctx: &Ctx) -> Outcome {
    let (queue, log) = (ctx.in_order()?, Log::new());
    let answer = log.call(ctx, queue, 1, &Around::NONE);
    if ctx.caps(0).takes(op::CALL) {
        answer?;
    } else {
        refused(answer, Kind::Unsupported)?;
    }
    ctx.finish(queue)
}
