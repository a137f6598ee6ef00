//! Command lists of transfers: recorded once, submitted many times, with and without bindings.

use super::cases;
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, around, at, point, span, want},
    ensure, ensure_eq,
    need::Need::*,
    rig::{List, Queue},
};
use wharf_core::{
    bits::{Access, Usage},
    buffer::WHOLE,
    device::Want,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    record::Record,
    runtime::{Around, Command, CommandList, ListRoom, QueueOptions, Ref, SLOTS_MAX, UPDATE_MAX},
    timeline::Look,
};

cases! {
    "list.create", [], "a list is made and dropped in every state (iree command_buffer Create, BeginEnd)" => create;
    "list.empty", [], "a list without operations is a point in order and signals (iree SubmitEmpty)" => empty;
    "list.states", [], "recording outside begin and end, beginning or ending twice, submitting too early: FailedPrecondition (iree 1.5)" => states;
    "list.copy_whole", [], "a copy of a whole block (iree CopyWholeBuffer)" => |ctx| copies(ctx, &[(0, 0, 100)]);
    "list.copy_parts", [], "copies with offsets on both sides, guards stay (iree CopySubBuffer)" => |ctx| copies(ctx, &[(3, 50, 7), (90, 0, 10), (40, 99, 1)]);
    "list.copy_sizes_and_alignments", [], "copies of every size and phase of both sides (iree CopySizeAndAlignmentClasses)" => copy_classes;
    "list.fill_matrix", [], "patterns of 1, 2 and 4 bytes fill their range alone (iree fill_buffer, 14 cases)" => fill_matrix;
    "list.fill_sizes_and_alignments", [], "fills of every size, phase and pattern to 16 bytes (iree FillSizeAlignmentAndPatternClasses)" => fill_classes;
    "list.update", [], "updates of whole blocks, with offsets on both sides and in part of a block (iree update_buffer)" => update;
    "list.update_64k", [], "an update of 64 KiB (iree LargerPayload)" => update_64k;
    "list.update_captures_its_bytes", [], "an update holds the bytes as they were recorded (iree 1.4)" => update_captures;
    "list.rapid_fills", [], "200 lists of one use each, each with its own pattern (iree RapidFillSubmit)" => |ctx| rapid(ctx, false);
    "list.rapid_copies", [], "200 lists of one copy each (iree RapidCopySubmit)" => |ctx| rapid(ctx, true);
    "list.rapid_resubmits", [], "one list is submitted 200 times without a wait (iree 1.5 resubmit)" => resubmits;
    "list.large", [], "a list of 3,000 operations, one signal (iree LargeFillCommandBuffer)" => large;
    "list.fill_then_copy", [], "what a fill wrote, a copy behind a barrier reads (iree FillThenCopyInSingleCommandBuffer)" => fill_then_copy;
    "list.short_lived_memory", [], "memory made for one submit and let go at once is written and read (iree transient_buffer)" => short_lived;
    "list.access_of_zero", [], "memory asked for with no access bits takes all (iree FillTransientWithZeroAccessFlags)" => zero_access;
    "list.keeps_direct_memory", [], "memory that a list names lives as long as the list (iree 1.5, retained)" => keeps;
    "list.freed_memory_is_refused", [], "memory freed under a list: submits are InvalidHandle, and nothing runs (design 3.3)" => freed;
    "list.direct_ranges_are_checked", [], "ranges past the allocation are OutOfRange when recorded (iree 1.5, its defect)" => direct_ranges;
    "list.access_and_usage_are_checked", [], "memory that may not be used so is PermissionDenied, named or bound (iree 1.5)" => permissions;
    "list.sizes_are_checked", [], "lengths that differ, overlap, patterns that do not fit, large updates: InvalidArgument (iree 1.5)" => sizes;
    "list.slots_are_checked", [], "slots above the capacity are OutOfRange when recorded (iree 1.5)" => slots;
    "list.bindings_are_checked", [], "none or null: InvalidArgument; too few or too short: OutOfRange; signals fail too (iree 1.5)" => bindings;
    "list.whole_binding", [], "a whole binding with an offset in it does not wrap (iree 1.5, its defect)" => whole_binding;
    "list.different_bindings", [], "each submit writes where its bindings say (iree ResubmitWithDifferentBindings)" => different;
    "list.mixed_references", [], "named and bound memory in one operation (iree MixedDirectAndIndirectBindings)" => mixed;
    "list.bindings_are_copied", [], "bindings of a held submit may change, and the list may go (iree DeferredExecuteRetainsDispatchBindingTable)" => copied;
    "list.bound_memory_waits", [], "bound memory freed after the submit lives until it has ended (iree IndirectCommandBufferBindingTableRetainedUntilSignal)" => bound_waits;
    "list.in_order_with_others", [], "a list is between what is before and behind it (iree 1.4)" => in_order;
    "list.waits_and_signals", [], "all waits before the first operation, all signals behind the last (iree 1.4)" => waits;
    "list.failed_wait", [], "a failed wait: nothing of the list runs, its signals fail with the cause (iree PropagateFailSignal)" => failed_wait;
    "list.free_order", [], "on a free queue a held list keeps its order and others pass (iree 1.4)" => free_order;
    "list.chained_lists", [], "lists on two queues, each waiting for the one before (iree SubmitWithChainedCommandBuffers)" => chained;
    "list.other_device", [TwoDevices], "a list on a queue of another device is InvalidDevice (design 3.2)" => other_device;
    "list.threads", [Lanes(8)], "one list is submitted by eight threads at once (iree 1.5 concurrent resubmit)" => threads;
}

