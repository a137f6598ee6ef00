//! The devices of a target under layers: validation, a trace and a capture, and ends in another order.

use std::{
    cell::Cell,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use wharf::os::{OsLock, now_ns};
use wharf_core::device::Device;
use wharf_layers::{
    Chain, FaultPlan, Faults, Layer, Layered, Outside, Sink, Trace, Validation,
    capture::{ByteSink, Capture},
};

/// Findings, as text.
pub(crate) type Found = Arc<Mutex<Vec<String>>>;

/// How late an end shows at most.
const REORDER_NS: u64 = 200_000;

/// Where a trace and a capture go that nobody reads.
struct Nowhere;

impl Sink for Nowhere {
    fn write(&mut self, _: &str) {}
}

impl ByteSink for Nowhere {
    fn write(&mut self, _: &[u8]) {}
}

fn thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = Cell::new(NEXT.fetch_add(1, Relaxed));
    }
    NUMBER.get()
}

fn under<D: Device>(devices: &'static [D], layers: Vec<Box<dyn Layer>>) -> &'static [Layered<D, OsLock>] {
    let chain = Arc::new(Chain::new(layers, Outside { now_ns, thread }));
    let layered = devices
        .iter()
        .zip(0u16..)
        .map(|(device, number)| Layered::new(device, chain.clone(), number, format!("device {number}")));
    layered.collect::<Vec<_>>().leak()
}

/// The devices under validation, a trace and a capture, and what is found.
pub(crate) fn validated<D: Device>(devices: &'static [D]) -> (&'static [Layered<D, OsLock>], Found) {
    let found = Found::default();
    let all = found.clone();
    let tell = move |finding: &wharf_layers::Finding| {
        all.lock().unwrap_or_else(PoisonError::into_inner).push(finding.to_string());
    };
    let validation = Validation::<OsLock>::new(tell);
    let trace = Trace::<OsLock>::new(Box::new(Nowhere));
    let capture = Capture::<OsLock>::new(Box::new(Nowhere));
    (under(devices, vec![Box::new(validation), Box::new(trace), Box::new(capture)]), found)
}

/// The devices with ends of different queues in another order.
pub(crate) fn reordered<D: Device>(devices: &'static [D]) -> &'static [Layered<D, OsLock>] {
    let plan = FaultPlan { reorder_ns: Some(REORDER_NS), seed: 1, ..FaultPlan::default() };
    under(devices, vec![Box::new(Faults::<OsLock>::new(plan))])
}
