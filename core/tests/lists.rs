//! Command lists over a device that runs only when told. Rules and codes: IREE's command buffers (`hal/command_buffer.h`
//! and its validation layer), where the project's decisions do not say otherwise.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use std::sync::atomic::Ordering::SeqCst;
use wharf_core::{
    bits::*, buffer::WHOLE, device::*, fault::*, handle::Handle, record::Record, runtime::*, timeline::*,
};

type List = CommandList<'static, &'static Growing>;

fn kind<T: std::fmt::Debug>(r: Result<T, Fault>) -> Kind {
    r.unwrap_err().kind
}
fn free_order() -> QueueOptions {
    QueueOptions { order: Order::Free, profile: false }
}
fn want(len: u64) -> Want {
    Want { len, align: 0, kind: 0, access: 0, usage: 0 }
}
fn memory(rt: &'static Growing, len: u64) -> Handle<Record> {
    rt.allocate(0, &want(len)).unwrap()
}
fn span(root: Handle<Record>, offset: u64, len: u64) -> Span {
    Span { root, offset, len }
}
fn direct(root: Handle<Record>, offset: u64, len: u64) -> Ref {
    Ref::Direct(span(root, offset, len))
}
fn bound(slot: u32, offset: u64, len: u64) -> Ref {
    Ref::Bound { slot, offset, len }
}
fn begun(rt: &'static Growing, slots: u32) -> List {
    let mut list = CommandList::new(rt, ListRoom::growing());
    list.begin(0, slots).unwrap();
    list
}
fn filled(rt: &'static Growing, to: Ref, bytes: &[u8]) -> List {
    let mut list = begun(rt, 8);
    for byte in bytes {
        rt.record(&mut list, &Command::Fill { to, pattern: &[*byte] }).unwrap();
    }
    list.end().unwrap();
    list
}
fn bytes(rt: &Growing, root: Handle<Record>) -> Vec<u8> {
    let known = rt.allocation(root).unwrap();
    let blocks = rt.devices()[0].0.blocks.lock().unwrap();
    let block = &blocks[&known.base];
    let at = (known.base - block.as_ptr() as u64) as usize;
    block[at..at + known.len as usize].to_vec()
}
fn move_all(rt: &Growing, sim: &Sim) {
    loop {
        rt.poll();
        if sim.drain() == 0 {
            rt.poll();
            return;
        }
    }
}
fn set_depth(sim: &Sim, depth: u16) {
    sim.caps.lock().unwrap().depth = depth;
}

#[test]
fn states_are_kept() {
    let (rt, _) = growing(1);
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let root = memory(rt, 16);
    let fill = Command::Fill { to: direct(root, 0, 16), pattern: &[1] };
    let mut list: List = CommandList::new(rt, ListRoom::growing());
    assert_eq!(kind(rt.record(&mut list, &fill)), Kind::FailedPrecondition, "before the begin");
    assert_eq!(kind(rt.record(&mut list, &Command::Barrier)), Kind::FailedPrecondition);
    assert_eq!(kind(list.end()), Kind::FailedPrecondition, "an end without a begin");
    assert_eq!(kind(rt.execute(queue, &list, &[], &Around::NONE)), Kind::FailedPrecondition);
    list.begin(0, 0).unwrap();
    assert_eq!(kind(list.begin(0, 0)), Kind::FailedPrecondition, "begun twice");
    assert_eq!(kind(rt.execute(queue, &list, &[], &Around::NONE)), Kind::FailedPrecondition, "not ended");
    list.end().unwrap();
    assert_eq!(kind(list.end()), Kind::FailedPrecondition, "ended twice");
    assert_eq!(kind(list.begin(0, 0)), Kind::FailedPrecondition, "begun after its end");
    assert_eq!(kind(rt.record(&mut list, &fill)), Kind::FailedPrecondition, "after the end");
    list.reset();
    list.begin(0, SLOTS_MAX).unwrap();
    list.reset();
    assert_eq!(kind(list.begin(0, SLOTS_MAX + 1)), Kind::InvalidArgument);
}

