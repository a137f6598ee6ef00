//! The planner: entries come in one at a time and in their order, chunks go out one at a time, each to the queue with
//! the least outstanding cost. Memory is a few counters for each queue and one cursor.

use super::{Piece, Pieces, Side, Totals};
use crate::fault::Fault;

/// Most queues of one batch.
pub const LANES_MAX: usize = 8;
/// What an operation costs besides its bytes, in bytes' worth of time.
pub const OP_COST: u64 = 16 << 10;
/// Smallest and largest size of a chunk that an entry is cut into.
pub const CHUNK_MIN: u64 = 64 << 10;
/// See [`CHUNK_MIN`].
pub const CHUNK_MAX: u64 = 4 << 20;
/// Smallest size of a chunk that comes from a file or another device, where each operation may cost milliseconds.
pub const CHUNK_FAR_MIN: u64 = 2 << 20;
/// Most chunks of a bundle: a queue has room for several bundles.
pub const BUNDLE_MAX: u32 = 32;
/// Most bytes of a bundle that is longer than one chunk: of eight queues each has two under way.
const BUNDLE_BYTES_MAX: u64 = 1 << 20;
/// Chunks of cut entries begin at multiples of this, so that the phase of any splat is that of its entry.
const CHUNK_STEP: u64 = 4096;

/// Neighbouring entries, or a part of one, for one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The queue's number in the batch.
    pub lane: usize,
    /// The bytes.
    pub piece: Piece,
}

/// A cursor over the entries and the load of each queue.
#[derive(Clone, Debug)]
pub struct Plan {
    next: u32,
    into: u64,
    chunk: u64,
    lanes: usize,
    issued: [u64; LANES_MAX],
    retired: [u64; LANES_MAX],
    /// Bytes and entries that were not handed out yet.
    left: Totals,
    bundle: Bundle,
}

/// What went to one queue since it was chosen.
#[derive(Clone, Copy, Debug, Default)]
struct Bundle {
    chunks: u32,
    bytes: u64,
    /// Costs that much at most.
    limit: u64,
}

impl Plan {
    /// A plan over `lanes` queues, 1 to [`LANES_MAX`].
    pub fn new(totals: &Totals, lanes: usize) -> Self {
        let lanes = lanes.clamp(1, LANES_MAX);
        let fair = totals.bytes / (lanes as u64 * 128);
        let chunk = fair.clamp(CHUNK_MIN, CHUNK_MAX).next_multiple_of(CHUNK_STEP);
        let (issued, retired) = ([0; LANES_MAX], [0; LANES_MAX]);
        Plan { next: 0, into: 0, chunk, lanes, issued, retired, left: *totals, bundle: Bundle::default() }
    }

    /// Chunks of at least [`CHUNK_FAR_MIN`], where entries are that long.
    pub fn far(&mut self) {
        self.chunk = self.chunk.max(CHUNK_FAR_MIN);
    }

    /// Chunks of at most so many bytes, a multiple of 4096.
    pub fn at_most(&mut self, bytes: u64) {
        self.chunk = self.chunk.min(bytes / CHUNK_STEP * CHUNK_STEP).max(CHUNK_STEP);
    }

    /// Chunks of at least so many bytes, if that leaves each queue eight of them or more; at most [`CHUNK_MAX`]. For what
    /// takes long to begin and not long to go on, as reads of a disk do.
    pub fn at_least(&mut self, bytes: u64) {
        let share = self.left.bytes / (self.lanes as u64 * 8);
        let wanted = bytes.min(share).min(CHUNK_MAX) / CHUNK_STEP * CHUNK_STEP;
        self.chunk = self.chunk.max(wanted);
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk
    }

    /// Cost handed to each queue so far.
    pub fn issued(&self) -> &[u64] {
        &self.issued[..self.lanes]
    }

    /// The next bytes in order, for the least loaded of the queues that `open` allows. Neighbours in both the stored
    /// side and the buffer merge, long entries are cut, empty ones vanish. `None`: nothing is left, or no queue is open.
    ///
    /// # Errors
    /// What the entry says.
    pub fn next(
        &mut self,
        pieces: &impl Pieces,
        open: impl Fn(usize) -> bool,
    ) -> Result<Option<Chunk>, Fault> {
        // Outstanding cost decides; between equals, who has had less in all.
        let load = |lane: usize| (self.issued[lane].saturating_sub(self.retired[lane]), self.issued[lane]);
        let Some(lane) = (0..self.lanes).filter(|lane| open(*lane)).min_by_key(|lane| load(*lane)) else {
            return Ok(None);
        };
        let Some(piece) = self.grow(pieces)? else { return Ok(None) };
        // Long bundles at first, and shorter ones the less is left, so that no queue ends long after the others.
        let left = self.left.bytes.saturating_add(u64::from(self.left.count) * OP_COST);
        self.bundle = Bundle { chunks: 0, bytes: 0, limit: left / (self.lanes as u64 * 16) };
        Ok(Some(self.hand_out(lane, piece)))
    }

