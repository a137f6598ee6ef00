//! Recording: an operation is checked, completed as far as it is known, and kept. What a device does not do at once is
//! kept in pieces.

use super::{
    LaunchArgs, Runtime,
    list::{
        ADDRESS, ArgRef, BOUND_ARGS_MAX, Command, CommandList, Part, Patch, Piece, Recorded, Ref, Saved,
        Stage, Target, UPDATE_MAX,
    },
    pieces::{Way, way},
    program::KernelRecord,
    sequence::Sequence,
    transfer::{Side, check_pattern},
};
use crate::{
    bits::{Access, Usage},
    buffer::{Home, WHOLE},
    device::{Caps, Device, Op, op},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
};

impl<D: Device, E: Env> Runtime<D, E> {
    /// Records one operation.
    ///
    /// # Errors
    /// `FailedPrecondition` unless the list is being recorded; what the same operation on a queue of the list's device
    /// answers for the memory and sizes it names directly; `OutOfRange` for a slot that the list does not have or an
    /// address that does not lie in the arguments; `InvalidArgument` for an update above [`UPDATE_MAX`] or arguments with
    /// slots above [`BOUND_ARGS_MAX`] bytes; `ResourceExhausted` when the room is used up; `Unsupported`.
    pub fn record<H: Home>(&self, list: &mut CommandList<'_, H>, command: &Command<'_>) -> Result<(), Fault> {
        let (site, kind) = command.site_and_kind();
        list.recorded.must_be(Stage::Recording, site)?;
        let caps = self.device(list.recorded.device, site)?.caps();
        if !caps.takes(kind) {
            return Err(Fault::backend(Kind::Unsupported, site, Why::Missing, [kind.into(), 0]));
        }
        let before = (list.recorded.room.mark(), list.recorded.needed, list.recorded.bound);
        let recorded =
            self.save(&mut list.recorded, &caps, command).and_then(|()| list.keep_all(command, site));
        if recorded.is_err() {
            list.recorded.room.rewind(before.0);
            (list.recorded.needed, list.recorded.bound) = (before.1, before.2);
        }
        recorded
    }

    fn save(&self, list: &mut Recorded<'_>, caps: &Caps, command: &Command<'_>) -> Result<(), Fault> {
        let device = list.device;
        match *command {
            Command::Barrier => Ok(()),
            Command::Copy { from: Ref::Direct(from), to: Ref::Direct(to) } => {
                let Op::Copy { from, to, len, peers } = self.copy_op(device, caps, &from, &to)? else {
                    return Ok(());
                };
                list.push(Saved::Copy { from, to, len, peers }, Site::Copy)
            }
            Command::Copy { from, to } => {
                if let (Some(a), Some(b)) = (from.len(), to.len())
                    && a != b
                {
                    return Err(Fault::caller(Kind::InvalidArgument, Site::Copy, Why::Mismatch, [a, b]));
                }
                let from = self.target(list, caps, &from, Access::READ, Site::Copy)?;
                let to = self.target(list, caps, &to, Access::WRITE, Site::Copy)?;
                list.push(Saved::CopyBound { from, to }, Site::Copy)
            }
            Command::Fill { to: Ref::Direct(to), pattern } => {
                let (fill, peer) = self.fill_op(device, caps, &to, pattern)?;
                list.push_way(&way(fill, caps, peer)?, Site::Fill)
            }
            Command::Fill { to, pattern } => {
                check_pattern(to.len().unwrap_or(0), pattern)?;
                let len = pattern.len() as u64;
                if !caps.fills(0, len) {
                    // How many pieces that takes is known only when the slot is bound.
                    let values = [len, caps.pattern_max.into()];
                    return Err(Fault::backend(Kind::Unsupported, Site::Fill, Why::Limit, values));
                }
                let to = self.target(list, caps, &to, Access::WRITE, Site::Fill)?;
                let once = list.push_bytes(pattern, Site::Fill)?;
                if caps.fills(1, len) || !caps.takes(op::UPDATE) || len > caps.update_max.into() {
                    return list.push(Saved::FillBound { to, pattern: once }, Site::Fill);
                }
                list.push_bytes(pattern, Site::Fill)?;
                let mut pieces = [Piece::Head, Piece::Body, Piece::Tail].into_iter();
                pieces.try_for_each(|piece| {
                    list.push(Saved::FillPiece { to, pattern: once, piece }, Site::Fill)
                })
            }
            Command::Update { to, bytes } => self.save_update(list, caps, &to, bytes),
            Command::Launch { kernel, launch, refs } => self.save_launch(list, caps, kernel, &launch, refs),
        }
    }

    fn save_update(&self, list: &mut Recorded<'_>, caps: &Caps, to: &Ref, bytes: &[u8]) -> Result<(), Fault> {
        let wrong = |why, values| Err(Fault::caller(Kind::InvalidArgument, Site::Update, why, values));
        let len = bytes.len() as u64;
        if bytes.len() > UPDATE_MAX {
            return wrong(Why::Limit, [len, UPDATE_MAX as u64]);
        }
        if let Ref::Direct(to) = to {
            let (update, peer) = self.update_op(list.device, caps, to, bytes)?;
            return list.push_way(&way(update, caps, peer)?, Site::Update);
        }
        if let Some(known) = to.len()
            && known != len
        {
            return wrong(Why::Mismatch, [len, known]);
        }
        let to = self.target(list, caps, to, Access::WRITE, Site::Update)?;
        let part = caps.update_max as usize;
        let last = bytes.len().saturating_sub(1) / part;
        (0..=last).try_for_each(|i| {
            let at = i * part;
            let to = to.piece(at as u64, (i != last).then_some(part as u64));
            let bytes =
                list.push_bytes(&bytes[at..bytes.len().min(at.saturating_add(part))], Site::Update)?;
            list.push(Saved::UpdateBound { to, bytes }, Site::Update)
        })
    }

