//! The engine: rings of descriptors, and the tick that works them off a burst at a time.
//!
//! # Safety
//! Addresses in descriptors were proven by core: memory that is live, the caller's to read or write, until the step
//! has ended. Bytes move under the engine's lock only.
#![allow(unsafe_code)]

use crate::region::Region;
use core::ptr;
use wharf_core::{
    device::{Hint, Lane, Op, Step},
    env::{Lock, Mutex},
    fault::{Blame, Fault, Kind, Site, Why},
    tick::Tick,
};

/// Bytes that a channel moves in one tick.
pub const BURST_LEN: u64 = 4096;
/// Bytes of a fill's pattern at most.
pub const PATTERN_LEN_MAX: usize = 16;
/// Bytes of an update at most: they are kept in the descriptor.
pub const UPDATE_LEN_MAX: usize = 64;

/// The engine; made for a static.
pub struct Engine<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize> {
    state: Mutex<L, State<CHANNELS, DEPTH, BLOCKS>>,
}

struct State<const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize> {
    channels: [Channel<DEPTH>; CHANNELS],
    region: Region<BLOCKS>,
}

struct Channel<const DEPTH: usize> {
    /// Of the lane that has the channel.
    tick: Option<Tick>,
    ring: [Descriptor; DEPTH],
    first: usize,
    len: usize,
    /// Bytes of the first descriptor that have moved.
    moved: u64,
}

#[derive(Clone, Copy)]
struct Descriptor {
    work: Work,
    to: u64,
    len: u64,
    done: u64,
    tell: bool,
}

#[derive(Clone, Copy)]
enum Work {
    Copy {
        from: u64,
    },
    /// `bytes[..period]` again and again; an update is a fill of one period.
    Fill {
        bytes: [u8; UPDATE_LEN_MAX],
        period: u8,
    },
}

impl<const DEPTH: usize> Channel<DEPTH> {
    const IDLE: Descriptor = Descriptor { work: Work::Copy { from: 0 }, to: 0, len: 0, done: 0, tell: false };
    const NEW: Self = Channel { tick: None, ring: [Self::IDLE; DEPTH], first: 0, len: 0, moved: 0 };

    /// Moves a burst; whether anything is left.
    fn burst(&mut self) -> bool {
        let Some(tick) = self.tick else { return false };
        let mut left = BURST_LEN;
        while self.len > 0 {
            let step = &self.ring[self.first];
            let n = left.min(step.len - self.moved);
            step.run(self.moved, n);
            (self.moved, left) = (self.moved + n, left - n);
            if self.moved < step.len {
                return true;
            }
            match step.done {
                0 => {}
                done if step.tell => tick.advance(done),
                done => tick.advance_quietly(done),
            }
            self.first = (self.first + 1) % DEPTH;
            (self.len, self.moved) = (self.len - 1, 0);
        }
        false
    }
}

impl Descriptor {
    fn new(step: &Step<'_>) -> Result<Self, Fault> {
        let (work, to, len) = match step.op {
            Op::Barrier => (Work::Copy { from: 0 }, 0, 0),
            Op::Copy { from, to, len, .. } => (Work::Copy { from }, to, len),
            Op::Fill { to, len, pattern } => (keep(pattern, PATTERN_LEN_MAX, Site::Fill)?, to, len),
            Op::Update { to, bytes } => (keep(bytes, UPDATE_LEN_MAX, Site::Update)?, to, bytes.len() as u64),
            _ => {
                let values = [step.op.kind().into(), 0];
                return Err(Fault::backend(Kind::Unsupported, Site::Submit, Why::Missing, values));
            }
        };
        Ok(Descriptor { work, to, len, done: step.done, tell: step.tell })
    }

    /// Moves bytes `at..at + n`.
    fn run(&self, at: u64, n: u64) {
        let to = ptr::with_exposed_provenance_mut::<u8>((self.to + at) as usize);
        match &self.work {
            Work::Copy { from } => {
                let from = ptr::with_exposed_provenance::<u8>((from + at) as usize);
                // SAFETY: see the module; both sides are `n` bytes inside ranges that core has proven.
                unsafe { ptr::copy(from, to, n as usize) };
            }
            Work::Fill { bytes, period } => {
                for i in 0..n as usize {
                    let byte = bytes[(at as usize + i) % usize::from(*period)];
                    // SAFETY: `i` is below `n`, so inside the range that core has proven.
                    unsafe { to.wrapping_add(i).write(byte) };
                }
            }
        }
    }
}

