//! Allocation: sizes, kinds, alignments, addresses, free.

use super::cases;
use crate::{
    case::{Fail, Outcome, refused, same},
    ctx::{Ctx, span, want},
    ensure, ensure_eq,
    need::Need::*,
};
use std::{collections::BTreeMap, thread};
use wharf_core::{
    bits::{Access, MemoryType, Usage},
    device::Want,
    fault::Kind,
    handle::Handle,
    runtime::Around,
};

cases! {
    "memory.many_sizes_do_not_overlap", [], "blocks of 1 byte to 1 MiB are disjoint and as long as asked (liboffload olMemAlloc AllocMany)" => many_sizes;
    "memory.many_at_once", [], "as many as the device has room for, up to 999, live at once; all are freed (liboffload olMemAlloc AllocMany)" => many_at_once;
    "memory.many_of_every_kind", [], "blocks of three kinds and many sizes in turn live at once, disjoint, and are freed (liboffload olMemAlloc AllocMany)" => many_of_every_kind;
    "memory.found_in_every_kind", [], "base and base + 123 answer device, base, length and kind, for memory of each kind (liboffload olMemGetInfo device, managed, host)" => found_in_every_kind;
    "memory.length_zero_among_others", [], "blocks of 1 and 0 bytes freed in every order, 500 times: none frees or hides another (report M3)" => zero_among_others;
    "memory.every_kind", [], "device, host-visible and cached memory, or a clear refusal (liboffload olMemAlloc types)" => every_kind;
    "memory.zero_bits_are_filled_in", [], "zero kind, access and usage mean device-local, all access, transfer and dispatch (iree 1.1)" => zero_bits;
    "memory.length_zero_has_no_address", [], "length 0: a valid handle without address that aliases nothing (decisions, allocation of size 0)" => length_zero;
    "memory.alignments_8_to_4096", [], "an alignment that is a power of two is kept (liboffload olMemAllocAligned)" => alignments;
    "memory.alignment_not_a_power_is_refused", [], "alignments 3, 12, 100 are InvalidArgument (liboffload olMemAllocAligned NotPow2)" => alignment_refused;
    "memory.alignment_too_large_is_refused", [], "alignments above 2^30 are InvalidArgument (core memory)" => alignment_too_large;
    "memory.aligned_blocks_hold_bytes", [], "sizes by alignments, written and read back (liboffload olMemAllocAligned)" => aligned_bytes;
    "memory.too_much_is_refused", [], "2^60 bytes are ResourceExhausted (iree 1.2)" => too_much;
    "memory.no_such_device", [], "a device past the last is InvalidDevice (liboffload INVALID_DEVICE)" => no_such_device;
    "memory.found_by_interior_address", [], "base, interior and last byte answer the allocation (liboffload olGetMemInfo base+123)" => found_interior;
    "memory.not_found_outside", [], "addresses before, behind and 0x1234 are NotFound (liboffload olGetMemInfo NotFound)" => not_found;
    "memory.not_found_after_free", [], "a freed address is NotFound, its handle stale (liboffload 4 row 9)" => not_found_after_free;
    "memory.found_by_device_and_address", [TwoDevices], "an address is exact with its device; alone it is refused if two spaces have it (decisions, addresses)" => found_on_device;
    "memory.info_tells_what_was_asked", [], "length, device, access and usage are those of the request (liboffload olGetMemInfo)" => info;
    "memory.listed_in_order", [], "live memory is listed by address, freed memory is not (design 3.4)" => listed;
    "memory.free_twice_is_refused", [], "the second free is InvalidHandle (liboffload 4 row 12)" => free_twice;
    "memory.null_and_foreign_handles_are_refused", [], "handle 0, a random one and one of another kind are InvalidHandle (design 3.3)" => foreign_handles;
    "memory.references_keep_it", [], "memory goes with its last reference (iree 1.1)" => references;
    "memory.a_stale_handle_stays_stale", [], "a slot used again does not answer for its old handle (design 3.3)" => stale_stays;
    "memory.threads_allocate_and_free", [], "20 threads allocate and free without loss (liboffload issue: table corrupted by threads)" => threads;
    "memory.full_then_room_again", [], "after refusals for lack of room a free makes room (iree 1.2)" => full_then_room;
}

