//! Memory type, access and usage bits of buffers. Names and values follow IREE's HAL base header (`hal/buffer.h`);
//! Wharf's own additions begin at bit 8.

use bitflags::bitflags;

bitflags! {
    /// Where memory lies and who can see it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct MemoryType: u32 {
        /// Short-lived; may come from a pool.
        const TRANSIENT = 1;
        /// The host can map it.
        const HOST_VISIBLE = 2;
        /// The host sees device writes, and the device host writes, without flush or invalidate.
        const HOST_COHERENT = 4;
        /// Host reads go through the cache.
        const HOST_CACHED = 8;
        /// Lies with the host; visible and coherent.
        const HOST_LOCAL = 2 | 4;
        /// The device can use it.
        const DEVICE_VISIBLE = 16;
        /// Lies with the device.
        const DEVICE_LOCAL = 16 | 32;
    }
}

bitflags! {
    /// What may be done with a buffer's bytes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Access: u32 {
        /// May be read.
        const READ = 1;
        /// May be written.
        const WRITE = 2;
        /// Contents may be thrown away first.
        const DISCARD = 4;
        /// Written whole, nothing kept.
        const DISCARD_WRITE = 2 | 4;
        /// May overlap other live ranges.
        const MAY_ALIAS = 8;
        /// In a request: any access will do.
        const ANY = 16;
        /// Read, write and discard.
        const ALL = 7;
    }
}

bitflags! {
    /// What a buffer is used for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Usage: u32 {
        /// Constant while kernels run.
        const CONSTANT = 1;
        /// Source or target of transfers.
        const TRANSFER = 2;
        /// Mapped by the host.
        const MAPPING = 4;
        /// Used by kernels.
        const DISPATCH = 8;
        /// Transfers, mapping and kernels.
        const ALL = 2 | 4 | 8;
    }
}
