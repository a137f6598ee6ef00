//! Rules of the roles, checked at each call: arguments against what the device says of itself, ranges against memory
//! that lives, lifetimes, threads, mappings; and what is left over when a device is given up.
//!
//! A call that breaks a rule is told of and goes on: the device's own answer stays visible. Of what a backend refuses
//! nothing is recorded.

mod memory;
mod steps;

use crate::call::{Answer, At, Call, Facts, Layer, Outcome};
use alloc::{boxed::Box, collections::BTreeMap, format, string::String, vec::Vec};
use core::fmt;
use memory::{Made, Memory};
use steps::LaneView;
use wharf_core::{
    device::{Block, Kernel, Want},
    env::{Lock, Mutex},
    fault::{Fault, Kind},
};

/// What sort of rule was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// An argument is outside what the device takes.
    Parameter,
    /// A range does not lie in memory that lives.
    Range,
    /// Something is used or given back after its end, or while it is in use.
    Lifetime,
    /// Two threads in a place for one.
    Thread,
    /// A mapping that the device may not see the contents of: a warning, since only the host knows whether it wrote.
    Mapping,
    /// A kernel's argument that looks like a pointer to freed memory of the process, which may be somebody else's by
    /// now: a warning.
    Suspicion,
    /// Points of a lane do not grow.
    Order,
    /// The device's answer breaks a rule.
    Answer,
    /// Left over at the end.
    Leak,
}

impl FindingKind {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            FindingKind::Parameter => "parameter",
            FindingKind::Range => "range",
            FindingKind::Lifetime => "lifetime",
            FindingKind::Thread => "thread",
            FindingKind::Mapping => "mapping",
            FindingKind::Suspicion => "suspicion",
            FindingKind::Order => "order",
            FindingKind::Answer => "answer",
            FindingKind::Leak => "leak",
        }
    }
}

impl FindingKind {
    /// Whether a rule was broken for certain; the others are warnings.
    pub const fn is_certain(self) -> bool {
        !matches!(self, FindingKind::Mapping | FindingKind::Suspicion)
    }
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Of what sort.
    pub kind: FindingKind,
    /// The device.
    pub device: String,
    /// One line: what was done, and what the rule is.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.kind.name(), self.device, self.message)
    }
}

/// The layer.
pub struct Validation<L: Lock> {
    report: Box<dyn Fn(&Finding) + Send + Sync>,
    devices: Mutex<L, BTreeMap<u16, State>>,
}

/// What is known of one device.
pub(super) struct State {
    facts: Facts,
    memory: Memory,
    programs: BTreeMap<u64, Program>,
    /// Handed to the device's `unload`, which has not answered.
    unloading: BTreeMap<u64, Program>,
    lanes: BTreeMap<u32, LaneView>,
    calls: u64,
    /// The device said that it is gone, so that nothing can be given back to it.
    lost: bool,
}

struct Program {
    made: u64,
    len: usize,
    kernels: Vec<Kernel>,
}

/// What a check found.
pub(super) type Found = Option<(FindingKind, String)>;

impl<L: Lock> Validation<L> {
    /// Validation that hands each finding to `report`, on the thread of the call. The report must not call the device.
    pub fn new(report: impl Fn(&Finding) + Send + Sync + 'static) -> Self {
        Validation { report: Box::new(report), devices: Mutex::new(BTreeMap::new()) }
    }

    fn with(&self, at: &At<'_>, check: impl FnOnce(&mut State, &mut dyn FnMut(FindingKind, String))) {
        let mut found = Vec::new();
        self.devices.with(|devices| {
            let state = devices.entry(at.device.number).or_insert_with(|| State::new(at.device));
            check(state, &mut |kind, message| found.push((kind, message)));
        });
        for (kind, message) in found {
            (self.report)(&Finding { kind, device: at.device.name.clone(), message });
        }
    }
}

impl State {
    fn new(facts: &Facts) -> State {
        State {
            facts: facts.clone(),
            memory: Memory::default(),
            programs: BTreeMap::new(),
            unloading: BTreeMap::new(),
            lanes: BTreeMap::new(),
            calls: 0,
            lost: false,
        }
    }

    /// Whether some lane that is not idle was given work on the block.
    fn user(&self, block: &Block) -> Option<u32> {
        self.lanes.iter().find(|(_, lane)| lane.uses(block)).map(|(number, _)| *number)
    }

