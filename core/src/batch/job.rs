//! Phase two: a state machine that issues chunks, watches them end, and only then tells the caller.

use super::{
    Chunk, Direction, Pieces, Plan, Totals,
    way::{Moved, STAGE_MIN, Staging, Way},
};
use crate::{
    device::Device,
    env::{Env, Mutex},
    fault::{Blame, Fault, Kind, Site, Why},
    handle::Handle,
    runtime::{Queue, Runtime, Worked},
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
    /// Queues on the far side, of files or of another device: as many as `queues`, or none if there is no such side.
    pub feeders: &'a [Handle<Queue<D, E>>],
    /// Memory of the process between the two sides.
    pub staging: Option<Staging>,
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

/// A bundle of one queue: in order, so when the last chunk has ended, all have.
struct Flight {
    lane: usize,
    bytes: u64,
    chunks: u32,
    end: Point,
    /// The staging slot it uses.
    slot: u32,
}

struct Running<D: Device, E: Env, const FLIGHT: usize> {
    state: State,
    queues: Vec<Handle<Queue<D, E>>, { super::LANES_MAX }>,
    feeders: Vec<Handle<Queue<D, E>>, { super::LANES_MAX }>,
    staging: Option<Staging>,
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
        let feeders = options.feeders.len();
        let staged = options.staging.is_some_and(|s| s.slots == 0 || s.slot_len < STAGE_MIN || feeders == 0);
        if (feeders != 0 && feeders != lanes) || staged {
            let given = [feeders as u64, lanes as u64];
            return Err(Fault::caller(Kind::InvalidArgument, Site::Batch, Why::Mismatch, given));
        }
        let mut plan = Plan::new(totals, lanes);
        if feeders != 0 {
            plan.far();
        }
        if let Some(staging) = &options.staging {
            plan.at_most(staging.slot_len);
        }
        let too_many = Fault::full(Site::Batch, POINTS_MAX as u64);
        let running = Running {
            state: State::Waiting,
            queues: Vec::from_slice(options.queues).map_err(|_| too_many)?,
            feeders: Vec::from_slice(options.feeders).map_err(|_| too_many)?,
            staging: options.staging,
            waits: Vec::from_slice(options.waits).map_err(|_| too_many)?,
            signals: Vec::from_slice(options.signals).map_err(|_| too_many)?,
            plan,
            flight: Vec::new(),
            pending: None,
            first: None,
        };
        let control =
            Control { total: Word64::new(totals.bytes), done: Word64::new(0), cancel: AtomicU32::new(0) };
        Ok(Batch { pieces, direction: options.direction, control, running: Mutex::new(running) })
    }

    /// Has it move in chunks of at least so many bytes ([`Plan::at_least`]), unless it is staged: a slot has its length.
    pub fn at_least(&self, bytes: u64) {
        self.running.with(|run| {
            if run.staging.is_none() {
                run.plan.at_least(bytes);
            }
        });
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
            run.plan.retire_bundle(flight.lane, flight.bytes, flight.chunks);
            match ended {
                Ok(()) => self.control.done.set(self.control.done.get() + flight.bytes),
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
            if run.first.is_some() || (run.pending.is_none() && run.plan.is_done(&self.pieces)) {
                return Some(State::Draining);
            }
            let under_way: u64 = run.flight.iter().map(|flight| flight.bytes).sum();
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
            if !self.bundle(runtime, run, chunk) {
                return None;
            }
        }
    }

    /// Issues a chunk and what goes with it. False: no more now, something has to end first.
    fn bundle(&self, runtime: &Runtime<D, E>, run: &mut Running<D, E, FLIGHT>, first: Chunk) -> bool {
        let (slot, way) = self.way(run, &first);
        let Some(slot) = slot else {
            run.pending = Some(first);
            return false;
        };
        let lane = first.lane;
        let (mut under_way, mut chunk, mut goes_on) = (None, first, true);
        loop {
            if let Err(fault) = self.pieces.ready(&chunk.piece) {
                run.first = Some(fault);
                break;
            }
            let Moved { end, fault } = way.issue(runtime, &chunk.piece);
            if let Some(end) = end {
                let (bytes, chunks) = under_way.map_or((0, 0), |(bytes, chunks, _)| (bytes, chunks));
                under_way = Some((bytes + chunk.piece.len, chunks + 1, end));
            }
            match fault {
                // No room to hold it: once something under way has ended there is.
                Some(fault)
                    if fault.why == Why::Full
                        && end.is_none()
                        && (under_way.is_some() || !run.flight.is_empty()) =>
                {
                    run.pending = Some(chunk);
                    goes_on = false;
                    break;
                }
                Some(fault) => {
                    run.first = Some(fault);
                    break;
                }
                None => {}
            }
            // A staging slot is for one chunk.
            if run.staging.is_some() {
                break;
            }
            match run.plan.more(&self.pieces, &chunk) {
                Ok(Some(more)) => chunk = more,
                Ok(None) => break,
                Err(fault) => {
                    run.first = Some(fault);
                    break;
                }
            }
        }
        if let Some((bytes, chunks, end)) = under_way {
            drop(run.flight.push(Flight { lane, bytes, chunks, end, slot }));
        }
        goes_on
    }

    /// The queues and the staging slot of a chunk. `None`: no slot is free, wait for one.
    fn way(&self, run: &Running<D, E, FLIGHT>, chunk: &Chunk) -> (Option<u32>, Way<D, E>) {
        let taken = |slot: u32| run.flight.iter().any(|flight| flight.slot == slot);
        let (slot, stage) = match &run.staging {
            // Without staging nobody looks at the slot.
            None => (Some(u32::MAX), None),
            Some(staging) => {
                let slot = (0..staging.slots).find(|slot| !taken(*slot));
                (slot, slot.map(|slot| staging.address + slot as u64 * staging.slot_len))
            }
        };
        let way = Way {
            direction: self.direction,
            queue: run.queues[chunk.lane],
            feeder: run.feeders.get(chunk.lane).copied(),
            stage,
        };
        (slot, way)
    }

    fn next_chunk(&self, run: &mut Running<D, E, FLIGHT>) -> Result<Option<Chunk>, Fault> {
        let mut under_way = [0; super::LANES_MAX];
        run.flight.iter().for_each(|flight| under_way[flight.lane] += 1);
        run.plan.next(&self.pieces, |lane| under_way[lane] < FLIGHT_PER_LANE)
    }

    /// Signals, or fails what was to be signalled, now that nothing is under way.
    fn tell(&self, runtime: &Runtime<D, E>, run: &mut Running<D, E, FLIGHT>) {
        match &run.first {
            None => run.signals.iter().for_each(|point| runtime.raise(*point)),
            Some(fault) => runtime.fail_signals(&run.signals, fault),
        }
    }
}

fn cancelled() -> Fault {
    Fault::new(Kind::Cancelled, Blame::Caller, Site::Batch, Why::Unknown, [0; 2])
}