#[test]
fn direct_references_are_checked_against_the_allocation_when_they_are_recorded() {
    let (rt, _) = growing(1);
    let root = memory(rt, 16);
    let mut list = begun(rt, 1);
    for (offset, len) in [(0, 17), (16, 1), (17, 0), (u64::MAX, 2), (1, u64::MAX)] {
        let to = direct(root, offset, len);
        assert_eq!(kind(rt.record(&mut list, &Command::Fill { to, pattern: &[1] })), Kind::OutOfRange);
        let copy = Command::Copy { from: to, to };
        assert_eq!(kind(rt.record(&mut list, &copy)), Kind::OutOfRange);
    }
    let update = Command::Update { to: direct(root, 9, 8), bytes: &[0; 8] };
    assert_eq!(kind(rt.record(&mut list, &update)), Kind::OutOfRange);
    let null = Command::Fill { to: direct(Handle::NULL, 0, 0), pattern: &[1] };
    assert_eq!(kind(rt.record(&mut list, &null)), Kind::InvalidHandle);
    let (read_only, no_transfer) = (
        rt.allocate(0, &Want { access: Access::READ.bits(), ..want(16) }).unwrap(),
        rt.allocate(0, &Want { usage: Usage::DISPATCH.bits(), ..want(16) }).unwrap(),
    );
    for root in [read_only, no_transfer] {
        let fill = Command::Fill { to: direct(root, 0, 16), pattern: &[1] };
        assert_eq!(kind(rt.record(&mut list, &fill)), Kind::PermissionDenied);
        let mixed = Command::Copy { from: Ref::slot(0), to: direct(root, 0, 16) };
        assert_eq!(kind(rt.record(&mut list, &mixed)), Kind::PermissionDenied);
    }
    assert!(list.is_empty(), "what is refused leaves the list as it was");
}

#[test]
fn sizes_and_patterns_are_checked() {
    let (rt, _) = growing(1);
    let root = memory(rt, 1 << 17);
    let mut list = begun(rt, 2);
    for (to, pattern) in [
        (direct(root, 0, 5), &[1u8, 2][..]),
        (bound(0, 0, 5), &[1, 2]),
        (direct(root, 0, 0), &[]),
        (Ref::slot(0), &[]),
    ] {
        assert_eq!(kind(rt.record(&mut list, &Command::Fill { to, pattern })), Kind::InvalidArgument);
    }
    for (from, to) in [
        (direct(root, 0, 8), direct(root, 8, 9)),
        (direct(root, 0, 8), direct(root, 7, 8)),
        (direct(root, 3, 8), direct(root, 3, 8)),
        (bound(0, 0, 8), bound(1, 0, 9)),
        (bound(0, 0, 8), direct(root, 0, 9)),
    ] {
        assert_eq!(kind(rt.record(&mut list, &Command::Copy { from, to })), Kind::InvalidArgument);
    }
    let large = vec![7; UPDATE_MAX + 1];
    for to in [direct(root, 0, UPDATE_MAX as u64 + 1), Ref::slot(0)] {
        assert_eq!(kind(rt.record(&mut list, &Command::Update { to, bytes: &large })), Kind::InvalidArgument);
        let to =
            if let Ref::Direct(at) = to { Ref::Direct(Span { len: UPDATE_MAX as u64, ..at }) } else { to };
        rt.record(&mut list, &Command::Update { to, bytes: &large[1..] }).unwrap();
    }
    let update = Command::Update { to: bound(0, 0, 9), bytes: &large[..8] };
    assert_eq!(kind(rt.record(&mut list, &update)), Kind::InvalidArgument);
    assert_eq!(list.len(), 2);
}

#[test]
fn slots_are_checked_when_they_are_recorded() {
    let (rt, _) = growing(1);
    let mut list = begun(rt, 2);
    for to in [Ref::slot(2), bound(u32::MAX, 0, 1), bound(0, 2, u64::MAX - 1), bound(0, u64::MAX - 3, 4)] {
        assert_eq!(kind(rt.record(&mut list, &Command::Fill { to, pattern: &[1] })), Kind::OutOfRange);
    }
    assert_eq!((list.len(), list.bindings()), (0, 0));
    rt.record(&mut list, &Command::Fill { to: Ref::slot(1), pattern: &[1] }).unwrap();
    assert_eq!((list.len(), list.bindings()), (1, 2));
    let mut none = begun(rt, 0);
    let fill = Command::Fill { to: Ref::slot(0), pattern: &[1] };
    assert_eq!(kind(rt.record(&mut none, &fill)), Kind::OutOfRange);
}

