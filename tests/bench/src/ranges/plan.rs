//! What is allocated and asked, planned before the clock runs: four heaps far apart, lengths between 512 bytes and 4 MiB
//! evenly on a logarithmic scale, bases at multiples of 512, gaps in between.

use wharf_core::ranges::Range;

/// A small generator whose seed tells all.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

const HEAPS: usize = 4;
const GRANULE: u64 = 512;

/// Where allocations may be: twice as many places as allocations.
pub(crate) struct Plan {
    /// In order of address.
    pub(crate) places: Vec<Range>,
    /// Indices of places that are allocated at first, then of the others.
    pub(crate) order: Vec<u32>,
    pub(crate) live: usize,
}

impl Plan {
    pub(crate) fn new(live: usize, rng: &mut Rng) -> Plan {
        let count = live * 2;
        let mut places = Vec::with_capacity(count);
        for heap in 0..HEAPS {
            let mut at = (heap as u64 + 1) << 44;
            for _ in count * heap / HEAPS..count * (heap + 1) / HEAPS {
                at += GRANULE * rng.below(64) as u64;
                let scale = 9.0 + 13.0 * (rng.below(1 << 20) as f64 / f64::from(1 << 20));
                let len = (scale.exp2() as u64).max(GRANULE);
                places.extend(Range::of(at, len, places.len() as u32));
                at += len.next_multiple_of(GRANULE);
            }
        }
        let mut order: Vec<u32> = (0..count as u32).collect();
        shuffle(&mut order, rng);
        // Filled in order of address, as a heap that is not yet fragmented gives memory out.
        order[..live].sort_unstable();
        Plan { places, order, live }
    }
    pub(crate) fn at(&self, place: usize) -> Range {
        self.places[self.order[place] as usize]
    }
    /// Exchanges a live place and a free one: the first is freed and the second allocated.
    pub(crate) fn swap(&mut self, rng: &mut Rng) -> (Range, Range) {
        let (out, back) = (rng.below(self.live), self.live + rng.below(self.places.len() - self.live));
        let swapped = (self.at(out), self.at(back));
        self.order.swap(out, back);
        swapped
    }
    /// An address within a live allocation, not its base.
    pub(crate) fn interior(&self, rng: &mut Rng) -> u64 {
        let range = self.at(rng.below(self.live));
        range.start + 1 + rng.below((range.end - range.start - 1) as usize) as u64
    }
    pub(crate) fn base(&self, rng: &mut Rng) -> u64 {
        self.at(rng.below(self.live)).start
    }
}

fn shuffle(all: &mut [u32], rng: &mut Rng) {
    for last in (1..all.len()).rev() {
        all.swap(last, rng.below(last + 1));
    }
}
