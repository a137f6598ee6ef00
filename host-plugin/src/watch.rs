//! Who waits for a track to get somewhere: sleeping threads and parked tracks, each for a value.

use crate::{ring::Apart, track::Track};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::*},
    },
    thread::Thread,
};

/// Whom to wake.
pub(crate) enum Who {
    Thread(Thread),
    Track(Arc<Track>),
}

impl Who {
    fn is(&self, other: &Who) -> bool {
        match (self, other) {
            (Who::Thread(a), Who::Thread(b)) => a.id() == b.id(),
            (Who::Track(a), Who::Track(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

#[derive(Default)]
struct Inner {
    list: Vec<(u64, Who)>,
    over: bool,
}

/// The waiters of a track.
pub(crate) struct Watches {
    /// Least value that somebody waits for; 0 once the lane is over, so that its runner looks up.
    least: Apart<AtomicU64>,
    inner: Mutex<Inner>,
}

impl Default for Watches {
    fn default() -> Self {
        Self { least: Apart(AtomicU64::new(u64::MAX)), inner: Mutex::default() }
    }
}

impl Watches {
    /// The least value that somebody waits for. Who enters passes a heavy fence before looking at the timeline.
    #[inline]
    pub(crate) fn least(&self) -> u64 {
        self.least.0.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, inner: &Inner) {
        let least = inner.list.iter().map(|(value, _)| *value).min().unwrap_or(u64::MAX);
        self.least.0.store(if inner.over { 0 } else { least }, SeqCst);
    }

    /// Enters `who` for `value` in place of an earlier entry.
    pub(crate) fn enter(&self, value: u64, who: Who) {
        let mut inner = self.lock();
        inner.list.retain(|(_, other)| !other.is(&who));
        inner.list.push((value, who));
        self.show(&inner);
    }

    /// Strikes `who` out, if it is there.
    pub(crate) fn leave(&self, who: &Who) {
        let mut inner = self.lock();
        inner.list.retain(|(_, other)| !other.is(who));
        self.show(&inner);
    }

    /// From now on the least value is 0.
    pub(crate) fn end(&self) {
        let mut inner = self.lock();
        inner.over = true;
        self.show(&inner);
    }

    /// Takes out all who wait for `reached` or less; everybody at the end.
    pub(crate) fn take(&self, reached: u64) -> Vec<Who> {
        let mut inner = self.lock();
        let over = inner.over;
        let (due, rest) =
            std::mem::take(&mut inner.list).into_iter().partition(|(value, _)| over || *value <= reached);
        inner.list = rest;
        self.show(&inner);
        let due: Vec<(u64, Who)> = due;
        due.into_iter().map(|(_, who)| who).collect()
    }
}