fn bytes_of(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(37).wrapping_add((i >> 8) as u8).wrapping_add(seed)).collect()
}

fn direct(root: Handle<Record>, offset: u64, len: u64) -> Ref {
    Ref::Direct(span(root, offset, len))
}

fn bound(slot: u32, offset: u64, len: u64) -> Ref {
    Ref::Bound { slot, offset, len }
}

fn fill(to: Ref, pattern: &[u8]) -> Command<'_> {
    Command::Fill { to, pattern }
}

/// Submits and waits.
fn run(ctx: &Ctx, queue: Queue, list: &List) -> Outcome {
    ctx.reach(point(ctx.execute(queue, list, &[], &Around::NONE)?)?)
}

fn create(ctx: &Ctx) -> Outcome {
    drop(CommandList::new(ctx.home(), ListRoom::growing()));
    drop(ctx.list(0)?);
    drop(ctx.list(SLOTS_MAX)?);
    let root = ctx.memory(16)?;
    let mut list = ctx.list(0)?;
    ctx.record(&mut list, &fill(direct(root, 0, 16), &[1]))?;
    drop(list);
    let list = ctx.list_of(0, &[fill(direct(root, 0, 16), &[1])])?;
    ensure_eq!((list.len(), list.device(), list.bindings()), (1, 0, 0));
    Ok(())
}

fn empty(ctx: &Ctx) -> Outcome {
    let (queue, done) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let list = ctx.list_of(0, &[])?;
    ensure!(list.is_empty(), "expected no operations, got {}", list.len());
    let end = point(ctx.execute(queue, &list, &[], &around(&[], &[at(done, 1)]))?)?;
    ensure_eq!(end.value, 1);
    ctx.reach(at(done, 1))?;
    ctx.reach(end)
}

fn states(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(16)?);
    let early = Kind::FailedPrecondition;
    let command = fill(direct(root, 0, 16), &[1]);
    let mut list = CommandList::new(ctx.home(), ListRoom::growing());
    refused(ctx.record(&mut list, &command), early)?;
    refused(list.end(), early)?;
    refused(ctx.execute(queue, &list, &[], &Around::NONE), early)?;
    list.begin(0, 0)?;
    refused(list.begin(0, 0), early)?;
    ctx.record(&mut list, &command)?;
    refused(ctx.execute(queue, &list, &[], &Around::NONE), early)?;
    list.end()?;
    refused(list.end(), early)?;
    refused(list.begin(0, 0), early)?;
    refused(ctx.record(&mut list, &command), early)?;
    run(ctx, queue, &list)?;
    same(&ctx.read_all(queue, root)?, &[1; 16])
}

fn copies(ctx: &Ctx, parts: &[(usize, usize, usize)]) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(100)?, ctx.memory(100)?);
    let (from, mut into) = (bytes_of(100, 1), vec![0xEE; 100]);
    ctx.write(queue, a, 0, &from)?;
    ctx.write(queue, b, 0, &into)?;
    let mut list = ctx.list(0)?;
    for &(f, t, len) in parts {
        let (f64, t64, len64) = (f as u64, t as u64, len as u64);
        ctx.record(&mut list, &Command::Copy { from: direct(a, f64, len64), to: direct(b, t64, len64) })?;
        into[t..t + len].copy_from_slice(&from[f..f + len]);
    }
    list.end()?;
    run(ctx, queue, &list)?;
    same(&ctx.read_all(queue, b)?, &into)
}

