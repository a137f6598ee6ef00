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

/// The address of a range, the number of its device, and its root; no root for memory of the process.
#[derive(Clone, Copy)]
struct At {
    address: u64,
    peer: u16,
    root: Handle<Record>,
}

fn host(address: u64) -> At {
    At { address, peer: PEER_HOST, root: Handle::NULL }
}

impl<D: Device, E: Env> Way<D, E> {
    /// Submits a chunk.
    pub(super) fn issue(&self, runtime: &Runtime<D, E>, piece: &Piece) -> Moved {
        let inward = self.direction == Direction::In;
        let access = if inward { Access::WRITE } else { Access::READ };
        let near = match at(runtime, piece.root, piece.offset, piece.len, access) {
            Ok(near) => near,
            Err(fault) => return Moved::failed(fault),
        };
        let len = piece.len;
        match (piece.stored, self.stage) {
            (Side::Memory(stored), _) => {
                one(runtime, self.queue, &[], &[near.root], self.copy(host(stored), near, len))
            }
            (Side::Splat { pattern, len: step }, _) => {
                splat(runtime, self.queue, near, len, &pattern[..step as usize])
            }
            (Side::File { file, offset }, None) => {
                let queue = self.feeder.unwrap_or(self.queue);
                one(runtime, queue, &[], &[near.root], self.file(file, offset, near.address, len))
            }
            (Side::File { file, offset }, Some(stage)) => {
                let far = self.file(file, offset, stage, len);
                self.two(runtime, stage, near, len, (far, Handle::NULL))
            }
            (Side::Remote { root, offset }, stage) => {
                let access = if inward { Access::READ } else { Access::WRITE };
                match (at(runtime, root, offset, len, access), stage) {
                    (Ok(far), Some(stage)) => {
                        self.two(runtime, stage, near, len, (self.copy(far, host(stage), len), far.root))
                    }
                    // The buffer's own device reaches the far side.
                    (Ok(far), None) => {
                        one(runtime, self.queue, &[], &[near.root, far.root], self.copy(far, near, len))
                    }
                    (Err(fault), _) => Moved::failed(fault),
                }
            }
        }
    }

    /// From the far side to the near one, or the other way.
    fn copy(&self, far: At, near: At, len: u64) -> Op<'static> {
        let (from, to) = match self.direction {
            Direction::In => (far, near),
            Direction::Out => (near, far),
        };
        Op::Copy { from: from.address, to: to.address, len, peers: [from.peer, to.peer] }
    }

    fn file(&self, file: u64, at: u64, address: u64, len: u64) -> Op<'static> {
        match self.direction {
            Direction::In => Op::Read { file, at, to: address, len },
            Direction::Out => Op::Write { file, at, from: address, len },
        }
    }

    /// The far side and the near side with the slot between them: the second waits for the first.
    fn two(&self, runtime: &Runtime<D, E>, stage: u64, near: At, len: u64, far: Rooted) -> Moved {
        let Some(feeder) = self.feeder else {
            return Moved::failed(Fault::caller(Kind::InvalidArgument, Site::Batch, Why::Mismatch, [0, 1]));
        };
        let here = (self.copy(host(stage), near, len), near.root);
        let (first, second) = match self.direction {
            Direction::In => ((feeder, far), (self.queue, here)),
            Direction::Out => ((self.queue, here), (feeder, far)),
        };
        let begun = one(runtime, first.0, &[], &[first.1.1], first.1.0);
        let (Some(point), None) = (begun.end, begun.fault) else { return begun };
        let ended = one(runtime, second.0, &[point], &[second.1.1], second.1.0);
        Moved { end: ended.end.or(Some(point)), fault: ended.fault }
    }
}

/// An operation and the root that it uses.
type Rooted = (Op<'static>, Handle<Record>);

fn at<D: Device, E: Env>(
    runtime: &Runtime<D, E>,
    root: Handle<Record>,
    offset: u64,
    len: u64,
    access: Access,
) -> Result<At, Fault> {
    let known = runtime.usable(&Span { root, offset, len }, access, Usage::TRANSFER, Site::Batch)?;
    Ok(At { address: known.base + offset, peer: known.device as u16, root })
}

/// Submits an operation on memory of these roots. They were looked up without a lock; a free that came since is seen
/// under the lane's, where it would else not see the operation.
fn one<D: Device, E: Env>(
    runtime: &Runtime<D, E>,
    queue: Handle<Queue<D, E>>,
    waits: &[Point],
    roots: &[Handle<Record>],
    op: Op<'_>,
) -> Moved {
    let around = Around { waits, signals: &[], hint: Hint::None };
    let submitted = runtime.issue(queue, &around, |_, _| {
        for root in roots.iter().filter(|root| **root != Handle::NULL) {
            runtime.allocation(*root).map_err(|fault| fault.at(Site::Batch))?;
        }
        Ok(op)
    });
    match submitted {
        Ok(Some(end)) => Moved { end: Some(end), fault: None },
        // A queue of free order gives no points, so nobody could tell when the chunk has ended.
        Ok(None) => Moved::failed(Fault::caller(Kind::FailedPrecondition, Site::Batch, Why::State, [1, 0])),
        Err(fault) => Moved::failed(fault),
    }
}

/// A pattern over `len` bytes: whole repetitions by a fill, what is left by an update.
fn splat<D: Device, E: Env>(
    runtime: &Runtime<D, E>,
    queue: Handle<Queue<D, E>>,
    to: At,
    len: u64,
    pattern: &[u8],
) -> Moved {
    let rest = len % pattern.len() as u64;
    let whole = len - rest;
    let mut filled = None;
    if whole > 0 {
        let moved = one(runtime, queue, &[], &[to.root], Op::Fill { to: to.address, len: whole, pattern });
        if moved.fault.is_some() {
            return moved;
        }
        filled = moved.end;
    }
    if rest == 0 {
        return Moved { end: filled, fault: None };
    }
    let update = Op::Update { to: to.address + whole, bytes: &pattern[..rest as usize] };
    let moved = one(runtime, queue, &[], &[to.root], update);
    Moved { end: moved.end.or(filled), fault: moved.fault }
}
