//! What a device says of itself: occupancy, facts, caps.

use super::cases;
use crate::{
    case::{Fail, Outcome, refused},
    ctx::Ctx,
    ensure, ensure_eq,
    need::Need::*,
};
use wharf_core::{
    device::{op, property as p},
    fault::Kind,
};

cases! {
    "occupancy.is_a_group_size", [Programs], "more than 0 and no more than the kernel takes (liboffload olCalculateOptimalOccupancy)" => occupancy;
    "occupancy.with_shared_memory", [Programs], "with shared memory a size, or a refusal where there is none (liboffload olCalculateOptimalOccupancy)" => with_shared;
    "property.caps_are_sane", [], "depth and lanes at least 1, alignment a power of two, barrier and copy taken, always the same answer (core Caps)" => caps;
    "property.unknown_is_none", [Properties], "a number that is no fact answers none (core Describe)" => unknown;
    "property.short_buffers", [Properties], "a short buffer gets the beginning, the answer is the whole length, nothing behind is touched (liboffload olGetDeviceInfo)" => short;
    "property.texts", [Properties], "name and vendor are UTF-8 without a NUL (liboffload olGetDeviceInfo strings)" => texts;
    "property.memory", [Properties], "free is never above total, the kind is one of three words (decisions, JSON of devices)" => memory;
    "property.memory_free_follows", [Properties, Memory(8 << 20)], "memory that is held is not free (decisions, JSON of devices)" => free_follows;
    "property.host_type", [EveryProperty], "the host device says that it is one (liboffload olGetDeviceInfo host)" => host_type;
    "property.host_texts", [EveryProperty], "name, product, uid, vendor, version are told (liboffload olGetDeviceInfo)" => host_texts;
    "property.host_numbers", [EveryProperty], "each number of liboffload's device info is above 0 (liboffload olGetDeviceInfo)" => host_numbers;
    "property.host_dimensions", [EveryProperty], "group and grid sizes in three dimensions (liboffload olGetDeviceInfo)" => host_dims;
    "property.host_floats", [EveryProperty], "single and double floats with their capabilities (liboffload olGetDeviceInfo)" => host_floats;
    "property.host_agrees_with_caps", [EveryProperty], "facts and caps agree (core Caps)" => agrees;
}

fn occupancy(ctx: &Ctx) -> Outcome {
    let (program, sample) = (ctx.program()?, ctx.sample()?);
    for name in sample.kernels {
        let kernel = ctx.kernel(program, name, &[])?;
        let (size, most) = (ctx.occupancy(kernel, 0)?, ctx.kernel_info(kernel)?.kernel.group_max);
        ensure!(size > 0 && size <= most, "{name}: expected 1 to {most}, got {size}");
    }
    Ok(())
}

fn with_shared(ctx: &Ctx) -> Outcome {
    let kernel = ctx.sample_kernel(ctx.sample()?.idle)?;
    let most = ctx.caps(0).shared_max;
    if most >= 256 {
        ensure!(ctx.occupancy(kernel, 256)? > 0, "expected a size above 0");
        refused(ctx.occupancy(kernel, u64::from(most) + 1), Kind::InvalidArgument)?;
    }
    Ok(())
}

fn caps(ctx: &Ctx) -> Outcome {
    for device in 0..ctx.devices() {
        let caps = ctx.caps(device);
        ensure!(caps.depth >= 1 && caps.lanes >= 1, "expected depth and lanes, got {caps:?}");
        ensure!(caps.align.is_power_of_two(), "expected a power of two, got {}", caps.align);
        for kind in [op::BARRIER, op::COPY, op::FILL, op::UPDATE] {
            ensure!(caps.takes(kind), "expected operation {kind} to be taken");
        }
        ensure_eq!(ctx.caps(device), caps);
    }
    Ok(())
}

fn get(ctx: &Ctx, id: u32) -> Outcome<Vec<u8>> {
    let mut out = [0; 256];
    let len = ctx
        .property(0, id, &mut out)?
        .ok_or_else(|| Fail::new(format!("expected property {id}, got none")))?;
    ensure!(len <= 256, "property {id} has {len} bytes");
    Ok(out[..len].to_vec())
}

