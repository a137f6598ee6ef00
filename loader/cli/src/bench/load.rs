//! `wharf bench load`.

use super::{Report, repeat};
use crate::{
    cli::{BenchLoadArgs, Global, LoadOp},
    devices::usable,
    load::device,
    out::{Failure, Out},
    select::{Include, name_of, open},
};
use std::time::Instant;
use wharf::{LoadOptions, Span, Tensor};

pub(crate) fn run(global: &Global, args: &BenchLoadArgs, out: &mut Out) -> Result<(), Failure> {
    let begin = Instant::now();
    let parameters = open(&args.files)?;
    let parse = begin.elapsed().as_secs_f64();
    parameters.whole_sets()?;
    let include = Include::new(&args.files.include)?;
    let tensors: Vec<Tensor<'_>> = parameters.tensors().filter(|tensor| include.takes(tensor.name)).collect();
    let names: Vec<String> = tensors.iter().map(name_of).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bytes = tensors.iter().fold(0u64, |sum, tensor| sum.saturating_add(tensor.bytes));
    let runtime = usable(global)?;
    let device = device(&runtime, &args.repeat.device)?;
    let options = LoadOptions {
        timelines: args.timelines.into(),
        io: args.io.into(),
        import: args.import,
        staging: args.staging,
    };
    let op = match args.op {
        // What a repetition loaded is freed before the next one begins, within its time: nobody keeps two models.
        LoadOp::Load => repeat(args.repeat.reps, || {
            device.load(&parameters, &names, options).and_then(wharf::Load::wait).map(drop)
        })?,
        LoadOp::Gather => {
            let align = u64::from(device.caps().align).max(1);
            let mut end = 0_u64;
            let spans: Vec<Span<'_>> = names
                .iter()
                .zip(&tensors)
                .map(|(name, tensor)| {
                    let at = end.next_multiple_of(align);
                    end = at.saturating_add(tensor.bytes);
                    Span::whole(name, at)
                })
                .collect();
            let to = device.allocate(end)?;
            repeat(args.repeat.reps, || {
                device.gather(&parameters, &spans, &to, options).and_then(wharf::Load::wait).map(drop)
            })?
        }
    };
    let n = tensors.len() as u64;
    Report { device: &device, unit: "tensors", n, bytes, parse: Some(parse), op }.print(out)
}
