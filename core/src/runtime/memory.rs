//! Memory: allocate, wrap, find, share, free. Vendor calls run outside every lock; the interval map is asked only for
//! raw pointers; a record proves itself by its generation and state.
//!
//! # Safety
//! `Record::undo` holds a function of this runtime's device type, written by `enter_record` of the same runtime, so it
//! is read back as what it was.
#![allow(unsafe_code)]

use super::{ReleaseFn, Runtime, late::LateItem};
use crate::{
    bits::{Access, MemoryType, Usage},
    device::{Block, Device, Want},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    ranges::{Meet, Range, Ranges, enter},
    record::{Origin, Record, Space, state},
    sync::fence,
};
use core::sync::atomic::Ordering::*;

/// Memory types that lie in the process' address space whatever the device's own space is.
pub const MEMORY_TYPES_HOST: MemoryType = MemoryType::HOST_LOCAL;
/// The bit that says that memory lies with the device.
const LOCAL_TO_DEVICE: u32 = MemoryType::DEVICE_LOCAL.bits() & !MemoryType::DEVICE_VISIBLE.bits();
/// Largest alignment that can be asked for.
const ALIGN_MAX: u64 = 1 << 30;

/// How a record is given back.
pub(crate) type Undo<D> = fn(&D, &Record) -> Result<(), Fault>;

/// What is known of a piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Its record.
    pub record: Handle<Record>,
    /// Number of the device.
    pub device: usize,
    /// First address; 0 for memory of length 0, which has none.
    pub base: u64,
    /// Bytes.
    pub len: u64,
    /// The backend's own word.
    pub native: u64,
    /// Where it lies.
    pub kind: MemoryType,
    /// What may be done with it.
    pub access: Access,
    /// What it is for.
    pub usage: Usage,
}

/// What a new record is made of.
pub(crate) struct NewRecord<D> {
    pub(crate) device: usize,
    pub(crate) block: Block,
    pub(crate) len: u64,
    pub(crate) kind: u32,
    pub(crate) access: u32,
    pub(crate) usage: u32,
    pub(crate) origin: Origin,
    pub(crate) user: usize,
    pub(crate) release: Option<(ReleaseFn, *mut ())>,
    pub(crate) undo: Undo<D>,
}

impl<D: Device, E: Env> Runtime<D, E> {
    /// Memory of `want.len` bytes on a device. Zero bits mean: device-local memory, all access, transfers and kernels.
    /// Length 0 gives a record without an address. When memory is short, late frees are
    /// run, pools are trimmed, and it is tried again.
    ///
    /// # Errors
    /// `InvalidArgument` for an alignment that is no power of two or above 2^30; `ResourceExhausted`, also for more
    /// than the device gives at once; what the backend says; `BackendFailure` if it gives memory that is too short, misaligned or another's.
    pub fn allocate(&self, device: usize, want: &Want) -> Result<Handle<Record>, Fault> {
        let owner = self.device(device, Site::Allocate)?;
        let align = want.align.max(1);
        if !align.is_power_of_two() || align > ALIGN_MAX {
            return Err(Fault::caller(
                Kind::InvalidArgument,
                Site::Allocate,
                Why::Multiple,
                [align, ALIGN_MAX],
            ));
        }
        let caps = owner.caps();
        let want = canonical(want, caps.mappable && caps.coherent);
        if want.len > caps.alloc_max {
            return Err(Fault::full(Site::Allocate, caps.alloc_max));
        }
        let block = if want.len == 0 {
            Block { base: 0, len: 0, native: 0 }
        } else {
            self.allocate_block(owner, device, &want)?
        };
        self.enter_record(NewRecord {
            device,
            block,
            len: want.len,
            kind: want.kind,
            access: want.access,
            usage: want.usage,
            origin: Origin::Own,
            user: 0,
            release: None,
            undo: |owner, record| if record.len.get() == 0 { Ok(()) } else { owner.free(&record.block()) },
        })
    }

