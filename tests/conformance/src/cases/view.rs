//! The host's view of memory: mappings and registrations.

use super::cases;
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, span, want},
    ensure, ensure_eq,
    need::Need::*,
};
use wharf_core::{
    bits::{Access, MemoryType, Usage},
    device::Want,
    fault::Kind,
    runtime::Around,
};

cases! {
    "map.writes_reach_the_device", [Map], "host writes are there after a flush (iree 1.1 mapping)" => writes;
    "map.reads_see_the_device", [Map], "device writes are there after an invalidate (iree 1.1 mapping)" => reads;
    "map.part", [Map], "a mapping of a part is limited to it (iree 1.1 mapping)" => part;
    "map.flush_of_a_part", [Map], "a part of a mapping is flushed without the rest where memory is not coherent (iree 1.1)" => flush_part;
    "map.needs_usage", [Map], "without mapping usage PermissionDenied (decisions, host access)" => usage;
    "map.needs_visible_memory", [Map], "memory that the host cannot see is PermissionDenied (iree 1.1)" => visible;
    "map.needs_access", [Map], "neither read nor write is InvalidArgument, access that the memory lacks PermissionDenied (iree 1.1)" => access;
    "map.flush_needs_write_invalidate_needs_read", [Map], "flush without WRITE and invalidate without READ are PermissionDenied (iree 1.1)" => flush_access;
    "map.past_the_end", [Map], "ranges past the end are OutOfRange (iree 1.1)" => past;
    "map.length_zero", [Map], "an empty mapping is fine (iree 1.1)" => zero;
    "map.unmapped_twice", [Map], "a second unmap does no harm (iree 1.1 unmap)" => unmapped_twice;
    "map.copied_from_view_to_view", [Map], "the host copies from one mapping into part of another (iree 1.1 CopyData)" => view_to_view;
    "map.stale_memory", [Map], "freed memory is InvalidHandle (iree 1.1, host access outside live)" => stale;
    "register.and_unregister", [Map], "host memory is registered, used and unregistered (liboffload olMemRegister)" => register;
    "register.counts", [Map], "the same range again is counted, also a part of it (liboffload olMemRegister Multiple)" => counts;
    "register.partial_overlap_is_refused", [Map], "a range that sticks out of a registered one is InvalidArgument (liboffload olMemRegister PartialOverlap)" => overlap;
    "register.nothing_is_refused", [Map], "null and length 0 are InvalidArgument (liboffload olMemRegister InvalidPtr, InvalidSize)" => nothing;
    "register.unknown_is_refused", [Map], "unregistering what is not registered is InvalidArgument (liboffload olMemRegister UnregisteredPtr)" => unknown;
    "register.again_after_the_end", [Map], "a range can be registered again once it is unregistered (liboffload olMemRegister)" => again;
}

fn writes(ctx: &Ctx) -> Outcome {
    let (root, queue) = (ctx.mappable(64)?, ctx.in_order()?);
    ctx.fill(queue, &ctx.whole(root)?, &[1], &Around::NONE)?;
    ctx.finish(queue)?;
    let view = ctx.view(&ctx.whole(root)?, Access::WRITE)?;
    view.put(&[7; 64]);
    ctx.flush(&ctx.whole(root)?)?;
    ctx.unmap(&ctx.whole(root)?)?;
    same(&ctx.read_all(queue, root)?, &[7; 64])
}

fn reads(ctx: &Ctx) -> Outcome {
    let (root, queue) = (ctx.mappable(64)?, ctx.in_order()?);
    let whole = ctx.whole(root)?;
    let view = ctx.view(&whole, Access::READ)?;
    for n in [3, 4] {
        ctx.fill(queue, &whole, &[n], &Around::NONE)?;
        ctx.finish(queue)?;
        ctx.invalidate(&whole)?;
        same(&view.bytes(), &[n; 64])?;
    }
    Ok(ctx.unmap(&whole)?)
}

fn part(ctx: &Ctx) -> Outcome {
    let (root, queue) = (ctx.mappable(64)?, ctx.in_order()?);
    ctx.write(queue, root, 0, &(0..64).collect::<Vec<u8>>())?;
    let middle = span(root, 10, 5);
    let view = ctx.view(&middle, Access::READ | Access::WRITE)?;
    ctx.invalidate(&middle)?;
    same(&view.bytes(), &[10, 11, 12, 13, 14])?;
    view.put(&[0xAA; 5]);
    ctx.flush(&middle)?;
    ctx.unmap(&middle)?;
    let mut expected: Vec<u8> = (0..64).collect();
    expected[10..15].fill(0xAA);
    same(&ctx.read_all(queue, root)?, &expected)
}

