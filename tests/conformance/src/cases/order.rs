//! Order: what holds what, how failures travel, many queues and threads.

use super::cases;
use crate::{
    case::{Fail, Outcome, refused, same},
    ctx::{Ctx, around, at, point, span, want},
    ensure, ensure_eq,
    need::Need::*,
    rig::Queue,
};
use std::thread;
use wharf_core::{
    device::{Hint, Op},
    fault::{Fault, Kind, Site, Why},
    runtime::Around,
    timeline::{Look, Point},
};

cases! {
    "order.held_holds_what_follows", [], "on a queue in order nothing passes an operation that is held (decisions, order of a queue)" => holds;
    "order.free_lets_pass", [], "on a free queue an operation that is held holds nothing else (decisions, order of a queue)" => lets_pass;
    "order.free_waits_each_alone", [], "operations of a free queue end in the order of their waits (iree 1.4)" => alone;
    "order.own_earlier_point_is_no_wait", [], "a wait for an earlier point of the same queue is met by order (liboffload 4 row 29)" => own_earlier;
    "order.own_future_point_is_refused", [], "a wait for a point of the queue itself that is to come is InvalidArgument (core submit)" => own_future;
    "order.failed_wait_fails_the_queue", [], "in order: everything before ends, the queue fails from there on with the first cause (decisions)" => fails_queue;
    "order.failure_is_sticky", [], "a failed queue refuses with the cause; sync and query tell it (liboffload 4 row 25)" => sticky;
    "order.failed_wait_fails_only_its_signals", [], "free: only the operation's own signals fail (decisions)" => only_own;
    "order.failure_travels_a_chain", [Lanes(2)], "through queues and timelines the first cause arrives whole (iree 1.4)" => travels;
    "order.wait_on_a_failed_timeline", [], "a wait that has failed at the call fails the points, not the call (decisions, operation whose wait failed)" => failed_before;
    "order.refused_call_fails_its_signals", [], "a call that is refused fails its signals and the queue goes on (decisions, validation error)" => refused_call;
    "order.shared_wait_goes_on", [], "an operation held for a timeline runs when one of its owners lets go and another signals (core submit)" => shared_wait;
    "order.abandoned_wait_is_cancelled", [], "an operation held for a timeline that its last owner destroys fails with Cancelled (design 3.1)" => abandoned;
    "order.many_waits", [], "an operation waits for 100 timelines (core node)" => many_waits;
    "order.two_queues_forward", [Lanes(2)], "a queue waits for another, submitted after it (liboffload olWaitEvents)" => |ctx| two(ctx, false);
    "order.two_queues_backward", [Lanes(2)], "a queue waits for another through a timeline, submitted before it (iree 1.3)" => |ctx| two(ctx, true);
    "order.cross_waits", [Lanes(2)], "two queues that wait for each other in turn (liboffload SuccessTwoQueues)" => cross;
    "order.sixteen_queues_forward", [Lanes(16)], "16 queues in a chain, submitted in its order (liboffload olWaitEvents)" => |ctx| sixteen(ctx, false);
    "order.sixteen_queues_backward", [Lanes(16)], "16 queues in a chain, submitted against its order (iree 1.3)" => |ctx| sixteen(ctx, true);
    "order.chain_of_eight", [Lanes(8)], "8 queues in a chain, in both orders (liboffload olWaitEvents)" => |ctx| chain(ctx, 8, false).and_then(|()| chain(ctx, 8, true));
    "order.across_devices", [TwoDevices], "a queue waits for a queue of another device, both ways (design 3.2)" => across;
    "order.more_than_the_lane_takes", [], "10,000 operations in a row all run, in order (architecture 1, depth)" => backlog;
    "order.more_hints_are_not_forgotten", [], "work handed over with `More` runs when somebody waits for it (core Hint)" => more;
    "order.waiting_hint", [], "work handed over with `Waiting` is run by the wait (core Hint)" => waiting;
    "order.threads_on_one_queue", [], "20 threads submit to one queue; every operation gets a point of its own (liboffload Threaded)" => one_queue;
    "order.threads_on_own_queues", [Lanes(20)], "20 threads with a queue each (liboffload Threaded)" => |ctx| own_queues(ctx, 20);
    "order.two_threads_on_own_queues", [Lanes(2)], "2 threads with a queue each (liboffload Threaded)" => |ctx| own_queues(ctx, 2);
    "order.unsupported_operation", [], "an operation that the device does not take is Unsupported at the call (design 3.2)" => unsupported;
}

