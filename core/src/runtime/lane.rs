//! The body of a queue: a backend's lane under core's lock, and what is held in front of it.
//!
//! # Safety
//! `state` is written whole before `open` is set and read only inside the lock while `open` is set; it is moved out
//! exactly once, when `open` is cleared.
#![allow(unsafe_code)]

use super::node::NodeList;
use crate::{
    device::{Caps, Device},
    env::{Env, Mutex},
    fault::{Fault, Site},
    handle::{Body, Handle, Pins},
    timeline::{Failure, Timeline},
};
use core::{marker::PhantomData, mem::MaybeUninit};

/// How the operations of a queue follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other: an operation that is held holds what follows, and a failure fails all that follows.
    InOrder,
    /// Each waits for its own points alone; a failure fails only its own signals.
    Free,
}

/// What is inside the lock.
pub(crate) struct LaneState<D: Device> {
    pub(crate) lane: D::Lane,
    pub(crate) gauge: D::Gauge,
    pub(crate) caps: Caps,
    pub(crate) device: u16,
    pub(crate) order: Order,
    pub(crate) stamp: bool,
    pub(crate) timeline: Handle<Timeline>,
    pub(crate) time: &'static Timeline,
    /// The last value given to an operation.
    pub(crate) tail: u64,
    /// Operations accepted.
    pub(crate) accepted: u64,
    /// Operations that wait, in order.
    pub(crate) held: NodeList,
    /// Signals due when the lane's timeline reaches their value, in order.
    pub(crate) signals: NodeList,
    /// The first value that will never be reached, and why; applied once everything before it has ended.
    pub(crate) poison: Option<(u64, Failure)>,
    pub(crate) closing: bool,
}

impl<D: Device> LaneState<D> {
    /// Whether everything the lane was given has ended, well or not.
    pub(crate) fn drained(&self) -> bool {
        self.held.is_empty() && self.signals.is_empty() && self.poison.is_none() && self.idle()
    }
    /// Whether the backend has nothing unfinished.
    pub(crate) fn idle(&self) -> bool {
        self.time.reached(self.tail) || self.time.failed.load(core::sync::atomic::Ordering::Acquire) != 0
    }
}

/// The lane, if there is one.
pub(crate) struct LaneCell<D: Device> {
    open: bool,
    state: MaybeUninit<LaneState<D>>,
}

impl<D: Device> LaneCell<D> {
    pub(crate) fn get(&mut self) -> Option<&mut LaneState<D>> {
        if !self.open {
            return None;
        }
        // SAFETY: `open` is set only after `put` wrote the state.
        Some(unsafe { self.state.assume_init_mut() })
    }
    pub(crate) fn put(&mut self, state: LaneState<D>) {
        self.state.write(state);
        self.open = true;
    }
    pub(crate) fn take(&mut self) -> Option<LaneState<D>> {
        if !core::mem::take(&mut self.open) {
            return None;
        }
        // SAFETY: `open` was set, so the state was written and not yet moved out; it is closed now.
        Some(unsafe { self.state.assume_init_read() })
    }
}

/// A queue: operations go in, their ends show on its timeline.
pub struct Queue<D: Device, E: Env> {
    pub(crate) cell: Mutex<E::Lock, LaneCell<D>>,
    pub(crate) pins: Pins,
    pub(crate) env: PhantomData<fn() -> E>,
}

impl<D: Device, E: Env> Body for Queue<D, E> {
    const NEW: Self = Queue {
        cell: Mutex::new(LaneCell { open: false, state: MaybeUninit::uninit() }),
        pins: Pins::NEW,
        env: PhantomData,
    };
    const KIND: u8 = 1;
}

// SAFETY: a lane is `Send` and used by one thread at a time inside the lock; a gauge is `Send` and `Sync`; the rest of
// the state is plain data, nodes (`Send`) and references to shared atomics.
unsafe impl<D: Device> Send for LaneCell<D> {}

impl<D: Device, E: Env> super::Runtime<D, E> {
    /// Looks the queue up, goes in, looks again: its turn may have ended in between.
    pub(crate) fn inside<R>(
        &self,
        queue: Handle<Queue<D, E>>,
        site: Site,
        f: impl FnOnce(&mut LaneState<D>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let body = self.lanes.get(queue).ok_or(Fault::stale(site, queue.raw()))?;
        body.cell.with(|cell| match cell.get() {
            Some(state) if self.lanes.live(queue) => f(state),
            _ => Err(Fault::stale(site, queue.raw())),
        })
    }
}
