//! Firmware with a heap of 64 KiB: tables that grow, a load of every tensor into memory of its own, and what ends badly:
//! a transfer that fails, a batch that is cancelled, a handle that is stale.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::vec::Vec;
use core::{
    fmt,
    sync::atomic::{AtomicBool, Ordering::*},
};
use wharf_core::{
    archive::{Data, Input, Mark, irpa::Irpa},
    batch::{self, Batch, BatchOptions, Direction, Item, Piece, Pieces, Stored, Target},
    bits::Access,
    device::{Hint, Want},
    fault::{Blame, Fault, Kind, Why},
    handle::Handle,
    record::Record,
    runtime::{Around, Queue, QueueOptions, Runtime, Span, Store, Worked},
    timeline::Point,
};
use wharf_firmware::{
    board,
    broken::{Broken, at, hold, refused},
    cpu::Cpu,
    env::after_ms,
    heap::{BYTES, HEAP, Roomy},
    part::{DMA, Dma, Engine, Part},
    place::{Place, Room},
};

static ARCHIVE: &[u8] = include_bytes!("../../../fixtures/digits/digits.irpa");

/// Two of each, to begin with.
static STORE: Store<Part, Roomy, 2, 2, 2, 2> = Store::new();
static ENGINE: Engine = Engine::new();
static CPU_PART: Cpu = Cpu::new();
static MEMORY: Room<{ 32 << 10 }> = Room::new();
static PARTS: Place<[Part; 2]> = Place::new();

/// The next transfer of the first channel meets a bus error.
static BREAKS: AtomicBool = AtomicBool::new(false);

type Board = Runtime<Part, Roomy>;
type Lane = Handle<Queue<Part, Roomy>>;

/// The entry that is too long for the region; all others are loaded.
const LEFT_OUT: &str = "images";
/// Bundles of a batch that are under way at once: so few that some is left to cancel.
const FLIGHT: usize = 1;
/// Timelines and held operations that the tables must grow to.
const MANY: u64 = 20;
/// A bus error, as the engine numbers it.
const BUS_ERROR: i32 = 0x17;
const LONG_MS: u64 = 10_000;

wharf_firmware::firmware!("heap", play);

/// What was done.
struct Done {
    tensors: usize,
    bytes: u64,
    used: usize,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { tensors, bytes, used } = self;
        write!(f, "{tensors} tensors loaded ({bytes} bytes), tables grown from 2 to {MANY}, ")?;
        write!(f, "a failed transfer, a cancelled batch and a stale handle ended as they must, ")?;
        // An ordinary program has its own heap.
        if *used > 0 { write!(f, "{used} of {BYTES} bytes of heap") } else { write!(f, "no heap of ours") }
    }
}

fn play() -> Result<Done, Broken> {
    let parts = PARTS.put([Part::Dma(Dma::new(&ENGINE, MEMORY.take())), Part::Cpu(&CPU_PART)]);
    board::start(tick);
    let runtime = Runtime::new(STORE.parts(), parts, 1);
    let open = || at("queue", runtime.queue(DMA, QueueOptions::default()));
    let channels = [open()?, open()?];
    let (tensors, bytes) = load(&runtime, &channels)?;
    grow(&runtime, channels[0])?;
    cancel(&runtime, &channels)?;
    stale(&runtime, channels[0])?;
    fail(&runtime, channels)?;
    Ok(Done { tensors, bytes, used: HEAP.used() })
}

/// The timer's interrupt: moves the engine, or has the transfer under way meet a bus error.
fn tick() {
    if BREAKS.load(Acquire) && ENGINE.break_off(0, BUS_ERROR) {
        BREAKS.store(false, Release);
    }
    ENGINE.tick();
}

fn allocate(runtime: &Board, len: u64) -> Result<Handle<Record>, Broken> {
    at("allocate", runtime.allocate(DMA, &Want { len, align: 0, kind: 0, access: 0, usage: 0 }))
}

fn point(runtime: &Board) -> Result<Point, Broken> {
    Ok(Point { timeline: at("timeline", runtime.timeline(0))?, value: 1 })
}

/// Entries with memory of their own.
struct Entries(Vec<(Stored, Target)>);

