//! Phase one: every entry is resolved and validated before the first is submitted.

use super::{Direction, Piece, Pieces, Side};
use crate::fault::{Fault, Kind, Site, Why};

/// Entries up to which overlap is looked for pair by pair when they are not in order and there is no heap.
pub const CHECK_QUADRATIC_MAX: u32 = 256;

/// What a batch comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Entries.
    pub count: u32,
    /// Bytes of all entries.
    pub bytes: u64,
}

/// The range a piece writes: what kind of thing it lies in, which one, begin, end.
type Written = (u8, u64, u64, u64);

fn written(piece: &Piece, direction: Direction) -> Written {
    match (direction, piece.stored) {
        (Direction::Out, Side::Memory(address)) => (0, 0, address, address + piece.len),
        (Direction::Out, Side::File { file, offset }) => (1, file, offset, offset + piece.len),
        (Direction::Out, Side::Remote { root, offset }) => (2, root.raw(), offset, offset + piece.len),
        _ => (2, piece.root.raw(), piece.offset, piece.offset + piece.len),
    }
}

/// Asks for every entry once. Targets in ascending order prove themselves disjoint; others are compared.
///
/// # Errors
/// The first entry's fault; `InvalidArgument` if two entries write the same byte; `OutOfRange` if the bytes of all do
/// not fit 64 bits.
pub fn check(pieces: &impl Pieces, direction: Direction) -> Result<Totals, Fault> {
    let mut totals = Totals { count: pieces.count(), bytes: 0 };
    let (mut last, mut ascending) = ((0u8, 0u64, 0u64), true);
    for index in 0..totals.count {
        let piece = pieces.piece(index)?;
        let sum = totals.bytes.checked_add(piece.len);
        let overflow = Fault::caller(Kind::OutOfRange, Site::Batch, Why::Overflow, [totals.bytes, piece.len]);
        totals.bytes = sum.ok_or(overflow)?;
        if piece.len > 0 {
            let (kind, home, begin, end) = written(&piece, direction);
            ascending &= (kind, home, begin) >= last;
            last = (kind, home, end);
        }
    }
    if ascending || pieces.disjoint() { Ok(totals) } else { disjoint(pieces, direction).map(|()| totals) }
}

fn overlap(a: &Written, b: &Written) -> Result<(), Fault> {
    if (a.0, a.1) == (b.0, b.1) && a.2 < b.3 && b.2 < a.3 {
        return Err(Fault::caller(Kind::InvalidArgument, Site::Batch, Why::Overlap, [a.2, b.2]));
    }
    Ok(())
}

#[cfg(feature = "alloc")]
fn disjoint(pieces: &impl Pieces, direction: Direction) -> Result<(), Fault> {
    let mut all = alloc::vec::Vec::new();
    for index in 0..pieces.count() {
        let piece = pieces.piece(index)?;
        if piece.len > 0 {
            all.push(written(&piece, direction));
        }
    }
    all.sort_unstable();
    all.windows(2).try_for_each(|pair| overlap(&pair[0], &pair[1]))
}

#[cfg(not(feature = "alloc"))]
fn disjoint(pieces: &impl Pieces, direction: Direction) -> Result<(), Fault> {
    let count = pieces.count();
    if count > CHECK_QUADRATIC_MAX {
        let limit = [count as u64, CHECK_QUADRATIC_MAX as u64];
        return Err(Fault::caller(Kind::ResourceExhausted, Site::Batch, Why::Limit, limit));
    }
    for i in 0..count {
        let a = pieces.piece(i)?;
        for j in 0..i {
            let b = pieces.piece(j)?;
            if a.len > 0 && b.len > 0 {
                overlap(&written(&a, direction), &written(&b, direction))?;
            }
        }
    }
    Ok(())
}
