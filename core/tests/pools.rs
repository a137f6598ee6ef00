//! Pools of freed memory, heaps and compatibility, parts of an allocation. Rules: IREE's allocator contract (caching
//! allocator, heaps, compatibility) and its release callbacks.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use wharf_core::{bits::*, device::Want, fault::*, handle::Handle, record::Record, runtime::*};

const LIMITS: PoolLimits = PoolLimits { bytes: 4096, blocks: 3, largest: 2048 };

fn want(len: u64) -> Want {
    Want { len, align: 0, kind: 0, access: 0, usage: 0 }
}

fn base(rt: &'static Growing, record: Handle<Record>) -> u64 {
    rt.allocation(record).unwrap().base
}

#[test]
fn a_freed_block_is_the_next_of_its_kind() {
    let (rt, sims) = growing(1);
    rt.set_pool(0, LIMITS).unwrap();
    let first = rt.allocate(0, &want(100)).unwrap();
    let address = base(rt, first);
    rt.free(first).unwrap();
    assert_eq!(sims[0].0.frees.load(SeqCst), 0, "the backend keeps its block");
    assert_eq!(rt.allocation(first).unwrap_err().kind, Kind::InvalidHandle);
    assert_eq!(rt.free(first).unwrap_err().kind, Kind::InvalidHandle, "a second free is an error");
    assert_eq!(rt.retain(first).unwrap_err().kind, Kind::InvalidHandle);
    assert_eq!(rt.find(None, address).unwrap_err().kind, Kind::NotFound);
    assert_eq!(rt.statistics(0).unwrap().device.live, 0, "what is kept is not live");
    for other in [
        want(101),
        Want { usage: Usage::TRANSFER.bits(), ..want(100) },
        Want { access: Access::READ.bits(), ..want(100) },
        Want { kind: MemoryType::HOST_LOCAL.bits(), ..want(100) },
    ] {
        assert_ne!(base(rt, rt.allocate(0, &other).unwrap()), address, "{other:?}");
    }
    let again = rt.allocate(0, &want(100)).unwrap();
    assert_eq!(base(rt, again), address);
    assert_ne!(again, first);
    assert_eq!(rt.find(None, address + 99).unwrap().record, again);
    let kept = rt.pool_statistics(0).unwrap();
    assert_eq!((kept.hits, kept.misses, kept.bytes, kept.blocks, kept.evicted), (1, 5, 0, 0, 0));
}

#[test]
fn beyond_its_limits_a_pool_gives_back_what_lay_longest() {
    let (rt, sims) = growing(1);
    rt.set_pool(0, LIMITS).unwrap();
    let all: Vec<_> = [100, 200, 300, 400].iter().map(|len| rt.allocate(0, &want(*len)).unwrap()).collect();
    let bases: Vec<_> = all.iter().map(|record| base(rt, *record)).collect();
    all.iter().for_each(|record| rt.free(*record).unwrap());
    let kept = rt.pool_statistics(0).unwrap();
    assert_eq!((kept.blocks, kept.bytes, kept.evicted), (3, 900, 1));
    assert_ne!(base(rt, rt.allocate(0, &want(200)).unwrap()), 0);
    assert_eq!(rt.pool_statistics(0).unwrap().hits, 1);
    assert!(!sims[0].0.blocks.lock().unwrap().contains_key(&bases[0]), "the first that was freed went");
    let large = rt.allocate(0, &want(2049)).unwrap();
    rt.free(large).unwrap();
    assert_eq!(rt.pool_statistics(0).unwrap().blocks, 2, "too large for the pool");
    assert_eq!(rt.trim(0).unwrap(), 700);
    assert_eq!(rt.trim(0).unwrap(), 0, "nothing to do is no error");
    let kept = rt.pool_statistics(0).unwrap();
    assert_eq!((kept.blocks, kept.bytes, kept.evicted), (0, 0, 3));
    assert_eq!(sims[0].0.blocks.lock().unwrap().len(), 1, "only what is live is left with the backend");
}

#[test]
fn a_pool_that_is_switched_off_gives_everything_back() {
    let (rt, sims) = growing(1);
    rt.set_pool(0, LIMITS).unwrap();
    rt.free(rt.allocate(0, &want(100)).unwrap()).unwrap();
    rt.set_pool(0, PoolLimits::default()).unwrap();
    assert_eq!(sims[0].0.frees.load(SeqCst), 1);
    rt.free(rt.allocate(0, &want(100)).unwrap()).unwrap();
    assert_eq!(sims[0].0.frees.load(SeqCst), 2);
    assert_eq!(rt.set_pool(1, LIMITS).unwrap_err().kind, Kind::InvalidDevice);
}