    fn want(&self, want: &Want) -> Found {
        let caps = &self.facts.caps;
        let wrong = if want.len == 0 {
            "0 bytes, at least 1 is wanted".into()
        } else if want.align != 0 && !want.align.is_power_of_two() {
            format!("alignment {} is not a power of two", want.align)
        } else if want.len > caps.alloc_max {
            format!("{} bytes, the device gives {} at most", want.len, caps.alloc_max)
        } else {
            return None;
        };
        Some((FindingKind::Parameter, format!("allocate: {wrong}")))
    }

    fn allocated(&mut self, want: &Want, block: &Block) -> Found {
        let made = Made { call: self.calls, what: "allocate" };
        let text = format!("allocate: {} bytes at {:#x}", block.len, block.base);
        let align = want.align.max(1);
        let wrong = if block.len < want.len {
            Some(format!("{text}, {} were wanted", want.len))
        } else if align.is_power_of_two() && !block.base.is_multiple_of(align) {
            Some(format!("{text}, not aligned to {align}"))
        } else {
            self.memory.overlap(block).map(|other| format!("{text} overlap {other}, which lives"))
        };
        self.memory.live(block, made);
        wrong.map(|text| (FindingKind::Answer, text))
    }

    fn giving_back(&mut self, block: &Block, what: &str) -> Found {
        let found = self.may_be_given_back(block, what);
        self.memory.freeing(block, self.calls);
        found
    }

    fn may_be_given_back(&self, block: &Block, what: &str) -> Found {
        if let Some(wrong) = self.memory.not_live(block) {
            return Some((FindingKind::Lifetime, format!("{what}: {wrong}")));
        }
        let lane = self.user(block)?;
        let text = format!(
            "{what}: {} bytes at {:#x}, which work under way on queue {lane} uses",
            block.len, block.base
        );
        Some((FindingKind::Lifetime, text))
    }

    fn part(&self, block: &Block, offset: u64, len: u64, what: &str) -> Found {
        if let Some(wrong) = self.memory.not_live(block) {
            return Some((FindingKind::Lifetime, format!("{what}: {wrong}")));
        }
        let inside = offset.checked_add(len).is_some_and(|end| end <= block.len);
        (!inside).then(|| {
            let text = format!("{what}: {len} bytes at offset {offset} of a block of {}", block.len);
            (FindingKind::Range, text)
        })
    }

    fn program(&self, program: u64, what: &str) -> Found {
        let known = self.programs.contains_key(&program);
        let text = || format!("{what}: program {program:#x} is not loaded");
        (!known).then(|| (FindingKind::Lifetime, text()))
    }

    fn unload(&mut self, program: u64) -> Found {
        let found = self.may_be_unloaded(program);
        self.memory.forget_globals(program);
        if let Some(known) = self.programs.remove(&program) {
            self.unloading.insert(program, known);
        }
        found
    }

    fn unload_refused(&mut self, program: u64) {
        if let Some(known) = self.unloading.remove(&program) {
            self.programs.insert(program, known);
        }
    }

    fn may_be_unloaded(&self, program: u64) -> Found {
        let unknown = self.program(program, "unload program");
        let running = || {
            let kernels = &self.programs.get(&program)?.kernels;
            let of = |kernel: &u64| kernels.iter().any(|known| known.native == *kernel);
            let (lane, _) = self.lanes.iter().find(|(_, lane)| lane.launched(of))?;
            let text = format!("unload program: a kernel of {program:#x} is under way on queue {lane}");
            Some((FindingKind::Lifetime, text))
        };
        unknown.or_else(running)
    }

    pub(super) fn kernel(&self, native: u64) -> Option<Kernel> {
        let mut all = self.programs.values().flat_map(|program| &program.kernels);
        all.find(|kernel| kernel.native == native).copied()
    }

    /// What is still there at the end.
    fn left(&self) -> impl Iterator<Item = String> {
        let blocks = self.memory.left();
        let programs = self.programs.values().map(|program| {
            format!(
                "a program of {} bytes was not unloaded, made by call {} (load program)",
                program.len, program.made
            )
        });
        let lanes =
            self.lanes.values().map(|lane| format!("a queue was not closed, opened by call {}", lane.made));
        blocks.chain(programs).chain(lanes)
    }
}

