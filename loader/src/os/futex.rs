//! Sleeping by address with Linux futexes.
//!
//! # Safety
//! The system call reads the word it is given and, for a wait, a time that outlives the call.
#![allow(unsafe_code)]

use core::{ptr, sync::atomic::AtomicU32, time::Duration};

/// Sleeps while `*word == seen`, at most `nap`; may wake early.
pub(super) fn sleep(word: &AtomicU32, seen: u32, nap: Option<Duration>) {
    let time = nap.map(|nap| libc::timespec {
        tv_sec: nap.as_secs().min(1 << 30) as libc::time_t,
        tv_nsec: nap.subsec_nanos() as libc::c_long,
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time outlive the call; a wake-up, a signal and a changed word all just return.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, seen, time) };
}

/// Wakes one sleeper.
pub(super) fn wake_one(word: &AtomicU32) {
    wake(word, 1);
}

/// Wakes all sleepers.
pub(super) fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX);
}

fn wake(word: &AtomicU32, count: i32) {
    // SAFETY: a wake only uses the address.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count)
    };
}
