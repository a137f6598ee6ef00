//! Fills and updates that a device does not do at once, as operations that it does: an update in parts; a fill as
//! updates with the first pattern, and copies of what is there that double it.

use super::{Around, Runtime, lane::LaneState, sequence::Sequence, submit::Accepted};
use crate::{
    device::{Caps, Device, Op, op},
    env::Env,
    fault::{Fault, Kind, Site, Why},
};

/// The parts.
#[derive(Clone, Copy)]
pub(super) struct Pieces<'a> {
    to: u64,
    bytes: &'a [u8],
    /// Bytes of one update at most.
    part: usize,
    /// Bytes in all: those of the updates, then copies.
    len: u64,
    peer: u16,
}

impl Pieces<'_> {
    fn updates(&self) -> usize {
        self.bytes.len().div_ceil(self.part)
    }
}

impl Sequence for Pieces<'_> {
    fn len(&self) -> usize {
        let (mut have, mut copies) = (self.bytes.len() as u64, 0);
        while have < self.len {
            have = have.saturating_mul(2);
            copies += 1;
        }
        self.updates() + copies
    }
    fn op<'p>(&'p self, i: usize, _: &mut &'p [u8]) -> Result<Op<'p>, Fault> {
        if i < self.updates() {
            let at = i * self.part;
            let bytes = &self.bytes[at..self.bytes.len().min(at + self.part)];
            return Ok(Op::Update { to: self.to + at as u64, bytes });
        }
        let have = (self.bytes.len() as u64) << (i - self.updates());
        let len = have.min(self.len - have);
        Ok(Op::Copy { from: self.to, to: self.to + have, len, peers: [self.peer; 2] })
    }
}

/// The shortest pattern that gives the same bytes.
fn shortest(pattern: &[u8]) -> &[u8] {
    let repeats =
        |n: &usize| pattern.len().is_multiple_of(*n) && pattern[*n..] == pattern[..pattern.len() - n];
    let n = (1..pattern.len()).find(repeats).unwrap_or(pattern.len());
    &pattern[..n]
}

impl Caps {
    /// Whether the device fills memory at `to` with a pattern of this length.
    pub const fn fills(&self, to: u64, pattern: u64) -> bool {
        let fits = !self.pattern_pow2 || (pattern.is_power_of_two() && to.is_multiple_of(pattern));
        fits && pattern <= self.pattern_max as u64
    }
}

/// How a device does an operation.
pub(super) enum Way<'a> {
    Whole(Op<'a>),
    Pieces(Pieces<'a>),
}

/// How a device does `whole`, whose target lies with `peer`.
///
/// # Errors
/// `Unsupported` if it lacks what the pieces are.
pub(super) fn way<'a>(whole: Op<'a>, caps: &Caps, peer: u16) -> Result<Way<'a>, Fault> {
    let part = (caps.update_max as usize).max(1);
    let pieces = match whole {
        Op::Update { to, bytes } if bytes.len() > part => {
            Pieces { to, bytes, part, len: bytes.len() as u64, peer }
        }
        Op::Fill { to, len, pattern } if !caps.fills(to, pattern.len() as u64) => {
            let bytes = shortest(pattern);
            if caps.fills(to, bytes.len() as u64) {
                return Ok(Way::Whole(Op::Fill { to, len, pattern: bytes }));
            }
            Pieces { to, bytes, part, len, peer }
        }
        _ => return Ok(Way::Whole(whole)),
    };
    match [op::UPDATE, op::COPY].into_iter().find(|kind| !caps.takes(*kind)) {
        None => Ok(Way::Pieces(pieces)),
        Some(kind) => Err(Fault::backend(Kind::Unsupported, Site::Submit, Why::Missing, [kind.into(), 0])),
    }
}

impl<D: Device, E: Env> Runtime<D, E> {
    /// Accepts an operation, in pieces if the device does not do it at once. `peer`: where its target lies.
    pub(crate) fn accept_whole(
        &self,
        lane: &mut LaneState<D>,
        around: &Around<'_>,
        whole: Op<'_>,
        peer: u16,
    ) -> Accepted {
        match way(whole, &lane.caps, peer)? {
            Way::Whole(op) => self.accept(lane, around, op),
            Way::Pieces(pieces) => {
                if let Some(fault) = self.queue_failure(lane) {
                    return Err(fault);
                }
                self.check_waits(lane, around.waits)?;
                self.accept_sequence(lane, pieces, around)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_shortened_to_its_period() {
        assert_eq!(shortest(&[7, 7, 7]), [7]);
        assert_eq!(shortest(&[1, 2, 1, 2]), [1, 2]);
        assert_eq!(shortest(&[1, 2, 1]), [1, 2, 1]);
        assert_eq!(shortest(&[5]), [5]);
    }

    /// 10 bytes of pattern in parts of 4 are 3 updates; 10, 20, 40 become 45 by 3 copies.
    #[test]
    fn pieces_cover_the_target_once_and_in_order() {
        let bytes: [u8; 10] = core::array::from_fn(|i| i as u8);
        let pieces = Pieces { to: 100, bytes: &bytes, part: 4, len: 50, peer: 3 };
        let mut memory = [0xEE_u8; 200];
        assert_eq!(pieces.len(), 6);
        for i in 0..pieces.len() {
            match pieces.op(i, &mut &[][..]).unwrap() {
                Op::Update { to, bytes } => memory[to as usize..][..bytes.len()].copy_from_slice(bytes),
                Op::Copy { from, to, len, .. } => {
                    assert!(from + len <= to, "sides of a copy never overlap");
                    memory.copy_within(from as usize..(from + len) as usize, to as usize);
                }
                _ => unreachable!("a fill is updates and copies"),
            }
        }
        assert!(memory[100..150].iter().enumerate().all(|(i, byte)| *byte == (i % 10) as u8));
        assert!(memory[..100].iter().chain(&memory[150..]).all(|byte| *byte == 0xEE));
    }
}
