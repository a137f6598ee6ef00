//! Batches: load and gather into device memory, scatter out of it.

use super::cases;
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, at, span},
    ensure, ensure_eq,
    host::Host,
    need::Need::*,
    rig::{Entry, PiecesOf},
};
use wharf_core::{
    batch::{Direction, Stored, Target},
    bits::Access,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    record::Record,
    runtime::Around,
};

cases! {
    "batch.gather", [], "entries of many sizes arrive in their places, nothing beside them changes (design 3.7)" => gather;
    "batch.gather_on_several_queues", [Lanes(2)], "two queues carry one batch (design 3.7)" => several;
    "batch.scatter", [], "bytes go from the buffer into the parameters (iree 2.1 scatter)" => scatter;
    "batch.round_trip", [], "scatter then gather gives the same bytes (iree 2.1)" => round_trip;
    "batch.large", [Memory(16 << 20)], "6 MiB in one entry are cut and arrive whole (design 3.7)" => large;
    "batch.splats", [], "splats of 1, 2, 4, 8 and 16 bytes, every phase, ragged ends (design 3.7)" => splats;
    "batch.long_splat", [], "a splat longer than a chunk keeps its phase (design 3.7)" => long_splat;
    "batch.empty_entries", [], "entries of length 0 and no entries at all just signal (iree 2.1 count 0)" => empty;
    "batch.waits_first", [], "nothing is written before the wait is reached (design 3.7)" => waits;
    "batch.failed_wait", [], "a failed wait fails the signals, nothing is written (iree 1.4)" => failed_wait;
    "batch.missing_last_entry_writes_nothing", [], "phase one finds a missing entry before anything is written (design 3.7)" => missing;
    "batch.overlapping_targets_are_refused", [], "two entries that write the same byte are InvalidArgument (design 3.7)" => overlap;
    "batch.ranges_are_checked", [], "entries past the parameter or the buffer are OutOfRange, also by overflow (iree 2.2)" => ranges;
    "batch.access_is_checked", [], "scatter into read-only parameters and splats is PermissionDenied (iree 2.2)" => access;
    "batch.read_only_buffer_is_refused", [], "a gather into memory that may not be written fails with PermissionDenied and writes nothing (iree 2.2)" => read_only;
    "batch.progress", [], "progress ends at all bytes (design 3.7)" => progress;
    "batch.cancel_before_it_begins", [], "cancelled, the signals fail with Cancelled and nothing is written (design 3.7)" => cancel;
    "batch.cancel_under_way", [Memory(16 << 20)], "cancelled under way it ends soon, and nothing writes after its signals (design 3.7)" => cancel_under_way;
    "batch.two_at_once", [], "two batches on one queue both end right (design 3.7)" => two;
}

fn bytes_of(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(13).wrapping_add((i >> 7) as u8) ^ seed).collect()
}

fn memory(host: Host, access: Access) -> Stored {
    Stored::Memory { address: host.address(), len: host.len(), access }
}

fn splat(pattern: &[u8], len: u64) -> Stored {
    let mut all = [0; 16];
    all[..pattern.len()].copy_from_slice(pattern);
    Stored::Splat { pattern: all, pattern_len: pattern.len() as u8, len }
}

fn pieces(ctx: &Ctx, root: Handle<Record>, entries: Vec<Entry>, direction: Direction) -> Outcome<PiecesOf> {
    let target = Target { root, offset: 0, len: ctx.allocation(root)?.len };
    Ok(PiecesOf { entries, target, direction, missing: None })
}

/// Runs a batch to its end on new queues.
fn run(ctx: &Ctx, pieces: PiecesOf, lanes: usize) -> Outcome {
    let direction = pieces.direction;
    let queues: Vec<_> = (0..lanes).map(|_| ctx.in_order()).collect::<Outcome<_>>()?;
    let done = ctx.new_timeline(0)?;
    let total: u64 = pieces.entries.iter().map(|entry| entry.2).sum();
    let batch = ctx.batch(pieces, direction, &queues, &[], &[at(done, 1)])?;
    ctx.reach(at(done, 1))?;
    ensure_eq!(batch.progress(), (total, total));
    for queue in queues {
        ctx.close(queue)?;
    }
    ctx.until("room for queues", || ctx.poll() == wharf_core::runtime::Next::Idle)
}

fn fill(ctx: &Ctx, root: Handle<Record>, byte: u8) -> Outcome {
    let queue = ctx.in_order()?;
    ctx.fill(queue, &ctx.whole(root)?, &[byte], &Around::NONE)?;
    ctx.finish(queue)?;
    close(ctx, queue)
}

