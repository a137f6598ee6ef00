//! `wharf bench copy`.

use super::{Report, repeat};
use crate::{
    cli::{BenchCopyArgs, CopyKind, Global},
    devices::usable,
    load::device,
    out::{Failure, Out},
};
use wharf::{Error, ErrorKind};

pub(crate) fn run(global: &Global, args: &BenchCopyArgs, out: &mut Out) -> Result<(), Failure> {
    let runtime = usable(global)?;
    let device = device(&runtime, &args.repeat.device)?;
    let queue = device.queue()?;
    let (from, to) = (device.allocate(args.size)?, device.allocate(args.size)?);
    let len = usize::try_from(args.size).unwrap_or(usize::MAX);
    let mut host = Vec::new();
    if matches!(args.kind, CopyKind::Write | CopyKind::Read) {
        host.try_reserve_exact(len).map_err(|_| {
            Error::new(ErrorKind::OutOfMemory, format!("{len} bytes of host memory could not be had"))
        })?;
        host.resize(len, 1);
    }
    if args.kind != CopyKind::Fill && args.size > 0 {
        // What is read was written before.
        queue.fill(&from, &[7])?;
        queue.sync()?;
    }
    let op = repeat(args.repeat.reps, || match args.kind {
        CopyKind::Copy => queue.copy(&from, &to).and_then(|_| queue.sync()),
        CopyKind::Fill => queue.fill(&to, &[1, 2, 3, 4]).and_then(|_| queue.sync()),
        CopyKind::Write => queue.write(&to, &host),
        CopyKind::Read => queue.read(&from, &mut host),
    })?;
    let unit = match args.kind {
        CopyKind::Copy => "copy",
        CopyKind::Fill => "fill",
        CopyKind::Write => "write",
        CopyKind::Read => "read",
    };
    Report { device: &device, unit, n: 1, bytes: args.size, parse: None, op }.print(out)
}
