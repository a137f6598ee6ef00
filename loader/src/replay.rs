//! A captured run, run again on a device: each operation in the order in which it was captured, one after the other, and
//! what the host reads compared by hash with what it read then.
//!
//! Addresses in arguments of launches are those of the captured run; a word that points into memory of that run becomes
//! the same place in memory of this one. A capture is a program: its kernels run with the arguments that it holds.

use crate::{
    args::Args,
    buffer::Buffer,
    device::Device,
    error::{Error, ErrorKind, Result},
    program::{Kernel, Program},
    queue::Queue,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use wharf_layers::capture::{self, Hash, Record, Records};

/// What a replay came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Operations that ran.
    pub operations: u64,
    /// Reads of the host that were compared.
    pub reads: u64,
    /// Numbers of the operations whose reads were others than in the captured run.
    pub different: Vec<u64>,
}

/// A run under way.
struct Replay<'a> {
    device: &'a Device,
    queue: Queue,
    /// Operations that were not taken after all.
    untaken: HashSet<u64>,
    results: HashMap<u64, Hash>,
    spaces: HashMap<u16, u16>,
    images: HashMap<Hash, &'a [u8]>,
    /// What stands for captured memory, by device and first address.
    blocks: BTreeMap<(u16, u64), Buffer>,
    programs: HashMap<(u16, u64), Program>,
    kernels: HashMap<(u16, u64), Kernel>,
    done: Replayed,
}

impl Device {
    /// Runs a capture (made by the layer `capture`) again on this device, whichever it was made on.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for what is no capture, or one that uses memory it does not hold; what the device says.
    pub fn replay(&self, capture: &[u8]) -> Result<Replayed> {
        let bad = |error| Error::new(ErrorKind::Io, format!("capture: {error}"));
        let records: Vec<Record<'_>> =
            Records::new(capture).map_err(bad)?.collect::<std::result::Result<_, _>>().map_err(bad)?;
        let mut replay = Replay {
            device: self,
            queue: self.queue()?,
            untaken: HashSet::new(),
            results: HashMap::new(),
            spaces: HashMap::new(),
            images: HashMap::new(),
            blocks: BTreeMap::new(),
            programs: HashMap::new(),
            kernels: HashMap::new(),
            done: Replayed::default(),
        };
        // What became of an operation is written after it.
        for record in &records {
            match *record {
                Record::Untaken { op, count } => {
                    replay.untaken.extend(op..op.saturating_add(count.min(1 << 20)))
                }
                Record::Result { op, hash } => _ = replay.results.insert(op, hash),
                _ => {}
            }
        }
        records.iter().try_for_each(|record| replay.run(record))?;
        replay.queue.sync()?;
        Ok(replay.done)
    }
}

fn missing(what: &str) -> Error {
    Error::new(ErrorKind::Io, format!("capture: {what}")).next(
        "memory that is wrapped without a call to the device, as by `--import`, and globals are not in captures",
    )
}

impl<'a> Replay<'a> {
    fn run(&mut self, record: &Record<'a>) -> Result<()> {
        match *record {
            Record::Device { device, space, .. } => _ = self.spaces.insert(device, space),
            Record::Allocated { device, base, len, bytes, .. } => {
                let buffer = self.device.allocate(len.max(1))?;
                if !bytes.is_empty() {
                    self.queue.write(&buffer.slice(0, bytes.len() as u64)?, bytes)?;
                }
                self.blocks.insert((device, base), buffer);
            }
            Record::Freed { device, base } => _ = self.blocks.remove(&(device, base)),
            Record::Image { hash, bytes } => _ = self.images.insert(hash, bytes),
            Record::Loaded { device, program, hash } => {
                let image = *self.images.get(&hash).ok_or_else(|| missing("an image is not there"))?;
                self.programs.insert((device, program), self.device.program(image)?);
            }
            Record::Unloaded { device, program } => _ = self.programs.remove(&(device, program)),
            Record::Kernel { device, program, native, name } => {
                let program =
                    self.programs.get(&(device, program)).ok_or_else(|| missing("a program is not there"))?;
                self.kernels.insert((device, native), program.kernel(&String::from_utf8_lossy(name))?);
            }
            Record::Put { op, .. }
            | Record::Fill { op, .. }
            | Record::Copy { op, .. }
            | Record::Launch { op, .. }
            | Record::Get { op, .. }
                if !self.untaken.contains(&op) =>
            {
                self.operation(record)?;
                self.done.operations += u64::from(op != 0);
            }
            _ => {}
        }
        Ok(())
    }

