//! A timeline of a run in the array form of Chrome's trace events, which Perfetto opens: a track a queue and one a
//! calling thread, a slice a call and an operation, an arrow from a submit to the end of what it submitted.
//!
//! The array's closing bracket is written at the end; readers of the format take a file that ends before it. Lines are
//! handed to the sink whole.

use crate::call::{Answer, At, Call, End, Facts, Layer, Outcome};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    format,
    string::String,
};
use core::fmt::Write;
use wharf_core::{
    device::{Op, PEER_HOST},
    env::{Lock, Mutex},
    fault::Fault,
};

/// Where lines of a trace go. What fails there is the sink's to tell.
pub trait Sink: Send {
    /// Takes whole lines.
    fn write(&mut self, text: &str);
}

/// Bytes that are kept before they go to the sink.
const KEPT: usize = 16 << 10;
/// Nor are they kept longer than this.
const KEPT_NS: u64 = 100_000_000;
/// Tracks of queues have the numbers of lanes; those of threads begin here, so many for each device. Readers keep the
/// numbers of tracks in 32 bits, take a number to mean one track over all processes, and know process 0 for the idle one.
const THREADS: u64 = 1 << 24;
const THREADS_EACH: u64 = 1 << 12;

/// The layer.
pub struct Trace<L: Lock>(Mutex<L, State>);

struct State {
    sink: Box<dyn Sink>,
    text: String,
    sent_ns: u64,
    begun: bool,
    ended: bool,
    devices: BTreeSet<u16>,
    tracks: BTreeSet<(u16, u64)>,
    lanes: BTreeMap<u32, Queue>,
    /// From a device's clock to ours: the least that was seen between an end and our seeing it.
    clocks: BTreeMap<u16, i128>,
    flow: u64,
}

#[derive(Default)]
struct Queue {
    pending: VecDeque<Pending>,
    /// Number of the first arrow of the submit under way.
    first: u64,
    /// Where the last slice of the track ends.
    end_ns: u64,
}

struct Pending {
    name: &'static str,
    args: String,
    submitted_ns: u64,
    /// 0 until a step that has one follows.
    done: u64,
    flow: u64,
}

impl<L: Lock> Trace<L> {
    /// A trace into `sink`.
    pub fn new(sink: Box<dyn Sink>) -> Self {
        Trace(Mutex::new(State {
            sink,
            text: String::new(),
            sent_ns: 0,
            begun: false,
            ended: false,
            devices: BTreeSet::new(),
            tracks: BTreeSet::new(),
            lanes: BTreeMap::new(),
            clocks: BTreeMap::new(),
            flow: 0,
        }))
    }
}

impl<L: Lock> Drop for Trace<L> {
    fn drop(&mut self) {
        self.0.with(State::end);
    }
}

/// Nanoseconds as the format wants times, in microseconds.
struct Micros(u64);

impl core::fmt::Display for Micros {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Text inside a JSON string.
struct Quoted<'a>(&'a str);

impl core::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '"' | '\\' => write!(f, "\\{letter}"),
            letter if (letter as u32) < 0x20 => write!(f, "\\u{:04x}", letter as u32),
            letter => f.write_char(letter),
        })
    }
}

/// A device's number as a process.
fn process(device: &Facts) -> u32 {
    u32::from(device.number) + 1
}

/// The track of the calling thread.
fn thread_track(at: &At<'_>) -> u64 {
    THREADS + u64::from(at.device.number) * THREADS_EACH + at.thread % THREADS_EACH
}

impl State {
    /// Adds one event.
    fn event(&mut self, event: core::fmt::Arguments<'_>) {
        self.text.push_str(if self.begun { ",\n" } else { "[\n" });
        self.begun = true;
        let _ = self.text.write_fmt(event); // A string takes all.
    }

    fn send(&mut self, now_ns: u64) {
        if self.text.len() >= KEPT || now_ns.saturating_sub(self.sent_ns) >= KEPT_NS {
            self.sent_ns = now_ns;
            self.sink.write(&self.text);
            self.text.clear();
        }
    }

    fn end(&mut self) {
        if !core::mem::replace(&mut self.ended, true) {
            self.text.push_str(if self.begun { "\n]\n" } else { "[]\n" });
            self.sink.write(&self.text);
            self.text.clear();
        }
    }

    /// Names a device and a track of it, the first time.
    fn track(&mut self, device: &Facts, track: u64) {
        let pid = process(device);
        if self.devices.insert(device.number) {
            let name = Quoted(&device.name);
            self.event(format_args!(
                r#"{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":"{name}"}}}}"#
            ));
        }
        if self.tracks.insert((device.number, track)) {
            let name = match track.checked_sub(THREADS) {
                None => format!("queue {track}"),
                Some(thread) => format!("host calls, thread {}", thread % THREADS_EACH),
            };
            self.event(format_args!(
                r#"{{"ph":"M","name":"thread_name","pid":{pid},"tid":{track},"args":{{"name":"{name}"}}}}"#
            ));
        }
    }

