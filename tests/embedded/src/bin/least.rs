//! The least firmware: core over the DMA engine alone, no words, no archive, no kernels. Two queues wait for each other,
//! memory is given out and back, and the exit code says how it went. What it takes of flash is the budget's first line.
#![cfg_attr(target_os = "none", no_std, no_main)]

use wharf_core::{
    device::{Hint, Want},
    fault::{Fault, Kind},
    runtime::{Around, QueueOptions, Runtime, Span, Store},
    timeline::Point,
};
use wharf_firmware::{
    board,
    env::{Bare, after_ms},
    part::{Dma, Engine},
    place::{Place, Room},
};

static STORE: Store<Dma, Bare, 2, 4, 4, 4> = Store::new();
static ENGINE: Engine = Engine::new();
static MEMORY: Room<1024> = Room::new();
static PARTS: Place<[Dma; 1]> = Place::new();

const LEN: u64 = 256;
const LONG_MS: u64 = 10_000;
const PATTERN: [u8; 2] = [0xA5, 0x5A];

/// Called after reset, with memory as the program wants it.
#[cfg(target_os = "none")]
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn firmware() -> ! {
    board::exit(code())
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    board::exit(101)
}

#[cfg(not(target_os = "none"))]
fn main() {
    board::exit(code())
}

fn code() -> i32 {
    match play() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(fault) => 16 + i32::from(fault.kind == Kind::DeadlineExceeded),
    }
}

/// Whether the bytes came through.
#[allow(unsafe_code)]
fn play() -> Result<bool, Fault> {
    let parts = PARTS.put([Dma::new(&ENGINE, MEMORY.take())]);
    // Whether anything is left to move does not matter here: the timer comes back anyway.
    board::start(|| _ = ENGINE.tick());
    let runtime = Runtime::new(STORE.parts(), parts, 1);
    let want = Want { len: LEN, align: 0, kind: 0, access: 0, usage: 0 };
    let (from, to) = (runtime.allocate(0, &want)?, runtime.allocate(0, &want)?);
    let queues = [runtime.queue(0, QueueOptions::default())?, runtime.queue(0, QueueOptions::default())?];
    let filled = Point { timeline: runtime.timeline(0)?, value: 1 };
    let whole = |root| Span { root, offset: 0, len: LEN };
    let after = Around { waits: &[filled], signals: &[], hint: Hint::None };
    runtime.copy(queues[1], &whole(from), &whole(to), &after)?;
    let first = Around { waits: &[], signals: &[filled], hint: Hint::None };
    runtime.fill(queues[0], &whole(from), &PATTERN, &first)?;
    let mut seen = [0; LEN as usize];
    let out = seen.as_mut_ptr();
    out.expose_provenance();
    // SAFETY: `seen` has the span's length, and the queue is waited for before it is looked at.
    unsafe { runtime.copy_out(queues[1], &whole(to), out, &Around::NONE) }?;
    runtime.sync(queues[1], after_ms(LONG_MS))?;
    for root in [from, to] {
        runtime.release(root)?;
    }
    for queue in queues {
        runtime.close(queue)?;
    }
    Ok(seen.chunks(2).all(|pair| pair == PATTERN))
}
