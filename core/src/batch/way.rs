//! The way of a chunk: straight between a buffer and memory or a file, or in two steps through a staging slot.

use super::{Direction, Piece, Side};
use crate::{
    bits::{Access, Usage},
    device::{Device, Hint, Op, PEER_HOST},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    record::Record,
    runtime::{Around, Queue, Runtime, Span},
    timeline::Point,
};

/// Smallest staging slot: chunks are cut at multiples of it.
pub const STAGE_MIN: u64 = 4096;

/// Memory of the process that chunks pass through, in slots. It stays until the batch is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staging {
    /// First byte of the first slot.
    pub address: u64,
    /// Bytes of a slot, a multiple of [`STAGE_MIN`].
    pub slot_len: u64,
    /// Slots.
    pub slots: u32,
}

/// Queues and slot of one chunk.
pub(super) struct Way<D: Device, E: Env> {
    pub(super) direction: Direction,
    /// On the device of the buffer.
    pub(super) queue: Handle<Queue<D, E>>,
    /// On the far side.
    pub(super) feeder: Option<Handle<Queue<D, E>>>,
    /// Address of the slot.
    pub(super) stage: Option<u64>,
}

/// Where what was submitted ends, and what went wrong: both, if only a part was.
pub(super) struct Moved {
    pub(super) end: Option<Point>,
    pub(super) fault: Option<Fault>,
}

impl Moved {
    fn failed(fault: Fault) -> Self {
        Moved { end: None, fault: Some(fault) }
    }
}

/// One end of a move: memory of the process, or a range of a root, looked up when the move is submitted.
#[derive(Clone, Copy)]
enum End {
    Host(u64),
    Root(Handle<Record>, u64),
}

impl<D: Device, E: Env> Way<D, E> {
    /// Submits a chunk. Roots are looked at under the lane's lock, so that memory which was freed meanwhile is refused.
    pub(super) fn issue(&self, runtime: &Runtime<D, E>, piece: &Piece) -> Moved {
        let (near, len) = (End::Root(piece.root, piece.offset), piece.len);
        match (piece.stored, self.stage) {
            (Side::Memory(stored), _) => self.copy(runtime, self.queue, &[], [End::Host(stored), near], len),
            (Side::Splat { pattern, len: step }, _) => {
                self.splat(runtime, near, len, &pattern[..step as usize])
            }
            (Side::File { file, offset }, None) => {
                let queue = self.feeder.unwrap_or(self.queue);
                self.file(runtime, queue, &[], (file, offset), near, len)
            }
            // The buffer's own device reaches the far side.
            (Side::Remote { root, offset }, None) => {
                self.copy(runtime, self.queue, &[], [End::Root(root, offset), near], len)
            }
            (Side::File { .. } | Side::Remote { .. }, Some(stage)) => {
                self.staged(runtime, piece, End::Host(stage))
            }
        }
    }

    /// The far side and the near side with the slot between them: the second waits for the first.
    fn staged(&self, runtime: &Runtime<D, E>, piece: &Piece, stage: End) -> Moved {
        let Some(feeder) = self.feeder else {
            return Moved::failed(Fault::caller(Kind::InvalidArgument, Site::Batch, Why::Mismatch, [0, 1]));
        };
        let (near, len) = (End::Root(piece.root, piece.offset), piece.len);
        let far = |waits: &[Point]| match piece.stored {
            Side::File { file, offset } => self.file(runtime, feeder, waits, (file, offset), stage, len),
            Side::Remote { root, offset } => {
                self.copy(runtime, feeder, waits, [End::Root(root, offset), stage], len)
            }
            Side::Memory(_) | Side::Splat { .. } => Moved { end: None, fault: None },
        };
        let here = |waits: &[Point]| self.copy(runtime, self.queue, waits, [stage, near], len);
        let begun = if self.direction == Direction::In { far(&[]) } else { here(&[]) };
        let (Some(point), None) = (begun.end, begun.fault) else { return begun };
        let ended = if self.direction == Direction::In { here(&[point]) } else { far(&[point]) };
        Moved { end: ended.end.or(Some(point)), fault: ended.fault }
    }