fn close(ctx: &Ctx, queue: crate::rig::Queue) -> Outcome {
    ctx.close(queue)?;
    ctx.until("room for a queue", || ctx.poll() == wharf_core::runtime::Next::Idle)
}

fn check(ctx: &Ctx, root: Handle<Record>, expected: &[u8]) -> Outcome {
    let queue = ctx.in_order()?;
    same(&ctx.read_all(queue, root)?, expected)?;
    close(ctx, queue)
}

/// Entries with gaps between them, some shuffled, some neighbours, and what the buffer must hold then.
fn spread(source: Host, stored: Stored) -> (Vec<Entry>, Vec<u8>) {
    let spans = [
        (0u64, 7u64, 100u64),
        (100, 107, 50),
        (1000, 3000, 1),
        (500, 1000, 333),
        (4000, 5000, 4000),
        (0, 200, 0),
    ];
    let bytes = source.bytes();
    let mut expected = vec![0xEE; 10_000];
    for (from, to, len) in spans {
        expected[to as usize..(to + len) as usize]
            .copy_from_slice(&bytes[from as usize..(from + len) as usize]);
    }
    (spans.map(|(from, to, len)| (from, to, len, stored)).to_vec(), expected)
}

fn gather_on(ctx: &Ctx, lanes: usize) -> Outcome {
    let root = ctx.memory(10_000)?;
    fill(ctx, root, 0xEE)?;
    let source = ctx.host_of(&bytes_of(8000, 1));
    let (entries, expected) = spread(source, memory(source, Access::READ));
    run(ctx, pieces(ctx, root, entries, Direction::In)?, lanes)?;
    check(ctx, root, &expected)
}

fn gather(ctx: &Ctx) -> Outcome {
    gather_on(ctx, 1)
}

fn several(ctx: &Ctx) -> Outcome {
    gather_on(ctx, 2)
}

fn scatter(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(300)?;
    let bytes = bytes_of(300, 2);
    let queue = ctx.in_order()?;
    ctx.write(queue, root, 0, &bytes)?;
    close(ctx, queue)?;
    let into = ctx.host_of(&[0x11; 500]);
    let stored = memory(into, Access::READ | Access::WRITE);
    let entries = vec![(10, 0, 100, stored), (200, 150, 77, stored), (400, 299, 1, stored)];
    run(ctx, pieces(ctx, root, entries, Direction::Out)?, 1)?;
    let mut expected = vec![0x11; 500];
    expected[10..110].copy_from_slice(&bytes[..100]);
    expected[200..277].copy_from_slice(&bytes[150..227]);
    expected[400] = bytes[299];
    same(&into.bytes(), &expected)
}

fn round_trip(ctx: &Ctx) -> Outcome {
    let (a, b) = (ctx.memory(5000)?, ctx.memory(5000)?);
    let bytes = bytes_of(5000, 3);
    let queue = ctx.in_order()?;
    ctx.write(queue, a, 0, &bytes)?;
    close(ctx, queue)?;
    let between = ctx.host(5000);
    let entries: Vec<_> = (0..10).map(|n| (n * 500, n * 500, 500, memory(between, Access::ALL))).collect();
    run(ctx, pieces(ctx, a, entries.clone(), Direction::Out)?, 1)?;
    run(ctx, pieces(ctx, b, entries, Direction::In)?, 1)?;
    check(ctx, b, &bytes)
}

fn large(ctx: &Ctx) -> Outcome {
    let len = (6 << 20) + 5;
    let root = ctx.memory(len)?;
    let bytes = bytes_of(len as usize, 4);
    let source = ctx.host_of(&bytes);
    run(ctx, pieces(ctx, root, vec![(0, 0, len, memory(source, Access::READ))], Direction::In)?, 1)?;
    check(ctx, root, &bytes)
}

fn splats(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(4000)?;
    let pattern: Vec<u8> = (1..=16).collect();
    for width in [1usize, 2, 4, 8, 16] {
        fill(ctx, root, 0xEE)?;
        let (mut entries, mut expected, mut to) = (Vec::new(), vec![0xEE; 4000], 3usize);
        for phase in 0..width {
            for len in [0usize, 1, 3, 15, 16, 17, 33] {
                entries.push((phase as u64, to as u64, len as u64, splat(&pattern[..width], 400)));
                (0..len).for_each(|i| expected[to + i] = pattern[(phase + i) % width]);
                to += len + 5;
            }
        }
        run(ctx, pieces(ctx, root, entries, Direction::In)?, 1)?;
        check(ctx, root, &expected)?;
    }
    Ok(())
}

