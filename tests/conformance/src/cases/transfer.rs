//! Copies and updates: round trips, parts, refusals.

use super::cases;
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, around, at, span, want},
    ensure_eq,
    need::Need::*,
};
use wharf_core::{
    bits::{Access, MemoryType, Usage},
    device::Want,
    fault::Kind,
    handle::Handle,
    runtime::Around,
};

cases! {
    "transfer.round_trip", [], "bytes go in and come out as they were, 1 byte to 300 KiB (liboffload olMemcpy HtoD DtoH)" => round_trip;
    "transfer.device_to_device", [], "a copy between two blocks of a device (liboffload olMemcpy DtoD)" => device_to_device;
    "transfer.parts_with_offsets", [], "copies of parts touch their bytes and no others (iree 1.1 ranges)" => parts;
    "transfer.within_one_block", [], "a copy between parts of one block that touch but do not overlap (decisions, overlap)" => within;
    "transfer.large", [Memory(8 << 20)], "5 MiB and 3 bytes arrive whole (liboffload olMemcpy)" => large;
    "transfer.length_zero", [], "length 0 anywhere inside is fine, changes nothing and is a point in order (iree 1.1)" => length_zero;
    "transfer.lengths_must_agree", [], "source and target of different lengths are InvalidArgument (iree 1.5)" => lengths;
    "transfer.overlap_is_refused", [], "overlapping parts of one block are InvalidArgument, their signals fail (decisions, overlap)" => overlap;
    "transfer.past_the_end_is_refused", [], "ranges past the end, also by overflow, are OutOfRange, their signals fail (iree 1.1)" => past_end;
    "transfer.access_is_checked", [], "reading what may only be written and the reverse are PermissionDenied (iree 1.1)" => access;
    "transfer.usage_is_checked", [], "memory without transfer usage is PermissionDenied (iree 1.1)" => usage;
    "transfer.stale_memory_is_refused", [], "freed and null roots are InvalidHandle (design 3.3)" => stale;
    "transfer.foreign_device_memory", [TwoDevices], "a queue reaches another device's memory if it lies in the process, else InvalidDevice (liboffload 4 row 42)" => foreign;
    "transfer.second_device", [TwoDevices], "bytes go in and out of the second device of a runtime (design 2)" => second;
    "transfer.chain_is_ordered", [], "copies in a row each see what the one before wrote (liboffload olMemcpy queued chain)" => chain;
    "transfer.wrapped_to_device", [Wrap], "a copy from wrapped host memory to device memory and back (liboffload olMemcpy HtoH)" => wrapped;
    "transfer.wrapped_to_wrapped", [Wrap], "copies between host memories are ordered on the queue, and none runs before its wait (liboffload olMemcpy queued HtoH chain)" => wrapped_chain;
    "transfer.update", [], "an update of up to 64 bytes arrives and touches nothing else (iree 1.4)" => update;
    "transfer.update_64k", [], "an update of 64 KiB arrives (iree 1.4, 1.5)" => update_64k;
    "transfer.update_captures_its_bytes", [], "an update holds the bytes as they were at the call, also when it is held (iree 1.4)" => update_captures;
    "transfer.update_length_must_agree", [], "bytes and span of different lengths are InvalidArgument (iree 1.5)" => update_length;
    "transfer.update_past_the_end", [], "an update past the end is OutOfRange (iree 1.1)" => update_past;
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add((i >> 8) as u8).wrapping_add(seed)).collect()
}

fn round_trip(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    for len in [1usize, 2, 3, 42, 255, 4096, 4097, 300 << 10] {
        let record = ctx.memory(len as u64)?;
        let bytes = pattern(len, 1);
        ctx.write(queue, record, 0, &bytes)?;
        same(&ctx.read_all(queue, record)?, &bytes)?;
        ctx.free(record)?;
    }
    Ok(())
}

fn device_to_device(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let (a, b) = (ctx.memory(1000)?, ctx.memory(1000)?);
    let bytes = pattern(1000, 42);
    ctx.write(queue, a, 0, &bytes)?;
    ctx.copy(queue, &ctx.whole(a)?, &ctx.whole(b)?, &Around::NONE)?;
    same(&ctx.read_all(queue, b)?, &bytes)
}

