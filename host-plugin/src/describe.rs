//! Facts about the device, as the bytes that liboffload's device info has.

use crate::{cpu, device::HostDevice, limits};
use wharf_core::{
    device::{Describe, property as p},
    fault::Fault,
};

/// `OL_DEVICE_TYPE_HOST`.
const HOST: u32 = 4;

/// Bits of liboffload's `ol_fp_capability_flag_t`: correctly rounded division and root 1, rounding to nearest 2, to zero
/// 4, to infinity 8, infinities and NaN 16, denormal numbers 32, fused multiply-add 64.
fn floats() -> u32 {
    63 | if cpu::fused() { 64 } else { 0 }
}

enum Value {
    Text(String),
    Byte(bool),
    Word(u32),
    Wide(u64),
    Dims([u32; 3]),
}

impl Describe for HostDevice {
    fn property(&self, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault> {
        let Some(value) = value(self, id) else { return Ok(None) };
        let bytes = match value {
            Value::Text(text) => text.into_bytes(),
            Value::Byte(bit) => vec![bit.into()],
            Value::Word(word) => word.to_le_bytes().to_vec(),
            Value::Wide(wide) => wide.to_le_bytes().to_vec(),
            Value::Dims(dims) => dims.iter().flat_map(|n| n.to_le_bytes()).collect(),
        };
        let fits = bytes.len().min(out.len());
        out[..fits].copy_from_slice(&bytes[..fits]);
        Ok(Some(bytes.len()))
    }
}

fn value(device: &HostDevice, id: u32) -> Option<Value> {
    let lanes = |bytes: u32| Value::Word(cpu::vector_bytes() / bytes);
    Some(match id {
        p::TYPE => Value::Word(HOST),
        // A handle of the layer above in liboffload; a device has no such fact.
        p::PLATFORM => return None,
        p::NAME | p::PRODUCT_NAME => Value::Text(cpu::name()),
        // One such device a machine, whatever its processors.
        p::UID => Value::Text("host-0".into()),
        p::VENDOR => Value::Text(cpu::vendor().0),
        p::DRIVER_VERSION => Value::Text(env!("CARGO_PKG_VERSION").into()),
        p::MAX_WORK_GROUP_SIZE => Value::Word(limits::GROUP_MAX),
        p::MAX_WORK_GROUP_SIZE_PER_DIMENSION => Value::Dims([limits::GROUP_MAX; 3]),
        p::MAX_WORK_SIZE => Value::Word(u32::MAX),
        p::MAX_WORK_SIZE_PER_DIMENSION => Value::Dims([u32::MAX; 3]),
        p::VENDOR_ID => Value::Word(cpu::vendor().1),
        p::NUM_COMPUTE_UNITS => Value::Word(device.pool.width() as u32),
        p::MAX_CLOCK_FREQUENCY => Value::Word(cpu::clock_mhz()?),
        // Where the firmware's table is closed, the processor's clock, which its caches run at, stands in: liboffload's
        // tests want a number.
        p::MEMORY_CLOCK_RATE => Value::Word(cpu::memory_clock_mhz().or_else(cpu::clock_mhz)?),
        p::ADDRESS_BITS => Value::Word(usize::BITS),
        p::MAX_MEM_ALLOC_SIZE | p::GLOBAL_MEM_SIZE => Value::Wide(cpu::memory_total()),
        p::WORK_GROUP_LOCAL_MEM_SIZE => Value::Wide(limits::SHARED_MAX.into()),
        p::SINGLE_FP_CONFIG | p::DOUBLE_FP_CONFIG => Value::Word(floats()),
        p::HALF_FP_CONFIG => Value::Word(if cpu::half() { floats() } else { 0 }),
        p::NATIVE_VECTOR_WIDTH_CHAR => lanes(1),
        p::NATIVE_VECTOR_WIDTH_SHORT => lanes(2),
        p::NATIVE_VECTOR_WIDTH_INT | p::NATIVE_VECTOR_WIDTH_FLOAT => lanes(4),
        p::NATIVE_VECTOR_WIDTH_LONG | p::NATIVE_VECTOR_WIDTH_DOUBLE => lanes(8),
        p::NATIVE_VECTOR_WIDTH_HALF if cpu::half() => lanes(2),
        p::NATIVE_VECTOR_WIDTH_HALF => Value::Word(0),
        p::SINGLE_FP_SUPPORT | p::DOUBLE_FP_SUPPORT => Value::Byte(true),
        p::HALF_FP_SUPPORT => Value::Byte(cpu::half()),
        p::MEMORY_FREE => Value::Wide(free(device)?.0),
        p::MEMORY_NOTE => {
            Value::Text(free(device).map_or("the system does not tell", |found| found.1).into())
        }
        p::MEMORY_KIND => Value::Text("host".into()),
        _ => return None,
    })
}

/// Bytes that can be allocated now, and how that was found. Memory that was given out and not touched yet is not in
/// the system's count, so the device's own is looked at too.
fn free(device: &HostDevice) -> Option<(u64, &'static str)> {
    let (available, grouped) = cpu::memory_available()?;
    let own = cpu::memory_total().saturating_sub(device.memory.live());
    Some(match (own < available, grouped) {
        (true, _) => (own, "total less what was allocated here"),
        (false, true) => (available, "what the control group leaves"),
        (false, false) => (available, "available memory of the system"),
    })
}
