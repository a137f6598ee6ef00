//! Phase two: a state machine that issues chunks, watches them end, and only then tells the caller.

use super::{Chunk, Direction, Pieces, Plan, Side, Totals};
use crate::{
    bits::{Access, Usage},
    device::{Device, Hint, Op, PEER_HOST},
    env::{Env, Mutex},
    fault::{Blame, Fault, Kind, Site, Why},
    handle::Handle,
    runtime::{Queue, Runtime, Span, Worked},
    timeline::{Look, Point},
    word::Word64,
};
use core::sync::atomic::{AtomicU32, Ordering::*};
use heapless::Vec;

/// Most points a batch waits for, and most it signals; a barrier joins more.
pub const POINTS_MAX: usize = 16;
/// Chunks of one queue that are under way at once.
const FLIGHT_PER_LANE: usize = 4;
/// Bytes of all chunks under way from which on no more are issued: what a cancelled batch has to wait for.
pub const FLIGHT_BYTES_MAX: u64 = 16 << 20;

/// What the outside sees of a running batch, and its one switch.
pub struct Control {
    total: Word64,
    done: Word64,
    cancel: AtomicU32,
}

impl Control {
    /// Bytes moved, and bytes in all.
    pub fn progress(&self) -> (u64, u64) {
        (self.done.get(), self.total.get())
    }
    /// Nothing more is issued; the batch fails with `Cancelled` once what is under way has ended.
    pub fn cancel(&self) {
        self.cancel.store(1, Release);
    }
    fn cancelled(&self) -> bool {
        self.cancel.load(Acquire) != 0
    }
}

/// How a batch is to run.
pub struct BatchOptions<'a, D: Device, E: Env> {
    /// Which way the bytes go.
    pub direction: Direction,
    /// Queues in order on the device of the buffers, 1 to 8; each is one timeline of the batch.
    pub queues: &'a [Handle<Queue<D, E>>],
    /// Reached before the first chunk is issued.
    pub waits: &'a [Point],
    /// Signalled when all has ended well, failed when all has ended otherwise.
    pub signals: &'a [Point],
}

enum State {
    Waiting,
    Issuing,
    Draining,
    Over,
}

struct Flight {
    chunk: Chunk,
    end: Point,
}

struct Running<D: Device, E: Env, const FLIGHT: usize> {
    state: State,
    queues: Vec<Handle<Queue<D, E>>, { super::LANES_MAX }>,
    waits: Vec<Point, POINTS_MAX>,
    signals: Vec<Point, POINTS_MAX>,
    plan: Plan,
    flight: Vec<Flight, FLIGHT>,
    /// A chunk that found its queue full.
    pending: Option<Chunk>,
    first: Option<Fault>,
}

/// A batch under way; at most `FLIGHT` chunks at once. Step it with [`Batch::step`], by hand or as a job of the pump.
pub struct Batch<D: Device, E: Env, S: Pieces, const FLIGHT: usize> {
    pieces: S,
    direction: Direction,
    control: Control,
    running: Mutex<E::Lock, Running<D, E, FLIGHT>>,
}

impl<D: Device, E: Env, S: Pieces, const FLIGHT: usize> Batch<D, E, S, FLIGHT> {
    /// A batch whose entries passed [`check`](super::check) as `totals`.
    ///
    /// # Errors
    /// `InvalidArgument` for no or too many queues; `ResourceExhausted` for more than [`POINTS_MAX`] points.
    pub fn new(pieces: S, totals: &Totals, options: &BatchOptions<'_, D, E>) -> Result<Self, Fault> {
        let lanes = options.queues.len();
        if lanes == 0 || lanes > super::LANES_MAX {
            let limit = [lanes as u64, super::LANES_MAX as u64];
            return Err(Fault::caller(Kind::InvalidArgument, Site::Batch, Why::Limit, limit));
        }
        let too_many = Fault::full(Site::Batch, POINTS_MAX as u64);
        let running = Running {
            state: State::Waiting,
            queues: Vec::from_slice(options.queues).map_err(|_| too_many)?,
            waits: Vec::from_slice(options.waits).map_err(|_| too_many)?,
            signals: Vec::from_slice(options.signals).map_err(|_| too_many)?,
            plan: Plan::new(totals, lanes),
            flight: Vec::new(),
            pending: None,
            first: None,
        };
        let control =
            Control { total: Word64::new(totals.bytes), done: Word64::new(0), cancel: AtomicU32::new(0) };
        Ok(Batch { pieces, direction: options.direction, control, running: Mutex::new(running) })
    }

