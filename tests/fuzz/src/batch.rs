//! The planner and the check of batches against a naive model: every byte of every entry once, in the order of the
//! entries, in chunks no longer than allowed, each for the least loaded of the open queues.

use crate::choose::Choices;
use wharf_core::{
    batch::{
        CHUNK_MAX, Chunk, Direction, Item, LANES_MAX, OP_COST, Piece, Pieces, Plan, Side, Stored, Target,
        check, resolve,
    },
    bits::Access,
    fault::{Fault, Kind},
    handle::Handle,
};

/// Entries at most: the model compares each with each.
const ENTRIES: u64 = 48;
/// Cuts are at multiples of this from an entry's first byte, so that splats keep their phase.
const CUT: u64 = 4096;

struct Entries(Vec<Piece>);

impl Pieces for Entries {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }
    fn piece(&self, index: u32) -> Result<Piece, Fault> {
        Ok(self.0[index as usize])
    }
}

/// Makes entries and drives the planner as the input says.
///
/// # Panics
/// If the planner or the check is not what the model says.
pub fn plan(bytes: &[u8]) {
    let mut choices = Choices(bytes);
    let direction = if choices.below(2) == 0 { Direction::In } else { Direction::Out };
    let lanes = choices.below(LANES_MAX as u64) as usize + 1;
    let limit = (choices.below(3) == 0).then(|| CUT * (1 + choices.below(128)));
    let entries = Entries(entries(&mut choices, direction));
    let totals = check(&entries, direction);
    let overlaps = overlaps(&entries.0, direction);
    let totals = match totals {
        Err(fault) => return assert!(overlaps && fault.kind == Kind::InvalidArgument, "{fault:?}"),
        Ok(totals) => totals,
    };
    assert!(!overlaps, "two entries write the same byte");
    assert_eq!(totals.bytes, entries.0.iter().map(|piece| piece.len).sum::<u64>());
    let mut plan = Plan::new(&totals, lanes);
    if let Some(limit) = limit {
        plan.at_most(limit);
        assert!(plan.chunk_bytes() <= limit.max(CUT));
    }
    assert!(plan.chunk_bytes() <= CHUNK_MAX);
    drive(&mut plan, &entries, lanes, &mut choices);
}

/// Entries that follow one another or do not, on both sides, each as [`resolve`] lets it through.
fn entries(choices: &mut Choices<'_>, direction: Direction) -> Vec<Piece> {
    let mut pieces = vec![];
    let (mut stored_at, mut buffer_at) = (1 << 20, 0u64);
    let access = Access::READ | Access::WRITE;
    for _ in 0..choices.below(ENTRIES) {
        let shape = choices.byte();
        let len = choices.len();
        stored_at = if shape & 1 == 0 { stored_at } else { (1 << 20) + (choices.word() & 0xff_ffff) };
        buffer_at = if shape & 2 == 0 { buffer_at } else { choices.word() & 0xff_ffff };
        let skipped = if shape & 4 == 0 { 0 } else { choices.below(300) };
        let whole = skipped + len + choices.below(4);
        let stored = match shape >> 3 & 3 {
            0 | 3 => Stored::Memory { address: stored_at, len: whole, access },
            1 => Stored::File { file: choices.below(3), offset: stored_at, len: whole, access },
            _ => splat(choices, whole),
        };
        let root = Handle::from_raw(1 + choices.below(2));
        let target = Target { root, offset: choices.below(2) * 64, len: 1 << 28 };
        let item = Item { key: b"t", parameter_offset: skipped, buffer_offset: buffer_at, len };
        match resolve(&item, &stored, &target, direction) {
            Ok(piece) => {
                assert_eq!((piece.len, piece.offset), (len, target.offset + buffer_at));
                pieces.push(piece);
            }
            Err(fault) => {
                let is_splat = matches!(stored, Stored::Splat { .. });
                assert!(is_splat && direction == Direction::Out, "refused: {fault:?}");
            }
        }
        stored_at += skipped + len;
        buffer_at += len;
    }
    pieces
}

fn splat(choices: &mut Choices<'_>, len: u64) -> Stored {
    let pattern = std::array::from_fn(|_| choices.byte());
    Stored::Splat { pattern, pattern_len: 1 << choices.below(5), len }
}

