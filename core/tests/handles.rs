//! Handles: stale, foreign, wrong-kind, zero and random ones are errors, never another object.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use std::collections::HashMap;
use wharf_core::{
    device::Want,
    fault::Kind,
    handle::{Body, Handle, Slot, Table},
};

struct Cell(std::sync::atomic::AtomicU64);
impl Body for Cell {
    const NEW: Self = Cell(std::sync::atomic::AtomicU64::new(0));
    const KIND: u8 = 9;
}

fn table(first: usize) -> Table<StdLock, Cell> {
    let slots: Vec<Slot<Cell>> = (0..first).map(|_| Slot::NEW).collect();
    Table::new(slots.leak(), 3)
}

#[test]
fn a_table_agrees_with_a_map() {
    let table = table(4);
    let (mut live, mut dead, mut rng) = (HashMap::new(), vec![], Rng(11));
    for i in 0..20_000u64 {
        match rng.below(3) {
            0 => {
                let h = table.insert::<Os>(|c, _| c.0.store(i, std::sync::atomic::Ordering::SeqCst)).unwrap();
                assert!(live.insert(h.raw(), i).is_none(), "a live handle is never given twice");
            }
            1 => {
                if let Some(&raw) = live.keys().next() {
                    let h = Handle::<Cell>::from_raw(raw);
                    assert!(table.end(h));
                    assert!(!table.end(h), "a turn ends once");
                    live.remove(&raw);
                    dead.push(raw);
                }
            }
            _ => {
                for (raw, value) in live.iter().take(5) {
                    let found = table.get(Handle::from_raw(*raw)).unwrap();
                    assert_eq!(found.0.load(std::sync::atomic::Ordering::SeqCst), *value);
                }
                for raw in dead.iter().rev().take(20) {
                    assert!(table.get(Handle::from_raw(*raw)).is_none());
                }
            }
        }
    }
}

#[test]
fn a_fixed_table_refuses_one_past_its_capacity() {
    let table = table(4);
    for _ in 0..4 {
        table.insert::<Fixed>(|_, _| ()).unwrap();
    }
    assert!(table.insert::<Fixed>(|_, _| ()).is_none());
}

#[test]
fn a_million_random_numbers_name_nothing() {
    let (rt, _) = growing(1);
    let q = rt.queue(0, Default::default()).unwrap();
    let t = rt.timeline(0).unwrap();
    let m = rt.allocate(0, &Want { len: 64, align: 0, kind: 0, access: 0, usage: 0 }).unwrap();
    let good = [q.raw(), t.raw(), m.raw(), rt.tail(q).unwrap().timeline.raw()];
    let mut rng = Rng(5);
    for _ in 0..1_000_000 {
        // Half of them differ from a good one in a few bits.
        let raw =
            if rng.below(2) == 0 { rng.next() } else { good[rng.below(4) as usize] ^ (1 << rng.below(64)) };
        if good.contains(&raw) {
            continue;
        }
        assert_eq!(rt.tail(Handle::from_raw(raw)).unwrap_err().kind, Kind::InvalidHandle);
        assert_eq!(rt.query(Handle::from_raw(raw)).unwrap_err().kind, Kind::InvalidHandle);
        assert_eq!(rt.allocation(Handle::from_raw(raw)).unwrap_err().kind, Kind::InvalidHandle);
    }
    assert!(rt.tail(q).is_ok() && rt.query(t).is_ok() && rt.allocation(m).is_ok());
}

#[test]
fn handles_of_another_kind_or_runtime_are_refused() {
    let ((rt, _), (other, _)) = (growing(1), fixed());
    let (t, theirs) = (rt.timeline(0).unwrap(), other.timeline(0).unwrap());
    assert_eq!(rt.query(theirs).unwrap_err().kind, Kind::InvalidHandle);
    assert_eq!(other.query(t).unwrap_err().kind, Kind::InvalidHandle);
    assert_eq!(rt.tail(Handle::from_raw(t.raw())).unwrap_err().kind, Kind::InvalidHandle);
    assert_eq!(rt.query(Handle::NULL).unwrap_err().kind, Kind::InvalidHandle);
}