    fn allocate_block(&self, owner: &'static D, device: usize, want: &Want) -> Result<Block, Fault> {
        if let Some(block) = self.recycled(device, want) {
            return Ok(block);
        }
        let block = match owner.allocate(want) {
            Err(fault) if fault.kind == Kind::ResourceExhausted => {
                self.pass_now();
                self.trim_all();
                owner.allocate(want)?
            }
            other => other?,
        };
        let wrong = if block.len < want.len {
            Some((Why::Mismatch, [block.len, want.len]))
        } else if block.base == 0 || block.base.checked_add(block.len).is_none() {
            Some((Why::Address, [block.base, block.len]))
        } else if !block.base.is_multiple_of(want.align.max(1)) {
            Some((Why::Multiple, [block.base, want.align]))
        } else {
            None
        };
        if let Some((why, values)) = wrong {
            let _ = owner.free(&block);
            return Err(Fault::backend(Kind::BackendFailure, Site::Allocate, why, values));
        }
        Ok(block)
    }

    /// Enters memory that the backend gave or the caller lent; on failure it is given back.
    pub(crate) fn enter_record(&self, new: NewRecord<D>) -> Result<Handle<Record>, Fault> {
        let owner = self.device(new.device, Site::Allocate)?;
        let Some((handle, record)) = self.reserve(&new) else {
            // No slot, so no record: give back by a record of its own.
            let own = <Record as crate::handle::Body>::NEW;
            own.base.set(new.block.base);
            own.len.set(new.len);
            own.native.set(new.block.native);
            own.user.store(new.user, Relaxed);
            let _ = (new.undo)(owner, &own);
            return Err(Fault::full(Site::Allocate, self.records.used() as u64));
        };
        if let Err(fault) = self.enter_range(record, handle, new.origin) {
            let _ = (new.undo)(owner, record);
            self.unreserve(handle, record);
            return Err(fault);
        }
        if let Some(release) = new.release {
            record.set_release(release);
        }
        self.count(record, true);
        record.state.store(state::LIVE, Release);
        Ok(handle)
    }

    /// A record that nobody may use yet, with one reference; `None` if no slot is left.
    pub(crate) fn reserve(&self, new: &NewRecord<D>) -> Option<(Handle<Record>, &'static Record)> {
        let handle = self.records.insert::<E>(|record, _| {
            record.base.set(new.block.base);
            record.len.set(new.len);
            record.native.set(new.block.native);
            record.device.store(new.device as u32, Relaxed);
            record.space.store(0, Relaxed);
            record.kind.store(new.kind, Relaxed);
            record.access.store(new.access, Relaxed);
            record.usage.store(new.usage, Relaxed);
            record.origin.store(new.origin as u32, Relaxed);
            record.user.store(new.user, Relaxed);
            record.undo.store(new.undo as *const () as usize, Relaxed);
            record.refs.store(1, Relaxed);
            record.commit_timeline.set(0);
            record.commit_value.set(0);
            record.whole.set(0);
            record.state.store(state::RESERVED, Release);
        })?;
        Some((handle, self.records.body(handle.slot())?))
    }

    /// Gives a record back whose memory never came to be, or is another record's. Only whoever ended its pins, or made
    /// it.
    pub(crate) fn unreserve(&self, handle: Handle<Record>, record: &'static Record) {
        record.state.store(state::GONE, Release);
        self.records.end(handle);
        self.records.reuse(handle.slot());
    }

