//! Firmware at its limits: every fixed capacity filled, one more refused with the limit in the error, and what was there
//! before still good.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::fmt;
use wharf_core::{
    batch::{self, Batch, BatchOptions, Direction, LANES_MAX, POINTS_MAX, Piece, Pieces, Totals},
    device::{Hint, Want},
    fault::{Blame, Fault, Kind, Site, Why},
    handle::Handle,
    record::Record,
    runtime::{Around, Queue, QueueOptions, Runtime, Span, Store},
    timeline::Point,
};
use wharf_firmware::{
    board,
    broken::{Broken, at, hold, refused},
    cpu::Cpu,
    env::{Bare, RANGES, after_ms},
    part::{CHANNELS, CPU, DMA, Dma, Engine, LINKED, Part},
    place::{Place, Room},
};

const QUEUES: usize = 2;
const TIMELINES: usize = 8;
const RECORDS: usize = 4;
const HELD: usize = 4;
/// What every store has of these.
const PROGRAMS: usize = 4;
const KERNELS: usize = 16;
const REGION: usize = 16 << 10;
const LONG_MS: u64 = 10_000;

static STORE: Store<Part, Bare, QUEUES, TIMELINES, RECORDS, HELD> = Store::new();
/// More records than the interval map holds.
static WIDE: Store<Part, Bare, QUEUES, TIMELINES, { 2 * RANGES }, HELD> = Store::new();
static ENGINE: Engine = Engine::new();
static CPU_PART: Cpu = Cpu::new();
static MEMORY: Room<REGION> = Room::new();
static PARTS: Place<[Part; 2]> = Place::new();

type Board = Runtime<Part, Bare>;
type Lane = Handle<Queue<Part, Bare>>;

wharf_firmware::firmware!("limits", play);

/// What was met.
struct Done;

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "refused one past {QUEUES} queues, {CHANNELS} channels, {TIMELINES} timelines, {RECORDS} records, {RANGES} \
             ranges, {REGION} bytes, {HELD} held operations, {PROGRAMS} programs, {KERNELS} kernels, {POINTS_MAX} points \
             and {LANES_MAX} queues of a batch"
        )
    }
}

fn play() -> Result<Done, Broken> {
    let parts: &'static [Part; 2] =
        PARTS.put([Part::Dma(Dma::new(&ENGINE, MEMORY.take())), Part::Cpu(&CPU_PART)]);
    // Whether anything is left to move does not matter here: the timer comes back anyway.
    board::start(|| _ = ENGINE.tick());
    let runtime = Runtime::new(STORE.parts(), parts, 1);
    queues(&runtime)?;
    timelines(&runtime)?;
    records(&runtime)?;
    ranges(&Runtime::new(WIDE.parts(), parts, 2))?;
    held(&runtime)?;
    programs(&runtime)?;
    batches(&runtime)?;
    Ok(Done)
}

/// The fault of a limit that Wharf itself has.
fn full(place: &'static str, fault: Fault, site: Site, limit: usize) -> Result<(), Broken> {
    hold(place, fault == Fault::full(site, limit as u64))
}

fn open(runtime: &Board, device: usize) -> Result<Lane, Fault> {
    runtime.queue(device, QueueOptions::default())
}

fn queues(runtime: &Board) -> Result<(), Broken> {
    let first = at("the first queue", open(runtime, DMA))?;
    let second = at("the last queue", open(runtime, CPU))?;
    let fault = refused("a queue past the store's last", Kind::ResourceExhausted, open(runtime, DMA))?;
    full("the store's queues are named", fault, Site::Queue, QUEUES)?;
    at("close", runtime.close(second))?;
    let third = at("a queue in a closed one's place", open(runtime, DMA))?;
    let fault = refused("a queue past the last channel", Kind::ResourceExhausted, open(runtime, DMA))?;
    let named = (fault.blame, fault.why, fault.values[0]);
    hold("the engine's channels are named", named == (Blame::Backend, Why::Full, CHANNELS as u64))?;
    at("close", runtime.close(first))?;
    at("close", runtime.close(third))
}

fn timelines(runtime: &Board) -> Result<(), Broken> {
    let mut all = [Handle::NULL; TIMELINES];
    for timeline in &mut all {
        *timeline = at("a timeline up to the last", runtime.timeline(0))?;
    }
    let fault = refused("a timeline past the last", Kind::ResourceExhausted, runtime.timeline(0))?;
    full("the timelines are named", fault, Site::Timeline, TIMELINES)?;
    let fault = refused("a queue without a timeline", Kind::ResourceExhausted, open(runtime, DMA))?;
    full("a queue needs a timeline", fault, Site::Queue, TIMELINES)?;
    runtime.release_timeline(all[0]);
    all[0] = at("a timeline in a released one's place", runtime.timeline(5))?;
    hold("it is a new one", runtime.query(all[0]) == Ok(5))?;
    all.into_iter().for_each(|timeline| runtime.release_timeline(timeline));
    Ok(())
}

fn allocate(runtime: &Board, len: usize) -> Result<Handle<Record>, Fault> {
    runtime.allocate(DMA, &Want { len: len as u64, align: 0, kind: 0, access: 0, usage: 0 })
}

