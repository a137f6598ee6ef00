//! Who waits for whom: points of the host and of work, in every mix; failures through all of them.

use super::cases;
use crate::{
    case::{Fail, Outcome, refused, same},
    ctx::{Ctx, around, at, point, span},
    ensure, ensure_eq,
    need::Need::*,
    rig::Queue,
};
use std::thread;
use wharf_core::{
    fault::{Fault, Kind, Site, Why},
    runtime::Around,
    timeline::{Look, Point},
};

cases! {
    "submit.nothing", [], "an operation that is nothing, waits for nothing and signals nothing ends (iree SubmitWithNoCommandBuffers)" => nothing;
    "submit.several_waits_and_signals", [], "all waits, then all signals (iree SubmitWithMultipleSemaphores)" => several;
    "submit.fan_out_before_signal", [Lanes(4)], "four queues wait for four values of one timeline before any is signalled (iree MultiQueueFanOutDifferentValuesBeforeSignal)" => fan_out;
    "submit.host_and_work_all", [], "a wait for all of a host's point and a work's point needs both (iree WaitAllHostAndDeviceSemaphores)" => host_and_work_all;
    "submit.host_and_work_any_by_work", [], "a wait for any ends with the work (iree WaitAnyHostAndDeviceSemaphoresAndDeviceSignals)" => |ctx| host_and_work_any(ctx, true);
    "submit.host_and_work_any_by_host", [], "a wait for any ends with the host's signal (iree WaitAnyHostAndDeviceSemaphoresAndHostSignals)" => |ctx| host_and_work_any(ctx, false);
    "submit.timeline_between_batches", [Lanes(2)], "one batch signals what the next waits for, on two queues (iree IntermediateSemaphoreBetweenDeviceBatches)" => between;
    "submit.two_wait_for_one_of_two", [Lanes(4)], "two wait for the first of two that run apart (iree TwoBatchesWaitingOn1FormerBatchAmongst2)" => one_of_two;
    "submit.two_wait_for_different_values", [Lanes(2)], "two wait for two values of one timeline, each for its own (iree TwoBatchesWaitingOnDifferentSemaphoreValues)" => different_values;
    "submit.waits_for_work_and_host", [Lanes(2)], "an operation waits for another and for the host (iree BatchWaitingOnAnotherAndHostSignal)" => work_and_host;
    "submit.signals_work_and_host", [Lanes(2)], "an operation's signal lets another and the host go on (iree DeviceBatchSignalAnotherAndHost)" => signals_both;
    "submit.smaller_value_after", [], "a wait for less than was signalled is met (iree BatchWaitingOnSmallerValueAfterSignaled)" => |ctx| smaller(ctx, true);
    "submit.smaller_value_before", [], "a wait for less than will be signalled is met by the signal (iree BatchWaitingOnSmallerValueBeforeSignaled)" => |ctx| smaller(ctx, false);
    "submit.a_timeline_twice_needs_the_larger", [], "a timeline twice among the waits: the larger value counts, in every kind of wait (iree 1.3 fence insert)" => twice;
    "submit.many_events", [Lanes(6)], "queue i waits for i events of each queue before it (liboffload olWaitEvents MultipleEvents)" => many_events;
    "submit.every_kind_of_failure", [], "every kind of failure, with site, reason and numbers, reaches a point behind three operations (iree FailurePreservesStatusCode, PropagateFailSignal)" => every_kind;
    "submit.failed_work_wakes_all_and_any", [], "waits for all and for any of host and work points end with the failure of the work (iree DeviceMultiWaitThenFail, MultiWaitThenFail)" => failed_work;
    "submit.one_list_of_points_by_many_threads", [], "the same points are waited for by several threads at once (iree SimultaneousMultiWaitAll)" => by_many;
    "submit.ping_pong", [], "two threads hand a value back and forth (iree PingPong)" => ping_pong;
    "submit.chain_of_relays", [Lanes(2)], "a chain of 30 operations that only hand a point on, over two queues; its failure comes whole (iree relay chain, failure propagation)" => relays;
}

fn cause() -> Fault {
    Fault::caller(Kind::DataLoss, Site::Read, Why::PastEnd, [21, 20]).with_native(-9)
}

fn nothing(ctx: &Ctx) -> Outcome {
    for queue in [ctx.in_order()?, ctx.free_order()?] {
        for _ in 0..10 {
            ctx.barrier(queue, &Around::NONE)?;
        }
        ctx.finish(queue)?;
        ensure!(ctx.is_idle(queue)?, "a synced queue is not idle");
    }
    Ok(())
}

