//! All forms of the interval map against one naive model, a list searched from end to end; the growing ones, at sizes
//! where that would take too long, against an ordered map that forms no opinion on overlaps.
#![allow(clippy::unwrap_used)]

mod common;
use common::{Rng, StdLock};
use std::collections::BTreeMap;
use wharf_core::ranges::{Indexed, Locked, Meet, Range, Ranges, Sorted, Tree, enter};

#[derive(Default)]
struct Naive(Vec<Range>);

impl Naive {
    fn insert(&mut self, new: Range, capacity: usize) -> Result<(), Meet> {
        if let Some(held) =
            self.0.iter().filter(|r| r.start < new.end && new.start < r.end).min_by_key(|r| r.start)
        {
            return Err(Meet::Range(*held));
        }
        if self.0.len() == capacity {
            return Err(Meet::Full);
        }
        self.0.push(new);
        Ok(())
    }
    fn remove(&mut self, old: Range) -> bool {
        let before = self.0.len();
        self.0.retain(|r| *r != old);
        self.0.len() < before
    }
    fn find(&self, address: u64) -> Option<Range> {
        self.0.iter().find(|r| r.start <= address && address < r.end).copied()
    }
    fn next(&self, from: u64) -> Option<Range> {
        self.0.iter().filter(|r| r.start >= from).min_by_key(|r| r.start).copied()
    }
}

fn agrees<R: Ranges>(capacity: usize, span: u64, rounds: u32, seed: u64) {
    let (map, mut model, mut rng) = (R::NEW, Naive::default(), Rng(seed));
    // Near 0, in the middle and at the very end of the address space.
    let homes = [0u64, 1 << 40, u64::MAX - span * 2];
    for i in 0..rounds {
        let home = homes[rng.below(3) as usize];
        let start = home + rng.below(span);
        match rng.below(4) {
            0 => {
                let range = Range::of(start, 1 + rng.below(90), i % 1000).unwrap();
                assert_eq!(map.insert(range), model.insert(range, capacity), "seed {seed} round {i}");
            }
            1 if !model.0.is_empty() => {
                let mut range = model.0[rng.below(model.0.len() as u64) as usize];
                if rng.below(3) == 0 {
                    range.slot += 1; // Somebody else's: stays.
                }
                assert_eq!(map.remove(range), model.remove(range), "seed {seed} round {i}");
            }
            2 => assert_eq!(map.next(start), model.next(start)),
            _ => assert_eq!(map.find(start), model.find(start), "seed {seed} round {i} address {start:#x}"),
        }
    }
    let mut from = 0;
    let mut listed = vec![];
    while let Some(range) = map.next(from) {
        listed.push(range);
        from = range.end;
    }
    model.0.sort_by_key(|r| r.start);
    assert_eq!(listed, model.0, "listing in order");
}

#[test]
fn sorted_agrees_with_the_model() {
    for seed in 0..20 {
        agrees::<Sorted<StdLock, 64>>(64, 4000, 20_000, seed);
    }
}

#[test]
fn tree_agrees_with_the_model() {
    for seed in 0..20 {
        agrees::<Tree<StdLock>>(usize::MAX, 100_000, 20_000, seed);
    }
}

#[test]
fn locked_agrees_with_the_model() {
    for seed in 0..5 {
        agrees::<Locked<StdLock>>(usize::MAX, 100_000, 20_000, seed);
    }
}

/// Ranges of one granule and up to three, so that neighbours touch, gaps are small, and bounds of leaves are passed.
fn granules(rng: &mut Rng, among: u64) -> Range {
    let start = rng.below(among) * 64;
    Range::of(start, 64 * (1 + rng.below(3)), (start / 64) as u32).unwrap()
}

/// Whatever begins before `range` ends, and is not over before it begins.
fn met(model: &BTreeMap<u64, Range>, range: &Range) -> Option<Range> {
    let before = model.range(..range.start).next_back().map(|(_, r)| *r).filter(|r| r.end > range.start);
    before.or_else(|| model.range(range.start..range.end).next().map(|(_, r)| *r))
}