impl Pieces for Entries {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }
    fn piece(&self, index: u32) -> Result<Piece, Fault> {
        let (stored, target) = &self.0[index as usize];
        let item = Item { key: b"", parameter_offset: 0, buffer_offset: 0, len: target.len };
        batch::resolve(&item, stored, target, Direction::In)
    }
    fn disjoint(&self) -> bool {
        true
    }
}

/// The entries of the archive with memory for each, all but the one that is left out.
fn entries(runtime: &Board) -> Result<Entries, Broken> {
    let archive = Irpa::open(Input::whole(ARCHIVE)).map_err(|_| Broken::at("the archive opens"))?;
    let mut marks = [Mark::default(); 16];
    archive.check(&mut marks).map_err(|_| Broken::at("no name twice"))?;
    let mut found = Vec::new();
    for entry in archive.entries() {
        let entry = entry.map_err(|_| Broken::at("an entry"))?;
        let Data::Range { offset, len } = entry.data else { continue };
        if entry.name != *LEFT_OUT {
            let address = ARCHIVE.as_ptr().expose_provenance() as u64 + offset;
            let target = Target { root: allocate(runtime, len)?, offset: 0, len };
            found.push((Stored::Memory { address, len, access: Access::READ }, target));
        }
    }
    Ok(Entries(found))
}

fn begin(
    entries: Entries,
    channels: &[Lane; 2],
    over: Point,
) -> Result<Batch<Part, Roomy, Entries, FLIGHT>, Broken> {
    let totals = at("check", batch::check(&entries, Direction::In))?;
    let options = BatchOptions {
        direction: Direction::In,
        queues: channels,
        feeders: &[],
        staging: None,
        waits: &[],
        signals: &[over],
    };
    at("batch", Batch::new(entries, &totals, &options))
}

/// Steps a batch until it is over.
fn finish(runtime: &Board, batch: &Batch<Part, Roomy, Entries, FLIGHT>) -> Result<(), Broken> {
    while batch.step(runtime) == Worked::Waiting {
        hold("it ends in time", board::now_ns() < LONG_MS * 1_000_000)?;
        runtime.poll();
        board::sleep();
    }
    Ok(())
}

/// Every tensor into memory of its own, compared byte for byte; how many, and their bytes.
fn load(runtime: &Board, channels: &[Lane; 2]) -> Result<(usize, u64), Broken> {
    let over = point(runtime)?;
    let batch = begin(entries(runtime)?, channels, over)?;
    finish(runtime, &batch)?;
    at("the load signals", runtime.wait(over, after_ms(LONG_MS)))?;
    runtime.release_timeline(over.timeline);
    let loaded = &batch.pieces().0;
    for (stored, target) in loaded {
        let Stored::Memory { address, len, .. } = *stored else { continue };
        let begin = (address - ARCHIVE.as_ptr().addr() as u64) as usize;
        same(runtime, channels[0], target.root, &ARCHIVE[begin..begin + len as usize])?;
        at("release", runtime.release(target.root))?;
    }
    Ok((loaded.len(), loaded.iter().map(|(_, target)| target.len).sum()))
}

/// Whether memory holds these bytes.
#[allow(unsafe_code)]
fn same(runtime: &Board, queue: Lane, root: Handle<Record>, bytes: &[u8]) -> Result<(), Broken> {
    let mut seen = [0; 512];
    let to = seen.as_mut_ptr();
    for (n, part) in bytes.chunks(512).enumerate() {
        to.expose_provenance();
        let span = Span { root, offset: 512 * n as u64, len: part.len() as u64 };
        // SAFETY: `seen` has at least the span's length, and the wait ends before it is looked at.
        let end = at("copy_out", unsafe { runtime.copy_out(queue, &span, to, &Around::NONE) })?;
        let end = end.ok_or(Broken::at("a queue in order gives a point"))?;
        at("wait", runtime.wait(end, after_ms(LONG_MS)))?;
        hold("the bytes are the archive's", seen[..part.len()] == *part)?;
    }
    Ok(())
}

/// More timelines and held operations than the store has.
fn grow(runtime: &Board, queue: Lane) -> Result<(), Broken> {
    let root = allocate(runtime, MANY)?;
    let mut all = Vec::new();
    for n in 0..MANY {
        let go = point(runtime)?;
        let around = Around { waits: &[go], signals: &[], hint: Hint::None };
        at("fill", runtime.fill(queue, &Span { root, offset: n, len: 1 }, &[n as u8], &around))?;
        all.push(go);
    }
    for go in all {
        at("signal", runtime.signal(go.timeline, 1))?;
        runtime.release_timeline(go.timeline);
    }
    let expected: Vec<u8> = (0..MANY as u8).collect();
    same(runtime, queue, root, &expected)?;
    at("release", runtime.release(root))
}

