//! A device that is a region of static memory and a few queues, which run when they are polled.
//!
//! # Safety
//! Every address that core hands over lies in a live block of the region or in process memory that core checked; the
//! program has one thread, so nobody else touches these bytes while an operation runs.
#![allow(unsafe_code)]

use crate::bare::Flag;
use core::{
    cell::UnsafeCell,
    ptr,
    sync::atomic::{AtomicUsize, Ordering::*},
};
use wharf_core::{
    device::{Block, Caps, Device, Gauge, Hint, Lane, Op, Pace, Step, Times, Want, op},
    env::{Deadline, Mutex},
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// Bytes of the region.
const BYTES: usize = 16 << 10;
/// Queues it has.
const LANES: usize = 2;
/// Operations a queue takes before they have run.
const DEPTH: usize = 4;
/// Bytes of a pattern or update that an operation keeps.
const KEPT: usize = 16;
/// Alignment of blocks.
const ALIGN: u64 = 64;

/// The region, its queues, and how much is given out.
pub(crate) struct Region {
    bytes: Bytes,
    used: AtomicUsize,
    live: AtomicUsize,
    lanes: [Mutex<Flag, State>; LANES],
    opened: AtomicUsize,
}

#[repr(align(64))]
struct Bytes(UnsafeCell<[u8; BYTES]>);
// SAFETY: only reached by address, by operations that core orders.
unsafe impl Sync for Bytes {}

/// What a queue still has to do.
struct State {
    tick: Option<Tick>,
    todo: [Job; DEPTH],
    begin: usize,
    count: usize,
}

/// An operation whose borrowed bytes were captured.
#[derive(Clone, Copy)]
struct Job {
    work: Work,
    done: u64,
}

#[derive(Clone, Copy)]
enum Work {
    Nothing,
    Copy { from: u64, to: u64, len: u64 },
    Fill { to: u64, len: u64, pattern: [u8; KEPT], step: usize },
}

impl Region {
    /// An untouched region.
    pub(crate) const fn new() -> Self {
        // All bits zero, so that the static region takes no room in the file.
        const NOTHING: Job = Job { work: Work::Nothing, done: 0 };
        const IDLE: State = State { tick: None, todo: [NOTHING; DEPTH], begin: 0, count: 0 };
        Region {
            bytes: Bytes(UnsafeCell::new([0; BYTES])),
            used: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            lanes: [const { Mutex::new(IDLE) }; LANES],
            opened: AtomicUsize::new(0),
        }
    }
    /// Blocks that were not given back.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Relaxed)
    }
}

/// The region as core takes a device: a reference, which can be shared.
#[derive(Clone, Copy)]
pub(crate) struct Board(pub(crate) &'static Region);

impl Device for Board {
    type Lane = Port;
    type Gauge = Port;

    fn caps(&self) -> Caps {
        Caps {
            ops: 1 << op::BARRIER | 1 << op::COPY | 1 << op::FILL | 1 << op::UPDATE,
            backend: 1,
            space: 0,
            native_wait: false,
            depth: DEPTH as u16,
            pace: Pace::Polled { every_ns: 1 },
            lanes: LANES as u16,
            align: ALIGN as u32,
            args_max: 0,
            group_max: 1,
            shared_max: 0,
            pattern_max: u32::MAX,
            pattern_pow2: false,
            update_max: u32::MAX,
            alloc_max: u64::MAX,
            mappable: false,
            coherent: false,
            host_copies: true,
        }
    }

    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        let full = Fault::backend(Kind::ResourceExhausted, Site::Allocate, Why::Memory, [want.len, 0]);
        if want.align > ALIGN || want.len > BYTES as u64 {
            return Err(full);
        }
        let len = want.len.next_multiple_of(ALIGN) as usize;
        let at = self.0.used.fetch_add(len, Relaxed);
        if at + len > BYTES {
            self.0.used.fetch_sub(len, Relaxed);
            return Err(full);
        }
        self.0.live.fetch_add(1, Relaxed);
        let base = self.0.bytes.0.get().expose_provenance() + at;
        Ok(Block { base: base as u64, len: len as u64, native: 0 })
    }

    /// The region is given out once; only the count goes down.
    fn free(&self, _: &Block) -> Result<(), Fault> {
        self.0.live.fetch_sub(1, Relaxed);
        Ok(())
    }

    fn lane(&self, tick: Tick) -> Result<(Port, Port, usize), Fault> {
        let number = self.0.opened.fetch_add(1, Relaxed);
        let Some(lane) = self.0.lanes.get(number) else { return Err(Fault::full(Site::Queue, LANES as u64)) };
        lane.with(|state| state.tick = Some(tick));
        Ok((Port(lane), Port(lane), number))
    }
}