#[test]
fn bindings_are_checked_when_they_are_submitted() {
    let (rt, sims) = growing(2);
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let (root, small) = (memory(rt, 16), memory(rt, 4));
    let mut list = begun(rt, 4);
    rt.record(&mut list, &Command::Fill { to: bound(2, 4, 8), pattern: &[9] }).unwrap();
    rt.record(&mut list, &Command::Copy { from: bound(2, 0, 4), to: bound(0, 0, WHOLE) }).unwrap();
    list.end().unwrap();
    let null = span(Handle::NULL, 0, 0);
    let (all, four) = (span(root, 0, 16), span(small, 0, 4));
    let read_only = rt.allocate(0, &Want { access: Access::READ.bits(), ..want(16) }).unwrap();
    let no_transfer = rt.allocate(0, &Want { usage: Usage::DISPATCH.bits(), ..want(16) }).unwrap();
    let gone = memory(rt, 16);
    rt.free(gone).unwrap();
    for (bindings, expected) in [
        (&[][..], Kind::InvalidArgument),
        (&[four, null], Kind::OutOfRange),
        (&[null, null, all], Kind::InvalidArgument),
        (&[four, null, null], Kind::InvalidArgument),
        (&[four, null, span(root, 0, 11)], Kind::OutOfRange),
        (&[four, null, span(root, 5, WHOLE)], Kind::OutOfRange),
        (&[four, null, span(root, 1, 16)], Kind::OutOfRange),
        (&[four, null, span(root, u64::MAX, 16)], Kind::OutOfRange),
        (&[four, null, span(root, 17, WHOLE)], Kind::OutOfRange),
        (&[span(small, 0, 3), null, all], Kind::InvalidArgument),
        (&[span(root, 0, 4), null, all], Kind::InvalidArgument),
        (&[span(root, 3, 4), null, all], Kind::InvalidArgument),
        (&[four, null, span(read_only, 0, 16)], Kind::PermissionDenied),
        (&[four, null, span(no_transfer, 0, 16)], Kind::PermissionDenied),
        (&[four, null, span(gone, 0, 16)], Kind::InvalidHandle),
        (&[four, span(root, 0, 17), all], Kind::OutOfRange),
    ] {
        let done = rt.timeline(0).unwrap();
        let signals = [Point { timeline: done, value: 1 }];
        let around = Around { signals: &signals, ..Around::NONE };
        let fault = rt.execute(queue, &list, bindings, &around).unwrap_err();
        assert_eq!(fault.kind, expected, "{bindings:?}");
        assert_eq!(rt.query(done), Err(fault), "its signals fail with it");
    }
    assert_eq!(rt.tail(queue).unwrap().value, 0, "nothing was accepted");
    let end =
        rt.execute(queue, &list, &[four, null, span(root, 4, WHOLE), all], &Around::NONE).unwrap().unwrap();
    move_all(rt, sims[0].0);
    assert_eq!(rt.look(end), Ok(Look::Reached));
    assert_eq!(bytes(rt, root), [0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]);
    let other = rt.queue(1, QueueOptions::default()).unwrap();
    assert_eq!(kind(rt.execute(other, &list, &[four, null, all], &Around::NONE)), Kind::InvalidDevice);
}

#[test]
fn a_list_keeps_its_memory_and_refuses_to_run_when_it_was_freed_all_the_same() {
    let (rt, sims) = growing(1);
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let (root, freed) = (memory(rt, 16), memory(rt, 16));
    let list = filled(rt, direct(root, 0, 16), &[1, 2]);
    let other = filled(rt, direct(freed, 0, 16), &[1]);
    rt.release(root).unwrap();
    assert!(rt.allocation(root).is_ok(), "the list owns it too");
    rt.free(freed).unwrap();
    assert_eq!(kind(rt.execute(queue, &other, &[], &Around::NONE)), Kind::InvalidHandle);
    let end = rt.execute(queue, &list, &[], &Around::NONE).unwrap().unwrap();
    drop((list, other));
    assert!(rt.allocation(root).is_err());
    assert_eq!(sims[0].0.frees.load(SeqCst), 1, "the list's work has not ended");
    move_all(rt, sims[0].0);
    assert_eq!(rt.look(end), Ok(Look::Reached));
    assert_eq!(sims[0].0.frees.load(SeqCst), 2);
}

