//! An environment of std and a device that a test moves by hand: work runs when the test says so, in the order the test
//! says, and fails when the test says so.
//!
//! # Safety
//! Addresses that operations carry were checked by core against live blocks, or are process memory of the test.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // Each test binary uses its part.
#![allow(unsafe_code)]

mod lock;
pub use lock::Mutex;

use std::{
    alloc::{Layout, alloc_zeroed},
    cell::RefCell,
    collections::{HashMap, VecDeque},
    ptr::NonNull,
    sync::{
        Condvar, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*},
    },
    time::{Duration, Instant},
};
use wharf_core::{
    device::*,
    env::{Deadline, Env, Lock},
    fault::*,
    ranges::Tree,
    runtime::{Runtime, Store},
    tick::Tick,
};

/// Spins until it is free.
pub struct StdLock(Mutex<()>);
// SAFETY: a mutex lets one closure run at a time and deadlocks on nesting.
unsafe impl Lock for StdLock {
    const NEW: Self = StdLock(Mutex::new(()));
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        meanwhile();
        let result = {
            let _inside = self.0.lock().unwrap();
            f()
        };
        meanwhile();
        result
    }
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let _inside = self.0.try_lock()?;
        Some(f())
    }
}

thread_local! {
    static MEANWHILE: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

/// Runs `f` wherever this thread is about to take a lock, or has just left it: what another thread could do there.
pub fn whenever_unlocked(f: impl FnMut() + 'static) {
    MEANWHILE.set(Some(Box::new(f)));
}

fn meanwhile() {
    if let Some(mut f) = MEANWHILE.take() {
        f();
        MEANWHILE.set(Some(f));
    }
}

/// Grows, sleeps on one condition for all.
pub struct Os;
static LOT: (std::sync::Mutex<()>, Condvar) = (std::sync::Mutex::new(()), Condvar::new());

pub fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

pub fn after_ms(ms: u64) -> Deadline {
    Some(now() + ms * 1_000_000)
}

impl Env for Os {
    type Lock = StdLock;
    type Ranges = Tree<StdLock>;
    fn sleep(word: &AtomicU32, seen: u32, until: Deadline, at_most_ns: u64) -> bool {
        let guard = LOT.0.lock().unwrap();
        let left = until.map_or(u64::MAX, |until| until.saturating_sub(now()));
        // Never early: a waiter that only gets on because another was woken is then found out.
        let nap = Duration::from_nanos(left.min(at_most_ns).min(10_000_000_000));
        drop(LOT.1.wait_timeout_while(guard, nap, |()| word.load(Acquire) == seen).unwrap());
        left > 0
    }
    fn wake(_: &AtomicU32) {
        let _guard = LOT.0.lock().unwrap();
        LOT.1.notify_all();
    }
    fn grow(layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: no layout of core is empty.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }
}

/// Never grows.
pub struct Fixed;
impl Env for Fixed {
    type Lock = StdLock;
    type Ranges = wharf_core::ranges::Sorted<StdLock, 8>;
    fn sleep(word: &AtomicU32, seen: u32, until: Deadline, at_most_ns: u64) -> bool {
        Os::sleep(word, seen, until, at_most_ns)
    }
    fn wake(word: &AtomicU32) {
        Os::wake(word);
    }
    fn grow(_: Layout) -> Option<NonNull<u8>> {
        None
    }
}

pub enum Owned {
    Barrier,
    Copy(u64, u64, u64),
    Fill(u64, u64, Vec<u8>),
    Update(u64, Vec<u8>),
    After(usize, u64),
    Call(Box<dyn FnOnce() + Send>),
}

pub struct SimLane {
    pub todo: VecDeque<(Owned, u64)>,
    tick: Option<Tick>,
    pub value: u64,
    pub dead: bool,
    /// Submits that said that more follows.
    pub hinted_more: u32,
}

/// What the device is and does, all changeable.
pub struct Sim {
    pub caps: Mutex<Caps>,
    pub lanes: Mutex<Vec<SimLane>>,
    pub blocks: Mutex<HashMap<u64, Vec<u8>>>,
    pub refuse_free: AtomicBool,
    pub refuse_allocate: AtomicBool,
    pub refuse_submit_at: AtomicU64,
    pub submits: AtomicU64,
    pub frees: AtomicU64,
    pub log: Mutex<Vec<u64>>,
    /// Work runs inside `submit`, for tests that only look at results.
    pub at_once: AtomicBool,
}

impl Sim {
    pub fn new() -> Sim {
        let caps = Caps {
            ops: (1 << op::BARRIER
                | 1 << op::COPY
                | 1 << op::FILL
                | 1 << op::UPDATE
                | 1 << op::AFTER
                | 1 << op::CALL) as u64,
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
            mappable: false,
            coherent: false,
            host_copies: true,
        };
        Sim {
            caps: Mutex::new(caps),
            lanes: Mutex::default(),
            blocks: Mutex::default(),
            refuse_free: AtomicBool::new(false),
            refuse_allocate: AtomicBool::new(false),
            refuse_submit_at: AtomicU64::new(u64::MAX),
            submits: AtomicU64::new(0),
            frees: AtomicU64::new(0),
            log: Mutex::default(),
            at_once: AtomicBool::new(false),
        }
    }

    /// Runs the next operation of a lane; `false` if there is none or it waits.
    pub fn step(&self, lane: usize) -> bool {
        let (work, tick) = {
            let mut lanes = self.lanes.lock().unwrap();
            let values: Vec<u64> = lanes.iter().map(|l| if l.dead { u64::MAX } else { l.value }).collect();
            let l = &mut lanes[lane];
            match l.todo.front() {
                None => return false,
                Some((Owned::After(other, value), _)) if values[*other] < *value => return false,
                _ => {}
            }
            (l.todo.pop_front().unwrap(), l.tick.unwrap())
        };
        run(work.0);
        if work.1 != 0 {
            self.log.lock().unwrap().push((lane as u64) << 32 | work.1);
            self.lanes.lock().unwrap()[lane].value = work.1;
            tick.advance(work.1);
        }
        true
    }

    /// Runs whatever can run; how many operations that were.
    pub fn drain(&self) -> usize {
        let mut ran = 0;
        loop {
            let count = self.lanes.lock().unwrap().len();
            let before = ran;
            for lane in 0..count {
                while self.step(lane) {
                    ran += 1;
                }
            }
            if ran == before {
                return ran;
            }
        }
    }

    pub fn fail_lane(&self, lane: usize, fault: &Fault) {
        let tick = {
            let mut lanes = self.lanes.lock().unwrap();
            lanes[lane].todo.clear();
            lanes[lane].dead = true;
            lanes[lane].tick.unwrap()
        };
        tick.fail(fault);
    }
}

fn run(work: Owned) {
    match work {
        Owned::Barrier | Owned::After(..) => {}
        // SAFETY: core checked the ranges against live blocks or process memory of the test.
        Owned::Copy(from, to, len) => unsafe {
            std::ptr::copy(from as *const u8, to as *mut u8, len as usize)
        },
        Owned::Fill(to, len, pattern) => {
            let bytes: Vec<u8> = pattern.iter().copied().cycle().take(len as usize).collect();
            run(Owned::Update(to, bytes));
        }
        // SAFETY: as for copies.
        Owned::Update(to, bytes) => unsafe { std::ptr::copy(bytes.as_ptr(), to as *mut u8, bytes.len()) },
        Owned::Call(call) => call(),
    }
}

/// The device as core sees it: a reference, so that the test keeps hold of it.
pub struct SimRef(pub &'static Sim);

pub struct SimEnd(&'static Sim, usize);

impl Device for SimRef {
    type Lane = SimEnd;
    type Gauge = ();
    fn caps(&self) -> Caps {
        *self.0.caps.lock().unwrap()
    }
    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        if want.len > 1 << 30 || self.0.refuse_allocate.load(SeqCst) {
            let memory = [want.len, 0];
            return Err(Fault::backend(Kind::ResourceExhausted, Site::Allocate, Why::Memory, memory));
        }
        let align = want.align.max(16);
        let mut bytes = vec![0u8; (want.len + align) as usize];
        let base = (bytes.as_mut_ptr() as u64).next_multiple_of(align);
        self.0.blocks.lock().unwrap().insert(base, bytes);
        Ok(Block { base, len: want.len, native: 7 })
    }
    fn free(&self, block: &Block) -> Result<(), Fault> {
        if self.0.refuse_free.load(SeqCst) {
            return Err(Fault::backend(Kind::BackendFailure, Site::Free, Why::Native, [0; 2]).with_native(99));
        }
        self.0.frees.fetch_add(1, SeqCst);
        self.0.blocks.lock().unwrap().remove(&block.base).expect("freed what was not allocated");
        Ok(())
    }
    fn lane(&self, tick: Tick) -> Result<(SimEnd, (), usize), Fault> {
        let mut lanes = self.0.lanes.lock().unwrap();
        if lanes.len() >= self.caps().lanes as usize {
            return Err(Fault::full(Site::Queue, self.caps().lanes as u64));
        }
        lanes.push(SimLane {
            todo: VecDeque::new(),
            tick: Some(tick),
            value: 0,
            dead: false,
            hinted_more: 0,
        });
        Ok((SimEnd(self.0, lanes.len() - 1), (), lanes.len() - 1))
    }
}

impl Lane for SimEnd {
    fn submit(&mut self, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)> {
        for (n, step) in steps.iter().enumerate() {
            if self.0.submits.fetch_add(1, SeqCst) == self.0.refuse_submit_at.load(SeqCst) {
                return Err((
                    n,
                    Fault::backend(Kind::BackendFailure, Site::Submit, Why::Native, [0; 2]).with_native(5),
                ));
            }
            let depth = self.0.caps.lock().unwrap().depth as usize;
            let owned = match step.op {
                Op::Barrier => Owned::Barrier,
                Op::Copy { from, to, len, .. } => Owned::Copy(from, to, len),
                Op::Fill { to, len, pattern } => Owned::Fill(to, len, pattern.to_vec()),
                Op::Update { to, bytes } => Owned::Update(to, bytes.to_vec()),
                Op::After { lane, value } => Owned::After(lane, value),
                Op::Call(HostCall { call, user }) => {
                    let user = user as usize;
                    // SAFETY: the test gave the function and its argument.
                    Owned::Call(Box::new(move || unsafe { call(user as *mut ()) }))
                }
                _ => panic!("not in caps"),
            };
            let mut lanes = self.0.lanes.lock().unwrap();
            if lanes[self.1].todo.len() >= depth {
                return Ok(n);
            }
            lanes[self.1].todo.push_back((owned, step.done));
        }
        self.0.lanes.lock().unwrap()[self.1].hinted_more += u32::from(hint == Hint::More);
        if self.0.at_once.load(SeqCst) {
            while self.0.step(self.1) {}
        }
        Ok(steps.len())
    }
}

pub type Growing = Runtime<SimRef, Os>;

/// A runtime over `count` simulated devices.
pub fn growing(count: usize) -> (&'static Growing, &'static [SimRef]) {
    let store: &'static Store<SimRef, Os, 2, 2, 2, 2> = Box::leak(Box::new(Store::new()));
    let sims: Vec<SimRef> = (0..count).map(|_| SimRef(Box::leak(Box::new(Sim::new())))).collect();
    let sims: &'static [SimRef] = sims.leak();
    (Box::leak(Box::new(Runtime::new(store.parts(), sims, 1))), sims)
}

/// The same with no room to grow: 2 queues, 4 timelines, 4 records, 4 held operations.
pub fn fixed() -> (&'static Runtime<SimRef, Fixed>, &'static Sim) {
    let store: &'static Store<SimRef, Fixed, 2, 4, 4, 4> = Box::leak(Box::new(Store::new()));
    let sim: &'static Sim = Box::leak(Box::new(Sim::new()));
    let sims: &'static [SimRef] = vec![SimRef(sim)].leak();
    (Box::leak(Box::new(Runtime::new(store.parts(), sims, 2))), sim)
}

/// A small generator whose seed tells all.
pub struct Rng(pub u64);
impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