fn many_sizes(ctx: &Ctx) -> Outcome {
    let mut all = BTreeMap::new();
    for (i, len) in
        [1u64, 2, 3, 7, 8, 63, 64, 65, 1000, 4095, 4096, 4097, 65_537, 1 << 20].into_iter().enumerate()
    {
        let record = ctx.memory(len)?;
        let known = ctx.allocation(record)?;
        ensure_eq!(known.len, len);
        ensure!(known.base != 0, "allocation {i} of {len} bytes has address 0");
        all.insert(known.base, len);
    }
    disjoint(&all)
}

fn disjoint(all: &BTreeMap<u64, u64>) -> Outcome {
    let mut end = 0;
    for (base, len) in all {
        ensure!(*base >= end, "block at {base:#x} begins before {end:#x}, the end of the one before");
        end = base + len;
    }
    Ok(())
}

fn many_at_once(ctx: &Ctx) -> Outcome {
    let (mut all, mut count) = (BTreeMap::new(), 0u64);
    while count < 999 {
        match ctx.allocate(0, &want(1024 * (count % 7 + 1))) {
            Ok(record) => {
                let known = ctx.allocation(ctx.note(record))?;
                all.insert(known.base, known.len);
            }
            Err(fault) => {
                ensure_eq!(fault.kind, Kind::ResourceExhausted);
                break;
            }
        }
        count += 1;
    }
    ensure!(count >= 32, "expected room for 32 blocks, got {count}");
    ensure_eq!(all.len() as u64, count);
    disjoint(&all)
}

fn every_kind(ctx: &Ctx) -> Outcome {
    let kinds = [
        MemoryType::DEVICE_VISIBLE,
        MemoryType::DEVICE_LOCAL,
        MemoryType::DEVICE_LOCAL | MemoryType::TRANSIENT,
        MemoryType::DEVICE_LOCAL | MemoryType::HOST_VISIBLE,
        MemoryType::DEVICE_VISIBLE | MemoryType::HOST_VISIBLE | MemoryType::HOST_CACHED,
    ];
    for kind in kinds {
        match ctx.allocate(0, &Want { kind: kind.bits(), ..want(1024) }) {
            Ok(record) => {
                let known = ctx.allocation(ctx.note(record))?;
                ensure!(known.kind.contains(kind), "expected at least {kind:?}, got {:?}", known.kind);
                ensure_eq!(known.len, 1024);
                ctx.free(record)?;
            }
            Err(fault) => ensure_eq!(fault.kind, Kind::Unsupported, "{kind:?}"),
        }
    }
    Ok(())
}

/// Device, managed and host memory, where the device has them.
fn kinds() -> [MemoryType; 3] {
    [
        MemoryType::DEVICE_LOCAL,
        MemoryType::HOST_LOCAL | MemoryType::DEVICE_LOCAL,
        MemoryType::HOST_LOCAL | MemoryType::DEVICE_VISIBLE,
    ]
}

fn many_of_every_kind(ctx: &Ctx) -> Outcome {
    let (mut all, mut records) = (BTreeMap::new(), Vec::new());
    for n in 1..=90u64 {
        let kind = kinds()[n as usize % 3];
        match ctx.allocate(0, &Want { kind: kind.bits(), ..want(1024 * (n % 40 + 1)) }) {
            Ok(record) => {
                let known = ctx.allocation(record)?;
                ensure!(known.kind.contains(kind), "expected at least {kind:?}, got {:?}", known.kind);
                all.insert(known.base, known.len);
                records.push(record);
            }
            Err(fault) => {
                let refusals = [Kind::ResourceExhausted, Kind::Unsupported];
                ensure!(refusals.contains(&fault.kind), "expected a clear refusal, got {fault:?}");
            }
        }
    }
    ensure!(records.len() >= 25, "expected room for 25 blocks, got {}", records.len());
    ensure_eq!(all.len(), records.len());
    disjoint(&all)?;
    for record in records {
        ctx.free(record)?;
    }
    ensure!(ctx.live().is_empty(), "freed blocks are listed");
    Ok(())
}