fn keep(from: &[u8], len_max: usize, site: Site) -> Result<Work, Fault> {
    if from.len() > len_max {
        let values = [from.len() as u64, len_max as u64];
        return Err(Fault::backend(Kind::ResourceExhausted, site, Why::Limit, values));
    }
    let mut bytes = [0; UPDATE_LEN_MAX];
    bytes[..from.len()].copy_from_slice(from);
    Ok(Work::Fill { bytes, period: from.len() as u8 })
}

impl<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize>
    Engine<L, CHANNELS, DEPTH, BLOCKS>
{
    /// An engine without memory, all channels free.
    #[allow(clippy::new_without_default)] // For statics.
    pub const fn new() -> Self {
        let channels = [const { Channel::NEW }; CHANNELS];
        Engine { state: Mutex::new(State { channels, region: Region::NEW }) }
    }

    /// Moves a burst on every channel; whether anything is left to do. In an interrupt that meets somebody inside it
    /// does nothing: the next tick will.
    pub fn tick(&self) -> bool {
        let burst = |state: &mut State<CHANNELS, DEPTH, BLOCKS>| {
            state.channels.iter_mut().fold(false, |left, channel| channel.burst() | left)
        };
        self.state.try_with(burst).unwrap_or(true)
    }

    /// What the engine does when a transfer meets a bus error: the channel's ring is dropped and its lane fails with the
    /// engine's code. False if the channel is idle, where no transfer can fail, or somebody is inside.
    pub fn break_off(&self, channel: usize, code: i32) -> bool {
        let broken = self.state.try_with(|state| {
            let channel = state.channels.get_mut(channel).filter(|channel| channel.len > 0)?;
            (channel.first, channel.len, channel.moved) = (0, 0, 0);
            channel.tick
        });
        let Some(Some(tick)) = broken else { return false };
        let why = Fault::new(Kind::BackendFailure, Blame::Driver, Site::Copy, Why::Native, [0; 2]);
        tick.fail(&why.with_native(code));
        true
    }

    pub(crate) fn give(&self, region: &'static mut [u8]) {
        let (base, len) = (region.as_mut_ptr().expose_provenance() as u64, region.len() as u64);
        self.state.with(|state| state.region.give(base, len));
    }
    pub(crate) fn region_len(&self) -> u64 {
        self.state.with(|state| state.region.len())
    }
    pub(crate) fn allocate(&self, len: u64, align: u64) -> Result<u64, Fault> {
        self.state.with(|state| state.region.allocate(len, align))
    }
    pub(crate) fn free(&self, base: u64) -> Result<(), Fault> {
        self.state.with(|state| state.region.free(base))
    }
}

/// A channel.
pub struct DmaLane<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize> {
    engine: &'static Engine<L, CHANNELS, DEPTH, BLOCKS>,
    number: usize,
}

impl<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize>
    DmaLane<L, CHANNELS, DEPTH, BLOCKS>
{
    pub(crate) fn new(
        engine: &'static Engine<L, CHANNELS, DEPTH, BLOCKS>,
        tick: Tick,
    ) -> Result<(Self, usize), Fault> {
        let number = engine.state.with(|state| {
            let number = state.channels.iter().position(|channel| channel.tick.is_none())?;
            state.channels[number] = Channel { tick: Some(tick), ..Channel::NEW };
            Some(number)
        });
        let full = Fault::backend(Kind::ResourceExhausted, Site::Queue, Why::Full, [CHANNELS as u64, 0]);
        let number = number.ok_or(full)?;
        Ok((DmaLane { engine, number }, number))
    }
}

impl<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize> Drop
    for DmaLane<L, CHANNELS, DEPTH, BLOCKS>
{
    fn drop(&mut self) {
        self.engine.state.with(|state| state.channels[self.number] = Channel::NEW);
    }
}

impl<L: Lock, const CHANNELS: usize, const DEPTH: usize, const BLOCKS: usize> Lane
    for DmaLane<L, CHANNELS, DEPTH, BLOCKS>
{
    fn submit(&mut self, steps: &[Step<'_>], _: Hint) -> Result<usize, (usize, Fault)> {
        self.engine.state.with(|state| {
            let channel = &mut state.channels[self.number];
            for (n, step) in steps.iter().enumerate() {
                if channel.len == DEPTH {
                    return Ok(n);
                }
                let place = (channel.first + channel.len) % DEPTH;
                channel.ring[place] = Descriptor::new(step).map_err(|fault| (n, fault))?;
                channel.len += 1;
            }
            Ok(steps.len())
        })
    }
}
