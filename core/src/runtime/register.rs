//! Host memory shown to a device. A range that is registered is one record, which counts how often it was; the backend
//! registers it once.
//!
//! A range is entered before the backend is called, so that of two threads which register one range at once the second
//! finds it and waits for the first. A range whose end is still to come (work may use it) and that is registered again
//! goes to a record of its own, with what the backend said of it: the old handle stays stale, and the backend hears
//! nothing. All that is decided about a device's ranges is decided under one lock, with no backend inside.

use super::{Runtime, memory::NewRecord};
use crate::{
    bits::{Access, MemoryType, Usage},
    device::{Block, HostAccess},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    ranges::{Meet, Range, Ranges},
    record::{Origin, Record, Space, state},
};
use core::sync::atomic::Ordering::*;

/// What is to be done about a range.
enum Plan {
    /// Nothing: it is registered, and counts this one.
    Counted(Handle<Record>),
    /// The range is this call's, and the backend to be asked.
    Ask(Handle<Record>),
    /// It was taken over, but no room was left to find it by its address.
    Homeless(Handle<Record>),
    /// The backend is being asked by another, or is letting go of it.
    Later,
}

/// Who holds a range that another meets.
enum Holder {
    Counted(Handle<Record>),
    Other,
    /// Only until its last use has ended.
    Ending(Handle<Record>),
    /// Nobody can tell yet.
    Open,
    /// Nobody: the map was looked at a moment ago.
    Gone,
}