fn holds(model: &BTreeMap<u64, Range>, address: u64) -> Option<Range> {
    model.range(..=address).next_back().map(|(_, r)| *r).filter(|r| address < r.end)
}

fn same<R: Ranges>(map: &R, model: &BTreeMap<u64, Range>) {
    let (mut from, mut listed) = (0, vec![]);
    while let Some(range) = map.next(from) {
        listed.push(range);
        from = range.end;
    }
    assert!(listed.iter().eq(model.values()), "listing in order");
    for range in &listed {
        for address in [range.start, range.end - 1, range.end, range.start.saturating_sub(1)] {
            assert_eq!(map.find(address), holds(model, address), "address {address:#x}");
        }
    }
}

/// Grows to about `size`, churns, shrinks to nothing, and once more.
fn lives<R: Ranges>(size: u64, seed: u64) {
    let (map, mut model, mut rng) = (R::NEW, BTreeMap::new(), Rng(seed));
    for _ in 0..2 {
        for (inserts_of_ten, rounds) in [(9, size), (5, size), (1, size * 2)] {
            for _ in 0..rounds {
                let range = granules(&mut rng, size * 3);
                if rng.below(10) < inserts_of_ten {
                    let expected = met(&model, &range).map_or(Ok(()), |held| Err(Meet::Range(held)));
                    assert_eq!(map.insert(range), expected, "seed {seed}");
                    if expected.is_ok() {
                        model.insert(range.start, range);
                    }
                } else if let Some(held) = model.range(range.start..).next().map(|(_, r)| *r) {
                    assert!(map.remove(held), "seed {seed}");
                    assert!(!map.remove(held), "seed {seed}");
                    model.remove(&held.start);
                }
                assert_eq!(map.find(range.end), holds(&model, range.end), "seed {seed}");
            }
            same(&map, &model);
        }
        while let Some((_, range)) = model.pop_first() {
            assert!(map.remove(range));
        }
        assert_eq!(map.next(0), None);
    }
}

#[test]
fn tree_agrees_with_an_ordered_map_at_all_sizes() {
    for (size, seeds) in [(4, 20), (40, 20), (400, 8), (4_000, 2), (100_000, 1)] {
        for seed in 0..seeds {
            lives::<Tree<StdLock>>(size, seed);
        }
    }
}

#[test]
fn indexed_agrees_with_an_ordered_map() {
    for (size, seeds) in [(4, 20), (400, 10), (4_000, 2)] {
        for seed in 0..seeds {
            lives::<Indexed<StdLock>>(size, seed);
        }
    }
}

#[test]
fn bases_are_found_and_nothing_else_is_one() {
    let (map, mut rng, mut model) = (Indexed::<StdLock>::NEW, Rng(7), BTreeMap::new());
    for round in 0..30_000u32 {
        let range = Range::of(rng.below(5_000) * 64, 64, round).unwrap();
        match model.remove(&range.start) {
            Some(held) => {
                assert!(!map.remove(range), "somebody else's");
                assert!(map.remove(held));
            }
            None => {
                map.insert(range).unwrap();
                model.insert(range.start, range);
            }
        }
        let asked = rng.below(5_000) * 64;
        assert_eq!(map.find_base(asked), model.get(&asked).copied());
        assert_eq!(map.find_base(asked + 1), None);
    }
}

#[test]
fn a_reader_says_what_the_tree_says() {
    let (map, mut rng) = (Indexed::<StdLock>::NEW, Rng(8));
    let mut reader = map.reader();
    for round in 0..20_000u32 {
        let range = Range::of(rng.below(12) * 64, 1 + rng.below(64), round).unwrap();
        match map.next(range.start).filter(|held| held.start == range.start) {
            Some(held) if rng.below(8) == 0 => assert!(map.remove(held)),
            Some(_) => {}
            None => map.insert(range).unwrap(),
        }
        let asked = rng.below(12 * 64);
        assert_eq!(reader.find(asked), map.find(asked));
    }
}