fn copy_classes(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(2048)?, ctx.memory(60_000)?);
    let (from, mut into) = (bytes_of(2048, 5), vec![0xEE; 60_000]);
    ctx.write(queue, a, 0, &from)?;
    ctx.write(queue, b, 0, &into)?;
    let (mut list, mut next) = (ctx.list(0)?, 0);
    for len in [1usize, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 127, 1000] {
        for (f, t) in [(0, 0), (1, 0), (0, 1), (3, 2), (4, 4), (7, 5), (2, 8)] {
            let to = next + t;
            let (from_at, to_at) = (direct(a, f as u64, len as u64), direct(b, to as u64, len as u64));
            ctx.record(&mut list, &Command::Copy { from: from_at, to: to_at })?;
            into[to..to + len].copy_from_slice(&from[f..f + len]);
            next = (to + len + 3).next_multiple_of(16);
        }
    }
    list.end()?;
    run(ctx, queue, &list)?;
    same(&ctx.read_all(queue, b)?, &into)
}

fn fill_matrix(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let pattern = [0x11, 0x22, 0x33, 0x44];
    // Bytes of pattern, of buffer, offset, length.
    for (step, size, offset, len) in [
        (1usize, 1u64, 0usize, 1usize),
        (1, 5, 0, 5),
        (1, 16, 0, 1),
        (1, 16, 0, 3),
        (1, 16, 0, 8),
        (1, 16, 2, 8),
        (2, 2, 0, 2),
        (2, 16, 0, 8),
        (2, 16, 0, 10),
        (2, 16, 2, 8),
        (4, 4, 0, 4),
        (4, 20, 16, 4),
        (4, 16, 0, 8),
        (4, 16, 8, 8),
    ] {
        let root = ctx.memory(size)?;
        ctx.write(queue, root, 0, &vec![0xEE; size as usize])?;
        let to = direct(root, offset as u64, len as u64);
        run(ctx, queue, &ctx.list_of(0, &[fill(to, &pattern[..step])])?)?;
        let mut expected = vec![0xEE; size as usize];
        expected[offset..offset + len].copy_from_slice(&pattern[..step].repeat(len / step));
        same(&ctx.read_all(queue, root)?, &expected)?;
    }
    Ok(())
}

fn fill_classes(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(60_000)?);
    let mut expected = vec![0xEE; 60_000];
    ctx.write(queue, root, 0, &expected)?;
    let (mut list, mut next, pattern) = (ctx.list(0)?, 0, bytes_of(16, 9));
    for step in 1..=16 {
        for (phase, count) in [(0, 1), (1, 2), (2, 3), (3, 17), (5, 64)] {
            let (from, len) = (next + phase, step * count);
            ctx.record(&mut list, &fill(direct(root, from as u64, len as u64), &pattern[..step]))?;
            expected[from..from + len].copy_from_slice(&pattern[..step].repeat(count));
            next = (from + len + 3).next_multiple_of(8);
        }
    }
    list.end()?;
    run(ctx, queue, &list)?;
    same(&ctx.read_all(queue, root)?, &expected)
}

fn update(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(64)?, ctx.memory(100)?);
    ctx.write(queue, b, 0, &[0xEE; 100])?;
    let bytes = bytes_of(64, 3);
    let list = ctx.list_of(
        1,
        &[
            Command::Update { to: direct(a, 0, 64), bytes: &bytes },
            Command::Update { to: direct(b, 30, 20), bytes: &bytes[10..30] },
            Command::Update { to: bound(0, 2, 5), bytes: &bytes[..5] },
        ],
    )?;
    ctx.reach(point(ctx.execute(queue, &list, &[span(b, 60, 10)], &Around::NONE)?)?)?;
    let mut expected = vec![0xEE; 100];
    expected[30..50].copy_from_slice(&bytes[10..30]);
    expected[62..67].copy_from_slice(&bytes[..5]);
    same(&ctx.read_all(queue, a)?, &bytes)?;
    same(&ctx.read_all(queue, b)?, &expected)
}

fn update_64k(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(UPDATE_MAX as u64)?);
    let bytes = bytes_of(UPDATE_MAX, 3);
    let list =
        ctx.list_of(0, &[Command::Update { to: direct(root, 0, UPDATE_MAX as u64), bytes: &bytes }])?;
    run(ctx, queue, &list)?;
    same(&ctx.read_all(queue, root)?, &bytes)
}

