//! Lanes of a layered device. A watched lane gives the backend a word of its own and shows core what its layers let
//! through, so that a layer may hold progress back, and look at memory before its owner learns that it is free.
//!
//! Layers are told of ends outside the watch's lock and outside the backend: a backend may tell under a lock that its
//! own `Gauge::times` takes.
//!
//! # Safety
//! The cookie of a watch's tick is the watch, which is never freed and is given to another lane only after the lane it
//! had is dropped.
#![allow(unsafe_code)]

use crate::{
    call::{Answer, Call, End, Facts, Outcome},
    chain::Chain,
};
use alloc::{boxed::Box, collections::VecDeque, sync::Arc, vec::Vec};
use core::{mem, ptr};
use wharf_core::{
    device::{Device, Gauge, Hint, Lane, Step, Times},
    env::{Deadline, Lock, Mutex},
    fault::Fault,
    tick::Tick,
    word::Word64,
};

/// The submitting end of a layered device's lane.
pub struct LayeredLane<D: Device, L: Lock> {
    // In front of the watch: the backend's lane ends first.
    below: D::Lane,
    watched: Option<Watched<D, L>>,
}

/// The watching end of a layered device's lane.
pub struct LayeredGauge<D: Device, L: Lock> {
    below: D::Gauge,
    watch: Option<&'static Watch<L>>,
}

struct Watched<D: Device, L: Lock> {
    watch: &'static Watch<L>,
    gauge: D::Gauge,
}

impl<D: Device, L: Lock> Clone for LayeredGauge<D, L> {
    fn clone(&self) -> Self {
        LayeredGauge { below: self.below.clone(), watch: self.watch }
    }
}

impl<D: Device, L: Lock> LayeredLane<D, L> {
    pub(crate) fn bare(below: D::Lane) -> Self {
        LayeredLane { below, watched: None }
    }
    pub(crate) fn watched(below: D::Lane, watch: &'static Watch<L>, gauge: D::Gauge) -> Self {
        LayeredLane { below, watched: Some(Watched { watch, gauge }) }
    }
}

impl<D: Device, L: Lock> LayeredGauge<D, L> {
    pub(crate) fn bare(below: D::Gauge) -> Self {
        LayeredGauge { below, watch: None }
    }
    pub(crate) fn watched(below: D::Gauge, watch: &'static Watch<L>) -> Self {
        LayeredGauge { below, watch: Some(watch) }
    }
}

impl<D: Device, L: Lock> Lane for LayeredLane<D, L> {
    // Always: a call of its own would cost more than the branch.
    #[inline(always)]
    fn submit(&mut self, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)> {
        match &self.watched {
            None => self.below.submit(steps, hint),
            Some(watched) => watched.submit(&mut self.below, steps, hint),
        }
    }
}

impl<D: Device, L: Lock> Watched<D, L> {
    #[cold]
    #[inline(never)]
    fn submit(&self, below: &mut D::Lane, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)> {
        let Some((chain, facts, number)) = self.watch.place() else { return below.submit(steps, hint) };
        let (at, call) = (chain.at(&facts, number), Call::Submit(steps, hint));
        let (asked, admitted) = chain.before(&at, &call);
        let (end, refused) = match admitted {
            Ok(()) => (steps.len(), None),
            Err((n, fault)) => (n.min(steps.len()), Some((n.min(steps.len()), fault))),
        };
        let stamp = chain.wants_times();
        // Every end is told: what a backend would only write to its word, core would not see in its own.
        let told: Vec<Step<'_>> = steps[..end]
            .iter()
            .map(|step| Step {
                tell: step.done != 0,
                stamp: step.done != 0 && (stamp || step.stamp),
                ..*step
            })
            .collect();
        self.watch.expect(&told);
        // What was refused ends the queue: nothing follows that would send the rest off.
        let hint = if refused.is_some() { Hint::None } else { hint };
        let taken = if told.is_empty() { Ok(0) } else { below.submit(&told, hint) };
        let result = match (taken, refused) {
            (Ok(n), Some(refused)) if n == end => Err(refused),
            (taken, _) => taken,
        };
        self.watch.forget(&told[result.unwrap_or_else(|(n, _)| n).min(end)..]);
        chain.after(asked, &at, &call, &result.map(Answer::Taken));
        self.watch.settle(|value| self.gauge.times(value));
        result
    }
}

impl<D: Device, L: Lock> Drop for LayeredLane<D, L> {
    fn drop(&mut self) {
        if let Some(watched) = &self.watched {
            watched.watch.settle(|value| watched.gauge.times(value));
        }
    }
}

impl<D: Device, L: Lock> Drop for Watched<D, L> {
    fn drop(&mut self) {
        if let Some((chain, facts, number)) = self.watch.place() {
            let at = chain.at(&facts, number);
            let (asked, _) = chain.before(&at, &Call::Close);
            chain.after(asked, &at, &Call::Close, &Ok(Answer::Done));
        }
        self.watch.give_back();
    }
}

impl<D: Device, L: Lock> Gauge for LayeredGauge<D, L> {
    #[inline]
    fn poll(&self) {
        self.below.poll();
        self.look();
    }
    #[inline]
    fn wait(&self, value: u64, until: Deadline) -> bool {
        let waited = self.below.wait(value, until);
        self.look();
        waited
    }
    fn times(&self, value: u64) -> Option<Times> {
        self.below.times(value)
    }
}

impl<D: Device, L: Lock> LayeredGauge<D, L> {
    #[inline]
    fn look(&self) {
        if let Some(watch) = self.watch {
            watch.publish();
            watch.settle(|value| self.below.times(value));
        }
    }
}

/// What stands between a backend's lane and core's timeline.
pub(crate) struct Watch<L: Lock> {
    /// Where the backend writes.
    word: Word64,
    live: Mutex<L, Option<Live<L>>>,
}

