//! Table "wharf.device".
//!
//! # Safety
//! See [`export`](super).
#![allow(unsafe_code)]

use super::{No, Plugin, answer, on_device, slot};
use crate::{
    errors, guard,
    guard::State,
    sized,
    tables::{self, Status, To},
};
use wharf_core::{
    device::{Caps, Describe, Device, Pace},
    fault::{Kind, Site},
};

pub(super) unsafe extern "C" fn list<P: Plugin>(devices: *mut u64, cap: u32, count: *mut u32) -> Status {
    guard::cold(None, || {
        let listing = match P::home().devices::<P>() {
            Ok(listing) => listing,
            Err(fault) => return answer::<P>(Err(fault.into())),
        };
        let fill = || {
            let n = listing.handles.len().min(cap as usize);
            // SAFETY: the caller's own place for `cap` handles, and `n` is not more.
            let out = unsafe { sized::space(devices, n as u64, Site::Device) }?;
            out.copy_from_slice(&listing.handles[..n]);
            // SAFETY: the caller's own place.
            unsafe { sized::put(count, listing.handles.len() as u32, Site::Device) }
        };
        match (fill(), listing.reason) {
            (Ok(()), Some(reason)) => Status { err: errors::keep(reason), ..Status::OK },
            (done, _) => answer::<P>(done.map_err(No::from)),
        }
    })
}

pub(super) unsafe extern "C" fn start<P: Plugin>(device: u64) -> Status {
    // SAFETY: core passes handles of ours.
    unsafe {
        on_device::<P>(device, State::LISTED, Site::Start, |_, slot| {
            slot.state.advance(State::STARTED);
            Ok(())
        })
    }
}

pub(super) unsafe extern "C" fn stop<P: Plugin>(device: u64) -> Status {
    // SAFETY: core passes handles of ours.
    unsafe {
        on_device::<P>(device, State::LISTED, Site::Close, |_, slot| {
            slot.state.advance(State::LISTED);
            Ok(())
        })
    }
}

pub(super) unsafe extern "C" fn caps<P: Plugin>(device: u64, out: To<tables::Caps>) -> Status {
    let run = |device: &P::Device, _: &_| {
        let caps = encode(&device.caps());
        // SAFETY: the caller's own place, with its size.
        unsafe { sized::write(out, &caps) }.map_err(|bad| bad.fault(Site::Device).into())
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::LISTED, Site::Device, run) }
}

fn encode(caps: &Caps) -> tables::Caps {
    use tables::{caps_flag as flag, pace};
    let flags = [
        (caps.native_wait, flag::NATIVE_WAIT),
        (caps.mappable, flag::MAPPABLE),
        (caps.coherent, flag::COHERENT),
        (caps.host_copies, flag::HOST_COPIES),
        (caps.pattern_pow2, flag::PATTERN_POW2),
    ];
    let (pace, poll_ns) = match caps.pace {
        Pace::Pushed => (pace::PUSHED, 0),
        Pace::OnRequest => (pace::ON_REQUEST, 0),
        Pace::Polled { every_ns } => (pace::POLLED, every_ns),
    };
    tables::Caps {
        struct_size: size_of::<tables::Caps>() as u32,
        space: caps.space.into(),
        ops: caps.ops,
        flags: flags.iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit),
        pace,
        poll_ns,
        depth: caps.depth.into(),
        lanes: caps.lanes.into(),
        align: caps.align,
        args_max: caps.args_max,
        group_max: caps.group_max,
        shared_max: caps.shared_max,
        pattern_max: caps.pattern_max,
        update_max: caps.update_max,
        alloc_max: caps.alloc_max,
    }
}

pub(super) unsafe extern "C" fn property<P: Plugin>(
    device: u64,
    id: u32,
    buf: *mut u8,
    cap: u64,
    len: *mut u64,
) -> Status
where
    P::Device: Describe,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's own place for `cap` bytes.
        let out = unsafe { sized::space(buf, cap, Site::Property) }?;
        let Some(whole) = device.property(id, out)? else { return Err(No::Plain(Kind::NotFound)) };
        // SAFETY: the caller's own place.
        Ok(unsafe { sized::put(len, whole as u64, Site::Property) }?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::LISTED, Site::Property, run) }
}

/// The index of a device in the list, for the peers of a copy.
///
/// # Safety
/// As for [`slot`].
pub(super) unsafe fn index<P: Plugin>(device: u64) -> Result<u16, No> {
    // SAFETY: the caller's promise is ours.
    Ok(unsafe { slot::<P>(device, Site::Copy) }?.index)
}