fn update_captures(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(16)?);
    let (mut bytes, mut pattern) = (bytes_of(8, 3), [7]);
    let list = ctx.list_of(
        0,
        &[Command::Update { to: direct(root, 0, 8), bytes: &bytes }, fill(direct(root, 8, 8), &pattern)],
    )?;
    let expected = [&bytes[..], &[7; 8]].concat();
    bytes.fill(0);
    pattern.fill(0);
    run(ctx, queue, &list)?;
    same(&ctx.read_all(queue, root)?, &expected)
}

fn rapid(ctx: &Ctx, copy: bool) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(200)?, ctx.memory(200)?);
    let bytes = bytes_of(200, 11);
    ctx.write(queue, a, 0, &bytes)?;
    for n in 0..200 {
        let to = direct(b, n, 1);
        let list = if copy {
            ctx.list_of(0, &[Command::Copy { from: direct(a, n, 1), to }])?
        } else {
            ctx.list_of(0, &[fill(to, &bytes[n as usize..][..1])])?
        };
        ctx.execute(queue, &list, &[], &Around::NONE)?;
    }
    same(&ctx.read_all(queue, b)?, &bytes)
}

fn resubmits(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(200)?);
    let list = ctx.list_of(
        2,
        &[fill(bound(0, 0, 1), &[1]), Command::Copy { from: bound(0, 0, 1), to: bound(1, 0, 1) }],
    )?;
    for n in 0..100 {
        ctx.execute(queue, &list, &[span(root, n, 1), span(root, 100 + n, 1)], &Around::NONE)?;
        ctx.execute(queue, &list, &[span(root, n, 1), span(root, 199 - n, 1)], &Around::NONE)?;
    }
    same(&ctx.read_all(queue, root)?, &[1; 200])
}

fn large(ctx: &Ctx) -> Outcome {
    let (queue, root, done) = (ctx.in_order()?, ctx.memory(3000)?, ctx.new_timeline(0)?);
    let bytes = bytes_of(3000, 2);
    let mut list = ctx.list(0)?;
    for n in 0..3000 {
        ctx.record(&mut list, &fill(direct(root, n as u64, 1), &bytes[n..=n]))?;
    }
    list.end()?;
    ctx.execute(queue, &list, &[], &around(&[], &[at(done, 1)]))?;
    ctx.reach(at(done, 1))?;
    same(&ctx.read_all(queue, root)?, &bytes)
}

fn fill_then_copy(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(64)?, ctx.memory(64)?);
    let list = ctx.list_of(
        0,
        &[
            fill(direct(a, 0, 64), &[1, 2, 3, 4]),
            Command::Barrier,
            Command::Copy { from: direct(a, 0, 64), to: direct(b, 0, 64) },
            fill(direct(a, 0, 64), &[9]),
        ],
    )?;
    for _ in 0..3 {
        run(ctx, queue, &list)?;
        same(&ctx.read_all(queue, b)?, &[1, 2, 3, 4].repeat(16))?;
        same(&ctx.read_all(queue, a)?, &[9; 64])?;
    }
    Ok(())
}

fn short_lived(ctx: &Ctx) -> Outcome {
    let (queue, kept) = (ctx.in_order()?, ctx.memory(3)?);
    for n in 0..20u8 {
        let root = ctx.memory(33)?;
        let list = ctx.list_of(
            1,
            &[
                fill(bound(0, 0, 33), &[n]),
                fill(bound(0, 7, 4), &[n + 1, n + 2]),
                fill(bound(0, 32, 1), &[n + 3]),
                Command::Copy { from: bound(0, 6, 2), to: direct(kept, 0, 2) },
                Command::Update { to: bound(0, 0, 1), bytes: &[n + 4] },
                Command::Copy { from: bound(0, 32, 1), to: direct(kept, 2, 1) },
            ],
        )?;
        ctx.execute(queue, &list, &[span(root, 0, 33)], &Around::NONE)?;
        ctx.free(root)?;
        same(&ctx.read_all(queue, kept)?, &[n, n + 1, n + 3])?;
    }
    Ok(())
}

fn zero_access(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory_as(0, &Want { access: 0, ..want(16) })?);
    run(ctx, queue, &ctx.list_of(0, &[fill(direct(root, 0, 16), &[3])])?)?;
    same(&ctx.read_all(queue, root)?, &[3; 16])
}