impl<L: Lock> Layer for Validation<L> {
    fn name(&self) -> &'static str {
        "validation"
    }

    fn before(&self, at: &At<'_>, call: &Call<'_>) -> Outcome<()> {
        self.with(at, |state, tell| {
            state.calls += 1;
            let found = match *call {
                Call::Allocate(want) => state.want(want),
                Call::Free(block) => state.giving_back(block, "free"),
                Call::Unregister(block) => state.giving_back(block, "unregister"),
                Call::Map(block, offset, len) => state.part(block, offset, len, "map"),
                Call::Unmap(block, offset, len) => state.part(block, offset, len, "unmap"),
                Call::Sync(block, offset, len, _) => state.part(block, offset, len, "flush"),
                Call::Unload(program) => state.unload(program),
                Call::Kernel { program, .. } => state.program(program, "kernel"),
                Call::Global { program, .. } => state.program(program, "global"),
                Call::Submit(steps, _) => return state.submit(at.lane, steps, tell),
                Call::Close => state.closing(at.lane),
                Call::Open | Call::Load(_) | Call::Register(..) | Call::Ask(_) => None,
            };
            if let Some((kind, message)) = found {
                tell(kind, message);
            }
        });
        Ok(())
    }

    fn after(&self, at: &At<'_>, call: &Call<'_>, outcome: &Outcome) {
        self.with(at, |state, tell| {
            state.lost |= matches!(outcome, Err((_, fault)) if fault.kind == Kind::DeviceLost);
            if let Call::Submit(steps, _) = call {
                let (Ok(Answer::Taken(taken)) | Err((taken, _))) = outcome else { return };
                return state.submitted(at.lane, steps.len() - (*taken).min(steps.len()));
            }
            if let Call::Free(block) | Call::Unregister(block) = call {
                return state.memory.freed(block, outcome.is_ok());
            }
            if let (Call::Unload(program), Err(_)) = (call, outcome) {
                return state.unload_refused(*program);
            }
            let Ok(answer) = outcome else { return };
            let made = state.calls;
            match (*call, answer) {
                (Call::Allocate(want), Answer::Block(block)) => {
                    if let Some((kind, message)) = state.allocated(want, block) {
                        tell(kind, message);
                    }
                }
                (Call::Register(..), Answer::Block(block)) => {
                    state.memory.live(block, Made { call: made, what: "register" });
                }
                (Call::Global { program, .. }, Answer::Block(block)) => {
                    state.memory.global(block, Made { call: made, what: "global" }, program);
                }
                (Call::Map(block, ..), _) => state.memory.mapped(block),
                (Call::Unmap(block, ..), _) => state.memory.unmapped(block),
                (Call::Sync(block, ..), _) => state.memory.synced(block),
                (Call::Load(image), Answer::Program(program)) => {
                    state.programs.insert(*program, Program { made, len: image.len(), kernels: Vec::new() });
                }
                (Call::Unload(program), _) => _ = state.unloading.remove(&program),
                (Call::Kernel { program, .. }, Answer::Kernel(kernel)) => {
                    if let Some(program) = state.programs.get_mut(&program)
                        && !program.kernels.contains(kernel)
                    {
                        program.kernels.push(*kernel);
                    }
                }
                (Call::Open, _) => _ = state.lanes.insert(at.lane, LaneView::new(made)),
                (Call::Close, _) => _ = state.lanes.remove(&at.lane),
                _ => {}
            }
        });
    }

    fn reach(&self, at: &At<'_>, value: u64) -> Result<u64, Fault> {
        self.devices.with(|devices| {
            if let Some(lane) = devices.get_mut(&at.device.number).and_then(|d| d.lanes.get_mut(&at.lane)) {
                lane.reached(value);
            }
        });
        Ok(value)
    }

    fn failed(&self, at: &At<'_>, _: &Fault) {
        self.devices.with(|devices| {
            if let Some(lane) = devices.get_mut(&at.device.number).and_then(|d| d.lanes.get_mut(&at.lane)) {
                lane.failed();
            }
        });
    }

    fn close(&self, device: &Facts) {
        let state = self.devices.with(|devices| devices.remove(&device.number));
        for message in state.iter().filter(|state| !state.lost).flat_map(State::left) {
            (self.report)(&Finding { kind: FindingKind::Leak, device: device.name.clone(), message });
        }
    }
}