/// A batch that is cancelled when it has begun: nothing of it is under way when its signal fails.
fn cancel(runtime: &Board, channels: &[Lane; 2]) -> Result<(), Broken> {
    let over = point(runtime)?;
    let batch = begin(entries(runtime)?, channels, over)?;
    hold("it has begun", batch.step(runtime) == Worked::Waiting)?;
    batch.control().cancel();
    finish(runtime, &batch)?;
    let (moved, all) = batch.control().progress();
    hold("some was moved, and not all", moved > 0 && moved < all)?;
    refused("a cancelled batch fails its signal", Kind::Cancelled, runtime.wait(over, after_ms(LONG_MS)))?;
    runtime.release_timeline(over.timeline);
    for queue in channels {
        hold("nothing is under way", runtime.is_idle(*queue) == Ok(true))?;
    }
    for (_, target) in &batch.pieces().0 {
        at("release", runtime.release(target.root))?;
    }
    Ok(())
}

/// A handle whose memory is gone stays stale, also when its slot is another's.
fn stale(runtime: &Board, queue: Lane) -> Result<(), Broken> {
    let old = allocate(runtime, 64)?;
    at("release", runtime.release(old))?;
    let new = allocate(runtime, 64)?;
    hold("the new handle is another", old != new)?;
    let told = point(runtime)?;
    let around = Around { waits: &[], signals: &[told], hint: Hint::None };
    let filled = runtime.fill(queue, &Span { root: old, offset: 0, len: 64 }, &[1], &around);
    let fault = refused("a stale handle is refused", Kind::InvalidHandle, filled)?;
    hold("it is named", (fault.why, fault.values[0]) == (Why::Stale, old.raw()))?;
    refused(
        "the signal of a stale operation fails",
        Kind::InvalidHandle,
        runtime.wait(told, after_ms(LONG_MS)),
    )?;
    refused("it is released once", Kind::InvalidHandle, runtime.release(old))?;
    runtime.release_timeline(told.timeline);
    at("release", runtime.release(new))
}

/// A transfer that the engine breaks off: its queue fails with the engine's code, what waits for it fails too, the other
/// queue goes on, and a queue opened in its place works.
fn fail(runtime: &Board, channels: [Lane; 2]) -> Result<(), Broken> {
    let root = allocate(runtime, 16 << 10)?;
    let whole = Span { root, offset: 0, len: 16 << 10 };
    let go = point(runtime)?;
    let told = point(runtime)?;
    let around = Around { waits: &[], signals: &[told], hint: Hint::None };
    BREAKS.store(true, Release);
    let filled = at("fill", runtime.fill(channels[0], &whole, &[1], &around))?;
    let filled = filled.ok_or(Broken::at("a queue in order gives a point"))?;
    let after = Around { waits: &[filled], signals: &[go], hint: Hint::None };
    at("a fill that waits", runtime.fill(channels[1], &whole, &[2], &after))?;
    for point in [filled, told, go] {
        let waited = runtime.wait(point, after_ms(LONG_MS));
        let fault = refused("what hangs on it fails", Kind::BackendFailure, waited)?;
        let (blame, code) = (fault.blame, fault.native);
        hold("the engine's code is kept", (blame, code) == (Blame::Driver, BUS_ERROR))?;
    }
    hold("it was broken off", !BREAKS.load(Acquire))?;
    refused("its queue is over", Kind::BackendFailure, runtime.sync(channels[0], after_ms(LONG_MS)))?;
    at("close", runtime.close(channels[0]))?;
    let next = at("a queue in its place", runtime.queue(DMA, QueueOptions::default()))?;
    at("fill", runtime.fill(next, &whole, &[3], &Around::NONE))?;
    same(runtime, next, root, &[3; 600])?;
    [go, told].into_iter().for_each(|point| runtime.release_timeline(point.timeline));
    at("release", runtime.release(root))?;
    [next, channels[1]].into_iter().try_for_each(|queue| at("close", runtime.close(queue)))
}
