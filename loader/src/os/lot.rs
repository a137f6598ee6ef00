//! Sleeping by address where the system has no call for it that this crate uses: a few condition variables, chosen by
//! the address.

use core::{
    ptr,
    sync::atomic::{AtomicU32, Ordering::*},
    time::Duration,
};
use std::sync::{Condvar, Mutex, PoisonError};

const ROOMS: usize = 64;

struct Room(Mutex<()>, Condvar);

static LOT: [Room; ROOMS] = [const { Room(Mutex::new(()), Condvar::new()) }; ROOMS];

fn room(word: &AtomicU32) -> &'static Room {
    &LOT[(ptr::from_ref(word) as usize >> 2) % ROOMS]
}

/// Sleeps while `*word == seen`, at most `nap`; may wake early.
pub(super) fn sleep(word: &AtomicU32, seen: u32, nap: Option<Duration>) {
    let room = room(word);
    let guard = room.0.lock().unwrap_or_else(PoisonError::into_inner);
    if word.load(Acquire) != seen {
        return;
    }
    match nap {
        Some(nap) => drop(room.1.wait_timeout(guard, nap)),
        None => drop(room.1.wait(guard)),
    }
}

/// Wakes one sleeper: all, since others may share the room.
pub(super) fn wake_one(word: &AtomicU32) {
    wake_all(word);
}

/// Wakes all sleepers.
pub(super) fn wake_all(word: &AtomicU32) {
    let room = room(word);
    drop(room.0.lock().unwrap_or_else(PoisonError::into_inner));
    room.1.notify_all();
}