fn number(ctx: &Ctx, id: u32) -> Outcome<u64> {
    let bytes = get(ctx, id)?;
    ensure!([1, 4, 8].contains(&bytes.len()), "property {id}: expected 1, 4 or 8 bytes, got {}", bytes.len());
    Ok(bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

fn text(ctx: &Ctx, id: u32) -> Outcome<String> {
    let text =
        String::from_utf8(get(ctx, id)?).map_err(|_| Fail::new(format!("property {id} is not UTF-8")))?;
    ensure!(!text.is_empty() && !text.contains('\0'), "property {id}: expected a text, got {text:?}");
    Ok(text)
}

fn unknown(ctx: &Ctx) -> Outcome {
    for id in [0xFFFF_FFFF, 0x4321] {
        ensure_eq!(ctx.property(0, id, &mut [0; 8])?, None);
    }
    Ok(())
}

fn short(ctx: &Ctx) -> Outcome {
    for id in (0..40).chain([p::MEMORY_KIND]) {
        let mut whole = [0xEE; 256];
        let Some(len) = ctx.property(0, id, &mut whole)? else { continue };
        ensure_eq!(ctx.property(0, id, &mut [])?, Some(len));
        let mut part = [0xEE; 3];
        ensure_eq!(ctx.property(0, id, &mut part[..2])?, Some(len));
        ensure_eq!(part[2], 0xEE);
        ensure_eq!(part[..len.min(2)], whole[..len.min(2)]);
    }
    Ok(())
}

fn texts(ctx: &Ctx) -> Outcome {
    text(ctx, p::NAME)?;
    text(ctx, p::VENDOR)?;
    Ok(())
}

fn memory(ctx: &Ctx) -> Outcome {
    let total = number(ctx, p::GLOBAL_MEM_SIZE)?;
    ensure!(total > 0, "no memory");
    let kind = text(ctx, p::MEMORY_KIND)?;
    ensure!(["host", "unified", "dedicated"].contains(&&*kind), "expected a kind of memory, got {kind}");
    let mut out = [0; 8];
    if ctx.property(0, p::MEMORY_FREE, &mut out)? == Some(8) {
        let free = u64::from_le_bytes(out);
        ensure!(free <= total, "{free} bytes free of {total}");
    }
    Ok(())
}

fn free_follows(ctx: &Ctx) -> Outcome {
    let mut out = [0; 8];
    if ctx.property(0, p::MEMORY_FREE, &mut out)?.is_none() {
        return Ok(());
    }
    let held = ctx.memory(4 << 20)?;
    let (free, total) = (number(ctx, p::MEMORY_FREE)?, number(ctx, p::GLOBAL_MEM_SIZE)?);
    ensure!(free + (4 << 20) <= total, "{free} bytes free of {total} although 4 MiB are held");
    ctx.free(held)?;
    Ok(())
}

/// `OL_DEVICE_TYPE_HOST` of liboffload.
fn host_type(ctx: &Ctx) -> Outcome {
    ensure_eq!(number(ctx, p::TYPE)?, 4);
    Ok(())
}

fn host_texts(ctx: &Ctx) -> Outcome {
    for id in [p::NAME, p::PRODUCT_NAME, p::UID, p::VENDOR, p::DRIVER_VERSION] {
        text(ctx, id)?;
    }
    Ok(())
}

fn host_numbers(ctx: &Ctx) -> Outcome {
    for id in [
        p::MAX_WORK_GROUP_SIZE,
        p::MAX_WORK_SIZE,
        p::VENDOR_ID,
        p::NUM_COMPUTE_UNITS,
        p::MAX_CLOCK_FREQUENCY,
        p::MEMORY_CLOCK_RATE,
        p::ADDRESS_BITS,
        p::MAX_MEM_ALLOC_SIZE,
        p::GLOBAL_MEM_SIZE,
        p::WORK_GROUP_LOCAL_MEM_SIZE,
        p::NATIVE_VECTOR_WIDTH_CHAR,
        p::NATIVE_VECTOR_WIDTH_SHORT,
        p::NATIVE_VECTOR_WIDTH_INT,
        p::NATIVE_VECTOR_WIDTH_LONG,
        p::NATIVE_VECTOR_WIDTH_FLOAT,
        p::NATIVE_VECTOR_WIDTH_DOUBLE,
    ] {
        ensure!(number(ctx, id)? > 0, "property {id} is 0");
    }
    ensure_eq!(number(ctx, p::ADDRESS_BITS)?, u64::from(usize::BITS));
    Ok(())
}

fn host_dims(ctx: &Ctx) -> Outcome {
    for id in [p::MAX_WORK_GROUP_SIZE_PER_DIMENSION, p::MAX_WORK_SIZE_PER_DIMENSION] {
        let bytes = get(ctx, id)?;
        ensure_eq!(bytes.len(), 12, "property {id}");
        ensure!(bytes.chunks(4).all(|n| n != [0; 4]), "property {id}: a dimension is 0");
    }
    Ok(())
}

fn host_floats(ctx: &Ctx) -> Outcome {
    for (support, config) in
        [(p::SINGLE_FP_SUPPORT, p::SINGLE_FP_CONFIG), (p::DOUBLE_FP_SUPPORT, p::DOUBLE_FP_CONFIG)]
    {
        ensure_eq!(number(ctx, support)?, 1);
        ensure!(number(ctx, config)? > 0, "property {config} is 0");
    }
    let half = number(ctx, p::HALF_FP_SUPPORT)?;
    ensure_eq!(half == 1, number(ctx, p::HALF_FP_CONFIG)? > 0);
    ensure_eq!(half == 1, number(ctx, p::NATIVE_VECTOR_WIDTH_HALF)? > 0);
    Ok(())
}

fn agrees(ctx: &Ctx) -> Outcome {
    let caps = ctx.caps(0);
    ensure_eq!(number(ctx, p::MAX_WORK_GROUP_SIZE)?, u64::from(caps.group_max));
    ensure_eq!(number(ctx, p::WORK_GROUP_LOCAL_MEM_SIZE)?, u64::from(caps.shared_max));
    ensure_eq!(text(ctx, p::MEMORY_KIND)?, "host");
    Ok(())
}