    /// From the far end to the near one, or the other way.
    fn copy(
        &self,
        runtime: &Runtime<D, E>,
        queue: Handle<Queue<D, E>>,
        waits: &[Point],
        [far, near]: [End; 2],
        len: u64,
    ) -> Moved {
        let (from, to) = if self.direction == Direction::In { (far, near) } else { (near, far) };
        one(runtime, queue, waits, || {
            let (from, to) = (at(runtime, from, len, Access::READ)?, at(runtime, to, len, Access::WRITE)?);
            Ok(Op::Copy { from: from.0, to: to.0, len, peers: [from.1, to.1] })
        })
    }

    fn file(
        &self,
        runtime: &Runtime<D, E>,
        queue: Handle<Queue<D, E>>,
        waits: &[Point],
        (file, offset): (u64, u64),
        end: End,
        len: u64,
    ) -> Moved {
        one(runtime, queue, waits, || match self.direction {
            Direction::In => {
                at(runtime, end, len, Access::WRITE).map(|to| Op::Read { file, at: offset, to: to.0, len })
            }
            Direction::Out => at(runtime, end, len, Access::READ).map(|from| Op::Write {
                file,
                at: offset,
                from: from.0,
                len,
            }),
        })
    }

    /// A pattern over `len` bytes: whole repetitions by a fill, what is left by an update.
    fn splat(&self, runtime: &Runtime<D, E>, to: End, len: u64, pattern: &[u8]) -> Moved {
        let rest = len % pattern.len() as u64;
        let whole = len - rest;
        let start = || at(runtime, to, len, Access::WRITE);
        let mut filled = None;
        if whole > 0 {
            let moved = moved(runtime.issue_by(self.queue, &[], |lane| {
                let (to, peer) = start()?;
                runtime.accept_whole(lane, &ALONE, Op::Fill { to, len: whole, pattern }, peer)
            }));
            if moved.fault.is_some() {
                return moved;
            }
            filled = moved.end;
        }
        if rest == 0 {
            return Moved { end: filled, fault: None };
        }
        let update =
            || start().map(|(to, _)| Op::Update { to: to + whole, bytes: &pattern[..rest as usize] });
        let moved = one(runtime, self.queue, &[], update);
        Moved { end: moved.end.or(filled), fault: moved.fault }
    }
}

/// The address of an end, and the number of its device.
fn at<D: Device, E: Env>(
    runtime: &Runtime<D, E>,
    end: End,
    len: u64,
    access: Access,
) -> Result<(u64, u16), Fault> {
    match end {
        End::Host(address) => Ok((address, PEER_HOST)),
        End::Root(root, offset) => {
            let known = runtime.usable(&Span { root, offset, len }, access, Usage::TRANSFER, Site::Batch)?;
            Ok((known.base + offset, known.device as u16))
        }
    }
}

fn one<'a, D: Device, E: Env>(
    runtime: &Runtime<D, E>,
    queue: Handle<Queue<D, E>>,
    waits: &[Point],
    make: impl FnOnce() -> Result<Op<'a>, Fault>,
) -> Moved {
    moved(runtime.issue(queue, &Around { waits, ..ALONE }, |_, _| make()))
}

const ALONE: Around<'static> = Around { waits: &[], signals: &[], hint: Hint::None };

fn moved(issued: Result<Option<Point>, Fault>) -> Moved {
    match issued {
        Ok(Some(end)) => Moved { end: Some(end), fault: None },
        // A queue of free order gives no points, so nobody could tell when the chunk has ended.
        Ok(None) => Moved::failed(Fault::caller(Kind::FailedPrecondition, Site::Batch, Why::State, [1, 0])),
        Err(fault) => Moved::failed(fault),
    }
}