fn keeps(ctx: &Ctx) -> Outcome {
    let (queue, root, out) = (ctx.in_order()?, ctx.allocate(0, &want(16))?, ctx.memory(16)?);
    let list = ctx.list_of(
        0,
        &[
            fill(direct(root, 0, 16), &[5]),
            Command::Copy { from: direct(root, 0, 16), to: direct(out, 0, 16) },
        ],
    )?;
    ctx.release(root)?;
    ensure!(ctx.allocation(root).is_ok(), "the list does not keep its memory");
    ctx.execute(queue, &list, &[], &Around::NONE)?;
    drop(list);
    ensure!(ctx.allocation(root).is_err(), "the memory is kept though the list is gone");
    same(&ctx.read_all(queue, out)?, &[5; 16])
}

fn freed(ctx: &Ctx) -> Outcome {
    let (queue, done) = (ctx.in_order()?, ctx.new_timeline(0)?);
    let (root, other) = (ctx.memory(16)?, ctx.memory(16)?);
    ctx.write(queue, other, 0, &[1; 16])?;
    let list = ctx.list_of(0, &[fill(direct(other, 0, 16), &[5]), fill(direct(root, 0, 16), &[5])])?;
    ctx.free(root)?;
    let signals = [at(done, 1)];
    let fault = refused(ctx.execute(queue, &list, &[], &around(&[], &signals)), Kind::InvalidHandle)?;
    ensure_eq!(ctx.query(done), Err(fault));
    same(&ctx.read_all(queue, other)?, &[1; 16])
}

fn direct_ranges(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(16)?;
    let mut list = ctx.list(0)?;
    for (offset, len) in [(0, 17), (16, 1), (17, 0), (u64::MAX, 2), (2, u64::MAX - 1)] {
        let to = direct(root, offset, len);
        refused(ctx.record(&mut list, &fill(to, &[1])), Kind::OutOfRange)?;
        refused(ctx.record(&mut list, &Command::Copy { from: to, to }), Kind::OutOfRange)?;
    }
    let update = Command::Update { to: direct(root, 12, 5), bytes: &[0; 5] };
    refused(ctx.record(&mut list, &update), Kind::OutOfRange)?;
    refused(ctx.record(&mut list, &fill(direct(Handle::NULL, 0, 0), &[1])), Kind::InvalidHandle)?;
    ensure_eq!(list.len(), 0);
    Ok(())
}

fn permissions(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let read_only = ctx.memory_as(0, &Want { access: Access::READ.bits(), ..want(16) })?;
    let no_transfer = ctx.memory_as(0, &Want { usage: Usage::DISPATCH.bits(), ..want(16) })?;
    let by_slot = ctx.list_of(1, &[fill(Ref::slot(0), &[1])])?;
    for root in [read_only, no_transfer] {
        let mut list = ctx.list(0)?;
        refused(ctx.record(&mut list, &fill(direct(root, 0, 16), &[1])), Kind::PermissionDenied)?;
        let bindings = [span(root, 0, 16)];
        refused(ctx.execute(queue, &by_slot, &bindings, &Around::NONE), Kind::PermissionDenied)?;
    }
    Ok(())
}

fn sizes(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(64)?);
    let mut list = ctx.list(2)?;
    let wrong = Kind::InvalidArgument;
    for (from, to) in [
        (direct(root, 0, 8), direct(root, 8, 9)),
        (direct(root, 0, 8), direct(root, 7, 8)),
        (bound(0, 0, 8), direct(root, 0, 9)),
    ] {
        refused(ctx.record(&mut list, &Command::Copy { from, to }), wrong)?;
    }
    refused(ctx.record(&mut list, &fill(direct(root, 0, 5), &[1, 2])), wrong)?;
    refused(ctx.record(&mut list, &fill(Ref::slot(0), &[])), wrong)?;
    let large = vec![0; UPDATE_MAX + 1];
    refused(ctx.record(&mut list, &Command::Update { to: Ref::slot(0), bytes: &large }), wrong)?;
    ctx.record(&mut list, &Command::Copy { from: Ref::slot(0), to: Ref::slot(1) })?;
    list.end()?;
    for (a, b) in [(span(root, 0, 8), span(root, 8, 9)), (span(root, 0, 8), span(root, 7, 8))] {
        refused(ctx.execute(queue, &list, &[a, b], &Around::NONE), wrong)?;
    }
    ctx.execute(queue, &list, &[span(root, 0, 8), span(root, 8, 8)], &Around::NONE)?;
    ctx.finish(queue)
}

