//! Table "wharf.queue".
//!
//! # Safety
//! See [`export`](super). A queue's lane is entered by `submit` and `destroy` only, which the tables allow one thread
//! at a time; its gauge is shared. The bridge outlives lane and gauge, so a tick's cookie is good while they live.
#![allow(unsafe_code)]

use super::{No, Plugin, Slot, answer, on_device, op};
use crate::{
    errors,
    errors::TextSource,
    guard,
    guard::State,
    sized,
    tables::{self, QueueArgs, Status, To, hint},
};
use core::{cell::UnsafeCell, ffi::c_void, mem::MaybeUninit, sync::atomic::Ordering::*};
use std::sync::Arc;
use wharf_core::{
    device::{Device, Gauge, Hint, Lane, Step},
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
    word::Word64,
};

/// An exported queue. Fields drop in this order.
struct Queue<D: Device> {
    lane: UnsafeCell<D::Lane>,
    gauge: D::Gauge,
    name: usize,
    state: State,
    slot: &'static Slot<D>,
    _bridge: Arc<Bridge>,
}

/// What the tick of an exported lane calls: the host, by its table.
struct Bridge {
    tell: unsafe extern "C" fn(*mut c_void),
    fail: unsafe extern "C" fn(*mut c_void, Status),
    cookie: *mut c_void,
    source: TextSource,
}

// SAFETY: the host's functions may be called from any thread, and the cookie is only handed back to them.
unsafe impl Send for Bridge {}
// SAFETY: as for `Send`; nothing of a bridge changes.
unsafe impl Sync for Bridge {}

unsafe extern "C" fn bridge_tell(cookie: *const ()) {
    // SAFETY: the cookie of an exported tick is its bridge, which outlives the lane that holds the tick.
    let bridge = unsafe { &*cookie.cast::<Bridge>() };
    // SAFETY: the host's function takes the cookie it gave, until `destroy` returns.
    unsafe { (bridge.tell)(bridge.cookie) }
}

unsafe extern "C" fn bridge_fail(cookie: *const (), why: *const Fault) {
    // SAFETY: as in `bridge_tell`.
    let bridge = unsafe { &*cookie.cast::<Bridge>() };
    // SAFETY: `Tick::fail` passes a reference.
    let why = unsafe { &*why };
    let status = guard::cold(None, || errors::status(why, bridge.source));
    // SAFETY: as in `bridge_tell`.
    unsafe { (bridge.fail)(bridge.cookie, status) }
}

pub(super) unsafe extern "C" fn create<P: Plugin>(
    device: u64,
    args: To<QueueArgs>,
    queue: *mut u64,
) -> Status {
    let run = |device: &'static P::Device, slot: &'static Slot<P::Device>| -> Result<(), No> {
        // SAFETY: the caller's struct, with its size.
        let args = unsafe { sized::read(args) }.map_err(|bad| bad.fault(Site::Queue))?;
        // SAFETY: the caller's chain.
        unsafe { sized::chain(args.next, Site::Queue) }?;
        if args.value.is_null() || !args.value.is_aligned() {
            return Err(Fault::caller(Kind::InvalidArgument, Site::Queue, Why::Zero, [1, 0]).into());
        }
        let (tell, fail) = P::home().calls(Site::Queue)?;
        let bridge = Arc::new(Bridge { tell, fail, cookie: args.cookie, source: P::text });
        // SAFETY: `value` is the host's word, an atomic `u64` in its memory until `destroy` has returned; the lane and
        // gauge that get it are gone by then.
        let word = unsafe { &*args.value.cast::<Word64>() };
        // SAFETY: the bridge outlives lane and gauge, and the host's functions may be called from any thread.
        let tick = unsafe { Tick::from_parts(word, Arc::as_ptr(&bridge).cast(), bridge_tell, bridge_fail) };
        let (lane, gauge, name) = device.lane(tick)?;
        let state = State::new(State::STARTED);
        let made =
            Queue::<P::Device> { lane: UnsafeCell::new(lane), gauge, name, state, slot, _bridge: bridge };
        let made = Box::into_raw(Box::new(made));
        slot.queues.fetch_add(1, AcqRel);
        // SAFETY: the caller's own place.
        let put = unsafe { sized::put(queue, made.expose_provenance() as u64, Site::Queue) };
        if put.is_err() {
            slot.queues.fetch_sub(1, AcqRel);
            // SAFETY: leaked above, and nobody has its address.
            drop(unsafe { Box::from_raw(made) });
        }
        Ok(put?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Queue, run) }
}

