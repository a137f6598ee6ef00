//! `wharf bench alloc`.

use super::{Report, repeat};
use crate::{
    cli::{BenchAllocArgs, Global},
    devices::usable,
    load::device,
    out::{Failure, Out},
};

pub(crate) fn run(global: &Global, args: &BenchAllocArgs, out: &mut Out) -> Result<(), Failure> {
    let runtime = usable(global)?;
    let device = device(&runtime, &args.repeat.device)?;
    let mut live = Vec::with_capacity(args.count as usize);
    let op = repeat(args.repeat.reps, || {
        for _ in 0..args.count {
            live.push(device.allocate(args.size)?);
        }
        live.clear();
        Ok(())
    })?;
    let n = args.count.into();
    Report { device: &device, unit: "allocations and frees", n, bytes: 0, parse: None, op }.print(out)
}