fn slots(ctx: &Ctx) -> Outcome {
    for capacity in [0, 1, SLOTS_MAX] {
        let mut list = ctx.list(capacity)?;
        refused(ctx.record(&mut list, &fill(Ref::slot(capacity), &[1])), Kind::OutOfRange)?;
        if let Some(last) = capacity.checked_sub(1) {
            ctx.record(&mut list, &fill(Ref::slot(last), &[1]))?;
        }
        ensure_eq!(list.bindings(), capacity);
    }
    refused(ctx.list(1)?.begin(0, 1), Kind::FailedPrecondition)?;
    let mut list = CommandList::new(ctx.home(), ListRoom::growing());
    refused(list.begin(0, SLOTS_MAX + 1), Kind::InvalidArgument)?;
    Ok(())
}

fn bindings(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(64)?);
    let list = ctx.list_of(2, &[fill(bound(0, 0, 8), &[1]), fill(bound(1, 4, 4), &[2])])?;
    let (null, eight) = (span(Handle::NULL, 0, 0), span(root, 0, 8));
    ctx.write(queue, root, 0, &[0xEE; 64])?;
    for (bindings, kind) in [
        (&[][..], Kind::InvalidArgument),
        (&[eight], Kind::OutOfRange),
        (&[eight, null], Kind::InvalidArgument),
        (&[null, eight], Kind::InvalidArgument),
        (&[eight, span(root, 0, 7)], Kind::OutOfRange),
        (&[eight, span(root, 60, 8)], Kind::OutOfRange),
        (&[eight, span(root, u64::MAX, 8)], Kind::OutOfRange),
    ] {
        let done = ctx.new_timeline(0)?;
        let fault = refused(ctx.execute(queue, &list, bindings, &around(&[], &[at(done, 1)])), kind)?;
        ensure_eq!(ctx.query(done), Err(fault));
    }
    same(&ctx.read_all(queue, root)?, &[0xEE; 64])?;
    ctx.execute(queue, &list, &[eight, span(root, 56, 8), null], &Around::NONE)?;
    let expected = [&[1; 8][..], &[0xEE; 52], &[2; 4]].concat();
    same(&ctx.read_all(queue, root)?, &expected)
}

fn whole_binding(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(16)?);
    ctx.write(queue, root, 0, &[0xEE; 16])?;
    let list = ctx.list_of(2, &[fill(bound(0, 3, 4), &[1]), fill(bound(1, 2, WHOLE), &[2])])?;
    ctx.execute(queue, &list, &[span(root, 0, WHOLE), span(root, 10, WHOLE)], &Around::NONE)?;
    let expected = [&[0xEE; 3][..], &[1; 4], &[0xEE; 5], &[2; 4]].concat();
    same(&ctx.read_all(queue, root)?, &expected)?;
    let short = [span(root, 13, WHOLE), span(root, 0, WHOLE)];
    refused(ctx.execute(queue, &list, &short, &Around::NONE), Kind::OutOfRange)?;
    let past = [span(root, 0, WHOLE), span(root, 17, WHOLE)];
    refused(ctx.execute(queue, &list, &past, &Around::NONE), Kind::OutOfRange)?;
    Ok(())
}

fn different(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    let list = ctx.list_of(
        2,
        &[fill(Ref::slot(0), &[1, 2]), Command::Copy { from: bound(0, 2, 4), to: bound(1, 1, 4) }],
    )?;
    let roots = [ctx.memory(8)?, ctx.memory(8)?, ctx.memory(8)?];
    for root in roots {
        ctx.write(queue, root, 0, &[0; 8])?;
    }
    ctx.execute(queue, &list, &[span(roots[0], 0, 8), span(roots[1], 0, 8)], &Around::NONE)?;
    ctx.execute(queue, &list, &[span(roots[2], 0, 8), span(roots[1], 3, 5)], &Around::NONE)?;
    same(&ctx.read_all(queue, roots[0])?, &[1, 2, 1, 2, 1, 2, 1, 2])?;
    same(&ctx.read_all(queue, roots[1])?, &[0, 1, 2, 1, 1, 2, 1, 2])?;
    same(&ctx.read_all(queue, roots[2])?, &[1, 2, 1, 2, 1, 2, 1, 2])
}