fn records(runtime: &Board) -> Result<(), Broken> {
    let mut all = [Handle::NULL; RECORDS];
    for record in &mut all {
        *record = at("a record up to the last", allocate(runtime, 64))?;
    }
    let fault = refused("a record past the last", Kind::ResourceExhausted, allocate(runtime, 64))?;
    full("the records are named", fault, Site::Allocate, RECORDS)?;
    for record in all {
        at("release", runtime.release(record))?;
    }
    // Had the refused one kept its block, the whole region could not be given out.
    let whole = at("the whole region", allocate(runtime, REGION))?;
    let fault = refused("a byte past the region", Kind::ResourceExhausted, allocate(runtime, 1))?;
    hold("the region's length is named", (fault.why, fault.values) == (Why::Limit, [1, REGION as u64]))?;
    at("release", runtime.release(whole))
}

fn ranges(runtime: &Board) -> Result<(), Broken> {
    let mut all = [Handle::NULL; RANGES];
    for record in &mut all {
        *record = at("a range up to the last", allocate(runtime, 64))?;
    }
    let fault = refused("a range past the last", Kind::ResourceExhausted, allocate(runtime, 64))?;
    hold("it is Wharf's limit", (fault.blame, fault.why) == (Blame::Wharf, Why::Full))?;
    for record in all {
        at("release", runtime.release(record))?;
    }
    let whole = at("the whole region again", allocate(runtime, REGION))?;
    at("release", runtime.release(whole))
}

fn held(runtime: &Board) -> Result<(), Broken> {
    let queue = at("queue", open(runtime, DMA))?;
    let root = at("allocate", allocate(runtime, 64))?;
    let point = |value| Ok(Point { timeline: at("timeline", runtime.timeline(0))?, value });
    let (go, told) = (point(1)?, point(1)?);
    let waiting = Around { waits: &[go], signals: &[], hint: Hint::None };
    let span = |offset| Span { root, offset, len: 16 };
    for n in 0..HELD as u64 {
        at("an operation held", runtime.fill(queue, &span(16 * (n % 4)), &[n as u8 + 1], &waiting))?;
    }
    let one_more = Around { signals: &[told], ..waiting };
    let refusal = runtime.fill(queue, &span(0), &[9], &one_more);
    let fault = refused("an operation past the last held", Kind::ResourceExhausted, refusal)?;
    hold("it is Wharf's limit", (fault.blame, fault.why) == (Blame::Wharf, Why::Full))?;
    let told_so = runtime.wait(told, after_ms(LONG_MS));
    refused("its signal fails with it", Kind::ResourceExhausted, told_so)?;
    at("signal", runtime.signal(go.timeline, 1))?;
    at("what was held runs", runtime.sync(queue, after_ms(LONG_MS)))?;
    let after = at("an operation after it", runtime.fill(queue, &span(0), &[7], &Around::NONE))?;
    let after = after.ok_or(Broken::at("a queue in order gives a point"))?;
    at("wait", runtime.wait(after, after_ms(LONG_MS)))?;
    at("release", runtime.release(root))?;
    [go, told].into_iter().for_each(|point| runtime.release_timeline(point.timeline));
    at("close", runtime.close(queue))
}

fn programs(runtime: &Board) -> Result<(), Broken> {
    let mut all = [Handle::NULL; PROGRAMS];
    for program in &mut all {
        *program = at("a program up to the last", runtime.load(CPU, LINKED))?;
    }
    let fault = refused("a program past the last", Kind::ResourceExhausted, runtime.load(CPU, LINKED))?;
    full("the programs are named", fault, Site::Load, PROGRAMS)?;
    let kernel = || runtime.kernel(all[0], b"dense_f32", &[]);
    for _ in 0..KERNELS {
        at("a kernel up to the last", kernel())?;
    }
    let fault = refused("a kernel past the last", Kind::ResourceExhausted, kernel())?;
    full("the kernels are named", fault, Site::Kernel, KERNELS)?;
    all.into_iter().try_for_each(|program| at("unload", runtime.unload(program)))
}

/// No entries.
struct Nothing;

impl Pieces for Nothing {
    fn count(&self) -> u32 {
        0
    }
    fn piece(&self, _: u32) -> Result<Piece, Fault> {
        Err(Fault::full(Site::Batch, 0))
    }
}

fn batches(runtime: &Board) -> Result<(), Broken> {
    let queue = at("queue", open(runtime, DMA))?;
    let totals = at("check", batch::check(&Nothing, Direction::In))?;
    let point = Point { timeline: at("timeline", runtime.timeline(1))?, value: 1 };
    let make = |queues: usize, points: usize| {
        made(&totals, &[queue; LANES_MAX + 1][..queues], &[point; POINTS_MAX + 1][..points])
    };
    at("a batch with all queues and points", make(LANES_MAX, POINTS_MAX))?;
    let fault = refused("a point past the last", Kind::ResourceExhausted, make(1, POINTS_MAX + 1))?;
    full("the points are named", fault, Site::Batch, POINTS_MAX)?;
    let fault = refused("a queue past the last", Kind::InvalidArgument, make(LANES_MAX + 1, 1))?;
    let limit = [LANES_MAX as u64 + 1, LANES_MAX as u64];
    hold("the queues are named", (fault.why, fault.values) == (Why::Limit, limit))?;
    runtime.release_timeline(point.timeline);
    at("close", runtime.close(queue))
}

fn made(totals: &Totals, queues: &[Lane], waits: &[Point]) -> Result<(), Fault> {
    let options =
        BatchOptions { direction: Direction::In, queues, feeders: &[], staging: None, waits, signals: &[] };
    Batch::<Part, Bare, Nothing, 2>::new(Nothing, totals, &options).map(drop)
}