/// Both ends of a queue.
#[derive(Clone)]
pub(crate) struct Port(&'static Mutex<Flag, State>);

impl Lane for Port {
    fn submit(&mut self, steps: &[Step<'_>], _: Hint) -> Result<usize, (usize, Fault)> {
        for (n, step) in steps.iter().enumerate() {
            let Some(work) = work_of(&step.op) else {
                let fault =
                    Fault::backend(Kind::Unsupported, Site::Submit, Why::Missing, [step.op.kind().into(), 0]);
                return Err((n, fault));
            };
            let taken = self.0.with(|state| {
                if state.count == DEPTH {
                    return false;
                }
                state.todo[(state.begin + state.count) % DEPTH] = Job { work, done: step.done };
                state.count += 1;
                true
            });
            if !taken {
                return Ok(n);
            }
        }
        Ok(steps.len())
    }
}

impl Gauge for Port {
    /// Runs what is there, here and now.
    fn poll(&self) {
        while let Some((job, tick)) = self.0.with(State::take) {
            run(&job.work);
            if job.done != 0 {
                tick.advance(job.done);
            }
        }
    }
    fn wait(&self, _: u64, _: Deadline) -> bool {
        false
    }
    fn times(&self, _: u64) -> Option<Times> {
        None
    }
}

impl State {
    fn take(&mut self) -> Option<(Job, Tick)> {
        let tick = self.tick?;
        if self.count == 0 {
            return None;
        }
        let job = self.todo[self.begin];
        self.begin = (self.begin + 1) % DEPTH;
        self.count -= 1;
        Some((job, tick))
    }
}

/// An operation with its bytes; `None` for one that the region does not take.
fn work_of(op: &Op<'_>) -> Option<Work> {
    let fill = |to, len, bytes: &[u8]| {
        let mut pattern = [0; KEPT];
        pattern.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Work::Fill { to, len, pattern, step: bytes.len() })
    };
    match *op {
        Op::Barrier => Some(Work::Nothing),
        Op::Copy { from, to, len, .. } => Some(Work::Copy { from, to, len }),
        Op::Fill { to, len, pattern } => fill(to, len, pattern),
        // An update is one repetition of its bytes.
        Op::Update { to, bytes } => fill(to, bytes.len() as u64, bytes),
        _ => None,
    }
}

fn run(work: &Work) {
    match *work {
        Work::Nothing => {}
        Work::Copy { from, to, len } => {
            let (from, to) = (
                ptr::with_exposed_provenance::<u8>(from as usize),
                ptr::with_exposed_provenance_mut::<u8>(to as usize),
            );
            // SAFETY: core checked both ranges and that they do not overlap within one allocation; `copy` allows the rest.
            unsafe { ptr::copy(from, to, len as usize) };
        }
        Work::Fill { to, len, pattern, step } => {
            let to = ptr::with_exposed_provenance_mut::<u8>(to as usize);
            for at in 0..len as usize {
                // SAFETY: core checked that `len` bytes at `to` lie in a live block.
                unsafe { to.wrapping_add(at).write(pattern[at % step]) };
            }
        }
    }
}
