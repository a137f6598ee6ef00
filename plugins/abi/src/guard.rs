//! No panic leaves a plugin: every exported function runs in here. A panic becomes a status with its message, and the
//! object it happened in takes no further calls.
//!
//! Inside a plugin's own shared library the standard library is the plugin's too, so a hook can keep the panics that
//! are stopped here off the terminal ([`hush`]). Linked into a program the hook is the program's, and is left alone.
//! The guard of the hot calls ([`hot`]) does not mark its thread, which would cost as much as the call itself: such a
//! panic is printed once, and stopped all the same.

use crate::{errors, tables::Status};
use core::{
    cell::{Cell, RefCell},
    sync::atomic::{AtomicU8, Ordering::*},
};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    string::String,
    sync::Once,
};
use wharf_core::fault::{Fault, Kind, Site, Why};

/// State of an exported object.
pub(crate) struct State(AtomicU8);

impl State {
    pub(crate) const LISTED: u8 = 0;
    pub(crate) const STARTED: u8 = 1;
    pub(crate) const CLOSED: u8 = 2;
    pub(crate) const POISONED: u8 = 3;

    pub(crate) const fn new(state: u8) -> Self {
        State(AtomicU8::new(state))
    }
    #[inline]
    pub(crate) fn get(&self) -> u8 {
        self.0.load(Acquire)
    }
    pub(crate) fn set(&self, state: u8) {
        self.0.store(state, Release);
    }
    /// Moves on, unless the object is poisoned for good.
    pub(crate) fn advance(&self, state: u8) {
        let _ = self.0.fetch_update(AcqRel, Acquire, |now| (now != Self::POISONED).then_some(state));
    }
    /// The fault of a call that needs another state.
    #[cold]
    pub(crate) fn refusal(&self, site: Site) -> Status {
        let state = self.get();
        let text = match state {
            Self::LISTED => "the device is not started",
            Self::CLOSED => "the plugin is closed",
            _ => "an earlier call on it panicked",
        };
        let fault = Fault::backend(Kind::FailedPrecondition, site, Why::State, [state.into(), 0]);
        errors::with_text(&fault, format!("{}: failed precondition: {text}", site.name()))
    }
}

thread_local! {
    /// Guards that this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Where the last stopped panic came from.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps panics that a guard will stop from being printed. Only for a plugin that is a library of its own.
pub(crate) fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if DEPTH.with(Cell::get) == 0 {
                return before(info);
            }
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            // A thread that is ending has no place to keep it.
            let _ = PLACE.try_with(|p| *p.borrow_mut() = place);
        }));
    });
}

struct Depth;

impl Depth {
    fn enter() -> Self {
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        Depth
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

/// Runs an exported function; `state` is that of the object the call is about.
pub(crate) fn cold(state: Option<&State>, run: impl FnOnce() -> Status) -> Status {
    let _depth = Depth::enter();
    hot(state, run)
}

/// As [`cold`], without the mark on the thread.
#[inline]
pub(crate) fn hot(state: Option<&State>, run: impl FnOnce() -> Status) -> Status {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(status) => status,
        Err(panic) => stopped(state, panic),
    }
}

#[cold]
fn stopped(state: Option<&State>, panic: Box<dyn Any + Send>) -> Status {
    if let Some(state) = state {
        state.set(State::POISONED);
    }
    let message = message(&*panic);
    discard(panic);
    let place = PLACE.try_with(|p| core::mem::take(&mut *p.borrow_mut())).unwrap_or_default();
    let text = if place.is_empty() { message } else { format!("{message} ({place})") };
    let fault = Fault::backend(Kind::Panicked, Site::Plugin, Why::Unknown, [0; 2]);
    errors::with_text(&fault, format!("panicked: {text}"))
}

fn message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&'static str>() {
        return (*text).into();
    }
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "no message".into())
}

/// A panic's payload may panic when dropped; the second one is left alone.
fn discard(panic: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        core::mem::forget(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("again");
        }
    }

    #[test]
    fn a_panic_becomes_a_status_and_poisons() {
        let state = State::new(State::STARTED);
        let status = cold(Some(&state), || panic!("seven"));
        assert_eq!(crate::code::decode(status.code).0, Kind::Panicked);
        assert_eq!(state.get(), State::POISONED);
        state.advance(State::STARTED);
        assert_eq!(state.get(), State::POISONED);
    }

    #[test]
    fn a_payload_that_panics_when_dropped_is_stopped_too() {
        let status = cold(None, || std::panic::panic_any(Bomb));
        assert_eq!(crate::code::decode(status.code).0, Kind::Panicked);
    }
}
