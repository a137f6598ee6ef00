//! `wharf load`.

use crate::{
    cli::{Global, LoadArgs},
    devices::{device_json, usable},
    out::{Failure, Out, human, note},
    progress::{bar, catch_interrupts, interrupted},
    select::{Include, full_name, name_of, open},
};
use serde_json::json;
use std::time::{Duration, Instant};
use wharf::{Buffer, Device, Error, ErrorKind, Load, LoadOptions, Runtime, Tensor};

/// How often a running load is looked at.
const TICK: Duration = Duration::from_millis(20);
/// How long an interrupted load may take to end before the command leaves it behind.
const PATIENCE: Duration = Duration::from_millis(150);

/// The device that was named, or for `auto` the first, which is then said.
pub(crate) fn device(runtime: &Runtime, name: &str) -> Result<Device, Failure> {
    if name != "auto" {
        return Ok(runtime.device(name)?);
    }
    match runtime.devices().into_iter().next() {
        Some(device) => {
            note(&format!("using {}", device.id()));
            Ok(device)
        }
        None => Ok(runtime.device("auto")?),
    }
}

pub(crate) fn run(global: &Global, args: &LoadArgs, out: &mut Out) -> Result<(), Failure> {
    catch_interrupts();
    let parameters = open(&args.files)?;
    parameters.whole_sets()?;
    let include = Include::new(&args.files.include)?;
    let tensors: Vec<Tensor<'_>> = parameters.tensors().filter(|tensor| include.takes(tensor.name)).collect();
    let names: Vec<String> = tensors.iter().map(name_of).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bytes = tensors.iter().fold(0u64, |sum, tensor| sum.saturating_add(tensor.bytes));
    let runtime = usable(global)?;
    let device = device(&runtime, &args.device)?;
    if args.dry_run {
        return plan(&device, &tensors, bytes, args, out);
    }
    let options = LoadOptions {
        timelines: args.timelines.into(),
        io: args.io.into(),
        import: args.import,
        staging: args.staging,
    };
    let begin = Instant::now();
    let load = device.load(&parameters, &names, options)?;
    let timelines = load.timelines();
    let buffers = watch(load, bytes)?;
    let seconds = begin.elapsed().as_secs_f64();
    let rate = bytes as f64 / seconds.max(1e-9);
    if out.json() {
        return out.value(json!({
            "device": device_json(&device), "tensors": buffers.len(), "bytes": bytes, "timelines": timelines,
            "seconds": seconds, "bytes_per_second": rate,
        }));
    }
    out.line(&format!(
        "{} tensors, {} on {} over {timelines} timelines in {:.3} s ({}/s)",
        buffers.len(),
        out.size(bytes),
        device.id(),
        seconds,
        human(rate as u64)
    ))
}

fn plan(
    device: &Device,
    tensors: &[Tensor<'_>],
    bytes: u64,
    args: &LoadArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let timelines = u16::from(args.timelines).min(device.caps().lanes);
    let fits = device.memory_free().is_none_or(|free| bytes <= free);
    if out.json() {
        return out.value(json!({
            "dry_run": true, "device": device_json(device), "tensors": tensors.len(), "bytes": bytes,
            "timelines": timelines, "fits": fits,
        }));
    }
    tensors
        .iter()
        .try_for_each(|tensor| out.line(&format!("{}  {}", full_name(tensor), out.size(tensor.bytes))))?;
    let fit = if fits { "" } else { "; more than is free there" };
    let sum = out.size(bytes);
    out.line(&format!(
        "would load {} tensors, {sum} on {} over {timelines} timelines{fit}",
        tensors.len(),
        device.id()
    ))
}

/// Waits with a progress bar, and cancels on an interrupt.
fn watch(load: Load, total: u64) -> Result<Vec<Buffer>, Failure> {
    let bar = bar(total);
    loop {
        let waited = load.wait_timeout(TICK);
        if interrupted() {
            bar.finish_and_clear();
            return Err(interrupt(&load));
        }
        bar.set_position(load.progress().0);
        if let Some(buffers) = waited? {
            bar.finish_and_clear();
            return Ok(buffers);
        }
    }
}

/// Cancels and waits for what is under way; a device that does not end it in time is left behind with the process.
fn interrupt(load: &Load) -> Failure {
    load.cancel();
    let begin = Instant::now();
    while !load.is_over() && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    if !load.is_over() {
        note("error: interrupted; the device did not end its work in time");
        std::process::exit(i32::from(ErrorKind::Interrupted.exit_code()));
    }
    Failure::Error(Error::new(ErrorKind::Interrupted, "interrupted; nothing was kept"))
}
