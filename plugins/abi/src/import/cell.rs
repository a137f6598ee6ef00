//! The cookie of an imported lane: where its tick is found. Cells are never freed, only used again after `destroy` has
//! returned, so a plugin that tells too late wakes somebody for nothing and does no more harm.
//!
//! # Safety
//! `tick` and `calls` are written only while the cell has no lane (taken from the free list, before `create`).
#![allow(unsafe_code)]

use crate::{negotiate::Calls, tables::Status};
use core::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU32, Ordering::*},
};
use std::{
    sync::{Mutex, PoisonError},
    vec::Vec,
};
use wharf_core::{
    fault::{Fault, Site},
    tick::Tick,
};

pub(super) struct Cell {
    /// Odd while a lane has it.
    generation: AtomicU32,
    inner: UnsafeCell<Option<(Tick, &'static Calls)>>,
}

// SAFETY: `inner` holds shareable things and is written only while nobody else has the cell.
unsafe impl Sync for Cell {}

static FREE: Mutex<Vec<&'static Cell>> = Mutex::new(Vec::new());

impl Cell {
    /// A cell for a new lane.
    pub(super) fn take(tick: Tick, calls: &'static Calls) -> &'static Cell {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let cell: &'static Cell = free.unwrap_or_else(|| {
            Box::leak(Box::new(Cell { generation: AtomicU32::new(0), inner: UnsafeCell::new(None) }))
        });
        // SAFETY: off the free list or new, so no lane has it.
        unsafe { *cell.inner.get() = Some((tick, calls)) };
        cell.generation.fetch_add(1, Release);
        cell
    }

    /// The lane is over: gauges of it do nothing from here on.
    pub(super) fn end(&self) {
        self.generation.fetch_add(1, Release);
    }

    /// The plugin has let go of it.
    pub(super) fn give_back(&'static self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    #[inline]
    pub(super) fn generation(&self) -> u32 {
        self.generation.load(Acquire)
    }

    fn inner(&self) -> Option<&(Tick, &'static Calls)> {
        // SAFETY: written before the lane was made, and not again before it is gone.
        unsafe { (*self.inner.get()).as_ref() }
    }

    pub(super) fn tell(&self) {
        if let Some((tick, _)) = self.inner() {
            tick.tell();
        }
    }

    #[cold]
    pub(super) fn failed(&self, why: Status) {
        if let Some((tick, calls)) = self.inner() {
            tick.fail(&calls.failure(why, Site::Queue));
        }
    }

    #[cold]
    pub(super) fn fail(&self, why: &Fault) {
        if let Some((tick, _)) = self.inner() {
            tick.fail(why);
        }
    }
}
