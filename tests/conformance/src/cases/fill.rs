//! Fills: patterns of any length, exact bytes, nothing beside them.

use super::cases;
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, around, at, point, span},
    gate::Gate,
    need::Need::*,
    rig::Queue,
};
use std::ops::RangeInclusive;
use wharf_core::{fault::Kind, handle::Handle, record::Record, runtime::Around, timeline::Look};

cases! {
    "fill.pattern_1", [], "a pattern of 1 byte (liboffload olMemFill 8 bit)" => |ctx| patterns_of(ctx, 1..=1);
    "fill.pattern_2", [], "a pattern of 2 bytes at odd offsets (liboffload olMemFill 16 bit)" => |ctx| patterns_of(ctx, 2..=2);
    "fill.pattern_3", [], "a pattern of 3 bytes, no power of two (liboffload olMemFill 3 byte)" => |ctx| patterns_of(ctx, 3..=3);
    "fill.pattern_4", [], "a pattern of 4 bytes at odd offsets (liboffload olMemFill 32 bit)" => |ctx| patterns_of(ctx, 4..=4);
    "fill.pattern_5_to_8", [], "patterns of 5 to 8 bytes (decisions, fill pattern)" => |ctx| patterns_of(ctx, 5..=8);
    "fill.pattern_9_to_16", [], "patterns of 9 to 16 bytes (decisions, fill pattern)" => |ctx| patterns_of(ctx, 9..=16);
    "fill.pattern_17", [], "a pattern of 17 bytes (liboffload olMemFill LargeByteAligned)" => |ctx| patterns_of(ctx, 17..=17);
    "fill.pattern_1000", [], "a pattern of 1,000 bytes (decisions, fill pattern of any length)" => |ctx| patterns_of(ctx, 1000..=1000);
    "fill.length_not_a_multiple", [], "a length that is no multiple of the pattern, also a shorter one, is InvalidArgument (liboffload olMemFill NotMultiple)" => not_multiple;
    "fill.pattern_0", [], "an empty pattern is InvalidArgument (decisions, pattern 0 too)" => empty;
    "fill.large", [Memory(4 << 20)], "3 MiB with 16 bytes, guards stay (liboffload olMemFill Large)" => |ctx| large(ctx, 16);
    "fill.large_odd", [Memory(4 << 20)], "3 MiB with 3 bytes, guards stay (liboffload olMemFill)" => |ctx| large(ctx, 3);
    "fill.captures_its_pattern", [], "a held fill uses the pattern as it was at the call (design 4, copied before return)" => captures;
    "fill.not_before_its_wait", [], "a fill behind a point that is ahead does not run (liboffload olMemFill Enqueue)" => not_early;
    "fill.not_before_a_host_call", [HostCalls], "a fill behind a host call that blocks does not run early (liboffload olMemFill Enqueue)" => behind_call;
    "fill.finishes_without_a_wait", [], "an idle queue finishes without a sync (liboffload olMemFill)" => without_sync;
    "fill.in_a_row_are_ordered", [], "later fills over earlier ones win (iree 1.4)" => in_a_row;
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 37 + 11) as u8).collect()
}

fn filled(ctx: &Ctx, queue: Queue, root: Handle<Record>, len: usize) -> Outcome {
    ctx.write(queue, root, 0, &vec![0xEE; len])
}

fn patterns_of(ctx: &Ctx, steps: RangeInclusive<usize>) -> Outcome {
    let queue = ctx.in_order()?;
    steps.into_iter().try_for_each(|step| patterns(ctx, queue, step))
}

/// A pattern over every small count and at offsets with every phase, with guards before and behind.
fn patterns(ctx: &Ctx, queue: Queue, step: usize) -> Outcome {
    let pattern = pattern(step);
    for (offset, count) in [(0usize, 1usize), (1, 1), (3, 2), (7, 5), (16, 8), (13, 33)] {
        let len = step * count;
        let whole = offset + len + 9;
        let root = ctx.memory(whole as u64)?;
        filled(ctx, queue, root, whole)?;
        ctx.fill(queue, &span(root, offset as u64, len as u64), &pattern, &Around::NONE)?;
        let mut expected = vec![0xEE; whole];
        expected[offset..offset + len].copy_from_slice(&pattern.repeat(count));
        same(&ctx.read_all(queue, root)?, &expected)?;
        ctx.free(root)?;
    }
    Ok(())
}

