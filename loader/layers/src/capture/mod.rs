//! A run as a file: each call with its arguments and bytes, images once for each hash, and hashes of what the host read.
//!
//! Operations are written in the order in which they were handed to devices, which is an order that they may run in: an
//! operation is handed over only when what it waits for has ended, or after it. What a run is made of is what passes
//! through calls; memory that is wrapped without a call, host functions and writes through a mapping that is neither
//! flushed nor ended are not in it.
//!
//! # Safety
//! Memory of the process that a step reads is read during `submit`, and what a step wrote is read before core is shown
//! its end: both times whoever owns it waits for the step. A mapping is read before it is flushed or ended.
#![allow(unsafe_code)]

mod record;

pub use record::{Hash, MAGIC, Record, RecordError, Records};

use crate::call::{Answer, At, Call, Facts, Layer, Outcome};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::slice;
use sha2::{Digest, Sha256};
use wharf_core::{
    device::{Op, PEER_HOST, Step},
    env::{Lock, Mutex},
    fault::Fault,
};

/// Where the bytes of a capture go. What fails there is the sink's to tell.
pub trait ByteSink: Send {
    /// Takes whole records.
    fn write(&mut self, bytes: &[u8]);
}

/// The hash of bytes.
pub fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// Bytes that are kept before they go to the sink.
const KEPT: usize = 1 << 20;

/// The layer.
pub struct Capture<L: Lock>(Mutex<L, State>);

struct State {
    sink: Box<dyn ByteSink>,
    bytes: Vec<u8>,
    devices: BTreeMap<u16, u16>,
    images: BTreeSet<Hash>,
    /// Length of what lives, by device and first address.
    blocks: BTreeMap<(u16, u64), u64>,
    /// Host address and length of mappings, by device, block and offset.
    mappings: BTreeMap<(u16, u64, u64), (u64, u64)>,
    lanes: BTreeMap<u32, Vec<Watched>>,
    /// The last operation of the submit that a lane is in.
    submits: BTreeMap<u32, u64>,
    /// The last operation.
    op: u64,
}

/// A step whose target is looked at when it has ended.
struct Watched {
    op: u64,
    /// 0 until a step that has one follows.
    done: u64,
    address: u64,
    len: u64,
    file: bool,
}

impl<L: Lock> Capture<L> {
    /// A capture into `sink`.
    pub fn new(sink: Box<dyn ByteSink>) -> Self {
        Capture(Mutex::new(State {
            sink,
            bytes: MAGIC.to_vec(),
            devices: BTreeMap::new(),
            images: BTreeSet::new(),
            blocks: BTreeMap::new(),
            mappings: BTreeMap::new(),
            lanes: BTreeMap::new(),
            submits: BTreeMap::new(),
            op: 0,
        }))
    }
}

impl<L: Lock> Drop for Capture<L> {
    fn drop(&mut self) {
        self.0.with(State::send);
    }
}

/// Memory of the process.
///
/// # Safety
/// `len` bytes at `address` can be read, and are not written meanwhile.
unsafe fn process<'a>(address: u64, len: u64) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    let at = core::ptr::with_exposed_provenance(address as usize);
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(at, len as usize) }
}

impl State {
    fn put(&mut self, record: &Record<'_>) {
        record.encode(&mut self.bytes);
        if self.bytes.len() >= KEPT {
            self.send();
        }
    }

    fn send(&mut self) {
        self.sink.write(&self.bytes);
        self.bytes.clear();
    }

    fn device(&mut self, facts: &Facts) {
        if self.devices.insert(facts.number, facts.caps.space).is_none() {
            let (device, space, name) = (facts.number, facts.caps.space, facts.name.as_bytes());
            self.put(&Record::Device { device, space, name });
        }
    }

    /// Whether a range lies in memory that the device gave out.
    fn owns(&self, device: u16, at: u64, len: u64) -> bool {
        let below = self.blocks.range((device, 0)..=(device, at)).next_back();
        below.is_some_and(|((_, base), size)| {
            at.checked_add(len).is_some_and(|end| end <= base.saturating_add(*size))
        })
    }

