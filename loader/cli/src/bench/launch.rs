//! `wharf bench launch`.

use super::{Report, repeat};
use crate::{
    cli::{BenchLaunchArgs, Global},
    demo::read,
    devices::usable,
    load::device,
    out::{Failure, Out},
};
use wharf::Args;

pub(crate) fn run(global: &Global, args: &BenchLaunchArgs, out: &mut Out) -> Result<(), Failure> {
    let runtime = usable(global)?;
    let device = device(&runtime, &args.repeat.device)?;
    let kernel = device.program(&read(&args.kernels)?)?.kernel(&args.kernel)?;
    let (queue, none) = (device.queue()?, Args::new());
    let op = repeat(args.repeat.reps, || {
        for _ in 0..args.count {
            queue.launch(&kernel, [1; 3], [1; 3], &none)?;
            if args.each {
                queue.sync()?;
            }
        }
        queue.sync()
    })?;
    let unit = if args.each { "launches, each waited for," } else { "launches" };
    Report { device: &device, unit, n: args.count.into(), bytes: 0, parse: None, op }.print(out)
}
