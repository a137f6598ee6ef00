//! Operations of the tables as core says them.
//!
//! # Safety
//! See [`export`](super). Members of the union are plain numbers and addresses, so any of them may be read; which one
//! means something, the kind says.
#![allow(unsafe_code)]

use super::{No, Plugin, device, queue};
use crate::{
    sized,
    tables::{self, op_flag},
};
use core::mem::MaybeUninit;
use wharf_core::{
    device::{HostCall, Op, PEER_HOST, Step, op},
    fault::{Fault, Kind, Site, Why},
};

/// Writes an operation as core says it to its place, each kind straight there: a detour over a value costs more than
/// the call. Else why it is none.
///
/// # Safety
/// The operation's kind says which arguments it has, and what they point to stays for `'a`.
#[inline(always)]
pub(super) unsafe fn decode<'a, P: Plugin>(
    from: &'a tables::Op,
    place: &mut MaybeUninit<Step<'a>>,
) -> Result<(), Box<No>> {
    if !from.next.is_null() {
        // SAFETY: the caller's chain.
        unsafe { sized::chain(from.next, Site::Submit) }.map_err(refused)?;
    }
    let (done, flags) = (from.done, from.flags);
    let mut put = |op| {
        let (tell, stamp) = (flags & op_flag::TELL != 0, flags & op_flag::STAMP != 0);
        place.write(Step { op, done, tell, stamp });
    };
    match u32::from(from.kind) {
        op::BARRIER => put(Op::Barrier),
        op::COPY => {
            // SAFETY: the member of this kind; five words, any bits.
            let a = unsafe { &from.args.copy };
            // SAFETY: handles of ours, or 0.
            let from = unsafe { peer::<P>(a.from_device) }?;
            // SAFETY: handles of ours, or 0.
            let to = unsafe { peer::<P>(a.to_device) }?;
            put(Op::Copy { from: a.from, to: a.to, len: a.len, peers: [from, to] });
        }
        op::FILL => {
            // SAFETY: the member of this kind.
            let a = unsafe { &from.args.fill };
            // SAFETY: bytes of the caller.
            let pattern = unsafe { bytes(a.pattern, a.pattern_len, Site::Fill) }?;
            put(Op::Fill { to: a.to, len: a.len, pattern });
        }
        op::UPDATE => {
            // SAFETY: the member of this kind.
            let a = unsafe { &from.args.update };
            // SAFETY: bytes of the caller.
            put(Op::Update { to: a.to, bytes: unsafe { bytes(a.bytes, a.len, Site::Update) }? });
        }
        op::LAUNCH => {
            // SAFETY: the member of this kind.
            let a = unsafe { &from.args.launch };
            // SAFETY: bytes of the caller.
            let args = unsafe { bytes(a.args, a.args_len.into(), Site::Launch) }?;
            let ([x, y, z], [u, v, w]) = (a.groups, a.size);
            put(Op::Launch { kernel: a.kernel, groups: [x, y, z], size: [u, v, w], shared: a.shared, args });
        }
        // SAFETY: the caller's promise is ours.
        kind => put(unsafe { rarer::<P>(kind, &from.args) }.map_err(Box::new)?),
    }
    Ok(())
}

#[cold]
fn refused(fault: Fault) -> Box<No> {
    Box::new(fault.into())
}

/// # Safety
/// As for [`sized::list`].
#[inline(always)]
unsafe fn bytes<'a>(ptr: *const u8, len: u64, site: Site) -> Result<&'a [u8], Box<No>> {
    if ptr.is_null() || len > isize::MAX as u64 {
        // SAFETY: the caller's promise is ours.
        return unsafe { sized::list(ptr, len, site) }.map_err(refused);
    }
    // SAFETY: not null, a length that a slice may have, and bytes by the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(ptr, len as usize) })
}

/// # Safety
/// As for [`decode`].
#[inline(never)]
unsafe fn rarer<'a, P: Plugin>(kind: u32, args: &'a tables::OpArgs) -> Result<Op<'a>, No> {
    Ok(match kind {
        op::AFTER => {
            // SAFETY: the member of this kind.
            let a = unsafe { args.after };
            // SAFETY: a live queue of this plugin.
            Op::After { lane: unsafe { queue::name::<P>(a.queue) }?, value: a.value }
        }
        op::CALL => {
            // SAFETY: the member of this kind.
            let a = unsafe { args.call };
            let Some(call) = a.call else {
                return Err(Fault::caller(Kind::InvalidArgument, Site::Call, Why::Zero, [1, 0]).into());
            };
            Op::Call(HostCall { call, user: a.user })
        }
        op::READ => {
            // SAFETY: the member of this kind.
            let a = unsafe { args.file };
            Op::Read { file: a.file, at: a.at, to: a.address, len: a.len }
        }
        op::WRITE => {
            // SAFETY: the member of this kind.
            let a = unsafe { args.file };
            Op::Write { file: a.file, at: a.at, from: a.address, len: a.len }
        }
        op::PREFETCH => {
            // SAFETY: the member of this kind.
            let a = unsafe { args.prefetch };
            Op::Prefetch { at: a.at, len: a.len, to_host: a.to_host != 0 }
        }
        _ => {
            let values = [kind.into(), 0];
            return Err(Fault::backend(Kind::Unsupported, Site::Submit, Why::Missing, values).into());
        }
    })
}

/// # Safety
/// 0, or a device handle of this plugin.
#[inline(always)]
unsafe fn peer<P: Plugin>(handle: u64) -> Result<u16, Box<No>> {
    if handle == 0 {
        return Ok(PEER_HOST);
    }
    // SAFETY: the caller's promise is ours.
    unsafe { device::index::<P>(handle) }.map_err(Box::new)
}
