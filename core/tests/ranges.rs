//! Both forms of the interval map against one naive model: a list searched from end to end.
#![allow(clippy::unwrap_used)]

mod common;
use common::{Rng, StdLock};
use wharf_core::ranges::{Meet, Range, Ranges, Sorted, Tree, enter};

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