fn several(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let waits: Vec<Point> = (0..4).map(|n| Ok(at(ctx.new_timeline(n)?, n + 1))).collect::<Outcome<_>>()?;
    let signals: Vec<Point> = (0..4).map(|n| Ok(at(ctx.new_timeline(n)?, n + 7))).collect::<Outcome<_>>()?;
    ctx.barrier(queue, &around(&waits, &signals))?;
    for wait in &waits {
        for signal in &signals {
            ctx.ahead(*signal)?;
        }
        ctx.signal(wait.timeline, wait.value)?;
    }
    ctx.wait_all(&signals, ctx.soon())?;
    for signal in signals {
        ensure_eq!(ctx.query(signal.timeline), Ok(signal.value));
    }
    Ok(())
}

fn fan_out(ctx: &Ctx) -> Outcome {
    let (gate, root) = (ctx.new_timeline(0)?, ctx.memory(4)?);
    let mut ends = Vec::new();
    for n in 0..4u64 {
        let waits = [at(gate, (n + 1) * 10)];
        let to = span(root, n, 1);
        ends.push(point(ctx.fill(ctx.in_order()?, &to, &[n as u8 + 1], &around(&waits, &[]))?)?);
    }
    for n in 0..4 {
        for end in &ends[n..] {
            ctx.ahead(*end)?;
        }
        ctx.signal(gate, (n as u64 + 1) * 10 + 1)?;
        ctx.reach(ends[n])?;
    }
    same(&ctx.read_all(ctx.in_order()?, root)?, &[1, 2, 3, 4])
}

/// A point of the host's, and one of work that is held by a gate.
fn mixed(ctx: &Ctx) -> Outcome<(Point, Point, Point)> {
    let (queue, root) = (ctx.in_order()?, ctx.memory(16)?);
    let (gate, host) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let work = point(ctx.fill(queue, &ctx.whole(root)?, &[1], &around(&[at(gate, 1)], &[]))?)?;
    Ok((at(gate, 1), at(host, 1), work))
}

fn joined<T>(answer: thread::Result<T>) -> Outcome<T> {
    answer.map_err(|_| Fail::new("a thread panicked"))
}

fn host_and_work_all(ctx: &Ctx) -> Outcome {
    let (gate, host, work) = mixed(ctx)?;
    let points = [host, work];
    thread::scope(|scope| -> Outcome {
        let waiter = scope.spawn(|| ctx.wait_all(&points, ctx.soon()));
        ctx.signal(host.timeline, 1)?;
        ctx.ahead(work)?;
        ensure!(!waiter.is_finished(), "the wait for all ended with one");
        ctx.signal(gate.timeline, 1)?;
        Ok(joined(waiter.join())??)
    })?;
    ensure_eq!(ctx.look(work)?, Look::Reached);
    Ok(())
}

fn host_and_work_any(ctx: &Ctx, by_work: bool) -> Outcome {
    let (gate, host, work) = mixed(ctx)?;
    let points = [host, work];
    thread::scope(|scope| -> Outcome {
        let waiter = scope.spawn(|| ctx.wait_any(&points, ctx.soon()));
        ctx.signal(if by_work { gate.timeline } else { host.timeline }, 1)?;
        Ok(joined(waiter.join())??)
    })?;
    ctx.ahead(if by_work { host } else { work })?;
    ctx.signal(if by_work { host.timeline } else { gate.timeline }, 1)?;
    Ok(ctx.wait_all(&points, ctx.soon())?)
}

fn between(ctx: &Ctx) -> Outcome {
    let (a, b, root, out) = (ctx.in_order()?, ctx.in_order()?, ctx.memory(64)?, ctx.host(64));
    let (gate, between, done) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    ctx.fill(a, &ctx.whole(root)?, &[5], &around(&[at(gate, 1)], &[at(between, 1)]))?;
    ctx.copy_to(b, &ctx.whole(root)?, out, &around(&[at(between, 1)], &[at(done, 1)]))?;
    ctx.ahead(at(done, 1))?;
    ctx.ahead(at(between, 1))?;
    ctx.signal(gate, 1)?;
    ctx.reach(at(done, 1))?;
    same(&out.bytes(), &[5; 64])
}

fn one_of_two(ctx: &Ctx) -> Outcome {
    let queues: Vec<Queue> = (0..4).map(|_| ctx.in_order()).collect::<Outcome<_>>()?;
    let (first, second) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let former = point(ctx.barrier(queues[0], &around(&[at(first, 1)], &[]))?)?;
    let other = point(ctx.barrier(queues[1], &around(&[at(second, 1)], &[]))?)?;
    let after = [
        point(ctx.barrier(queues[2], &around(&[former], &[]))?)?,
        point(ctx.barrier(queues[3], &around(&[former], &[]))?)?,
    ];
    ctx.ahead(after[0])?;
    ctx.ahead(after[1])?;
    ctx.signal(first, 1)?;
    ctx.wait_all(&after, ctx.soon())?;
    ctx.ahead(other)?;
    ctx.signal(second, 1)?;
    ctx.reach(other)
}

