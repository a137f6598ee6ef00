//! Each sort of finding, provoked once, and a clean run that is silent.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Dev, device, fill, open, read_back};
use std::sync::{Arc, Mutex};
use wharf_core::device::{Block, Device, Gauge, Hint, HostAccess, Lane, Op, PEER_HOST, Programs, Step, Want};
use wharf_layers::{Finding, FindingKind, Validation};

type Found = Arc<Mutex<Vec<Finding>>>;

fn validated() -> (Dev, Found) {
    let found = Found::default();
    let all = found.clone();
    let layer = Validation::<common::StdLock>::new(move |finding| all.lock().unwrap().push(finding.clone()));
    (device(vec![Box::new(layer)]), found)
}

fn want(len: u64) -> Want {
    Want { len, align: 64, kind: 0, access: 0, usage: 0 }
}

/// What was found since the last look, as text.
fn taken(found: &Found) -> Vec<(FindingKind, String)> {
    found.lock().unwrap().drain(..).map(|finding| (finding.kind, finding.message)).collect()
}

fn only(found: &Found, kind: FindingKind, part: &str) {
    let all = taken(found);
    assert!(all.len() == 1 && all[0].0 == kind && all[0].1.contains(part), "{kind:?} `{part}`: {all:?}");
}

#[test]
fn a_clean_run_is_silent() {
    let (device, found) = validated();
    let block = device.allocate(&want(4096)).unwrap();
    let program = device.load(wharf_null::IMAGE).unwrap();
    let mut queue = open(&device);
    let mut bytes = [0u8; 64];
    queue.submit(&[fill(block.base, 4096), read_back(block.base, &mut bytes)]).unwrap();
    queue.gauge.poll();
    assert_eq!((queue.reached(), bytes), (2, [7; 64]));
    let at = device.map(&block, 0, 64).unwrap();
    assert!(!at.is_null());
    device.sync(&block, 0, 64, true).unwrap();
    queue.submit(&[fill(block.base, 64)]).unwrap();
    queue.gauge.poll();
    device.unmap(&block, 0, 64).unwrap();
    drop(queue);
    device.unload(program).unwrap();
    device.free(&block).unwrap();
    drop(device);
    assert_eq!(taken(&found), []);
}

#[test]
fn wants_outside_the_rules_are_found() {
    let (device, found) = validated();
    for (wrong, part) in
        [(Want { len: 0, ..want(1) }, "0 bytes"), (Want { align: 3, ..want(1) }, "alignment 3")]
    {
        let _ = device.allocate(&wrong).map(|block| device.free(&block));
        only(&found, FindingKind::Parameter, part);
    }
}

#[test]
fn operations_outside_what_the_device_takes_are_found() {
    let (device, found) = validated();
    let block = device.allocate(&want(4096)).unwrap();
    let mut queue = open(&device);
    let zeroes = [0u8; 512];
    let launch = |kernel, args, groups| Op::Launch { kernel, groups, size: [1; 3], shared: 0, args };
    for (op, kind, part) in [
        (Op::Fill { to: block.base, len: 5, pattern: &[1, 2] }, FindingKind::Parameter, "not a multiple"),
        (Op::Fill { to: block.base, len: 5, pattern: &[] }, FindingKind::Parameter, "pattern of 0 bytes"),
        (Op::Update { to: block.base, bytes: &[] }, FindingKind::Parameter, "0 bytes at once"),
        (Op::Prefetch { at: block.base, len: 1, to_host: false }, FindingKind::Parameter, "does not take"),
        (launch(99, &[], [1; 3]), FindingKind::Lifetime, "kernel 0x63"),
        (fill(block.base + 4090, 8), FindingKind::Range, "end past the block"),
        (fill(0x10, 8), FindingKind::Range, "no memory that lives"),
    ] {
        let _ = queue.lane.submit(&[Step { op, done: 0, tell: false, stamp: false }], Hint::None);
        only(&found, kind, part);
        queue = open(&device);
    }
    let program = device.load(wharf_null::IMAGE).unwrap();
    let mut name = [0; 64];
    let (len, _) = device.symbol(program, 0, &mut name).unwrap().unwrap();
    let kernel = device.kernel(program, &name[..len], &[]).unwrap();
    for (op, part) in [
        (launch(kernel.native, &zeroes[..300], [1; 3]), "bytes of arguments"),
        (launch(kernel.native, &zeroes[..kernel.args_len.min(256) as usize], [0, 1, 1]), "a zero"),
        (
            Op::Launch {
                kernel: kernel.native,
                groups: [1; 3],
                size: [1024, 1, 1],
                shared: 0,
                args: &zeroes[..kernel.args_len.min(256) as usize],
            },
            "work-items",
        ),
        (
            Op::Launch {
                kernel: kernel.native,
                groups: [1; 3],
                size: [1; 3],
                shared: 1 << 20,
                args: &zeroes[..kernel.args_len.min(256) as usize],
            },
            "shared memory",
        ),
    ] {
        let mut queue = open(&device);
        let _ = queue.lane.submit(&[Step { op, done: 0, tell: false, stamp: false }], Hint::None);
        let all = taken(&found);
        let fits =
            |(kind, text): &(FindingKind, String)| *kind == FindingKind::Parameter && text.contains(part);
        assert!(all.iter().any(fits), "{part}: {all:?}");
    }
}

