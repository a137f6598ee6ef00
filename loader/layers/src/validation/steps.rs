//! Steps of a lane against what the device takes and what lives.

use super::{FindingKind, State, memory::Place};
use alloc::{
    collections::VecDeque,
    format,
    string::{String, ToString},
    vec::Vec,
};
use wharf_core::device::{Block, Caps, Kernel, Op, PEER_HOST, Step};

/// A lane as far as rules go.
pub(super) struct LaneView {
    pub(super) made: u64,
    /// A thread is in `submit`.
    inside: bool,
    last: u64,
    reached: u64,
    given: VecDeque<Given>,
}

/// A step that was given to the device.
struct Given {
    done: u64,
    ranges: Vec<(u64, u64)>,
    kernel: Option<u64>,
}

impl LaneView {
    pub(super) fn new(made: u64) -> Self {
        LaneView { made, inside: false, last: 0, reached: 0, given: VecDeque::new() }
    }

    pub(super) fn reached(&mut self, value: u64) {
        self.reached = self.reached.max(value);
        // Steps without a value end with the one that follows.
        while let Some(end) = self.given.iter().position(|step| step.done != 0) {
            if self.given[end].done > self.reached {
                break;
            }
            self.given.drain(..=end);
        }
    }

    /// Nothing that was given is under way any more.
    pub(super) fn failed(&mut self) {
        self.given.clear();
    }

    pub(super) fn uses(&self, block: &Block) -> bool {
        let end = block.base.saturating_add(block.len);
        let touches = |(at, len): &(u64, u64)| *at < end && block.base < at.saturating_add(*len);
        self.given.iter().any(|step| step.ranges.iter().any(touches))
    }

    pub(super) fn launched(&self, of: impl Fn(&u64) -> bool) -> bool {
        self.given.iter().any(|step| step.kernel.as_ref().is_some_and(&of))
    }
}

/// The side of a copy that the device reads.
const SOURCE: &str = "source";

type Tell<'a> = &'a mut dyn FnMut(FindingKind, String);

