//! What happens while a call is inside a backend, done right there: the backend of these tests runs a function of the
//! test's in its calls. Nothing that such a call uses may go meanwhile, and who waits for it to come out is rung for.
//!
//! # Safety
//! Registered memory is never touched.
#![allow(clippy::unwrap_used, unsafe_code)]

mod common;
use common::{Mutex, Os, after_ms};
use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    sync::{
        Barrier,
        atomic::{AtomicU32, AtomicU64, Ordering::*},
    },
};
use wharf_core::{
    bits::{Access, MemoryType},
    device::*,
    env::Deadline,
    fault::*,
    handle::Handle,
    runtime::{KernelRecord, Order, ProgramRecord, QueueOptions, Runtime, Store},
    tick::Tick,
    timeline::Point,
};

thread_local! {
    static HOOK: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Runs `f` in this thread's next call of the backend that takes part.
fn inside_the_next_call(f: impl FnOnce() + 'static) {
    HOOK.set(Some(Box::new(f)));
}

fn hook() {
    if let Some(f) = HOOK.take() {
        f();
    }
}

/// A device that checks what it is called with.
struct Checking {
    programs: Mutex<HashSet<u64>>,
    programs_made: AtomicU64,
    registered: Mutex<HashMap<u64, u64>>,
    registers: AtomicU32,
    allocations: Mutex<HashMap<u64, Vec<u8>>>,
    lanes: AtomicU32,
    slow: bool,
}

struct CheckingLane(&'static Checking, Tick);

#[derive(Clone)]
struct CheckingGauge(Tick);

type Rt = Runtime<&'static Checking, Os>;

fn runtime(slow: bool) -> (&'static Rt, &'static Checking) {
    let device: &'static Checking = Box::leak(Box::new(Checking {
        programs: Mutex::default(),
        programs_made: AtomicU64::new(0),
        registered: Mutex::default(),
        registers: AtomicU32::new(0),
        allocations: Mutex::default(),
        lanes: AtomicU32::new(0),
        slow,
    }));
    let devices = vec![device].leak();
    let store: &'static Store<&'static Checking, Os, 2, 2, 2, 2> = Box::leak(Box::new(Store::new()));
    (Box::leak(Box::new(Runtime::new(store.parts(), devices, 3))), device)
}

impl Checking {
    fn loaded(&self, program: u64) {
        assert!(self.programs.lock().unwrap().contains(&program), "program {program} is loaded");
    }
    fn using(&self, program: u64) {
        self.loaded(program);
        hook();
        self.loaded(program);
    }
}

impl Device for &'static Checking {
    type Lane = CheckingLane;
    type Gauge = CheckingGauge;
    fn caps(&self) -> Caps {
        Caps {
            ops: 1 << op::BARRIER as u64,
            backend: 1,
            space: 0,
            native_wait: false,
            depth: 64,
            pace: Pace::Pushed,
            lanes: u16::MAX,
            align: 16,
            args_max: 256,
            group_max: 64,
            shared_max: 1024,
            pattern_max: u32::MAX,
            pattern_pow2: false,
            update_max: u32::MAX,
            alloc_max: u64::MAX,
            mappable: true,
            coherent: true,
            host_copies: true,
        }
    }
    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        let bytes = vec![0; want.len as usize + 16];
        let base = (bytes.as_ptr() as u64).next_multiple_of(16);
        self.allocations.lock().unwrap().insert(base, bytes);
        Ok(Block { base, len: want.len, native: 0 })
    }
    fn free(&self, block: &Block) -> Result<(), Fault> {
        assert!(self.allocations.lock().unwrap().remove(&block.base).is_some());
        Ok(())
    }
    fn lane(&self, tick: Tick) -> Result<(CheckingLane, CheckingGauge, usize), Fault> {
        self.lanes.fetch_add(1, SeqCst);
        Ok((CheckingLane(self, tick), CheckingGauge(tick), 0))
    }
}

