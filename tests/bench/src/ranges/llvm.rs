//! LLVM's structure, rebuilt: a hash map from base to allocation, a sorted vector of the bases, one mutex around both. An
//! address that is no base is searched for in the vector by a comparison that looks each probe up in the hash map; an
//! allocation or a free does that search and moves the rest of the vector.
//!
//! The hash map is made as LLVM makes its dense map: open addressing in a power of two of buckets, pointer hash of
//! two shifts, quadratic probing, tombstones, at most three quarters full.

use super::Map;
use std::sync::Mutex;
use wharf_core::ranges::Range;

/// What is known of an allocation: device, kind, first and last address.
#[derive(Clone, Copy, Default)]
struct Info {
    device: u64,
    kind: u32,
    start: u64,
    end: u64,
}

const EMPTY: u64 = u64::MAX << 12;
const TOMB: u64 = EMPTY - (1 << 12);
const BUCKETS_MIN: usize = 64;

#[derive(Default)]
struct Dense {
    buckets: Box<[(u64, Info)]>,
    live: usize,
    tombs: usize,
}

impl Dense {
    /// The bucket that holds the key, or the one to put it into.
    fn look(&self, key: u64) -> Result<usize, usize> {
        let mask = self.buckets.len() - 1;
        let mut at = ((key >> 4) as u32 ^ (key >> 9) as u32) as usize & mask;
        let (mut step, mut tomb) = (1, None);
        loop {
            match self.buckets[at].0 {
                held if held == key => return Ok(at),
                EMPTY => return Err(tomb.unwrap_or(at)),
                TOMB if tomb.is_none() => tomb = Some(at),
                _ => {}
            }
            at = (at + step) & mask;
            step += 1;
        }
    }
    fn get(&self, key: u64) -> Option<&Info> {
        if self.buckets.is_empty() {
            return None;
        }
        self.look(key).ok().map(|at| &self.buckets[at].1)
    }
    fn at(&self, key: u64) -> &Info {
        self.get(key).expect("every base is in the map")
    }
    fn insert(&mut self, key: u64, info: Info) {
        let buckets = self.buckets.len();
        if (self.live + 1) * 4 >= buckets * 3 {
            self.rebuild((buckets * 2).max(BUCKETS_MIN));
        } else if buckets - (self.live + 1 + self.tombs) <= buckets / 8 {
            self.rebuild(buckets);
        }
        if let Err(at) = self.look(key) {
            self.tombs -= usize::from(self.buckets[at].0 == TOMB);
            self.buckets[at] = (key, info);
            self.live += 1;
        }
    }
    fn rebuild(&mut self, buckets: usize) {
        let blank = vec![(EMPTY, Info::default()); buckets].into_boxed_slice();
        let old = std::mem::replace(&mut self.buckets, blank);
        self.tombs = 0;
        for (key, info) in old.into_iter().filter(|(key, _)| *key != EMPTY && *key != TOMB) {
            if let Err(at) = self.look(key) {
                self.buckets[at] = (key, info);
            }
        }
    }
    fn erase(&mut self, key: u64) {
        if let Ok(at) = self.look(key) {
            self.buckets[at].0 = TOMB;
            self.live -= 1;
            self.tombs += 1;
        }
    }
}

#[derive(Default)]
struct Inside {
    map: Dense,
    bases: Vec<u64>,
}

impl Inside {
    /// The first base whose allocation ends after the address.
    fn lower_bound(&self, address: u64) -> usize {
        self.bases.partition_point(|base| self.map.at(*base).end <= address)
    }
}

/// The peer.
#[derive(Default)]
pub(crate) struct Llvm(Mutex<Inside>);

impl Map for Llvm {
    fn new() -> Self {
        Self::default()
    }
    fn insert(&self, range: Range) {
        let mut inside = self.0.lock().expect("nobody panics inside");
        let at = inside.lower_bound(range.start);
        let clash = inside.bases.get(at).is_some_and(|base| inside.map.at(*base).start < range.end);
        assert!(!clash, "planned allocations do not overlap");
        let info = Info { device: 1, kind: range.slot, start: range.start, end: range.end };
        inside.map.insert(range.start, info);
        inside.bases.insert(at, range.start);
    }
    fn remove(&self, range: Range) {
        let mut inside = self.0.lock().expect("nobody panics inside");
        assert!(
            inside.map.get(range.start).is_some_and(|info| info.device == 1 && info.kind == range.slot),
            "it is there"
        );
        let at = inside.bases.partition_point(|base| *base < range.start); // A free compares plain addresses.
        inside.map.erase(range.start);
        inside.bases.remove(at);
    }
    #[inline]
    fn find(&self, address: u64) -> u64 {
        let inside = self.0.lock().expect("nobody panics inside");
        if let Some(info) = inside.map.get(address) {
            return info.end;
        }
        match inside.bases.get(inside.lower_bound(address)).map(|base| inside.map.at(*base)) {
            Some(info) if info.start <= address => info.end,
            _ => 0,
        }
    }
    fn find_base(&self, address: u64) -> u64 {
        self.find(address)
    }
}