/// The name of a live queue's lane, for [`Op::After`](wharf_core::device::Op).
///
/// # Safety
/// 0, or a live queue of this plugin.
pub(super) unsafe fn name<P: Plugin>(queue: u64) -> Result<usize, No> {
    let at = at::<P>(queue);
    if at.is_null() || !at.is_aligned() {
        return Err(Fault::stale(Site::Wait, queue).into());
    }
    // SAFETY: live by the caller's promise: core pins the lane it names.
    let name = unsafe { &raw const (*at).name };
    // SAFETY: as above; written once, before the handle was given out.
    Ok(unsafe { name.read() })
}

fn at<P: Plugin>(queue: u64) -> *mut Queue<P::Device> {
    core::ptr::with_exposed_provenance_mut(queue as usize)
}

#[cold]
fn no_queue<P: Plugin>(queue: u64, site: Site) -> Status {
    answer::<P>(Err(Fault::stale(site, queue).into()))
}

pub(super) unsafe extern "C" fn destroy<P: Plugin>(queue: u64) -> Status {
    let at = at::<P>(queue);
    if at.is_null() || !at.is_aligned() {
        return no_queue::<P>(queue, Site::Close);
    }
    guard::cold(None, || {
        // SAFETY: `create` leaked this box, and nothing of the queue runs during or after `destroy`.
        let queue = unsafe { Box::from_raw(at) };
        let slot = queue.slot;
        // A panic in a drop leaves the count as it is: then `close` does not drop the device either.
        drop(queue);
        slot.queues.fetch_sub(1, AcqRel);
        Status::OK
    })
}

/// Runs a call about a live queue.
///
/// # Safety
/// 0, or a handle of `create` before its `destroy`.
#[inline]
unsafe fn on_queue<P: Plugin>(
    queue: u64,
    site: Site,
    run: impl FnOnce(&Queue<P::Device>) -> Status,
) -> Status {
    let at = at::<P>(queue);
    if at.is_null() || !at.is_aligned() {
        return no_queue::<P>(queue, site);
    }
    // SAFETY: a box that `create` leaked and `destroy` has not taken back; only shared references are made of it.
    let queue = unsafe { &*at };
    if queue.state.get() != State::STARTED {
        return queue.state.refusal(site);
    }
    if queue.slot.state.get() != State::STARTED {
        return queue.slot.state.refusal(site);
    }
    guard::hot(Some(&queue.state), || run(queue))
}

pub(super) unsafe extern "C" fn poll<P: Plugin>(queue: u64) -> Status {
    // SAFETY: core passes live handles of ours.
    unsafe {
        on_queue::<P>(queue, Site::Query, |queue| {
            queue.gauge.poll();
            Status::OK
        })
    }
}

pub(super) unsafe extern "C" fn wait<P: Plugin>(queue: u64, value: u64, deadline_ns: u64) -> Status {
    let until = if deadline_ns == u64::MAX { None } else { Some(deadline_ns) };
    let run = |queue: &Queue<P::Device>| match queue.gauge.wait(value, until) {
        true => Status::OK,
        false => crate::code::plain(Kind::Unsupported),
    };
    // SAFETY: core passes live handles of ours.
    unsafe { on_queue::<P>(queue, Site::Wait, run) }
}

pub(super) unsafe extern "C" fn times<P: Plugin>(
    queue: u64,
    value: u64,
    begin_ns: *mut u64,
    end_ns: *mut u64,
) -> Status {
    let run = |queue: &Queue<P::Device>| {
        let Some(times) = queue.gauge.times(value) else { return crate::code::plain(Kind::NotFound) };
        // SAFETY: the caller's own places.
        let begin = unsafe { sized::put(begin_ns, times.begin_ns, Site::Event) };
        // SAFETY: the caller's own places.
        let end = unsafe { sized::put(end_ns, times.end_ns, Site::Event) };
        answer::<P>(begin.and(end).map_err(No::from))
    };
    // SAFETY: core passes live handles of ours.
    unsafe { on_queue::<P>(queue, Site::Event, run) }
}

