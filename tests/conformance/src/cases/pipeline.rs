//! Operations one behind the other on a queue: every size and phase, bursts, chains.

use super::cases;
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, around, at, point, span, want},
    ensure_eq,
    need::Need::*,
};
use wharf_core::{
    bits::{MemoryType, Usage},
    buffer::WHOLE,
    device::Want,
    fault::Kind,
    runtime::Around,
    timeline::Look,
};

cases! {
    "pipeline.copy_sizes_and_alignments", [], "copies of every size and phase of both sides, guards stay (iree CopySizeAndAlignmentClasses)" => copies;
    "pipeline.fill_sizes_and_alignments", [], "fills of patterns to 16 bytes in every size and phase, guards stay (iree FillSizeAlignmentAndPatternClasses)" => fills;
    "pipeline.update_sizes_and_alignments", [], "updates of every size to 64 bytes, phase and source offset, guards stay (iree UpdateSizeAndAlignmentClasses, WithSourceOffset)" => updates;
    "pipeline.update_above_64k", [], "an update above 64 KiB is cut or taken whole, never refused (iree LargerThanCommandBufferLimit)" => update_large;
    "pipeline.burst_of_copies", [], "400 copies apart from each other, submitted before any wait (iree BurstCopySubmit)" => burst;
    "pipeline.fill_then_copy", [], "a copy reads what the fill before it wrote (iree ChainedFillThenCopy)" => |ctx| chain(ctx, false);
    "pipeline.fill_copy_fill", [], "a fill behind a copy changes the source only (iree ChainedFillCopyFill)" => |ctx| chain(ctx, true);
    "pipeline.update_then_copy", [], "a copy reads what the update before it wrote (iree ChainedUpdateThenCopy)" => update_copy;
    "pipeline.barrier_signals", [], "a barrier signals once everything before it has ended (iree BarrierSignals)" => barrier_signals;
    "pipeline.barrier_preserves_order", [Lanes(3)], "a barrier stands between a fill and a copy on two queues (iree BarrierPreservesOrdering)" => barrier_order;
    "pipeline.held_patterns", [], "fills of 1, 2, 3, 4, 8 and 16 bytes behind a closed gate do not run early and are right then (liboffload olMemFill Enqueue)" => held_patterns;
    "pipeline.prefetch_is_a_hint", [], "memory of every kind and length is prefetched both ways, in order, and keeps its bytes; past the end is OutOfRange (liboffload olMemPrefetch)" => prefetch;
    "pipeline.whole_is_no_length", [], "the number that stands for the rest is no length of an operation: OutOfRange (iree 1.1, 6.1 row 2)" => whole;
    "pipeline.usage_of_every_operation", [], "each side of each transfer needs transfer usage (iree 1.1, 1.4)" => usage;
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(29).wrapping_add((i >> 8) as u8).wrapping_add(seed)).collect()
}

const PHASES: [(usize, usize); 7] = [(0, 0), (1, 0), (0, 1), (3, 2), (4, 4), (7, 5), (2, 8)];

fn copies(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(2048)?, ctx.memory(24_000)?);
    let (from, mut into) = (pattern(2048, 5), vec![0xEE; 24_000]);
    ctx.write(queue, a, 0, &from)?;
    ctx.write(queue, b, 0, &into)?;
    let mut next = 0;
    for len in [1usize, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 127, 1000] {
        for (f, t) in PHASES {
            let (to, len64) = (next + t, len as u64);
            ctx.copy(queue, &span(a, f as u64, len64), &span(b, to as u64, len64), &Around::NONE)?;
            into[to..to + len].copy_from_slice(&from[f..f + len]);
            next = (to + len + 3).next_multiple_of(16);
        }
    }
    same(&ctx.read_all(queue, b)?, &into)
}

fn fills(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(16_000)?);
    let mut expected = vec![0xEE; 16_000];
    ctx.write(queue, root, 0, &expected)?;
    let (mut next, all) = (0, pattern(16, 9));
    for step in 1..=16 {
        for (phase, count) in [(0, 1), (1, 2), (2, 3), (3, 17), (5, 64)] {
            let (from, len) = (next + phase, step * count);
            ctx.fill(queue, &span(root, from as u64, len as u64), &all[..step], &Around::NONE)?;
            expected[from..from + len].copy_from_slice(&all[..step].repeat(count));
            next = (from + len + 3).next_multiple_of(8);
        }
    }
    same(&ctx.read_all(queue, root)?, &expected)
}

