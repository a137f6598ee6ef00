//! Load, gather and scatter: batches of parameters over several timelines of a device.
//!
//! # Safety
//! A job's pointer is an `Arc` of it, given away by `enlist` and taken back by `drop_job`; an imported buffer's is a box
//! around its file, taken back by `let_go`.
#![allow(unsafe_code)]

mod blocks;

use crate::{
    buffer::Buffer,
    device::Device,
    engine::{Core, Engine, EngineHome},
    error::{Error, ErrorKind, Result},
    layers::Own,
    os::{Os, deadline},
    parameters::{ArchiveFile, Parameters},
    queue::Queue,
    stage::Stage,
};
use blocks::Blocks;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use wharf_core::{
    batch::{
        self, Batch, BatchOptions, Direction, Item, LANES_MAX, Piece, Pieces, Side, Target, check, resolve,
    },
    bits::{Access, Usage},
    buffer,
    device::Want,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    runtime::{Runtime, Work, Worked},
    timeline::{Look, Point, Timeline},
};

/// Chunks of one batch that are under way at once.
const FLIGHT: usize = 32;

/// Bytes of a mapped file that are made ready at once, at least: one call for many small tensors in a row.
const READY_MIN: u64 = 1 << 20;

/// Least bytes of a read past the cache, where there is that much to read.
const DIRECT_CHUNK: u64 = 2 << 20;

/// A part of a parameter and where it goes in a buffer (or comes from, for scatter).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    /// Name of the parameter.
    pub name: &'a str,
    /// First byte, from the parameter's start.
    pub parameter_offset: u64,
    /// First byte, from the buffer's start.
    pub buffer_offset: u64,
    /// Bytes; `None`: the rest of the parameter.
    pub len: Option<u64>,
}

impl<'a> Span<'a> {
    /// A whole parameter at an offset of the buffer.
    pub fn whole(name: &'a str, buffer_offset: u64) -> Self {
        Span { name, parameter_offset: 0, buffer_offset, len: None }
    }
}

/// How a batch is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Timelines, 1 to 8; fewer if the device has fewer lanes.
    pub timelines: usize,
    /// How files are read.
    pub io: Io,
    /// Use the bytes of a mapped file where they are, if the device reaches them and they are aligned for it; such
    /// buffers can only be read. What cannot be used so is copied.
    pub import: bool,
    /// Bytes of host memory that may lie between a file, or another device, and the device at most.
    pub staging: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions { timelines: LANES_MAX, io: Io::Auto, import: false, staging: STAGING_DEFAULT }
    }
}

/// Host memory for staging unless something else is said.
pub const STAGING_DEFAULT: u64 = 32 << 20;

/// How the bytes of files are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Io {
    /// Read into memory of the process; mapped for other devices, unless the file system is reached over a network.
    #[default]
    Auto,
    /// Mapped into memory. A file that another process cuts meanwhile is an error, unless it does so just while a piece
    /// of it is copied: that ends this process.
    Map,
    /// Read in large pieces. A file that was cut meanwhile is an error.
    Read,
    /// Read past the system's cache (`O_DIRECT`), for files that are larger than it or not in it: each timeline reads on
    /// its own. Unsupported where the file system has no such reads; writes go through the cache.
    Direct,
}

/// The entries of a batch, resolved, and all that they need to stay.
struct Resolved {
    pieces: Vec<Piece>,
    disjoint: bool,
    // Keep mapped files, memory on both sides and between, and the queues until the batch is over.
    parameters: Parameters,
    buffers: Mutex<Vec<Buffer>>,
    _far: Option<Buffer>,
    _queues: Vec<Queue>,
    _stage: Stage,
    /// Whether files are written.
    writes: bool,
    /// Addresses of a mapping that were made ready last, first to end. Only the batch's own steps use them.
    ready: (AtomicU64, AtomicU64),
}

impl Pieces for Resolved {
    fn count(&self) -> u32 {
        self.pieces.len() as u32
    }
    fn piece(&self, index: u32) -> std::result::Result<Piece, Fault> {
        let past = Fault::caller(Kind::OutOfRange, Site::Batch, Why::Entry, [index.into(), 0]);
        self.pieces.get(index as usize).copied().ok_or(past)
    }
    fn ready(&self, part: &Piece) -> std::result::Result<(), Fault> {
        let Side::Memory(address) = part.stored else { return Ok(()) };
        let end = address.saturating_add(part.len);
        if self.ready.0.load(Relaxed) <= address && end <= self.ready.1.load(Relaxed) {
            return Ok(());
        }
        // Small parts in a row are made ready together.
        let until = self.parameters.populate(address, part.len, READY_MIN, self.writes)?;
        self.ready.0.store(address, Relaxed);
        self.ready.1.store(until, Relaxed);
        Ok(())
    }
    fn disjoint(&self) -> bool {
        self.disjoint
    }
}