    fn enter_range(&self, record: &Record, handle: Handle<Record>, origin: Origin) -> Result<(), Fault> {
        let range = Range::of(record.base.get(), record.len.get(), handle.slot());
        let Some(range) = range.filter(|_| origin != Origin::Part) else { return Ok(()) };
        let device = record.device.load(Relaxed) as usize;
        let (slot, space) = self.space(self.space_key(device, record.kind.load(Relaxed))?)?;
        record.space.store(slot + 1, Relaxed);
        let gone = |slot| self.records.body(slot).is_none_or(Record::leaving);
        enter(&space.ranges, range, gone).map_err(|met| match met {
            Meet::Full => Fault::full(Site::Allocate, self.records.used() as u64),
            Meet::Range(held) => {
                let at = [range.start, held.start];
                match origin {
                    Origin::Own => Fault::backend(Kind::BackendFailure, Site::Allocate, Why::Overlap, at),
                    _ => Fault::caller(Kind::InvalidArgument, Site::Register, Why::Overlap, at),
                }
            }
        })
    }

    /// Which address space memory of this kind on this device lies in.
    fn space_key(&self, device: usize, kind: u32) -> Result<u64, Fault> {
        let caps = self.device(device, Site::Find)?.caps();
        let own = kind & LOCAL_TO_DEVICE != 0 && caps.space != 0;
        Ok(if own { 1 << 32 | (caps.backend as u64) << 16 | caps.space as u64 } else { PROCESS_KEY })
    }

    /// The space with this key, made at its first use.
    pub(crate) fn space(&self, key: u64) -> Result<(u32, &'static Space<E>), Fault> {
        if let Some(found) = self.known_space(key) {
            return Ok(found);
        }
        self.spacing.with(|()| {
            if let Some(found) = self.known_space(key) {
                return Ok(found);
            }
            let handle = self.spaces.insert::<E>(|space, _| space.key.set(key));
            let handle = handle.ok_or(Fault::full(Site::Allocate, self.spaces.used() as u64))?;
            let space = self.spaces.get(handle).ok_or(Self::bug(Site::Allocate))?;
            Ok((handle.slot(), space))
        })
    }

    pub(crate) fn known_space(&self, key: u64) -> Option<(u32, &'static Space<E>)> {
        (0..self.spaces.used()).find_map(|slot| {
            let space = self.spaces.body(slot)?;
            (self.spaces.current(slot).is_some() && space.key.get() == key).then_some((slot, space))
        })
    }

    /// Memory by handle, from its allocation (in the order of a queue, perhaps) to its owner's free.
    ///
    /// # Errors
    /// `InvalidHandle`, also once its owner has freed it.
    pub fn allocation(&self, record: Handle<Record>) -> Result<Allocation, Fault> {
        let stale = Fault::stale(Site::Find, record.raw());
        let body = self.records.get(record).ok_or(stale)?;
        let live = (state::PENDING..=state::CLOSING).contains(&body.state.load(Acquire));
        let known = Allocation {
            record,
            device: body.device.load(Relaxed) as usize,
            base: body.base.get(),
            len: body.len.get(),
            native: body.native.get(),
            kind: MemoryType::from_bits_retain(body.kind.load(Relaxed)),
            access: Access::from_bits_retain(body.access.load(Relaxed)),
            usage: Usage::from_bits_retain(body.usage.load(Relaxed)),
        };
        let whole = Handle::from_raw(body.whole.get());
        fence(Acquire);
        if !live || !self.records.live(record) {
            return Err(stale);
        }
        // A part ends with what it is a part of.
        if whole != Handle::NULL {
            self.allocation(whole).map_err(|_| stale)?;
        }
        Ok(known)
    }

    /// The live memory that holds an address, base or interior. With a device the address is exact; alone it is looked
    /// up in the process' space first, then in all others.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument` if two spaces have it.
    pub fn find(&self, device: Option<usize>, address: u64) -> Result<Allocation, Fault> {
        let missing = Fault::caller(Kind::NotFound, Site::Find, Why::Address, [address, 0]);
        if let Some(device) = device {
            let own = self.space_key(device, LOCAL_TO_DEVICE)?;
            let found = self.find_in(own, address).or_else(|| self.find_in(PROCESS_KEY, address));
            return found.ok_or(missing);
        }
        if let Some(found) = self.find_in(PROCESS_KEY, address) {
            return Ok(found);
        }
        let mut found: Option<Allocation> = None;
        for slot in 0..self.spaces.used() {
            let Some(space) = self.spaces.body(slot) else { continue };
            if let Some(hit) = self.find_in(space.key.get(), address).filter(|_| space.key.get() >> 32 == 1) {
                if let Some(first) = found {
                    let both = [first.device as u64, hit.device as u64];
                    return Err(Fault::caller(Kind::InvalidArgument, Site::Find, Why::Mismatch, both));
                }
                found = Some(hit);
            }
        }
        found.ok_or(missing)
    }

