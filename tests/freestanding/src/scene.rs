//! What core is made to do here: an archive is read, two queues wait for each other and for a timeline, a batch gathers a
//! stored tensor and a splat, an address is looked up, memory is given back.
//!
//! Expected bytes are those that the fixture's reference reader gives (`tests/fixtures/archives/expected.json`): entry
//! `s` repeats 1, 2, 3, 4 over 64 bytes; `a` has 100 bytes at 4096.

use crate::{
    bare::{Bare, after},
    region::{Board, Region},
};
use core::fmt;
use wharf_core::{
    archive::{Archive, Data, Input, Mark},
    batch::{self, Batch, BatchOptions, Direction, Piece, Pieces, Stored, Target},
    bits::Access,
    device::{Hint, Want},
    fault::{Fault, Kind},
    handle::Handle,
    record::Record,
    runtime::{Around, Queue, QueueOptions, Runtime, Span, Store, Worked},
    timeline::Point,
};

static ARCHIVE: &[u8] = include_bytes!("../../fixtures/archives/irpa/mixed.irpa");
static REGION: Region = Region::new();
static BOARDS: [Board; 1] = [Board(&REGION)];
static STORE: Store<Board, Bare, 2, 8, 4, 8> = Store::new();
static RUNTIME: Runtime<Board, Bare> = Runtime::new(STORE.parts(), &BOARDS, 1);

/// Bytes of the buffer: the splat's, then the tensor's from 128 on.
const BUFFER: u64 = 256;
const TENSOR_AT: u64 = 128;
/// More sleeps than anything here takes.
const LONG: u64 = 10_000;

/// What was done.
pub(crate) struct Done {
    entries: u64,
    gathered: u64,
    moved: u64,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { entries, gathered, moved } = self;
        write!(f, "{entries} entries read, {gathered} bytes gathered, {moved} bytes moved between queues")
    }
}

/// What went wrong, where.
pub(crate) struct Broken {
    place: &'static str,
    fault: Option<Fault>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        self.fault.map_or(Ok(()), |fault| write!(f, ": {fault}"))
    }
}

fn at<T>(place: &'static str, result: Result<T, Fault>) -> Result<T, Broken> {
    result.map_err(|fault| Broken { place, fault: Some(fault) })
}

fn hold(place: &'static str, holds: bool) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { place, fault: None }) }
}

/// Plays it.
pub(crate) fn play() -> Result<Done, Broken> {
    let (entries, sources) = read()?;
    let wide = Want { len: BUFFER, align: 64, kind: 0, access: 0, usage: 0 };
    let buffer = at("allocate", RUNTIME.allocate(0, &wide))?;
    let copy = at("allocate", RUNTIME.allocate(0, &wide))?;
    look_up(buffer)?;
    let queues = [
        at("queue", RUNTIME.queue(0, QueueOptions::default()))?,
        at("queue", RUNTIME.queue(0, QueueOptions::default()))?,
    ];
    let third = RUNTIME.queue(0, QueueOptions::default()).map_err(|fault| fault.kind);
    hold("a third queue is refused", third.err() == Some(Kind::ResourceExhausted))?;

    pass_on(&queues, buffer, copy)?;
    let gathered = gather(&queues, buffer, sources)?;

    for root in [buffer, copy] {
        at("release", RUNTIME.release(root))?;
    }
    hold(
        "a released buffer is stale",
        RUNTIME.allocation(buffer).map_err(|fault| fault.kind) == Err(Kind::InvalidHandle),
    )?;
    hold("all memory went back", REGION.live() == 0)?;
    for queue in queues {
        at("close", RUNTIME.close(queue))?;
    }
    Ok(Done { entries, gathered, moved: BUFFER })
}

/// Reads the archive; answers how many entries it has and where the two that are gathered are stored.
fn read() -> Result<(u64, [Stored; 2]), Broken> {
    let broken = |place| move |_| Broken { place, fault: None };
    let archive = Archive::open(Input::whole(ARCHIVE)).map_err(broken("the archive opens"))?;
    let mut marks = [Mark::default(); 16];
    archive.check(&mut marks).map_err(broken("no name twice"))?;
    let (mut splat, mut tensor) = (None, None);
    for entry in archive.entries() {
        let entry = entry.map_err(broken("an entry"))?;
        match entry.data {
            Data::Splat { pattern, pattern_len, len } if entry.name == *"s" => {
                splat = Some(Stored::Splat { pattern, pattern_len, len });
            }
            Data::Range { offset, len } if entry.name == *"a" => {
                let address = ARCHIVE.as_ptr().expose_provenance() as u64 + offset;
                tensor = Some(Stored::Memory { address, len, access: Access::READ });
            }
            _ => {}
        }
    }
    match (splat, tensor) {
        (Some(splat), Some(tensor)) => Ok((archive.count(), [splat, tensor])),
        _ => Err(Broken { place: "the entries are there", fault: None }),
    }
}

/// The buffer is found by any address inside it, and by none outside.
fn look_up(buffer: Handle<Record>) -> Result<(), Broken> {
    let known = at("allocation", RUNTIME.allocation(buffer))?;
    let inside = at("find", RUNTIME.find(Some(0), known.base + BUFFER - 1))?;
    hold("an interior address finds its buffer", inside == known)?;
    let own_code = RUNTIME.find(None, play as fn() -> _ as usize as u64);
    hold("a foreign address is not found", own_code.map_err(|fault| fault.kind) == Err(Kind::NotFound))
}