fn parts(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let (a, b) = (ctx.memory(300)?, ctx.memory(300)?);
    let (from, mut into) = (pattern(300, 3), vec![0xEE; 300]);
    ctx.write(queue, a, 0, &from)?;
    ctx.write(queue, b, 0, &into)?;
    for (f, t, len) in
        [(0usize, 7usize, 1usize), (1, 31, 13), (17, 64, 100), (200, 299, 1), (299, 0, 1), (150, 180, 77)]
    {
        ctx.copy(queue, &span(a, f as u64, len as u64), &span(b, t as u64, len as u64), &Around::NONE)?;
        into[t..t + len].copy_from_slice(&from[f..f + len]);
    }
    same(&ctx.read_all(queue, b)?, &into)?;
    let out = ctx.host_of(&[0x77; 20]);
    ctx.copy_to(queue, &span(a, 33, 10), out.part(5, 10), &Around::NONE)?;
    ctx.finish(queue)?;
    let mut expected = vec![0x77; 20];
    expected[5..15].copy_from_slice(&from[33..43]);
    same(&out.bytes(), &expected)
}

fn within(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let a = ctx.memory(96)?;
    let mut bytes = pattern(96, 9);
    ctx.write(queue, a, 0, &bytes)?;
    ctx.copy(queue, &span(a, 0, 32), &span(a, 32, 32), &Around::NONE)?;
    ctx.copy(queue, &span(a, 64, 16), &span(a, 48, 16), &Around::NONE)?;
    bytes.copy_within(0..32, 32);
    bytes.copy_within(64..80, 48);
    same(&ctx.read_all(queue, a)?, &bytes)
}

fn large(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let len = (5 << 20) + 3;
    let record = ctx.memory(len as u64)?;
    let bytes = pattern(len, 5);
    ctx.write(queue, record, 0, &bytes)?;
    same(&ctx.read_all(queue, record)?, &bytes)
}

fn length_zero(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let (a, b) = (ctx.memory(16)?, ctx.memory(16)?);
    let bytes = pattern(16, 1);
    ctx.write(queue, b, 0, &bytes)?;
    let mut last = ctx.tail(queue)?.value;
    for offset in [0, 7, 16] {
        for submitted in [
            ctx.copy(queue, &span(a, offset, 0), &span(b, offset, 0), &Around::NONE),
            ctx.fill(queue, &span(b, offset, 0), &[1, 2], &Around::NONE),
            ctx.update(queue, &span(b, offset, 0), &[], &Around::NONE),
        ] {
            last += 1;
            ensure_eq!(crate::ctx::point(submitted?)?.value, last);
        }
    }
    same(&ctx.read_all(queue, b)?, &bytes)
}

fn lengths(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(16)?, ctx.memory(16)?);
    refused(ctx.copy(queue, &span(a, 0, 8), &span(b, 0, 9), &Around::NONE), Kind::InvalidArgument)?;
    ctx.finish(queue)
}

fn overlap(ctx: &Ctx) -> Outcome {
    let (queue, a, timeline) = (ctx.in_order()?, ctx.memory(64)?, ctx.new_timeline(0)?);
    for (n, (f, t, len)) in [(0, 0, 8), (0, 7, 8), (7, 0, 8), (10, 12, 30)].into_iter().enumerate() {
        let timeline = if n == 0 { timeline } else { ctx.new_timeline(0)? };
        let signals = [at(timeline, 1)];
        let answer = ctx.copy(queue, &span(a, f, len), &span(a, t, len), &around(&[], &signals));
        let fault = refused(answer, Kind::InvalidArgument)?;
        ensure_eq!(ctx.query(timeline), Err(fault));
    }
    ctx.finish(queue)
}

fn past_end(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(64)?, ctx.memory(64)?);
    let host = ctx.host(64);
    for (offset, len) in [(0, 65), (64, 1), (65, 0), (1, 64), (u64::MAX, 2), (u64::MAX, 1)] {
        let (bad, good) = (span(a, offset, len), span(b, 0, len.min(64)));
        let timeline = ctx.new_timeline(0)?;
        let signals = [at(timeline, 1)];
        refused(ctx.fill(queue, &bad, &[1], &around(&[], &signals)), Kind::OutOfRange)?;
        refused(ctx.query(timeline), Kind::OutOfRange)?;
        if len <= 64 {
            refused(ctx.copy(queue, &bad, &good, &Around::NONE), Kind::OutOfRange)?;
            refused(ctx.copy(queue, &good, &bad, &Around::NONE), Kind::OutOfRange)?;
            refused(ctx.copy_from(queue, host, &bad, &Around::NONE), Kind::OutOfRange)?;
            refused(ctx.copy_to(queue, &bad, host, &Around::NONE), Kind::OutOfRange)?;
        }
    }
    ctx.finish(queue)
}

