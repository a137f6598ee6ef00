//! What is left after a fork: the child has no thread but the one that forked, so no pump and no worker of a plugin, and
//! locks that others held stay locked. Whatever was opened before answers an error there. A count that a handler of the
//! system raises in the child tells, so that a call pays for one load and no system call.
//!
//! # Safety
//! The handler does nothing but raise the count.
#![allow(unsafe_code)]

use std::sync::{
    Once,
    atomic::{AtomicU32, Ordering::Relaxed},
};
use wharf_core::fault::{Fault, Kind, Site, Why};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between this process and the first that asked. What was made under another number is not ours.
pub(crate) fn count() -> u32 {
    FORKS.load(Relaxed)
}

/// From here on forks are counted.
pub(crate) fn watch() -> u32 {
    static WATCH: Once = Once::new();
    WATCH.call_once(register);
    count()
}

/// What calls answer in the child.
pub(crate) const FAULT: Fault =
    Fault::caller(Kind::FailedPrecondition, Site::Device, Why::State, [u64::from_be_bytes(*b"forked  "), 0]);

/// The same in words.
pub(crate) const WORDS: &str =
    "this process was forked after the runtime was opened; open one after the fork, or fork before";

#[cfg(unix)]
fn register() {
    unsafe extern "C" fn child() {
        FORKS.fetch_add(1, Relaxed);
    }
    // SAFETY: the handler is a function of this program for its whole life. Without memory for it forks are not seen.
    let _ = unsafe { libc::pthread_atfork(None, None, Some(child)) };
}

#[cfg(not(unix))]
fn register() {}
