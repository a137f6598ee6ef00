//! A backend's end of a lane's timeline: a word to raise and two calls. The same three things cross the C tables, so
//! a backend that is linked in and one behind tables hold the same type.
//!
//! # Safety
//! The two calls are function pointers of core (or of a host behind tables) over a cookie; whoever builds a `Tick`
//! promises that they take that cookie for as long as a copy lives.
#![allow(unsafe_code)]

use crate::{fault::Fault, word::Word64};

/// Called after the word was raised for a step somebody looks at.
pub type TellFn = unsafe extern "C" fn(cookie: *const ());
/// Called once when the lane is over.
pub type FailFn = unsafe extern "C" fn(cookie: *const (), why: *const Fault);

/// Where a lane writes its progress. Takes no lock: good inside `submit`, on any thread and in an interrupt.
#[derive(Clone, Copy)]
pub struct Tick {
    word: &'static Word64,
    cookie: *const (),
    tell: TellFn,
    fail: FailFn,
}

// SAFETY: `cookie` is only handed back to `tell` and `fail`, which by `from_parts` may be called from any thread.
unsafe impl Send for Tick {}
// SAFETY: as for `Send`; a shared `Tick` offers nothing that changes it.
unsafe impl Sync for Tick {}

impl Tick {
    /// Joins the parts.
    ///
    /// # Safety
    /// `tell` and `fail` take `cookie` from any thread for as long as any copy of this lives.
    pub const unsafe fn from_parts(
        word: &'static Word64,
        cookie: *const (),
        tell: TellFn,
        fail: FailFn,
    ) -> Self {
        Self { word, cookie, tell, fail }
    }
    /// The parts, for a host that hands them over C tables.
    pub fn parts(&self) -> (&'static Word64, *const (), TellFn, FailFn) {
        (self.word, self.cookie, self.tell, self.fail)
    }
    /// Everything up to `value` has ended. One caller at a time; values never go down.
    #[inline]
    pub fn advance(&self, value: u64) {
        self.word.set(value);
        self.tell();
    }
    /// As [`Tick::advance`] for a step that nobody asked to be told of.
    #[inline]
    pub fn advance_quietly(&self, value: u64) {
        self.word.set(value);
    }
    /// Wakes whoever looks at the timeline.
    #[inline]
    pub fn tell(&self) {
        // SAFETY: `from_parts` promised that the call takes this cookie.
        unsafe { (self.tell)(self.cookie) }
    }
    /// The lane is over: no point that is still ahead will be reached. The first cause stays.
    pub fn fail(&self, why: &Fault) {
        // SAFETY: `from_parts` promised that the call takes this cookie; `why` outlives the call.
        unsafe { (self.fail)(self.cookie, why) }
    }
}
