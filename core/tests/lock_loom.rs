//! The loader's lock of lanes and tables in every order of its atomics; the file is the loader's own, on loom's atomics:
//! `RUSTFLAGS="--cfg loom" cargo test -p wharf-core --features alloc --test lock_loom --release`.
//!
//! # Safety
//! The number is touched inside the lock only, and loom fails a run in which two accesses are not ordered.
#![cfg(loom)]
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, unsafe_code)]

mod loom_common;
#[path = "../../loader/src/os/lock.rs"]
mod os_lock;

/// What the lock's file finds beside it.
mod sync {
    pub(super) use wharf_core::sync::{AtomicU32, fence};
}

/// A futex: who sleeps looks at the word once more, with the other side shut out.
mod park {
    use super::sync::AtomicU32;
    use loom::sync::{Condvar, Mutex};
    use std::{
        cell::RefCell,
        sync::{Arc, atomic::Ordering::*},
        time::Duration,
    };

    type Lot = Arc<(Mutex<()>, Condvar)>;
    thread_local! {
        static LOT: RefCell<Option<Lot>> = const { RefCell::new(None) };
    }

    /// Makes the one of this run; loom runs all threads of a model on one thread.
    pub(super) fn begin() {
        LOT.set(Some(Arc::new((Mutex::new(()), Condvar::new()))));
    }
    pub(super) fn end() {
        LOT.set(None);
    }
    fn lot() -> Lot {
        LOT.with_borrow(|lot| lot.clone().unwrap())
    }
    pub(super) fn sleep(word: &AtomicU32, seen: u32, _: Option<Duration>) {
        let lot = lot();
        let guard = lot.0.lock().unwrap();
        if word.load(Acquire) == seen {
            drop(lot.1.wait(guard).unwrap());
        }
    }
    pub(super) fn wake_one(_: &AtomicU32) {
        let lot = lot();
        drop(lot.0.lock().unwrap());
        lot.1.notify_one();
    }
}

use loom::{cell::UnsafeCell, sync::Arc, thread};
use loom_common::every_order;
use os_lock::OsLock;
use wharf_core::env::Lock;

/// Threads add to one number, which loom watches for accesses that are not ordered.
fn adds(others: usize, preemptions: usize) {
    every_order(preemptions, move || {
        park::begin();
        let shared = Arc::new((OsLock::NEW, UnsafeCell::new(0u32)));
        shared.0.with(|| ()); // Makes loom's atomics.
        let threads: Vec<_> = (0..others)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || add(&shared.0, &shared.1))
            })
            .collect();
        add(&shared.0, &shared.1);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // SAFETY: inside the lock, and nobody else is left.
        shared.0.with(|| shared.1.with(|n| assert_eq!(unsafe { *n }, others as u32 + 1)));
        park::end();
    });
}

fn add(lock: &OsLock, n: &UnsafeCell<u32>) {
    // SAFETY: inside the lock.
    lock.with(|| n.with_mut(|n| unsafe { *n += 1 }));
}

#[test]
fn one_is_inside_at_a_time_and_who_sleeps_is_woken() {
    adds(1, 4);
}

#[test]
fn three_threads_get_their_turns() {
    adds(2, 2);
}
