//! When stamped steps began and ended: the last of each lane, for [`Gauge::times`](wharf_core::device::Gauge::times).

use crate::limits::TIMES_MAX;
use std::{
    collections::VecDeque,
    sync::{Mutex, OnceLock, PoisonError},
    time::Instant,
};
use wharf_core::device;

/// Nanoseconds on the device's clock: monotonic, from the first use in this process.
pub(crate) fn now() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    // 0 would look like "never"; a u64 of nanoseconds lasts 584 years.
    BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

/// The times of a lane's stamped steps, by value; nothing is allocated before the first.
#[derive(Default)]
pub(crate) struct Times(Mutex<VecDeque<(u64, device::Times)>>);

impl Times {
    /// Keeps a step's times; values grow.
    pub(crate) fn keep(&self, value: u64, begin_ns: u64, end_ns: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == TIMES_MAX {
            kept.pop_front();
        }
        kept.push_back((value, device::Times { begin_ns, end_ns }));
    }
    /// The times of the step that ended as `value`.
    pub(crate) fn of(&self, value: u64) -> Option<device::Times> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.binary_search_by_key(&value, |entry| entry.0).ok()?;
        kept.get(at).map(|entry| entry.1)
    }
}