/// What a batch is to move.
struct Moves {
    parameters: Parameters,
    pieces: Vec<Piece>,
    disjoint: bool,
    buffers: Vec<Buffer>,
    /// The buffer on the other device.
    far: Option<Buffer>,
}

type Job = Batch<Own, Os, Resolved, FLIGHT>;

/// A batch under way. Dropping it does not stop it; [`Load::cancel`] does.
pub struct Load {
    engine: Arc<Engine>,
    job: Arc<Job>,
    done: Handle<Timeline>,
    timelines: usize,
}

impl Device {
    /// What `auto` is on this device. Where files can be read straight into its memory, that takes no more time than a map
    /// and no harm from a file that is cut meanwhile.
    fn io(&self, io: Io) -> Io {
        let caps = self.caps();
        let in_process = caps.space == 0 && caps.mappable && caps.coherent;
        if io == Io::Auto && in_process { Io::Read } else { io }
    }

    /// Loads whole parameters into new buffers, in the order of `names`. Everything is checked before anything moves;
    /// on failure nothing is left allocated. Small tensors share blocks of memory, each of which is freed with the last
    /// buffer in it.
    ///
    /// # Errors
    /// A name that is not there; memory that is short; a device that cannot be loaded from here.
    pub fn load(&self, parameters: &Parameters, names: &[&str], options: LoadOptions) -> Result<Load> {
        let io = if options.import { options.io } else { self.io(options.io) };
        let stored =
            names.iter().map(|name| Ok((*name, parameters.stored(name, io)?))).collect::<Result<Vec<_>>>()?;
        let imported: Vec<Option<Buffer>> = stored
            .iter()
            .map(|(_, stored)| options.import.then(|| self.import(parameters, stored)).flatten())
            .collect();
        let wanted = stored.iter().zip(&imported).filter(|(_, imported)| imported.is_none());
        let mut blocks = Blocks::new(self, wanted.map(|((_, stored), _)| len_of(stored)));
        let (mut pieces, mut buffers) = (vec![], vec![]);
        for ((name, stored), imported) in stored.into_iter().zip(imported) {
            if let Some(buffer) = imported {
                buffers.push(buffer);
                continue;
            }
            let len = len_of(&stored);
            let buffer =
                blocks.buffer(len).map_err(|error| error.about(&format!("tensor `{name}`, {len} bytes")))?;
            let item = Item { key: name.as_bytes(), parameter_offset: 0, buffer_offset: 0, len };
            pieces.push(resolve(&item, &stored, &target(&buffer), Direction::In)?);
            buffers.push(buffer);
        }
        let moves = Moves { parameters: parameters.clone(), pieces, disjoint: true, buffers, far: None };
        self.start(moves, Direction::In, options)
    }

    /// A stored tensor as a buffer without a copy; `None` if this device or this tensor does not allow it.
    fn import(&self, parameters: &Parameters, stored: &batch::Stored) -> Option<Buffer> {
        let caps = self.caps();
        let batch::Stored::Memory { address, len, .. } = *stored else { return None };
        let fits = caps.space == 0 && caps.host_copies && address.is_multiple_of(caps.align.into());
        let file = parameters.file_at(address).filter(|_| fits && len > 0)?;
        let (access, usage) = (Access::READ, Usage::TRANSFER | Usage::DISPATCH | Usage::MAPPING);
        let want =
            Want { len, align: caps.align.into(), kind: 0, access: access.bits(), usage: usage.bits() };
        let core = self.core().ok()?;
        let keep = Box::into_raw(Box::new(file.clone()));
        // SAFETY: the mapping stays while the box that `let_go` frees does; it is only read, as `want` says.
        let wrapped =
            unsafe { core.wrap(self.index, address as *mut u8, &want, Some((let_go, keep.cast()))) };
        match wrapped {
            Ok(root) => Some(Buffer(buffer::Buffer::adopt(EngineHome(self.engine.clone()), root, len))),
            Err(_) => {
                // Overlaps what is imported already, or no room: it is copied instead.
                let_go(keep.cast());
                None
            }
        }
    }

