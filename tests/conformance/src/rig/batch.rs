//! Batches of any backend: a list of entries, and a batch that the pump carries out.
//!
//! # Safety
//! A job's pointer is a counted batch: one count is the pump's, given back in `drop`.
#![allow(unsafe_code)]

use super::{Queue, over::Backend};
use std::sync::{Arc, atomic::Ordering::SeqCst};
use wharf::os::Os;
use wharf_core::{
    batch::{Batch, BatchOptions, Direction, Item, Piece, Pieces, Stored, Target, check, resolve},
    fault::{Fault, Kind, Site, Why},
    runtime::{Runtime, Work, Worked},
    timeline::Point,
};

/// Chunks under way at once.
const FLIGHT: usize = 32;

/// One entry: parameter offset, buffer offset, bytes, what is stored.
pub type Entry = (u64, u64, u64, Stored);

/// Entries of a batch over one root.
#[derive(Clone)]
pub struct PiecesOf {
    /// The entries.
    pub entries: Vec<Entry>,
    /// What they go into, or come from.
    pub target: Target,
    /// Which way.
    pub direction: Direction,
    /// An entry whose name is not known.
    pub missing: Option<u32>,
}

impl Pieces for PiecesOf {
    fn count(&self) -> u32 {
        self.entries.len() as u32
    }
    fn piece(&self, index: u32) -> Result<Piece, Fault> {
        if self.missing == Some(index) {
            return Err(Fault::caller(Kind::NotFound, Site::Resolve, Why::Entry, [index.into(), 0]));
        }
        let (parameter_offset, buffer_offset, len, stored) = self.entries[index as usize];
        let item = Item { key: b"entry", parameter_offset, buffer_offset, len };
        resolve(&item, &stored, &self.target, self.direction)
    }
}

/// A batch under way.
pub trait BatchRun: Send + Sync {
    /// Bytes moved, and in all.
    fn progress(&self) -> (u64, u64);
    /// Nothing more is issued.
    fn cancel(&self);
}

struct Running<D: Backend>(Arc<Batch<D, Os, PiecesOf, FLIGHT>>);

impl<D: Backend> BatchRun for Running<D> {
    fn progress(&self) -> (u64, u64) {
        self.0.control().progress()
    }
    fn cancel(&self) {
        self.0.control().cancel();
    }
}

unsafe fn step<D: Backend>(data: *const (), runtime: &Runtime<D, Os>) -> Worked {
    // SAFETY: a counted batch, by the module's rule.
    unsafe { &*data.cast::<Batch<D, Os, PiecesOf, FLIGHT>>() }.step(runtime)
}

unsafe fn end<D: Backend>(data: *const ()) {
    // SAFETY: the pump's count, given back once.
    drop(unsafe { Arc::from_raw(data.cast::<Batch<D, Os, PiecesOf, FLIGHT>>()) });
}

pub(super) fn start<D: Backend>(
    runtime: &'static Runtime<D, Os>,
    pieces: PiecesOf,
    direction: Direction,
    queues: &[Queue],
    waits: &[Point],
    signals: &[Point],
) -> Result<Box<dyn BatchRun>, Fault> {
    let totals = check(&pieces, direction)?;
    let queues: Vec<_> = queues.iter().map(|queue| queue.of::<D>()).collect();
    let options = BatchOptions { direction, queues: &queues, feeders: &[], staging: None, waits, signals };
    let batch = Arc::new(Batch::new(pieces, &totals, &options)?);
    let data = Arc::into_raw(batch.clone()).cast();
    // SAFETY: a counted batch, which is `Sync`; `step` and `end` are made for it.
    runtime.enlist(unsafe { Work::new(data, step::<D>, end::<D>) })?;
    if runtime.bell().pumps.load(SeqCst) == 0 {
        runtime.poll();
    }
    Ok(Box::new(Running(batch)))
}