#[test]
fn a_block_that_a_backend_refuses_to_free_stays_in_the_pool() {
    let (rt, sims) = growing(1);
    rt.set_pool(0, LIMITS).unwrap();
    rt.free(rt.allocate(0, &want(100)).unwrap()).unwrap();
    sims[0].0.refuse_free.store(true, SeqCst);
    assert!(rt.trim(0).is_err());
    assert_eq!(rt.pool_statistics(0).unwrap().blocks, 1);
    sims[0].0.refuse_free.store(false, SeqCst);
    assert_eq!(rt.trim(0).unwrap(), 100);
}

#[test]
fn a_backend_that_is_out_of_memory_gets_its_blocks_back_first() {
    let (rt, sims) = growing(1);
    rt.set_pool(0, LIMITS).unwrap();
    rt.free(rt.allocate(0, &want(100)).unwrap()).unwrap();
    sims[0].0.refuse_allocate.store(true, SeqCst);
    assert_eq!(rt.allocate(0, &want(300)).unwrap_err().kind, Kind::ResourceExhausted);
    assert_eq!((rt.pool_statistics(0).unwrap().blocks, sims[0].0.frees.load(SeqCst)), (0, 1));
}

#[test]
fn memory_in_use_reaches_the_pool_after_its_last_use() {
    let (rt, sims) = growing(1);
    rt.set_pool(0, LIMITS).unwrap();
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let memory = rt.allocate(0, &want(64)).unwrap();
    rt.fill(queue, &Span { root: memory, offset: 0, len: 64 }, &[1], &Around::NONE).unwrap();
    rt.free(memory).unwrap();
    assert_eq!(rt.pool_statistics(0).unwrap().blocks, 0, "a fill may still write to it");
    assert_ne!(base(rt, rt.allocate(0, &want(64)).unwrap()), 0);
    assert_eq!(rt.pool_statistics(0).unwrap().hits, 0);
    sims[0].0.drain();
    rt.poll();
    assert_eq!(rt.pool_statistics(0).unwrap().blocks, 1);
}

#[test]
fn threads_share_a_pool_without_loss() {
    let (rt, sims) = growing(1);
    rt.set_pool(0, PoolLimits { bytes: 1 << 20, blocks: 8, largest: 4096 }).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            scope.spawn(move || {
                for turn in 0..500 {
                    let len = 64 * (1 + (thread + turn) % 5);
                    let memory = rt.allocate(0, &want(len)).unwrap();
                    let known = rt.allocation(memory).unwrap();
                    assert_eq!(rt.find(None, known.base + len - 1).unwrap().record, memory);
                    rt.free(memory).unwrap();
                }
            });
        }
    });
    let kept = rt.pool_statistics(0).unwrap();
    assert_eq!(kept.hits + kept.misses, 4000);
    assert_eq!(rt.statistics(0).unwrap().device.live, 0);
    rt.trim(0).unwrap();
    assert!(sims[0].0.blocks.lock().unwrap().is_empty());
}

#[test]
fn a_device_tells_its_heaps() {
    let (rt, sims) = growing(1);
    let unknown = Heap { kind: MemoryType::empty(), usage: Usage::empty(), alloc_max: 0, align: 0 };
    let mut heaps = [unknown; 4];
    let count = rt.heaps(0, &mut heaps).unwrap();
    let caps = *sims[0].0.caps.lock().unwrap();
    assert_eq!(heaps[0].align, u64::from(caps.align));
    assert!(heaps[..count].iter().all(|heap| heap.kind.contains(MemoryType::DEVICE_LOCAL)));
    let short = rt.heaps(0, &mut []).unwrap_err();
    assert_eq!((short.kind, short.values[0]), (Kind::OutOfRange, count as u64), "the number is told");
    sims[0].0.caps.lock().unwrap().mappable = false;
    assert_eq!(rt.heaps(0, &mut heaps).unwrap(), 1);
    assert!(!heaps[0].usage.contains(Usage::MAPPING) && !heaps[0].kind.contains(MemoryType::HOST_VISIBLE));
    assert_eq!(rt.heaps(9, &mut heaps).unwrap_err().kind, Kind::InvalidDevice);
}