#[test]
fn memory_after_its_end_is_found() {
    let (device, found) = validated();
    let block = device.allocate(&want(4096)).unwrap();
    device.free(&block).unwrap();
    let _ = device.free(&block);
    only(&found, FindingKind::Lifetime, "freed before by call");
    let mut queue = open(&device);
    queue.submit(&[fill(block.base, 8)]).unwrap_or_default();
    only(&found, FindingKind::Lifetime, "freed by call");
    let _ = device.map(&block, 0, 8);
    only(&found, FindingKind::Lifetime, "map");
    let stranger = Block { base: 0x1234, len: 8, native: 0 };
    let _ = device.free(&stranger);
    only(&found, FindingKind::Lifetime, "did not give out");
}

#[test]
fn a_pointer_to_freed_memory_in_arguments_is_found() {
    let (device, found) = validated();
    let program = device.load(wharf_null::IMAGE).unwrap();
    let mut name = [0; 64];
    let (len, _) = device.symbol(program, 0, &mut name).unwrap().unwrap();
    let kernel = device.kernel(program, &name[..len], &[]).unwrap();
    let block = device.allocate(&want(4096)).unwrap();
    device.free(&block).unwrap();
    let len = if kernel.args_len == u32::MAX { 8 } else { kernel.args_len as usize };
    let mut args = vec![0u8; len];
    args[..8].copy_from_slice(&(block.base + 16).to_le_bytes());
    let mut queue = open(&device);
    let launch = Op::Launch { kernel: kernel.native, groups: [1; 3], size: [1; 3], shared: 0, args: &args };
    let _ = queue.submit(&[launch]);
    only(&found, FindingKind::Lifetime, "argument at byte 0 points into");
}

#[test]
fn what_is_given_back_while_in_use_is_found() {
    let (device, found) = validated();
    let block = device.allocate(&want(4096)).unwrap();
    let program = device.load(wharf_null::IMAGE).unwrap();
    let mut name = [0; 64];
    let (len, _) = device.symbol(program, 0, &mut name).unwrap().unwrap();
    let kernel = device.kernel(program, &name[..len], &[]).unwrap();
    let mut queue = open(&device);
    queue.submit(&[fill(block.base, 8)]).unwrap();
    device.free(&block).unwrap();
    only(&found, FindingKind::Lifetime, "work under way on queue 1 uses");
    let args = vec![0u8; if kernel.args_len == u32::MAX { 0 } else { kernel.args_len as usize }];
    queue
        .submit(&[Op::Launch { kernel: kernel.native, groups: [1; 3], size: [1; 3], shared: 0, args: &args }])
        .unwrap();
    device.unload(program).unwrap();
    only(&found, FindingKind::Lifetime, "is under way on queue 1");
    let _ = device.unload(program);
    only(&found, FindingKind::Lifetime, "is not loaded");
    drop(queue);
    only(&found, FindingKind::Lifetime, "2 operations under way");
}