impl<D: HostAccess, E: Env> Runtime<D, E> {
    /// Shows host memory to a device. A range inside one that is registered already shares it and counts; one that
    /// sticks out of it is refused. Waits while another thread is registering or unregistering the range.
    ///
    /// # Errors
    /// `InvalidArgument` for length 0, a range past the last address or a partial overlap; `ResourceExhausted`; what the
    /// backend says.
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
        let (place, set) = self.space(registrations_key(device))?;
        let look = || self.spacing.with(|()| self.plan(set, place, device, range, access));
        let mut plan = look()?;
        if matches!(plan, Plan::Later) {
            self.wait_at_bell(None, || match look() {
                Ok(Plan::Later) => None,
                Ok(next) => {
                    plan = next;
                    Some(Ok(()))
                }
                Err(fault) => Some(Err(fault)),
            })?;
        }
        match plan {
            Plan::Counted(handle) => Ok(handle),
            Plan::Ask(handle) => {
                self.answered(set, range, handle, owner.register(host, len, access.bits()))?;
                Ok(handle)
            }
            Plan::Homeless(handle) => {
                self.free(handle)?;
                Err(Fault::full(Site::Register, self.records.used() as u64))
            }
            Plan::Later => Err(Self::bug(Site::Register)),
        }
    }

    /// One look at what holds the range. Under the lock.
    fn plan(
        &self,
        set: &Space<E>,
        place: u32,
        device: usize,
        range: Range,
        access: Access,
    ) -> Result<Plan, Fault> {
        loop {
            let held = match set.ranges.find(range.start) {
                Some(held) => held,
                None => match self.claim(set, place, device, range, access)? {
                    Ok(handle) => return Ok(Plan::Ask(handle)),
                    Err(held) => held,
                },
            };
            let inside = held.start <= range.start && range.end <= held.end;
            match self.holder(held, device, inside) {
                Holder::Counted(handle) => return Ok(Plan::Counted(handle)),
                Holder::Ending(old) if inside => return self.take_over(set, place, held, old),
                Holder::Ending(_) | Holder::Other => {
                    let at = [range.start, held.start];
                    return Err(Fault::caller(Kind::InvalidArgument, Site::Register, Why::Overlap, at));
                }
                Holder::Open => return Ok(Plan::Later),
                Holder::Gone => drop(set.ranges.remove(held)),
            }
        }
    }

    /// Enters a range that the backend does not know yet, or says which one is in the way.
    fn claim(
        &self,
        set: &Space<E>,
        place: u32,
        device: usize,
        range: Range,
        access: Access,
    ) -> Result<Result<Handle<Record>, Range>, Fault> {
        let full = || Fault::full(Site::Register, self.records.used() as u64);
        let block = Block { base: range.start, len: range.end - range.start, native: 0 };
        let (handle, record) = self.reserve(&registration(device, block, access.bits())).ok_or_else(full)?;
        record.space.store(place + 1, Release);
        match set.ranges.insert(Range { slot: handle.slot(), ..range }) {
            Ok(()) => Ok(Ok(handle)),
            Err(met) => {
                self.unreserve(handle, record);
                match met {
                    Meet::Range(held) => Ok(Err(held)),
                    Meet::Full => Err(full()),
                }
            }
        }
    }

    /// Who holds a range of the map, counted once more if `inside`.
    fn holder(&self, held: Range, device: usize, inside: bool) -> Holder {
        let Some(handle) = self.records.current(held.slot) else { return Holder::Gone };
        let holder = self.within(handle, Site::Register, |body| {
            Ok(match body.state.load(Acquire) {
                _ if !is_at(body, device, held.start) => Holder::Gone,
                state::LIVE if inside && body.retain() => Holder::Counted(handle),
                state::LIVE if !inside => Holder::Other,
                state::LATE => Holder::Ending(handle),
                state::GONE | state::MOVED => Holder::Gone,
                // Being registered, or let go of; or counted down, and about to end.
                _ => Holder::Open,
            })
        });
        let on = self.records.current(held.slot) == Some(handle);
        holder.unwrap_or(if on { Holder::Open } else { Holder::Gone })
    }

    /// What the backend said of a range that is to end goes to a record of its own, and the range with it.
    fn take_over(&self, set: &Space<E>, place: u32, held: Range, old: Handle<Record>) -> Result<Plan, Fault> {
        let full = Fault::full(Site::Register, self.records.used() as u64);
        let taken = self.within(old, Site::Register, |from| {
            let device = from.device.load(Relaxed) as usize;
            let new = registration(device, from.block(), from.access.load(Relaxed));
            let Some((handle, to)) = self.reserve(&new) else { return Ok(Err(full)) };
            to.user.store(from.user.load(Relaxed), Relaxed);
            if !from.go(state::LATE, state::MOVED) {
                self.unreserve(handle, to);
                return Ok(Ok(Plan::Later));
            }
            set.ranges.remove(held);
            let entered = set.ranges.insert(Range { slot: handle.slot(), ..held }).is_ok();
            to.space.store(if entered { place + 1 } else { 0 }, Release);
            to.state.store(state::LIVE, Release);
            Ok(Ok(if entered { Plan::Counted(handle) } else { Plan::Homeless(handle) }))
        });
        // Stale: its end began meanwhile, and whoever ends it rings.
        taken.unwrap_or(Ok(Plan::Later))
    }

    /// The backend has answered for a range that was claimed; others may wait for that.
    fn answered(
        &self,
        set: &Space<E>,
        range: Range,
        handle: Handle<Record>,
        answer: Result<Block, Fault>,
    ) -> Result<(), Fault> {
        let record = self.records.body(handle.slot()).ok_or(Self::bug(Site::Register))?;
        let registered = answer.map(|block| {
            record.native.set(block.native);
            record.user.store(block.base as usize, Relaxed);
            record.state.store(state::LIVE, Release);
        });
        if registered.is_err() {
            self.spacing.with(|()| {
                set.ranges.remove(Range { slot: handle.slot(), ..range });
                self.unreserve(handle, record);
            });
        }
        self.bell.ring::<E>();
        registered
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
        let known = |fault: Fault| if fault.kind == Kind::InvalidHandle { unknown } else { fault };
        let last = self.within(record, Site::Register, |body| {
            let live = is_at(body, device, held.start) && body.state.load(Acquire) == state::LIVE;
            if live { body.release().ok_or(unknown) } else { Err(unknown) }
        });
        if last.map_err(known)? { self.free(record).map_err(known) } else { Ok(()) }
    }
}

/// Whether a record is a registration on a device that begins at an address: its slot may be another's by now.
fn is_at(body: &Record, device: usize, start: u64) -> bool {
    body.origin.load(Relaxed) == Origin::Registered as u32
        && body.device.load(Relaxed) as usize == device
        && body.base.get() == start
}

fn registration<D: HostAccess>(device: usize, block: Block, access: u32) -> NewRecord<D> {
    NewRecord {
        device,
        block,
        len: block.len,
        kind: (MemoryType::HOST_LOCAL | MemoryType::DEVICE_VISIBLE).bits(),
        access,
        usage: Usage::ALL.bits(),
        origin: Origin::Registered,
        user: 0,
        release: None,
        undo: |owner, record| {
            owner.unregister(&Block { base: record.user.load(Relaxed) as u64, ..record.block() })
        },
    }
}

/// Registrations overlap allocations, so each device's are a set of their own.
fn registrations_key(device: usize) -> u64 {
    2 << 32 | device as u64
}
