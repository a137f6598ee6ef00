//! The engine as a firmware uses it: in a static, worked off by ticks.
//!
//! # Safety
//! The lock is a flag that panics when it is met twice; watches are leaked.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)] // These are tests.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::*};
use wharf_core::{
    device::{Device, Hint, Lane, Op, PEER_HOST, Step, Want},
    env::Lock,
    fault::{Fault, Kind},
    tick::Tick,
    word::Word64,
};
use wharf_dma::{BURST_LEN, Dma, Engine, UPDATE_LEN_MAX};

struct Flag(AtomicBool);

// SAFETY: who finds the flag set panics (or goes away), so two closures never run at once.
unsafe impl Lock for Flag {
    const NEW: Self = Flag(AtomicBool::new(false));
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        self.try_with(f).expect("one at a time")
    }
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        if self.0.swap(true, Acquire) {
            return None;
        }
        let result = f();
        self.0.store(false, Release);
        Some(result)
    }
}

static TOLD: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn tell(_: *const ()) {
    TOLD.fetch_add(1, AcqRel);
}
static BROKEN: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" fn fail(_: *const (), why: *const Fault) {
    // SAFETY: `Tick::fail` passes a fault that outlives the call.
    BROKEN.store(unsafe { (*why).native }, Release);
}

fn tick(word: &'static Word64) -> Tick {
    // SAFETY: the functions use no cookie.
    unsafe { Tick::from_parts(word, std::ptr::null(), tell, fail) }
}

fn step(op: Op<'_>, done: u64) -> Step<'_> {
    Step { op, done, tell: true, stamp: false }
}

#[test]
fn bytes_move_a_burst_a_tick_in_the_order_of_the_channel() {
    static ENGINE: Engine<Flag, 2, 4, 8> = Engine::new();
    static WORDS: [Word64; 2] = [Word64::new(0), Word64::new(0)];
    let device = Dma::new(&ENGINE, vec![0; 64 << 10].leak());
    let want = Want { len: 3 * BURST_LEN, align: 0, kind: 0, access: 0, usage: 0 };
    let (a, b) = (device.allocate(&want).unwrap(), device.allocate(&want).unwrap());
    let (mut lane, (), first) = device.lane(tick(&WORDS[0])).unwrap();
    let (mut other, (), second) = device.lane(tick(&WORDS[1])).unwrap();
    assert_eq!((first, second), (0, 1));
    assert_eq!(device.lane(tick(&WORDS[1])).map(drop).unwrap_err().kind, Kind::ResourceExhausted);

    let mut host = vec![0u8; a.len as usize];
    let to = host.as_mut_ptr().expose_provenance() as u64;
    let steps = [
        step(Op::Fill { to: a.base, len: a.len, pattern: b"abc" }, 1),
        step(Op::Update { to: a.base + 1, bytes: b"XY" }, 2),
        step(Op::Copy { from: a.base, to: b.base, len: a.len, peers: [0, 0] }, 3),
        step(Op::Copy { from: b.base, to, len: a.len, peers: [0, PEER_HOST] }, 4),
        step(Op::Barrier, 5),
    ];
    assert_eq!(lane.submit(&steps, Hint::None).unwrap(), 4);
    assert_eq!(other.submit(&[step(Op::Barrier, 1)], Hint::None).unwrap(), 1);
    let mut seen = Vec::new();
    while ENGINE.tick() {
        seen.push((WORDS[0].get(), WORDS[1].get()));
    }
    assert_eq!(seen[..3], [(0, 1), (0, 1), (1, 1)]);
    assert_eq!((WORDS[0].get(), TOLD.load(Acquire)), (4, 5));
    assert_eq!(lane.submit(&steps[4..], Hint::None).unwrap(), 1);
    assert!(!ENGINE.tick());
    assert_eq!(WORDS[0].get(), 5);
    assert_eq!(&host[..9], b"aXYabcabc");
    assert!(host[3..].chunks(3).all(|chunk| chunk == b"abc"));

    let long = [0; UPDATE_LEN_MAX + 1];
    let bad = [step(Op::Barrier, 6), step(Op::Update { to: a.base, bytes: &long }, 7)];
    let (taken, fault) = lane.submit(&bad, Hint::None).unwrap_err();
    assert_eq!((taken, fault.kind), (1, Kind::ResourceExhausted));
    drop(other);
    device.lane(tick(&WORDS[1])).unwrap();
}

#[test]
fn a_channel_that_is_broken_off_fails_with_the_code_and_moves_nothing_more() {
    static ENGINE: Engine<Flag, 2, 4, 8> = Engine::new();
    static WORD: Word64 = Word64::new(0);
    let device = Dma::new(&ENGINE, vec![0; 16 << 10].leak());
    let want = Want { len: 2 * BURST_LEN, align: 0, kind: 0, access: 0, usage: 0 };
    let block = device.allocate(&want).unwrap();
    let (mut lane, (), number) = device.lane(tick(&WORD)).unwrap();
    assert!(!ENGINE.break_off(number, 7), "an idle channel has no transfer to break off");
    lane.submit(&[step(Op::Fill { to: block.base, len: block.len, pattern: b"a" }, 1)], Hint::None).unwrap();
    assert!(ENGINE.tick());
    assert!(!ENGINE.break_off(2, 7), "there is no such channel");
    assert!(ENGINE.break_off(number, 7));
    assert!(!ENGINE.tick());
    assert_eq!((WORD.get(), BROKEN.load(Acquire)), (0, 7));
}
