//! The host's view of device memory, host memory lent to a device, and memory shown to it.

use super::{
    Runtime, Span,
    memory::{NewRecord, registrations_key},
};
use crate::{
    bits::{Access, MemoryType, Usage},
    device::{Block, Device, HostAccess, Want},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    ranges::{Range, Ranges},
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
        let (device, block, offset) = self.mappable(span, access - Access::ANY, Site::Map)?;
        if span.len == 0 {
            return Ok(core::ptr::dangling_mut());
        }
        device.map(&block, offset, span.len)
    }

    /// Ends a mapping. A second time does no harm.
    ///
    /// # Errors
    /// `InvalidHandle`; what the backend says.
    pub fn unmap(&self, span: &Span) -> Result<(), Fault> {
        let (device, block, offset) = self.mappable(span, Access::empty(), Site::Unmap)?;
        if span.len == 0 { Ok(()) } else { device.unmap(&block, offset, span.len) }
    }

    /// Makes host writes to the span visible to the device.
    ///
    /// # Errors
    /// As [`Runtime::map`].
    pub fn flush(&self, span: &Span) -> Result<(), Fault> {
        let (device, block, offset) = self.mappable(span, Access::WRITE, Site::Flush)?;
        if span.len == 0 { Ok(()) } else { device.sync(&block, offset, span.len, true) }
    }

    /// Makes device writes to the span visible to the host.
    ///
    /// # Errors
    /// As [`Runtime::map`].
    pub fn invalidate(&self, span: &Span) -> Result<(), Fault> {
        let (device, block, offset) = self.mappable(span, Access::READ, Site::Flush)?;
        if span.len == 0 { Ok(()) } else { device.sync(&block, offset, span.len, false) }
    }

    fn mappable(&self, span: &Span, access: Access, site: Site) -> Result<(&'static D, Block, u64), Fault> {
        let known = self.usable(span, access, Usage::MAPPING, site)?;
        self.touchable(span.root, site)?;
        if !known.kind.contains(MemoryType::HOST_VISIBLE) {
            let bits = [MemoryType::HOST_VISIBLE.bits() as u64, known.kind.bits() as u64];
            return Err(Fault::caller(Kind::PermissionDenied, site, Why::Bits, bits));
        }
        let (block, at) = self.block_of(span.root)?;
        Ok((self.device(known.device, site)?, block, at + span.offset))
    }

    /// Shows host memory to a device. A range inside one that is registered already shares it and counts; one that
    /// sticks out of it is refused.
    ///
    /// # Errors
    /// `InvalidArgument` for length 0, a range past the last address or a partial overlap; what the backend says.
    ///
    /// # Safety
    /// The memory stays allocated until it is unregistered and all work that uses it has ended.
    #[allow(unsafe_code)]
    pub unsafe fn register(
        &self,
        device: usize,
        host: *mut u8,
        len: u64,
        access: Access,
    ) -> Result<Handle<Record>, Fault> {
        let owner = self.device(device, Site::Register)?;
        let range = Range::of(host as u64, len, 0).filter(|_| !host.is_null()).ok_or(Fault::caller(
            Kind::InvalidArgument,
            Site::Register,
            Why::Overflow,
            [host as u64, len],
        ))?;
        let (_, set) = self.space(registrations_key(device))?;
        if let Some(held) = set.ranges.find(range.start) {
            if range.end > held.end {
                let at = [range.start, held.start];
                return Err(Fault::caller(Kind::InvalidArgument, Site::Register, Why::Overlap, at));
            }
            if let Some(handle) = self.records.current(held.slot)
                && self.retain(handle).is_ok()
            {
                return Ok(handle);
            }
        }
        let block = owner.register(host, len, access.bits())?;
        self.enter_record(NewRecord {
            device,
            block: Block { base: host as u64, ..block },
            len,
            kind: (MemoryType::HOST_LOCAL | MemoryType::DEVICE_VISIBLE).bits(),
            access: access.bits(),
            usage: Usage::ALL.bits(),
            origin: Origin::Registered,
            user: block.base as usize,
            undo: |owner, record| {
                owner.unregister(&Block { base: record.user.load(Relaxed) as u64, ..record.block() })
            },
        })
        .map_err(|fault| Fault { kind: Kind::InvalidArgument, site: Site::Register, ..fault })
    }

    /// One registration less of the range that holds the address; the last one ends it once nothing can use it.
    ///
    /// # Errors
    /// `InvalidArgument` if nothing there is registered; what the backend says.
    pub fn unregister(&self, device: usize, host: *const u8) -> Result<(), Fault> {
        let unknown = Fault::caller(Kind::InvalidArgument, Site::Register, Why::Address, [host as u64, 0]);
        let (_, set) = self.known_space(registrations_key(device)).ok_or(unknown)?;
        let held = set.ranges.find(host as u64).ok_or(unknown)?;
        let record = self.records.current(held.slot).ok_or(unknown)?;
        self.release(record).map_err(|fault| if fault.kind == Kind::InvalidHandle { unknown } else { fault })
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
    /// needs; `InvalidArgument` for a null pointer or a range past the last address; `ResourceExhausted`.
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
        let handle = self.enter_record(NewRecord {
            device,
            block: Block { base, len: want.len, native: 0 },
            len: want.len,
            kind: want.kind | (MemoryType::HOST_LOCAL | MemoryType::DEVICE_VISIBLE).bits(),
            access: if want.access == 0 { Access::ALL.bits() } else { want.access },
            usage: if want.usage == 0 { Usage::ALL.bits() } else { want.usage },
            origin: Origin::Wrapped,
            user: 0,
            undo: |_, record| {
                if let Some(release) = record.take_release() {
                    release.0(release.1);
                }
                Ok(())
            },
        })?;
        if let (Some(release), Some(record)) = (release, self.records.get(handle)) {
            record.set_release(release);
        }
        Ok(handle)
    }

    /// Whether a record still waits for its last use after its owner freed it.
    pub fn is_late(&self, record: Handle<Record>) -> bool {
        self.records.get(record).is_some_and(|r| r.state.load(Acquire) == state::LATE)
    }
}