    /// Whether the side of a copy is memory of a device; what one wraps is the process's.
    fn is_device(&self, peer: u16, at: u64, len: u64) -> bool {
        peer != PEER_HOST && (self.devices.get(&peer) != Some(&0) || self.owns(peer, at, len))
    }

    /// The device that gave out memory of the process, if one did.
    fn owner(&self, at: u64, len: u64) -> Option<u16> {
        let of_process = self.devices.iter().filter(|(_, space)| **space == 0).map(|(device, _)| *device);
        of_process.into_iter().find(|device| self.owns(*device, at, len))
    }

    fn step(&mut self, at: &At<'_>, step: &Step<'_>) {
        self.op += 1;
        let (op, device) = (self.op, at.device.number);
        match step.op {
            Op::Copy { from, to, len, peers } => self.copy(at, (from, to, len, peers), step.done),
            Op::Fill { to, len, pattern } if self.is_device(device, to, len) => {
                self.put(&Record::Fill { op, device, to, len, pattern });
            }
            Op::Update { to, bytes } if self.is_device(device, to, bytes.len() as u64) => {
                self.put(&Record::Put { op, device, to, bytes });
            }
            Op::Launch { kernel, groups, size, shared, args } => {
                self.put(&Record::Launch { op, device, kernel, groups, size, shared, args });
            }
            Op::Read { to, len, .. } => {
                let watched = Watched { op, done: step.done, address: to, len, file: true };
                self.lanes.entry(at.lane).or_default().push(watched);
            }
            // Wrapped memory; and what moves no bytes that come back.
            _ => {}
        }
    }

    fn copy(&mut self, at: &At<'_>, (from, to, len, peers): (u64, u64, u64, [u16; 2]), done: u64) {
        let op = self.op;
        match (self.is_device(peers[0], from, len), self.is_device(peers[1], to, len)) {
            (true, true) => self.put(&Record::Copy { op, devices: peers, from, to, len }),
            (false, true) => {
                // SAFETY: the source of a step that is being submitted, which core proved to be readable.
                let bytes = unsafe { process(from, len) };
                self.put(&Record::Put { op, device: peers[1], to, bytes });
            }
            (true, false) => {
                self.put(&Record::Get { op, device: peers[0], from, len });
                let watched = Watched { op, done, address: to, len, file: false };
                self.lanes.entry(at.lane).or_default().push(watched);
            }
            (false, false) => {}
        }
    }

    /// Steps up to `value` have ended and were not shown to have.
    fn ended(&mut self, lane: u32, value: u64) {
        let Some(watched) = self.lanes.get_mut(&lane) else { return };
        let count = watched.iter().take_while(|step| step.done != 0 && step.done <= value).count();
        let over: Vec<Watched> = watched.drain(..count).collect();
        for step in over {
            // SAFETY: the target of a step that has ended, whose owner has not been told.
            let bytes = unsafe { process(step.address, step.len) };
            if !step.file {
                self.put(&Record::Result { op: step.op, hash: hash(bytes) });
            } else if let Some(device) = self.owner(step.address, step.len) {
                self.put(&Record::Put { op: 0, device, to: step.address, bytes });
            }
        }
    }

    /// What the host wrote through a mapping.
    fn mapped(&mut self, device: u16, base: u64, offset: u64, len: u64) {
        let found = self.mappings.range((device, base, 0)..=(device, base, offset)).next_back();
        let Some((&(.., begin), &(host, mapped))) = found else { return };
        if (offset - begin).checked_add(len).is_none_or(|end| end > mapped) {
            return;
        }
        // SAFETY: inside a mapping that has not ended, whose owner flushes or ends it in this call.
        let bytes = unsafe { process(host + (offset - begin), len) };
        self.put(&Record::Put { op: 0, device, to: base + offset, bytes });
    }