#[test]
fn a_list_is_one_point_and_stays_together_whatever_the_depth() {
    for depth in [1, 2, 3, 5, 64] {
        let (rt, sims) = growing(1);
        set_depth(sims[0].0, depth);
        let queue = rt.queue(0, QueueOptions::default()).unwrap();
        let (root, done) = (memory(rt, 4), rt.timeline(0).unwrap());
        let list = filled(rt, bound(0, 0, 1), &(1..=40).collect::<Vec<_>>());
        let signals = [Point { timeline: done, value: 1 }];
        let at = |n| [span(root, n, 1)];
        rt.execute(queue, &list, &at(0), &Around { signals: &signals, ..Around::NONE }).unwrap();
        let end = rt.execute(queue, &list, &at(1), &Around::NONE).unwrap().unwrap();
        rt.fill(queue, &span(root, 0, 1), &[99], &Around::NONE).unwrap();
        assert_eq!((end.value, rt.tail(queue).unwrap().value), (80, 81));
        assert_eq!(rt.query(done), Ok(0));
        move_all(rt, sims[0].0);
        assert_eq!(rt.query(done), Ok(1), "depth {depth}");
        assert_eq!(bytes(rt, root), [99, 40, 0, 0]);
        let order: Vec<u64> = sims[0].0.log.lock().unwrap().clone();
        assert_eq!(order, (1..=81).collect::<Vec<_>>());
        assert_eq!(rt.is_idle(queue), Ok(true));
        rt.free(root).unwrap();
        assert_eq!(sims[0].0.frees.load(SeqCst), 1);
        assert_eq!(rt.bell().interest.load(SeqCst), 0);
    }
}

#[test]
fn a_held_list_on_a_free_queue_keeps_its_order_and_lets_others_pass() {
    for depth in [1, 3, 64] {
        let (rt, sims) = growing(1);
        set_depth(sims[0].0, depth);
        let queue = rt.queue(0, free_order()).unwrap();
        let (root, gate, done) = (memory(rt, 4), rt.timeline(0).unwrap(), rt.timeline(0).unwrap());
        let list = filled(rt, bound(0, 0, 1), &[1, 2, 3, 4, 5]);
        let (waits, signals) = ([Point { timeline: gate, value: 1 }], [Point { timeline: done, value: 1 }]);
        let mut table = [span(root, 0, 1)];
        let around = Around { waits: &waits, signals: &signals, hint: Hint::None };
        assert_eq!(rt.execute(queue, &list, &table, &around), Ok(None));
        table[0] = span(Handle::NULL, 0, 0);
        drop(list);
        assert_eq!(table[0].root, Handle::NULL, "bindings were copied");
        rt.fill(queue, &span(root, 1, 1), &[7], &Around::NONE).unwrap();
        move_all(rt, sims[0].0);
        assert_eq!(bytes(rt, root), [0, 7, 0, 0], "the list waits, the fill does not");
        rt.signal(gate, 1).unwrap();
        move_all(rt, sims[0].0);
        assert_eq!((bytes(rt, root), rt.query(done)), (vec![5, 7, 0, 0], Ok(1)), "depth {depth}");
        assert_eq!(rt.bell().interest.load(SeqCst), 0);
    }
}

#[test]
fn a_failed_wait_fails_the_whole_list() {
    let cause = Fault::backend(Kind::DataLoss, Site::Read, Why::Native, [1, 2]).with_native(42);
    for (options, early) in [
        (QueueOptions::default(), true),
        (free_order(), true),
        (QueueOptions::default(), false),
        (free_order(), false),
    ] {
        let (rt, sims) = growing(1);
        let queue = rt.queue(0, options).unwrap();
        let (root, gate, done) = (memory(rt, 4), rt.timeline(0).unwrap(), rt.timeline(0).unwrap());
        let list = filled(rt, direct(root, 0, 4), &[1, 2, 3]);
        if early {
            rt.fail(gate, &cause).unwrap();
        }
        let (waits, signals) = ([Point { timeline: gate, value: 1 }], [Point { timeline: done, value: 1 }]);
        let around = Around { waits: &waits, signals: &signals, hint: Hint::None };
        let point = rt.execute(queue, &list, &[], &around).unwrap();
        if !early {
            rt.fail(gate, &cause).unwrap();
        }
        move_all(rt, sims[0].0);
        assert_eq!(rt.query(done), Err(cause));
        if let Some(point) = point {
            assert_eq!(rt.look(point), Ok(Look::Failed(cause)));
        } else {
            assert_eq!(rt.is_idle(queue), Ok(true), "a free queue goes on");
        }
        assert_eq!(bytes(rt, root), [0; 4]);
        assert_eq!(rt.bell().interest.load(SeqCst), 0);
    }
}