fn found_in_every_kind(ctx: &Ctx) -> Outcome {
    for kind in kinds() {
        let Ok(record) = ctx.allocate(0, &Want { kind: kind.bits(), ..want(1024) }) else { continue };
        let known = ctx.allocation(record)?;
        ensure_eq!((known.device, known.len), (0, 1024));
        for address in [known.base, known.base + 123] {
            let found = ctx.find(Some(0), address)?;
            ensure_eq!(found, known, "{kind:?}");
            ensure!(found.kind.contains(kind), "expected at least {kind:?}, got {:?}", found.kind);
        }
    }
    Ok(())
}

fn zero_among_others(ctx: &Ctx) -> Outcome {
    for n in 0..500 {
        let (one, zero, other) = (ctx.memory(1)?, ctx.memory(0)?, ctx.memory(1)?);
        let base = ctx.allocation(one)?.base;
        ensure_eq!(ctx.find(Some(0), base)?.record, one);
        let order = [[one, zero, other], [zero, other, one], [other, one, zero]][n % 3];
        for (at, record) in order.into_iter().enumerate() {
            ctx.free(record)?;
            for left in &order[at + 1..] {
                ctx.allocation(*left)?;
            }
        }
        ensure!(ctx.live().is_empty(), "freed memory is listed");
    }
    Ok(())
}

fn zero_bits(ctx: &Ctx) -> Outcome {
    let record = ctx.memory_as(0, &Want { len: 8, align: 0, kind: 0, access: 0, usage: 0 })?;
    let known = ctx.allocation(record)?;
    ensure!(
        known.kind.contains(MemoryType::DEVICE_LOCAL),
        "expected device-local memory, got {:?}",
        known.kind
    );
    ensure_eq!(known.access, Access::ALL);
    ensure_eq!(known.usage, Usage::TRANSFER | Usage::DISPATCH);
    Ok(())
}

fn length_zero(ctx: &Ctx) -> Outcome {
    let (a, b, other) = (ctx.memory(0)?, ctx.memory(0)?, ctx.memory(16)?);
    ensure!(a != b, "two allocations of length 0 have one handle");
    let known = ctx.allocation(a)?;
    ensure_eq!((known.base, known.len), (0, 0));
    ensure_eq!(ctx.live().len(), 1, "only memory with an address is listed");
    let queue = ctx.in_order()?;
    ctx.copy(queue, &ctx.whole(a)?, &span(other, 16, 0), &Around::NONE)?;
    ctx.fill(queue, &ctx.whole(b)?, &[1, 2, 3], &Around::NONE)?;
    ctx.finish(queue)?;
    ctx.free(a)?;
    ctx.free(b)?;
    refused(ctx.allocation(a), Kind::InvalidHandle)?;
    Ok(())
}

fn alignments(ctx: &Ctx) -> Outcome {
    for shift in 3..=12 {
        let align = 1u64 << shift;
        for len in [1, align - 1, align + 1] {
            let known = ctx.allocation(ctx.memory_as(0, &Want { align, ..want(len) })?)?;
            ensure!(
                known.base.is_multiple_of(align),
                "expected a multiple of {align}, got address {:#x}",
                known.base
            );
            ctx.free(known.record)?;
        }
    }
    Ok(())
}

fn alignment_refused(ctx: &Ctx) -> Outcome {
    for align in [3, 12, 100, u64::MAX] {
        refused(ctx.allocate(0, &Want { align, ..want(64) }), Kind::InvalidArgument)?;
    }
    Ok(())
}

fn alignment_too_large(ctx: &Ctx) -> Outcome {
    for shift in [31, 40, 63] {
        refused(ctx.allocate(0, &Want { align: 1 << shift, ..want(64) }), Kind::InvalidArgument)?;
    }
    Ok(())
}