fn updates(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(8000)?);
    let (bytes, mut expected) = (pattern(80, 3), vec![0xEE; 8000]);
    ctx.write(queue, root, 0, &expected)?;
    let mut next = 0;
    for len in [1usize, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64] {
        for (f, t) in PHASES {
            let to = next + t;
            ctx.update(queue, &span(root, to as u64, len as u64), &bytes[f..f + len], &Around::NONE)?;
            expected[to..to + len].copy_from_slice(&bytes[f..f + len]);
            next = (to + len + 3).next_multiple_of(16);
        }
    }
    same(&ctx.read_all(queue, root)?, &expected)
}

fn update_large(ctx: &Ctx) -> Outcome {
    let (queue, root, gate) = (ctx.in_order()?, ctx.memory(200_007)?, ctx.new_timeline(0)?);
    let bytes = pattern(200_000, 6);
    ctx.fill(queue, &ctx.whole(root)?, &[0xEE], &Around::NONE)?;
    let mut given = bytes.clone();
    ctx.update(queue, &span(root, 3, 200_000), &given, &around(&[at(gate, 1)], &[]))?;
    given.fill(0);
    drop(given);
    ctx.signal(gate, 1)?;
    same(&ctx.read_all(queue, root)?, &[&[0xEE; 3][..], &bytes, &[0xEE; 4]].concat())
}

fn burst(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(4000)?, ctx.memory(4000)?);
    let bytes = pattern(4000, 8);
    ctx.write(queue, a, 0, &bytes)?;
    for n in 0..400 {
        // Backwards, so that what is merged or reordered shows.
        let to = (399 - n) * 10;
        ctx.copy(queue, &span(a, n * 10, 10), &span(b, to, 10), &Around::NONE)?;
    }
    let expected: Vec<u8> = bytes.chunks(10).rev().flatten().copied().collect();
    same(&ctx.read_all(queue, b)?, &expected)
}

fn chain(ctx: &Ctx, again: bool) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(64)?, ctx.memory(64)?);
    for n in 1..=10u8 {
        ctx.fill(queue, &ctx.whole(a)?, &[n, n + 100], &Around::NONE)?;
        ctx.copy(queue, &ctx.whole(a)?, &ctx.whole(b)?, &Around::NONE)?;
        if again {
            ctx.fill(queue, &span(a, 8, 48), &[n + 50], &Around::NONE)?;
        }
    }
    same(&ctx.read_all(queue, b)?, &[10, 110].repeat(32))?;
    let mut source = [10, 110].repeat(32);
    if again {
        source[8..56].fill(60);
    }
    same(&ctx.read_all(queue, a)?, &source)
}

fn update_copy(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(32)?, ctx.memory(32)?);
    for n in 0..10 {
        ctx.update(queue, &ctx.whole(a)?, &pattern(32, n), &Around::NONE)?;
        ctx.copy(queue, &ctx.whole(a)?, &ctx.whole(b)?, &Around::NONE)?;
    }
    same(&ctx.read_all(queue, b)?, &pattern(32, 9))
}

fn barrier_signals(ctx: &Ctx) -> Outcome {
    let (queue, root, out) = (ctx.in_order()?, ctx.memory(4096)?, ctx.host(4096));
    let (gate, done) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    ctx.fill(queue, &ctx.whole(root)?, &[4], &around(&[at(gate, 1)], &[]))?;
    let copied = point(ctx.copy_to(queue, &ctx.whole(root)?, out, &Around::NONE)?)?;
    ctx.barrier(queue, &around(&[], &[at(done, 1)]))?;
    ctx.ahead(at(done, 1))?;
    ctx.signal(gate, 1)?;
    ctx.reach(at(done, 1))?;
    ensure_eq!(ctx.look(copied)?, Look::Reached);
    same(&out.bytes(), &[4; 4096])
}

