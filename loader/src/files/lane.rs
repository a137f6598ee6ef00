//! A lane of files: steps in order on one thread.
//!
//! # Safety
//! A transfer's memory was checked by core and stays until its step has ended.
#![allow(unsafe_code)]

use super::{
    direct::Bounce,
    open::{Opened, find},
};
use std::{
    fs::File,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::*},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};
use wharf_core::{
    device::{Hint, Lane, Op, Step},
    fault::{Blame, Fault, Kind, Site, Why},
    tick::Tick,
};

/// One step, captured.
struct Task {
    work: Work,
    done: u64,
}

enum Work {
    Nothing,
    Transfer(Transfer),
}

/// Bytes between a file and memory.
struct Transfer {
    file: Arc<Opened>,
    at: u64,
    address: u64,
    len: u64,
    write: bool,
}

/// The submitting end; its thread ends with it.
pub(crate) struct FileLane {
    to: Sender<Task>,
    unfinished: Arc<AtomicUsize>,
    depth: usize,
}

impl FileLane {
    pub(super) fn start(tick: Tick, depth: usize) -> Result<FileLane, Fault> {
        let (to, from) = channel();
        let unfinished = Arc::new(AtomicUsize::new(0));
        let count = unfinished.clone();
        let thread = thread::Builder::new().name("wharf-files".into());
        let spawned = thread.spawn(move || work(&from, tick, &count));
        spawned.map_err(|error| {
            let full = Fault::new(Kind::ResourceExhausted, Blame::Wharf, Site::Queue, Why::Native, [0; 2]);
            full.with_native(error.raw_os_error().unwrap_or(0))
        })?;
        Ok(FileLane { to, unfinished, depth })
    }
}

impl Lane for FileLane {
    fn submit(&mut self, steps: &[Step<'_>], _: Hint) -> Result<usize, (usize, Fault)> {
        for (taken, step) in steps.iter().enumerate() {
            if self.unfinished.load(Acquire) >= self.depth {
                return Ok(taken);
            }
            let work = captured(&step.op).map_err(|fault| (taken, fault))?;
            self.unfinished.fetch_add(1, AcqRel);
            if self.to.send(Task { work, done: step.done }).is_err() {
                let gone = Fault::backend(Kind::FailedPrecondition, Site::Submit, Why::State, [0; 2]);
                return Err((taken, gone));
            }
        }
        Ok(steps.len())
    }
}

fn captured(op: &Op<'_>) -> Result<Work, Fault> {
    let (file, at, address, len, write) = match *op {
        Op::Barrier => return Ok(Work::Nothing),
        Op::Read { file, at, to, len } => (file, at, to, len, false),
        Op::Write { file, at, from, len } => (file, at, from, len, true),
        _ => {
            return Err(Fault::backend(Kind::Unsupported, Site::Submit, Why::Missing, [op.kind().into(), 0]));
        }
    };
    let file = find(file).ok_or(Fault::stale(if write { Site::Write } else { Site::Read }, file))?;
    Ok(Work::Transfer(Transfer { file, at, address, len, write }))
}

/// The lane's thread: until the sending end is gone, or a step fails, which ends the lane.
fn work(from: &Receiver<Task>, tick: Tick, unfinished: &AtomicUsize) {
    let mut bounce = Bounce::default();
    while let Ok(task) = from.recv() {
        let ended = match &task.work {
            Work::Nothing => Ok(()),
            Work::Transfer(transfer) => transfer.run(&mut bounce),
        };
        unfinished.fetch_sub(1, AcqRel);
        if let Err(fault) = ended {
            return tick.fail(&fault);
        }
        if task.done != 0 {
            tick.advance(task.done);
        }
    }
}

impl Transfer {
    /// All of it, however many calls the system needs.
    fn run(&self, bounce: &mut Bounce) -> Result<(), Fault> {
        let site = if self.write { Site::Write } else { Site::Read };
        let mut moved = 0u64;
        while moved < self.len {
            match self.once(moved, bounce) {
                Ok(0) => {
                    // The file ends here: it is shorter than when its table was read.
                    let ends = [self.at + self.len, self.at + moved];
                    return Err(Fault::new(Kind::OutOfRange, Blame::Driver, site, Why::PastEnd, ends));
                }
                Ok(n) => moved += n as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // A file system may take the flag when the file is opened and still refuse to read so.
                    let refused = self.is_direct() && error.kind() == io::ErrorKind::InvalidInput;
                    let kind = if refused { Kind::Unsupported } else { Kind::Io };
                    let fault = Fault::new(kind, Blame::Driver, site, Why::Native, [self.at + moved, 0]);
                    return Err(fault.with_native(error.raw_os_error().unwrap_or(0)));
                }
            }
        }
        Ok(())
    }

    fn is_direct(&self) -> bool {
        !self.write && self.file.direct.is_some()
    }

    fn once(&self, moved: u64, bounce: &mut Bounce) -> io::Result<usize> {
        if let Some(direct) = self.file.direct.as_ref().filter(|_| !self.write) {
            return direct.read(bounce, self.at + moved, self.address + moved, self.len - moved);
        }
        let len = usize::try_from(self.len - moved).unwrap_or(usize::MAX).min(1 << 30);
        let memory = (self.address + moved) as *mut u8;
        if self.write {
            // SAFETY: core checked the range, which is read until this step has ended.
            let bytes = unsafe { std::slice::from_raw_parts(memory, len) };
            write_at(&self.file.file, bytes, self.at + moved)
        } else {
            // SAFETY: core checked the range, which nobody else uses until this step has ended.
            let bytes = unsafe { std::slice::from_raw_parts_mut(memory, len) };
            read_at(&self.file.file, bytes, self.at + moved)
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, at)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, at)
}

#[cfg(windows)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, at)
}
