//! A list with the bindings of one submit: its operations, as a backend takes them.

use super::{
    list::{BOUND_ARGS_MAX, Part, Piece, Recorded, SLOTS_MAX, Saved, Target},
    sequence::Sequence,
    transfer::check_pattern,
};
use crate::{
    bits::{Access, Usage},
    buffer::WHOLE,
    device::Op,
    fault::{Fault, Kind, Site, Why},
};
use core::ops::Range;

/// A binding of one submit.
pub(super) struct Bound {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) access: Access,
    pub(super) usage: Usage,
    /// `None`: the device does not reach it.
    pub(super) peer: Option<u16>,
    pub(super) device: usize,
}

/// The bindings of one submit; `None` where the caller bound nothing.
pub(super) type Table = heapless::Vec<Option<Bound>, { SLOTS_MAX as usize }>;

/// A list with its bindings.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) list: &'a Recorded<'a>,
    pub(super) table: &'a Table,
}

/// A side of a copy, resolved.
pub(super) struct Found {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) peer: u16,
}

/// Arguments of one array of operations, with the addresses of this submit.
pub(super) type Args = heapless::Vec<u8, BOUND_ARGS_MAX>;

impl Sequence for Run<'_> {
    fn len(&self) -> usize {
        self.list.commands().len()
    }
    fn prepare(&self, range: Range<usize>, args: &mut Args) -> usize {
        if self.list.bound { self.patch(range, args) } else { range.end }
    }
    #[inline]
    fn op<'p>(&'p self, i: usize, args: &mut &'p [u8]) -> Result<Op<'p>, Fault> {
        self.resolve(&self.list.commands()[i], args)
    }
}

impl<'a> Run<'a> {
    /// Every operation that refers to a slot can be made from the bindings.
    pub(super) fn check(&self) -> Result<(), Fault> {
        for saved in self.list.commands() {
            if let Saved::Launch { patches, .. } = *saved {
                for patch in self.list.patches(patches) {
                    self.place(&patch.target, patch.access, Usage::DISPATCH, Site::Launch)?;
                }
            } else {
                self.resolve(saved, &mut &[][..])?;
            }
        }
        Ok(())
    }

    /// Writes the arguments with their addresses, for as many operations as fit; where the next one begins.
    fn patch(&self, range: Range<usize>, args: &mut Args) -> usize {
        for i in range.clone() {
            let Saved::Launch { args: own, patches, .. } = self.list.commands()[i] else { continue };
            if patches.len == 0 {
                continue;
            }
            let at = args.len();
            if args.extend_from_slice(self.list.bytes(own)).is_err() {
                return i;
            }
            for patch in self.list.patches(patches) {
                // Was checked; a null address in the arguments is the least harm if it was not.
                let place = self.place(&patch.target, patch.access, Usage::DISPATCH, Site::Launch);
                let address = place.map_or(0, |place| place.address);
                let to = at + patch.at as usize;
                args[to..to + 8].copy_from_slice(&address.to_ne_bytes());
            }
        }
        range.end
    }

