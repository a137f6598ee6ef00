//! Jobs: work that takes many submits, moved on by the pump. A batch is one.
//!
//! # Safety
//! A [`Work`]'s pointer is what its functions were made for; `step` is called by one thread at a time, under the
//! pump's lock, until it says that it is over; then `drop` is called once.
#![allow(unsafe_code)]

use super::{Next, Runtime};
use crate::{
    device::Device,
    env::{Env, Mutex},
    fault::{Fault, Site},
    handle::Body,
};
use core::sync::atomic::Ordering::*;

/// What a step of a job came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worked {
    /// It waits for something that rings the bell.
    Waiting,
    /// It is over.
    Over,
}

/// A job behind a pointer, so that one in a `static` and one in a box are alike.
pub struct Work<D: Device, E: Env> {
    data: *const (),
    step: unsafe fn(*const (), &Runtime<D, E>) -> Worked,
    drop: unsafe fn(*const ()),
}

// SAFETY: `Work::new` asks for data that may be used from any thread, one at a time.
unsafe impl<D: Device, E: Env> Send for Work<D, E> {}

impl<D: Device, E: Env> Work<D, E> {
    /// Joins the parts.
    ///
    /// # Safety
    /// `step` and `drop` take `data`, from any thread, one call at a time; `data` lives until `drop` has returned.
    pub const unsafe fn new(
        data: *const (),
        step: unsafe fn(*const (), &Runtime<D, E>) -> Worked,
        drop: unsafe fn(*const ()),
    ) -> Self {
        Work { data, step, drop }
    }
}

/// A place for a job.
pub struct WorkSlot<D: Device, E: Env>(Mutex<E::Lock, Option<Work<D, E>>>);

impl<D: Device, E: Env> Body for WorkSlot<D, E> {
    const NEW: Self = WorkSlot(Mutex::new(None));
    const KIND: u8 = 7;
}

impl<D: Device, E: Env> Runtime<D, E> {
    /// Hands a job to the pump, which steps it until it is over.
    ///
    /// # Errors
    /// `ResourceExhausted` when all slots are in use; the job has then been dropped without a step.
    pub fn enlist(&self, work: Work<D, E>) -> Result<(), Fault> {
        let mut work = Some(work);
        let enlisted = self.works.insert::<E>(|slot, _| slot.0.with(|cell| *cell = work.take()));
        if enlisted.is_none() {
            if let Some(work) = work {
                // SAFETY: as `Work::new` was promised; the job is dropped once.
                unsafe { (work.drop)(work.data) };
            }
            return Err(Fault::full(Site::Batch, self.works.used() as u64));
        }
        self.bell.interest.fetch_add(1, SeqCst);
        self.bell.ring::<E>();
        Ok(())
    }

    /// Whether a job is not over.
    pub(crate) fn has_works(&self) -> bool {
        (0..self.works.used()).any(|index| self.works.current(index).is_some())
    }

    /// Steps every job. Under the pump's lock.
    pub(crate) fn run_works(&self) -> Next {
        let mut next = Next::Idle;
        for index in 0..self.works.used() {
            // A job whose slot nobody can reach yet is the next pass's: its turn could not be ended.
            let (Some(handle), Some(slot)) = (self.works.current(index), self.works.body(index)) else {
                continue;
            };
            // Taken out, so that no lock is held while it runs; the pump's lock keeps others from stepping it.
            let Some(work) = slot.0.with(Option::take) else { continue };
            // SAFETY: as `Work::new` was promised; the pump's lock lets one thread step.
            match unsafe { (work.step)(work.data, self) } {
                Worked::Waiting => {
                    slot.0.with(|cell| *cell = Some(work));
                    next = Next::Told;
                }
                Worked::Over => {
                    // SAFETY: as above; the job has left its slot, so this is the only drop.
                    unsafe { (work.drop)(work.data) };
                    self.works.end(handle);
                    self.works.reuse(index);
                    self.bell.interest.fetch_sub(1, Relaxed);
                }
            }
        }
        next
    }
}
