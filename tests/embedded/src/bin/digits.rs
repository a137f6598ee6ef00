//! Firmware without a heap: the digits model, from an archive in flash, gathered over two channels of a DMA engine that
//! the timer's interrupt moves, and run by kernels that are linked in.
//!
//! Expected answers are those of `tests/fixtures/digits/train.py` (NumPy, in double precision).
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::fmt;
use wharf_core::{
    archive::{Data, Input, Mark, irpa::Irpa},
    batch::{self, Batch, BatchOptions, Direction, Item, Piece, Pieces, Stored, Target},
    bits::Access,
    device::{Hint, Want},
    fault::Fault,
    handle::Handle,
    record::Record,
    runtime::{Around, LaunchArgs, Next, Queue, QueueOptions, Runtime, Span, Store, Worked},
    timeline::Point,
};
use wharf_firmware::{
    board,
    broken::{Broken, at, hold},
    cpu::Cpu,
    env::{Bare, after_ms},
    kernels::Args,
    part::{CPU, DMA, Dma, Engine, LINKED, Part},
    place::{Place, Room},
};

static ARCHIVE: &[u8] = include_bytes!("../../../fixtures/digits/digits.irpa");
static EXPECTED: &str = include_str!("../../../fixtures/digits/expected.json");

/// All the memory there is: the runtime's, the engine's and the region that it moves.
static STORE: Store<Part, Bare, 4, 8, 8, 8> = Store::new();
static ENGINE: Engine = Engine::new();
static CPU_PART: Cpu = Cpu::new();
static REGION: Room<{ 48 << 10 }> = Room::new();
static PARTS: Place<[Part; 2]> = Place::new();

type Board = Runtime<Part, Bare>;
type Lane = Handle<Queue<Part, Bare>>;

const IMAGES: u32 = 100;
const PIXELS: u32 = 64;
const HIDDEN: u32 = 32;
const CLASSES: u32 = 10;
/// Longer than anything here takes.
const LONG_MS: u64 = 10_000;

/// What is gathered: the name, how much of it, and where it goes in the buffer.
const PLAN: [(&str, u64, u64); 5] = [
    ("layer1.weight", 4 * (HIDDEN * PIXELS) as u64, 0),
    ("layer1.bias", 4 * HIDDEN as u64, 0x2000),
    ("layer2.weight", 4 * (CLASSES * HIDDEN) as u64, 0x2080),
    ("layer2.bias", 4 * CLASSES as u64, 0x2580),
    ("images", (IMAGES * PIXELS) as u64, 0x25C0),
];
/// What is computed: the hidden layer, the scores, the answers.
const HIDDEN_AT: u64 = 0x3EC0;
const SCORES_AT: u64 = HIDDEN_AT + 4 * (IMAGES * HIDDEN) as u64;
const ANSWERS_AT: u64 = SCORES_AT + 4 * (IMAGES * CLASSES) as u64;
const BUFFER: u64 = ANSWERS_AT + IMAGES as u64;

wharf_firmware::firmware!("digits", play);

/// What was done.
struct Done {
    gathered: u64,
    right: usize,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { gathered, right } = self;
        write!(f, "{gathered} bytes gathered over 2 timelines, {right} of {IMAGES} answers as expected")
    }
}

fn play() -> Result<Done, Broken> {
    let parts = PARTS.put([Part::Dma(Dma::new(&ENGINE, REGION.take())), Part::Cpu(&CPU_PART)]);
    // Whether anything is left to move does not matter here: the timer comes back anyway.
    board::start(|| _ = ENGINE.tick());
    let runtime = Runtime::new(STORE.parts(), parts, 1);

    let stored = read()?;
    let want = Want { len: BUFFER, align: 64, kind: 0, access: 0, usage: 0 };
    let buffer = at("allocate", runtime.allocate(DMA, &want))?;
    let open = |device| at("queue", runtime.queue(device, QueueOptions::default()));
    let channels = [open(DMA)?, open(DMA)?];
    let processor = open(CPU)?;

    let (gathered, ready) = gather(&runtime, &channels, buffer, stored)?;
    let answered = compute(&runtime, processor, buffer, ready)?;
    let answers = read_back(&runtime, channels[0], buffer, answered)?;
    let expected = expected().ok_or(Broken::at("the expected answers are there"))?;
    let right = answers.iter().zip(expected).filter(|(answer, digit)| **answer + b'0' == **digit).count();
    hold("all answers are as expected", right == IMAGES as usize)?;

    at("release", runtime.release(buffer))?;
    for queue in [channels[0], channels[1], processor] {
        at("close", runtime.close(queue))?;
    }
    Ok(Done { gathered, right })
}

/// Where the archive in flash stores what the plan names.
fn read() -> Result<[Stored; 5], Broken> {
    let archive = Irpa::open(Input::whole(ARCHIVE)).map_err(|_| Broken::at("the archive opens"))?;
    let mut marks = [Mark::default(); 16];
    archive.check(&mut marks).map_err(|_| Broken::at("no name twice"))?;
    let mut found = [None; PLAN.len()];
    for entry in archive.entries() {
        let entry = entry.map_err(|_| Broken::at("an entry"))?;
        let Some(n) = PLAN.iter().position(|(name, ..)| entry.name == **name) else { continue };
        let Data::Range { offset, len } = entry.data else { continue };
        let address = ARCHIVE.as_ptr().expose_provenance() as u64 + offset;
        found[n] = Some(Stored::Memory { address, len, access: Access::READ });
    }
    let missing = Broken::at("all entries of the plan are there");
    let [Some(a), Some(b), Some(c), Some(d), Some(e)] = found else { return Err(missing) };
    Ok([a, b, c, d, e])
}