fn cause() -> Fault {
    Fault::caller(Kind::DataLoss, Site::Read, Why::PastEnd, [11, 10]).with_native(-7)
}

fn holds(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    ctx.barrier(queue, &around(&waits, &[]))?;
    let second = point(ctx.barrier(queue, &Around::NONE)?)?;
    for _ in 0..20 {
        ctx.ahead(second)?;
    }
    ctx.signal(gate, 1)?;
    ctx.reach(second)
}

fn lets_pass(ctx: &Ctx) -> Outcome {
    let (queue, gate, done) = (ctx.free_order()?, ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let late = ctx.new_timeline(0)?;
    ctx.barrier(queue, &around(&[at(gate, 1)], &[at(late, 1)]))?;
    ctx.barrier(queue, &around(&[], &[at(done, 1)]))?;
    ctx.reach(at(done, 1))?;
    ctx.ahead(at(late, 1))?;
    ctx.signal(gate, 1)?;
    ctx.reach(at(late, 1))
}

fn alone(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.free_order()?, ctx.memory(8)?);
    let (gates, done) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    // Submitted last to first: number n waits for n and signals n.
    for n in (1..=6u64).rev() {
        let (waits, signals) = ([at(gates, n)], [at(done, n)]);
        ctx.fill(queue, &ctx.whole(root)?, &[n as u8], &around(&waits, &signals))?;
    }
    for n in 1..=6 {
        ctx.signal(gates, n)?;
        ctx.reach(at(done, n))?;
        ensure_eq!(ctx.query(done), Ok(n));
    }
    same(&ctx.read_all(ctx.in_order()?, root)?, &[6; 8])
}

fn own_earlier(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let first = point(ctx.barrier(queue, &around(&[at(gate, 1)], &[]))?)?;
    let second = point(ctx.barrier(queue, &around(&[first], &[]))?)?;
    ctx.signal(gate, 1)?;
    ctx.reach(second)
}

fn own_future(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let tail = ctx.tail(queue)?;
    let waits = [at(tail.timeline, tail.value + 1)];
    refused(ctx.barrier(queue, &around(&waits, &[])), Kind::InvalidArgument)?;
    ctx.finish(queue)
}

fn fails_queue(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(8)?);
    let (gate, signal) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let whole = ctx.whole(root)?;
    let before = point(ctx.fill(queue, &whole, &[1], &Around::NONE)?)?;
    let bad = point(ctx.fill(queue, &whole, &[2], &around(&[at(gate, 1)], &[at(signal, 1)]))?)?;
    let after = point(ctx.fill(queue, &whole, &[3], &Around::NONE)?)?;
    ctx.fail(gate, &cause())?;
    ensure_eq!(ctx.wait(after, ctx.soon()), Err(cause()));
    ensure_eq!(ctx.wait(bad, ctx.soon()), Err(cause()));
    ensure_eq!(ctx.wait(at(signal, 1), ctx.soon()), Err(cause()));
    ctx.reach(before)?;
    same(&ctx.read_all(ctx.in_order()?, root)?, &[1; 8])
}

