//! The growing interval map in every order of its atomics that the memory model permits, with nodes of three keys and
//! no rest for nodes, so that few operations split, merge and use nodes again:
//! `RUSTFLAGS="--cfg loom" cargo test -p wharf-core --features alloc --test ranges_loom --release`.
#![cfg(loom)]
#![allow(clippy::unwrap_used)]

mod loom_common;

use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
};
use loom_common::{LoomLock, every_order};
use wharf_core::ranges::{Range, Reader, Tree};

type Map = Tree<LoomLock>;

fn range(at: u64) -> Range {
    Range::of(at * 16, 16, at as u32).unwrap()
}

fn filled(places: impl IntoIterator<Item = u64>) -> Arc<Map> {
    let map = Arc::new(Map::new());
    places.into_iter().for_each(|at| map.insert(range(at)).unwrap());
    map
}

/// Runs `reads` in a thread beside `writes` in this one. This way round, since loom finds the orders to try at the later
/// of two accesses, and overlooks a store after another thread's load if the storing thread has loaded in between.
fn beside(
    places: &[u64],
    preemptions: usize,
    writes: impl Fn(&Map) + Send + Sync + 'static,
    reads: impl Fn(&Map) + Clone + Send + Sync + 'static,
) {
    let places = places.to_vec();
    every_order(preemptions, move || {
        let map = filled(places.iter().copied());
        let reader = thread::spawn({
            let (map, reads) = (map.clone(), reads.clone());
            move || reads(&map)
        });
        writes(&map);
        reader.join().unwrap();
    });
}

#[test]
fn what_stays_is_found_while_its_node_is_used_again() {
    // The second takes the node that the first retired, and in it what stays is in another place.
    let writes = |map: &Map| {
        map.insert(range(0)).unwrap();
        map.insert(range(1)).unwrap();
    };
    beside(&[3], 3, writes, |map| assert_eq!(map.find(50), Some(range(3))));
}

#[test]
fn what_stays_is_found_while_inner_nodes_are_used_again() {
    let writes = |map: &Map| {
        assert!(map.remove(range(0)));
        assert!(map.remove(range(2)));
        map.insert(range(1)).unwrap();
    };
    beside(&[2, 4, 6, 8, 0], 2, writes, |map| assert_eq!(map.find(6 * 16), Some(range(6))));
}

#[test]
fn what_stays_is_found_while_leaves_split_and_merge() {
    let writes = |map: &Map| {
        map.insert(range(3)).unwrap(); // Splits.
        assert!(map.remove(range(3)));
        assert!(map.remove(range(2))); // Merges.
    };
    beside(&[2, 4, 6], 2, writes, |map| {
        assert_eq!(map.find(4 * 16 + 3), Some(range(4)));
        let found = map.find(3 * 16);
        assert!(found.is_none() || found == Some(range(3)));
    });
}

#[test]
fn what_stays_is_found_while_a_bound_moves() {
    let wide = Range::of(5 * 16, 5 * 16, 99).unwrap();
    let writes = move |map: &Map| {
        assert!(map.remove(range(6)));
        map.insert(wide).unwrap();
    };
    beside(&[2, 4, 6, 12], 2, writes, move |map| {
        assert_eq!(map.find(4 * 16 + 3), Some(range(4)));
        let found = map.find(8 * 16);
        assert!(found.is_none() || found == Some(wide));
        assert_eq!(map.next(11 * 16), Some(range(12)));
    });
}

#[test]
fn what_has_been_done_is_seen() {
    every_order(3, || {
        let (map, done) = (filled([1, 2]), Arc::new(AtomicBool::new(false)));
        let reader = thread::spawn({
            let (map, done) = (map.clone(), done.clone());
            move || {
                if done.load(Acquire) {
                    assert_eq!(map.find(16), None);
                    assert_eq!(map.find(3 * 16), Some(range(3)));
                }
            }
        });
        assert!(map.remove(range(1)));
        map.insert(range(3)).unwrap();
        done.store(true, Release);
        reader.join().unwrap();
    });
}

#[test]
fn a_reader_forgets_what_is_gone() {
    every_order(3, || {
        let (map, done) = (filled([1, 2]), Arc::new(AtomicBool::new(false)));
        let reader = thread::spawn({
            let (map, done) = (map.clone(), done.clone());
            move || {
                let mut reader = Reader::new(&*map);
                let found = reader.find(17);
                assert!(found.is_none() || found == Some(range(1)));
                let over = done.load(Acquire);
                let (first, second) = (map.find(17), reader.find(17));
                assert!(!over || (first, second) == (None, None));
                assert!(first.is_some() || second.is_none(), "what is seen gone is not seen again");
            }
        });
        assert!(map.remove(range(1)));
        done.store(true, Release);
        reader.join().unwrap();
    });
}

#[test]
fn two_writers_take_turns_beside_a_reader() {
    every_order(1, || {
        let map = filled([4]);
        let writes = |map: &Map, at| map.insert(range(at)).unwrap();
        let writer = thread::spawn({
            let map = map.clone();
            move || writes(&map, 2)
        });
        let reader = thread::spawn({
            let map = map.clone();
            move || assert_eq!(map.find(4 * 16 + 15), Some(range(4)))
        });
        writes(&map, 6);
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(map.next(80), Some(range(6)));
    });
}