fn long_splat(ctx: &Ctx) -> Outcome {
    let len = 300_007u64;
    let root = ctx.memory(len)?;
    let pattern: Vec<u8> = (1..=16).collect();
    run(ctx, pieces(ctx, root, vec![(5, 0, len, splat(&pattern, len + 5))], Direction::In)?, 1)?;
    check(ctx, root, &(0..len as usize).map(|i| pattern[(5 + i) % 16]).collect::<Vec<_>>())
}

fn empty(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(64)?;
    fill(ctx, root, 0xEE)?;
    run(ctx, pieces(ctx, root, Vec::new(), Direction::In)?, 1)?;
    let source = ctx.host(16);
    let stored = memory(source, Access::READ);
    run(ctx, pieces(ctx, root, vec![(0, 0, 0, stored), (16, 64, 0, stored)], Direction::In)?, 1)?;
    check(ctx, root, &[0xEE; 64])
}

fn waits(ctx: &Ctx) -> Outcome {
    let (root, queue) = (ctx.memory(64)?, ctx.in_order()?);
    let (gate, done) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    ctx.fill(queue, &ctx.whole(root)?, &[0xEE], &Around::NONE)?;
    let source = ctx.host_of(&[5; 64]);
    let all = pieces(ctx, root, vec![(0, 0, 64, memory(source, Access::READ))], Direction::In)?;
    let batch = ctx.batch(all, Direction::In, &[queue], &[at(gate, 1)], &[at(done, 1)])?;
    ctx.ahead(at(done, 1))?;
    same(&ctx.read_all(queue, root)?, &[0xEE; 64])?;
    ensure_eq!(batch.progress(), (0, 64));
    ctx.signal(gate, 1)?;
    ctx.reach(at(done, 1))?;
    same(&ctx.read_all(queue, root)?, &[5; 64])
}

fn failed_wait(ctx: &Ctx) -> Outcome {
    let (root, queue) = (ctx.memory(64)?, ctx.in_order()?);
    let (gate, done) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    ctx.fill(queue, &ctx.whole(root)?, &[0xEE], &Around::NONE)?;
    let all = pieces(ctx, root, vec![(0, 0, 64, splat(&[1], 64))], Direction::In)?;
    ctx.batch(all, Direction::In, &[queue], &[at(gate, 1)], &[at(done, 1)])?;
    let cause = Fault::caller(Kind::Io, Site::Read, Why::Entry, [3, 0]);
    ctx.fail(gate, &cause)?;
    ensure_eq!(ctx.wait(at(done, 1), ctx.soon()), Err(cause));
    same(&ctx.read_all(queue, root)?, &[0xEE; 64])
}

fn missing(ctx: &Ctx) -> Outcome {
    let (root, queue, done) = (ctx.memory(64)?, ctx.in_order()?, ctx.new_timeline(0)?);
    ctx.fill(queue, &ctx.whole(root)?, &[0xEE], &Around::NONE)?;
    let entries = (0..8).map(|n| (0, n * 8, 8, splat(&[1], 64))).collect();
    let mut all = pieces(ctx, root, entries, Direction::In)?;
    all.missing = Some(7);
    let fault =
        refused(ctx.batch(all, Direction::In, &[queue], &[], &[at(done, 1)]).map(drop), Kind::NotFound)?;
    ensure_eq!(fault.values[0], 7);
    ensure_eq!(ctx.query(done), Ok(0));
    same(&ctx.read_all(queue, root)?, &[0xEE; 64])
}

fn overlap(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(1000)?;
    let of = |spans: &[(u64, u64)]| {
        let entries = spans.iter().map(|(to, len)| (0, *to, *len, splat(&[1], 1000))).collect();
        pieces(ctx, root, entries, Direction::In)
    };
    for spans in [&[(0, 10), (10, 10), (20, 5)][..], &[(20, 10), (0, 20)], &[(20, 10), (25, 0)]] {
        ctx.check(&of(spans)?, Direction::In)?;
    }
    for spans in
        [&[(0, 11), (10, 10)][..], &[(10, 10), (0, 11)], &[(500, 10), (0, 10), (505, 1)], &[(7, 1), (7, 1)]]
    {
        refused(ctx.check(&of(spans)?, Direction::In), Kind::InvalidArgument)?;
    }
    Ok(())
}

