//! Load, gather and scatter: batches of parameters over several timelines of a device.
//!
//! # Safety
//! A job's pointer is an `Arc` of it, given away by `enlist` and taken back by `drop_job`.
#![allow(unsafe_code)]

use crate::{
    buffer::Buffer,
    device::Device,
    engine::{Core, Engine},
    error::{Error, ErrorKind, Result},
    os::{Os, deadline},
    parameters::Parameters,
    queue::Queue,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use wharf_abi::DynDevice;
use wharf_core::{
    batch::{
        self, Batch, BatchOptions, Direction, Item, LANES_MAX, Piece, Pieces, Side, Target, check, resolve,
    },
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    runtime::{Runtime, Work, Worked},
    timeline::{Look, Point, Timeline},
};

/// Chunks of one batch that are under way at once.
const FLIGHT: usize = 32;

/// Parts of mapped files from this length on are asked for before they are moved: below, the call costs more than it
/// gains.
const READ_AHEAD: u64 = 256 << 10;

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
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions { timelines: LANES_MAX }
    }
}

/// The entries of a batch, resolved, and all that they need to stay.
struct Resolved {
    pieces: Vec<Piece>,
    disjoint: bool,
    // Keep mapped files, target memory and the queues until the batch is over.
    parameters: Parameters,
    buffers: Mutex<Vec<Buffer>>,
    _queues: Vec<Queue>,
}

impl Pieces for Resolved {
    fn count(&self) -> u32 {
        self.pieces.len() as u32
    }
    fn piece(&self, index: u32) -> std::result::Result<Piece, Fault> {
        let past = Fault::caller(Kind::OutOfRange, Site::Batch, Why::Entry, [index.into(), 0]);
        self.pieces.get(index as usize).copied().ok_or(past)
    }
    fn soon(&self, part: &Piece) {
        if let Side::Memory(address) = part.stored
            && part.len >= READ_AHEAD
        {
            self.parameters.will_need(address, part.len);
        }
    }
    fn disjoint(&self) -> bool {
        self.disjoint
    }
}

type Job = Batch<DynDevice, Os, Resolved, FLIGHT>;

/// A batch under way. Dropping it does not stop it; [`Load::cancel`] does.
pub struct Load {
    engine: Arc<Engine>,
    job: Arc<Job>,
    done: Handle<Timeline>,
    timelines: usize,
}

impl Device {
    /// Loads whole parameters into new buffers, in the order of `names`. Everything is checked before anything moves;
    /// on failure nothing is left allocated.
    ///
    /// # Errors
    /// A name that is not there; memory that is short; a device that cannot be loaded from here.
    pub fn load(&self, parameters: &Parameters, names: &[&str], options: LoadOptions) -> Result<Load> {
        let stored =
            names.iter().map(|name| Ok((*name, parameters.stored(name)?))).collect::<Result<Vec<_>>>()?;
        let (mut pieces, mut buffers) = (vec![], vec![]);
        for (name, stored) in stored {
            let len = len_of(&stored);
            let buffer =
                self.allocate(len).map_err(|error| error.about(&format!("tensor `{name}`, {len} bytes")))?;
            let item = Item { key: name.as_bytes(), parameter_offset: 0, buffer_offset: 0, len };
            pieces.push(resolve(&item, &stored, &target(&buffer), Direction::In)?);
            buffers.push(buffer);
        }
        self.start(parameters, pieces, true, buffers, Direction::In, options)
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
        let mut pieces = vec![];
        for span in spans {
            let stored = parameters.stored(span.name)?;
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
        self.start(parameters, pieces, false, vec![buffer.share()?], direction, options)
    }

    fn start(
        &self,
        parameters: &Parameters,
        pieces: Vec<Piece>,
        disjoint: bool,
        buffers: Vec<Buffer>,
        direction: Direction,
        options: LoadOptions,
    ) -> Result<Load> {
        if u32::try_from(pieces.len()).is_err() {
            let message = format!("{} entries are more than one batch takes", pieces.len());
            return Err(Error::new(ErrorKind::OutOfMemory, message));
        }
        let caps = self.caps();
        if !caps.host_copies {
            let message =
                format!("device {} does not read process memory: it cannot be loaded from here", self.id());
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let timelines = options.timelines.clamp(1, LANES_MAX).min(usize::from(caps.lanes.max(1)));
        let queues = self.lanes(timelines)?;
        let timelines = queues.len();
        let handles: Vec<_> = queues.iter().map(Queue::handle).collect();
        let resolved = Resolved {
            pieces,
            disjoint,
            parameters: parameters.clone(),
            buffers: Mutex::new(buffers),
            _queues: queues,
        };
        let totals = check(&resolved, direction)?;
        let core = self.core();
        let done = core.timeline(0)?;
        let signals = [Point { timeline: done, value: 1 }];
        let options = BatchOptions { direction, queues: &handles, waits: &[], signals: &signals };
        let job = match Batch::new(resolved, &totals, &options) {
            Ok(job) => Arc::new(job),
            Err(fault) => {
                core.release_timeline(done);
                return Err(fault.into());
            }
        };
        let load = Load { engine: self.engine.clone(), job, done, timelines };
        load.enlist()?;
        Ok(load)
    }

    /// As many queues as wanted, or as the device has left, but one.
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
        batch::Stored::Memory { len, .. } | batch::Stored::Splat { len, .. } => len,
    }
}

fn target(buffer: &Buffer) -> Target {
    Target { root: buffer.0.root(), offset: buffer.0.offset(), len: buffer.len() }
}

unsafe fn step_job(job: *const (), core: &Runtime<DynDevice, Os>) -> Worked {
    // SAFETY: the pointer is that of the `Arc` that `enlist` gave away, alive until `drop_job`.
    unsafe { &*job.cast::<Job>() }.step(core)
}

unsafe fn drop_job(job: *const ()) {
    // SAFETY: the one `Arc` that `enlist` gave away.
    drop(unsafe { Arc::from_raw(job.cast::<Job>()) });
}

impl Load {
    fn core(&self) -> &'static Core {
        self.engine.core()
    }

    /// Gives the job to the pump.
    fn enlist(&self) -> Result<()> {
        let job = Arc::into_raw(self.job.clone()).cast::<()>();
        // SAFETY: both functions take the pointer of an `Arc<Job>`; a batch may be stepped from any thread.
        let work = unsafe { Work::new(job, step_job, drop_job) };
        self.core().enlist(work)?;
        self.engine.kick();
        self.core().poll();
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
        self.core().ring();
        self.core().poll();
    }

    /// Whether it is over, well or not.
    pub fn is_over(&self) -> bool {
        self.core().poll();
        !matches!(self.core().look(self.point()), Ok(Look::Ahead))
    }

    fn point(&self) -> Point {
        Point { timeline: self.done, value: 1 }
    }

    /// Returns the buffers, in the order of the names (for gather and scatter: the one given), once all is there.
    ///
    /// # Errors
    /// The first failure; what was allocated is then freed.
    pub fn wait(self) -> Result<Vec<Buffer>> {
        self.core().wait(self.point(), None)?;
        Ok(self.take())
    }

    /// Waits for so long at most; `None`: not over yet.
    ///
    /// # Errors
    /// The first failure; what was allocated is then freed.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<Vec<Buffer>>> {
        match self.core().wait(self.point(), deadline(timeout)) {
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
        self.core().release_timeline(self.done);
    }
}
