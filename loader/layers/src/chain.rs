//! Layers one above the other, and what they need from outside.

use crate::{
    call::{At, Call, Facts, Layer, Outcome},
    lane::Watch,
};
use alloc::{boxed::Box, vec::Vec};
use core::sync::atomic::{AtomicU32, Ordering::*};
use wharf_core::{
    device::Caps,
    env::{Lock, Mutex},
    fault::Fault,
};

/// What layers ask of the place they run in.
#[derive(Clone, Copy)]
pub struct Outside {
    /// Nanoseconds on a clock that never goes back.
    pub now_ns: fn() -> u64,
    /// Number of the calling thread.
    pub thread: fn() -> u64,
}

/// Layers in the order in which a call meets them: the first is the outermost, nearest to the application.
pub struct Chain<L: Lock> {
    layers: Vec<Box<dyn Layer>>,
    pub(crate) outside: Outside,
    lanes: AtomicU32,
    /// Watches whose lanes are gone. They are never freed: a backend that tells too late wakes nobody.
    pub(crate) spare: Mutex<L, Vec<&'static Watch<L>>>,
}

impl<L: Lock> Chain<L> {
    /// A chain of these layers.
    pub fn new(layers: Vec<Box<dyn Layer>>, outside: Outside) -> Self {
        Chain { layers, outside, lanes: AtomicU32::new(0), spare: Mutex::new(Vec::new()) }
    }

    /// Names of the layers, the outermost first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.layers.iter().map(|layer| layer.name())
    }

    pub(crate) fn caps(&self, caps: Caps) -> Caps {
        self.layers.iter().rev().fold(caps, |caps, layer| layer.caps(caps))
    }

    pub(crate) fn wants_times(&self) -> bool {
        self.layers.iter().any(|layer| layer.wants_times())
    }

    pub(crate) fn next_lane(&self) -> u32 {
        self.lanes.fetch_add(1, Relaxed) + 1
    }

    pub(crate) fn at<'a>(&self, device: &'a Facts, lane: u32) -> At<'a> {
        let now = (self.outside.now_ns)();
        At { device, lane, thread: (self.outside.thread)(), begin_ns: now, end_ns: now }
    }

    /// Asks each layer. On a refusal the layers above it have been told what became of the call.
    pub(crate) fn before(&self, at: &At<'_>, call: &Call<'_>) -> (usize, Outcome<()>) {
        for (asked, layer) in self.layers.iter().enumerate() {
            if let Err(refused) = layer.before(at, call) {
                return (asked, Err(refused));
            }
        }
        (self.layers.len(), Ok(()))
    }

    /// Tells the first `asked` layers, the innermost first, what became of the call.
    pub(crate) fn after(&self, asked: usize, at: &At<'_>, call: &Call<'_>, outcome: &Outcome) {
        let at = At { end_ns: (self.outside.now_ns)(), ..*at };
        self.layers[..asked].iter().rev().for_each(|layer| layer.after(&at, call, outcome));
    }

    /// What may show of `value`, and whether the lane is to end.
    pub(crate) fn reach(&self, at: &At<'_>, value: u64) -> (u64, Option<Fault>) {
        let mut fault = None;
        let shown = self.layers.iter().rev().fold(value, |shown, layer| match layer.reach(at, shown) {
            Ok(less) => shown.min(less),
            Err(over) => {
                fault.get_or_insert(over);
                0
            }
        });
        (shown, fault)
    }

    pub(crate) fn each(&self, f: impl Fn(&dyn Layer)) {
        self.layers.iter().rev().for_each(|layer| f(&**layer));
    }
}