impl State {
    pub(super) fn submit(&mut self, lane: u32, steps: &[Step<'_>], tell: Tell<'_>) {
        let Some(view) = self.lanes.get_mut(&lane) else {
            let text = format!("submit: queue {lane} is closed");
            return tell(FindingKind::Lifetime, text);
        };
        if core::mem::replace(&mut view.inside, true) {
            let text = format!("submit: two threads are in queue {lane} at once");
            tell(FindingKind::Thread, text);
        }
        let mut given = Vec::with_capacity(steps.len());
        for step in steps {
            self.step(step, &mut |kind, text| {
                tell(kind, format!("{} on queue {lane}: {text}", name(&step.op)));
            });
            let kernel = if let Op::Launch { kernel, .. } = step.op { Some(kernel) } else { None };
            let ranges = ranges(&step.op, self.facts.number).map(|(at, len, _)| (at, len)).collect();
            given.push(Given { done: step.done, ranges, kernel });
        }
        let Some(view) = self.lanes.get_mut(&lane) else { return };
        for step in steps.iter().filter(|step| step.done != 0) {
            if step.done <= view.last {
                let text =
                    format!("{} on queue {lane}: ends as {}, after {}", name(&step.op), step.done, view.last);
                tell(FindingKind::Order, text);
            }
            view.last = step.done;
        }
        view.given.extend(given);
    }

    /// The last `refused` steps were not taken.
    pub(super) fn submitted(&mut self, lane: u32, refused: usize) {
        let Some(view) = self.lanes.get_mut(&lane) else { return };
        view.inside = false;
        if refused > 0 {
            view.given.truncate(view.given.len().saturating_sub(refused));
            view.last =
                view.given.iter().rev().map(|step| step.done).find(|done| *done != 0).unwrap_or(view.reached);
        }
    }

    pub(super) fn closing(&self, lane: u32) -> super::Found {
        let view = self.lanes.get(&lane)?;
        let left = view.given.iter().filter(|step| step.done > view.reached).count();
        let text = format!("close: queue {lane} has {left} operations under way");
        (left > 0).then_some((FindingKind::Lifetime, text))
    }

    fn step(&mut self, step: &Step<'_>, tell: Tell<'_>) {
        let caps = self.facts.caps;
        if !caps.takes(step.op.kind()) {
            tell(FindingKind::Parameter, "the device does not take this operation".into());
        }
        if let Some(text) = parameters(&step.op, &caps) {
            tell(FindingKind::Parameter, text);
        }
        if let Op::Launch { kernel, args, size, shared, .. } = step.op {
            self.launch(kernel, args, size, shared, tell);
        }
        for (at, len, side) in ranges(&step.op, self.facts.number) {
            match self.memory.place(at, len) {
                Place::Live => {}
                // Memory of the process may be anybody's: core lets a caller wrap what the device never gave out.
                Place::Unknown | Place::Freed(..) if caps.space == 0 => {}
                Place::Freed(block, call) => {
                    let text = format!(
                        "{side}: {len} bytes at {at:#x} lie in {} bytes at {:#x}, freed by call {call}",
                        block.len, block.base
                    );
                    tell(FindingKind::Lifetime, text);
                }
                Place::PastEnd(block) => {
                    let text = format!(
                        "{side}: {len} bytes at {at:#x} end past the block of {} at {:#x}",
                        block.len, block.base
                    );
                    tell(FindingKind::Range, text);
                }
                Place::Unknown => {
                    tell(
                        FindingKind::Range,
                        format!("{side}: {len} bytes at {at:#x} lie in no memory that lives"),
                    );
                }
            }
            if !caps.coherent && side == SOURCE {
                self.mapping(at, len, tell);
            }
        }
    }

    fn mapping(&mut self, at: u64, len: u64, tell: Tell<'_>) {
        if let Some(block) = self.memory.unseen(at, len) {
            let text = format!(
                "{} bytes at {:#x} are mapped and were neither flushed nor unmapped: the device may not see them",
                block.len, block.base
            );
            tell(FindingKind::Mapping, text);
        }
    }

    fn launch(&mut self, kernel: u64, args: &[u8], size: [u32; 3], shared: u32, tell: Tell<'_>) {
        let caps = self.facts.caps;
        let Some(known) = self.kernel(kernel) else {
            return tell(
                FindingKind::Lifetime,
                format!("kernel {kernel:#x} is not of a program that is loaded"),
            );
        };
        if known.args_len != Kernel::UNCHECKED && known.args_len as usize != args.len() {
            let text = format!("{} bytes of arguments, the kernel takes {}", args.len(), known.args_len);
            tell(FindingKind::Parameter, text);
        }
        let items = size.iter().map(|n| u64::from(*n)).product::<u64>();
        let most = u64::from(known.group_max.min(caps.group_max));
        if items > most {
            tell(FindingKind::Parameter, format!("{items} work-items in a group, {most} at most"));
        }
        if shared.saturating_add(known.shared_static) > caps.shared_max {
            let (dynamic, own, most) = (shared, known.shared_static, caps.shared_max);
            tell(
                FindingKind::Parameter,
                format!("{dynamic} bytes of shared memory and {own} of the kernel's own, {most} at most"),
            );
        }
        // Pointers lie at multiples of their size.
        for (n, word) in args.chunks_exact(8).enumerate() {
            let at = u64::from_le_bytes(word.try_into().unwrap_or_default());
            match self.memory.place(at, 1) {
                Place::Freed(block, call) => {
                    let text = format!(
                        "the argument at byte {} points into {} bytes at {:#x}, freed by call {call}",
                        n * 8,
                        block.len,
                        block.base
                    );
                    let sure = caps.space != 0;
                    tell(if sure { FindingKind::Lifetime } else { FindingKind::Suspicion }, text);
                }
                Place::Live if !caps.coherent => self.mapping(at, 1, tell),
                _ => {}
            }
        }
    }
}

fn name(op: &Op<'_>) -> &'static str {
    match op {
        Op::Barrier => "barrier",
        Op::Copy { .. } => "copy",
        Op::Fill { .. } => "fill",
        Op::Update { .. } => "update",
        Op::Launch { .. } => "launch",
        Op::After { .. } => "wait",
        Op::Call(_) => "host call",
        Op::Read { .. } => "read",
        Op::Write { .. } => "write",
        Op::Prefetch { .. } => "prefetch",
    }
}

/// What of an operation's numbers the device does not take.
fn parameters(op: &Op<'_>, caps: &Caps) -> Option<String> {
    match *op {
        Op::Fill { to, len, pattern } => {
            let n = pattern.len() as u64;
            if n == 0 || n > caps.pattern_max.into() {
                Some(format!("a pattern of {n} bytes, the device takes 1 to {}", caps.pattern_max))
            } else if len % n != 0 {
                Some(format!("{len} bytes, not a multiple of the pattern's {n}"))
            } else if caps.pattern_pow2 && (!n.is_power_of_two() || to % n != 0) {
                Some(format!(
                    "a pattern of {n} bytes at {to:#x}, the device takes powers of two where they are aligned"
                ))
            } else {
                None
            }
        }
        Op::Update { bytes, .. } => {
            let n = bytes.len();
            let fits = n > 0 && n as u64 <= caps.update_max.into();
            (!fits).then(|| format!("{n} bytes at once, the device takes 1 to {}", caps.update_max))
        }
        Op::Launch { groups, size, args, .. } => {
            if groups.contains(&0) || size.contains(&0) {
                Some(format!("groups {groups:?} of {size:?}: a zero"))
            } else {
                let over = args.len() as u64 > caps.args_max.into();
                over.then(|| format!("{} bytes of arguments, the device takes {}", args.len(), caps.args_max))
            }
        }
        Op::After { value: 0, .. } => Some("a wait for value 0, which no operation has".to_string()),
        _ => None,
    }
}

/// Ranges of the device's own memory that an operation uses, and what each is.
fn ranges(op: &Op<'_>, device: u16) -> impl Iterator<Item = (u64, u64, &'static str)> {
    let all = match *op {
        Op::Copy { from, to, len, peers } => [
            (peers[0] == device && peers[0] != PEER_HOST).then_some((from, len, SOURCE)),
            (peers[1] == device && peers[1] != PEER_HOST).then_some((to, len, "target")),
        ],
        Op::Fill { to, len, .. } => [Some((to, len, "target")), None],
        Op::Update { to, bytes } => [Some((to, bytes.len() as u64, "target")), None],
        Op::Prefetch { at, len, .. } => [Some((at, len, "range")), None],
        // Files work on any memory of the process.
        Op::Barrier
        | Op::Launch { .. }
        | Op::After { .. }
        | Op::Call(_)
        | Op::Read { .. }
        | Op::Write { .. } => [None, None],
    };
    all.into_iter().flatten()
}