#[test]
fn a_mapping_that_the_device_may_not_see_is_told_of_once() {
    let (device, found) = validated();
    let block = device.allocate(&want(4096)).unwrap();
    device.map(&block, 0, 4096).unwrap();
    let mut queue = open(&device);
    let mut bytes = [0u8; 8];
    queue.submit(&[read_back(block.base, &mut bytes), fill(block.base, 8)]).unwrap();
    queue.gauge.poll();
    only(&found, FindingKind::Mapping, "neither flushed nor unmapped");
}

#[test]
fn points_that_do_not_grow_are_found() {
    let (device, found) = validated();
    let mut queue = open(&device);
    for done in [5, 5] {
        queue.lane.submit(&[Step { op: Op::Barrier, done, tell: true, stamp: false }], Hint::None).unwrap();
    }
    queue.gauge.poll();
    only(&found, FindingKind::Order, "ends as 5, after 5");
}

#[test]
fn what_is_left_over_is_named_with_its_size_and_call() {
    let (device, found) = validated();
    let block = device.allocate(&want(4096)).unwrap();
    device.load(wharf_null::IMAGE).unwrap();
    std::mem::forget(open(&device));
    drop(device);
    let all: Vec<String> =
        taken(&found).into_iter().map(|(kind, text)| format!("{}: {text}", kind.name())).collect();
    assert_eq!(all.len(), 3, "{all:?}");
    assert_eq!(
        all[0],
        format!("leak: 4096 bytes at {:#x} were not given back, made by call 1 (allocate)", block.base)
    );
    assert!(all[1].contains("was not unloaded, made by call 2"), "{all:?}");
    assert!(all[2].contains("queue was not closed, opened by call 3"), "{all:?}");
}

#[test]
fn a_layer_sees_two_threads_in_one_queue() {
    // A layer below that enters the queue again stands for the second thread.
    use wharf_layers::{At, Call, Chain, Layer, Outcome};
    struct Again(Mutex<Option<Box<dyn Fn() + Send>>>);
    impl Layer for Again {
        fn name(&self) -> &'static str {
            "again"
        }
        fn before(&self, _: &At<'_>, call: &Call<'_>) -> Outcome<()> {
            if matches!(call, Call::Submit(..))
                && let Some(enter) = self.0.lock().unwrap().take()
            {
                enter();
            }
            Ok(())
        }
    }
    let found = Found::default();
    let all = found.clone();
    let validation = Arc::new(Validation::<common::StdLock>::new(move |finding| {
        all.lock().unwrap().push(finding.clone())
    }));
    struct Shared(Arc<Validation<common::StdLock>>);
    impl Layer for Shared {
        fn name(&self) -> &'static str {
            "validation"
        }
        fn before(&self, at: &At<'_>, call: &Call<'_>) -> Outcome<()> {
            self.0.before(at, call)
        }
        fn after(&self, at: &At<'_>, call: &Call<'_>, outcome: &Outcome) {
            self.0.after(at, call, outcome);
        }
    }
    let second = validation.clone();
    let enter = move || {
        let facts = wharf_layers::Facts {
            number: 0,
            name: "null:0".into(),
            caps: wharf_null::Null::default().caps(),
        };
        let at = At { device: &facts, lane: 1, thread: 2, begin_ns: 0, end_ns: 0 };
        second.before(&at, &Call::Submit(&[], Hint::None)).unwrap();
    };
    let again = Again(Mutex::new(Some(Box::new(enter))));
    let chain = Chain::new(vec![Box::new(Shared(validation)), Box::new(again)], common::OUTSIDE);
    let below: &'static wharf_null::Null = Box::leak(Box::new(wharf_null::Null::default()));
    let device = wharf_layers::Layered::new(below, Arc::new(chain), 0, "null:0");
    let mut queue = open(&device);
    queue.submit(&[Op::Barrier]).unwrap();
    only(&found, FindingKind::Thread, "two threads are in queue 1");
}

#[test]
fn copies_between_host_and_device_are_checked_on_the_devices_side_only() {
    let (device, found) = validated();
    let block = device.allocate(&want(64)).unwrap();
    let bytes = [1u8; 64];
    let from = bytes.as_ptr().expose_provenance() as u64;
    let mut queue = open(&device);
    queue.submit(&[Op::Copy { from, to: block.base, len: 64, peers: [PEER_HOST, 0] }]).unwrap();
    queue.gauge.poll();
    assert_eq!(taken(&found), []);
}
