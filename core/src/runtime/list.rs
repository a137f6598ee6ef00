//! Command lists: operations that are recorded once, checked once and submitted many times. This file records;
//! `list_submit.rs` submits.
//!
//! A list is a value of the caller's, in arrays or on the heap ([`ListRoom`]). It is made for one device, between
//! [`CommandList::begin`] and [`CommandList::end`]. Memory is named by a [`Ref`]: a span, checked at the call against the
//! live allocation and kept alive from then on, or a slot that each submit binds anew. What was checked at the call is
//! stored as the operation that a backend takes, so that a submit only looks whether roots and kernels are still live.
//!
//! Rules and codes are those of IREE's command buffers, but for these. The operations of a list run one after the
//! other, so a barrier adds nothing. What has length 0 is checked like anything else. A launch with a zero in groups or
//! size is `InvalidArgument`, as on a queue. A call that is refused leaves the list as it was.

use super::{
    LaunchArgs, ListRoom, Runtime, Span,
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
    record::Record,
};

/// Most binding slots of a list.
pub const SLOTS_MAX: u32 = 64;
/// Most operations of a list.
pub const COMMANDS_MAX: usize = 1 << 16;
/// Most bytes of patterns, updates and arguments of a list.
pub const BYTES_MAX: usize = 1 << 26;
/// Most bytes of one update.
pub const UPDATE_MAX: usize = 65_536;
/// Most bytes of arguments of a launch that refers to slots.
pub const BOUND_ARGS_MAX: usize = 4096;
/// Bytes of an address in arguments.
const ADDRESS: usize = 8;

/// Memory as a recorded operation names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ref {
    /// This memory, kept alive by the list.
    Direct(Span),
    /// Part of whatever a submit binds to the slot.
    Bound {
        /// Number of the slot.
        slot: u32,
        /// First byte, from the start of what is bound.
        offset: u64,
        /// Bytes; [`WHOLE`] for the rest of what is bound.
        len: u64,
    },
}

impl Ref {
    /// All that is bound to a slot.
    pub const fn slot(slot: u32) -> Ref {
        Ref::Bound { slot, offset: 0, len: WHOLE }
    }
    /// The length, where it is known before a submit.
    fn len(&self) -> Option<u64> {
        match *self {
            Ref::Direct(span) => Some(span.len),
            Ref::Bound { len, .. } => (len != WHOLE).then_some(len),
        }
    }
    fn root(&self) -> Option<Handle<Record>> {
        match *self {
            Ref::Direct(span) => Some(span.root),
            Ref::Bound { .. } => None,
        }
    }
}

/// An address among the packed arguments of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgRef {
    /// Where the address of 8 bytes lies in the arguments; a multiple of 8.
    pub at: u32,
    /// The memory.
    pub of: Ref,
    /// What the kernel does with it.
    pub access: Access,
}

/// An operation to be recorded. Bytes are captured at the call.
#[derive(Clone, Copy)]
pub enum Command<'a> {
    /// What is before ends before what is behind begins: true of every list.
    Barrier,
    /// As [`Runtime::copy`].
    Copy {
        /// Source.
        from: Ref,
        /// Target, of the same length.
        to: Ref,
    },
    /// As [`Runtime::fill`].
    Fill {
        /// Target.
        to: Ref,
        /// 1 byte or more.
        pattern: &'a [u8],
    },
    /// As [`Runtime::update`], of at most [`UPDATE_MAX`] bytes.
    Update {
        /// Target.
        to: Ref,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// As [`Runtime::launch`].
    Launch {
        /// The kernel; it must stay loaded.
        kernel: Handle<KernelRecord>,
        /// Sizes and arguments.
        launch: LaunchArgs<'a>,
        /// Addresses to be written into the arguments.
        refs: &'a [ArgRef],
    },
}