    /// Progress and cancel.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The entries, with whatever they keep alive.
    pub fn pieces(&self) -> &S {
        &self.pieces
    }

    /// Moves the batch on as far as it goes now. One caller at a time.
    pub fn step(&self, runtime: &Runtime<D, E>) -> Worked {
        self.running.with(|run| {
            loop {
                match run.state {
                    State::Waiting => match self.waits(runtime, run) {
                        Some(state) => run.state = state,
                        None => return Worked::Waiting,
                    },
                    State::Issuing => {
                        self.collect(runtime, run);
                        match self.issue(runtime, run) {
                            Some(state) => run.state = state,
                            None => return Worked::Waiting,
                        }
                    }
                    State::Draining => {
                        self.collect(runtime, run);
                        if !run.flight.is_empty() {
                            return Worked::Waiting;
                        }
                        self.tell(runtime, run);
                        run.state = State::Over;
                    }
                    State::Over => return Worked::Over,
                }
            }
        })
    }

    /// Whether what the batch waits for has been reached; `None`: not yet.
    fn waits(&self, runtime: &Runtime<D, E>, run: &mut Running<D, E, FLIGHT>) -> Option<State> {
        if self.control.cancelled() {
            run.first = Some(cancelled());
            return Some(State::Draining);
        }
        for point in &run.waits {
            match runtime.look(*point) {
                Ok(Look::Reached) => {}
                Ok(Look::Ahead) => return None,
                Ok(Look::Failed(fault)) | Err(fault) => {
                    run.first = Some(fault);
                    return Some(State::Draining);
                }
            }
        }
        Some(State::Issuing)
    }

    /// Takes off what has ended.
    fn collect(&self, runtime: &Runtime<D, E>, run: &mut Running<D, E, FLIGHT>) {
        let mut at = 0;
        while at < run.flight.len() {
            let ended = match runtime.look(run.flight[at].end) {
                Ok(Look::Ahead) => {
                    at += 1;
                    continue;
                }
                Ok(Look::Reached) => Ok(()),
                Ok(Look::Failed(fault)) | Err(fault) => Err(fault),
            };
            let flight = run.flight.swap_remove(at);
            run.plan.retire(&flight.chunk);
            match ended {
                Ok(()) => self.control.done.set(self.control.done.get() + flight.chunk.piece.len),
                Err(fault) => drop(run.first.get_or_insert(fault)),
            }
        }
    }

    /// Issues chunks while queues take them; `None`: some are under way.
    fn issue(&self, runtime: &Runtime<D, E>, run: &mut Running<D, E, FLIGHT>) -> Option<State> {
        loop {
            if self.control.cancelled() {
                run.first.get_or_insert(cancelled());
            }
            if run.first.is_some() || run.plan.is_done(&self.pieces) {
                return Some(State::Draining);
            }
            let under_way: u64 = run.flight.iter().map(|flight| flight.chunk.piece.len).sum();
            if run.flight.is_full() || under_way >= FLIGHT_BYTES_MAX {
                return None;
            }
            let chunk = match run.pending.take().map_or_else(|| self.next_chunk(run), |chunk| Ok(Some(chunk)))
            {
                Ok(Some(chunk)) => chunk,
                Ok(None) if run.plan.is_done(&self.pieces) => continue,
                Ok(None) => return None,
                Err(fault) => {
                    run.first = Some(fault);
                    continue;
                }
            };
            self.pieces.soon(&chunk.piece);
            let (end, fault) = self.submit(runtime, run.queues[chunk.lane], &chunk);
            if let Some(end) = end {
                drop(run.flight.push(Flight { chunk, end }));
            }
            match fault {
                // No room to hold it: once something under way has ended there is.
                Some(fault) if fault.why == Why::Full && end.is_none() && !run.flight.is_empty() => {
                    run.pending = Some(chunk);
                    return None;
                }
                Some(fault) => run.first = Some(fault),
                None => {}
            }
        }
    }

