//! The trace of a run is JSON that can be matched up.
#![allow(clippy::unwrap_used)]

mod common;

use common::{StdLock, device, fill, open, read_back};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};
use wharf_core::device::{Device, Gauge, Op, Want};
use wharf_layers::{Sink, Trace};

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<String>>);

impl Sink for Kept {
    fn write(&mut self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }
}

fn run(kept: &Kept) {
    let device = device(vec![Box::new(Trace::<StdLock>::new(Box::new(kept.clone())))]);
    let block = device.allocate(&Want { len: 4096, align: 64, kind: 0, access: 0, usage: 0 }).unwrap();
    let (mut one, mut two) = (open(&device), open(&device));
    let mut bytes = [0u8; 32];
    one.submit(&[fill(block.base, 4096), read_back(block.base, &mut bytes)]).unwrap();
    two.submit(&[Op::Barrier]).unwrap();
    one.gauge.poll();
    two.gauge.poll();
    // Refused by the device: a slice with its error, and no arrow.
    let _ = one.submit(&[Op::Prefetch { at: block.base, len: 1, to_host: false }]);
    drop((one, two));
    device.free(&block).unwrap();
}

#[test]
fn arrows_lead_from_submits_to_slices_of_queues() {
    let kept = Kept::default();
    run(&kept);
    let text = kept.0.lock().unwrap().clone();
    let events: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let ids =
        |phase: &str| of(phase).iter().map(|event| event["id"].as_u64().unwrap()).collect::<BTreeSet<_>>();
    assert_eq!(ids("s"), ids("f"));
    assert_eq!((ids("s").len(), of("s").len(), of("f").len()), (3, 3, 3));
    let slices = of("X");
    let names: Vec<&str> = slices.iter().map(|slice| slice["name"].as_str().unwrap()).collect();
    for name in
        ["allocate", "open queue", "submit", "fill", "copy to the host", "barrier", "close queue", "free"]
    {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for end in of("f").into_iter().chain(of("s")) {
        let (at, tid) = (end["ts"].as_f64().unwrap(), &end["tid"]);
        let inside = |slice: &&Value| {
            let begin = slice["ts"].as_f64().unwrap();
            slice["tid"] == *tid && begin <= at && at < begin + slice["dur"].as_f64().unwrap()
        };
        assert!(slices.iter().copied().any(|slice| inside(&slice)), "no slice holds {end}");
    }
    let fill = slices.iter().find(|slice| slice["name"] == "fill").unwrap();
    assert_eq!(fill["args"]["bytes"], 4096);
    let refused = slices.iter().find(|slice| slice["args"]["error"].is_string()).unwrap();
    assert_eq!(refused["name"], "submit");
}

#[test]
fn slices_of_a_queue_do_not_overlap() {
    let kept = Kept::default();
    run(&kept);
    let events: Vec<Value> = serde_json::from_str(&kept.0.lock().unwrap()).unwrap();
    let queue: Vec<(f64, f64)> = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["tid"] == 1)
        .map(|event| (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap()))
        .collect();
    assert_eq!(queue.len(), 2);
    assert!(queue[0].0 + queue[0].1 <= queue[1].0 + 1e-6, "{queue:?}");
}

#[test]
fn a_trace_that_is_cut_off_is_whole_lines() {
    let kept = Kept::default();
    let device = device(vec![Box::new(Trace::<StdLock>::new(Box::new(kept.clone())))]);
    for _ in 0..500 {
        let block = device.allocate(&Want { len: 64, align: 64, kind: 0, access: 0, usage: 0 }).unwrap();
        device.free(&block).unwrap();
    }
    std::mem::forget(device);
    let text = kept.0.lock().unwrap().clone();
    assert!(text.len() > 10_000, "{}", text.len());
    // What readers of the format do with a file that ends early.
    serde_json::from_str::<Vec<Value>>(&format!("{text}]")).unwrap();
}