    fn save_launch(
        &self,
        list: &mut Recorded<'_>,
        caps: &Caps,
        kernel: Handle<KernelRecord>,
        launch: &LaunchArgs<'_>,
        refs: &[ArgRef],
    ) -> Result<(), Fault> {
        let Op::Launch { kernel, groups, size, shared, args } =
            self.launch_op(list.device, caps, kernel, launch)?
        else {
            return Err(Self::bug(Site::Launch));
        };
        let len = args.len() as u64;
        let first = list.room.patches.as_slice().len();
        let args = list.push_bytes(args, Site::Launch)?;
        for arg in refs {
            let end = u64::from(arg.at) + ADDRESS as u64;
            if end > len {
                return Err(Fault::caller(Kind::OutOfRange, Site::Launch, Why::PastEnd, [end, len]));
            }
            if !(arg.at as usize).is_multiple_of(ADDRESS) {
                let values = [arg.at.into(), ADDRESS as u64];
                return Err(Fault::caller(Kind::InvalidArgument, Site::Launch, Why::Multiple, values));
            }
            match arg.of {
                Ref::Direct(span) => {
                    let device = (list.device, caps);
                    let side = self.reach(device, &span, arg.access, Usage::DISPATCH, Site::Launch)?;
                    let at = (args.at + arg.at) as usize;
                    list.room.bytes.as_mut_slice()[at..at + ADDRESS]
                        .copy_from_slice(&side.address.to_ne_bytes());
                }
                Ref::Bound { slot, offset, len } => {
                    let target = list.slot(slot, offset, len, Site::Launch)?;
                    let patch = Patch { at: arg.at, access: arg.access, target };
                    list.room.patches.extend(&[patch], Site::Launch)?;
                }
            }
        }
        let patches = Part { at: first as u32, len: (list.room.patches.as_slice().len() - first) as u32 };
        if patches.len > 0 && len > BOUND_ARGS_MAX as u64 {
            let values = [len, BOUND_ARGS_MAX as u64];
            return Err(Fault::caller(Kind::InvalidArgument, Site::Launch, Why::Limit, values));
        }
        list.push(Saved::Launch { kernel, groups, size, shared, args, patches }, Site::Launch)
    }

    /// One side of an operation that a submit completes.
    fn target(
        &self,
        list: &mut Recorded<'_>,
        caps: &Caps,
        of: &Ref,
        access: Access,
        site: Site,
    ) -> Result<Target, Fault> {
        match *of {
            Ref::Direct(span) => {
                let device = (list.device, caps);
                let Side { address, peer } = self.reach(device, &span, access, Usage::TRANSFER, site)?;
                Ok(Target::At { address, len: span.len, peer })
            }
            Ref::Bound { slot, offset, len } => list.slot(slot, offset, len, site),
        }
    }
}

impl Recorded<'_> {
    fn push(&mut self, saved: Saved, site: Site) -> Result<(), Fault> {
        self.bound |= saved.is_bound();
        self.room.commands.extend(&[saved], site)
    }
    fn push_bytes(&mut self, bytes: &[u8], site: Site) -> Result<Part, Fault> {
        let at = self.room.bytes.as_slice().len() as u32;
        self.room.bytes.extend(bytes, site)?;
        Ok(Part { at, len: bytes.len() as u32 })
    }

    /// A fill or update, in pieces where the device wants them.
    fn push_way(&mut self, way: &Way<'_>, site: Site) -> Result<(), Fault> {
        match way {
            Way::Whole(op) => self.push_op(op, site),
            Way::Pieces(pieces) => {
                (0..pieces.len()).try_for_each(|i| self.push_op(&pieces.op(i, &mut &[][..])?, site))
            }
        }
    }
    fn push_op(&mut self, op: &Op<'_>, site: Site) -> Result<(), Fault> {
        let saved = match *op {
            Op::Copy { from, to, len, peers } => Saved::Copy { from, to, len, peers },
            Op::Fill { to, len, pattern } => {
                Saved::Fill { to, len, pattern: self.push_bytes(pattern, site)? }
            }
            Op::Update { to, bytes } => Saved::Update { to, bytes: self.push_bytes(bytes, site)? },
            _ => return Ok(()), // Of length 0: nothing to do.
        };
        self.push(saved, site)
    }

    /// A reference to a slot of this list.
    fn slot(&mut self, slot: u32, offset: u64, len: u64, site: Site) -> Result<Target, Fault> {
        let out = |why, values| Err(Fault::caller(Kind::OutOfRange, site, why, values));
        if slot >= self.slots {
            return out(Why::PastEnd, [u64::from(slot) + 1, self.slots.into()]);
        }
        if len != WHOLE && offset.checked_add(len).is_none() {
            return out(Why::Overflow, [offset, len]);
        }
        self.needed = self.needed.max(slot + 1);
        Ok(Target::Slot { slot, offset, len })
    }
}