#[test]
fn a_refusal_of_the_first_operation_is_the_answer_of_the_call() {
    for options in [QueueOptions::default(), free_order()] {
        let (rt, sims) = growing(1);
        let queue = rt.queue(0, options).unwrap();
        let (root, done) = (memory(rt, 4), rt.timeline(0).unwrap());
        let list = filled(rt, direct(root, 0, 4), &[1, 2, 3]);
        let signals = [Point { timeline: done, value: 1 }];
        sims[0].0.refuse_submit_at.store(0, SeqCst);
        let around = Around { signals: &signals, ..Around::NONE };
        let fault = rt.execute(queue, &list, &[], &around).unwrap_err();
        assert_eq!((fault.native, rt.query(done)), (5, Err(fault)));
        rt.execute(queue, &list, &[], &Around::NONE).unwrap();
        move_all(rt, sims[0].0);
        assert_eq!(bytes(rt, root), [3; 4], "the queue goes on");
        assert_eq!(rt.bell().interest.load(SeqCst), 0);
    }
}

#[test]
fn a_refusal_in_the_middle_tells_only_when_what_was_taken_has_ended() {
    for (options, depth) in
        [(QueueOptions::default(), 64), (QueueOptions::default(), 1), (free_order(), 64), (free_order(), 1)]
    {
        let (rt, sims) = growing(1);
        let sim = sims[0].0;
        set_depth(sim, depth);
        let queue = rt.queue(0, options).unwrap();
        let (root, done) = (memory(rt, 4), rt.timeline(0).unwrap());
        let list = filled(rt, direct(root, 0, 4), &[1, 2, 3, 4]);
        let signals = [Point { timeline: done, value: 1 }];
        // Held operations are offered one by one: with a depth of one, once more each time the lane is full.
        sim.refuse_submit_at.store(if depth == 1 { u64::MAX } else { 2 }, SeqCst);
        let point = rt.execute(queue, &list, &[], &Around { signals: &signals, ..Around::NONE }).unwrap();
        if depth == 1 {
            assert!(sim.step(0));
            sim.refuse_submit_at.store(sim.submits.load(SeqCst) + 1, SeqCst);
            rt.poll();
            assert_eq!(sim.lanes.lock().unwrap()[0].todo.len(), 1);
        }
        rt.poll();
        assert_eq!(rt.query(done), Ok(0), "an operation of the list is under way");
        move_all(rt, sim);
        assert_eq!(rt.query(done).unwrap_err().native, 5);
        assert_eq!(bytes(rt, root), [2; 4]);
        match point {
            Some(point) => assert!(matches!(rt.look(point), Ok(Look::Failed(fault)) if fault.native == 5)),
            None => assert_eq!(rt.is_idle(queue), Ok(true)),
        }
        assert_eq!(rt.bell().interest.load(SeqCst), 0);
    }
}

#[test]
fn a_free_queue_without_signals_answers_a_refusal_in_the_middle() {
    let (rt, sims) = growing(1);
    let queue = rt.queue(0, free_order()).unwrap();
    let root = memory(rt, 4);
    let list = filled(rt, direct(root, 0, 4), &[1, 2, 3]);
    sims[0].0.refuse_submit_at.store(1, SeqCst);
    assert_eq!(kind(rt.execute(queue, &list, &[], &Around::NONE)), Kind::BackendFailure);
    move_all(rt, sims[0].0);
    assert_eq!((bytes(rt, root), rt.is_idle(queue)), (vec![1; 4], Ok(true)));
}

#[test]
fn lengths_of_zero_are_checked_and_then_nothing() {
    let (rt, sims) = growing(1);
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let root = memory(rt, 16);
    let mut list = begun(rt, 1);
    rt.record(&mut list, &Command::Barrier).unwrap();
    rt.record(&mut list, &Command::Fill { to: direct(root, 16, 0), pattern: &[1] }).unwrap();
    rt.record(&mut list, &Command::Update { to: direct(root, 0, 0), bytes: &[] }).unwrap();
    rt.record(&mut list, &Command::Copy { from: direct(root, 3, 0), to: direct(root, 3, 0) }).unwrap();
    assert!(list.is_empty());
    rt.record(&mut list, &Command::Fill { to: Ref::slot(0), pattern: &[1, 2] }).unwrap();
    list.end().unwrap();
    let end = rt.execute(queue, &list, &[span(root, 16, WHOLE)], &Around::NONE).unwrap().unwrap();
    let odd = rt.execute(queue, &list, &[span(root, 1, WHOLE)], &Around::NONE);
    assert_eq!(kind(odd), Kind::InvalidArgument, "no multiple of the pattern");
    move_all(rt, sims[0].0);
    assert_eq!((rt.look(end), bytes(rt, root)), (Ok(Look::Reached), vec![0; 16]));
}