#[test]
fn any_order_of_filling_and_emptying() {
    type Order = (&'static str, fn(u64, u64) -> u64);
    let orders: [Order; 4] = [
        ("ascending", |i, _| i),
        ("descending", |i, n| n - 1 - i),
        ("alternating", |i, n| if i % 2 == 0 { i / 2 } else { n - 1 - i / 2 }),
        ("strewn", |i, n| i * 7919 % n),
    ];
    let map = Tree::<StdLock>::NEW;
    for n in [1, 2, 31, 32, 33, 1_000, 5_000] {
        let range = |at: u64| Range::of(at * 4096, 4096, at as u32).unwrap();
        for (filling, fill) in orders {
            for (emptying, empty) in orders {
                (0..n).for_each(|i| assert_eq!(map.insert(range(fill(i, n))), Ok(()), "{filling} {n}"));
                for at in [0, n / 2, n - 1] {
                    assert_eq!(map.find(at * 4096 + 4095), Some(range(at)), "{filling} {n}");
                    assert_eq!(map.insert(range(at)), Err(Meet::Range(range(at))), "{filling} {n}");
                }
                for i in 0..n {
                    let out = range(empty(i, n));
                    assert!(map.remove(out), "{filling} {emptying} {n}");
                    assert_eq!(map.find(out.start), None, "{filling} {emptying} {n}");
                }
                assert_eq!(map.next(0), None, "{filling} {emptying} {n}");
            }
        }
    }
}

#[test]
fn memory_is_used_again() {
    let map = Tree::<StdLock>::NEW;
    let range = |at: u64| Range::of(at * 4096, 4096, 0).unwrap();
    (0..1_000).for_each(|at| map.insert(range(at)).unwrap());
    (0..1_000).for_each(|at| assert!(map.remove(range(at))));
    let bytes = map.bytes();
    for _ in 0..50 {
        (0..1_000).for_each(|at| map.insert(range(at)).unwrap());
        (0..1_000).rev().for_each(|at| assert!(map.remove(range(at))));
    }
    assert!(map.bytes() <= bytes + bytes / 2, "{} bytes, then {}", bytes, map.bytes());
}

#[test]
fn a_range_may_lie_across_what_used_to_be_many() {
    let map = Tree::<StdLock>::NEW;
    let small = |at: u64| Range::of(at * 16, 16, at as u32).unwrap();
    (0..10_000).for_each(|at| map.insert(small(at)).unwrap());
    (100..9_900).for_each(|at| assert!(map.remove(small(at))));
    let wide = Range { start: small(100).start, end: small(9_900).start, slot: 7 };
    let more = Range { end: wide.end + 1, ..wide };
    assert_eq!(map.insert(more), Err(Meet::Range(small(9_900))));
    assert_eq!(map.insert(wide), Ok(()));
    for at in 0..10_000 {
        let held = if (100..9_900).contains(&at) { wide } else { small(at) };
        assert_eq!(map.find(at * 16 + 5), Some(held));
    }
    assert_eq!(map.next(wide.start + 1), Some(small(9_900)));
}

#[test]
fn ends_are_checked() {
    assert_eq!(Range::of(u64::MAX, 1, 0), None);
    assert_eq!(Range::of(u64::MAX - 1, 1, 0).unwrap().end, u64::MAX);
    assert_eq!(Range::of(5, 0, 0), None);
    assert_eq!(Range::of(3, u64::MAX - 1, 0), None);
}

#[test]
fn an_address_given_again_before_the_old_range_left_is_taken_over() {
    let map = Tree::<StdLock>::NEW;
    let old = [Range::of(64, 64, 1).unwrap(), Range::of(128, 64, 2).unwrap()];
    old.iter().for_each(|r| map.insert(*r).unwrap());
    let new = Range::of(96, 64, 3).unwrap();
    assert_eq!(enter(&map, new, |slot| slot == 1), Err(Meet::Range(old[1])), "a live one is a clash");
    assert_eq!(map.find(64), None, "what was on its way out is out");
    assert_eq!(enter(&map, new, |_| true), Ok(()));
    assert_eq!(map.find(130), Some(new));
    assert!(!map.remove(old[1]), "the late remove of the old range takes nothing away");
    assert_eq!(map.find(130), Some(new));
}
