//! The null device under layers, driven by hand: no loader, no thread, a clock that a test moves.
//!
//! # Safety
//! The tick's cookie is a [`Line`] that is never freed.
#![allow(unsafe_code)]
#![allow(dead_code, unreachable_pub)] // Each test binary uses its part.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering::*},
};
use wharf_core::{
    device::{Device, Hint, Lane, Op, PEER_HOST, Step},
    env::Lock,
    fault::Fault,
    tick::Tick,
    word::Word64,
};
use wharf_layers::{Chain, Layer, Layered, LayeredGauge, LayeredLane, Outside};
use wharf_null::{Knobs, Null};

/// A lock of std.
pub struct StdLock(Mutex<()>);

// SAFETY: a std mutex lets one closure in at a time, and a nested one waits for ever.
unsafe impl Lock for StdLock {
    const NEW: Self = StdLock(Mutex::new(()));
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f()
    }
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let _inside = self.0.try_lock().ok()?;
        Some(f())
    }
}

pub type Dev = Layered<Null, StdLock>;

thread_local! {
    /// Each test is a thread with a clock of its own.
    static NOW: std::cell::Cell<u64> = const { std::cell::Cell::new(1_000) };
}

/// Each look at the clock takes a microsecond.
pub fn now() -> u64 {
    NOW.set(NOW.get() + 1_000);
    NOW.get()
}

pub fn pass(ns: u64) {
    NOW.set(NOW.get() + ns);
}

pub const OUTSIDE: Outside = Outside { now_ns: now, thread: || 1 };

/// A device that takes several steps at once, under these layers.
pub fn device(layers: Vec<Box<dyn Layer>>) -> Dev {
    let below: &'static Null = Box::leak(Box::new(Null::new(Knobs { depth: 8, ..Knobs::default() })));
    Layered::new(below, Arc::new(Chain::new(layers, OUTSIDE)), 0, "null:0")
}

/// Core's end of a lane.
pub struct Line {
    pub word: Word64,
    pub told: AtomicU32,
    pub failed: Mutex<Option<Fault>>,
    done: AtomicU64,
}

pub struct Open {
    pub lane: LayeredLane<Null, StdLock>,
    pub gauge: LayeredGauge<Null, StdLock>,
    pub line: &'static Line,
}

pub fn open(device: &Dev) -> Open {
    let line: &'static Line = Box::leak(Box::new(Line {
        word: Word64::new(0),
        told: AtomicU32::new(0),
        failed: Mutex::new(None),
        done: AtomicU64::new(0),
    }));
    unsafe extern "C" fn tell(line: *const ()) {
        // SAFETY: the cookie of `open`.
        unsafe { &*line.cast::<Line>() }.told.fetch_add(1, Relaxed);
    }
    unsafe extern "C" fn fail(line: *const (), why: *const Fault) {
        // SAFETY: a fault that outlives the call.
        let why = unsafe { *why };
        // SAFETY: as in `tell`.
        *unsafe { &*line.cast::<Line>() }.failed.lock().unwrap() = Some(why);
    }
    // SAFETY: a line that is never freed.
    let tick = unsafe { Tick::from_parts(&line.word, std::ptr::from_ref(line).cast(), tell, fail) };
    let (lane, gauge, _) = device.lane(tick).unwrap();
    Open { lane, gauge, line }
}

impl Open {
    /// Submits operations, each with the next value.
    pub fn submit(&mut self, ops: &[Op<'_>]) -> Result<usize, (usize, Fault)> {
        let steps: Vec<Step<'_>> = ops
            .iter()
            .map(|op| {
                let done = self.line.done.fetch_add(1, Relaxed) + 1;
                Step { op: *op, done, tell: true, stamp: false }
            })
            .collect();
        self.lane.submit(&steps, Hint::None)
    }
    pub fn reached(&self) -> u64 {
        self.line.word.get()
    }
    pub fn failed(&self) -> Option<Fault> {
        *self.line.failed.lock().unwrap()
    }
}

pub fn fill(to: u64, len: u64) -> Op<'static> {
    Op::Fill { to, len, pattern: &[7] }
}

pub fn read_back(from: u64, into: &mut [u8]) -> Op<'static> {
    let to = into.as_mut_ptr().expose_provenance() as u64;
    Op::Copy { from, to, len: into.len() as u64, peers: [0, PEER_HOST] }
}
