//! Staging: host memory between a file, or another device, and a device. A budget bounds it.

use crate::error::{Error, ErrorKind, Result};
use wharf_core::batch::{CHUNK_MAX, STAGE_MIN, Staging};

/// Most slots: chunks of one batch that are under way at once.
const SLOTS_MAX: u64 = 32;
/// Pages are read whole, and a device may want its transfers aligned.
const ALIGN: usize = 4096;

/// Memory of one batch, in slots; perhaps none.
pub(crate) struct Stage {
    _memory: Vec<u8>,
    address: u64,
    slot_len: u64,
    slots: u64,
}

impl Stage {
    /// For a batch that needs none.
    pub(crate) fn none() -> Stage {
        Stage { _memory: vec![], address: 0, slot_len: 0, slots: 0 }
    }

    /// Slots for two chunks of each timeline within `budget` bytes.
    ///
    /// # Errors
    /// A budget below one page for each timeline; memory that is short.
    pub(crate) fn new(budget: u64, timelines: usize) -> Result<Stage> {
        let slot_len = (budget / (2 * timelines as u64)).min(CHUNK_MAX) / STAGE_MIN * STAGE_MIN;
        if slot_len == 0 {
            let least = 2 * timelines as u64 * STAGE_MIN;
            let message = format!(
                "a staging budget of {budget} bytes is too small: {timelines} timelines need {least}"
            );
            return Err(Error::new(ErrorKind::Usage, message));
        }
        let slots = (budget / slot_len).min(SLOTS_MAX);
        let len = (slot_len * slots) as usize + ALIGN;
        let mut memory = Vec::new();
        if memory.try_reserve_exact(len).is_err() {
            let message = format!("{len} bytes of host memory for staging could not be had");
            return Err(Error::new(ErrorKind::OutOfMemory, message));
        }
        memory.resize(len, 0);
        // From here on only backends use the bytes, by address.
        let address = (memory.as_mut_ptr() as u64).next_multiple_of(ALIGN as u64);
        Ok(Stage { _memory: memory, address, slot_len, slots })
    }

    /// Where the slots are.
    pub(crate) fn staging(&self) -> Option<Staging> {
        (self.slots > 0).then_some(Staging {
            address: self.address,
            slot_len: self.slot_len,
            slots: self.slots as u32,
        })
    }
}