/// The first queue waits for a timeline and fills; the second waits for the first and copies.
fn pass_on(
    queues: &[Handle<Queue<Board, Bare>>; 2],
    from: Handle<Record>,
    to: Handle<Record>,
) -> Result<(), Broken> {
    refuse(queues[0], from)?;
    let point = |value| Ok(Point { timeline: at("timeline", RUNTIME.timeline(0))?, value });
    let (go, filled) = (point(1)?, point(7)?);
    let whole = |root| Span { root, offset: 0, len: BUFFER };
    let first = Around { waits: &[go], signals: &[filled], hint: Hint::None };
    at("fill", RUNTIME.fill(queues[0], &whole(from), &[0xA5, 0x5A], &first))?;
    let second = Around { waits: &[filled], signals: &[], hint: Hint::None };
    let copied = at("copy", RUNTIME.copy(queues[1], &whole(from), &whole(to), &second))?;
    let copied = copied.ok_or(Broken { place: "a queue in order gives a point", fault: None })?;

    let early = RUNTIME.wait(copied, after(10)).map_err(|fault| fault.kind);
    hold("nothing runs before it may", early == Err(Kind::DeadlineExceeded))?;
    at("signal", RUNTIME.signal(go.timeline, 1))?;
    at("wait", RUNTIME.wait(copied, after(LONG)))?;
    at("sync", RUNTIME.sync(queues[0], after(LONG)))?;

    let mut seen = [0; BUFFER as usize];
    read_back(queues[1], &whole(to), &mut seen)?;
    hold("the copy is what was filled", seen.chunks(2).all(|pair| pair == [0xA5, 0x5A]))
}

/// A fill whose length is no multiple of its pattern is refused at the call, and its signal fails with it.
fn refuse(queue: Handle<Queue<Board, Bare>>, root: Handle<Record>) -> Result<(), Broken> {
    let told = Point { timeline: at("timeline", RUNTIME.timeline(0))?, value: 1 };
    let around = Around { waits: &[], signals: &[told], hint: Hint::None };
    let refused = RUNTIME.fill(queue, &Span { root, offset: 0, len: BUFFER }, &[1, 2, 3], &around);
    hold("a ragged fill is refused", refused.map_err(|fault| fault.kind) == Err(Kind::InvalidArgument))?;
    let failed = RUNTIME.wait(told, after(LONG)).map_err(|fault| fault.kind);
    hold("its signal fails", failed == Err(Kind::InvalidArgument))
}

/// The entries of the batch: the splat from its second byte on, 61 bytes of it, and the whole tensor.
struct Entries {
    stored: [Stored; 2],
    target: Target,
}

impl Pieces for Entries {
    fn count(&self) -> u32 {
        2
    }
    fn piece(&self, index: u32) -> Result<Piece, Fault> {
        let item = match index {
            0 => batch::Item { key: b"s", parameter_offset: 1, buffer_offset: 0, len: 61 },
            _ => batch::Item { key: b"a", parameter_offset: 0, buffer_offset: TENSOR_AT, len: 100 },
        };
        batch::resolve(&item, &self.stored[index as usize], &self.target, Direction::In)
    }
}

/// Gathers both entries over both queues and compares every byte.
fn gather(
    queues: &[Handle<Queue<Board, Bare>>; 2],
    root: Handle<Record>,
    stored: [Stored; 2],
) -> Result<u64, Broken> {
    let target = Target { root, offset: 0, len: BUFFER };
    let entries = Entries { stored, target };
    let totals = at("check", batch::check(&entries, Direction::In))?;
    let over = Point { timeline: at("timeline", RUNTIME.timeline(0))?, value: 1 };
    let options = BatchOptions {
        direction: Direction::In,
        queues,
        feeders: &[],
        staging: None,
        waits: &[],
        signals: &[over],
    };
    let batch: Batch<Board, Bare, Entries, 8> = at("batch", Batch::new(entries, &totals, &options))?;
    let mut steps = 0;
    while batch.step(&RUNTIME) == Worked::Waiting {
        steps += 1;
        hold("the batch ends", steps < LONG)?;
        RUNTIME.poll();
    }
    at("the batch signals", RUNTIME.wait(over, after(LONG)))?;
    hold("all bytes are counted", batch.control().progress() == (totals.bytes, totals.bytes))?;

    let mut seen = [0; BUFFER as usize];
    read_back(queues[0], &Span { root, offset: 0, len: BUFFER }, &mut seen)?;
    hold("the splat keeps its phase", (0..61).all(|i| seen[i] == ((i + 1) % 4) as u8 + 1))?;
    hold("what no entry covers is as before", seen[62..64] == [0xA5, 0x5A])?;
    let tensor = TENSOR_AT as usize..TENSOR_AT as usize + 100;
    hold("the tensor is the file's", seen[tensor] == ARCHIVE[4096..4196])?;
    Ok(totals.bytes)
}

#[allow(unsafe_code)]
fn read_back(
    queue: Handle<Queue<Board, Bare>>,
    span: &Span,
    out: &mut [u8; BUFFER as usize],
) -> Result<(), Broken> {
    let to = out.as_mut_ptr();
    to.expose_provenance();
    // SAFETY: `out` has the span's length, and the queue is waited for before it is used again.
    let end = unsafe { RUNTIME.copy_out(queue, span, to, &Around::NONE) };
    let end = at("copy_out", end)?.ok_or(Broken { place: "a queue in order gives a point", fault: None })?;
    at("wait", RUNTIME.wait(end, after(LONG)))
}
