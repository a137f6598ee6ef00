//! Buffers: subspans, overlap, roots that stay alive, wrapped memory.

use super::cases;
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, HomeOf, want},
    ensure_eq,
    need::Need::*,
};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use wharf_core::{
    buffer::{Buffer, Overlap, WHOLE},
    device::Want,
    fault::Kind,
    runtime::{Around, Order, QueueOptions},
};

cases! {
    "buffer.subspans_are_relative", [], "offsets add up, the root is that of the first buffer (iree 1.1 subspan)" => relative;
    "buffer.ranges", [], "offset or end past the length is OutOfRange, also by overflow; length 0 is fine to the end (iree 1.1)" => ranges;
    "buffer.whole_is_the_rest", [], "WHOLE stands for what is behind the offset, perhaps nothing (iree 1.1)" => whole;
    "buffer.overlap", [], "disjoint, partial, complete; without bytes or of other roots: disjoint (iree 1.1 overlap test)" => overlap;
    "buffer.subspan_keeps_the_root", [], "the root is freed with the last subspan (iree 1.1)" => keeps;
    "buffer.freed_root_is_stale", [], "a subspan of a freed root is InvalidHandle (architecture 6)" => freed;
    "buffer.as_operands", [], "subspans of subspans are filled and copied where they lie (iree 1.1)" => operands;
    "buffer.dropped_with_work_under_way", [], "the last buffer may go while work uses its root: it is freed afterwards (architecture 4, late)" => dropped;
    "buffer.wrapped_is_released_once", [Wrap], "the release callback runs exactly once, after the last use (iree 1.1 wrap)" => released_once;
    "buffer.wrapped_without_a_callback", [Wrap], "memory is wrapped without a callback, again and again (iree ImportHostAllocationNullCallback)" => no_callback;
    "buffer.subspan_of_all", [], "all of a buffer, also of a subspan, is the same bytes with the same rights (iree 1.1 subspan and its defect)" => of_all;
    "buffer.wrap_of_null_and_past_the_end", [Wrap], "null and a range past the last address are InvalidArgument, no callback (iree 1.2 import)" => wrap_refused;
    "buffer.wrap_misaligned", [Wrap], "a pointer less aligned than asked is OutOfRange, no callback (iree 1.1, 1.2)" => misaligned;
    "buffer.wrapped_bytes_are_the_hosts", [Wrap], "operations on wrapped memory work on the host's bytes (iree 1.1)" => wrapped_bytes;
}

fn buffer(ctx: &Ctx, len: u64) -> Outcome<Buffer<HomeOf>> {
    let root = ctx.allocate(0, &want(len))?;
    Ok(Buffer::adopt(ctx.home(), root, len))
}

fn relative(ctx: &Ctx) -> Outcome {
    let all = buffer(ctx, 100)?;
    let part = all.subspan(10, 50)?.subspan(5, 20)?.subspan(1, WHOLE)?;
    ensure_eq!((part.root(), part.offset(), part.len()), (all.root(), 16, 19));
    Ok(())
}

fn ranges(ctx: &Ctx) -> Outcome {
    let all = buffer(ctx, 100)?;
    let part = all.subspan(10, 50)?;
    for (offset, len) in [(0, 0), (50, 0), (0, 50), (49, 1), (25, 25)] {
        part.range(offset, len)?;
    }
    for (offset, len) in [(51, 0), (0, 51), (50, 1), (3, u64::MAX - 1), (u64::MAX, 1), (51, WHOLE)] {
        refused(part.range(offset, len), Kind::OutOfRange)?;
        refused(part.subspan(offset, len), Kind::OutOfRange)?;
    }
    Ok(())
}

fn whole(ctx: &Ctx) -> Outcome {
    let all = buffer(ctx, 100)?;
    for offset in [0, 1, 99, 100] {
        ensure_eq!(all.subspan(offset, WHOLE)?.len(), 100 - offset);
    }
    Ok(())
}

fn overlap(ctx: &Ctx) -> Outcome {
    let (a, b) = (buffer(ctx, 100)?, buffer(ctx, 100)?);
    let of = |offset, len| a.subspan(offset, len);
    ensure_eq!(a.overlap(&b), Overlap::Disjoint);
    ensure_eq!(of(0, 10)?.overlap(&of(10, 10)?), Overlap::Disjoint);
    ensure_eq!(of(0, 11)?.overlap(&of(10, 10)?), Overlap::Partial);
    ensure_eq!(of(10, 10)?.overlap(&of(0, 11)?), Overlap::Partial);
    ensure_eq!(of(0, 100)?.overlap(&of(40, 10)?), Overlap::Partial);
    ensure_eq!(of(7, 9)?.overlap(&of(7, 9)?), Overlap::Complete);
    ensure_eq!(of(7, 0)?.overlap(&of(7, 0)?), Overlap::Disjoint);
    ensure_eq!(of(7, 0)?.overlap(&of(0, 100)?), Overlap::Disjoint);
    Ok(())
}

fn keeps(ctx: &Ctx) -> Outcome {
    let all = buffer(ctx, 64)?;
    let root = all.root();
    let part = all.subspan(8, 8)?;
    let shared = part.share()?;
    drop(all);
    drop(part);
    ensure_eq!(ctx.allocation(root)?.len, 64);
    drop(shared);
    refused(ctx.allocation(root), Kind::InvalidHandle)?;
    Ok(())
}