fn different_values(ctx: &Ctx) -> Outcome {
    let (a, b, timeline) = (ctx.in_order()?, ctx.in_order()?, ctx.new_timeline(0)?);
    let later = point(ctx.barrier(a, &around(&[at(timeline, 8)], &[]))?)?;
    let sooner = point(ctx.barrier(b, &around(&[at(timeline, 5)], &[]))?)?;
    ctx.signal(timeline, 5)?;
    ctx.reach(sooner)?;
    ctx.ahead(later)?;
    ctx.signal(timeline, 7)?;
    ctx.ahead(later)?;
    ctx.signal(timeline, 8)?;
    ctx.reach(later)
}

fn work_and_host(ctx: &Ctx) -> Outcome {
    for host_first in [true, false] {
        let (a, b) = (ctx.in_order()?, ctx.in_order()?);
        let (gate, host) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
        let work = point(ctx.barrier(a, &around(&[at(gate, 1)], &[]))?)?;
        let end = point(ctx.barrier(b, &around(&[work, at(host, 1)], &[]))?)?;
        let (one, two) = if host_first { (host, gate) } else { (gate, host) };
        ctx.signal(one, 1)?;
        ctx.ahead(end)?;
        ctx.signal(two, 1)?;
        ctx.reach(end)?;
        ctx.close(a)?;
        ctx.close(b)?;
        ctx.until("room for queues", || ctx.poll() == wharf_core::runtime::Next::Idle)?;
    }
    Ok(())
}

fn signals_both(ctx: &Ctx) -> Outcome {
    let (a, b, root) = (ctx.in_order()?, ctx.in_order()?, ctx.memory(8)?);
    let (gate, done) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let end = point(ctx.fill(b, &ctx.whole(root)?, &[2], &around(&[at(done, 3)], &[]))?)?;
    thread::scope(|scope| -> Outcome {
        let host = scope.spawn(|| ctx.wait(at(done, 3), ctx.soon()));
        ctx.fill(a, &ctx.whole(root)?, &[1], &around(&[at(gate, 1)], &[at(done, 3)]))?;
        ctx.ahead(end)?;
        ctx.signal(gate, 1)?;
        ctx.reach(end)?;
        Ok(joined(host.join())??)
    })?;
    same(&ctx.read_all(a, root)?, &[2; 8])
}

fn smaller(ctx: &Ctx, after: bool) -> Outcome {
    let (queue, timeline) = (ctx.in_order()?, ctx.new_timeline(0)?);
    if after {
        ctx.signal(timeline, 50)?;
    }
    let end = point(ctx.barrier(queue, &around(&[at(timeline, 7)], &[]))?)?;
    if !after {
        ctx.ahead(end)?;
        ctx.signal(timeline, 50)?;
    }
    ctx.reach(end)
}

fn twice(ctx: &Ctx) -> Outcome {
    for values in [[3, 40], [40, 3]] {
        let (queue, timeline) = (ctx.in_order()?, ctx.new_timeline(0)?);
        let points = values.map(|value| at(timeline, value));
        let end = point(ctx.barrier(queue, &around(&points, &[]))?)?;
        ctx.signal(timeline, 5)?;
        ctx.ahead(end)?;
        refused(ctx.wait_all(&points, Some(0)), Kind::DeadlineExceeded)?;
        ctx.wait_any(&points, Some(0))?;
        ctx.signal(timeline, 40)?;
        ctx.reach(end)?;
        ctx.wait_all(&points, ctx.soon())?;
    }
    Ok(())
}

fn many_events(ctx: &Ctx) -> Outcome {
    let (root, gate) = (ctx.memory(8)?, ctx.new_timeline(0)?);
    let queues: Vec<Queue> = (0..6).map(|_| ctx.in_order()).collect::<Outcome<_>>()?;
    let mut events: Vec<Vec<Point>> = Vec::new();
    ctx.write(queues[0], root, 0, &[1, 1, 0, 0, 0, 0, 0, 0])?;
    for (n, queue) in (0u64..).zip(&queues) {
        let mut waits: Vec<Point> = events.iter().flat_map(|all| &all[..n as usize]).copied().collect();
        waits.push(at(gate, 1));
        // Each copies the byte before its own, so a lost wait shows.
        ctx.copy(*queue, &span(root, n + 1, 1), &span(root, n + 2, 1), &around(&waits, &[]))?;
        let own = (0..6).map(|_| point(ctx.barrier(*queue, &Around::NONE)?)).collect::<Outcome<_>>()?;
        events.push(own);
    }
    for all in &events {
        ctx.ahead(all[0])?;
    }
    ctx.signal(gate, 1)?;
    ctx.wait_all(&events.concat(), ctx.soon())?;
    same(&ctx.read_all(queues[0], root)?, &[1; 8])
}

