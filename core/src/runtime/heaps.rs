//! What memory a device has, and what a wish for memory would come to, before anything is allocated.

use super::{Runtime, memory::canonical};
use crate::{
    bits::{Access, MemoryType, Usage},
    device::{Caps, Device, Want, op},
    env::Env,
    fault::{Fault, Kind, Site, Why},
};
use bitflags::bitflags;

/// A kind of memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heap {
    /// Where it lies and who sees it.
    pub kind: MemoryType,
    /// What it may be used for.
    pub usage: Usage,
    /// Most bytes of an allocation; [`u64::MAX`] where that is not known.
    pub alloc_max: u64,
    /// Alignment of every allocation.
    pub align: u64,
}

bitflags! {
    /// What memory of a wish may be used for on a device.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Compatibility: u32 {
        /// It can be allocated.
        const ALLOCATABLE = 1;
        /// Memory of the caller's can be used as such.
        const IMPORTABLE = 1 << 1;
        /// It can be handed to others: the host may map it.
        const EXPORTABLE = 1 << 2;
        /// Queues can fill and copy it.
        const QUEUE_TRANSFER = 1 << 10;
        /// Kernels can use it.
        const QUEUE_DISPATCH = 1 << 11;
        /// It works, more slowly than memory of another type would: the host sees it only by copies.
        const LOW_PERFORMANCE = 1 << 20;
    }
}

/// Most heaps of a device.
const HEAPS_MAX: usize = 2;

impl<D: Device, E: Env> Runtime<D, E> {
    /// Writes the kinds of memory that a device has, the best for its kernels first, and answers how many there are.
    ///
    /// # Errors
    /// `InvalidDevice`; `OutOfRange` with the number in its values if `out` is shorter, and nothing is written.
    pub fn heaps(&self, device: usize, out: &mut [Heap]) -> Result<usize, Fault> {
        let caps = self.device(device, Site::Device)?.caps();
        let usage = usage_of(&caps);
        let heap = |kind, usage| Heap { kind, usage, alloc_max: caps.alloc_max, align: caps.align.into() };
        let both = MemoryType::HOST_LOCAL | MemoryType::DEVICE_LOCAL;
        let heaps: heapless::Vec<Heap, HEAPS_MAX> = if caps.mappable && caps.coherent {
            heapless::Vec::from_iter([heap(both, usage)])
        } else {
            let visible = MemoryType::DEVICE_LOCAL | MemoryType::HOST_VISIBLE;
            let apart = heap(MemoryType::DEVICE_LOCAL, usage - Usage::MAPPING);
            heapless::Vec::from_iter([apart].into_iter().chain(caps.mappable.then_some(heap(visible, usage))))
        };
        let place = out.get_mut(..heaps.len()).ok_or(Fault::caller(
            Kind::OutOfRange,
            Site::Device,
            Why::Limit,
            [heaps.len() as u64, 0],
        ))?;
        place.copy_from_slice(&heaps);
        Ok(heaps.len())
    }

    /// What memory of this wish could be used for, and the wish as an allocation takes it: zero bits filled in, the
    /// length and alignment that it would get. No bits: it cannot be had. Never fails for a device that is there.
    ///
    /// # Errors
    /// `InvalidDevice`.
    pub fn compatibility(&self, device: usize, want: &Want) -> Result<(Compatibility, Want), Fault> {
        let caps = self.device(device, Site::Device)?.caps();
        let aligned = want.align == 0 || want.align.is_power_of_two();
        let mut want = canonical(want, caps.mappable && caps.coherent);
        want.align = want.align.max(caps.align.into());
        let (kind, usage) = (MemoryType::from_bits_retain(want.kind), Usage::from_bits_retain(want.usage));
        let host = kind.intersects(MemoryType::HOST_VISIBLE) || usage.intersects(Usage::MAPPING);
        let access = Access::from_bits_retain(want.access);
        let can = aligned
            && want.len <= caps.alloc_max
            && (!host || caps.mappable)
            && (!kind.contains(MemoryType::HOST_COHERENT) || caps.coherent)
            && !access.is_empty();
        let mut found = Compatibility::empty();
        if !can {
            return Ok((found, want));
        }
        found |= Compatibility::ALLOCATABLE;
        found.set(Compatibility::IMPORTABLE, caps.space == 0 && caps.host_copies);
        found.set(Compatibility::EXPORTABLE, caps.mappable);
        if kind.contains(MemoryType::DEVICE_VISIBLE) {
            let has = usage_of(&caps);
            found.set(Compatibility::QUEUE_TRANSFER, usage.intersects(Usage::TRANSFER & has));
            found.set(Compatibility::QUEUE_DISPATCH, usage.intersects(Usage::DISPATCH & has));
        }
        found.set(Compatibility::LOW_PERFORMANCE, host && !caps.coherent);
        Ok((found, want))
    }
}

/// What a device's queues and the host can do with its memory.
fn usage_of(caps: &Caps) -> Usage {
    let mut usage = Usage::CONSTANT;
    usage.set(Usage::TRANSFER, caps.takes(op::COPY));
    usage.set(Usage::MAPPING, caps.mappable);
    usage.set(Usage::DISPATCH, caps.takes(op::LAUNCH));
    usage
}
