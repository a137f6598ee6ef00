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
use wharf_core::{
    device::{HostCall, Op, PEER_HOST, Step, op},
    fault::{Fault, Kind, Site, Why},
};

/// An operation as core says it.
///
/// # Safety
/// The operation's kind says which arguments it has, and what they point to stays for `'a`.
#[inline]
pub(super) unsafe fn decode<'a, P: Plugin>(from: &'a tables::Op) -> Result<Step<'a>, No> {
    if !from.next.is_null() {
        // SAFETY: the caller's chain.
        unsafe { sized::chain(from.next, Site::Submit) }?;
    }
    // SAFETY: the caller's promise is ours.
    let op = unsafe { arguments::<P>(from.kind.into(), &from.args) }?;
    Ok(Step {
        op,
        done: from.done,
        tell: from.flags & op_flag::TELL != 0,
        stamp: from.flags & op_flag::STAMP != 0,
    })
}

/// # Safety
/// As for [`decode`].
#[inline]
unsafe fn arguments<'a, P: Plugin>(kind: u32, args: &'a tables::OpArgs) -> Result<Op<'a>, No> {
    Ok(match kind {
        op::BARRIER => Op::Barrier,
        op::COPY => {
            // SAFETY: the member of this kind; five words, any bits.
            let a = unsafe { args.copy };
            // SAFETY: handles of ours, or 0.
            let from = unsafe { peer::<P>(a.from_device) }?;
            // SAFETY: handles of ours, or 0.
            let to = unsafe { peer::<P>(a.to_device) }?;
            Op::Copy { from: a.from, to: a.to, len: a.len, peers: [from, to] }
        }
        op::FILL => {
            // SAFETY: the member of this kind.
            let a = unsafe { args.fill };
            // SAFETY: bytes of the caller.
            let pattern = unsafe { sized::list(a.pattern, a.pattern_len, Site::Fill) }?;
            Op::Fill { to: a.to, len: a.len, pattern }
        }
        op::UPDATE => {
            // SAFETY: the member of this kind.
            let a = unsafe { args.update };
            // SAFETY: bytes of the caller.
            Op::Update { to: a.to, bytes: unsafe { sized::list(a.bytes, a.len, Site::Update) }? }
        }
        op::LAUNCH => {
            // SAFETY: the member of this kind.
            let a = unsafe { &args.launch };
            // SAFETY: bytes of the caller.
            let bytes = unsafe { sized::list(a.args, a.args_len.into(), Site::Launch) }?;
            Op::Launch { kernel: a.kernel, groups: a.groups, size: a.size, shared: a.shared, args: bytes }
        }
        // SAFETY: the caller's promise is ours.
        _ => return unsafe { rarer::<P>(kind, args) },
    })
}

/// # Safety
/// As for [`decode`].
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
#[inline]
unsafe fn peer<P: Plugin>(handle: u64) -> Result<u16, No> {
    if handle == 0 {
        return Ok(PEER_HOST);
    }
    // SAFETY: the caller's promise is ours.
    unsafe { device::index::<P>(handle) }
}