    fn before(&mut self, at: &At<'_>, call: &Call<'_>) {
        self.device(at.device);
        let device = at.device.number;
        match *call {
            Call::Free(block) | Call::Unregister(block) => {
                self.blocks.remove(&(device, block.base));
                self.put(&Record::Freed { device, base: block.base });
            }
            Call::Unmap(block, offset, len) => {
                self.mapped(device, block.base, offset, len);
                self.mappings.remove(&(device, block.base, offset));
            }
            Call::Sync(block, offset, len, true) => self.mapped(device, block.base, offset, len),
            Call::Unload(program) => self.put(&Record::Unloaded { device, program }),
            Call::Submit(steps, _) => {
                for step in steps {
                    self.step(at, step);
                    let watched = self.lanes.entry(at.lane).or_default().iter_mut().rev();
                    watched.take_while(|before| before.done == 0).for_each(|before| before.done = step.done);
                }
            }
            Call::Close => _ = self.lanes.remove(&at.lane),
            _ => {}
        }
    }

    fn after(&mut self, at: &At<'_>, call: &Call<'_>, answer: &Answer) {
        let device = at.device.number;
        match (*call, answer) {
            (Call::Allocate(want), Answer::Block(block)) => {
                self.blocks.insert((device, block.base), block.len);
                let (base, len, kind) = (block.base, block.len, want.kind);
                self.put(&Record::Allocated { device, base, len, kind, bytes: &[] });
            }
            (Call::Register(address, len, _), Answer::Block(block)) => {
                self.blocks.insert((device, block.base), block.len);
                // SAFETY: memory that its owner shows to the device in this call.
                let bytes = unsafe { process(address, len) };
                self.put(&Record::Allocated { device, base: block.base, len: block.len, kind: 0, bytes });
            }
            (Call::Load(image), Answer::Program(program)) => {
                let hash = hash(image);
                if self.images.insert(hash) {
                    self.put(&Record::Image { hash, bytes: image });
                }
                self.put(&Record::Loaded { device, program: *program, hash });
            }
            (Call::Kernel { program, name, .. }, Answer::Kernel(kernel)) => {
                self.put(&Record::Kernel { device, program, native: kernel.native, name });
            }
            (Call::Global { program, name }, Answer::Block(block)) => {
                self.blocks.insert((device, block.base), block.len);
                self.put(&Record::Global { device, program, base: block.base, len: block.len, name });
            }
            (Call::Map(block, offset, len), Answer::Address(host)) => {
                self.mappings.insert((device, block.base, offset), (*host, len));
            }
            _ => {}
        }
    }

    /// The last `count` operations of a submit were not taken. Other lanes may have been given some since.
    fn untaken(&mut self, first: u64, count: u64, lane: u32) {
        if let Some(watched) = self.lanes.get_mut(&lane) {
            watched.retain(|step| step.op < first || step.op >= first + count);
        }
        self.put(&Record::Untaken { op: first, count });
    }
}

impl<L: Lock> Layer for Capture<L> {
    fn name(&self) -> &'static str {
        "capture"
    }

    fn before(&self, at: &At<'_>, call: &Call<'_>) -> Outcome<()> {
        self.0.with(|state| {
            state.before(at, call);
            if matches!(call, Call::Submit(..)) {
                let last = state.op;
                state.submits.insert(at.lane, last);
            }
        });
        Ok(())
    }

    fn after(&self, at: &At<'_>, call: &Call<'_>, outcome: &Outcome) {
        self.0.with(|state| match (call, outcome) {
            (Call::Submit(steps, _), Ok(Answer::Taken(taken)) | Err((taken, _))) => {
                let untaken = (steps.len() - (*taken).min(steps.len())) as u64;
                let last = state.submits.remove(&at.lane);
                if let Some(last) = last.filter(|_| untaken > 0) {
                    state.untaken(last + 1 - untaken, untaken, at.lane);
                }
            }
            (_, Ok(answer)) => state.after(at, call, answer),
            _ => {}
        });
    }

    fn reach(&self, at: &At<'_>, value: u64) -> Result<u64, Fault> {
        self.0.with(|state| state.ended(at.lane, value));
        Ok(value)
    }
}
