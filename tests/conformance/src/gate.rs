//! Host calls for cases: one that blocks until it is let go, one that notes its number in a log.
//!
//! # Safety
//! The user pointers of the calls are leaked gates and notes, so they are good for ever.
#![allow(unsafe_code)]

use crate::{
    ctx::Ctx,
    rig::{Queue, Submitted},
};
use std::{
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering::*},
    },
    time::{Duration, Instant},
};
use wharf_core::{device::HostCall, runtime::Around};

/// A gate opens by itself after so long, so that a failed check does not hang the run.
const LIMIT: Duration = Duration::from_secs(8);

/// Blocks the host calls that enter it until it is opened.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    bell: Condvar,
    entered: AtomicU32,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> &'static Gate {
        Box::leak(Box::default())
    }
    /// Lets everybody through.
    pub fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_all();
    }
    /// Calls that have begun.
    pub fn entered(&self) -> u32 {
        self.entered.load(SeqCst)
    }
    /// Submits a call that blocks here.
    ///
    /// # Errors
    /// As `Runtime::host_call`.
    pub fn call(&'static self, ctx: &Ctx, queue: Queue, around: &Around<'_>) -> Submitted {
        unsafe extern "C" fn block(user: *mut ()) {
            // SAFETY: a leaked gate.
            let gate = unsafe { &*user.cast::<Gate>() };
            gate.entered.fetch_add(1, SeqCst);
            let end = Instant::now() + LIMIT;
            let mut open = gate.open.lock().unwrap_or_else(PoisonError::into_inner);
            while !*open && Instant::now() < end {
                open = gate.bell.wait_timeout(open, LIMIT).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        let user = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the gate is leaked and takes any thread.
        unsafe { ctx.host_call(queue, HostCall { call: block, user }, around) }
    }
}

/// Numbers in the order in which host calls noted them.
#[derive(Default)]
pub struct Log(Mutex<Vec<u32>>);

struct Note(&'static Log, u32);

impl Log {
    /// An empty log.
    pub fn new() -> &'static Log {
        Box::leak(Box::default())
    }
    /// What was noted so far.
    pub fn all(&self) -> Vec<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// Submits a call that notes `number`.
    ///
    /// # Errors
    /// As `Runtime::host_call`.
    pub fn call(&'static self, ctx: &Ctx, queue: Queue, number: u32, around: &Around<'_>) -> Submitted {
        unsafe extern "C" fn note(user: *mut ()) {
            // SAFETY: a leaked note.
            let note = unsafe { &*user.cast::<Note>() };
            note.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(note.1);
        }
        let note_of: &'static Note = Box::leak(Box::new(Note(self, number)));
        let user = std::ptr::from_ref(note_of).cast_mut().cast();
        // SAFETY: the note is leaked and the log takes any thread.
        unsafe { ctx.host_call(queue, HostCall { call: note, user }, around) }
    }
}