impl Command<'_> {
    fn site_and_kind(&self) -> (Site, u32) {
        match self {
            Command::Barrier => (Site::Barrier, op::BARRIER),
            Command::Copy { .. } => (Site::Copy, op::COPY),
            Command::Fill { .. } => (Site::Fill, op::FILL),
            Command::Update { .. } => (Site::Update, op::UPDATE),
            Command::Launch { .. } => (Site::Launch, op::LAUNCH),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    New,
    Recording,
    Ended,
}

/// A recorded sequence of operations. Any number of threads may submit it at once ([`Runtime::execute`]); dropped, it
/// lets go of its memory while submits that were made go on.
pub struct CommandList<'s, H: Home> {
    home: H,
    pub(super) recorded: Recorded<'s>,
}

/// The list without its home.
pub(super) struct Recorded<'s> {
    pub(super) device: usize,
    slots: u32,
    /// Bindings a submit must bring.
    pub(super) needed: u32,
    /// Whether any operation refers to a slot.
    pub(super) bound: bool,
    stage: Stage,
    pub(super) room: ListRoom<'s>,
}

/// A part of the recorded bytes or patches.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) at: u32,
    pub(super) len: u32,
}

/// Memory of an operation that a submit completes.
#[derive(Clone, Copy)]
pub(super) enum Target {
    At { address: u64, len: u64, peer: u16 },
    Slot { slot: u32, offset: u64, len: u64 },
}

impl Target {
    /// What lies `at` bytes into it: `len` bytes, or all that is left, which keeps its check.
    fn piece(self, at: u64, len: Option<u64>) -> Target {
        match self {
            Target::At { address, len: all, peer } => {
                Target::At { address: address + at, len: len.unwrap_or(all - at), peer }
            }
            Target::Slot { slot, offset, len: all } => {
                let left = if all == WHOLE { WHOLE } else { all - at };
                Target::Slot { slot, offset: offset.saturating_add(at), len: len.unwrap_or(left) }
            }
        }
    }
}

/// An operation as it is kept. The first four are complete, unless a launch has patches.
#[derive(Clone, Copy)]
pub(super) enum Saved {
    Copy {
        from: u64,
        to: u64,
        len: u64,
        peers: [u16; 2],
    },
    Fill {
        to: u64,
        len: u64,
        pattern: Part,
    },
    Update {
        to: u64,
        bytes: Part,
    },
    Launch {
        kernel: u64,
        groups: [u32; 3],
        size: [u32; 3],
        shared: u32,
        args: Part,
        patches: Part,
    },
    CopyBound {
        from: Target,
        to: Target,
    },
    FillBound {
        to: Target,
        pattern: Part,
    },
    UpdateBound {
        to: Target,
        bytes: Part,
    },
    /// Of a fill whose target's alignment is known when it is bound, the bytes before, at or behind what is aligned to
    /// the pattern, which is kept twice in a row.
    FillPiece {
        to: Target,
        pattern: Part,
        piece: Piece,
    },
}

/// Which part of a fill.
#[derive(Clone, Copy)]
pub(super) enum Piece {
    Head,
    Body,
    Tail,
}

impl Saved {
    pub(super) const NONE: Saved = Saved::Copy { from: 0, to: 0, len: 0, peers: [0; 2] };

    fn is_bound(&self) -> bool {
        match self {
            Saved::Copy { .. } | Saved::Fill { .. } | Saved::Update { .. } => false,
            Saved::Launch { patches, .. } => patches.len > 0,
            _ => true,
        }
    }
}

/// An address that a submit writes into arguments.
#[derive(Clone, Copy)]
pub(super) struct Patch {
    pub(super) at: u32,
    pub(super) access: Access,
    pub(super) target: Target,
}

impl Patch {
    pub(super) const NONE: Patch =
        Patch { at: 0, access: Access::empty(), target: Target::Slot { slot: 0, offset: 0, len: 0 } };
}

/// What must be live when the list is submitted.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Use {
    Root(Handle<Record>),
    Kernel(Handle<KernelRecord>),
}

impl Use {
    pub(super) const NONE: Use = Use::Root(Handle::NULL);
}

impl<'s, H: Home> CommandList<'s, H> {
    /// An empty list that keeps its memory alive in `home`, the runtime that it is recorded and submitted with.
    pub const fn new(home: H, room: ListRoom<'s>) -> Self {
        let stage = Stage::New;
        let recorded = Recorded { device: 0, slots: 0, needed: 0, bound: false, stage, room };
        CommandList { home, recorded }
    }