fn flush_part(ctx: &Ctx) -> Outcome {
    let (root, queue) = (ctx.mappable(64)?, ctx.in_order()?);
    let whole = ctx.whole(root)?;
    ctx.fill(queue, &whole, &[0], &Around::NONE)?;
    ctx.finish(queue)?;
    let view = ctx.view(&whole, Access::WRITE)?;
    view.put(&[9; 64]);
    ctx.flush(&span(root, 16, 8))?;
    let bytes = ctx.read_all(queue, root)?;
    ensure_eq!(bytes[16..24], [9; 8]);
    if !ctx.caps(0).coherent {
        ensure_eq!(bytes[..16], [0; 16]);
        ensure_eq!(bytes[24..], [0; 40]);
    }
    Ok(ctx.unmap(&whole)?)
}

fn usage(ctx: &Ctx) -> Outcome {
    let kind = (MemoryType::HOST_VISIBLE | MemoryType::DEVICE_LOCAL).bits();
    let root = ctx.memory_as(0, &Want { kind, usage: Usage::TRANSFER.bits(), ..want(64) })?;
    refused(ctx.map(&ctx.whole(root)?, Access::READ), Kind::PermissionDenied)?;
    Ok(())
}

fn visible(ctx: &Ctx) -> Outcome {
    let root = ctx.memory_as(0, &Want { usage: Usage::ALL.bits(), ..want(64) })?;
    if ctx.allocation(root)?.kind.contains(MemoryType::HOST_VISIBLE) {
        // All memory of the device is.
        ctx.map(&ctx.whole(root)?, Access::READ)?;
        return Ok(ctx.unmap(&ctx.whole(root)?)?);
    }
    refused(ctx.map(&ctx.whole(root)?, Access::READ), Kind::PermissionDenied)?;
    Ok(())
}

fn access(ctx: &Ctx) -> Outcome {
    let root = ctx.mappable(64)?;
    for access in [Access::empty(), Access::DISCARD, Access::MAY_ALIAS] {
        refused(ctx.map(&ctx.whole(root)?, access), Kind::InvalidArgument)?;
    }
    let kind = (MemoryType::HOST_VISIBLE | MemoryType::DEVICE_LOCAL).bits();
    let read = Want { kind, access: Access::READ.bits(), usage: Usage::ALL.bits(), ..want(64) };
    let root = ctx.memory_as(0, &read)?;
    refused(ctx.map(&ctx.whole(root)?, Access::WRITE), Kind::PermissionDenied)?;
    ctx.map(&ctx.whole(root)?, Access::ANY)?;
    Ok(ctx.unmap(&ctx.whole(root)?)?)
}

fn flush_access(ctx: &Ctx) -> Outcome {
    let kind = (MemoryType::HOST_VISIBLE | MemoryType::DEVICE_LOCAL).bits();
    let only = |access: Access| {
        ctx.memory_as(0, &Want { kind, access: access.bits(), usage: Usage::ALL.bits(), ..want(64) })
    };
    let (read, write) = (only(Access::READ)?, only(Access::WRITE)?);
    refused(ctx.flush(&ctx.whole(read)?), Kind::PermissionDenied)?;
    refused(ctx.invalidate(&ctx.whole(write)?), Kind::PermissionDenied)?;
    Ok(())
}

fn past(ctx: &Ctx) -> Outcome {
    let root = ctx.mappable(64)?;
    for (offset, len) in [(0, 65), (64, 1), (65, 0), (u64::MAX, 2)] {
        let bad = span(root, offset, len);
        refused(ctx.map(&bad, Access::READ), Kind::OutOfRange)?;
        refused(ctx.unmap(&bad), Kind::OutOfRange)?;
        refused(ctx.flush(&bad), Kind::OutOfRange)?;
        refused(ctx.invalidate(&bad), Kind::OutOfRange)?;
    }
    Ok(())
}

fn zero(ctx: &Ctx) -> Outcome {
    let root = ctx.mappable(64)?;
    for offset in [0, 64] {
        let empty = span(root, offset, 0);
        ctx.map(&empty, Access::READ)?;
        ctx.flush(&empty)?;
        ctx.invalidate(&empty)?;
        ctx.unmap(&empty)?;
    }
    Ok(())
}