fn access(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let as_ = |access: Access| ctx.memory_as(0, &Want { access: access.bits(), ..want(16) });
    let (reads, writes) = (as_(Access::READ)?, as_(Access::WRITE)?);
    let host = ctx.host(16);
    let (r, w) = (ctx.whole(reads)?, ctx.whole(writes)?);
    refused(ctx.copy(queue, &w, &r, &Around::NONE), Kind::PermissionDenied)?;
    refused(ctx.fill(queue, &r, &[1], &Around::NONE), Kind::PermissionDenied)?;
    refused(ctx.update(queue, &r, &[1; 16], &Around::NONE), Kind::PermissionDenied)?;
    refused(ctx.copy_from(queue, host, &r, &Around::NONE), Kind::PermissionDenied)?;
    refused(ctx.copy_to(queue, &w, host, &Around::NONE), Kind::PermissionDenied)?;
    ctx.copy(queue, &r, &w, &Around::NONE)?;
    ctx.finish(queue)
}

fn usage(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let record = ctx.memory_as(0, &Want { usage: Usage::DISPATCH.bits(), ..want(16) })?;
    refused(ctx.fill(queue, &ctx.whole(record)?, &[1], &Around::NONE), Kind::PermissionDenied)?;
    ctx.finish(queue)
}

fn stale(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(16)?, ctx.memory(16)?);
    ctx.free(a)?;
    for root in [a, Handle::from_raw(0)] {
        let (bad, good) = (span(root, 0, 8), span(b, 0, 8));
        refused(ctx.copy(queue, &bad, &good, &Around::NONE), Kind::InvalidHandle)?;
        refused(ctx.copy(queue, &good, &bad, &Around::NONE), Kind::InvalidHandle)?;
        refused(ctx.update(queue, &bad, &[0; 8], &Around::NONE), Kind::InvalidHandle)?;
    }
    ctx.finish(queue)
}

fn foreign(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let (own, other) = (ctx.memory(16)?, ctx.memory_as(1, &want(16))?);
    let known = ctx.allocation(other)?;
    let in_process = known.kind.contains(MemoryType::HOST_LOCAL) && ctx.caps(0).host_copies;
    let (from, to) = (ctx.whole(other)?, ctx.whole(own)?);
    if !in_process {
        refused(ctx.copy(queue, &from, &to, &Around::NONE), Kind::InvalidDevice)?;
        refused(ctx.fill(queue, &from, &[1], &Around::NONE), Kind::InvalidDevice)?;
        return ctx.finish(queue);
    }
    ctx.fill(queue, &from, &[7], &Around::NONE)?;
    ctx.copy(queue, &from, &to, &Around::NONE)?;
    same(&ctx.read_all(queue, own)?, &[7; 16])
}

fn second(ctx: &Ctx) -> Outcome {
    let queue = ctx.queue_on(1, Default::default())?;
    ensure_eq!(ctx.queue_device(queue)?, 1);
    let (a, b) = (ctx.memory_as(1, &want(100))?, ctx.memory_as(1, &want(100))?);
    let bytes = pattern(100, 8);
    ctx.update(queue, &span(a, 0, 50), &bytes[..50], &Around::NONE)?;
    ctx.finish(queue)?;
    ctx.write(queue, a, 50, &bytes[50..])?;
    ctx.copy(queue, &ctx.whole(a)?, &ctx.whole(b)?, &Around::NONE)?;
    same(&ctx.read_all(queue, b)?, &bytes)
}

fn chain(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let blocks: Vec<_> = (0..8).map(|_| ctx.memory(256)).collect::<Outcome<_>>()?;
    let bytes = pattern(256, 77);
    ctx.copy_from(queue, ctx.host_of(&bytes), &ctx.whole(blocks[0])?, &Around::NONE)?;
    for pair in blocks.windows(2) {
        ctx.copy(queue, &ctx.whole(pair[0])?, &ctx.whole(pair[1])?, &Around::NONE)?;
        ctx.fill(queue, &ctx.whole(pair[0])?, &[0], &Around::NONE)?;
    }
    same(&ctx.read_all(queue, blocks[7])?, &bytes)
}