    /// Begins to record for a device, with so many binding slots.
    ///
    /// # Errors
    /// `FailedPrecondition` if it has begun before; `InvalidArgument` for more than [`SLOTS_MAX`] slots.
    pub fn begin(&mut self, device: usize, slots: u32) -> Result<(), Fault> {
        self.recorded.must_be(Stage::New, Site::Submit)?;
        if slots > SLOTS_MAX {
            let values = [slots.into(), SLOTS_MAX.into()];
            return Err(Fault::caller(Kind::InvalidArgument, Site::Submit, Why::Limit, values));
        }
        (self.recorded.device, self.recorded.slots) = (device, slots);
        self.recorded.stage = Stage::Recording;
        Ok(())
    }

    /// Nothing more is recorded; the list can be submitted.
    ///
    /// # Errors
    /// `FailedPrecondition` unless it is being recorded.
    pub fn end(&mut self) -> Result<(), Fault> {
        self.recorded.must_be(Stage::Recording, Site::Submit)?;
        self.recorded.stage = Stage::Ended;
        Ok(())
    }

    /// Lets go of everything recorded, so that the list can begin anew in the room it has.
    pub fn reset(&mut self) {
        for used in self.recorded.room.uses.as_slice() {
            if let Use::Root(root) = used {
                self.home.release(*root);
            }
        }
        self.recorded.room.clear();
        (self.recorded.needed, self.recorded.bound) = (0, false);
        self.recorded.stage = Stage::New;
    }

    /// Operations that a submit hands over.
    pub fn len(&self) -> usize {
        self.recorded.commands().len()
    }

    /// Whether there are none; a submit is then a barrier.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bindings that a submit must bring: the highest slot referred to, and one.
    pub fn bindings(&self) -> u32 {
        self.recorded.needed
    }

    /// The number of the device it was begun for.
    pub fn device(&self) -> usize {
        self.recorded.device
    }

    fn keep(&mut self, used: Use, site: Site) -> Result<(), Fault> {
        let uses = &mut self.recorded.room.uses;
        if uses.as_slice().iter().rev().any(|known| *known == used) {
            return Ok(());
        }
        let Use::Root(root) = used else { return uses.extend(&[used], site) };
        self.home.retain(root).map_err(|fault| fault.at(site))?;
        uses.extend(&[used], site).inspect_err(|_| self.home.release(root))
    }

    fn keep_all(&mut self, command: &Command<'_>, site: Site) -> Result<(), Fault> {
        let mut keep = |of: &Ref| of.root().map_or(Ok(()), |root| self.keep(Use::Root(root), site));
        match command {
            Command::Barrier => Ok(()),
            Command::Copy { from, to } => keep(from).and_then(|()| keep(to)),
            Command::Fill { to, .. } | Command::Update { to, .. } => keep(to),
            Command::Launch { kernel, refs, .. } => {
                refs.iter().try_for_each(|arg| keep(&arg.of))?;
                self.keep(Use::Kernel(*kernel), site)
            }
        }
    }
}

impl<H: Home> Drop for CommandList<'_, H> {
    fn drop(&mut self) {
        self.reset();
    }
}

impl Recorded<'_> {
    pub(super) fn must_be(&self, stage: Stage, site: Site) -> Result<(), Fault> {
        if self.stage == stage {
            return Ok(());
        }
        Err(Fault::caller(Kind::FailedPrecondition, site, Why::State, [self.stage as u64, 0]))
    }

    #[inline]
    pub(super) fn commands(&self) -> &[Saved] {
        self.room.commands.as_slice()
    }
    #[inline]
    pub(super) fn bytes(&self, part: Part) -> &[u8] {
        &self.room.bytes.as_slice()[part.at as usize..][..part.len as usize]
    }
    pub(super) fn patches(&self, part: Part) -> &[Patch] {
        &self.room.patches.as_slice()[part.at as usize..][..part.len as usize]
    }

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
