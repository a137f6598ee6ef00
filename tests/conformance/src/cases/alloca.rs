//! Memory in the order of a queue: a handle at once, the host's between its two points.

use super::cases;
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, around, at, point, span, want},
    ensure, ensure_eq,
    need::Need::*,
};
use wharf_core::{
    bits::{Access, MemoryType, Usage},
    device::Want,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    runtime::{Around, Command, Ref},
};

cases! {
    "alloca.basic", [], "a buffer at once, usable once its point is reached, given back at another (iree BasicAlloca)" => basic;
    "alloca.behind_a_wait", [], "the host may not touch it before its wait is reached, operations may name it (iree AllocaWithWaitSemaphores)" => behind_wait;
    "alloca.mapped_only_between_its_points", [Map], "a map before the first and after the second is FailedPrecondition (iree 1.1 transient, DeallocaReleasesMemory)" => mapped;
    "alloca.cycle", [], "allocate, fill, copy out, give back, 30 times in a row (iree AllocaDeallocaCycle, DefaultPoolRepeatedChained)" => cycle;
    "alloca.chained_on_queues", [Lanes(2)], "allocated on one queue, filled on another, given back on the first, by points alone (iree ChainedAllocaDealloca)" => chained;
    "alloca.metadata", [], "length, access and usage are those of the request at once (iree BufferMetadata)" => metadata;
    "alloca.access_of_zero", [], "zero access bits mean all (iree ZeroAccessFlagsCanonicalized)" => zero_access;
    "alloca.given_back_is_gone", [], "after the return the handle is stale and nothing is listed (iree DeallocaReleasesMemory)" => gone;
    "alloca.queued_return_takes_no_second", [], "a second return and a host's touch are FailedPrecondition (iree 1.4 queue_dealloca)" => second;
    "alloca.failed_return_keeps_it", [], "a return whose wait failed leaves it alive and usable (iree FailedDeallocaWaitDoesNotDealloca)" => failed_return;
    "alloca.failed_wait_fails_its_signals", [], "an allocation whose wait failed fails its signals with the cause (iree 1.4)" => failed_wait;
    "alloca.out_of_memory_fails_its_signals", [], "memory that is not there fails the call and the signals, nothing is left (iree 1.4 OOM)" => out_of_memory;
    "alloca.plain_memory_is_a_barrier", [], "the return of memory that was allocated at once is a barrier; it stays its owner's (iree 1.4 queue_dealloca)" => plain;
    "alloca.free_order_needs_a_signal", [], "on a free queue the first signal is its point, and there must be one (core alloca)" => free_order;
    "alloca.copied_to_and_from", [], "copies, fills, updates of parts and of single bytes (iree transient_buffer)" => transfers;
    "alloca.named_by_a_list_before_it_is_there", [], "a list may name it, and be bound to it, before its point is reached (iree StaticRefRecordedBeforeAllocaCommit, IndirectRefResolvedAfterAllocaCommit)" => listed;
    "alloca.with_lists_between", [], "allocate, run a list on it, give back, many under way at once (iree PipelinedAllocaExecuteDealloca)" => pipelined;
}

fn basic(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let (root, end) = ctx.alloca(queue, &want(64), &Around::NONE)?;
    ctx.reach(point(end)?)?;
    ctx.touchable_now(root)?;
    ctx.fill(queue, &span(root, 0, 64), &[7], &Around::NONE)?;
    same(&ctx.read_all(queue, root)?, &[7; 64])?;
    ctx.reach(point(ctx.dealloca(queue, root, &Around::NONE)?)?)?;
    ctx.until("the return", || ctx.allocation(root).is_err())
}