fn freed(ctx: &Ctx) -> Outcome {
    let all = buffer(ctx, 64)?;
    ctx.free(all.root())?;
    refused(all.subspan(0, 8), Kind::InvalidHandle)?;
    refused(all.share(), Kind::InvalidHandle)?;
    Ok(())
}

fn operands(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let (a, b) = (buffer(ctx, 100)?, buffer(ctx, 100)?);
    ctx.fill(queue, &a.span(), &[1], &Around::NONE)?;
    ctx.fill(queue, &b.span(), &[2], &Around::NONE)?;
    let part = a.subspan(10, 80)?.subspan(30, 7)?;
    ctx.fill(queue, &part.span(), &[5], &Around::NONE)?;
    ctx.copy(queue, &a.subspan(38, 12)?.span(), &b.subspan(3, WHOLE)?.subspan(0, 12)?.span(), &Around::NONE)?;
    let mut expected = vec![2; 100];
    expected[3..15].copy_from_slice(&[1, 1, 5, 5, 5, 5, 5, 5, 5, 1, 1, 1]);
    same(&ctx.read_all(queue, b.root())?, &expected)
}

fn dropped(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let all = buffer(ctx, 64)?;
    let root = all.root();
    let waits = [crate::ctx::at(gate, 1)];
    ctx.fill(queue, &all.span(), &[3], &crate::ctx::around(&waits, &[]))?;
    drop(all);
    ensure_eq!(ctx.is_late(root), true);
    refused(ctx.allocation(root), Kind::InvalidHandle)?;
    ctx.signal(gate, 1)?;
    ctx.finish(queue)?;
    ctx.until("the late free", || !ctx.is_late(root))?;
    ensure_eq!(ctx.frees_refused(), 0);
    Ok(())
}

fn counter() -> &'static AtomicU32 {
    Box::leak(Box::default())
}

fn released_once(ctx: &Ctx) -> Outcome {
    let count = counter();
    let host = ctx.host(64);
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let root = ctx.wrapped_counted(host, &want(64), count)?;
    let buffer = Buffer::adopt(ctx.home(), root, 64);
    let waits = [crate::ctx::at(gate, 1)];
    ctx.fill(queue, &buffer.subspan(0, 8)?.span(), &[7], &crate::ctx::around(&waits, &[]))?;
    drop(buffer);
    ctx.move_on();
    ensure_eq!(count.load(SeqCst), 0, "released before its last use");
    ctx.signal(gate, 1)?;
    ctx.finish(queue)?;
    ctx.until("the release", || count.load(SeqCst) > 0)?;
    ctx.queue_on(0, QueueOptions { order: Order::Free, profile: false })?;
    ensure_eq!(count.load(SeqCst), 1);
    same(&host.bytes()[..9], &[7, 7, 7, 7, 7, 7, 7, 7, 0])
}

fn no_callback(ctx: &Ctx) -> Outcome {
    let (queue, host) = (ctx.in_order()?, ctx.host(64));
    for n in 1..=20 {
        let root = ctx.wrapped(host, &want(64))?;
        ctx.fill(queue, &ctx.whole(root)?, &[n], &Around::NONE)?;
        ctx.finish(queue)?;
        ctx.free(root)?;
        refused(ctx.allocation(root), Kind::InvalidHandle)?;
        same(&host.bytes(), &[n; 64])?;
    }
    Ok(())
}

fn of_all(ctx: &Ctx) -> Outcome {
    let asked = Want { access: 1, usage: 2, ..want(100) };
    let all = Buffer::adopt(ctx.home(), ctx.allocate(0, &asked)?, 100);
    let part = all.subspan(30, 40)?;
    for (buffer, offset, len) in [(&all, 0, 100), (&part, 30, 40)] {
        for again in [buffer.subspan(0, buffer.len())?, buffer.subspan(0, WHOLE)?, buffer.share()?] {
            ensure_eq!((again.root(), again.offset(), again.len()), (all.root(), offset, len));
            ensure_eq!(again.overlap(buffer), Overlap::Complete);
        }
    }
    let queue = ctx.in_order()?;
    refused(ctx.fill(queue, &part.span(), &[1], &Around::NONE), Kind::PermissionDenied)?;
    ctx.finish(queue)
}

fn wrap_refused(ctx: &Ctx) -> Outcome {
    let count = counter();
    refused(ctx.wrap_raw(0, 8, 0, count), Kind::InvalidArgument)?;
    refused(ctx.wrap_raw(64, u64::MAX, 0, count), Kind::InvalidArgument)?;
    ensure_eq!(count.load(SeqCst), 0);
    Ok(())
}

fn misaligned(ctx: &Ctx) -> Outcome {
    let count = counter();
    let host = ctx.host(128);
    refused(ctx.wrap_raw(host.address() + 8, 8, 64, count), Kind::OutOfRange)?;
    ensure_eq!(count.load(SeqCst), 0);
    ctx.wrapped(host.part(64, 8), &Want { align: 64, ..want(8) })?;
    Ok(())
}

fn wrapped_bytes(ctx: &Ctx) -> Outcome {
    let (queue, host) = (ctx.in_order()?, ctx.host(32));
    let root = ctx.wrapped(host, &want(32))?;
    let known = ctx.allocation(root)?;
    ensure_eq!((known.base, known.len), (host.address(), 32));
    ensure_eq!(ctx.find(None, host.address() + 31)?.record, root);
    ctx.fill(queue, &crate::ctx::span(root, 4, 8), &[1, 2], &Around::NONE)?;
    ctx.finish(queue)?;
    same(&host.bytes()[3..13], &[0, 1, 2, 1, 2, 1, 2, 1, 2, 0])
}
