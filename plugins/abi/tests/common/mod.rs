//! What the tests share: a core's end of a lane, and a toy backend that does what it is told to.
//!
//! # Safety
//! A [`Watch`] is leaked, so the cookie of its tick is good for ever.
#![allow(unsafe_code)]
#![allow(dead_code, unreachable_pub)] // Each test uses a part of it.

pub mod toy;

use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering::*},
};
use wharf_abi::{Instance, export, negotiate};
use wharf_core::{fault::Fault, tick::Tick, word::Word64};

/// A core's end of a lane: the word, and what was told.
pub struct Watch {
    pub word: Word64,
    pub told: AtomicU32,
    pub faults: Mutex<Vec<Fault>>,
}

unsafe extern "C" fn tell(cookie: *const ()) {
    // SAFETY: a leaked `Watch`.
    unsafe { &*cookie.cast::<Watch>() }.told.fetch_add(1, AcqRel);
}

unsafe extern "C" fn fail(cookie: *const (), why: *const Fault) {
    // SAFETY: a fault of the caller's, for the call.
    let why = unsafe { *why };
    // SAFETY: a leaked `Watch`.
    unsafe { &*cookie.cast::<Watch>() }.faults.lock().unwrap().push(why);
}

impl Watch {
    pub fn new() -> &'static Self {
        Box::leak(Box::new(Watch { word: Word64::new(0), told: AtomicU32::new(0), faults: Mutex::default() }))
    }
    pub fn tick(&'static self) -> Tick {
        // SAFETY: the watch is leaked.
        unsafe { Tick::from_parts(&self.word, std::ptr::from_ref(self).cast(), tell, fail) }
    }
    pub fn fault(&self) -> Option<Fault> {
        self.faults.lock().unwrap().first().copied()
    }
}

/// A plugin of this program as a host sees it.
pub fn open<P: export::Plugin>() -> std::sync::Arc<Instance> {
    // SAFETY: an entry of this program, which is never unloaded.
    Instance::new(unsafe { negotiate(export::entry::<P>) }.unwrap(), 7)
}
