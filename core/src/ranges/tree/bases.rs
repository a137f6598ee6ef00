//! The index of bases: a hash table in buckets of one cache line, changed by one writer under the lock of the tree.
//!
//! A bucket has a version, odd while a writer changes it. A reader takes what it read only if the version was even and the same
//! before and after; it never tries again, the tree answers instead. Versions have 32 bits: before one comes round, the tree
//! has seen [`Bases::VALID_FOR`] retirements, as a range must leave before another can take its place, and the caller checks
//! for these.
//!
//! The table doubles where it stands: memory for the upper half is added, then each entry moves to where the longer
//! hash wants it. A reader that misses a moving entry asks the tree.

use crate::ranges::{
    Range,
    sync::{Acquire, AtomicU32, AtomicU64, Relaxed, Release, fence},
};
use alloc::{boxed::Box, vec::Vec};
use core::{array, hint::select_unpredictable};
use spin::Once;

const ENTRIES: usize = 3;
/// Buckets at first.
const FIRST: usize = 8;
/// Doublings.
const LEVELS: usize = 29;
const EMPTY: u64 = u64::MAX;

#[repr(C, align(64))]
struct Bucket {
    version: AtomicU32,
    slots: [AtomicU32; ENTRIES],
    starts: [AtomicU64; ENTRIES],
    ends: [AtomicU64; ENTRIES],
}

impl Bucket {
    fn new() -> Self {
        Bucket {
            version: AtomicU32::new(0),
            slots: array::from_fn(|_| AtomicU32::new(0)),
            starts: array::from_fn(|_| AtomicU64::new(EMPTY)),
            ends: array::from_fn(|_| AtomicU64::new(0)),
        }
    }
    #[inline(always)]
    fn look(&self, start: u64) -> Option<Range> {
        let version = self.version.load(Acquire);
        let is = |at: usize| self.starts[at].load(Relaxed) == start;
        let at = select_unpredictable(is(1), 1, select_unpredictable(is(2), 2, 0));
        let range = self.range(at);
        fence(Acquire);
        (version.is_multiple_of(2) && range.start == start && self.version.load(Relaxed) == version)
            .then_some(range)
    }
    #[inline(always)]
    fn range(&self, at: usize) -> Range {
        Range {
            start: self.starts[at].load(Relaxed),
            end: self.ends[at].load(Relaxed),
            slot: self.slots[at].load(Relaxed),
        }
    }
    /// For the writer: puts `range`, or nothing, in the place at `at`.
    fn set(&self, at: usize, range: Option<Range>) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), Relaxed);
        fence(Release);
        self.starts[at].store(range.map_or(EMPTY, |range| range.start), Relaxed);
        if let Some(range) = range {
            self.ends[at].store(range.end, Relaxed);
            self.slots[at].store(range.slot, Relaxed);
        }
        self.version.store(version.wrapping_add(2), Release);
    }
    /// For the writer: the place of what begins at `start`.
    fn place(&self, start: u64) -> Option<usize> {
        (0..ENTRIES).find(|at| self.starts[*at].load(Relaxed) == start)
    }
}

/// The level that a bucket is in, and the first bucket of that level. The exponent of a float is the logarithm wanted: the
/// instruction that counts zeros is slow on much of what x86-64 stands for.
#[inline(always)]
fn level_of(at: usize) -> (usize, usize) {
    const FIRST_LEVEL: u64 = 1022 + FIRST.ilog2() as u64;
    let exponent = f64::from(at as u32).to_bits() >> 52;
    match exponent.saturating_sub(FIRST_LEVEL) as usize {
        0 => (0, 0),
        level => (level, FIRST << (level - 1)),
    }
}

/// Where ranges begin.
pub(super) struct Bases {
    levels: [Once<Box<[Bucket]>>; LEVELS],
    /// Buckets in use, a power of two; 0 at first.
    buckets: AtomicU64,
    entries: AtomicU64,
}

impl Bases {
    /// Retirements in the tree after which a version of a bucket may come round.
    pub(super) const VALID_FOR: u64 = 1 << 29;

    pub(super) const fn new() -> Self {
        Bases {
            levels: [const { Once::new() }; LEVELS],
            buckets: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        }
    }
    pub(super) fn bytes(&self) -> usize {
        self.buckets.load(Relaxed) as usize * size_of::<Bucket>()
    }

    #[inline(always)]
    fn bucket(&self, at: usize) -> Option<&Bucket> {
        let (level, below) = level_of(at);
        self.levels.get(level)?.get()?.get(at - below)
    }
    /// The two buckets, side by side, where what begins at `start` may be.
    #[inline(always)]
    fn homes(&self, start: u64) -> Option<[usize; 2]> {
        let mask = self.buckets.load(Acquire).checked_sub(1)?;
        let hash = start.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let home = ((hash ^ hash >> 32) & mask) as usize;
        Some([home, home ^ 1])
    }
    /// What begins at `start`, if the index knows.
    #[inline(always)]
    pub(super) fn look(&self, start: u64) -> Option<Range> {
        if start == EMPTY {
            return None;
        }
        let [home, beside] = self.homes(start)?;
        self.bucket(home)?.look(start).or_else(|| self.bucket(beside)?.look(start))
    }

    /// For the writer.
    pub(super) fn enter(&self, range: Range) {
        if self.entries.load(Relaxed) * 4 >= self.buckets.load(Relaxed) * 5 {
            self.double();
        }
        if self.put(range) {
            self.entries.store(self.entries.load(Relaxed) + 1, Relaxed);
        }
    }
    /// For the writer.
    pub(super) fn leave(&self, range: Range) {
        let homes = self.homes(range.start).into_iter().flatten();
        for bucket in homes.filter_map(|at| self.bucket(at)) {
            if let Some(at) = bucket.place(range.start).filter(|at| bucket.range(*at) == range) {
                bucket.set(at, None);
                self.entries.store(self.entries.load(Relaxed) - 1, Relaxed);
            }
        }
    }
    fn put(&self, range: Range) -> bool {
        let homes = self.homes(range.start).into_iter().flatten();
        for bucket in homes.filter_map(|at| self.bucket(at)) {
            if let Some(at) = bucket.place(EMPTY) {
                bucket.set(at, Some(range));
                return true;
            }
        }
        false
    }

    /// Twice the buckets; stays as it is if memory is short.
    fn double(&self) {
        let old = self.buckets.load(Relaxed) as usize;
        let added = old.max(FIRST);
        let (level, _) = level_of(old);
        let mut more = Vec::new();
        let Some(place) = self.levels.get(level) else { return };
        if more.try_reserve_exact(added).is_err() {
            return;
        }
        more.extend(core::iter::repeat_with(Bucket::new).take(added));
        place.call_once(|| more.into_boxed_slice());
        self.buckets.store((old + added) as u64, Release);
        for (at, bucket) in (0..old).filter_map(|at| Some((at, self.bucket(at)?))) {
            for entry in 0..ENTRIES {
                let range = bucket.range(entry);
                if range.start != EMPTY && self.homes(range.start).is_some_and(|homes| !homes.contains(&at)) {
                    bucket.set(entry, None);
                    if !self.put(range) {
                        self.entries.store(self.entries.load(Relaxed) - 1, Relaxed);
                    }
                }
            }
        }
    }
}