fn unmapped_twice(ctx: &Ctx) -> Outcome {
    let (root, queue) = (ctx.mappable(64)?, ctx.in_order()?);
    let whole = ctx.whole(root)?;
    ctx.view(&whole, Access::WRITE)?.put(&[3; 64]);
    ctx.flush(&whole)?;
    ctx.unmap(&whole)?;
    ctx.unmap(&whole)?;
    same(&ctx.read_all(queue, root)?, &[3; 64])?;
    let view = ctx.view(&whole, Access::READ)?;
    ctx.invalidate(&whole)?;
    same(&view.bytes(), &[3; 64])?;
    Ok(ctx.unmap(&whole)?)
}

fn view_to_view(ctx: &Ctx) -> Outcome {
    let (a, b, queue) = (ctx.mappable(64)?, ctx.mappable(64)?, ctx.in_order()?);
    ctx.write(queue, a, 0, &(0..64).collect::<Vec<u8>>())?;
    ctx.write(queue, b, 0, &[0xEE; 64])?;
    let (from, to) = (span(a, 8, 20), span(b, 30, 20));
    let (source, target) = (ctx.view(&from, Access::READ)?, ctx.view(&to, Access::DISCARD_WRITE)?);
    ctx.invalidate(&from)?;
    target.put(&source.bytes());
    ctx.flush(&to)?;
    ctx.unmap(&from)?;
    ctx.unmap(&to)?;
    let mut expected = vec![0xEE; 64];
    expected[30..50].copy_from_slice(&(8..28).collect::<Vec<u8>>());
    same(&ctx.read_all(queue, b)?, &expected)
}

fn stale(ctx: &Ctx) -> Outcome {
    let root = ctx.mappable(64)?;
    let whole = ctx.whole(root)?;
    ctx.free(root)?;
    refused(ctx.map(&whole, Access::READ), Kind::InvalidHandle)?;
    refused(ctx.flush(&whole), Kind::InvalidHandle)?;
    refused(ctx.unmap(&whole), Kind::InvalidHandle)?;
    Ok(())
}

fn register(ctx: &Ctx) -> Outcome {
    let (host, queue, root) = (ctx.host_of(&[6; 256]), ctx.in_order()?, ctx.memory(256)?);
    let record = ctx.registered(host)?;
    let known = ctx.allocation(record)?;
    ensure_eq!((known.base, known.len), (host.address(), 256));
    ctx.copy_from(queue, host, &ctx.whole(root)?, &Around::NONE)?;
    same(&ctx.read_all(queue, root)?, &[6; 256])?;
    ctx.unregister(0, host.ptr())?;
    refused(ctx.allocation(record), Kind::InvalidHandle)?;
    Ok(())
}

fn counts(ctx: &Ctx) -> Outcome {
    let host = ctx.host(4096);
    let first = ctx.registered(host)?;
    ensure_eq!(ctx.registered(host)?, first);
    ensure_eq!(ctx.registered(host.part(100, 50))?, first);
    ctx.unregister(0, host.part(120, 1).ptr())?;
    ctx.unregister(0, host.ptr())?;
    ensure_eq!(ctx.allocation(first)?.len, 4096);
    ctx.unregister(0, host.ptr())?;
    refused(ctx.unregister(0, host.ptr()), Kind::InvalidArgument)?;
    Ok(())
}

fn overlap(ctx: &Ctx) -> Outcome {
    let host = ctx.host(4096);
    ctx.registered(host.part(1000, 1000))?;
    for (offset, len) in [(500, 600), (1500, 1000), (0, 4096), (999, 1002)] {
        let answer = ctx.register_raw(host.part(offset, len).address(), len as u64);
        let fault = refused(answer, Kind::InvalidArgument)?;
        ensure!(
            fault.why == wharf_core::fault::Why::Overlap,
            "expected the overlap as reason, got {:?}",
            fault.why
        );
    }
    Ok(ctx.unregister(0, host.part(1000, 1).ptr())?)
}

fn nothing(ctx: &Ctx) -> Outcome {
    let host = ctx.host(64);
    for (address, len) in [(0, 64), (host.address(), 0), (host.address(), u64::MAX)] {
        refused(ctx.register_raw(address, len), Kind::InvalidArgument)?;
    }
    Ok(())
}

fn unknown(ctx: &Ctx) -> Outcome {
    let host = ctx.host(128);
    refused(ctx.unregister(0, host.ptr()), Kind::InvalidArgument)?;
    ctx.registered(host.part(0, 64))?;
    refused(ctx.unregister(0, host.part(64, 1).ptr()), Kind::InvalidArgument)?;
    Ok(ctx.unregister(0, host.ptr())?)
}

fn again(ctx: &Ctx) -> Outcome {
    let host = ctx.host(64);
    for _ in 0..20 {
        ctx.registered(host)?;
        ctx.unregister(0, host.ptr())?;
    }
    Ok(())
}
