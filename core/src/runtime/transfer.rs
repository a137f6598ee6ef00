//! Operations by what they mean: spans and kernels are checked here, once, at the call, so every backend gives the
//! same answer to the same mistake.

use super::{Queue, Runtime, program::KernelRecord};
use crate::{
    bits::{Access, MemoryType, Usage},
    device::{Caps, Device, Hint, HostCall, Kernel, Op, PEER_HOST, op},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    record::Record,
    runtime::Allocation,
    timeline::Point,
};

/// Most groups of one launch.
const GROUPS_MAX: u64 = u32::MAX as u64;

/// `len` bytes at `offset` of a root allocation, without a reference: checked whenever it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The root.
    pub root: Handle<Record>,
    /// First byte, from the root's start.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// The size of a launch and its packed arguments.
#[derive(Clone, Copy, Debug)]
pub struct LaunchArgs<'a> {
    /// Groups in x, y, z.
    pub groups: [u32; 3],
    /// Work-items of a group in x, y, z.
    pub size: [u32; 3],
    /// Bytes of dynamic shared memory of a group.
    pub shared: u32,
    /// Arguments in C layout.
    pub args: &'a [u8],
}

/// Waits and signals of an operation, and what the caller does next.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Reached before it begins.
    pub waits: &'a [Point],
    /// Signalled when it has ended.
    pub signals: &'a [Point],
    /// What the caller does next.
    pub hint: Hint,
}

impl Around<'_> {
    /// Nothing to wait for, nothing to signal.
    pub const NONE: Around<'static> = Around { waits: &[], signals: &[], hint: Hint::None };
}

/// Address of a span and the number of the device it is on, as a side of a copy.
pub(super) struct Side {
    pub(super) address: u64,
    pub(super) peer: u16,
}

/// How work on device `device` names the device of memory that it reaches: its own, or process memory.
pub(super) fn peer_of(known: &Allocation, device: usize, caps: &Caps) -> Option<u16> {
    let in_process =
        known.kind.contains(MemoryType::HOST_VISIBLE) && known.kind.contains(MemoryType::HOST_COHERENT);
    if known.device == device {
        Some(device as u16)
    } else {
        (in_process && caps.host_copies).then_some(PEER_HOST)
    }
}

impl<D: Device, E: Env> Runtime<D, E> {
    /// A span's memory, if it may be used so.
    pub(crate) fn usable(
        &self,
        span: &Span,
        access: Access,
        usage: Usage,
        site: Site,
    ) -> Result<Allocation, Fault> {
        let known = self.allocation(span.root).map_err(|fault| fault.at(site))?;
        if !known.access.contains(access) {
            let bits = [access.bits() as u64, known.access.bits() as u64];
            return Err(Fault::caller(Kind::PermissionDenied, site, Why::Bits, bits));
        }
        if !known.usage.contains(usage) {
            let bits = [usage.bits() as u64, known.usage.bits() as u64];
            return Err(Fault::caller(Kind::PermissionDenied, site, Why::Bits, bits));
        }
        match span.offset.checked_add(span.len) {
            Some(end) if end <= known.len => Ok(known),
            Some(end) => Err(Fault::caller(Kind::OutOfRange, site, Why::PastEnd, [end, known.len])),
            None => Err(Fault::caller(Kind::OutOfRange, site, Why::Overflow, [span.offset, span.len])),
        }
    }

    /// A span as a side of work on a queue of device `device`: on that device, or in process memory it reaches.
    fn side(
        &self,
        device: usize,
        caps: &Caps,
        span: &Span,
        access: Access,
        site: Site,
    ) -> Result<Side, Fault> {
        self.reach((device, caps), span, access, Usage::TRANSFER, site)
    }

    /// As [`Runtime::side`], for any usage.
    pub(super) fn reach(
        &self,
        (device, caps): (usize, &Caps),
        span: &Span,
        access: Access,
        usage: Usage,
        site: Site,
    ) -> Result<Side, Fault> {
        let known = self.usable(span, access, usage, site)?;
        let devices = [known.device as u64, device as u64];
        let peer = peer_of(&known, device, caps).ok_or(Fault::caller(
            Kind::InvalidDevice,
            site,
            Why::Mismatch,
            devices,
        ))?;
        Ok(Side { address: known.base + span.offset, peer })
    }

    /// Bytes from span to span.
    ///
    /// # Errors
    /// `InvalidArgument` if the lengths differ or both lie overlapping in one root; `OutOfRange`, `PermissionDenied`,
    /// `InvalidDevice` for a side; as [`Runtime::submit`]. In every case the signals fail too.
    pub fn copy(
        &self,
        queue: Handle<Queue<D, E>>,
        from: &Span,
        to: &Span,
        around: &Around<'_>,
    ) -> Result<Option<Point>, Fault> {
        self.issue(queue, around, |device, caps| self.copy_op(device, caps, from, to))
    }