fn mixed(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(8)?, ctx.memory(8)?);
    ctx.write(queue, a, 0, &[1, 2, 3, 4, 5, 6, 7, 8])?;
    let list = ctx.list_of(
        1,
        &[
            Command::Copy { from: direct(a, 0, 4), to: bound(0, 4, 4) },
            Command::Copy { from: bound(0, 4, 4), to: direct(a, 4, 4) },
        ],
    )?;
    ctx.execute(queue, &list, &[span(b, 0, 8)], &Around::NONE)?;
    same(&ctx.read_all(queue, a)?, &[1, 2, 3, 4, 1, 2, 3, 4])?;
    same(&ctx.read_all(queue, b)?[4..], &[1, 2, 3, 4])?;
    let over = [span(a, 0, 8)];
    ctx.execute(
        queue,
        &ctx.list_of(1, &[Command::Copy { from: direct(a, 0, 4), to: bound(0, 4, 4) }])?,
        &over,
        &Around::NONE,
    )?;
    refused(
        ctx.execute(
            queue,
            &ctx.list_of(1, &[Command::Copy { from: direct(a, 0, 4), to: bound(0, 3, 4) }])?,
            &over,
            &Around::NONE,
        ),
        Kind::InvalidArgument,
    )?;
    ctx.finish(queue)
}

fn copied(ctx: &Ctx) -> Outcome {
    let (queue, root, gate) = (ctx.in_order()?, ctx.memory(8)?, ctx.new_timeline(0)?);
    ctx.write(queue, root, 0, &[0; 8])?;
    let list = ctx.list_of(1, &[fill(bound(0, 0, 2), &[1]), fill(bound(0, 2, 2), &[2])])?;
    let mut table = [span(root, 0, 4)];
    let end = point(ctx.execute(queue, &list, &table, &around(&[at(gate, 1)], &[]))?)?;
    table[0] = span(root, 4, 4);
    drop(list);
    ctx.ahead(end)?;
    ctx.signal(gate, 1)?;
    ctx.reach(end)?;
    same(&ctx.read_all(queue, root)?, &[1, 1, 2, 2, 0, 0, 0, 0])?;
    ensure_eq!(table[0].offset, 4);
    Ok(())
}

fn bound_waits(ctx: &Ctx) -> Outcome {
    let (queue, root, out, gate) = (ctx.in_order()?, ctx.memory(8)?, ctx.memory(8)?, ctx.new_timeline(0)?);
    let list =
        ctx.list_of(2, &[fill(Ref::slot(0), &[6]), Command::Copy { from: Ref::slot(0), to: Ref::slot(1) }])?;
    let table = [span(root, 0, 8), span(out, 0, 8)];
    ctx.execute(queue, &list, &table, &around(&[at(gate, 1)], &[]))?;
    ctx.free(root)?;
    ensure!(ctx.allocation(root).is_err() && ctx.is_late(root), "expected the memory to be late");
    ctx.signal(gate, 1)?;
    same(&ctx.read_all(queue, out)?, &[6; 8])
}

fn in_order(ctx: &Ctx) -> Outcome {
    let (queue, a, b) = (ctx.in_order()?, ctx.memory(8)?, ctx.memory(8)?);
    let list = ctx.list_of(
        0,
        &[Command::Copy { from: direct(a, 0, 8), to: direct(b, 0, 8) }, fill(direct(a, 0, 4), &[2])],
    )?;
    for n in 0..10u8 {
        ctx.fill(queue, &ctx.whole(a)?, &[n], &Around::NONE)?;
        let end = point(ctx.execute(queue, &list, &[], &Around::NONE)?)?;
        ctx.fill(queue, &span(a, 2, 6), &[n + 100], &Around::NONE)?;
        ctx.reach(end)?;
        same(&ctx.read_all(queue, b)?, &[n; 8])?;
        same(&ctx.read_all(queue, a)?, &[&[2, 2][..], &[n + 100; 6]].concat())?;
    }
    Ok(())
}

fn waits(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.in_order()?, ctx.memory(8)?);
    let gates = [ctx.new_timeline(0)?, ctx.new_timeline(0)?];
    let done = [ctx.new_timeline(0)?, ctx.new_timeline(0)?];
    let list = ctx.list_of(0, &[fill(direct(root, 0, 8), &[1]), fill(direct(root, 0, 4), &[2])])?;
    let (waits, signals) = (gates.map(|gate| at(gate, 1)), done.map(|done| at(done, 1)));
    let end = point(ctx.execute(queue, &list, &[], &around(&waits, &signals))?)?;
    for gate in gates {
        ctx.ahead(end)?;
        ctx.ahead(signals[0])?;
        ctx.signal(gate, 1)?;
    }
    ctx.wait_all(&signals, ctx.soon())?;
    ensure_eq!(ctx.look(end), Ok(Look::Reached));
    same(&ctx.read_all(queue, root)?, &[2, 2, 2, 2, 1, 1, 1, 1])
}