struct Live<L: Lock> {
    chain: Arc<Chain<L>>,
    facts: Arc<Facts>,
    number: u32,
    above: Tick,
    shown: u64,
    /// The last value that the backend was given.
    last: u64,
    /// Values that have not ended as far as layers were told.
    pending: VecDeque<u64>,
    /// Values that the backend's word was seen with, and when.
    seen: VecDeque<(u64, u64)>,
    /// Why the backend's lane is over.
    failed: Option<Fault>,
    over: bool,
}

impl<L: Lock> Watch<L> {
    pub(crate) fn take(
        chain: &Arc<Chain<L>>,
        facts: &Arc<Facts>,
        number: u32,
        above: Tick,
    ) -> &'static Watch<L> {
        let spare = chain.spare.with(Vec::pop);
        let watch: &'static Watch<L> = spare
            .unwrap_or_else(|| Box::leak(Box::new(Watch { word: Word64::new(0), live: Mutex::new(None) })));
        let base = above.parts().0.get();
        watch.word.set(base);
        let live = Live {
            chain: chain.clone(),
            facts: facts.clone(),
            number,
            above,
            shown: base,
            last: base,
            pending: VecDeque::new(),
            seen: VecDeque::new(),
            failed: None,
            over: false,
        };
        watch.live.with(|place| *place = Some(live));
        watch
    }

    pub(crate) fn give_back(&'static self) {
        if let Some(live) = self.live.with(Option::take) {
            live.chain.spare.with(|spare| spare.push(self));
        }
    }

    /// The tick that the backend gets.
    pub(crate) fn tick(&'static self) -> Tick {
        // SAFETY: the cookie is a watch of this very type, which lives for ever and may be used by any thread.
        unsafe { Tick::from_parts(&self.word, ptr::from_ref(self).cast(), tell::<L>, fail::<L>) }
    }

    fn place(&self) -> Option<(Arc<Chain<L>>, Arc<Facts>, u32)> {
        self.live.with(|live| live.as_ref().map(|live| (live.chain.clone(), live.facts.clone(), live.number)))
    }

    /// These steps go to the backend now.
    fn expect(&self, steps: &[Step<'_>]) {
        self.live.with(|live| {
            let Some(live) = live else { return };
            for step in steps.iter().filter(|step| step.done != 0) {
                live.pending.push_back(step.done);
                live.last = step.done;
            }
        });
    }

    /// The last steps that were expected were not taken.
    fn forget(&self, steps: &[Step<'_>]) {
        let count = steps.iter().filter(|step| step.done != 0).count();
        if count == 0 {
            return;
        }
        self.live.with(|live| {
            let Some(live) = live else { return };
            live.pending.truncate(live.pending.len().saturating_sub(count));
            live.last = live.pending.back().copied().unwrap_or_else(|| self.word.get());
        });
    }

    /// Shows what layers let through of where the backend stands.
    fn publish(&self) {
        self.live.with(|live| {
            let Some(live) = live.as_mut().filter(|live| !live.over) else { return };
            let reached = self.word.get();
            let (chain, facts) = (live.chain.clone(), live.facts.clone());
            let at = chain.at(&facts, live.number);
            if live.seen.back().is_none_or(|(value, _)| *value < reached) && reached > live.shown {
                live.seen.push_back((reached, at.begin_ns));
            }
            let (shown, fault) = chain.reach(&at, reached);
            if shown > live.shown {
                live.shown = shown;
                live.above.advance(shown);
            }
            // Work under way may still use memory that a failure would free.
            let fault = match fault {
                Some(fault) if reached >= live.last || live.failed.is_some() => Some(fault),
                Some(_) => None,
                None if shown >= reached => live.failed,
                None => None,
            };
            if let Some(fault) = fault {
                live.over = true;
                live.pending.clear();
                chain.each(|layer| layer.failed(&at, &fault));
                live.above.fail(&fault);
            }
        });
    }

    /// Tells layers of what has ended.
    fn settle(&self, times: impl Fn(u64) -> Option<Times>) {
        let (mut ended, mut place) = (Vec::new(), None);
        self.live.with(|live| {
            let Some(live) = live else { return };
            while let Some(&value) = live.pending.front().filter(|value| **value <= live.shown) {
                live.pending.pop_front();
                while live.seen.len() > 1 && live.seen[0].0 < value {
                    live.seen.pop_front();
                }
                let seen_ns = live.seen.front().map_or_else(live.chain.outside.now_ns, |(_, ns)| *ns);
                ended.push(End { value, seen_ns, times: None });
            }
            place = (!ended.is_empty()).then(|| (live.chain.clone(), live.facts.clone(), live.number));
        });
        let Some((chain, facts, number)) = place else { return };
        let at = chain.at(&facts, number);
        for mut end in ended {
            end.times = times(end.value);
            chain.each(|layer| layer.ended(&at, &end));
        }
    }
}

unsafe extern "C" fn tell<L: Lock>(cookie: *const ()) {
    // SAFETY: the cookie of `Watch::tick`: a watch that lives for ever.
    let watch = unsafe { &*cookie.cast::<Watch<L>>() };
    watch.publish();
}

unsafe extern "C" fn fail<L: Lock>(cookie: *const (), why: *const Fault) {
    // SAFETY: as in `tell`.
    let watch = unsafe { &*cookie.cast::<Watch<L>>() };
    // SAFETY: a fault that outlives the call, by `FailFn`.
    let why = unsafe { *why };
    watch.live.with(|live| {
        if let Some(live) = live {
            live.failed.get_or_insert(why);
        }
    });
    watch.publish();
}

const _: () = assert!(mem::size_of::<Outcome>() < 128, "an outcome is passed by reference, and kept small");