fn ranges(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(100)?;
    let source = ctx.host(64);
    for (from, to, len) in [
        (1, 0, 64),
        (0, 37, 64),
        (u64::MAX, 0, 2),
        (0, u64::MAX, 2),
        (65, 0, 0),
        (0, 101, 0),
        (1, 0, u64::MAX),
    ] {
        let all = pieces(ctx, root, vec![(from, to, len, memory(source, Access::READ))], Direction::In)?;
        refused(ctx.check(&all, Direction::In), Kind::OutOfRange)?;
    }
    Ok(())
}

fn access(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(64)?;
    for stored in [memory(ctx.host(64), Access::READ), splat(&[1, 2], 64)] {
        let all = pieces(ctx, root, vec![(0, 0, 8, stored)], Direction::Out)?;
        refused(ctx.check(&all, Direction::Out), Kind::PermissionDenied)?;
    }
    let all = pieces(ctx, root, vec![(0, 0, 8, memory(ctx.host(64), Access::WRITE))], Direction::In)?;
    refused(ctx.check(&all, Direction::In), Kind::PermissionDenied)?;
    Ok(())
}

fn read_only(ctx: &Ctx) -> Outcome {
    let asked = wharf_core::device::Want { access: Access::READ.bits(), ..crate::ctx::want(64) };
    let (root, queue, done) = (ctx.memory_as(0, &asked)?, ctx.in_order()?, ctx.new_timeline(0)?);
    let all = pieces(ctx, root, vec![(0, 0, 64, splat(&[1], 64))], Direction::In)?;
    match ctx.batch(all, Direction::In, &[queue], &[], &[at(done, 1)]) {
        Err(fault) => ensure_eq!(fault.kind, Kind::PermissionDenied),
        Ok(_) => drop(ctx.fails(at(done, 1), Kind::PermissionDenied)?),
    }
    ctx.finish(queue)
}

fn progress(ctx: &Ctx) -> Outcome {
    let root = ctx.memory(1000)?;
    let entries = (0..10).map(|n| (0, n * 100, 100, splat(&[n as u8], 100))).collect();
    run(ctx, pieces(ctx, root, entries, Direction::In)?, 1)
}

fn cancel(ctx: &Ctx) -> Outcome {
    let (root, queue) = (ctx.memory(64)?, ctx.in_order()?);
    let (gate, done) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    ctx.fill(queue, &ctx.whole(root)?, &[0xEE], &Around::NONE)?;
    let all = pieces(ctx, root, vec![(0, 0, 64, splat(&[1], 64))], Direction::In)?;
    let batch = ctx.batch(all, Direction::In, &[queue], &[at(gate, 1)], &[at(done, 1)])?;
    batch.cancel();
    // The switch rings no bell: whoever cancels moves the pump.
    ctx.poll();
    ctx.fails(at(done, 1), Kind::Cancelled)?;
    same(&ctx.read_all(queue, root)?, &[0xEE; 64])
}

fn cancel_under_way(ctx: &Ctx) -> Outcome {
    let (root, queue, done) = (ctx.memory(6 << 20)?, ctx.in_order()?, ctx.new_timeline(0)?);
    let source = ctx.host(6 << 20);
    let all = pieces(ctx, root, vec![(0, 0, 6 << 20, memory(source, Access::READ))], Direction::In)?;
    let batch = ctx.batch(all, Direction::In, &[queue], &[], &[at(done, 1)])?;
    batch.cancel();
    ctx.poll();
    match ctx.wait(at(done, 1), ctx.soon()) {
        Ok(()) => ensure_eq!(batch.progress().0, 6 << 20),
        Err(fault) => ensure_eq!(fault.kind, Kind::Cancelled),
    }
    // What is written now stays: nothing of the batch is under way.
    ctx.fill(queue, &span(root, 0, 4096), &[9], &Around::NONE)?;
    let bytes = ctx.read_all(queue, root)?;
    ensure!(bytes[..4096].iter().all(|byte| *byte == 9), "something wrote after the batch had ended");
    Ok(())
}

fn two(ctx: &Ctx) -> Outcome {
    let (root, queue) = (ctx.memory(200_000)?, ctx.in_order()?);
    let done = [ctx.new_timeline(0)?, ctx.new_timeline(0)?];
    for (n, done) in (0..).zip(done) {
        let all = pieces(
            ctx,
            root,
            vec![(0, n * 100_000, 100_000, splat(&[n as u8 + 1], 100_000))],
            Direction::In,
        )?;
        ctx.batch(all, Direction::In, &[queue], &[], &[at(done, 1)])?;
    }
    ctx.wait_all(&done.map(|done| at(done, 1)), ctx.soon())?;
    same(&ctx.read_all(queue, root)?, &[vec![1; 100_000], vec![2; 100_000]].concat())
}