fn every_kind(ctx: &Ctx) -> Outcome {
    for (n, kind) in (0..).zip(Kind::ALL) {
        let queue = ctx.free_order()?;
        let all = [ctx.timeline(0)?, ctx.timeline(0)?, ctx.timeline(0)?, ctx.timeline(0)?];
        for pair in all.windows(2) {
            ctx.barrier(queue, &around(&[at(pair[0], 1)], &[at(pair[1], 1)]))?;
        }
        let cause = Fault::caller(kind, Site::Read, Why::Entry, [n, 77]).with_native(-5);
        ctx.fail(all[0], &cause)?;
        ensure_eq!(ctx.wait(at(all[3], 1), ctx.soon()), Err(cause));
        ensure_eq!(ctx.query(all[0]), Err(cause));
        ctx.close(queue)?;
        all.iter().for_each(|timeline| ctx.release_timeline(*timeline));
        ctx.until("the queue's end", || ctx.poll() == wharf_core::runtime::Next::Idle)?;
    }
    ensure_eq!(ctx.failures_dropped(), 0);
    Ok(())
}

fn failed_work(ctx: &Ctx) -> Outcome {
    let (gate, host, work) = mixed(ctx)?;
    let points = [host, work];
    thread::scope(|scope| -> Outcome {
        let all = scope.spawn(|| ctx.wait_all(&points, ctx.soon()));
        let any = scope.spawn(|| ctx.wait_any(&points, ctx.soon()));
        ctx.ahead(work)?;
        ctx.fail(gate.timeline, &cause())?;
        ensure_eq!(joined(all.join())?, Err(cause()));
        ensure_eq!(joined(any.join())?, Err(cause()));
        Ok(())
    })?;
    ctx.ahead(host)
}

fn by_many(ctx: &Ctx) -> Outcome {
    let points: Vec<Point> = (0..6).map(|_| Ok(at(ctx.new_timeline(0)?, 4))).collect::<Outcome<_>>()?;
    let points = &points;
    thread::scope(|scope| -> Outcome {
        let waiters: Vec<_> = (0..6).map(|_| scope.spawn(move || ctx.wait_all(points, ctx.soon()))).collect();
        for value in 1..=4 {
            for point in points {
                ensure!(!waiters.iter().any(|waiter| waiter.is_finished()), "a wait ended early");
                ctx.signal(point.timeline, value)?;
            }
        }
        waiters.into_iter().try_for_each(|waiter| Ok(joined(waiter.join())??))
    })
}

fn ping_pong(ctx: &Ctx) -> Outcome {
    let (ping, pong) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    thread::scope(|scope| -> Outcome {
        let other = scope.spawn(|| {
            (1..=100).try_for_each(|n| {
                ctx.wait(at(ping, n), ctx.soon())?;
                ctx.signal(pong, n)
            })
        });
        for n in 1..=100 {
            ctx.signal(ping, n)?;
            ctx.reach(at(pong, n))?;
        }
        Ok(joined(other.join())??)
    })
}

fn relays(ctx: &Ctx) -> Outcome {
    for fails in [false, true] {
        let queues = [ctx.free_order()?, ctx.free_order()?];
        let all = (0..31).map(|_| ctx.new_timeline(0)).collect::<Outcome<Vec<_>>>()?;
        // The last first, so that every one is held when the first comes.
        for n in (0..30).rev() {
            let (waits, signals) = ([at(all[n], 1)], [at(all[n + 1], 1)]);
            ctx.barrier(queues[n % 2], &around(&waits, &signals))?;
        }
        ctx.ahead(at(all[30], 1))?;
        if fails {
            ctx.fail(all[0], &cause())?;
            ensure_eq!(ctx.wait(at(all[30], 1), ctx.soon()), Err(cause()));
        } else {
            ctx.signal(all[0], 1)?;
            ctx.reach(at(all[30], 1))?;
        }
        for queue in queues {
            ctx.close(queue)?;
        }
        ctx.until("room for queues", || ctx.poll() == wharf_core::runtime::Next::Idle)?;
    }
    Ok(())
}