    fn operation(&mut self, record: &Record<'_>) -> Result<()> {
        match *record {
            Record::Put { device, to, bytes, .. } if !bytes.is_empty() => {
                self.queue.write(&self.range(device, to, bytes.len() as u64)?, bytes)
            }
            Record::Fill { device, to, len, pattern, .. } if len > 0 => {
                self.queue.fill(&self.range(device, to, len)?, pattern).map(|_| ())
            }
            Record::Copy { devices, from, to, len, .. } if len > 0 => {
                let (from, to) = (self.range(devices[0], from, len)?, self.range(devices[1], to, len)?);
                self.queue.copy(&from, &to).map(|_| ())
            }
            Record::Launch { device, kernel, groups, size, shared, args, .. } => {
                let kernel =
                    self.kernels.get(&(device, kernel)).ok_or_else(|| missing("a kernel is not there"))?;
                let args = self.relocated(device, kernel, args)?;
                self.queue.launch_shared(kernel, groups, size, shared, &args).map(|_| ())
            }
            Record::Get { op, device, from, len } if len > 0 => {
                let Some(then) = self.results.get(&op) else { return Ok(()) };
                let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
                self.queue.read(&self.range(device, from, len)?, &mut bytes)?;
                self.done.reads += 1;
                if capture::hash(&bytes) != *then {
                    self.done.different.push(op);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The block that holds an address, and where in it.
    fn find(&self, device: u16, at: u64) -> Option<(&Buffer, u64)> {
        let ((_, base), buffer) = self.blocks.range((device, 0)..=(device, at)).next_back()?;
        (at - base < buffer.len()).then_some((buffer, at - base))
    }

    fn range(&self, device: u16, at: u64, len: u64) -> Result<Buffer> {
        let what = || missing(&format!("{len} bytes at {at:#x} are in no memory of the captured run"));
        let (buffer, offset) = self.find(device, at).ok_or_else(what)?;
        buffer.slice(offset, len)
    }

    /// The arguments with addresses of this run.
    fn relocated(&self, device: u16, kernel: &Kernel, args: &[u8]) -> Result<Args> {
        let mut bytes = args.to_vec();
        let params = kernel.params()?;
        let of_process = |device: &u16| self.spaces.get(device) == Some(&0);
        for at in (0..bytes.len().saturating_sub(7)).step_by(8) {
            // Where the image tells its parameters, an address is one of eight bytes.
            if !params.is_empty() && !params.iter().any(|p| p.offset as usize == at && p.size == 8) {
                continue;
            }
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            let address = u64::from_le_bytes(word);
            // All devices in the process' address space reach each other's memory.
            let others = self.spaces.keys().filter(|other| of_process(other) && of_process(&device));
            let mut places =
                std::iter::once(&device).chain(others).filter_map(|device| self.find(*device, address));
            match places.next() {
                Some((buffer, offset)) => {
                    bytes[at..at + 8].copy_from_slice(&(buffer.address()? + offset).to_le_bytes());
                }
                None if of_process(&device) && looks_mapped(address) => {
                    let what = format!(
                        "the argument at byte {at} of a launch, {address:#x}, looks like an address outside"
                    );
                    return Err(missing(&format!("{what} the memory of the captured run")));
                }
                None => {}
            }
        }
        let align = if bytes.len().is_multiple_of(8) { 8 } else { 1 };
        Ok(Args::new().bytes(&bytes, align))
    }
}

/// Where 64-bit systems put heaps, libraries and mappings: a launch with such an address would follow it.
fn looks_mapped(address: u64) -> bool {
    matches!(address >> 32, 0x5500..=0x56ff | 0x7e00..=0x7fff)
}