    /// The next bytes in order for the queue that `last` went to, as long as both are one bundle: small, reached in one
    /// way, and little beside what is left. Who submits a bundle has one end to look at instead of many.
    ///
    /// # Errors
    /// What the entry says.
    pub fn more(&mut self, pieces: &impl Pieces, last: &Chunk) -> Result<Option<Chunk>, Fault> {
        let Bundle { chunks, bytes, limit } = self.bundle;
        let spent = bytes.saturating_add(u64::from(chunks) * OP_COST);
        if chunks >= BUNDLE_MAX || bytes >= BUNDLE_BYTES_MAX || spent >= limit {
            return Ok(None);
        }
        let before = (self.next, self.into);
        let Some(piece) = self.grow(pieces)? else { return Ok(None) };
        let alike = core::mem::discriminant(&last.piece.stored) == core::mem::discriminant(&piece.stored);
        let fits = bytes.saturating_add(piece.len) <= BUNDLE_BYTES_MAX
            && spent.saturating_add(cost(piece.len)) <= limit;
        if !alike || !fits {
            (self.next, self.into) = before;
            return Ok(None);
        }
        Ok(Some(self.hand_out(last.lane, piece)))
    }

    fn hand_out(&mut self, lane: usize, piece: Piece) -> Chunk {
        self.issued[lane] = self.issued[lane].saturating_add(cost(piece.len));
        self.bundle.chunks += 1;
        self.bundle.bytes += piece.len;
        self.left.bytes = self.left.bytes.saturating_sub(piece.len);
        Chunk { lane, piece }
    }

    /// The next bytes, merged or cut.
    fn grow(&mut self, pieces: &impl Pieces) -> Result<Option<Piece>, Fault> {
        let mut grown: Option<Piece> = None;
        while self.next < pieces.count() {
            let piece = pieces.piece(self.next)?;
            let left = piece.len.saturating_sub(self.into);
            if left == 0 {
                self.advance();
                continue;
            }
            let rest = part(&piece, self.into, left);
            let room = match &grown {
                None => self.chunk,
                Some(chunk) if follows(chunk, &rest) => self.chunk - chunk.len,
                Some(_) => break,
            };
            let take = left.min(room);
            if take == 0 {
                break;
            }
            match &mut grown {
                None => grown = Some(Piece { len: take, ..rest }),
                Some(chunk) => chunk.len += take,
            }
            if take < left {
                self.into += take;
                break;
            }
            self.advance();
        }
        self.left.count = pieces.count().saturating_sub(self.next);
        Ok(grown)
    }

    /// A chunk has ended.
    pub fn retire(&mut self, chunk: &Chunk) {
        self.retire_bundle(chunk.lane, chunk.piece.len, 1);
    }

    /// So many chunks of so many bytes in all have ended.
    pub fn retire_bundle(&mut self, lane: usize, bytes: u64, chunks: u32) {
        let cost = bytes.saturating_add(u64::from(chunks) * OP_COST);
        self.retired[lane] = self.retired[lane].saturating_add(cost);
    }

    /// Whether all entries were handed out.
    pub fn is_done(&self, pieces: &impl Pieces) -> bool {
        self.next >= pieces.count()
    }

    fn advance(&mut self) {
        self.next += 1;
        self.into = 0;
    }
}

fn cost(len: u64) -> u64 {
    len.saturating_add(OP_COST)
}

/// `len` bytes of a piece from `at` on. Pieces are cut at multiples of 4096, so a splat's pattern keeps its phase.
fn part(piece: &Piece, at: u64, len: u64) -> Piece {
    let stored = match piece.stored {
        Side::Memory(address) => Side::Memory(address + at),
        Side::File { file, offset } => Side::File { file, offset: offset + at },
        Side::Remote { root, offset } => Side::Remote { root, offset: offset + at },
        splat @ Side::Splat { .. } => splat,
    };
    Piece { stored, root: piece.root, offset: piece.offset + at, len }
}

/// Whether `next` goes on where `chunk` ends, on both sides.
fn follows(chunk: &Piece, next: &Piece) -> bool {
    let stored = match (chunk.stored, next.stored) {
        (Side::Memory(a), Side::Memory(b)) => a + chunk.len == b,
        (Side::File { file: f, offset: a }, Side::File { file: g, offset: b }) => {
            f == g && a + chunk.len == b
        }
        (Side::Remote { root: r, offset: a }, Side::Remote { root: s, offset: b }) => {
            r == s && a + chunk.len == b
        }
        _ => false,
    };
    stored && chunk.root == next.root && chunk.offset + chunk.len == next.offset
}