fn not_multiple(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(64)?);
    filled(ctx, queue, root, 64)?;
    for (len, step) in [(1u64, 2usize), (5, 8), (64, 3), (17, 16), (63, 2)] {
        refused(ctx.fill(queue, &span(root, 0, len), &pattern(step), &Around::NONE), Kind::InvalidArgument)?;
    }
    same(&ctx.read_all(queue, root)?, &[0xEE; 64])
}

fn empty(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(64)?);
    refused(ctx.fill(queue, &span(root, 0, 8), &[], &Around::NONE), Kind::InvalidArgument)?;
    refused(ctx.fill(queue, &span(root, 0, 0), &[], &Around::NONE), Kind::InvalidArgument)?;
    ctx.finish(queue)
}

fn large(ctx: &Ctx, step: usize) -> Outcome {
    let queue = ctx.in_order()?;
    let len = (3 << 20) / step * step;
    let root = ctx.memory(len as u64 + 20)?;
    ctx.fill(queue, &ctx.whole(root)?, &[0xEE], &Around::NONE)?;
    ctx.fill(queue, &span(root, 5, len as u64), &pattern(step), &Around::NONE)?;
    let bytes = ctx.read_all(queue, root)?;
    same(&bytes[..5], &[0xEE; 5])?;
    same(&bytes[5..5 + len], &pattern(step).repeat(len / step))?;
    same(&bytes[5 + len..], &[0xEE; 15])
}

fn captures(ctx: &Ctx) -> Outcome {
    let (queue, root, gate) = (ctx.in_order()?, ctx.memory(60)?, ctx.new_timeline(0)?);
    let mut bytes = pattern(12);
    let waits = [at(gate, 1)];
    ctx.fill(queue, &ctx.whole(root)?, &bytes, &around(&waits, &[]))?;
    bytes.fill(0);
    ctx.signal(gate, 1)?;
    same(&ctx.read_all(queue, root)?, &pattern(12).repeat(5))
}

fn not_early(ctx: &Ctx) -> Outcome {
    let (queue, root, gate) = (ctx.in_order()?, ctx.memory(64)?, ctx.new_timeline(0)?);
    filled(ctx, queue, root, 64)?;
    let waits = [at(gate, 1)];
    let end = point(ctx.fill(queue, &ctx.whole(root)?, &[1, 2], &around(&waits, &[]))?)?;
    // A copy behind it is held too, so what it will read is the pattern.
    let out = ctx.host(64);
    let copied = point(ctx.copy_to(queue, &ctx.whole(root)?, out, &Around::NONE)?)?;
    for _ in 0..20 {
        ctx.ahead(end)?;
        ctx.ahead(copied)?;
    }
    same(&out.bytes(), &[0; 64])?;
    ctx.signal(gate, 1)?;
    ctx.reach(copied)?;
    same(&out.bytes(), &[1, 2].repeat(32))
}

fn behind_call(ctx: &Ctx) -> Outcome {
    let (queue, root, gate) = (ctx.in_order()?, ctx.memory(64)?, Gate::new());
    filled(ctx, queue, root, 64)?;
    gate.call(ctx, queue, &Around::NONE)?;
    let end = point(ctx.fill(queue, &ctx.whole(root)?, &[9], &Around::NONE)?)?;
    ctx.until("the host call", || gate.entered() == 1)?;
    for _ in 0..20 {
        ctx.ahead(end)?;
    }
    gate.open();
    same(&ctx.read_all(queue, root)?, &[9; 64])
}

fn without_sync(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(64)?);
    let end = point(ctx.fill(queue, &ctx.whole(root)?, &[9], &Around::NONE)?)?;
    ctx.until("the end of the fill", || ctx.look(end) == Ok(Look::Reached))
}

fn in_a_row(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(120)?);
    for n in 1..=10u8 {
        ctx.fill(queue, &span(root, 0, 120 - 10 * u64::from(n - 1)), &[n], &Around::NONE)?;
    }
    let bytes = ctx.read_all(queue, root)?;
    let expected: Vec<u8> = (0..120).map(|i: u8| if i < 30 { 10 } else { 12 - i / 10 }).collect();
    same(&bytes, &expected)
}