    fn slice(&mut self, device: &Facts, track: u64, name: &str, (begin, end): (u64, u64), args: &str) {
        self.track(device, track);
        let (pid, ts, dur) = (process(device), Micros(begin), Micros(end.saturating_sub(begin)));
        self.event(format_args!(
            r#"{{"ph":"X","name":"{name}","cat":"wharf","pid":{pid},"tid":{track},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#
        ));
    }

    fn call(&mut self, at: &At<'_>, call: &Call<'_>, outcome: &Outcome) {
        let mut args = arguments(call, outcome);
        if let Err((_, fault)) = outcome {
            let comma = if args.is_empty() { "" } else { "," };
            let _ = write!(args, r#"{comma}"error":"{fault}""#); // A string takes all.
        }
        let name = match call {
            Call::Open => "open queue",
            Call::Close => "close queue",
            Call::Unmap(..) => "unmap",
            Call::Unregister(_) => "unregister",
            Call::Sync(.., true) => "flush",
            Call::Sync(.., false) => "invalidate",
            other => other.site().name(),
        };
        self.slice(at.device, thread_track(at), name, (at.begin_ns, at.end_ns), &args);
    }

    /// Forgets the last steps of a submit, which were not taken, and draws the arrows' beginnings of the others.
    fn submitted(&mut self, at: &At<'_>, steps: usize, taken: usize) {
        let Some(queue) = self.lanes.get_mut(&at.lane) else { return };
        for _ in taken..steps {
            queue.pending.pop_back();
        }
        let flows = queue.first;
        let (pid, tid) = (process(at.device), thread_track(at));
        for flow in flows..flows + taken as u64 {
            // Inside the slice of the submit, which began then.
            let ts = Micros(at.begin_ns);
            self.event(format_args!(
                r#"{{"ph":"s","name":"submit","cat":"flow","id":{flow},"pid":{pid},"tid":{tid},"ts":{ts}}}"#
            ));
        }
    }

    fn ended(&mut self, at: &At<'_>, end: &End) {
        let Some(queue) = self.lanes.get_mut(&at.lane) else { return };
        let mut over = VecDeque::new();
        while queue.pending.front().is_some_and(|step| step.done != 0 && step.done <= end.value) {
            over.extend(queue.pending.pop_front());
        }
        let last_ns = queue.end_ns;
        let Some(first) = over.front() else { return };
        let (mut begin, mut finish) = (last_ns.max(first.submitted_ns), end.seen_ns);
        if let Some(times) = end.times {
            let gap = i128::from(end.seen_ns) - i128::from(times.end_ns);
            let clock = self.clocks.entry(at.device.number).or_insert(gap);
            *clock = gap.min(*clock);
            let ours = |ns: u64| u64::try_from(i128::from(ns) + *clock).unwrap_or(0);
            (begin, finish) = (ours(times.begin_ns).max(last_ns), ours(times.end_ns));
        }
        let finish = finish.max(begin + over.len() as u64);
        self.over(at, &over, (begin, finish), "");
        if let Some(queue) = self.lanes.get_mut(&at.lane) {
            queue.end_ns = finish;
        }
    }

    /// Slices and ends of arrows of steps that are over, with more arguments in each.
    fn over(&mut self, at: &At<'_>, over: &VecDeque<Pending>, (begin, finish): (u64, u64), more: &str) {
        // Steps without an end of their own share the one that follows.
        let share = (finish - begin) / over.len().max(1) as u64;
        for (n, step) in over.iter().enumerate() {
            let from = begin + n as u64 * share;
            let to = if n + 1 == over.len() { finish } else { from + share };
            let comma = if step.args.is_empty() || more.is_empty() { "" } else { "," };
            let args = format!("{}{comma}{more}", step.args);
            self.slice(at.device, at.lane.into(), step.name, (from, to), &args);
            let (pid, tid, flow, ts) = (process(at.device), at.lane, step.flow, Micros(to - 1));
            self.event(format_args!(
                r#"{{"ph":"f","bp":"e","name":"submit","cat":"flow","id":{flow},"pid":{pid},"tid":{tid},"ts":{ts}}}"#
            ));
        }
    }
}

fn arguments(call: &Call<'_>, outcome: &Outcome) -> String {
    match (call, outcome) {
        (Call::Allocate(want), Ok(Answer::Block(block))) => {
            format!(r#""bytes":{},"address":"{:#x}""#, want.len, block.base)
        }
        (Call::Allocate(want), _) => format!(r#""bytes":{}"#, want.len),
        (Call::Free(block) | Call::Unregister(block), _) => {
            format!(r#""bytes":{},"address":"{:#x}""#, block.len, block.base)
        }
        (Call::Open | Call::Close, _) => String::new(),
        (Call::Submit(steps, _), Ok(Answer::Taken(taken))) => {
            format!(r#""operations":{},"taken":{taken}"#, steps.len())
        }
        (Call::Submit(steps, _), _) => format!(r#""operations":{}"#, steps.len()),
        (Call::Load(image), _) => format!(r#""bytes":{}"#, image.len()),
        (Call::Kernel { name, .. } | Call::Global { name, .. }, _) => {
            format!(r#""name":"{}""#, Quoted(&String::from_utf8_lossy(name)))
        }
        (Call::Map(_, offset, len) | Call::Unmap(_, offset, len) | Call::Sync(_, offset, len, _), _) => {
            format!(r#""offset":{offset},"bytes":{len}"#)
        }
        (Call::Register(_, len, _), _) => format!(r#""bytes":{len}"#),
        (Call::Unload(_) | Call::Ask(_), _) => String::new(),
    }
}

fn operation(op: &Op<'_>) -> (&'static str, String) {
    match op {
        Op::Barrier => ("barrier", String::new()),
        Op::Copy { len, peers, .. } => {
            let name = match peers {
                [PEER_HOST, PEER_HOST] => "copy on the host",
                [PEER_HOST, _] => "copy from the host",
                [_, PEER_HOST] => "copy to the host",
                _ => "copy",
            };
            (name, format!(r#""bytes":{len}"#))
        }
        Op::Fill { len, .. } => ("fill", format!(r#""bytes":{len}"#)),
        Op::Update { bytes, .. } => ("update", format!(r#""bytes":{}"#, bytes.len())),
        Op::Launch { kernel, groups, size, args, .. } => {
            let args = format!(
                r#""kernel":"{kernel:#x}","groups":{groups:?},"size":{size:?},"argument bytes":{}"#,
                args.len()
            );
            ("launch", args)
        }
        Op::After { value, .. } => ("wait for a queue", format!(r#""value":{value}"#)),
        Op::Call(_) => ("host call", String::new()),
        Op::Read { at, len, .. } => ("read", format!(r#""offset":{at},"bytes":{len}"#)),
        Op::Write { at, len, .. } => ("write", format!(r#""offset":{at},"bytes":{len}"#)),
        Op::Prefetch { len, .. } => ("prefetch", format!(r#""bytes":{len}"#)),
    }
}

impl<L: Lock> Layer for Trace<L> {
    fn name(&self) -> &'static str {
        "trace"
    }

    fn wants_times(&self) -> bool {
        true
    }

    fn before(&self, at: &At<'_>, call: &Call<'_>) -> Outcome<()> {
        if let Call::Submit(steps, _) = call {
            self.0.with(|state| {
                let mut flow = state.flow;
                let queue = state.lanes.entry(at.lane).or_default();
                queue.first = flow + 1;
                for step in steps.iter() {
                    flow += 1;
                    let (name, args) = operation(&step.op);
                    let submitted_ns = at.begin_ns;
                    queue.pending.push_back(Pending { name, args, submitted_ns, done: step.done, flow });
                    if step.done != 0 {
                        let open = queue.pending.iter_mut().rev().skip(1).take_while(|step| step.done == 0);
                        open.for_each(|before| before.done = step.done);
                    }
                }
                state.flow = flow;
            });
        }
        Ok(())
    }

    fn after(&self, at: &At<'_>, call: &Call<'_>, outcome: &Outcome) {
        self.0.with(|state| {
            // Nothing went over: a full lane is tried again and again.
            if let (Call::Submit(steps, _), Ok(Answer::Taken(0))) = (call, outcome) {
                return state.submitted(at, steps.len(), 0);
            }
            state.call(at, call, outcome);
            match (call, outcome) {
                (Call::Submit(steps, _), Ok(Answer::Taken(taken)) | Err((taken, _))) => {
                    let taken = (*taken).min(steps.len());
                    state.submitted(at, steps.len(), taken);
                }
                (Call::Close, _) => _ = state.lanes.remove(&at.lane),
                _ => {}
            }
            state.send(at.end_ns);
        });
    }

    fn failed(&self, at: &At<'_>, fault: &Fault) {
        self.0.with(|state| {
            let Some(queue) = state.lanes.get_mut(&at.lane) else { return };
            let pending = core::mem::take(&mut queue.pending);
            let begin = pending.front().map_or(at.begin_ns, |step| queue.end_ns.max(step.submitted_ns));
            queue.end_ns = at.begin_ns.max(begin + pending.len() as u64);
            let (finish, error) = (queue.end_ns, format!(r#""error":"{fault}""#));
            state.over(at, &pending, (begin, finish), &error);
            let (pid, tid, ts) = (process(at.device), at.lane, Micros(finish));
            state.track(at.device, tid.into());
            state.event(format_args!(
                r#"{{"ph":"i","s":"t","name":"queue failed","cat":"wharf","pid":{pid},"tid":{tid},"ts":{ts},"args":{{{error}}}}}"#
            ));
            state.send(at.begin_ns);
        });
    }

    fn ended(&self, at: &At<'_>, end: &End) {
        self.0.with(|state| {
            state.ended(at, end);
            state.send(at.end_ns);
        });
    }
}