fn aligned_bytes(ctx: &Ctx) -> Outcome {
    let queue = ctx.in_order()?;
    for align in [8u64, 64, 256] {
        for len in [1u64, 255, 9000] {
            let record = ctx.memory_as(0, &Want { align, ..want(len) })?;
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + align) as u8).collect();
            ctx.write(queue, record, 0, &bytes)?;
            same(&ctx.read_all(queue, record)?, &bytes)?;
            ctx.free(record)?;
        }
    }
    Ok(())
}

fn too_much(ctx: &Ctx) -> Outcome {
    for len in [1 << 60, u64::MAX - 4096, u64::MAX] {
        refused(ctx.allocate(0, &want(len)), Kind::ResourceExhausted)?;
    }
    ctx.memory(64)?;
    Ok(())
}

fn no_such_device(ctx: &Ctx) -> Outcome {
    for device in [ctx.devices(), usize::MAX] {
        refused(ctx.allocate(device, &want(64)), Kind::InvalidDevice)?;
        refused(ctx.queue(device, Default::default()), Kind::InvalidDevice)?;
    }
    Ok(())
}

fn found_interior(ctx: &Ctx) -> Outcome {
    let record = ctx.memory(1024)?;
    let known = ctx.allocation(record)?;
    for offset in [0, 1, 123, 1023] {
        let found = ctx.find(Some(0), known.base + offset)?;
        ensure_eq!(found, known, "at offset {offset}");
    }
    Ok(())
}

fn not_found(ctx: &Ctx) -> Outcome {
    let base = ctx.allocation(ctx.memory(1024)?)?.base;
    for address in [0, 0x1234, base - 1, base + 1024, u64::MAX] {
        refused(ctx.find(Some(0), address), Kind::NotFound)?;
    }
    refused(ctx.find(None, 0x1234), Kind::NotFound)?;
    Ok(())
}

fn not_found_after_free(ctx: &Ctx) -> Outcome {
    let record = ctx.memory(1024)?;
    let base = ctx.allocation(record)?.base;
    ctx.free(record)?;
    refused(ctx.find(Some(0), base + 5), Kind::NotFound)?;
    refused(ctx.allocation(record), Kind::InvalidHandle)?;
    refused(ctx.fill(ctx.in_order()?, &span(record, 0, 8), &[1], &Around::NONE), Kind::InvalidHandle)?;
    Ok(())
}

fn found_on_device(ctx: &Ctx) -> Outcome {
    let a = ctx.allocation(ctx.memory(4096)?)?;
    if ctx.caps(0).space == 0 || ctx.caps(1).space == 0 {
        // The process' space is everybody's.
        let b = ctx.allocation(ctx.memory_as(1, &want(4096))?)?;
        ensure_eq!(ctx.find(Some(0), a.base)?.record, a.record);
        ensure_eq!(ctx.find(Some(1), b.base + 9)?.record, b.record);
        ensure_eq!(ctx.find(None, a.base + 9)?.record, a.record);
        return Ok(());
    }
    // Both spaces hand out the same addresses in the same order: one of the second's blocks meets the first one's.
    for _ in 0..4096 {
        let b = ctx.allocation(ctx.memory_as(1, &want(4096))?)?;
        if (a.base..a.base + a.len).contains(&b.base) {
            ensure_eq!(ctx.find(Some(0), b.base)?.record, a.record);
            ensure_eq!(ctx.find(Some(1), b.base)?.record, b.record);
            refused(ctx.find(None, b.base), Kind::InvalidArgument)?;
            return Ok(());
        }
        if b.base > a.base {
            return Ok(()); // Past them: no two alike can be had.
        }
        ctx.free(b.record)?;
    }
    Ok(())
}