#[test]
fn an_empty_list_is_a_barrier() {
    let (rt, sims) = growing(1);
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let done = rt.timeline(0).unwrap();
    let mut list = begun(rt, 0);
    list.end().unwrap();
    let signals = [Point { timeline: done, value: 1 }];
    let around = Around { signals: &signals, ..Around::NONE };
    assert_eq!(rt.execute(queue, &list, &[], &around).unwrap().unwrap().value, 1);
    move_all(rt, sims[0].0);
    assert_eq!(rt.query(done), Ok(1));
}

#[test]
fn a_list_in_arrays_needs_no_heap_and_knows_its_limits() {
    let (rt, sim) = fixed();
    set_depth(sim, 2);
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let root = rt.allocate(0, &want(16)).unwrap();
    let mut storage = ListStorage::<7, 8, 1, 1>::new();
    let mut list = CommandList::new(rt, storage.room());
    list.begin(0, 1).unwrap();
    let to = direct(root, 0, 16);
    for n in 0..7 {
        rt.record(&mut list, &Command::Fill { to, pattern: &[n] }).unwrap();
    }
    assert_eq!(kind(rt.record(&mut list, &Command::Fill { to, pattern: &[9] })), Kind::ResourceExhausted);
    assert_eq!(list.len(), 7);
    list.end().unwrap();
    // Two go over, and four can be held.
    assert_eq!(kind(rt.execute(queue, &list, &[], &Around::NONE)), Kind::ResourceExhausted);
    assert_eq!(rt.tail(queue).unwrap().value, 0, "nothing of it was begun");
    list.reset();
    list.begin(0, 0).unwrap();
    for n in 0..6 {
        rt.record(&mut list, &Command::Fill { to, pattern: &[n] }).unwrap();
    }
    assert_eq!(
        kind(rt.record(&mut list, &Command::Fill { to, pattern: &[1, 2, 3, 4] })),
        Kind::ResourceExhausted
    );
    list.end().unwrap();
    let end = rt.execute(queue, &list, &[], &Around::NONE).unwrap().unwrap();
    while sim.drain() > 0 {
        rt.poll();
    }
    assert_eq!(rt.look(end), Ok(Look::Reached));
}

#[test]
fn commands_and_bytes_have_limits() {
    let (rt, _) = growing(1);
    let root = memory(rt, UPDATE_MAX as u64);
    let mut list = begun(rt, 0);
    let small = Command::Fill { to: direct(root, 0, 1), pattern: &[1] };
    for _ in 0..COMMANDS_MAX {
        rt.record(&mut list, &small).unwrap();
    }
    assert_eq!(kind(rt.record(&mut list, &small)), Kind::ResourceExhausted);
    list.reset();
    list.begin(0, 0).unwrap();
    let large = vec![1; UPDATE_MAX];
    let update = Command::Update { to: direct(root, 0, UPDATE_MAX as u64), bytes: &large };
    for _ in 0..BYTES_MAX / UPDATE_MAX {
        rt.record(&mut list, &update).unwrap();
    }
    assert_eq!(kind(rt.record(&mut list, &update)), Kind::ResourceExhausted);
}

#[test]
fn one_list_is_submitted_by_many_threads() {
    let (rt, sims) = growing(1);
    sims[0].0.at_once.store(true, SeqCst);
    let root = memory(rt, 8);
    let list = filled(rt, bound(0, 0, 1), &(0..50).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3, 4, 5, 6, 7].map(|n| {
            let list = &list;
            scope.spawn(move || {
                let queue = rt.queue(0, QueueOptions::default()).unwrap();
                for _ in 0..50 {
                    let end = rt.execute(queue, list, &[span(root, n, 1)], &Around::NONE).unwrap();
                    rt.wait(end.unwrap(), after_ms(10_000)).unwrap();
                }
            })
        });
        // By name: the scope's own end is ordered inside std, which the thread sanitizer does not see.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(bytes(rt, root), [49; 8]);
}