fn sticky(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let bad = point(ctx.barrier(queue, &around(&[at(gate, 1)], &[]))?)?;
    ctx.fail(gate, &cause())?;
    ensure_eq!(ctx.wait(bad, ctx.soon()), Err(cause()));
    for _ in 0..3 {
        let signal = ctx.new_timeline(0)?;
        ensure_eq!(ctx.barrier(queue, &around(&[], &[at(signal, 1)])), Err(cause()));
        ensure_eq!(ctx.query(signal), Err(cause()));
        ensure_eq!(ctx.sync(queue, ctx.soon()), Err(cause()));
        ensure_eq!(ctx.is_idle(queue), Err(cause()));
        ensure_eq!(ctx.query(bad.timeline), Err(cause()));
    }
    Ok(())
}

fn only_own(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.free_order()?, ctx.new_timeline(0)?);
    let (bad, good) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    ctx.barrier(queue, &around(&[at(gate, 1)], &[at(bad, 1)]))?;
    ctx.fail(gate, &cause())?;
    ensure_eq!(ctx.wait(at(bad, 1), ctx.soon()), Err(cause()));
    ctx.barrier(queue, &around(&[], &[at(good, 1)]))?;
    ctx.reach(at(good, 1))?;
    ctx.finish(queue)
}

fn travels(ctx: &Ctx) -> Outcome {
    let (a, b) = (ctx.in_order()?, ctx.in_order()?);
    let (gate, between, last) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let first = point(ctx.barrier(a, &around(&[at(gate, 1)], &[at(between, 5)]))?)?;
    let second = point(ctx.barrier(b, &around(&[first, at(between, 5)], &[at(last, 1)]))?)?;
    ctx.fail(gate, &cause())?;
    ensure_eq!(ctx.wait(at(last, 1), ctx.soon()), Err(cause()));
    ensure_eq!(ctx.wait(second, ctx.soon()), Err(cause()));
    ensure_eq!(ctx.look(at(between, 5))?, Look::Failed(cause()));
    Ok(())
}

fn failed_before(ctx: &Ctx) -> Outcome {
    let gate = ctx.new_timeline(0)?;
    ctx.fail(gate, &cause())?;
    for queue in [ctx.in_order()?, ctx.free_order()?] {
        let signal = ctx.new_timeline(0)?;
        let end = ctx.barrier(queue, &around(&[at(gate, 1)], &[at(signal, 1)]))?;
        ensure_eq!(ctx.wait(at(signal, 1), ctx.soon()), Err(cause()));
        if let Some(end) = end {
            ensure_eq!(ctx.wait(end, ctx.soon()), Err(cause()));
        }
    }
    Ok(())
}

fn refused_call(ctx: &Ctx) -> Outcome {
    let (queue, root, signal) = (ctx.in_order()?, ctx.memory(8)?, ctx.new_timeline(0)?);
    let answer = ctx.fill(queue, &span(root, 0, 9), &[1], &around(&[], &[at(signal, 1)]));
    let fault = refused(answer, Kind::OutOfRange)?;
    ensure_eq!(ctx.query(signal), Err(fault));
    ctx.reach(point(ctx.fill(queue, &ctx.whole(root)?, &[1], &Around::NONE)?)?)?;
    ctx.finish(queue)
}

fn shared_wait(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.timeline(0)?);
    let end = point(ctx.barrier(queue, &around(&[at(gate, 1)], &[]))?)?;
    ctx.retain_timeline(gate)?;
    ctx.release_timeline(gate);
    ctx.ahead(end)?;
    ctx.signal(gate, 1)?;
    ctx.release_timeline(gate);
    ctx.reach(end)
}

fn abandoned(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.timeline(0)?);
    let end = point(ctx.barrier(queue, &around(&[at(gate, 1)], &[]))?)?;
    ctx.ahead(end)?;
    ctx.release_timeline(gate);
    let ended = ctx.fails(end, Kind::Cancelled);
    // Else it would be held for ever.
    let _ = ctx.fail(gate, &cause());
    ended.map(drop)
}

fn many_waits(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let waits: Vec<Point> = (0..100).map(|_| Ok(at(ctx.new_timeline(0)?, 1))).collect::<Outcome<_>>()?;
    let end = point(ctx.barrier(queue, &around(&waits, &[]))?)?;
    for wait in &waits {
        ctx.ahead(end)?;
        ctx.signal(wait.timeline, 1)?;
    }
    ctx.reach(end)
}