fn wrapped(ctx: &Ctx) -> Outcome {
    let (queue, device) = (ctx.in_order()?, ctx.memory(128)?);
    let bytes = pattern(128, 2);
    let (from, back) = (ctx.host_of(&bytes), ctx.host(128));
    let (a, b) = (ctx.wrapped(from, &want(128))?, ctx.wrapped(back, &want(128))?);
    ctx.copy(queue, &ctx.whole(a)?, &ctx.whole(device)?, &Around::NONE)?;
    ctx.copy(queue, &ctx.whole(device)?, &ctx.whole(b)?, &Around::NONE)?;
    ctx.finish(queue)?;
    same(&back.bytes(), &bytes)
}

fn wrapped_chain(ctx: &Ctx) -> Outcome {
    let (queue, gate) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let bytes = pattern(100, 4);
    let hosts = [ctx.host_of(&bytes), ctx.host(100), ctx.host(108)];
    let roots = [
        ctx.wrapped(hosts[0], &want(100))?,
        ctx.wrapped(hosts[1], &want(100))?,
        ctx.wrapped(hosts[2], &want(108))?,
    ];
    let waits = [at(gate, 1)];
    ctx.copy(queue, &span(roots[0], 0, 100), &span(roots[1], 0, 100), &around(&waits, &[]))?;
    let end = ctx.copy(queue, &span(roots[1], 0, 100), &span(roots[2], 4, 100), &Around::NONE)?;
    ctx.fill(queue, &span(roots[1], 0, 100), &[9], &Around::NONE)?;
    ctx.ahead(crate::ctx::point(end)?)?;
    same(&hosts[1].bytes(), &[0; 100])?;
    ctx.signal(gate, 1)?;
    ctx.finish(queue)?;
    same(&hosts[1].bytes(), &[9; 100])?;
    same(&hosts[2].bytes(), &[&[0; 4][..], &bytes, &[0; 4]].concat())
}

fn update(ctx: &Ctx) -> Outcome {
    let (queue, a) = (ctx.in_order()?, ctx.memory(200)?);
    let mut bytes = vec![0xEE; 200];
    ctx.write(queue, a, 0, &bytes)?;
    for (offset, len) in [(0usize, 1usize), (3, 7), (20, 33), (100, 64), (199, 1)] {
        let new = pattern(len, offset as u8);
        ctx.update(queue, &span(a, offset as u64, len as u64), &new, &Around::NONE)?;
        bytes[offset..offset + len].copy_from_slice(&new);
    }
    same(&ctx.read_all(queue, a)?, &bytes)
}

fn update_64k(ctx: &Ctx) -> Outcome {
    let (queue, a) = (ctx.in_order()?, ctx.memory(65_536)?);
    let bytes = pattern(65_536, 6);
    ctx.update(queue, &ctx.whole(a)?, &bytes, &Around::NONE)?;
    same(&ctx.read_all(queue, a)?, &bytes)
}

fn update_captures(ctx: &Ctx) -> Outcome {
    let (queue, a, gate) = (ctx.in_order()?, ctx.memory(64)?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    let (mut early, mut held) = (pattern(32, 1), pattern(32, 2));
    let expected = [early.clone(), held.clone()].concat();
    ctx.update(queue, &span(a, 0, 32), &early, &Around::NONE)?;
    ctx.update(queue, &span(a, 32, 32), &held, &around(&waits, &[]))?;
    early.fill(0xEE);
    held.fill(0xEE);
    ctx.signal(gate, 1)?;
    same(&ctx.read_all(queue, a)?, &expected)
}

fn update_length(ctx: &Ctx) -> Outcome {
    let (queue, a) = (ctx.in_order()?, ctx.memory(16)?);
    refused(ctx.update(queue, &span(a, 0, 8), &[0; 7], &Around::NONE), Kind::InvalidArgument)?;
    refused(ctx.update(queue, &span(a, 0, 8), &[], &Around::NONE), Kind::InvalidArgument)?;
    ctx.finish(queue)
}

fn update_past(ctx: &Ctx) -> Outcome {
    let (queue, a) = (ctx.in_order()?, ctx.memory(16)?);
    refused(ctx.update(queue, &span(a, 9, 8), &[0; 8], &Around::NONE), Kind::OutOfRange)?;
    ctx.finish(queue)
}