/// The plan as entries of a batch.
struct Entries {
    stored: [Stored; 5],
    target: Target,
}

impl Pieces for Entries {
    fn count(&self) -> u32 {
        PLAN.len() as u32
    }
    fn piece(&self, index: u32) -> Result<Piece, Fault> {
        let (name, len, buffer_offset) = PLAN[index as usize];
        let item = Item { key: name.as_bytes(), parameter_offset: 0, buffer_offset, len };
        batch::resolve(&item, &self.stored[index as usize], &self.target, Direction::In)
    }
}

/// Gathers the plan over both channels: how many bytes, and the point at which they are there.
fn gather(
    runtime: &Board,
    channels: &[Lane; 2],
    root: Handle<Record>,
    stored: [Stored; 5],
) -> Result<(u64, Point), Broken> {
    let entries = Entries { stored, target: Target { root, offset: 0, len: BUFFER } };
    let totals = at("check", batch::check(&entries, Direction::In))?;
    let ready = Point { timeline: at("timeline", runtime.timeline(0))?, value: 1 };
    let options = BatchOptions {
        direction: Direction::In,
        queues: channels,
        feeders: &[],
        staging: None,
        waits: &[],
        signals: &[ready],
    };
    let batch: Batch<Part, Bare, Entries, 8> = at("batch", Batch::new(entries, &totals, &options))?;
    while batch.step(runtime) == Worked::Waiting {
        turn(runtime)?;
    }
    hold("all bytes are counted", batch.control().progress() == (totals.bytes, totals.bytes))?;
    Ok((totals.bytes, ready))
}

/// A turn of the main loop: what can move moves, then the processor sleeps until the next interrupt.
fn turn(runtime: &Board) -> Result<(), Broken> {
    hold("it ends in time", board::now_ns() < LONG_MS * 1_000_000)?;
    if runtime.poll() != Next::In(0) {
        board::sleep();
    }
    Ok(())
}

/// Runs the net once the parameters are there: the point at which the answers are.
fn compute(runtime: &Board, queue: Lane, root: Handle<Record>, ready: Point) -> Result<Point, Broken> {
    let base = at("allocation", runtime.allocation(root))?.base;
    let program = at("load", runtime.load(CPU, LINKED))?;
    let [weights1, bias1, weights2, bias2, images] = PLAN.map(|(_, _, at)| base + at);
    let (hidden, scores, answers) = (base + HIDDEN_AT, base + SCORES_AT, base + ANSWERS_AT);
    let first = Args {
        from: images,
        weights: weights1,
        bias: bias1,
        out: hidden,
        inputs: PIXELS,
        outputs: HIDDEN,
        relu: 1,
    };
    let second = Args {
        from: hidden,
        weights: weights2,
        bias: bias2,
        out: scores,
        inputs: HIDDEN,
        outputs: CLASSES,
        relu: 0,
    };
    let third = Args { from: scores, out: answers, inputs: CLASSES, ..Args::default() };
    let mut end = ready;
    for (name, args) in [("dense_u8", first), ("dense_f32", second), ("argmax_u8", third)] {
        let kernel = at("kernel", runtime.kernel(program, name.as_bytes(), &[]))?;
        let launch = LaunchArgs { groups: [IMAGES, 1, 1], size: [1; 3], shared: 0, args: &args.pack() };
        let around = Around { waits: &[ready], signals: &[], hint: Hint::None };
        let launched = at("launch", runtime.launch(queue, kernel, &launch, &around))?;
        end = launched.ok_or(Broken::at("a queue in order gives a point"))?;
    }
    at("unload", runtime.unload(program))?;
    Ok(end)
}

/// The answers, once they are there.
#[allow(unsafe_code)]
fn read_back(
    runtime: &Board,
    queue: Lane,
    root: Handle<Record>,
    answered: Point,
) -> Result<[u8; IMAGES as usize], Broken> {
    let mut answers = [0; IMAGES as usize];
    let to = answers.as_mut_ptr();
    to.expose_provenance();
    let span = Span { root, offset: ANSWERS_AT, len: IMAGES.into() };
    let around = Around { waits: &[answered], signals: &[], hint: Hint::None };
    // SAFETY: `answers` has the span's length, and is not touched before the wait has ended well.
    let end = at("copy_out", unsafe { runtime.copy_out(queue, &span, to, &around) })?;
    let end = end.ok_or(Broken::at("a queue in order gives a point"))?;
    at("wait", runtime.wait(end, after_ms(LONG_MS)))?;
    Ok(answers)
}

/// The digits that the reference program saw in the first images.
fn expected() -> Option<&'static [u8]> {
    const FIELD: &str = "\"predictions\": \"";
    let begin = EXPECTED.find(FIELD)? + FIELD.len();
    EXPECTED.as_bytes().get(begin..begin + IMAGES as usize)
}
