//! The processor as a device: it has no memory of its own and runs the kernels of [`kernels`](crate::kernels), one
//! launch for each poll, so that the main loop keeps its turns short.

use crate::{
    env::Flag,
    kernels::{ARGS_LEN, Args, TABLE},
};
use wharf_core::{
    device::{Caps, Gauge, Hint, Kernel, Lane, Op, Pace, Step, Times, op},
    env::{Deadline, Mutex},
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// Launches that are kept until they run.
const DEPTH: usize = 4;

/// The device: one queue.
pub struct Cpu(Mutex<Flag, State>);

struct State {
    tick: Option<Tick>,
    todo: [Job; DEPTH],
    begin: usize,
    count: usize,
}

#[derive(Clone, Copy)]
struct Job {
    /// Index in the table and arguments; `None`: a barrier.
    launch: Option<(usize, [u8; ARGS_LEN], u32)>,
    done: u64,
}

impl Cpu {
    /// An idle one.
    #[allow(clippy::new_without_default)] // For statics.
    pub const fn new() -> Self {
        const IDLE: Job = Job { launch: None, done: 0 };
        Cpu(Mutex::new(State { tick: None, todo: [IDLE; DEPTH], begin: 0, count: 0 }))
    }

    pub(crate) fn caps(&self) -> Caps {
        Caps {
            ops: 1 << op::BARRIER | 1 << op::LAUNCH,
            backend: 1,
            space: 0,
            native_wait: false,
            depth: DEPTH as u16,
            pace: Pace::Polled { every_ns: 100_000 },
            lanes: 1,
            align: 16,
            args_max: ARGS_LEN as u32,
            group_max: 1,
            shared_max: 0,
            pattern_max: 1,
            pattern_pow2: false,
            update_max: 1,
            alloc_max: 0,
            mappable: false,
            coherent: false,
            host_copies: true,
        }
    }

    pub(crate) fn lane(&'static self, tick: Tick) -> Result<(CpuLane, Port), Fault> {
        let full = Fault::backend(Kind::ResourceExhausted, Site::Queue, Why::Full, [1, 0]);
        self.0.with(|state| match state.tick {
            Some(_) => Err(full),
            None => {
                state.tick = Some(tick);
                Ok((CpuLane(self), Port(self)))
            }
        })
    }

    pub(crate) fn kernel(&self, name: &[u8]) -> Result<Kernel, Fault> {
        let found = TABLE.iter().position(|entry| entry.name == name);
        let index = found.ok_or(Fault::backend(Kind::NotFound, Site::Kernel, Why::Unknown, [0; 2]))?;
        Ok(Kernel {
            native: index as u64,
            args_len: ARGS_LEN as u32,
            params: 0,
            group_max: 1,
            shared_static: 0,
        })
    }
}

/// The submitting end of the queue.
pub struct CpuLane(&'static Cpu);

/// The watching end of the queue.
#[derive(Clone)]
pub struct Port(&'static Cpu);

impl Drop for CpuLane {
    fn drop(&mut self) {
        self.0.0.with(|state| (state.tick, state.count) = (None, 0));
    }
}

impl Lane for CpuLane {
    fn submit(&mut self, steps: &[Step<'_>], _: Hint) -> Result<usize, (usize, Fault)> {
        for (n, step) in steps.iter().enumerate() {
            let job = Job { launch: launch_of(&step.op).map_err(|fault| (n, fault))?, done: step.done };
            if !self.0.0.with(|state| state.keep(job)) {
                return Ok(n);
            }
        }
        Ok(steps.len())
    }
}

impl Gauge for Port {
    fn poll(&self) {
        let Some((job, tick)) = self.0.0.with(State::take) else { return };
        if let Some((index, args, groups)) = job.launch {
            (TABLE[index].run)(&Args::unpack(&args), groups);
        }
        if job.done != 0 {
            tick.advance(job.done);
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
    fn keep(&mut self, job: Job) -> bool {
        if self.count == DEPTH {
            return false;
        }
        self.todo[(self.begin + self.count) % DEPTH] = job;
        self.count += 1;
        true
    }

    fn take(&mut self) -> Option<(Job, Tick)> {
        let tick = self.tick.filter(|_| self.count > 0)?;
        let job = self.todo[self.begin];
        self.begin = (self.begin + 1) % DEPTH;
        self.count -= 1;
        Some((job, tick))
    }
}

type Launch = Option<(usize, [u8; ARGS_LEN], u32)>;

/// A launch with its arguments, `None` for a barrier.
fn launch_of(op: &Op<'_>) -> Result<Launch, Fault> {
    let missing = Fault::backend(Kind::Unsupported, Site::Submit, Why::Missing, [op.kind().into(), 0]);
    match *op {
        Op::Barrier => Ok(None),
        Op::Launch { kernel, groups, args, .. } => {
            let args = args.try_into().map_err(|_| missing)?;
            Ok(Some((kernel as usize, args, groups[0])))
        }
        _ => Err(missing),
    }
}