    /// The operation as a backend takes it; arguments with addresses come from the front of `patched`.
    #[inline]
    fn resolve<'p>(&self, saved: &Saved, patched: &mut &'p [u8]) -> Result<Op<'p>, Fault>
    where
        'a: 'p,
    {
        Ok(match *saved {
            Saved::Copy { from, to, len, peers } => Op::Copy { from, to, len, peers },
            Saved::Fill { to, len, pattern } => Op::Fill { to, len, pattern: self.list.bytes(pattern) },
            Saved::Update { to, bytes } => Op::Update { to, bytes: self.list.bytes(bytes) },
            Saved::Launch { kernel, groups, size, shared, args, patches } => {
                let args = if patches.len == 0 { self.list.bytes(args) } else { front(patched, args) };
                Op::Launch { kernel, groups, size, shared, args }
            }
            Saved::CopyBound { from, to } => self.copy(&from, &to)?,
            Saved::FillBound { to, pattern } => {
                let to = self.place(&to, Access::WRITE, Usage::TRANSFER, Site::Fill)?;
                let pattern = self.list.bytes(pattern);
                check_pattern(to.len, pattern)?;
                if to.len == 0 { Op::Barrier } else { Op::Fill { to: to.address, len: to.len, pattern } }
            }
            Saved::FillPiece { to, pattern, piece } => {
                let to = self.place(&to, Access::WRITE, Usage::TRANSFER, Site::Fill)?;
                check_pattern(to.len, self.list.bytes(pattern))?;
                let twice = self.list.bytes(Part { len: 2 * pattern.len, ..pattern });
                piece_of(to.address, to.len, twice, piece)
            }
            Saved::UpdateBound { to, bytes } => {
                let to = self.place(&to, Access::WRITE, Usage::TRANSFER, Site::Update)?;
                let bytes = self.list.bytes(bytes);
                let len = bytes.len() as u64;
                if len != to.len {
                    let values = [len, to.len];
                    return Err(Fault::caller(Kind::InvalidArgument, Site::Update, Why::Mismatch, values));
                }
                if len == 0 { Op::Barrier } else { Op::Update { to: to.address, bytes } }
            }
        })
    }

    fn copy(&self, from: &Target, to: &Target) -> Result<Op<'static>, Fault> {
        let from = self.place(from, Access::READ, Usage::TRANSFER, Site::Copy)?;
        let to = self.place(to, Access::WRITE, Usage::TRANSFER, Site::Copy)?;
        let (a, b, len) = (from.address, to.address, from.len);
        let wrong = |why, values| Err(Fault::caller(Kind::InvalidArgument, Site::Copy, why, values));
        if len != to.len {
            return wrong(Why::Mismatch, [len, to.len]);
        }
        if len == 0 {
            return Ok(Op::Barrier);
        }
        if from.peer == to.peer && a < b + len && b < a + len {
            return wrong(Why::Overlap, [a, b]);
        }
        Ok(Op::Copy { from: a, to: b, len, peers: [from.peer, to.peer] })
    }

    /// Where a target lies, if it may be used so.
    fn place(&self, target: &Target, access: Access, usage: Usage, site: Site) -> Result<Found, Fault> {
        let (slot, offset, len) = match *target {
            Target::At { address, len, peer } => return Ok(Found { address, len, peer }),
            Target::Slot { slot, offset, len } => (slot, offset, len),
        };
        let none = Fault::caller(Kind::InvalidArgument, site, Why::Entry, [slot.into(), 0]);
        let bound = self.table.get(slot as usize).and_then(Option::as_ref).ok_or(none)?;
        let missing = |needs: u32, has: u32| {
            Fault::caller(Kind::PermissionDenied, site, Why::Bits, [needs.into(), has.into()])
        };
        if !bound.access.contains(access) {
            return Err(missing(access.bits(), bound.access.bits()));
        }
        if !bound.usage.contains(usage) {
            return Err(missing(usage.bits(), bound.usage.bits()));
        }
        let past = |end| Fault::caller(Kind::OutOfRange, site, Why::PastEnd, [end, bound.len]);
        let left = bound.len.checked_sub(offset).ok_or(past(offset))?;
        let len = if len == WHOLE { left } else { len };
        if len > left {
            return Err(past(offset.saturating_add(len)));
        }
        let device = Fault::caller(Kind::InvalidDevice, site, Why::Mismatch, [bound.device as u64, 0]);
        let peer = bound.peer.ok_or(device)?;
        Ok(Found { address: bound.address + offset, len, peer })
    }
}

/// Takes the next arguments off the front.
fn front<'p>(patched: &mut &'p [u8], args: Part) -> &'p [u8] {
    let (own, rest) = patched.split_at((args.len as usize).min(patched.len()));
    *patched = rest;
    own
}

/// One of the three parts of a fill: updates of less than a pattern around what is aligned to it, where the pattern is
/// turned by what went before.
fn piece_of(to: u64, len: u64, twice: &[u8], piece: Piece) -> Op<'_> {
    let n = twice.len() as u64 / 2;
    let head = (to.next_multiple_of(n) - to).min(len);
    let body = (len - head) / n * n;
    let turned = &twice[head as usize..];
    match piece {
        Piece::Head if head > 0 => Op::Update { to, bytes: &twice[..head as usize] },
        Piece::Body if body > 0 => Op::Fill { to: to + head, len: body, pattern: &turned[..n as usize] },
        Piece::Tail if head + body < len => {
            Op::Update { to: to + head + body, bytes: &turned[..(len - head - body) as usize] }
        }
        _ => Op::Barrier,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every target from 0 to 7 past an alignment of 4, against the pattern by its definition.
    #[test]
    fn the_pieces_of_a_fill_are_the_fill() {
        let twice = [1, 2, 3, 4, 1, 2, 3, 4];
        for (to, len) in (0..8u64).flat_map(|to| (0..5).map(move |n| (to, 4 * n))) {
            let mut memory = [0u8; 64];
            for piece in [Piece::Head, Piece::Body, Piece::Tail] {
                match piece_of(to, len, &twice, piece) {
                    Op::Update { to, bytes } => memory[to as usize..][..bytes.len()].copy_from_slice(bytes),
                    Op::Fill { to, len, pattern } => {
                        assert!(to.is_multiple_of(4) && len.is_multiple_of(4), "{to}, {len}");
                        let body = &mut memory[to as usize..][..len as usize];
                        body.chunks_mut(4).for_each(|chunk| chunk.copy_from_slice(pattern));
                    }
                    _ => {}
                }
            }
            let expected: [u8; 64] = core::array::from_fn(|at| match (at as u64).checked_sub(to) {
                Some(at) if at < len => twice[at as usize % 4],
                _ => 0,
            });
            assert_eq!(memory, expected, "{len} bytes at {to}");
        }
    }
}
