//! Sleeping where the writer rings. The writer stores the value, fences and looks at the counts; a sleeper counts itself,
//! fences and looks at the value again: one of the two sees the other.
//!
//! # Safety
//! The cookie of every [`Tick`](crate::tick::Tick) that core makes is a [`Timeline`] in a table that is never given
//! back; its bell and failures belong to the same store, which is static.
#![allow(unsafe_code)]

use super::{Bell, Failures, Timeline};
use crate::{env::Env, fault::Fault, sync::fence};
use core::sync::atomic::Ordering::*;

/// Wakes whoever waits for this timeline, and the pump if somebody needs it.
#[inline]
pub(crate) fn tell<E: Env>(timeline: &Timeline, bell: &Bell) {
    fence(SeqCst);
    wake::<E>(timeline);
    if bell.interest.load(Relaxed) != 0 {
        bell.ring::<E>();
    }
}

/// Wakes whoever sleeps on this timeline.
#[inline]
pub(crate) fn wake<E: Env>(timeline: &Timeline) {
    if timeline.sleepers.load(Relaxed) != 0 {
        timeline.epoch.fetch_add(1, Release);
        E::wake(&timeline.epoch);
    }
}

impl Bell {
    /// Rings for all that sleep on the bell.
    pub(crate) fn ring<E: Env>(&self) {
        self.epoch.fetch_add(1, Release);
        E::wake(&self.epoch);
    }
}

/// A lane's `tell`.
pub(crate) unsafe extern "C" fn told<E: Env>(cookie: *const ()) {
    // SAFETY: the cookie is a timeline in a table that is never given back.
    let timeline = unsafe { &*cookie.cast::<Timeline>() };
    // SAFETY: set by `begin` from a static reference before the cookie was handed out.
    if let Some(bell) = unsafe { timeline.bell.load(Relaxed).as_ref() } {
        tell::<E>(timeline, bell);
    }
}

/// A lane's `fail`.
pub(crate) unsafe extern "C" fn failed<E: Env>(cookie: *const (), why: *const Fault) {
    // SAFETY: the cookie is a timeline in a table that is never given back.
    let timeline = unsafe { &*cookie.cast::<Timeline>() };
    // SAFETY: set by `begin` from a static reference before the cookie was handed out.
    let failures: Option<&Failures> = unsafe { timeline.failures.load(Relaxed).as_ref() };
    // SAFETY: `Tick::fail` passes a fault that outlives the call.
    if let (Some(failures), Some(why)) = (failures, unsafe { why.as_ref() }) {
        let kept = failures.keep(why);
        failures.set(timeline, kept);
    }
    // SAFETY: as for this function: the same cookie.
    unsafe { told::<E>(cookie) }
}