impl Lane for CheckingLane {
    fn submit(&mut self, steps: &[Step<'_>], _: Hint) -> Result<usize, (usize, Fault)> {
        Ok(steps.len())
    }
}

impl Drop for CheckingLane {
    fn drop(&mut self) {
        let _ = self.1;
        self.0.lanes.fetch_sub(1, SeqCst);
    }
}

impl Gauge for CheckingGauge {
    fn poll(&self) {}
    fn wait(&self, value: u64, _: Deadline) -> bool {
        self.0.advance(value);
        hook();
        true
    }
    fn times(&self, _: u64) -> Option<Times> {
        None
    }
}

impl Programs for &'static Checking {
    fn accepts(&self, _: &[u8]) -> bool {
        true
    }
    fn load(&self, _: &[u8]) -> Result<u64, Fault> {
        let program = self.programs_made.fetch_add(1, SeqCst);
        self.programs.lock().unwrap().insert(program);
        Ok(program)
    }
    fn unload(&self, program: u64) -> Result<(), Fault> {
        assert!(self.programs.lock().unwrap().remove(&program), "unloaded once");
        Ok(())
    }
    fn kernel(&self, program: u64, _: &[u8], _: &[Param]) -> Result<Kernel, Fault> {
        self.using(program);
        Ok(Kernel { native: program, args_len: 0, params: 0, group_max: 1, shared_static: 0 })
    }
    fn global(&self, program: u64, _: &[u8]) -> Result<Block, Fault> {
        self.using(program);
        Ok(Block { base: 16, len: 16, native: 0 })
    }
    fn symbol(&self, program: u64, _: u32, _: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault> {
        self.using(program);
        Ok(None)
    }
    fn params(&self, kernel: u64, _: &mut [Param]) -> Result<usize, Fault> {
        self.using(kernel);
        Ok(0)
    }
    fn occupancy(&self, kernel: u64, _: u64) -> Result<u32, Fault> {
        self.using(kernel);
        Ok(1)
    }
}

impl HostAccess for &'static Checking {
    fn map(&self, block: &Block, offset: u64, _: u64) -> Result<*mut u8, Fault> {
        hook();
        assert!(self.allocations.lock().unwrap().contains_key(&block.base), "what is mapped is allocated");
        Ok((block.base + offset) as *mut u8)
    }
    fn unmap(&self, _: &Block, _: u64, _: u64) -> Result<(), Fault> {
        Ok(())
    }
    fn sync(&self, _: &Block, _: u64, _: u64, _: bool) -> Result<(), Fault> {
        Ok(())
    }
    fn register(&self, host: *mut u8, len: u64, _: u32) -> Result<Block, Fault> {
        self.registers.fetch_add(1, SeqCst);
        if self.slow {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        hook();
        let before = self.registered.lock().unwrap().insert(host as u64, len);
        assert_eq!(before, None, "a range is registered once at a time, as drivers want it");
        Ok(Block { base: host as u64, len, native: 0 })
    }
    fn unregister(&self, block: &Block) -> Result<(), Fault> {
        if self.slow {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        let before = self.registered.lock().unwrap().remove(&block.base);
        assert_eq!(before, Some(block.len), "what ends was registered so");
        Ok(())
    }
}

type Asks = fn(&Rt, Handle<ProgramRecord>, Handle<KernelRecord>) -> Result<(), Fault>;

fn barrier(rt: &'static Rt, queue: Handle<wharf_core::runtime::Queue<&'static Checking, Os>>) -> Point {
    rt.submit(queue, &[], Op::Barrier, &[], Hint::None).unwrap().unwrap()
}

#[test]
fn who_leaves_a_closing_lane_last_rings() {
    let (rt, device) = runtime(false);
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let end = barrier(rt, queue);
    static RUNG: AtomicU32 = AtomicU32::new(0);
    inside_the_next_call(move || {
        // The work has ended; the thread that helped is still inside the lane.
        rt.close(queue).unwrap();
        rt.poll();
        RUNG.store(rt.bell().epoch.load(SeqCst), SeqCst);
    });
    let _ = rt.wait(end, after_ms(5000));
    assert_eq!(device.lanes.load(SeqCst), 1, "it could not end with somebody inside");
    assert_ne!(rt.bell().epoch.load(SeqCst), RUNG.load(SeqCst), "whoever pumps is told that it can now");
    rt.poll();
    assert_eq!(device.lanes.load(SeqCst), 0);
}

#[test]
fn a_program_stays_loaded_while_the_backend_is_asked_of_it() {
    let (rt, device) = runtime(false);
    let calls: [Asks; 5] = [
        |rt, program, _| rt.kernel(program, b"other", &[]).map(drop),
        |rt, program, _| rt.global(program, b"global").map(drop),
        |rt, program, _| rt.symbol(program, 0, &mut []).map(drop),
        |rt, _, kernel| rt.params(kernel, &mut []).map(drop),
        |rt, _, kernel| rt.occupancy(kernel, 0).map(drop),
    ];
    for call in calls {
        let program = rt.load(0, b"image").unwrap();
        let kernel = rt.kernel(program, b"kernel", &[]).unwrap();
        inside_the_next_call(move || {
            rt.unload(program).unwrap();
            rt.poll();
        });
        let before = rt.bell().epoch.load(SeqCst);
        call(rt, program, kernel).unwrap();
        assert_ne!(rt.bell().epoch.load(SeqCst), before, "whoever pumps is told");
        assert_eq!(device.programs.lock().unwrap().len(), 1, "it stayed for the call");
        assert!(rt.kernel_info(kernel).is_err() && rt.global(program, b"global").is_err());
        rt.poll();
        assert_eq!(device.programs.lock().unwrap().len(), 0, "and went after it");
    }
    // The kernel that was made while its program was unloaded went with it: the first slots are used again.
    let program = rt.load(0, b"image").unwrap();
    let slot = |raw: u64| (raw >> 32) & 0xff_ffff;
    let kernels = [0; 2].map(|_| slot(rt.kernel(program, b"kernel", &[]).unwrap().raw()));
    assert!(kernels.iter().all(|slot| *slot < 2), "{kernels:?}");
}

#[test]
fn memory_stays_while_the_backend_maps_it() {
    let (rt, device) = runtime(false);
    let kind = (MemoryType::DEVICE_LOCAL | MemoryType::HOST_VISIBLE).bits();
    let usage = wharf_core::bits::Usage::ALL.bits();
    let root = rt.allocate(0, &Want { len: 64, align: 0, kind, access: 0, usage }).unwrap();
    inside_the_next_call(move || {
        rt.free(root).unwrap();
        rt.poll();
    });
    let span = wharf_core::runtime::Span { root, offset: 0, len: 64 };
    rt.map(&span, Access::READ).unwrap();
    rt.poll();
    assert_eq!(device.allocations.lock().unwrap().len(), 0);
    assert_eq!(rt.map(&span, Access::READ).unwrap_err().kind, Kind::InvalidHandle);
}

fn register(rt: &Rt, at: u64, len: u64) -> Result<Handle<wharf_core::record::Record>, Fault> {
    // SAFETY: never touched.
    unsafe { rt.register(0, at as *mut u8, len, Access::ALL) }
}
fn unregister(rt: &Rt, at: u64) -> Result<(), Fault> {
    rt.unregister(0, at as *const u8)
}

#[test]
fn a_range_whose_unregister_is_late_can_be_registered_again() {
    let (rt, device) = runtime(false);
    let queue = rt.queue(0, QueueOptions::default()).unwrap();
    let old = register(rt, 0x1000, 0x100).unwrap();
    barrier(rt, queue); // Never ends by itself.
    unregister(rt, 0x1000).unwrap();
    assert!(rt.is_late(old));
    assert_eq!(unregister(rt, 0x1000).unwrap_err().kind, Kind::InvalidArgument, "nothing is registered now");
    // Again, whole and a part of it; what sticks out has to wait for the old one.
    let new = register(rt, 0x1000, 0x100).unwrap();
    assert_eq!(register(rt, 0x1080, 0x80), Ok(new));
    let refused = register(rt, 0x1080, 0x81).unwrap_err();
    assert_eq!((refused.kind, refused.blame), (Kind::InvalidArgument, Blame::Caller));
    assert_ne!(new, old);
    assert!(rt.allocation(old).is_err() && rt.allocation(new).is_ok());
    assert_eq!(device.registers.load(SeqCst), 1, "the backend was told once");
    // The old one's last use ends, and ends nothing of the new one.
    let end = barrier(rt, queue);
    rt.wait(end, after_ms(5000)).unwrap();
    rt.poll();
    assert_eq!(device.registered.lock().unwrap().len(), 1);
    assert_eq!(rt.release(old).unwrap_err().kind, Kind::InvalidHandle);
    unregister(rt, 0x10ff).unwrap();
    assert_eq!(device.registered.lock().unwrap().len(), 1);
    unregister(rt, 0x1000).unwrap();
    assert_eq!(device.registered.lock().unwrap().len(), 0);
    assert_eq!(unregister(rt, 0x1000).unwrap_err().kind, Kind::InvalidArgument);
    assert!(register(rt, 0x1080, 0x81).is_ok(), "past its end the rest is free");
}

#[test]
fn what_the_caller_overlaps_is_his_own_mistake() {
    let (rt, device) = runtime(false);
    register(rt, 0x2000, 0x100).unwrap();
    for (at, len) in [(0x1fff, 2), (0x20ff, 2), (0x1fff, 0x200)] {
        let fault = register(rt, at, len).unwrap_err();
        assert_eq!((fault.kind, fault.blame), (Kind::InvalidArgument, Blame::Caller), "{at:#x}");
    }
    assert_eq!(device.registers.load(SeqCst), 1, "the backend was not asked");
    let want = |len| Want { len, align: 0, kind: 0, access: 0, usage: 0 };
    // SAFETY: never touched.
    let wrap = |at: u64, len| unsafe { rt.wrap(0, at as *mut u8, &want(len), None) };
    let wrapped = wrap(0x3000, 0x100).unwrap();
    let fault = wrap(0x3080, 0x100).unwrap_err();
    assert_eq!((fault.kind, fault.blame, fault.site), (Kind::InvalidArgument, Blame::Caller, Site::Register));
    rt.release(wrapped).unwrap();
    wrap(0x3080, 0x100).unwrap();
}

#[test]
fn threads_register_one_range_at_once_and_the_count_is_exact() {
    const THREADS: usize = 4;
    let (rt, device) = runtime(true);
    let queue = rt.queue(0, QueueOptions { order: Order::InOrder, profile: false }).unwrap();
    let start: &'static Barrier = Box::leak(Box::new(Barrier::new(THREADS)));
    let threads: Vec<_> = (0..THREADS)
        .map(|n| {
            std::thread::spawn(move || {
                start.wait();
                for round in 0..100 {
                    let handle = register(rt, 0x1000, 0x100).unwrap();
                    assert!(rt.allocation(handle).is_ok(), "it holds while it is registered");
                    if n == 0 && round % 2 == 0 {
                        barrier(rt, queue); // Some ends are late ones.
                    }
                    unregister(rt, 0x1040).unwrap();
                    if n == 0 && round % 8 == 7 {
                        rt.wait(barrier(rt, queue), after_ms(5000)).unwrap();
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let _ = rt.wait(barrier(rt, queue), after_ms(5000));
    rt.poll();
    assert_eq!(device.registered.lock().unwrap().len(), 0, "as often ended as registered");
    assert_eq!(unregister(rt, 0x1000).unwrap_err().kind, Kind::InvalidArgument);
}

/// The seed is the schedule's: a stale release meets the next record of its slot only by chance, so this goes on a while.
#[test]
fn a_stale_release_never_counts_down_the_next_record_of_the_slot() {
    let (rt, device) = runtime(false);
    static STALE: AtomicU64 = AtomicU64::new(0);
    static STOP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let want = Want { len: 16, align: 0, kind: 0, access: 0, usage: 0 };
    let stray: Vec<_> = [false, true]
        .into_iter()
        .map(|frees| {
            std::thread::spawn(move || {
                while !STOP.load(Relaxed) {
                    let stale = Handle::from_raw(STALE.load(Relaxed));
                    let _ = if frees { rt.free(stale) } else { rt.release(stale) };
                }
            })
        })
        .collect();
    let begun = std::time::Instant::now();
    while begun.elapsed().as_millis() < 1500 {
        let old = rt.allocate(0, &want).unwrap();
        STALE.store(old.raw(), Relaxed); // Now they let go of it, both, whenever they come to it.
        while rt.allocation(old).is_ok() {
            let _ = rt.release(old);
        }
        let new = rt.allocate(0, &want).unwrap();
        for _ in 0..20 {
            assert!(rt.allocation(new).is_ok(), "nobody else has let go of it");
        }
        rt.retain(new).unwrap();
        rt.release(new).unwrap();
        assert_eq!(rt.release(new), Ok(()), "the last one is its owner's");
        rt.poll();
    }
    STOP.store(true, Relaxed);
    stray.into_iter().for_each(|thread| thread.join().unwrap());
    rt.poll();
    assert_eq!(device.allocations.lock().unwrap().len(), 0);
}