fn info(ctx: &Ctx) -> Outcome {
    let asked = Want { access: Access::READ.bits(), usage: Usage::TRANSFER.bits(), ..want(77) };
    let known = ctx.allocation(ctx.memory_as(0, &asked)?)?;
    ensure_eq!((known.len, known.device), (77, 0));
    ensure_eq!((known.access, known.usage), (Access::READ, Usage::TRANSFER));
    Ok(())
}

fn listed(ctx: &Ctx) -> Outcome {
    let mut records = Vec::new();
    for len in [100, 200, 300, 400] {
        records.push(ctx.memory(len)?);
    }
    let bases: Vec<u64> = ctx.live().iter().map(|known| known.base).collect();
    ensure_eq!(bases.len(), 4);
    ensure!(bases.is_sorted(), "expected ascending addresses, got {bases:x?}");
    ctx.free(records[1])?;
    let lens: u64 = ctx.live().iter().map(|known| known.len).sum();
    ensure_eq!(lens, 800);
    Ok(())
}

fn free_twice(ctx: &Ctx) -> Outcome {
    let record = ctx.memory(64)?;
    ctx.free(record)?;
    refused(ctx.free(record), Kind::InvalidHandle)?;
    refused(ctx.release(record), Kind::InvalidHandle)?;
    Ok(())
}

fn foreign_handles(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(0)?;
    ctx.memory(64)?;
    for raw in [0, u64::MAX, 0x1234_5678_9abc_def1, timeline.raw()] {
        let record = Handle::from_raw(raw);
        refused(ctx.allocation(record), Kind::InvalidHandle)?;
        refused(ctx.free(record), Kind::InvalidHandle)?;
        refused(ctx.retain(record), Kind::InvalidHandle)?;
    }
    Ok(())
}

fn references(ctx: &Ctx) -> Outcome {
    let record = ctx.memory(64)?;
    ctx.retain(record)?;
    ctx.retain(record)?;
    ctx.release(record)?;
    ctx.release(record)?;
    ensure_eq!(ctx.allocation(record)?.len, 64);
    ctx.release(record)?;
    refused(ctx.allocation(record), Kind::InvalidHandle)?;
    refused(ctx.retain(record), Kind::InvalidHandle)?;
    Ok(())
}

fn stale_stays(ctx: &Ctx) -> Outcome {
    let first = ctx.memory(64)?;
    ctx.free(first)?;
    for _ in 0..100 {
        let next = ctx.memory(64)?;
        ensure!(next != first, "a handle came again");
        refused(ctx.allocation(first), Kind::InvalidHandle)?;
        ctx.free(next)?;
    }
    Ok(())
}

fn threads(ctx: &Ctx) -> Outcome {
    let body = |thread: u64| -> Outcome {
        for turn in 0..50 {
            let len = thread * 13 + turn + 1;
            let record = match ctx.allocate(0, &want(len)) {
                Ok(record) => record,
                Err(fault) if fault.kind == Kind::ResourceExhausted => continue,
                Err(fault) => return Err(fault.into()),
            };
            let known = ctx.allocation(record)?;
            ensure_eq!(known.len, len);
            ensure_eq!(ctx.find(Some(0), known.base + len - 1)?.record, record);
            ctx.free(record)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..20).map(|n| scope.spawn(move || body(n))).collect();
        threads.into_iter().try_for_each(|t| t.join().map_err(|_| Fail::new("a thread panicked"))?)
    })?;
    ensure_eq!(ctx.live().len(), 0);
    Ok(())
}

fn full_then_room(ctx: &Ctx) -> Outcome {
    // The largest power of two that is there, then it again: not both fit, or the device has more than 2^40 bytes.
    let mut len = 1u64 << 24;
    let mut first = ctx.allocate(0, &want(len));
    while first.is_err() && len > 1 << 12 {
        len /= 2;
        first = ctx.allocate(0, &want(len));
    }
    let first = ctx.note(first?);
    for _ in 0..10 {
        refused(ctx.allocate(0, &want(1 << 60)), Kind::ResourceExhausted)?;
    }
    ctx.free(first)?;
    ctx.memory(len)?;
    Ok(())
}