    /// Gathers parts of parameters into one buffer.
    ///
    /// # Errors
    /// A name that is not there; a part past its parameter or the buffer; targets that overlap.
    pub fn gather(
        &self,
        parameters: &Parameters,
        spans: &[Span<'_>],
        to: &Buffer,
        options: LoadOptions,
    ) -> Result<Load> {
        self.spread(parameters, spans, to, Direction::In, options)
    }

    /// Scatters a buffer into parts of parameters, whose archives were opened to be written.
    ///
    /// # Errors
    /// As [`Device::gather`]; an archive that was opened to be read, or a splat.
    pub fn scatter(
        &self,
        parameters: &Parameters,
        spans: &[Span<'_>],
        from: &Buffer,
        options: LoadOptions,
    ) -> Result<Load> {
        self.spread(parameters, spans, from, Direction::Out, options)
    }

    fn spread(
        &self,
        parameters: &Parameters,
        spans: &[Span<'_>],
        buffer: &Buffer,
        direction: Direction,
        options: LoadOptions,
    ) -> Result<Load> {
        let io = if direction == Direction::In { self.io(options.io) } else { options.io };
        let mut pieces = vec![];
        for span in spans {
            let stored = parameters.stored(span.name, io)?;
            let rest = len_of(&stored).saturating_sub(span.parameter_offset);
            let item = Item {
                key: span.name.as_bytes(),
                parameter_offset: span.parameter_offset,
                buffer_offset: span.buffer_offset,
                len: span.len.unwrap_or(rest),
            };
            let piece = resolve(&item, &stored, &target(buffer), direction);
            pieces.push(piece.map_err(|fault| Error::from(fault).about(&format!("tensor `{}`", span.name)))?);
        }
        let buffers = vec![buffer.share()?];
        let moves = Moves { parameters: parameters.clone(), pieces, disjoint: false, buffers, far: None };
        self.start(moves, direction, options)
    }

    /// Copies a buffer of another device (or of this one) into a buffer of this one, through host memory in pieces.
    ///
    /// # Errors
    /// Lengths that differ; buffers of another runtime; what the drivers say.
    pub fn copy_from(&self, from: &Buffer, to: &Buffer, options: LoadOptions) -> Result<Load> {
        if from.len() != to.len() {
            let message = format!("{} bytes do not fit a buffer of {}", from.len(), to.len());
            return Err(Error::new(ErrorKind::Usage, message));
        }
        let stored = Side::Remote { root: from.0.root(), offset: from.0.offset() };
        let piece = Piece { stored, root: to.0.root(), offset: to.0.offset(), len: to.len() };
        let (buffers, far) = (vec![to.share()?], Some(from.share()?));
        let moves =
            Moves { parameters: Parameters::default(), pieces: vec![piece], disjoint: true, buffers, far };
        self.start(moves, Direction::In, options)
    }

    fn start(&self, moves: Moves, direction: Direction, options: LoadOptions) -> Result<Load> {
        if u32::try_from(moves.pieces.len()).is_err() {
            let message = format!("{} entries are more than one batch takes", moves.pieces.len());
            return Err(Error::new(ErrorKind::OutOfMemory, message));
        }
        let caps = self.caps();
        if !caps.host_copies {
            let message =
                format!("device {} does not reach process memory: nothing can be moved there", self.id());
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let timelines = options.timelines.clamp(1, LANES_MAX).min(usize::from(caps.lanes.max(1)));
        let mut feeders = self.feeders(&moves, timelines)?;
        let timelines = if feeders.is_empty() { timelines } else { feeders.len() };
        let mut queues = self.lanes(timelines)?;
        let timelines = queues.len();
        feeders.truncate(timelines);
        let handles: Vec<_> = queues.iter().map(Queue::handle).collect();
        let feeding: Vec<_> = feeders.iter().map(Queue::handle).collect();
        queues.extend(feeders);
        let in_process = caps.space == 0 && caps.mappable && caps.coherent;
        let staged = !feeding.is_empty() && (moves.far.is_some() || !in_process);
        let stage = if staged { Stage::new(options.staging, timelines)? } else { Stage::none() };
        let staging = stage.staging();
        let Moves { parameters, pieces, disjoint, buffers, far } = moves;
        let buffers = Mutex::new(buffers);
        let resolved = Resolved {
            pieces,
            disjoint,
            parameters,
            buffers,
            _far: far,
            _queues: queues,
            _stage: stage,
            writes: direction == Direction::Out,
            ready: Default::default(),
        };
        let totals = check(&resolved, direction)?;
        let core = self.core()?;
        let done = core.timeline(0)?;
        let signals = [Point { timeline: done, value: 1 }];
        let direct = options.io == Io::Direct;
        let options = BatchOptions {
            direction,
            queues: &handles,
            feeders: &feeding,
            staging,
            waits: &[],
            signals: &signals,
        };
        let job = match Batch::new(resolved, &totals, &options) {
            Ok(job) => {
                if direct {
                    job.at_least(DIRECT_CHUNK);
                }
                Arc::new(job)
            }
            Err(fault) => {
                core.release_timeline(done);
                return Err(fault.into());
            }
        };
        let load = Load { engine: self.engine.clone(), job, done, timelines };
        load.enlist()?;
        Ok(load)
    }

    /// Queues on the far side: of files, or of the device that holds the other buffer; none if all is in memory.
    fn feeders(&self, moves: &Moves, count: usize) -> Result<Vec<Queue>> {
        let far = match &moves.far {
            Some(far) => Some(self.core()?.allocation(far.0.root())?.device),
            None if moves.pieces.iter().any(|p| matches!(p.stored, Side::File { .. })) => {
                let missing = || Error::new(ErrorKind::Internal, "the backend of files did not start");
                Some(self.engine.files.ok_or_else(missing)?)
            }
            None => None,
        };
        // A device copies within itself without help.
        let Some(index) = far.filter(|index| *index != self.index) else { return Ok(vec![]) };
        let device = Device { engine: self.engine.clone(), index };
        device.lanes(count)
    }

    /// As many queues as wanted, or as the device has left, one at least.
    fn lanes(&self, wanted: usize) -> Result<Vec<Queue>> {
        let mut queues = vec![self.queue()?];
        while queues.len() < wanted {
            match self.queue() {
                Ok(queue) => queues.push(queue),
                Err(error) if error.kind() == ErrorKind::OutOfMemory => break,
                Err(error) => return Err(error),
            }
        }
        Ok(queues)
    }
}

fn len_of(stored: &batch::Stored) -> u64 {
    match *stored {
        batch::Stored::Memory { len, .. }
        | batch::Stored::Splat { len, .. }
        | batch::Stored::File { len, .. } => len,
    }
}

fn target(buffer: &Buffer) -> Target {
    Target { root: buffer.0.root(), offset: buffer.0.offset(), len: buffer.len() }
}

/// Lets go of the file that an imported buffer lies in.
extern "C" fn let_go(file: *mut ()) {
    // SAFETY: the pointer of the box that `import` made, given up once: by core's release, or when core refused it.
    drop(unsafe { Box::from_raw(file.cast::<Arc<ArchiveFile>>()) });
}

unsafe fn step_job(job: *const (), core: &Runtime<Own, Os>) -> Worked {
    // SAFETY: the pointer is that of the `Arc` that `enlist` gave away, alive until `drop_job`.
    unsafe { &*job.cast::<Job>() }.step(core)
}

unsafe fn drop_job(job: *const ()) {
    // SAFETY: the one `Arc` that `enlist` gave away.
    drop(unsafe { Arc::from_raw(job.cast::<Job>()) });
}

impl Load {
    fn core(&self) -> std::result::Result<&'static Core, Fault> {
        self.engine.core()
    }

    /// Gives the job to the pump.
    fn enlist(&self) -> Result<()> {
        let job = Arc::into_raw(self.job.clone()).cast::<()>();
        // SAFETY: both functions take the pointer of an `Arc<Job>`; a batch may be stepped from any thread.
        let work = unsafe { Work::new(job, step_job, drop_job) };
        self.core()?.enlist(work)?;
        self.engine.kick();
        self.core()?.poll();
        Ok(())
    }

    /// Bytes moved, and bytes in all.
    pub fn progress(&self) -> (u64, u64) {
        self.job.control().progress()
    }

    /// Timelines that it runs over.
    pub fn timelines(&self) -> usize {
        self.timelines
    }

    /// Stops it: nothing more is issued, what is under way ends, then it fails as interrupted.
    pub fn cancel(&self) {
        self.job.control().cancel();
        if let Ok(core) = self.core() {
            core.ring();
            core.poll();
        }
    }

    /// Whether it is over, well or not.
    pub fn is_over(&self) -> bool {
        let Ok(core) = self.core() else { return true };
        core.poll();
        !matches!(core.look(self.point()), Ok(Look::Ahead))
    }

    fn point(&self) -> Point {
        Point { timeline: self.done, value: 1 }
    }

    /// Returns the buffers, in the order of the names (for gather and scatter: the one given), once all is there.
    ///
    /// # Errors
    /// The first failure; what was allocated is then freed.
    pub fn wait(self) -> Result<Vec<Buffer>> {
        self.core()?.wait(self.point(), None)?;
        Ok(self.take())
    }

    /// Waits for so long at most; `None`: not over yet.
    ///
    /// # Errors
    /// The first failure; what was allocated is then freed.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<Vec<Buffer>>> {
        match self.core()?.wait(self.point(), deadline(timeout)) {
            Ok(()) => Ok(Some(self.take())),
            Err(fault) if fault.kind == Kind::DeadlineExceeded => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }

    fn take(&self) -> Vec<Buffer> {
        let mut buffers = self.job.pieces().buffers.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *buffers)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Ok(core) = self.core() {
            core.release_timeline(self.done);
        }
    }
}
