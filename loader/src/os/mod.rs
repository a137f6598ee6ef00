//! The environment that core runs in on a system with threads: a lock, sleeping by address, a clock, memory.
//!
//! # Safety
//! `grow` is only asked for layouts that are not empty, which core's tables and nodes never are; the clock is asked
//! with a place for its answer.
#![allow(unsafe_code)]

mod lock;
#[cfg_attr(target_os = "linux", path = "futex.rs")]
#[cfg_attr(not(target_os = "linux"), path = "lot.rs")]
mod park;

/// The atomics of the lock; its model in `core/tests/lock_loom.rs` has others.
mod sync {
    pub(super) use core::sync::atomic::AtomicU32;
    pub(super) use wharf_core::barrier::fence;
}

pub use lock::OsLock;

use core::{alloc::Layout, ptr::NonNull, sync::atomic::AtomicU32};
use std::time::Duration;
use wharf_core::{
    env::{Deadline, Env},
    ranges::Tree,
};

/// Threads, futexes, the monotonic clock and the heap.
pub struct Os;

/// Nanoseconds on the system's monotonic clock (`CLOCK_MONOTONIC`), the one that [`Deadline`]s are given in and that the
/// plugin ABI names.
#[cfg(unix)]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// Nanoseconds since this process first asked; what [`Deadline`]s are given in.
#[cfg(not(unix))]
pub fn now_ns() -> u64 {
    use std::{sync::OnceLock, time::Instant};
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The moment `timeout` from now.
pub fn deadline(timeout: Duration) -> Deadline {
    Some(now_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)))
}

impl Env for Os {
    type Lock = OsLock;
    type Ranges = Tree<OsLock>;

    fn sleep(word: &AtomicU32, seen: u32, until: Deadline, at_most_ns: u64) -> bool {
        let left = until.map_or(u64::MAX, |until| until.saturating_sub(now_ns()));
        if left > 0 {
            let nap = left.min(at_most_ns);
            park::sleep(word, seen, (nap != u64::MAX).then(|| Duration::from_nanos(nap)));
        }
        left > 0
    }

    fn wake(word: &AtomicU32) {
        park::wake_all(word);
    }

    fn grow(layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layouts of core are not empty.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }
}
