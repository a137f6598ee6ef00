//! Command lists: operations that are recorded once, checked once and submitted many times. This file says what
//! they are; `list_record.rs` records, `list_submit.rs` submits.
//!
//! A list is a value of the caller's, in arrays or on the heap ([`ListRoom`]). It is made for one device, between
//! [`CommandList::begin`] and [`CommandList::end`]. Memory is named by a [`Ref`]: a span, checked at the call against the
//! live allocation and kept alive from then on, or a slot that each submit binds anew. What was checked at the call is
//! stored as the operation that a backend takes, so that a submit only looks whether roots and kernels are still live.
//!
//! Rules and codes are those of IREE's command buffers, but for these. The operations of a list run one after the
//! other, so a barrier adds nothing. What has length 0 is checked like anything else. A launch with a zero in groups or
//! size is `InvalidArgument`, as on a queue. A call that is refused leaves the list as it was.

use super::{LaunchArgs, ListRoom, Span, program::KernelRecord};
use crate::{
    bits::Access,
    buffer::{Home, WHOLE},
    device::op,
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
pub(super) const ADDRESS: usize = 8;

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
    pub(super) fn len(&self) -> Option<u64> {
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
    /// As [`Runtime::copy`](super::Runtime::copy).
    Copy {
        /// Source.
        from: Ref,
        /// Target, of the same length.
        to: Ref,
    },
    /// As [`Runtime::fill`](super::Runtime::fill).
    Fill {
        /// Target.
        to: Ref,
        /// 1 byte or more.
        pattern: &'a [u8],
    },
    /// As [`Runtime::update`](super::Runtime::update), of at most [`UPDATE_MAX`] bytes.
    Update {
        /// Target.
        to: Ref,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// As [`Runtime::launch`](super::Runtime::launch).
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
    pub(super) fn site_and_kind(&self) -> (Site, u32) {
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

/// A recorded sequence of operations. Any number of threads may submit it at once ([`Runtime::execute`](super::Runtime::execute)); dropped, it
/// lets go of its memory while submits that were made go on.
pub struct CommandList<'s, H: Home> {
    home: H,
    pub(super) recorded: Recorded<'s>,
}

/// The list without its home.
pub(super) struct Recorded<'s> {
    pub(super) device: usize,
    pub(super) slots: u32,
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
    pub(super) fn piece(self, at: u64, len: Option<u64>) -> Target {
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

    pub(super) fn is_bound(&self) -> bool {
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

    pub(super) fn keep_all(&mut self, command: &Command<'_>, site: Site) -> Result<(), Fault> {
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
}