/// Whether two entries write the same byte, found by comparing each with each.
fn overlaps(pieces: &[Piece], direction: Direction) -> bool {
    let written = |piece: &Piece| match (direction, piece.stored) {
        (Direction::Out, Side::Memory(at)) => (0, 0, at),
        (Direction::Out, Side::File { file, offset }) => (1, file, offset),
        _ => (2, piece.root.raw(), piece.offset),
    };
    pieces.iter().enumerate().any(|(number, a)| {
        pieces[..number].iter().any(|b| {
            let ((a_kind, a_home, a_at), (b_kind, b_home, b_at)) = (written(a), written(b));
            (a_kind, a_home) == (b_kind, b_home) && a_at.max(b_at) < (a_at + a.len).min(b_at + b.len)
        })
    })
}

/// Takes all chunks, letting some queues be closed and some chunks end in between.
fn drive(plan: &mut Plan, entries: &Entries, lanes: usize, choices: &mut Choices<'_>) {
    let mut model = Model { entries: &entries.0, entry: 0, into: 0 };
    let mut flight: Vec<Chunk> = vec![];
    let (mut issued, mut retired) = ([0u64; LANES_MAX], [0u64; LANES_MAX]);
    let mut last: Option<Chunk> = None;
    loop {
        // What goes with the chunk before goes to its queue.
        if let Some(before) = last.filter(|_| !choices.is_over() && choices.below(2) == 0)
            && let Some(more) = plan.more(entries, &before).expect("no entry is at fault")
        {
            assert_eq!(more.lane, before.lane, "a bundle is of one queue");
            model.take(&more.piece, plan.chunk_bytes());
            issued[more.lane] += more.piece.len + OP_COST;
            flight.push(more);
            last = Some(more);
            continue;
        }
        // Once the input is used up all queues are open, so that the plan ends.
        let closed = if choices.is_over() { 0 } else { choices.byte() };
        let open = |lane: usize| closed >> lane & 1 == 0;
        let least = (0..lanes)
            .filter(|lane| open(*lane))
            .min_by_key(|lane| (issued[*lane] - retired[*lane], issued[*lane], *lane));
        let next = plan.next(entries, open).expect("no entry is at fault");
        let Some(chunk) = next else {
            if least.is_some() {
                break;
            }
            continue;
        };
        assert_eq!(Some(chunk.lane), least, "not the least loaded");
        model.take(&chunk.piece, plan.chunk_bytes());
        issued[chunk.lane] += chunk.piece.len + OP_COST;
        flight.push(chunk);
        last = Some(chunk);
        if !choices.is_over() && choices.below(3) == 0 {
            let ended = flight.swap_remove(choices.below(flight.len() as u64) as usize);
            retired[ended.lane] += ended.piece.len + OP_COST;
            plan.retire(&ended);
        }
    }
    assert!(plan.is_done(entries));
    model.skip_empty();
    assert_eq!(model.entry, entries.0.len(), "bytes are left");
}

/// How far the chunks have come.
struct Model<'a> {
    entries: &'a [Piece],
    entry: usize,
    into: u64,
}

impl Model<'_> {
    fn skip_empty(&mut self) {
        while self.entries.get(self.entry).is_some_and(|piece| piece.len == self.into) {
            (self.entry, self.into) = (self.entry + 1, 0);
        }
    }

    /// The chunk is exactly what comes next.
    fn take(&mut self, chunk: &Piece, most: u64) {
        assert!(chunk.len > 0 && chunk.len <= most, "{} bytes of at most {most}", chunk.len);
        let mut done = 0;
        while done < chunk.len {
            self.skip_empty();
            let piece = self.entries.get(self.entry).expect("no more than the entries have");
            let splat = matches!(piece.stored, Side::Splat { .. });
            assert!(!splat || self.into.is_multiple_of(CUT), "a splat is cut at {}", self.into);
            assert!(!splat || done == 0, "a splat is joined to others");
            assert_eq!(chunk.root, piece.root);
            assert_eq!(chunk.offset + done, piece.offset + self.into);
            assert_eq!(ahead(chunk.stored, done), ahead(piece.stored, self.into));
            let step = (piece.len - self.into).min(chunk.len - done);
            (self.into, done) = (self.into + step, done + step);
        }
    }
}

/// The stored side so many bytes further on; of a splat, which is cut at its period, the same.
fn ahead(side: Side, bytes: u64) -> Side {
    match side {
        Side::Memory(at) => Side::Memory(at + bytes),
        Side::File { file, offset } => Side::File { file, offset: offset + bytes },
        Side::Remote { root, offset } => Side::Remote { root, offset: offset + bytes },
        splat @ Side::Splat { .. } => splat,
    }
}
