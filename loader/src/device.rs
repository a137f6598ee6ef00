//! Devices: facts about them, and what is made on them.

use crate::{
    buffer::Buffer,
    engine::{Core, Engine, EngineHome},
    error::Result,
    layers::Own,
    list::Recording,
    program::Program,
    queue::Queue,
};
use std::{fmt, sync::Arc};
use wharf_core::{
    bits::{MemoryType, Usage},
    buffer,
    device::{Caps, Describe, Device as _, Want, property},
    fault::Fault,
    runtime::{DeviceStatistics, Heap, PoolLimits, PoolStatistics, QueueOptions},
};

/// A device of a plugin.
#[derive(Clone)]
pub struct Device {
    pub(crate) engine: Arc<Engine>,
    pub(crate) index: usize,
}

/// Where memory is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Memory {
    /// With the device.
    #[default]
    Device,
    /// With the host, and the device reaches it.
    Host,
    /// Moves between the two as it is used.
    Managed,
}

impl Device {
    pub(crate) fn core(&self) -> std::result::Result<&'static Core, Fault> {
        self.engine.core()
    }
    fn own(&self) -> &'static Own {
        self.engine.device(self.index)
    }

    /// What `--device` takes: backend and number, as in `host:0`.
    pub fn id(&self) -> &str {
        &self.engine.named[self.index].id
    }
    /// The plugin's name of its backend.
    pub fn backend(&self) -> &str {
        &self.engine.named[self.index].backend
    }
    /// What the device takes.
    pub fn caps(&self) -> Caps {
        self.own().caps()
    }

    /// A fact as text; `None` if the device does not have it.
    pub fn text(&self, id: u32) -> Option<String> {
        let bytes = self.property(id)?;
        String::from_utf8(bytes).ok()
    }
    /// A fact as a number of 1, 4 or 8 bytes.
    pub fn number(&self, id: u32) -> Option<u64> {
        let bytes = self.property(id)?;
        let mut all = [0u8; 8];
        all.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some(u64::from_le_bytes(all))
    }
    /// A fact in three dimensions.
    pub fn dimensions(&self, id: u32) -> Option<[u32; 3]> {
        let bytes = self.property(id)?;
        let (words, []) = bytes.as_chunks::<4>() else { return None };
        <[[u8; 4]; 3]>::try_from(words).ok().map(|words| words.map(u32::from_le_bytes))
    }

    fn property(&self, id: u32) -> Option<Vec<u8>> {
        if self.core().is_err() || !self.own().below().has_properties() {
            return None;
        }
        let mut bytes = vec![0u8; 256];
        let len = self.own().property(id, &mut bytes).ok().flatten()?;
        if len > bytes.len() {
            bytes.resize(len, 0);
            self.own().property(id, &mut bytes).ok().flatten()?;
        }
        bytes.truncate(len);
        Some(bytes)
    }

    /// What the device is called.
    pub fn name(&self) -> String {
        self.text(property::NAME).unwrap_or_else(|| self.id().to_owned())
    }
    /// An id that stays the same from start to start.
    pub fn stable_id(&self) -> Option<String> {
        self.text(property::UID).filter(|id| !id.is_empty())
    }
    /// "host", "unified" or "dedicated".
    pub fn memory_kind(&self) -> String {
        let usual = if self.caps().space == 0 { "host" } else { "dedicated" };
        self.text(property::MEMORY_KIND).unwrap_or_else(|| usual.into())
    }
    /// Bytes of the device's memory, if it tells.
    pub fn memory_total(&self) -> Option<u64> {
        self.number(property::GLOBAL_MEM_SIZE).filter(|total| *total > 0)
    }
    /// Bytes that can be allocated now, if the driver tells; never above the total.
    pub fn memory_free(&self) -> Option<u64> {
        let free = self.number(property::MEMORY_FREE)?;
        Some(self.memory_total().map_or(free, |total| free.min(total)))
    }
    /// How the free bytes were found, or why they are not known.
    pub fn memory_note(&self) -> Option<String> {
        self.text(property::MEMORY_NOTE)
    }

    /// Bytes that buffers of this runtime hold on the device, by place: live, peak, allocated, freed.
    ///
    /// # Errors
    /// None that a device of this runtime can cause.
    pub fn statistics(&self) -> Result<DeviceStatistics> {
        Ok(self.core()?.statistics(self.index)?)
    }

    /// How much freed memory the device keeps for the next buffer of the same length and kind, so that it costs neither
    /// the driver's allocate nor page faults. Nothing until this is called.
    ///
    /// # Errors
    /// What the driver says of memory that is to go back now.
    pub fn set_pool(&self, limits: PoolLimits) -> Result<()> {
        Ok(self.core()?.set_pool(self.index, limits)?)
    }

    /// Gives all memory that is kept and not used back to the driver: how many bytes.
    ///
    /// # Errors
    /// What the driver says.
    pub fn trim(&self) -> Result<u64> {
        Ok(self.core()?.trim(self.index)?)
    }

    /// What the pool of the device holds and did.
    ///
    /// # Errors
    /// None that a device of this runtime can cause.
    pub fn pool_statistics(&self) -> Result<PoolStatistics> {
        Ok(self.core()?.pool_statistics(self.index)?)
    }

    /// The kinds of memory that the device has, the best for its kernels first.
    ///
    /// # Errors
    /// None that a device of this runtime can cause.
    pub fn heaps(&self) -> Result<Vec<Heap>> {
        let none = Heap { kind: MemoryType::empty(), usage: Usage::empty(), alloc_max: 0, align: 0 };
        let mut heaps = vec![none; 8];
        let count = self.core()?.heaps(self.index, &mut heaps)?;
        heaps.truncate(count);
        Ok(heaps)
    }

    /// A queue whose operations run one after the other.
    ///
    /// # Errors
    /// When the device has no lane left, or its driver fails.
    pub fn queue(&self) -> Result<Queue> {
        self.queue_with(QueueOptions::default())
    }

    /// A queue by choice.
    ///
    /// # Errors
    /// As [`Device::queue`].
    pub fn queue_with(&self, options: QueueOptions) -> Result<Queue> {
        Queue::open(self.clone(), options)
    }

    /// Begins to record a command list without slots: what it works on is named once and for all.
    ///
    /// # Errors
    /// None today.
    pub fn record(&self) -> Result<Recording> {
        self.record_with(0)
    }

    /// Begins to record a command list with so many slots, which each submit binds to buffers.
    ///
    /// # Errors
    /// More slots than a list can have.
    pub fn record_with(&self, slots: u32) -> Result<Recording> {
        Recording::begin(self.clone(), slots)
    }

    /// `len` bytes of memory, contents not defined, freed when the last buffer over them is gone and the last work that
    /// uses them has ended.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory); what the driver says.
    pub fn allocate(&self, len: u64) -> Result<Buffer> {
        self.allocate_in(Memory::Device, len, 0)
    }

    /// The same of a kind and with an alignment (a power of two; 0: the device's own).
    ///
    /// # Errors
    /// As [`Device::allocate`].
    pub fn allocate_in(&self, memory: Memory, len: u64, align: u64) -> Result<Buffer> {
        let kind = match memory {
            Memory::Device => MemoryType::DEVICE_LOCAL,
            Memory::Host => MemoryType::HOST_LOCAL | MemoryType::DEVICE_VISIBLE,
            Memory::Managed => MemoryType::HOST_LOCAL | MemoryType::DEVICE_LOCAL,
        };
        let mappable = if self.caps().mappable { Usage::MAPPING } else { Usage::empty() };
        let usage = Usage::TRANSFER | Usage::DISPATCH | mappable;
        let kind = if self.caps().mappable { kind | MemoryType::HOST_VISIBLE } else { kind };
        let align = if align == 0 { self.caps().align.into() } else { align };
        let want = Want { len, align, kind: kind.bits(), access: 0, usage: usage.bits() };
        let root = self.core()?.allocate(self.index, &want)?;
        Ok(Buffer(buffer::Buffer::adopt(EngineHome(self.engine.clone()), root, len)))
    }

    /// Loads an image from memory.
    ///
    /// # Errors
    /// [`Image`](crate::ErrorKind::Image) for a wrong format or machine; what the driver says.
    pub fn program(&self, image: &[u8]) -> Result<Program> {
        Program::load(self.clone(), image)
    }

    /// Whether [`Device::program`] would take the image; starts nothing.
    pub fn accepts(&self, image: &[u8]) -> bool {
        use wharf_core::device::Programs;
        self.own().below().has_programs() && self.own().accepts(image)
    }

    /// Whether programs can be loaded at all.
    pub fn has_programs(&self) -> bool {
        self.own().below().has_programs()
    }

    /// Whether the two are one device of one runtime.
    pub fn same(&self, other: &Device) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.engine, &other.engine)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.id())
    }
}
