//! Statistics of the memory that devices gave out: live, peak, allocated, freed, for each device and for the two places
//! that memory can lie in.

use super::Runtime;
use crate::{
    bits::MemoryType,
    device::Device,
    env::{Env, Mutex},
    fault::Fault,
    handle::Body,
    record::{Origin, Record},
};
use core::{fmt, sync::atomic::Ordering::*};

/// Bytes of one device's memory in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Given out and not given back.
    pub live: u64,
    /// The most that was live at once.
    pub peak: u64,
    /// Given out in all.
    pub allocated: u64,
    /// Given back in all.
    pub freed: u64,
    /// Pieces that are live.
    pub count: u64,
}

/// A device's memory by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStatistics {
    /// Memory that lies with the host.
    pub host: Statistics,
    /// Memory that lies with the device.
    pub device: Statistics,
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Statistics { live, peak, allocated, freed, .. } = self;
        write!(f, "{peak:12}B peak / {allocated:12}B allocated / {freed:12}B freed / {live:12}B live")
    }
}

/// Two lines, in the form of IREE's allocator statistics.
impl fmt::Display for DeviceStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  HOST_LOCAL: {}", self.host)?;
        write!(f, "DEVICE_LOCAL: {}", self.device)
    }
}

/// A device's counters; the slot's number is the device's.
pub(crate) struct StatisticsSlot<E: Env>(Mutex<E::Lock, DeviceStatistics>);

impl<E: Env> Body for StatisticsSlot<E> {
    const NEW: Self = StatisticsSlot(Mutex::new(DeviceStatistics {
        host: Statistics { live: 0, peak: 0, allocated: 0, freed: 0, count: 0 },
        device: Statistics { live: 0, peak: 0, allocated: 0, freed: 0, count: 0 },
    }));
    const KIND: u8 = 8;
}

/// The bit that says that memory lies with the device.
const WITH_DEVICE: u32 = MemoryType::DEVICE_LOCAL.bits() & !MemoryType::DEVICE_VISIBLE.bits();

impl<D: Device, E: Env> Runtime<D, E> {
    /// Statistics of what a device gave out. Registered and wrapped memory is the caller's and does not count.
    ///
    /// # Errors
    /// `InvalidDevice`.
    pub fn statistics(&self, device: usize) -> Result<DeviceStatistics, Fault> {
        self.device(device, crate::fault::Site::Device)?;
        Ok(self.counters(device).map(|slot| slot.0.with(|all| *all)).unwrap_or_default())
    }

    /// Counters are made in the order of the devices, so that a slot's number is its device's.
    fn counters(&self, device: usize) -> Option<&'static StatisticsSlot<E>> {
        while self.statistics.used() as usize <= device {
            self.statistics.insert::<E>(|_, _| ())?;
        }
        self.statistics.body(device as u32)
    }

    /// Counts memory in (`true`) or out. Without room for a device's counters it goes uncounted.
    pub(crate) fn count(&self, record: &Record, given: bool) {
        if record.origin.load(Relaxed) != Origin::Own as u32 {
            return;
        }
        let (device, len) = (record.device.load(Relaxed) as usize, record.len.get());
        let with_device = record.kind.load(Relaxed) & WITH_DEVICE != 0;
        let Some(slot) = self.counters(device) else { return };
        slot.0.with(|all| {
            let place = if with_device { &mut all.device } else { &mut all.host };
            if given {
                place.live += len;
                place.allocated = place.allocated.saturating_add(len);
                place.peak = place.peak.max(place.live);
                place.count += 1;
            } else {
                place.live = place.live.saturating_sub(len);
                place.freed = place.freed.saturating_add(len);
                place.count = place.count.saturating_sub(1);
            }
        });
    }
}
