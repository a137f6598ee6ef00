//! Readers beside writers: ranges that nobody touches are found each time, whatever happens around them.
//!
//! # Safety
//! The only unsafe code is the lock's promise to let one closure run at a time.
#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)]

mod common;
use common::Rng;
use std::{
    sync::atomic::{AtomicBool, Ordering::*},
    thread,
};
use wharf_core::{
    env::Lock,
    ranges::{Range, Ranges, Tree},
};

/// A lock all of whose code is compiled with this test, so that a sanitizer sees how it orders writers. The standard library's
/// waits in code that was compiled without one.
struct Flag(AtomicBool);

// SAFETY: whoever turns the flag on is alone until it turns it off; nesting waits for ever.
unsafe impl Lock for Flag {
    const NEW: Self = Flag(AtomicBool::new(false));
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let mut f = Some(f);
        loop {
            if let Some(result) = self.try_with(|| f.take().map(|f| f())) {
                return result.unwrap();
            }
            thread::yield_now();
        }
    }
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        self.0.compare_exchange(false, true, Acquire, Relaxed).ok()?;
        let result = f();
        self.0.store(false, Release);
        Some(result)
    }
}

const WRITERS: u64 = 2;
const READERS: u64 = 3;

/// Even places stay; odd ones come and go, each in the hands of one writer, and with lengths that make them pass the
/// bounds of leaves now and then.
fn stays(at: u64) -> Range {
    Range::of(at * 256, 100, at as u32).unwrap()
}

fn churn(map: &Tree<Flag>, writer: u64, pairs: u64, rounds: u64) {
    let mut rng = Rng(writer);
    let mut held = vec![None; pairs as usize];
    for _ in 0..rounds {
        let mine = rng.below(pairs / WRITERS) * WRITERS + writer;
        let place = &mut held[mine as usize];
        match place.take() {
            Some(range) => assert!(map.remove(range)),
            None => {
                let range = Range::of((2 * mine + 1) * 256 + rng.below(100), 1 + rng.below(156), 1 << 31);
                map.insert(range.unwrap()).unwrap();
                *place = range;
            }
        }
    }
}

fn look(map: &Tree<Flag>, reader: u64, pairs: u64, done: &AtomicBool) -> u64 {
    let (mut rng, mut looks) = (Rng(reader + 100), 0);
    while !done.load(Relaxed) {
        let range = stays(2 * rng.below(pairs));
        assert_eq!(map.find(range.start + rng.below(100)), Some(range));
        assert_eq!(map.next(range.start), Some(range));
        let gap = range.end + rng.below(156);
        assert_eq!(map.find(gap), None, "between what stays and what comes and goes");
        let odd = range.start + 256 + rng.below(256);
        if let Some(found) = map.find(odd) {
            assert!(found.start <= odd && odd < found.end && found.slot == 1 << 31, "{found:?}");
            assert!(found.start / 256 % 2 == 1 && found.end <= range.start + 512, "{found:?}");
        }
        looks += 4;
    }
    looks
}

fn beside(pairs: u64, rounds: u64) {
    let (tree, done) = (Tree::<Flag>::NEW, AtomicBool::new(false));
    let (map, done) = (&tree, &done);
    (0..pairs).for_each(|at| map.insert(stays(2 * at)).unwrap());
    let looks: u64 = thread::scope(|scope| {
        let readers = (0..READERS).map(|reader| scope.spawn(move || look(map, reader, pairs, done)));
        let readers: Vec<_> = readers.collect();
        let writers = (0..WRITERS).map(|writer| scope.spawn(move || churn(map, writer, pairs, rounds)));
        let writers: Vec<_> = writers.collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Relaxed);
        ended.into_iter().for_each(|writer| writer.unwrap());
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    println!("{pairs} pairs: {looks} looks beside {} writes", WRITERS * rounds);
}

#[test]
fn what_stays_is_found_beside_writers_in_one_leaf() {
    beside(8, 40_000);
}

#[test]
fn what_stays_is_found_beside_writers_in_a_small_tree() {
    beside(500, 40_000);
}

#[test]
fn what_stays_is_found_beside_writers_in_a_deep_tree() {
    beside(50_000, 40_000);
}