    pub(super) fn copy_op(
        &self,
        device: usize,
        caps: &Caps,
        from: &Span,
        to: &Span,
    ) -> Result<Op<'static>, Fault> {
        if from.len != to.len {
            return Err(Fault::caller(Kind::InvalidArgument, Site::Copy, Why::Mismatch, [from.len, to.len]));
        }
        let source = self.side(device, caps, from, Access::READ, Site::Copy)?;
        let target = self.side(device, caps, to, Access::WRITE, Site::Copy)?;
        let (a, b, len) = (source.address, target.address, from.len);
        if source.peer == target.peer && len > 0 && a < b + len && b < a + len {
            return Err(Fault::caller(Kind::InvalidArgument, Site::Copy, Why::Overlap, [a, b]));
        }
        Ok(if len == 0 {
            Op::Barrier
        } else {
            Op::Copy { from: a, to: b, len, peers: [source.peer, target.peer] }
        })
    }

    /// Bytes from process memory into a span.
    ///
    /// # Errors
    /// As [`Runtime::copy`].
    ///
    /// # Safety
    /// `to.len` bytes at `from` can be read and are not written until the operation has ended.
    #[allow(unsafe_code)]
    pub unsafe fn copy_in(
        &self,
        queue: Handle<Queue<D, E>>,
        from: *const u8,
        to: &Span,
        around: &Around<'_>,
    ) -> Result<Option<Point>, Fault> {
        self.issue(queue, around, |device, caps| {
            let target = self.side(device, caps, to, Access::WRITE, Site::Write)?;
            let peers = [PEER_HOST, target.peer];
            Ok(if to.len == 0 {
                Op::Barrier
            } else {
                Op::Copy { from: from as u64, to: target.address, len: to.len, peers }
            })
        })
    }

    /// Bytes from a span into process memory.
    ///
    /// # Errors
    /// As [`Runtime::copy`].
    ///
    /// # Safety
    /// `from.len` bytes at `to` can be written and are not otherwise used until the operation has ended.
    #[allow(unsafe_code)]
    pub unsafe fn copy_out(
        &self,
        queue: Handle<Queue<D, E>>,
        from: &Span,
        to: *mut u8,
        around: &Around<'_>,
    ) -> Result<Option<Point>, Fault> {
        self.issue(queue, around, |device, caps| {
            let source = self.side(device, caps, from, Access::READ, Site::Read)?;
            let peers = [source.peer, PEER_HOST];
            Ok(if from.len == 0 {
                Op::Barrier
            } else {
                Op::Copy { from: source.address, to: to as u64, len: from.len, peers }
            })
        })
    }

    /// A pattern again and again over a span whose length is a multiple of the pattern's.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty pattern or a length that is no multiple; else as [`Runtime::copy`].
    pub fn fill(
        &self,
        queue: Handle<Queue<D, E>>,
        to: &Span,
        pattern: &[u8],
        around: &Around<'_>,
    ) -> Result<Option<Point>, Fault> {
        self.issue_by(queue, around.signals, |lane| {
            let (device, caps) = (lane.device as usize, lane.caps);
            let (op, peer) = self.fill_op(device, &caps, to, pattern)?;
            self.accept_whole(lane, around, op, peer)
        })
    }

    pub(super) fn fill_op<'a>(
        &self,
        device: usize,
        caps: &Caps,
        to: &Span,
        pattern: &'a [u8],
    ) -> Result<(Op<'a>, u16), Fault> {
        check_pattern(to.len, pattern)?;
        let target = self.side(device, caps, to, Access::WRITE, Site::Fill)?;
        let fill = Op::Fill { to: target.address, len: to.len, pattern };
        Ok((if to.len == 0 { Op::Barrier } else { fill }, target.peer))
    }

    /// Bytes captured now, written in order.
    ///
    /// # Errors
    /// `InvalidArgument` if the lengths differ; else as [`Runtime::copy`].
    pub fn update(
        &self,
        queue: Handle<Queue<D, E>>,
        to: &Span,
        bytes: &[u8],
        around: &Around<'_>,
    ) -> Result<Option<Point>, Fault> {
        self.issue_by(queue, around.signals, |lane| {
            let (device, caps) = (lane.device as usize, lane.caps);
            let (op, peer) = self.update_op(device, &caps, to, bytes)?;
            self.accept_whole(lane, around, op, peer)
        })
    }

    pub(super) fn update_op<'a>(
        &self,
        device: usize,
        caps: &Caps,
        to: &Span,
        bytes: &'a [u8],
    ) -> Result<(Op<'a>, u16), Fault> {
        let len = bytes.len() as u64;
        if len != to.len {
            return Err(Fault::caller(Kind::InvalidArgument, Site::Update, Why::Mismatch, [len, to.len]));
        }
        let target = self.side(device, caps, to, Access::WRITE, Site::Update)?;
        let update = Op::Update { to: target.address, bytes };
        Ok((if len == 0 { Op::Barrier } else { update }, target.peer))
    }

    /// A kernel over a grid of groups. Arguments are captured now.
    ///
    /// # Errors
    /// `InvalidArgument` for a zero or too large size or an argument block that is not the kernel's; `InvalidDevice`
    /// for a kernel of another device; `InvalidHandle`; as [`Runtime::submit`]. In every case the signals fail too.
    pub fn launch(
        &self,
        queue: Handle<Queue<D, E>>,
        kernel: Handle<KernelRecord>,
        launch: &LaunchArgs<'_>,
        around: &Around<'_>,
    ) -> Result<Option<Point>, Fault> {
        self.issue(queue, around, |device, caps| self.launch_op(device, caps, kernel, launch))
    }

    pub(super) fn launch_op<'a>(
        &self,
        device: usize,
        caps: &Caps,
        kernel: Handle<KernelRecord>,
        launch: &LaunchArgs<'a>,
    ) -> Result<Op<'a>, Fault> {
        let info = self.kernel_info(kernel).map_err(|fault| fault.at(Site::Launch))?;
        if info.device != device {
            let devices = [info.device as u64, device as u64];
            return Err(Fault::caller(Kind::InvalidDevice, Site::Launch, Why::Mismatch, devices));
        }
        check_launch(&info.kernel, caps, launch)?;
        let LaunchArgs { groups, size, shared, args } = *launch;
        Ok(Op::Launch { kernel: info.kernel.native, groups, size, shared, args })
    }

    /// A function of the caller's on the host, in the order of the queue. It may block; work of the same queue waits
    /// for it, work of others does not.
    ///
    /// # Errors
    /// `Unsupported` if the device runs no host calls; as [`Runtime::submit`].
    ///
    /// # Safety
    /// `call` may be called once with its pointer, on any thread, at any time until the returned point is reached or
    /// has failed.
    #[allow(unsafe_code)]
    pub unsafe fn host_call(
        &self,
        queue: Handle<Queue<D, E>>,
        call: HostCall,
        around: &Around<'_>,
    ) -> Result<Option<Point>, Fault> {
        self.submit(queue, around.waits, Op::Call(call), around.signals, around.hint)
    }

    /// Moves managed memory towards the device, or towards the host: a hint, in order. Other memory is left where it is,
    /// and a device without prefetch takes it as its place in the order alone.
    ///
    /// # Errors
    /// `OutOfRange`, `InvalidHandle`; as [`Runtime::submit`].
    pub fn prefetch(
        &self,
        queue: Handle<Queue<D, E>>,
        span: &Span,
        to_host: bool,
        around: &Around<'_>,
    ) -> Result<Option<Point>, Fault> {
        self.issue(queue, around, |device, caps| {
            let known = self.usable(span, Access::empty(), Usage::empty(), Site::Prefetch)?;
            let moves = caps.takes(op::PREFETCH) && known.device == device && span.len > 0;
            let at = known.base + span.offset;
            Ok(if moves { Op::Prefetch { at, len: span.len, to_host } } else { Op::Barrier })
        })
    }

    /// Nothing but its place in the order: waits, then signals.
    ///
    /// # Errors
    /// As [`Runtime::submit`].
    pub fn barrier(&self, queue: Handle<Queue<D, E>>, around: &Around<'_>) -> Result<Option<Point>, Fault> {
        self.submit(queue, around.waits, Op::Barrier, around.signals, around.hint)
    }
}