fn two(ctx: &Ctx, backward: bool) -> Outcome {
    let (a, b, root) = (ctx.in_order()?, ctx.in_order()?, ctx.memory(8)?);
    let (whole, out, between) = (ctx.whole(root)?, ctx.host(8), ctx.new_timeline(0)?);
    let signals = [at(between, 1)];
    if backward {
        let read = point(ctx.copy_to(b, &whole, out, &around(&signals, &[]))?)?;
        ctx.ahead(read)?;
        ctx.fill(a, &whole, &[6], &around(&[], &signals))?;
        ctx.reach(read)?;
    } else {
        let wrote = point(ctx.fill(a, &whole, &[6], &Around::NONE)?)?;
        ctx.reach(point(ctx.copy_to(b, &whole, out, &around(&[wrote], &[]))?)?)?;
    }
    same(&out.bytes(), &[6; 8])
}

fn cross(ctx: &Ctx) -> Outcome {
    let (a, b, root) = (ctx.in_order()?, ctx.in_order()?, ctx.memory(40)?);
    let mut last: Option<Point> = None;
    for n in 0..40u8 {
        let queue = if n % 2 == 0 { a } else { b };
        // Each but the first copies the byte before, so a lost order shows.
        let waits: Vec<Point> = last.into_iter().collect();
        let to = span(root, n.into(), 1);
        last = match n {
            0 => ctx.fill(queue, &to, &[0x5A], &around(&waits, &[]))?,
            _ => ctx.copy(queue, &span(root, u64::from(n) - 1, 1), &to, &around(&waits, &[]))?,
        };
    }
    ctx.reach(point(last)?)?;
    same(&ctx.read_all(a, root)?, &[0x5A; 40])
}

fn sixteen(ctx: &Ctx, backward: bool) -> Outcome {
    chain(ctx, 16, backward)
}

/// Queue n waits for n and signals n + 1; each copies the byte before its own.
fn chain(ctx: &Ctx, count: u64, backward: bool) -> Outcome {
    let (root, timeline) = (ctx.memory(count + 1)?, ctx.new_timeline(0)?);
    let queues: Vec<Queue> = (0..count).map(|_| ctx.in_order()).collect::<Outcome<_>>()?;
    ctx.write(queues[0], root, 0, &[0x3C])?;
    let submit = |n: u64| -> Outcome {
        let (waits, signals) = ([at(timeline, n + 1)], [at(timeline, n + 2)]);
        ctx.copy(queues[n as usize], &span(root, n, 1), &span(root, n + 1, 1), &around(&waits, &signals))?;
        Ok(())
    };
    if backward { (0..count).rev().try_for_each(submit) } else { (0..count).try_for_each(submit) }?;
    ctx.ahead(at(timeline, 1))?;
    ctx.signal(timeline, 1)?;
    ctx.reach(at(timeline, count + 1))?;
    same(&ctx.read_all(queues[0], root)?, &vec![0x3C; count as usize + 1])?;
    for queue in queues {
        ctx.close(queue)?;
    }
    ctx.until("room for queues", || ctx.poll() == wharf_core::runtime::Next::Idle)
}

fn across(ctx: &Ctx) -> Outcome {
    let (a, b) = (ctx.in_order()?, ctx.queue_on(1, Default::default())?);
    let (near, far) = (ctx.memory(8)?, ctx.memory_as(1, &want(8))?);
    let gate = ctx.new_timeline(0)?;
    let first = point(ctx.fill(a, &ctx.whole(near)?, &[1], &around(&[at(gate, 1)], &[]))?)?;
    let second = point(ctx.fill(b, &ctx.whole(far)?, &[2], &around(&[first], &[]))?)?;
    let third = point(ctx.fill(a, &ctx.whole(near)?, &[3], &around(&[second], &[]))?)?;
    for end in [first, second, third] {
        ctx.ahead(end)?;
    }
    ctx.signal(gate, 1)?;
    ctx.reach(third)?;
    ensure_eq!(ctx.look(second)?, Look::Reached);
    same(&ctx.read_all(a, near)?, &[3; 8])
}