fn behind_wait(ctx: &Ctx) -> Outcome {
    let (queue, gate, done) = (ctx.in_order()?, ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let (root, end) = ctx.alloca(queue, &want(64), &around(&[at(gate, 1)], &[at(done, 1)]))?;
    let out = ctx.host(64);
    ctx.fill(queue, &span(root, 0, 64), &[3], &Around::NONE)?;
    let copied = point(ctx.copy_to(queue, &span(root, 0, 64), out, &Around::NONE)?)?;
    ctx.ahead(point(end)?)?;
    ctx.ahead(at(done, 1))?;
    refused(ctx.touchable_now(root), Kind::FailedPrecondition)?;
    ctx.signal(gate, 1)?;
    ctx.reach(at(done, 1))?;
    ctx.touchable_now(root)?;
    ctx.reach(copied)?;
    same(&out.bytes(), &[3; 64])
}

fn mapped(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let kind = (MemoryType::HOST_VISIBLE | MemoryType::DEVICE_LOCAL).bits();
    let asked = Want { kind, usage: Usage::ALL.bits(), ..want(64) };
    let (root, end) = ctx.alloca(queue, &asked, &around(&[at(gate, 1)], &[]))?;
    let whole = span(root, 0, 64);
    let early = Kind::FailedPrecondition;
    let untouchable = || -> Outcome {
        refused(ctx.map(&whole, Access::READ), early)?;
        refused(ctx.flush(&whole), early)?;
        refused(ctx.invalidate(&whole), early)?;
        Ok(())
    };
    untouchable()?;
    ctx.signal(gate, 1)?;
    ctx.reach(point(end)?)?;
    let view = ctx.view(&whole, Access::WRITE)?;
    view.put(&[5; 64]);
    ctx.flush(&whole)?;
    ctx.unmap(&whole)?;
    same(&ctx.read_all(queue, root)?, &[5; 64])?;
    ctx.dealloca(queue, root, &around(&[at(gate, 2)], &[]))?;
    untouchable()?;
    ctx.signal(gate, 2)?;
    ctx.finish(queue)
}

fn cycle(ctx: &Ctx) -> Outcome {
    let (queue, out) = (ctx.in_order()?, ctx.memory(30)?);
    for n in 0..30u8 {
        let (root, _) = ctx.alloca(queue, &want(40), &Around::NONE)?;
        ctx.fill(queue, &span(root, 0, 40), &[n + 1], &Around::NONE)?;
        ctx.copy(queue, &span(root, 39, 1), &span(out, n.into(), 1), &Around::NONE)?;
        ctx.dealloca(queue, root, &Around::NONE)?;
    }
    same(&ctx.read_all(queue, out)?, &(1..=30).collect::<Vec<u8>>())?;
    ctx.until("the last return", || ctx.live().len() == 1)
}

fn chained(ctx: &Ctx) -> Outcome {
    let (a, b, gate) = (ctx.in_order()?, ctx.in_order()?, ctx.new_timeline(0)?);
    let out = ctx.host(16);
    let (root, made) = ctx.alloca(a, &want(16), &around(&[at(gate, 1)], &[]))?;
    let filled = point(ctx.fill(b, &span(root, 0, 16), &[9], &around(&[point(made)?], &[]))?)?;
    let copied = point(ctx.copy_to(b, &span(root, 0, 16), out, &around(&[filled], &[]))?)?;
    let back = point(ctx.dealloca(a, root, &around(&[copied], &[]))?)?;
    ctx.ahead(back)?;
    ctx.signal(gate, 1)?;
    ctx.reach(back)?;
    same(&out.bytes(), &[9; 16])?;
    ctx.until("the return", || ctx.allocation(root).is_err())
}

fn metadata(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let asked = Want { access: Access::READ.bits(), usage: Usage::TRANSFER.bits(), ..want(77) };
    let (root, _) = ctx.alloca(queue, &asked, &around(&[at(gate, 1)], &[]))?;
    let known = ctx.allocation(root)?;
    ensure_eq!((known.len, known.device), (77, 0));
    ensure_eq!((known.access, known.usage), (Access::READ, Usage::TRANSFER));
    ctx.signal(gate, 1)?;
    ctx.finish(queue)
}

fn zero_access(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let (root, _) = ctx.alloca(queue, &Want { access: 0, ..want(8) }, &Around::NONE)?;
    ensure_eq!(ctx.allocation(root)?.access, Access::ALL);
    ctx.fill(queue, &span(root, 0, 8), &[1], &Around::NONE)?;
    same(&ctx.read_all(queue, root)?, &[1; 8])
}

fn gone(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let (root, _) = ctx.alloca(queue, &want(64), &Around::NONE)?;
    let base = ctx.allocation(root)?.base;
    ctx.reach(point(ctx.dealloca(queue, root, &Around::NONE)?)?)?;
    let stale = |fault: Fault| fault.kind == Kind::InvalidHandle;
    ctx.until("the return", || ctx.touchable_now(root).is_err_and(stale))?;
    ensure!(ctx.live().is_empty(), "memory that was given back is listed");
    refused(ctx.fill(queue, &span(root, 0, 8), &[1], &Around::NONE), Kind::InvalidHandle)?;
    refused(ctx.dealloca(queue, root, &Around::NONE), Kind::InvalidHandle)?;
    refused(ctx.find(Some(0), base), Kind::NotFound)?;
    ctx.finish(queue)
}

fn second(ctx: &Ctx) -> Outcome {
    let (queue, gate, done) = (ctx.in_order()?, ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let (root, end) = ctx.alloca(queue, &want(64), &Around::NONE)?;
    ctx.reach(point(end)?)?;
    let back = point(ctx.dealloca(queue, root, &around(&[at(gate, 1)], &[]))?)?;
    refused(ctx.touchable_now(root), Kind::FailedPrecondition)?;
    let again = ctx.dealloca(queue, root, &around(&[], &[at(done, 1)]));
    let fault = refused(again, Kind::FailedPrecondition)?;
    ensure_eq!(ctx.query(done), Err(fault));
    ctx.signal(gate, 1)?;
    ctx.reach(back)?;
    ctx.until("the return", || ctx.allocation(root).is_err())
}

fn failed_return(ctx: &Ctx) -> Outcome {
    let (queue, gate, done) = (ctx.free_order()?, ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let (root, _) = ctx.alloca(queue, &want(64), &around(&[], &[at(done, 1)]))?;
    ctx.reach(at(done, 1))?;
    ctx.dealloca(queue, root, &around(&[at(gate, 1)], &[at(done, 2)]))?;
    let cause = Fault::caller(Kind::DataLoss, Site::Read, Why::Unknown, [4, 2]);
    ctx.fail(gate, &cause)?;
    ensure_eq!(ctx.wait(at(done, 2), ctx.soon()), Err(cause));
    ctx.until("the memory's next life", || ctx.touchable_now(root).is_ok())?;
    let other = ctx.in_order()?;
    ctx.fill(other, &span(root, 0, 64), &[6], &Around::NONE)?;
    same(&ctx.read_all(other, root)?, &[6; 64])?;
    Ok(ctx.free(root)?)
}

fn failed_wait(ctx: &Ctx) -> Outcome {
    let (queue, gate, done) = (ctx.in_order()?, ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let (root, end) = ctx.alloca(queue, &want(64), &around(&[at(gate, 1)], &[at(done, 1)]))?;
    let cause = Fault::caller(Kind::Io, Site::Read, Why::Unknown, [0; 2]);
    ctx.fail(gate, &cause)?;
    ensure_eq!(ctx.wait(at(done, 1), ctx.soon()), Err(cause));
    ensure_eq!(ctx.wait(point(end)?, ctx.soon()), Err(cause));
    ensure!(ctx.touchable_now(root).is_err(), "memory whose allocation failed may be touched");
    ctx.free(root)?;
    Ok(())
}

fn out_of_memory(ctx: &Ctx) -> Outcome {
    let (queue, done) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let answer = (**ctx).alloca(queue, &want(1 << 60), &around(&[], &[at(done, 1)]));
    let fault = refused(answer, Kind::ResourceExhausted)?;
    ensure_eq!(ctx.query(done), Err(fault));
    ensure!(ctx.live().is_empty(), "expected nothing allocated");
    ctx.finish(queue)
}

fn plain(ctx: &Ctx) -> Outcome {
    let (queue, root, done) = (ctx.in_order()?, ctx.memory(64)?, ctx.new_timeline(0)?);
    ctx.dealloca(queue, root, &around(&[], &[at(done, 1)]))?;
    ctx.reach(at(done, 1))?;
    ensure_eq!(ctx.allocation(root)?.len, 64);
    ctx.fill(queue, &span(root, 0, 64), &[2], &Around::NONE)?;
    same(&ctx.read_all(queue, root)?, &[2; 64])
}

fn free_order(ctx: &Ctx) -> Outcome {
    let (queue, done) = (ctx.free_order()?, ctx.new_timeline(0)?);
    refused((**ctx).alloca(queue, &want(64), &Around::NONE), Kind::InvalidArgument)?;
    let (root, end) = ctx.alloca(queue, &want(64), &around(&[], &[at(done, 1)]))?;
    ensure_eq!(end, None);
    refused(ctx.dealloca(queue, root, &Around::NONE), Kind::InvalidArgument)?;
    ctx.reach(at(done, 1))?;
    ctx.touchable_now(root)?;
    ctx.dealloca(queue, root, &around(&[], &[at(done, 2)]))?;
    ctx.reach(at(done, 2))?;
    ctx.until("the return", || ctx.allocation(root).is_err())
}

fn transfers(ctx: &Ctx) -> Outcome {
    let (queue, a, gate) = (ctx.in_order()?, ctx.memory(32)?, ctx.new_timeline(0)?);
    let bytes: Vec<u8> = (100..132).collect();
    ctx.write(queue, a, 0, &bytes)?;
    let (root, _) = ctx.alloca(queue, &want(32), &around(&[at(gate, 1)], &[]))?;
    ctx.fill(queue, &span(root, 0, 32), &[1, 2, 3, 4], &Around::NONE)?;
    ctx.fill(queue, &span(root, 4, 8), &[9, 8], &Around::NONE)?;
    ctx.fill(queue, &span(root, 31, 1), &[5], &Around::NONE)?;
    ctx.copy(queue, &span(a, 3, 7), &span(root, 13, 7), &Around::NONE)?;
    ctx.update(queue, &span(root, 21, 3), &[70, 71, 72], &Around::NONE)?;
    ctx.copy(queue, &span(root, 0, 32), &span(a, 0, 32), &Around::NONE)?;
    ctx.dealloca(queue, root, &Around::NONE)?;
    ctx.signal(gate, 1)?;
    let mut expected = [1, 2, 3, 4].repeat(8);
    expected[4..12].copy_from_slice(&[9, 8].repeat(4));
    expected[31] = 5;
    expected[13..20].copy_from_slice(&bytes[3..10]);
    expected[21..24].copy_from_slice(&[70, 71, 72]);
    same(&ctx.read_all(queue, a)?, &expected)
}

fn listed(ctx: &Ctx) -> Outcome {
    let (queue, gate, out) = (ctx.in_order()?, ctx.new_timeline(0)?, ctx.memory(16)?);
    let (root, made) = ctx.alloca(queue, &want(8), &around(&[at(gate, 1)], &[]))?;
    let (named, to) = (Ref::Direct(span(root, 0, 8)), |at| Ref::Direct(span(out, at, 8)));
    let direct = ctx.list_of(
        0,
        &[Command::Fill { to: named, pattern: &[3] }, Command::Copy { from: named, to: to(0) }],
    )?;
    let bound = ctx.list_of(
        1,
        &[Command::Fill { to: Ref::slot(0), pattern: &[4] }, Command::Copy { from: Ref::slot(0), to: to(8) }],
    )?;
    ctx.execute(queue, &direct, &[], &Around::NONE)?;
    ctx.execute(queue, &bound, &[span(root, 0, 8)], &Around::NONE)?;
    ctx.ahead(point(made)?)?;
    ctx.signal(gate, 1)?;
    let expected = [[3; 8], [4; 8]].concat();
    same(&ctx.read_all(queue, out)?, &expected)
}

fn pipelined(ctx: &Ctx) -> Outcome {
    let (queue, gate, out) = (ctx.in_order()?, ctx.new_timeline(0)?, ctx.memory(20)?);
    let list = ctx.list_of(
        2,
        &[
            Command::Fill { to: Ref::slot(0), pattern: &[0x5A] },
            Command::Barrier,
            Command::Copy { from: Ref::Bound { slot: 0, offset: 5, len: 1 }, to: Ref::slot(1) },
        ],
    )?;
    let mut roots = Vec::<Handle<_>>::new();
    for n in 0..20 {
        let waits = [at(gate, 1)];
        let (root, _) = ctx.alloca(queue, &want(8), &around(&waits[..usize::from(n == 0)], &[]))?;
        ctx.execute(queue, &list, &[span(root, 0, 8), span(out, n, 1)], &Around::NONE)?;
        ctx.dealloca(queue, root, &Around::NONE)?;
        roots.push(root);
    }
    ctx.signal(gate, 1)?;
    same(&ctx.read_all(queue, out)?, &[0x5A; 20])?;
    ctx.until("all returns", || roots.iter().all(|root| ctx.allocation(*root).is_err()))
}
