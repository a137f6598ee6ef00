//! The growing interval map in every order of its atomics that the memory model permits, with nodes of three keys and
//! one retirement of rest, so that few operations split, merge and use nodes again:
//! `RUSTFLAGS="--cfg loom" cargo test -p wharf-core --features alloc --test ranges_loom --release`.
#![cfg(loom)]
#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)] // The lock, see there.

use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
};
use std::sync::OnceLock;
use wharf_core::{
    env::Lock,
    ranges::{Range, Reader, Tree},
};

struct LoomLock(OnceLock<loom::sync::Mutex<()>>);

// SAFETY: a mutex lets one closure run at a time and deadlocks on nesting.
unsafe impl Lock for LoomLock {
    const NEW: Self = LoomLock(OnceLock::new());
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _inside = self.0.get_or_init(|| loom::sync::Mutex::new(())).lock().unwrap();
        f()
    }
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        Some(self.with(f))
    }
}

type Map = Tree<LoomLock>;

fn range(at: u64) -> Range {
    Range::of(at * 16, 16, at as u32).unwrap()
}

fn filled(places: impl IntoIterator<Item = u64>) -> Arc<Map> {
    let map = Arc::new(Map::new());
    places.into_iter().for_each(|at| map.insert(range(at)).unwrap());
    map
}

fn every_order(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 20_000;
    model.check(f);
}

#[test]
fn what_stays_is_found_while_its_leaf_is_copied_and_nodes_are_used_again() {
    every_order(3, || {
        let map = filled([1, 3]);
        // One retirement behind the readers' backs, so that the next operations use nodes again.
        assert!(map.remove(range(3)));
        let writer = thread::spawn({
            let map = map.clone();
            move || {
                map.insert(range(3)).unwrap();
                assert!(map.remove(range(3)));
                map.insert(range(0)).unwrap();
            }
        });
        assert_eq!(map.find(20), Some(range(1)));
        writer.join().unwrap();
        assert_eq!(map.find(20), Some(range(1)));
    });
}

#[test]
fn what_stays_is_found_while_leaves_split_and_merge() {
    every_order(2, || {
        let map = filled([2, 4, 6]);
        let writer = thread::spawn({
            let map = map.clone();
            move || {
                map.insert(range(3)).unwrap(); // Splits.
                assert!(map.remove(range(3)));
                assert!(map.remove(range(2))); // Merges.
            }
        });
        assert_eq!(map.find(4 * 16 + 3), Some(range(4)));
        let found = map.find(3 * 16);
        assert!(found.is_none() || found == Some(range(3)));
        writer.join().unwrap();
        assert_eq!(map.next(0), Some(range(4)));
    });
}

#[test]
fn what_stays_is_found_while_a_bound_moves() {
    every_order(2, || {
        let map = filled([2, 4, 6, 8]);
        assert!(map.remove(range(8)));
        assert!(map.remove(range(6)));
        let wide = Range::of(5 * 16, 5 * 16, 99).unwrap();
        let writer = thread::spawn({
            let map = map.clone();
            move || map.insert(wide).unwrap()
        });
        assert_eq!(map.find(4 * 16 + 3), Some(range(4)));
        let found = map.find(8 * 16);
        assert!(found.is_none() || found == Some(wide));
        writer.join().unwrap();
        assert_eq!(map.find(8 * 16), Some(wide));
    });
}

#[test]
fn what_has_been_done_is_seen() {
    every_order(3, || {
        let (map, done) = (filled([1, 2]), Arc::new(AtomicBool::new(false)));
        let writer = thread::spawn({
            let (map, done) = (map.clone(), done.clone());
            move || {
                assert!(map.remove(range(1)));
                map.insert(range(3)).unwrap();
                done.store(true, Release);
            }
        });
        if done.load(Acquire) {
            assert_eq!(map.find(16), None);
            assert_eq!(map.find(3 * 16), Some(range(3)));
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_reader_forgets_what_is_gone() {
    every_order(3, || {
        let (map, done) = (filled([1, 2]), Arc::new(AtomicBool::new(false)));
        let writer = thread::spawn({
            let (map, done) = (map.clone(), done.clone());
            move || {
                assert!(map.remove(range(1)));
                done.store(true, Release);
            }
        });
        let mut reader = Reader::new(&*map);
        let found = reader.find(17);
        assert!(found.is_none() || found == Some(range(1)));
        let over = done.load(Acquire);
        let found = (map.find(17), reader.find(17));
        if over {
            assert_eq!(found, (None, None));
        }
        assert!(found.0.is_some() || found.1.is_none(), "what one has seen gone, nobody sees again");
        writer.join().unwrap();
        assert_eq!(reader.find(17), None);
        assert_eq!(reader.find(33), Some(range(2)));
    });
}

#[test]
fn two_writers_take_turns_beside_a_reader() {
    every_order(2, || {
        let map = filled([4]);
        let writers = [2u64, 6].map(|at| {
            let map = map.clone();
            thread::spawn(move || {
                map.insert(range(at)).unwrap();
                assert!(map.remove(range(at)));
            })
        });
        assert_eq!(map.find(4 * 16 + 15), Some(range(4)));
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(map.next(0), Some(range(4)));
        assert_eq!(map.next(80), None);
    });
}