fn backlog(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(4)?);
    let whole = ctx.whole(root)?;
    for n in 0..10_000u32 {
        ctx.update(queue, &whole, &n.to_le_bytes(), &Around::NONE)?;
    }
    ensure_eq!(ctx.tail(queue)?.value, 10_000);
    same(&ctx.read_all(queue, root)?, &9_999u32.to_le_bytes())
}

fn more(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(4)?);
    let whole = ctx.whole(root)?;
    for count in [1, 3, 50] {
        let mut end = None;
        for n in 0..count {
            let around = Around { hint: Hint::More, ..Around::NONE };
            end = ctx.fill(queue, &whole, &[n], &around)?;
        }
        ctx.wait(point(end)?, ctx.soon())?;
    }
    Ok(())
}

fn waiting(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(4)?);
    let whole = ctx.whole(root)?;
    for n in 0..100 {
        let around = Around { hint: Hint::Waiting, ..Around::NONE };
        let end = point(ctx.fill(queue, &whole, &[n], &around)?)?;
        ctx.wait(end, ctx.soon())?;
    }
    same(&ctx.read_all(queue, root)?, &[99; 4])
}

fn joined(all: Vec<thread::ScopedJoinHandle<'_, Outcome>>) -> Outcome {
    all.into_iter().try_for_each(|t| t.join().map_err(|_| Fail::new("a thread panicked"))?)
}

fn one_queue(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(20 * 16)?);
    let body = |n: u64| -> Outcome {
        for turn in 0..16 {
            let end =
                point(ctx.fill(queue, &span(root, n * 16 + turn, 1), &[n as u8 + 1], &Around::NONE)?)?;
            if turn % 4 == 0 {
                ctx.reach(end)?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| joined((0..20).map(|n| scope.spawn(move || body(n))).collect()))?;
    ensure_eq!(ctx.tail(queue)?.value, 320);
    let expected: Vec<u8> = (0..320).map(|i| (i / 16) as u8 + 1).collect();
    same(&ctx.read_all(queue, root)?, &expected)
}

fn own_queues(ctx: &Ctx, count: u64) -> Outcome {
    let root = ctx.memory(count * 16)?;
    let queues: Vec<Queue> = (0..count).map(|_| ctx.in_order()).collect::<Outcome<_>>()?;
    let queues = &queues;
    let body = |n: u64, queue: Queue| -> Outcome {
        for turn in 0..16 {
            ctx.fill(queue, &span(root, n * 16 + turn, 1), &[n as u8 + 1], &Around::NONE)?;
        }
        ctx.finish(queue)
    };
    thread::scope(|scope| {
        joined((0..count).map(|n| scope.spawn(move || body(n, queues[n as usize]))).collect())
    })?;
    let expected: Vec<u8> = (0..count * 16).map(|i| (i / 16) as u8 + 1).collect();
    same(&ctx.read_all(queues[0], root)?, &expected)
}

fn unsupported(ctx: &Ctx) -> Outcome {
    let (queue, signal) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let op = Op::Read { file: 1, at: 0, to: 0x1000, len: 1 };
    if ctx.caps(0).takes(op.kind()) {
        return Ok(());
    }
    refused(ctx.submit(queue, op, &around(&[], &[at(signal, 1)])), Kind::Unsupported)?;
    refused(ctx.query(signal), Kind::Unsupported)?;
    // A wait for a lane is core's to write, never a caller's.
    refused(ctx.submit(queue, Op::After { lane: 0, value: 1 }, &Around::NONE), Kind::Unsupported)?;
    ensure!(ctx.is_idle(queue)?, "a refused call left work");
    ctx.finish(queue)
}