/// A pattern is not empty, and the length is a multiple of its own.
pub(super) fn check_pattern(len: u64, pattern: &[u8]) -> Result<(), Fault> {
    let step = pattern.len() as u64;
    if step == 0 {
        return Err(Fault::caller(Kind::InvalidArgument, Site::Fill, Why::Zero, [1, 0]));
    }
    if !len.is_multiple_of(step) {
        return Err(Fault::caller(Kind::InvalidArgument, Site::Fill, Why::Multiple, [len, step]));
    }
    Ok(())
}

/// The size and arguments of a launch against the kernel's and the device's limits.
fn check_launch(kernel: &Kernel, caps: &Caps, launch: &LaunchArgs<'_>) -> Result<(), Fault> {
    let wrong = |why, values| Err(Fault::caller(Kind::InvalidArgument, Site::Launch, why, values));
    if let Some(axis) = launch.groups.iter().chain(&launch.size).position(|n| *n == 0) {
        return wrong(Why::Zero, [axis as u64, 0]);
    }
    let product =
        |n: &[u32; 3]| n.iter().try_fold(1u64, |all, n| all.checked_mul(*n as u64)).unwrap_or(u64::MAX);
    let (groups, items) = (product(&launch.groups), product(&launch.size));
    let group_max = kernel.group_max.min(caps.group_max) as u64;
    if groups > GROUPS_MAX {
        return wrong(Why::Limit, [groups, GROUPS_MAX]);
    }
    if items > group_max {
        return wrong(Why::Limit, [items, group_max]);
    }
    let shared = launch.shared as u64 + kernel.shared_static as u64;
    if shared > caps.shared_max as u64 {
        return wrong(Why::Limit, [shared, caps.shared_max as u64]);
    }
    let len = launch.args.len() as u64;
    if kernel.args_len != Kernel::UNCHECKED && len != kernel.args_len as u64 {
        return wrong(Why::Mismatch, [len, kernel.args_len as u64]);
    }
    if len > caps.args_max as u64 {
        return wrong(Why::Limit, [len, caps.args_max as u64]);
    }
    Ok(())
}