    fn find_in(&self, key: u64, address: u64) -> Option<Allocation> {
        let (space, at) = self.known_space(key)?;
        let range = at.ranges.find(address)?;
        let record = self.records.current(range.slot)?;
        // The map may be a moment behind: the record has the last word, on its space too.
        let here = self.records.body(range.slot)?.space.load(Acquire) == space + 1;
        let known = self.allocation(record).ok()?;
        (here && (known.base..known.base + known.len).contains(&address)).then_some(known)
    }

    /// Every live piece of memory, in the order of address spaces and addresses; pieces without an address are left out.
    pub fn each_allocation(&self, mut f: impl FnMut(&Allocation)) {
        for slot in 0..self.spaces.used() {
            let Some(space) = self.spaces.body(slot) else { continue };
            let mut from = 0;
            while let Some(range) = space.ranges.next(from) {
                if let Some(known) = self.records.current(range.slot).and_then(|h| self.allocation(h).ok()) {
                    f(&known);
                }
                from = range.end;
            }
        }
    }

    /// Keeps the record's turn on while `f` is inside: neither its memory nor its slot goes meanwhile.
    pub(crate) fn within<R>(
        &self,
        record: Handle<Record>,
        site: Site,
        f: impl FnOnce(&'static Record) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let stale = Fault::stale(site, record.raw());
        let body = self.records.get(record).ok_or(stale)?;
        if !body.pins.pin() {
            return Err(stale);
        }
        // The turn may have ended before the pin, which then keeps the next one.
        let result = if self.records.live(record) { f(body) } else { Err(stale) };
        self.leave(&body.pins);
        result
    }

    /// One reference more to a root.
    ///
    /// # Errors
    /// `InvalidHandle`.
    pub fn retain(&self, record: Handle<Record>) -> Result<(), Fault> {
        self.within(record, Site::Subspan, |body| {
            let live = (state::PENDING..=state::CLOSING).contains(&body.state.load(Acquire));
            if live && body.retain() { Ok(()) } else { Err(Fault::stale(Site::Subspan, record.raw())) }
        })
    }

    /// One reference less; the last one frees the memory once nothing can use it any more. What the backend says of a
    /// free that runs at once comes back; of a late one it is counted ([`Runtime::frees_refused`]).
    ///
    /// # Errors
    /// `InvalidHandle`; what the backend says, and then the memory is live again with one reference.
    pub fn release(&self, record: Handle<Record>) -> Result<(), Fault> {
        let stale = Fault::stale(Site::Free, record.raw());
        let last = self.within(record, Site::Free, |body| body.release().ok_or(stale))?;
        if last { self.free(record) } else { Ok(()) }
    }

    /// Frees memory whoever else refers to it; their handles are stale from here on. As [`Runtime::release`] else.
    ///
    /// # Errors
    /// As [`Runtime::release`].
    pub fn free(&self, record: Handle<Record>) -> Result<(), Fault> {
        let body = self.within(record, Site::Free, |body| {
            if body.go(state::PENDING, state::LATE) {
                self.uncommit(body);
            } else if !body.go(state::LIVE, state::LATE) {
                return Err(Fault::stale(Site::Free, record.raw()));
            }
            Ok(body)
        })?;
        // From here on the turn is this call's to end, or the late list's.
        body.late.begin();
        if self.late_over(&body.late) && body.pins.end_if_free() {
            return self.give_back_now(record.slot(), body);
        }
        self.be_late(LateItem::Record(record.slot()));
        Ok(())
    }

    /// No longer pending: nobody looks at that point any more. Whoever ended that state does it, so it is done once.
    pub(crate) fn uncommit(&self, body: &Record) {
        let timeline = Handle::from_raw(body.commit_timeline.get());
        if timeline != Handle::NULL {
            body.commit_timeline.set(0);
            self.unwatch(timeline);
        }
    }

    /// To the device's pool, or to the backend outside every lock; of memory whose pins have ended. Refused, the memory is
    /// live again.
    fn give_back_now(&self, slot: u32, body: &'static Record) -> Result<(), Fault> {
        let registered = body.origin.load(Relaxed) == Origin::Registered as u32;
        let moved = body.state.swap(state::FREEING, AcqRel) == state::MOVED;
        if !moved && self.keep(slot, body) {
            self.count(body, false);
            return Ok(());
        }
        let undone = if moved { Ok(()) } else { self.undo(body) };
        if undone.is_ok() && !moved {
            self.leave_map(slot, body);
            self.count(body, false);
        }
        let whole = Handle::from_raw(body.whole.get());
        if undone.is_ok() {
            self.end_record(slot);
        } else {
            body.refs.store(1, Relaxed);
            body.pins.reset();
            body.state.store(state::LIVE, Release);
        }
        if registered {
            self.bell.ring::<E>(); // Whoever registers the range again waits for this.
        }
        if undone.is_ok() && whole != Handle::NULL {
            // It may have been freed whoever used it: then there is nothing to let go of.
            let _ = self.release(whole);
        }
        undone
    }

    /// The backend's own free.
    pub(super) fn undo(&self, body: &Record) -> Result<(), Fault> {
        let device = self.device(body.device.load(Relaxed) as usize, Site::Free)?;
        // SAFETY: `undo` was stored from an `Undo<D>` of this runtime's `D`.
        let undo = unsafe { core::mem::transmute::<usize, Undo<D>>(body.undo.load(Relaxed)) };
        undo(device, body)
    }

    pub(super) fn leave_map(&self, slot: u32, body: &Record) {
        let space = body.space.load(Relaxed).checked_sub(1).and_then(|slot| self.spaces.body(slot));
        if let (Some(space), Some(range)) = (space, Range::of(body.base.get(), body.len.get(), slot)) {
            space.ranges.remove(range); // Unless the backend gave the address again already and it was taken over.
        }
    }

    /// The turn of a record whose memory is gone, and whose pins have ended, is over.
    pub(super) fn end_record(&self, slot: u32) {
        let Some(body) = self.records.body(slot) else { return };
        body.state.store(state::GONE, Release);
        if let Some(handle) = self.records.current(slot) {
            self.records.end(handle);
        }
        body.pins.reset();
        self.records.reuse(slot);
    }

    pub(crate) fn give_back(&self, slot: u32) {
        let Some(body) = self.records.body(slot) else { return };
        if self.give_back_now(slot, body).is_err() {
            self.refused.fetch_add(1, Relaxed);
        }
    }

    /// How many late frees and unloads a backend refused; their memory is live again.
    pub fn frees_refused(&self) -> u32 {
        self.refused.load(Relaxed)
    }
}

/// The space of process addresses.
const PROCESS_KEY: u64 = 3 << 32;

/// Zero bits filled in.
pub(super) fn canonical(want: &Want, seen_by_host: bool) -> Want {
    let mut want = *want;
    if want.kind == 0 {
        want.kind = MemoryType::DEVICE_LOCAL.bits();
    }
    if seen_by_host {
        want.kind |= MemoryType::HOST_LOCAL.bits();
    }
    if want.access == 0 {
        want.access = Access::ALL.bits();
    }
    if want.usage == 0 {
        want.usage = (Usage::TRANSFER | Usage::DISPATCH).bits();
    }
    want
}
