//! Memory: ranges, access, life of a record, late frees. Rules: IREE's buffer rules and liboffload's memory calls.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use std::sync::atomic::Ordering::SeqCst;
use wharf_core::{
    bits::*,
    buffer::{Buffer, Overlap, WHOLE},
    device::{Hint, Op, Want},
    fault::*,
    runtime::*,
    timeline::Point,
};

fn want(len: u64) -> Want {
    Want { len, align: 0, kind: 0, access: 0, usage: 0 }
}
fn buffer(rt: &'static Growing, len: u64) -> Buffer<&'static Growing> {
    Buffer::adopt(rt, rt.allocate(0, &want(len)).unwrap(), len)
}

#[test]
fn ranges_follow_the_rules_at_and_past_their_ends() {
    let (rt, _) = growing(1);
    let b = buffer(rt, 100);
    for (offset, len, right) in [
        (0, 100, true),
        (100, 0, true),
        (0, 0, true),
        (50, 50, true),
        (50, 51, false),
        (101, 0, false),
        (3, u64::MAX - 1, false),
        (0, WHOLE, true),
        (100, WHOLE, true),
        (101, WHOLE, false),
        (u64::MAX, WHOLE, false),
    ] {
        match b.range(offset, len) {
            Ok(span) => {
                assert!(right && span.offset == offset && span.offset + span.len <= 100, "{offset} {len}")
            }
            Err(fault) => assert!(!right && fault.kind == Kind::OutOfRange, "{offset} {len} {fault}"),
        }
    }
    let sub = b.subspan(10, 80).unwrap();
    let subsub = sub.subspan(5, WHOLE).unwrap();
    assert_eq!((subsub.offset(), subsub.len(), subsub.root()), (15, 75, b.root()));
    assert_eq!(b.overlap(&sub), Overlap::Partial);
    assert_eq!(sub.overlap(&sub.share().unwrap()), Overlap::Complete);
    assert_eq!(b.subspan(0, 10).unwrap().overlap(&sub), Overlap::Disjoint);
    assert_eq!(b.overlap(&b.subspan(3, 0).unwrap()), Overlap::Disjoint);
    assert_eq!(b.overlap(&buffer(rt, 100)), Overlap::Disjoint);
}

#[test]
fn a_subspan_keeps_its_root_and_the_last_one_frees_it() {
    let (rt, sims) = growing(1);
    let b = buffer(rt, 64);
    let (root, sub) = (b.root(), b.subspan(8, 8).unwrap());
    drop(b);
    assert!(rt.allocation(root).is_ok());
    assert_eq!(sims[0].0.frees.load(SeqCst), 0);
    drop(sub);
    assert_eq!(rt.allocation(root).unwrap_err().kind, Kind::InvalidHandle);
    assert_eq!(sims[0].0.frees.load(SeqCst), 1);
}

#[test]
fn length_zero_is_a_handle_without_an_address() {
    let (rt, sims) = growing(1);
    let (a, b) = (rt.allocate(0, &want(0)).unwrap(), rt.allocate(0, &want(0)).unwrap());
    assert_ne!(a, b);
    assert_eq!(rt.allocation(a).unwrap().len, 0);
    rt.free(b).unwrap();
    rt.free(a).unwrap();
    assert_eq!(rt.free(a).unwrap_err().kind, Kind::InvalidHandle, "a second free is an error");
    assert_eq!(sims[0].0.frees.load(SeqCst), 0, "the backend never saw it");
}

#[test]
fn an_address_is_found_by_base_and_inside_and_lost_when_freed() {
    let (rt, _) = growing(1);
    let m = rt.allocate(0, &want(1024)).unwrap();
    let base = rt.allocation(m).unwrap().base;
    for at in [0, 123, 1023] {
        let found = rt.find(None, base + at).unwrap();
        assert_eq!((found.record, found.base, found.len), (m, base, 1024));
    }
    assert_ne!(rt.find(None, base + 1024).map(|f| f.record), Ok(m));
    for wild in [0, 0x1234, u64::MAX, u64::MAX - 1] {
        assert_eq!(rt.find(None, wild).unwrap_err().kind, Kind::NotFound);
    }
    rt.free(m).unwrap();
    assert_eq!(rt.find(None, base).unwrap_err().kind, Kind::NotFound);
}

#[test]
fn two_spaces_with_one_address_need_the_device() {
    let (rt, sims) = growing(3);
    // Two backends with spaces of their own that happen to give the same numbers out.
    for (i, sim) in sims.iter().enumerate().take(2) {
        let mut caps = sim.0.caps.lock().unwrap();
        (caps.space, caps.backend) = (1, i as u16 + 1);
    }
    let a = rt.allocate(0, &want(64)).unwrap();
    let base = rt.allocation(a).unwrap().base;
    assert_eq!(rt.find(None, base).unwrap().record, a);
    assert_eq!(rt.find(Some(1), base).unwrap_err().kind, Kind::NotFound);
    // The same bytes handed out by the second backend: its allocator is told so by taking them from the first.
    let bytes = sims[0].0.blocks.lock().unwrap().remove(&base).unwrap();
    sims[1].0.blocks.lock().unwrap().insert(base, bytes);
    let b = rt.allocate(1, &want(64)).unwrap();
    assert_ne!(rt.allocation(b).unwrap().base, base, "the simulated allocator gives fresh memory");
    assert_eq!(rt.find(Some(0), base).unwrap().record, a);
}

#[test]
fn a_refused_free_leaves_the_memory_live() {
    let (rt, sims) = growing(1);
    let m = rt.allocate(0, &want(64)).unwrap();
    sims[0].0.refuse_free.store(true, SeqCst);
    assert_eq!(rt.free(m).unwrap_err().native, 99);
    let known = rt.allocation(m).unwrap();
    assert_eq!(rt.find(None, known.base + 5).unwrap().record, m);
    sims[0].0.refuse_free.store(false, SeqCst);
    rt.free(m).unwrap();
    assert!(sims[0].0.blocks.lock().unwrap().is_empty());
}

#[test]
fn a_free_waits_for_the_last_use_and_only_for_that() {
    let (rt, sims) = growing(1);
    let (q, idle) = (rt.queue(0, Default::default()).unwrap(), rt.queue(0, Default::default()).unwrap());
    let t = rt.timeline(0).unwrap();
    let b = buffer(rt, 64);
    let root = b.root();
    let wait = [Point { timeline: t, value: 1 }];
    let around = Around { waits: &wait, signals: &[], hint: Hint::None };
    let p = rt.fill(q, &b.span(), &[7], &around).unwrap().unwrap();
    drop(b);
    assert!(rt.is_late(root));
    assert_eq!(rt.allocation(root).unwrap_err().kind, Kind::InvalidHandle, "its owner has let go");
    assert_eq!(sims[0].0.frees.load(SeqCst), 0, "held work still uses it");
    rt.signal(t, 1).unwrap();
    rt.poll();
    assert_eq!(sims[0].0.frees.load(SeqCst), 0, "handed over, not yet run");
    // What comes later on the same queue does not hold it back.
    rt.submit(q, &[Point { timeline: t, value: 2 }], Op::Barrier, &[], Hint::None).unwrap();
    sims[0].0.drain();
    rt.wait(p, Some(0)).unwrap();
    rt.poll();
    assert_eq!(sims[0].0.frees.load(SeqCst), 1);
    rt.submit(idle, &[], Op::Barrier, &[], Hint::None).unwrap();
    sims[0].0.drain();
    let m = rt.allocate(0, &want(64)).unwrap();
    rt.signal(t, 2).unwrap();
    rt.poll();
    sims[0].0.drain();
    rt.free(m).unwrap();
    assert_eq!(sims[0].0.frees.load(SeqCst), 2, "with idle queues a free is immediate");
}

#[test]
fn memory_that_is_short_is_tried_again_after_late_frees() {
    let (rt, sims) = growing(1);
    assert_eq!(rt.allocate(0, &want(1 << 60)).unwrap_err().kind, Kind::ResourceExhausted);
    assert!(sims[0].0.blocks.lock().unwrap().is_empty());
    for align in [3, 1 << 31] {
        let fault = rt.allocate(0, &Want { align, ..want(64) }).unwrap_err();
        assert_eq!(fault.kind, Kind::InvalidArgument);
    }
    let m = rt.allocate(0, &Want { align: 4096, ..want(64) }).unwrap();
    assert!(rt.allocation(m).unwrap().base.is_multiple_of(4096));
}

#[test]
fn access_and_usage_are_asked_and_refusals_reach_the_signals() {
    let (rt, sims) = growing(1);
    sims[0].0.at_once.store(true, SeqCst);
    let q = rt.queue(0, Default::default()).unwrap();
    let read_only = rt.allocate(0, &Want { access: Access::READ.bits(), ..want(64) }).unwrap();
    let no_transfer = rt.allocate(0, &Want { usage: Usage::DISPATCH.bits(), ..want(64) }).unwrap();
    let plain = rt.allocate(0, &want(64)).unwrap();
    let span = |root, offset, len| Span { root, offset, len };
    let t = rt.timeline(0).unwrap();
    let signals = [Point { timeline: t, value: 1 }];
    let around = Around { waits: &[], signals: &signals, hint: Hint::None };
    let fault = rt.fill(q, &span(read_only, 0, 64), &[1], &around).unwrap_err();
    assert_eq!(fault.kind, Kind::PermissionDenied);
    assert_eq!(rt.query(t), Err(fault));
    let none = Around::NONE;
    assert_eq!(rt.fill(q, &span(no_transfer, 0, 64), &[1], &none).unwrap_err().kind, Kind::PermissionDenied);
    assert_eq!(rt.fill(q, &span(plain, 60, 8), &[1], &none).unwrap_err().kind, Kind::OutOfRange);
    assert_eq!(rt.fill(q, &span(plain, 8, u64::MAX - 4), &[1], &none).unwrap_err().kind, Kind::OutOfRange);
    assert_eq!(rt.fill(q, &span(plain, 0, 64), &[], &none).unwrap_err().kind, Kind::InvalidArgument);
    assert_eq!(rt.fill(q, &span(plain, 0, 64), &[1, 2, 3], &none).unwrap_err().kind, Kind::InvalidArgument);
    let overlapping = rt.copy(q, &span(plain, 0, 32), &span(plain, 31, 32), &none);
    assert_eq!(overlapping.unwrap_err().kind, Kind::InvalidArgument);
    assert_eq!(
        rt.copy(q, &span(plain, 0, 8), &span(plain, 8, 9), &none).unwrap_err().kind,
        Kind::InvalidArgument
    );
    rt.copy(q, &span(plain, 0, 32), &span(plain, 32, 32), &none).unwrap();
    rt.copy(q, &span(plain, 0, 0), &span(plain, 0, 0), &none).unwrap();
}

#[test]
fn wrapped_memory_is_released_once_and_never_when_refused() {
    static RELEASED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    extern "C" fn released(user: *mut ()) {
        assert_eq!(user as usize, 77);
        RELEASED.fetch_add(1, SeqCst);
    }
    let (rt, _) = growing(1);
    let bytes: &'static mut [u8] = vec![0; 256].leak();
    let at = bytes.as_mut_ptr();
    let release = Some((released as ReleaseFn, 77 as *mut ()));
    // SAFETY: the bytes are leaked and used by nobody else.
    #[allow(unsafe_code)]
    let wrap = |offset: usize, align| unsafe {
        rt.wrap(0, at.wrapping_add(offset), &Want { align, ..want(100) }, release)
    };
    let m = wrap(0, 1).unwrap();
    assert_eq!(wrap(50, 1).unwrap_err().kind, Kind::InvalidArgument, "overlaps live memory");
    assert_eq!(
        wrap(usize::from((at as usize).is_multiple_of(2)), 2).unwrap_err().kind,
        Kind::OutOfRange,
        "misaligned"
    );
    assert_eq!(RELEASED.load(SeqCst), 0);
    rt.free(m).unwrap();
    assert_eq!(RELEASED.load(SeqCst), 1);
    let again = wrap(0, 1).unwrap();
    rt.free(again).unwrap();
    assert_eq!(RELEASED.load(SeqCst), 2);
}

#[test]
fn many_threads_allocate_find_and_free() {
    let (rt, sims) = growing(1);
    std::thread::scope(|scope| {
        for seed in 0..8u64 {
            scope.spawn(move || {
                let (mut rng, mut mine) = (Rng(seed), vec![]);
                for _ in 0..1000 {
                    if rng.below(2) == 0 || mine.is_empty() {
                        let len = 1 + rng.below(4000);
                        let m = rt.allocate(0, &want(len)).unwrap();
                        mine.push((m, rt.allocation(m).unwrap().base, len));
                    } else {
                        let (m, base, len) = mine.swap_remove(rng.below(mine.len() as u64) as usize);
                        let found = rt.find(None, base + rng.below(len)).unwrap();
                        assert_eq!((found.record, found.base, found.len), (m, base, len));
                        rt.free(m).unwrap();
                    }
                }
                mine.into_iter().for_each(|(m, ..)| rt.free(m).unwrap());
            });
        }
    });
    assert!(sims[0].0.blocks.lock().unwrap().is_empty());
    let mut left = 0;
    rt.each_allocation(|_| left += 1);
    assert_eq!(left, 0);
}

#[test]
fn statistics_follow_what_was_given_out_and_back() {
    let (rt, sims) = growing(3);
    let kinds = |kind: MemoryType, len| Want { kind: kind.bits(), ..want(len) };
    let a = rt.allocate(2, &kinds(MemoryType::DEVICE_LOCAL, 1000)).unwrap();
    let b = rt.allocate(2, &kinds(MemoryType::DEVICE_LOCAL, 500)).unwrap();
    let host = rt.allocate(2, &kinds(MemoryType::HOST_LOCAL | MemoryType::DEVICE_VISIBLE, 64)).unwrap();
    rt.free(a).unwrap();
    let c = rt.allocate(2, &kinds(MemoryType::DEVICE_LOCAL, 200)).unwrap();
    sims[2].0.refuse_free.store(true, SeqCst);
    assert!(rt.free(b).is_err(), "a refused free gives nothing back");
    let all = rt.statistics(2).unwrap();
    let right = Statistics { live: 700, peak: 1500, allocated: 1700, freed: 1000, count: 2 };
    assert_eq!(all.device, right);
    assert_eq!(all.host, Statistics { live: 64, peak: 64, allocated: 64, freed: 0, count: 1 });
    assert_eq!(rt.statistics(0).unwrap(), DeviceStatistics::default());
    assert_eq!(rt.statistics(3).unwrap_err().kind, Kind::InvalidDevice);
    let text = all.to_string();
    assert!(text.ends_with("DEVICE_LOCAL:         1500B peak /         1700B allocated /         1000B freed /          700B live"), "{text}");
    sims[2].0.refuse_free.store(false, SeqCst);
    [b, c, host].into_iter().for_each(|m| rt.free(m).unwrap());
    assert_eq!((rt.statistics(2).unwrap().device.live, rt.statistics(2).unwrap().host.count), (0, 0));
}

#[test]
fn memory_in_the_order_of_a_queue_is_the_hosts_between_its_two_points() {
    let (rt, sims) = growing(1);
    let q = rt.queue(0, Default::default()).unwrap();
    let (t, s) = (rt.timeline(0).unwrap(), rt.timeline(0).unwrap());
    let at = |timeline, value| [Point { timeline, value }];
    let (wait, signal) = (at(t, 1), at(s, 1));
    let around = Around { waits: &wait, signals: &signal, hint: Hint::None };
    let (m, point) = rt.alloca(q, &want(64), &around).unwrap();
    let touch = |rt: &'static Growing| rt.touchable_now(m).map_err(|f| f.kind);
    assert_eq!(touch(rt), Err(Kind::FailedPrecondition), "not yet");
    let span = Span { root: m, offset: 0, len: 64 };
    rt.fill(q, &span, &[9], &Around::NONE).unwrap();
    assert_eq!(rt.query(s), Ok(0));
    rt.signal(t, 1).unwrap();
    rt.poll();
    sims[0].0.drain();
    rt.poll();
    rt.wait(point.unwrap(), Some(0)).unwrap();
    assert_eq!((rt.query(s), touch(rt)), (Ok(1), Ok(())));
    let gate = at(t, 2);
    let closing =
        rt.dealloca(q, m, &Around { waits: &gate, signals: &[], hint: Hint::None }).unwrap().unwrap();
    assert_eq!(touch(rt), Err(Kind::FailedPrecondition), "its return is queued");
    let again = rt.dealloca(q, m, &Around::NONE).unwrap_err();
    assert_eq!(again.kind, Kind::FailedPrecondition);
    assert_eq!(sims[0].0.frees.load(SeqCst), 0);
    rt.signal(t, 2).unwrap();
    rt.poll();
    sims[0].0.drain();
    rt.wait(closing, Some(0)).unwrap();
    rt.poll();
    assert_eq!(sims[0].0.frees.load(SeqCst), 1);
    assert_eq!(rt.allocation(m).unwrap_err().kind, Kind::InvalidHandle);
}

#[test]
fn a_return_whose_wait_fails_leaves_the_memory_alive() {
    let (rt, sims) = growing(1);
    sims[0].0.at_once.store(true, SeqCst);
    let q = rt.queue(0, QueueOptions { order: Order::Free, profile: false }).unwrap();
    let (t, s) = (rt.timeline(0).unwrap(), rt.timeline(0).unwrap());
    let signals = [Point { timeline: s, value: 1 }];
    let (m, none) =
        rt.alloca(q, &want(64), &Around { waits: &[], signals: &signals, hint: Hint::None }).unwrap();
    assert_eq!(none, None);
    rt.poll();
    assert_eq!((rt.query(s), rt.touchable_now(m)), (Ok(1), Ok(())));
    let (waits, ends) = ([Point { timeline: t, value: 1 }], [Point { timeline: s, value: 2 }]);
    rt.dealloca(q, m, &Around { waits: &waits, signals: &ends, hint: Hint::None }).unwrap();
    let cause = Fault::caller(Kind::DataLoss, Site::Read, Why::Unknown, [0; 2]);
    rt.fail(t, &cause).unwrap();
    rt.poll();
    rt.poll();
    assert_eq!(rt.query(s), Err(cause));
    assert_eq!((rt.touchable_now(m), sims[0].0.frees.load(SeqCst)), (Ok(()), 0));
    rt.free(m).unwrap();
    assert_eq!(sims[0].0.frees.load(SeqCst), 1);
    assert_eq!(rt.bell().interest.load(SeqCst), 0, "nothing is left to pump");
}

#[test]
fn memory_that_cannot_be_had_in_order_fails_the_signals() {
    let (rt, _) = growing(1);
    let q = rt.queue(0, Default::default()).unwrap();
    let s = rt.timeline(0).unwrap();
    let signals = [Point { timeline: s, value: 1 }];
    let around = Around { waits: &[], signals: &signals, hint: Hint::None };
    let fault = rt.alloca(q, &want(1 << 60), &around).unwrap_err();
    assert_eq!((fault.kind, rt.query(s)), (Kind::ResourceExhausted, Err(fault)));
    let plain = rt.allocate(0, &want(8)).unwrap();
    rt.dealloca(q, plain, &Around::NONE).unwrap();
    assert!(rt.allocation(plain).is_ok(), "memory allocated at once is its owner's to free");
}

#[test]
fn memory_whose_return_was_reached_takes_no_new_work() {
    let (rt, sims) = growing(1);
    let (q, busy) = (rt.queue(0, Default::default()).unwrap(), rt.queue(0, Default::default()).unwrap());
    let (m, _) = rt.alloca(q, &want(64), &Around::NONE).unwrap();
    let span = Span { root: m, offset: 0, len: 64 };
    rt.submit(busy, &[], Op::Barrier, &[], Hint::None).unwrap();
    let end = rt.dealloca(q, m, &Around::NONE).unwrap().unwrap();
    rt.fill(q, &span, &[9], &Around::NONE).unwrap();
    sims[0].0.step(0);
    sims[0].0.step(0);
    rt.wait(end, Some(0)).unwrap();
    rt.poll();
    assert_eq!(sims[0].0.frees.load(SeqCst), 0, "the second queue might use it");
    // The first queue was found to be done with it, so nothing may come to it any more.
    sims[0].0.step(0);
    rt.poll();
    assert_eq!(rt.fill(q, &span, &[7], &Around::NONE).unwrap_err().kind, Kind::InvalidHandle);
    assert_eq!(rt.dealloca(q, m, &Around::NONE).unwrap_err().kind, Kind::FailedPrecondition);
    sims[0].0.drain();
    rt.poll();
    assert_eq!(sims[0].0.frees.load(SeqCst), 1);
}

/// Names and values of the base header, `hal/buffer.h`.
#[test]
fn bits_have_the_base_headers_values() {
    let kinds = [
        (MemoryType::TRANSIENT, 1),
        (MemoryType::HOST_VISIBLE, 2),
        (MemoryType::HOST_COHERENT, 4),
        (MemoryType::HOST_CACHED, 8),
        (MemoryType::HOST_LOCAL, 6),
        (MemoryType::DEVICE_VISIBLE, 16),
        (MemoryType::DEVICE_LOCAL, 48),
    ];
    kinds.iter().for_each(|(bits, value)| assert_eq!(bits.bits(), *value));
    let access = [
        (Access::READ, 1),
        (Access::WRITE, 2),
        (Access::DISCARD, 4),
        (Access::DISCARD_WRITE, 6),
        (Access::MAY_ALIAS, 8),
        (Access::ANY, 16),
        (Access::ALL, 7),
    ];
    access.iter().for_each(|(bits, value)| assert_eq!(bits.bits(), *value));
    let usage = [
        (Usage::CONSTANT, 1),
        (Usage::TRANSFER, 2),
        (Usage::MAPPING, 4),
        (Usage::DISPATCH, 8),
        (Usage::ALL, 14),
    ];
    usage.iter().for_each(|(bits, value)| assert_eq!(bits.bits(), *value));
    assert_eq!([Overlap::Disjoint as u8, Overlap::Partial as u8, Overlap::Complete as u8], [0, 1, 2]);
}