/// Operations that are decoded at once, on the stack.
const BATCH: usize = 8;

pub(super) unsafe extern "C" fn submit<P: Plugin>(
    queue: u64,
    ops: To<tables::Op>,
    count: u32,
    stride: u32,
    hint: u32,
    taken: *mut u32,
) -> Status {
    if taken.is_null() || !taken.is_aligned() {
        let fault = Fault::caller(Kind::InvalidArgument, Site::Submit, Why::Zero, [6, 0]);
        return answer::<P>(Err(fault.into()));
    }
    // SAFETY: the caller's own place, tested above.
    unsafe { taken.write(0) };
    let fits = !ops.0.is_null()
        && ops.0.is_aligned()
        && stride as usize >= size_of::<tables::Op>()
        && (stride as usize).is_multiple_of(align_of::<tables::Op>());
    if !fits && count != 0 {
        let values = [stride.into(), size_of::<tables::Op>() as u64];
        let fault = Fault::caller(Kind::InvalidArgument, Site::Submit, Why::Mismatch, values);
        return answer::<P>(Err(fault.into()));
    }
    let run = |queue: &Queue<P::Device>| {
        // SAFETY: one thread at a time submits to a queue, and no other function enters its lane.
        let lane = unsafe { &mut *queue.lane.get() };
        let (n, result) = if count == 1 {
            // The ordinary case, worth a copy of the code without the loop.
            // SAFETY: one operation lies there.
            unsafe { take::<P, 1>(lane, ops, 1, stride as usize, hint, taken) }
        } else {
            // SAFETY: `count` operations lie `stride` apart, a stride that the test above found good.
            unsafe { take::<P, BATCH>(lane, ops, count, stride as usize, hint, taken) }
        };
        // SAFETY: the caller's own place, tested above.
        unsafe { taken.write(n) };
        answer::<P>(result)
    };
    // SAFETY: core passes live handles of ours.
    unsafe { on_queue::<P>(queue, Site::Submit, run) }
}

/// Decodes and hands over, batch by batch; answers how many were taken. `taken` follows, should the backend panic.
///
/// # Safety
/// `count` operations lie at `ops`, `stride` bytes apart; `taken` may be written.
#[inline]
unsafe fn take<P: Plugin, const N: usize>(
    lane: &mut <P::Device as Device>::Lane,
    ops: To<tables::Op>,
    count: u32,
    stride: usize,
    hint: u32,
    taken: *mut u32,
) -> (u32, Result<(), No>) {
    let mut n = 0u32;
    while n < count {
        let mut batch = [const { MaybeUninit::<Step<'_>>::uninit() }; N];
        let len = N.min((count - n) as usize);
        let (mut ready, mut refused) = (0, None);
        for place in &mut batch[..len] {
            // SAFETY: below `count`, so inside the caller's array.
            let op = unsafe { ops.0.byte_add((n as usize + ready) * stride) };
            // SAFETY: an operation of the caller, aligned because array and stride are; it stays for the call.
            let op = unsafe { &*op };
            // SAFETY: the caller's operation.
            if let Err(no) = unsafe { op::decode::<P>(op, place) } {
                refused = Some(no);
                break;
            }
            ready += 1;
        }
        // SAFETY: the first `ready` places were written.
        let steps = unsafe { core::slice::from_raw_parts(batch.as_ptr().cast::<Step<'_>>(), ready) };
        let last = n as usize + ready == count as usize;
        match lane.submit(steps, if last { self::hint(hint) } else { Hint::More }) {
            Ok(took) if took < ready => return (n + took as u32, Ok(())),
            Ok(_) => n += ready as u32,
            Err((took, fault)) => return (n + took.min(ready) as u32, Err(fault.into())),
        }
        // SAFETY: the caller of `submit` gave this place, which was tested there.
        unsafe { taken.write(n) };
        if let Some(no) = refused {
            return (n, Err(*no));
        }
    }
    (n, Ok(()))
}

fn hint(number: u32) -> Hint {
    match number {
        hint::MORE => Hint::More,
        hint::WAITING => Hint::Waiting,
        _ => Hint::None,
    }
}