#[test]
fn compatibility_says_what_a_wish_comes_to() {
    let (rt, sims) = growing(1);
    let (bits, filled) = rt.compatibility(0, &want(100)).unwrap();
    assert!(bits.contains(Compatibility::ALLOCATABLE | Compatibility::QUEUE_TRANSFER));
    assert!(filled.kind != 0 && filled.access == Access::ALL.bits() && filled.align > 0, "{filled:?}");
    let mut caps = sims[0].0.caps.lock().unwrap();
    (caps.mappable, caps.alloc_max) = (false, 1000);
    drop(caps);
    let mapped = Want { usage: Usage::MAPPING.bits(), ..want(100) };
    assert!(rt.compatibility(0, &mapped).unwrap().0.is_empty(), "the host cannot map it");
    assert!(rt.compatibility(0, &want(1001)).unwrap().0.is_empty(), "larger than any allocation");
    assert!(!rt.compatibility(0, &want(1000)).unwrap().0.contains(Compatibility::EXPORTABLE));
    let mut caps = sims[0].0.caps.lock().unwrap();
    (caps.mappable, caps.coherent) = (true, false);
    drop(caps);
    assert!(rt.compatibility(0, &mapped).unwrap().0.contains(Compatibility::LOW_PERFORMANCE));
    assert!(rt.compatibility(0, &Want { align: 3, ..want(10) }).unwrap().0.is_empty());
}

extern "C" fn count(user: *mut ()) {
    // SAFETY: the tests below pass counters that outlive the runtime's use of them.
    #[allow(unsafe_code)]
    unsafe { &*user.cast::<AtomicU32>() }.fetch_add(1, SeqCst);
}

#[test]
fn a_part_has_its_own_life_and_keeps_the_whole() {
    let (rt, sims) = growing(1);
    let released: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
    let notice = Some((count as ReleaseFn, std::ptr::from_ref(released).cast_mut().cast()));
    let whole = rt.allocate(0, &want(1000)).unwrap();
    let from = base(rt, whole);
    let part = rt.part(&Span { root: whole, offset: 100, len: 50 }, notice).unwrap();
    let known = rt.allocation(part).unwrap();
    assert_eq!((known.base, known.len), (from + 100, 50));
    assert_eq!(rt.find(None, from + 120).unwrap().record, whole, "the map knows the whole");
    let inner = rt.part(&Span { root: part, offset: 10, len: 5 }, notice).unwrap();
    assert_eq!(rt.allocation(inner).unwrap().base, from + 110);
    let past = Span { root: part, offset: 10, len: 41 };
    assert_eq!(rt.part(&past, notice).unwrap_err().kind, Kind::OutOfRange, "past the part, inside the whole");

    rt.release(whole).unwrap();
    assert!(rt.allocation(whole).is_ok(), "its parts keep it");
    rt.free(inner).unwrap();
    assert_eq!(released.load(SeqCst), 1);
    rt.free(part).unwrap();
    assert_eq!(released.load(SeqCst), 2);
    assert_eq!(rt.allocation(whole).unwrap_err().kind, Kind::InvalidHandle, "it went with its last part");
    assert_eq!(sims[0].0.frees.load(SeqCst), 1);
    assert_eq!(rt.statistics(0).unwrap().device.live, 0, "parts are counted with the whole alone");
}

#[test]
fn a_part_is_released_after_its_last_use_only() {
    let (rt, sims) = growing(1);
    let released: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
    let notice = Some((count as ReleaseFn, std::ptr::from_ref(released).cast_mut().cast()));
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let whole = rt.allocate(0, &want(100)).unwrap();
    let part = rt.part(&Span { root: whole, offset: 20, len: 10 }, notice).unwrap();
    rt.fill(queue, &Span { root: part, offset: 2, len: 4 }, &[7], &Around::NONE).unwrap();
    rt.free(part).unwrap();
    assert_eq!(released.load(SeqCst), 0, "the fill still writes to it");
    sims[0].0.drain();
    rt.poll();
    assert_eq!(released.load(SeqCst), 1);
    let blocks = sims[0].0.blocks.lock().unwrap();
    let bytes = blocks.values().next().unwrap();
    assert!(bytes.iter().enumerate().all(|(i, byte)| (*byte == 7) == (22..26).contains(&i)));
}

#[test]
fn parts_of_memory_that_was_freed_whoever_uses_it_are_stale() {
    let (rt, _) = growing(1);
    let whole = rt.allocate(0, &want(100)).unwrap();
    let part = rt.part(&Span { root: whole, offset: 20, len: 10 }, None).unwrap();
    rt.free(whole).unwrap();
    assert_eq!(rt.allocation(part).unwrap_err().kind, Kind::InvalidHandle);
    rt.free(part).unwrap();
}

#[test]
fn overlapping_parts_are_one_memory_to_a_copy() {
    let (rt, _) = growing(1);
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let whole = rt.allocate(0, &want(100)).unwrap();
    let part = rt.part(&Span { root: whole, offset: 20, len: 40 }, None).unwrap();
    let (from, to) = (Span { root: whole, offset: 0, len: 30 }, Span { root: part, offset: 0, len: 30 });
    assert_eq!(rt.copy(queue, &from, &to, &Around::NONE).unwrap_err().kind, Kind::InvalidArgument);
    let apart = Span { offset: 60, ..from };
    rt.copy(queue, &apart, &to, &Around::NONE).unwrap();
}