fn failed_wait(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(8)?;
    let list = ctx.list_of(0, &[fill(direct(root, 0, 8), &[1]), fill(direct(root, 0, 4), &[2])])?;
    let cause = Fault::caller(Kind::Cancelled, Site::Signal, Why::Entry, [4, 0]);
    let reader = ctx.in_order()?;
    ctx.write(reader, root, 0, &[0; 8])?;
    for early in [true, false] {
        let (queue, gate, done) = (ctx.free_order()?, ctx.new_timeline(0)?, ctx.new_timeline(0)?);
        if early {
            ctx.fail(gate, &cause)?;
        }
        ctx.execute(queue, &list, &[], &around(&[at(gate, 1)], &[at(done, 1)]))?;
        if !early {
            ctx.fail(gate, &cause)?;
        }
        ensure_eq!(ctx.wait(at(done, 1), ctx.soon()), Err(cause));
        ctx.close(queue)?;
    }
    same(&ctx.read_all(reader, root)?, &[0; 8])?;
    let gate = ctx.new_timeline(0)?;
    ctx.fail(gate, &cause)?;
    let end = point(ctx.execute(reader, &list, &[], &around(&[at(gate, 1)], &[]))?)?;
    ensure_eq!(ctx.wait(end, ctx.soon()), Err(cause));
    Ok(())
}

fn free_order(ctx: &Ctx) -> Outcome {
    let (queue, root) = (ctx.free_order()?, ctx.memory(8)?);
    let (gate, first, second) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    let mut list = ctx.list(1)?;
    for n in 1..=20 {
        ctx.record(&mut list, &fill(Ref::slot(0), &[n]))?;
    }
    list.end()?;
    ensure_eq!(
        ctx.execute(queue, &list, &[span(root, 0, 4)], &around(&[at(gate, 1)], &[at(first, 1)])),
        Ok(None)
    );
    ctx.execute(queue, &list, &[span(root, 4, 4)], &around(&[], &[at(second, 1)]))?;
    ctx.reach(at(second, 1))?;
    ctx.ahead(at(first, 1))?;
    ctx.signal(gate, 1)?;
    ctx.reach(at(first, 1))?;
    let reader = ctx.in_order()?;
    same(&ctx.read_all(reader, root)?, &[20; 8])
}

fn chained(ctx: &Ctx) -> Outcome {
    let (queues, root) = ([ctx.in_order()?, ctx.in_order()?], ctx.memory(65)?);
    ctx.write(queues[0], root, 0, &[7; 65])?;
    let list = ctx.list_of(2, &[Command::Copy { from: Ref::slot(0), to: Ref::slot(1) }])?;
    let mut last = Vec::new();
    ctx.fill(queues[0], &span(root, 0, 1), &[9], &Around::NONE)?;
    ctx.finish(queues[0])?;
    for n in 0..64 {
        let table = [span(root, n, 1), span(root, n + 1, 1)];
        let queue = queues[n as usize % 2];
        last = vec![point(ctx.execute(queue, &list, &table, &around(&last, &[]))?)?];
    }
    ctx.reach(last[0])?;
    same(&ctx.read_all(queues[0], root)?, &[9; 65])
}

fn other_device(ctx: &Ctx) -> Outcome {
    let (queue, done) = (ctx.queue_on(1, QueueOptions::default())?, ctx.new_timeline(0)?);
    let list = ctx.list_of(0, &[])?;
    let signals = [at(done, 1)];
    refused(ctx.execute(queue, &list, &[], &around(&[], &signals)), Kind::InvalidDevice)?;
    ctx.fails(at(done, 1), Kind::InvalidDevice)?;
    Ok(())
}

fn threads(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(64)?;
    let list = ctx.list_of(1, &[fill(bound(0, 0, 4), &[1]), fill(bound(0, 4, 4), &[2])])?;
    let queues = (0..8).map(|_| ctx.in_order()).collect::<Outcome<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let submit = |n: u64, queue| {
            let list = &list;
            move || -> Outcome {
                for _ in 0..50 {
                    ctx.execute(queue, list, &[span(root, n * 8, 8)], &Around::NONE)?;
                }
                ctx.finish(queue)
            }
        };
        let all: Vec<_> = (0..).zip(&queues).map(|(n, queue)| scope.spawn(submit(n, *queue))).collect();
        all.into_iter().try_for_each(|one| {
            one.join().unwrap_or_else(|_| Err(crate::case::Fail::new("a thread panicked")))
        })
    })?;
    same(&ctx.read_all(queues[0], root)?, &[1, 1, 1, 1, 2, 2, 2, 2].repeat(8))
}
