//! The host's view of device memory, and host memory lent to a device.

use super::{Runtime, Span, memory::NewRecord};
use crate::{
    bits::{Access, MemoryType, Usage},
    device::{Block, Device, HostAccess, Want},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    record::{Origin, Record, state},
};
use core::sync::atomic::Ordering::*;

impl<D: HostAccess, E: Env> Runtime<D, E> {
    /// A host address of the span's bytes. Needs host-visible memory with mapping usage.
    ///
    /// # Errors
    /// `PermissionDenied`, `OutOfRange`, `InvalidHandle`; what the backend says.
    pub fn map(&self, span: &Span, access: Access) -> Result<*mut u8, Fault> {
        if !access.intersects(Access::READ | Access::WRITE | Access::ANY) {
            return Err(Fault::caller(
                Kind::InvalidArgument,
                Site::Map,
                Why::Bits,
                [3, access.bits() as u64],
            ));
        }
        self.mappable(span, access - Access::ANY, Site::Map, |device, block, at| {
            if span.len == 0 {
                return Ok(core::ptr::dangling_mut());
            }
            device.map(block, at, span.len)
        })
    }

    /// Ends a mapping. A second time does no harm.
    ///
    /// # Errors
    /// `InvalidHandle`; what the backend says.
    pub fn unmap(&self, span: &Span) -> Result<(), Fault> {
        self.mappable(span, Access::empty(), Site::Unmap, |device, block, at| {
            if span.len == 0 { Ok(()) } else { device.unmap(block, at, span.len) }
        })
    }

    /// Makes host writes to the span visible to the device.
    ///
    /// # Errors
    /// As [`Runtime::map`].
    pub fn flush(&self, span: &Span) -> Result<(), Fault> {
        self.mappable(span, Access::WRITE, Site::Flush, |device, block, at| {
            if span.len == 0 { Ok(()) } else { device.sync(block, at, span.len, true) }
        })
    }

    /// Makes device writes to the span visible to the host.
    ///
    /// # Errors
    /// As [`Runtime::map`].
    pub fn invalidate(&self, span: &Span) -> Result<(), Fault> {
        self.mappable(span, Access::READ, Site::Flush, |device, block, at| {
            if span.len == 0 { Ok(()) } else { device.sync(block, at, span.len, false) }
        })
    }

    /// Checks a span that the host wants to touch, and calls the backend while its memory is kept.
    fn mappable<R>(
        &self,
        span: &Span,
        access: Access,
        site: Site,
        call: impl FnOnce(&'static D, &Block, u64) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        self.within(span.root, site, |body| {
            let (device, block, at) = self.mappable_block(span, access, site)?;
            // It may have been freed since it was looked up: then it is not touchable any more.
            self.touchable_body(body, site)?;
            call(device, &block, at)
        })
    }

    fn mappable_block(
        &self,
        span: &Span,
        access: Access,
        site: Site,
    ) -> Result<(&'static D, Block, u64), Fault> {
        let known = self.usable(span, access, Usage::MAPPING, site)?;
        if !known.kind.contains(MemoryType::HOST_VISIBLE) {
            let bits = [MemoryType::HOST_VISIBLE.bits() as u64, known.kind.bits() as u64];
            return Err(Fault::caller(Kind::PermissionDenied, site, Why::Bits, bits));
        }
        let (block, at) = self.block_of(span.root)?;
        Ok((self.device(known.device, site)?, block, at + span.offset))
    }
}

/// Called once when wrapped memory is let go of.
pub type ReleaseFn = extern "C" fn(user: *mut ());

impl<D: Device, E: Env> Runtime<D, E> {
    /// Host memory of the caller's as memory of a device that reaches process memory. `release` is called exactly once,
    /// when nothing can use it any more, never inside an interrupt, and never if this call fails.
    ///
    /// # Errors
    /// `Unsupported` if the device does not reach process memory; `OutOfRange` if `host` is less aligned than the device
    /// needs; `InvalidArgument` for a null pointer, a range past the last address or one that overlaps other memory;
    /// `ResourceExhausted`.
    ///
    /// # Safety
    /// The memory stays allocated, and is used by nobody else in a way that `want.access` forbids, until `release`.
    #[allow(unsafe_code)]
    pub unsafe fn wrap(
        &self,
        device: usize,
        host: *mut u8,
        want: &Want,
        release: Option<(ReleaseFn, *mut ())>,
    ) -> Result<Handle<Record>, Fault> {
        let caps = self.device(device, Site::Register)?.caps();
        if caps.space != 0 || !caps.host_copies {
            return Err(Fault::backend(Kind::Unsupported, Site::Register, Why::Missing, [0; 2]));
        }
        let base = host as u64;
        if host.is_null() || base.checked_add(want.len).is_none() {
            return Err(Fault::caller(
                Kind::InvalidArgument,
                Site::Register,
                Why::Overflow,
                [base, want.len],
            ));
        }
        if !base.is_multiple_of(want.align.max(1)) {
            return Err(Fault::caller(Kind::OutOfRange, Site::Register, Why::Multiple, [base, want.align]));
        }
        self.enter_record(NewRecord {
            device,
            block: Block { base, len: want.len, native: 0 },
            len: want.len,
            kind: want.kind | (MemoryType::HOST_LOCAL | MemoryType::DEVICE_VISIBLE).bits(),
            access: if want.access == 0 { Access::ALL.bits() } else { want.access },
            usage: if want.usage == 0 { Usage::ALL.bits() } else { want.usage },
            origin: Origin::Wrapped,
            user: 0,
            release,
            undo: |_, record| {
                if let Some(release) = record.take_release() {
                    release.0(release.1);
                }
                Ok(())
            },
        })
    }

    /// Whether a record still waits for its last use after its owner freed it.
    pub fn is_late(&self, record: Handle<Record>) -> bool {
        self.records.get(record).is_some_and(|r| r.state.load(Acquire) == state::LATE)
    }
}