fn barrier_order(ctx: &Ctx) -> Outcome {
    let (a, b, root, out) = (ctx.in_order()?, ctx.in_order()?, ctx.memory(512)?, ctx.host(512));
    let (filled, between) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let copied = point(ctx.copy_to(b, &ctx.whole(root)?, out, &around(&[at(between, 1)], &[]))?)?;
    ctx.barrier(a, &around(&[at(filled, 1)], &[at(between, 1)]))?;
    ctx.ahead(copied)?;
    let fills = ctx.queue_on(0, Default::default())?;
    ctx.fill(fills, &ctx.whole(root)?, &[7], &around(&[], &[at(filled, 1)]))?;
    ctx.reach(copied)?;
    same(&out.bytes(), &[7; 512])
}

fn held_patterns(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(60)?);
    for step in [1usize, 2, 3, 4, 8, 16] {
        let (gate, all) = (ctx.new_timeline(0)?, pattern(step, 1));
        let len = 48 / step * step;
        ctx.fill(queue, &ctx.whole(root)?, &[0xEE], &Around::NONE)?;
        let before = ctx.host(60);
        ctx.copy_to(queue, &ctx.whole(root)?, before, &Around::NONE)?;
        let waits = [at(gate, 1)];
        let end = point(ctx.fill(queue, &span(root, 5, len as u64), &all, &around(&waits, &[]))?)?;
        for _ in 0..5 {
            ctx.ahead(end)?;
        }
        ctx.signal(gate, 1)?;
        ctx.reach(end)?;
        let mut expected = vec![0xEE; 60];
        same(&before.bytes(), &expected)?;
        expected[5..5 + len].copy_from_slice(&all.repeat(len / step));
        same(&ctx.read_all(queue, root)?, &expected)?;
    }
    Ok(())
}

fn prefetch(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let managed = (MemoryType::HOST_LOCAL | MemoryType::DEVICE_LOCAL).bits();
    for kind in [0, managed] {
        let Ok(root) = ctx.allocate(0, &Want { kind, ..want(100) }) else { continue };
        ctx.fill(queue, &span(root, 0, 100), &[kind as u8], &Around::NONE)?;
        for (offset, len, to_host) in [(0, 100, false), (0, 100, true), (40, 7, true), (100, 0, false)] {
            let before = ctx.tail(queue)?.value;
            let end = point(ctx.prefetch(queue, &span(root, offset, len), to_host, &Around::NONE)?)?;
            ensure_eq!(end.value, before + 1);
        }
        same(&ctx.read_all(queue, root)?, &[kind as u8; 100])?;
        let past = span(root, 100, 1);
        refused(ctx.prefetch(queue, &past, true, &Around::NONE), Kind::OutOfRange)?;
        ctx.free(root)?;
        refused(ctx.prefetch(queue, &span(root, 0, 1), true, &Around::NONE), Kind::InvalidHandle)?;
    }
    Ok(())
}

fn whole(ctx: &Ctx) -> Outcome {
    let (queue, a, b, host) = (ctx.in_order()?, ctx.memory(64)?, ctx.memory(64)?, ctx.host(64));
    for offset in [0, 1, 64] {
        let (bad, good) = (span(a, offset, WHOLE), span(b, 0, WHOLE));
        refused(ctx.fill(queue, &bad, &[1], &Around::NONE), Kind::OutOfRange)?;
        refused(ctx.copy(queue, &bad, &good, &Around::NONE), Kind::OutOfRange)?;
        refused(ctx.copy_raw(queue, host, &bad, true), Kind::OutOfRange)?;
        refused(ctx.copy_raw(queue, host, &bad, false), Kind::OutOfRange)?;
    }
    ctx.finish(queue)
}

fn usage(ctx: &Ctx) -> Outcome {
    let (queue, good, host) = (ctx.in_order()?, ctx.memory(16)?, ctx.host(16));
    let bad = ctx.memory_as(0, &Want { usage: Usage::DISPATCH.bits(), ..want(16) })?;
    let (bad, good) = (ctx.whole(bad)?, ctx.whole(good)?);
    let denied = Kind::PermissionDenied;
    refused(ctx.fill(queue, &bad, &[1], &Around::NONE), denied)?;
    refused(ctx.update(queue, &bad, &[1; 16], &Around::NONE), denied)?;
    refused(ctx.copy(queue, &bad, &good, &Around::NONE), denied)?;
    refused(ctx.copy(queue, &good, &bad, &Around::NONE), denied)?;
    refused(ctx.copy_from(queue, host, &bad, &Around::NONE), denied)?;
    refused(ctx.copy_to(queue, &bad, host, &Around::NONE), denied)?;
    ctx.finish(queue)
}
