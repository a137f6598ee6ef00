//! Lanes: a short ring of steps that runs when somebody polls.
//!
//! # Safety
//! A side of a copy that is the host's is memory of the process, proven by core to be the caller's to read or write
//! until the copy has ended.
#![allow(unsafe_code)]

use crate::{Shared, program};
use std::{
    collections::VecDeque,
    ptr, slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use wharf_core::{
    device::{Gauge, Hint, Lane, Op, PEER_HOST, Step, Times},
    env::Deadline,
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// Times of stamped steps that are kept.
const STAMPS: usize = 64;

/// The submitting end.
pub struct NullLane(Arc<Ring>);

/// The watching end.
#[derive(Clone)]
pub struct NullGauge(Arc<Ring>);

struct Ring {
    shared: Arc<Shared>,
    depth: usize,
    tick: Tick,
    begin: Instant,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    steps: VecDeque<Held>,
    stamps: VecDeque<(u64, Times)>,
    failed: bool,
}

struct Held {
    work: Work,
    done: u64,
    tell: bool,
    stamp: bool,
}

enum Work {
    Nothing,
    Copy { from: u64, to: u64, len: u64, peers: [u16; 2] },
    Fill { to: u64, len: u64, pattern: Box<[u8]> },
    Update { to: u64, bytes: Box<[u8]> },
    Launch { kernel: u64, groups: [u32; 3], size: [u32; 3], args: Box<[u8]> },
}

pub(crate) fn pair(shared: Arc<Shared>, depth: usize, tick: Tick) -> (NullLane, NullGauge) {
    let ring = Arc::new(Ring { shared, depth, tick, begin: Instant::now(), inner: Mutex::default() });
    (NullLane(ring.clone()), NullGauge(ring))
}

impl Drop for NullLane {
    fn drop(&mut self) {
        self.0.shared.lane_is_gone();
    }
}

impl Lane for NullLane {
    fn submit(&mut self, steps: &[Step<'_>], _hint: Hint) -> Result<usize, (usize, Fault)> {
        let mut inner = self.0.inner();
        for (n, step) in steps.iter().enumerate() {
            if inner.failed {
                let fault = Fault::backend(Kind::FailedPrecondition, Site::Submit, Why::State, [0; 2]);
                return Err((n, fault));
            }
            if inner.steps.len() >= self.0.depth {
                return Ok(n);
            }
            let work = capture(&step.op).map_err(|fault| (n, fault))?;
            inner.steps.push_back(Held { work, done: step.done, tell: step.tell, stamp: step.stamp });
        }
        Ok(steps.len())
    }
}

fn capture(op: &Op<'_>) -> Result<Work, Fault> {
    Ok(match *op {
        Op::Barrier => Work::Nothing,
        Op::Copy { from, to, len, peers } => Work::Copy { from, to, len, peers },
        Op::Fill { to, len, pattern } => Work::Fill { to, len, pattern: pattern.into() },
        Op::Update { to, bytes } => Work::Update { to, bytes: bytes.into() },
        Op::Launch { kernel, groups, size, args, .. } => {
            Work::Launch { kernel, groups, size, args: args.into() }
        }
        _ => {
            let values = [op.kind().into(), 0];
            return Err(Fault::backend(Kind::Unsupported, Site::Submit, Why::Missing, values));
        }
    })
}

impl Gauge for NullGauge {
    fn poll(&self) {
        let mut inner = self.0.inner();
        while let Some(held) = inner.steps.pop_front() {
            let begin_ns = self.0.now_ns();
            if let Err(fault) = self.0.run(&held.work) {
                (inner.failed, inner.steps) = (true, VecDeque::new());
                return self.0.tick.fail(&fault);
            }
            if held.done == 0 {
                continue;
            }
            if held.stamp {
                inner.stamps.truncate(STAMPS - 1);
                inner.stamps.push_front((held.done, Times { begin_ns, end_ns: self.0.now_ns() }));
            }
            match held.tell {
                true => self.0.tick.advance(held.done),
                false => self.0.tick.advance_quietly(held.done),
            }
        }
    }

    fn wait(&self, _: u64, _: Deadline) -> bool {
        false
    }

    fn times(&self, value: u64) -> Option<Times> {
        self.0.inner().stamps.iter().find(|(done, _)| *done == value).map(|(_, times)| *times)
    }
}

impl Ring {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    fn run(&self, work: &Work) -> Result<(), Fault> {
        let mut space = self.shared.space();
        match work {
            Work::Nothing => Ok(()),
            &Work::Copy { from, to, len, peers: [a, b] } => {
                // Through a buffer: the two sides may be one block.
                let mut bytes = vec![0u8; len as usize].into_boxed_slice();
                match a {
                    PEER_HOST => bytes.copy_from_slice(host(from, len)),
                    _ => bytes.copy_from_slice(space.bytes(from, len, Site::Copy)?),
                }
                match b {
                    PEER_HOST => host_write(to, &bytes),
                    _ => space.bytes(to, len, Site::Copy)?.copy_from_slice(&bytes),
                }
                Ok(())
            }
            Work::Fill { to, len, pattern } => {
                let bytes = space.bytes(*to, *len, Site::Fill)?;
                bytes
                    .chunks_mut(pattern.len())
                    .for_each(|chunk| chunk.copy_from_slice(&pattern[..chunk.len()]));
                Ok(())
            }
            Work::Update { to, bytes } => {
                space.bytes(*to, bytes.len() as u64, Site::Update)?.copy_from_slice(bytes);
                Ok(())
            }
            Work::Launch { kernel, groups, size, args } => {
                program::run(&mut space, *kernel, *groups, *size, args)
            }
        }
    }
}

fn host<'a>(at: u64, len: u64) -> &'a [u8] {
    // SAFETY: see the module: memory of the process that core has proven readable until the copy has ended.
    unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(at as usize), len as usize) }
}

fn host_write(at: u64, bytes: &[u8]) {
    let at = ptr::with_exposed_provenance_mut(at as usize);
    // SAFETY: see the module: memory of the process that core has proven writable until the copy has ended.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
}