    fn next_chunk(&self, run: &mut Running<D, E, FLIGHT>) -> Result<Option<Chunk>, Fault> {
        let mut under_way = [0; super::LANES_MAX];
        run.flight.iter().for_each(|flight| under_way[flight.chunk.lane] += 1);
        run.plan.next(&self.pieces, |lane| under_way[lane] < FLIGHT_PER_LANE)
    }

    /// Submits a chunk. Where what was submitted ends, and what went wrong: both, if only a part was.
    fn submit(
        &self,
        runtime: &Runtime<D, E>,
        queue: Handle<Queue<D, E>>,
        chunk: &Chunk,
    ) -> (Option<Point>, Option<Fault>) {
        let piece = &chunk.piece;
        let access = match self.direction {
            Direction::In => Access::WRITE,
            Direction::Out => Access::READ,
        };
        let span = Span { root: piece.root, offset: piece.offset, len: piece.len };
        let known = match runtime.usable(&span, access, Usage::TRANSFER, Site::Batch) {
            Ok(known) => known,
            Err(fault) => return (None, Some(fault)),
        };
        let (address, peer) = (known.base + piece.offset, known.device as u16);
        match piece.stored {
            Side::Memory(stored) => {
                let (from, to, peers) = match self.direction {
                    Direction::In => (stored, address, [PEER_HOST, peer]),
                    Direction::Out => (address, stored, [peer, PEER_HOST]),
                };
                one(runtime, queue, Op::Copy { from, to, len: piece.len, peers })
            }
            Side::Splat { pattern, len } => {
                splat(runtime, queue, address, piece.len, &pattern[..len as usize])
            }
        }
    }

    /// Signals, or fails what was to be signalled, now that nothing is under way.
    fn tell(&self, runtime: &Runtime<D, E>, run: &mut Running<D, E, FLIGHT>) {
        match &run.first {
            None => run.signals.iter().for_each(|point| runtime.raise(*point)),
            Some(fault) => runtime.fail_signals(&run.signals, fault),
        }
    }
}

fn one<D: Device, E: Env>(
    runtime: &Runtime<D, E>,
    queue: Handle<Queue<D, E>>,
    op: Op<'_>,
) -> (Option<Point>, Option<Fault>) {
    match runtime.submit(queue, &[], op, &[], Hint::None) {
        Ok(Some(end)) => (Some(end), None),
        // A queue of free order gives no points, so nobody could tell when the chunk has ended.
        Ok(None) => (None, Some(Fault::caller(Kind::FailedPrecondition, Site::Batch, Why::State, [1, 0]))),
        Err(fault) => (None, Some(fault)),
    }
}

/// A pattern over `len` bytes: whole repetitions by a fill, what is left by an update.
fn splat<D: Device, E: Env>(
    runtime: &Runtime<D, E>,
    queue: Handle<Queue<D, E>>,
    to: u64,
    len: u64,
    pattern: &[u8],
) -> (Option<Point>, Option<Fault>) {
    let rest = len % pattern.len() as u64;
    let whole = len - rest;
    let mut filled = None;
    if whole > 0 {
        match one(runtime, queue, Op::Fill { to, len: whole, pattern }) {
            (end, None) => filled = end,
            failed => return failed,
        }
    }
    if rest == 0 {
        return (filled, None);
    }
    let (end, fault) = one(runtime, queue, Op::Update { to: to + whole, bytes: &pattern[..rest as usize] });
    (end.or(filled), fault)
}

fn cancelled() -> Fault {
    Fault::new(Kind::Cancelled, Blame::Caller, Site::Batch, Why::Unknown, [0; 2])
}
