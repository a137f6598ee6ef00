//! `wharf replay`.

use crate::{
    cli::{Global, ReplayArgs},
    demo::read,
    devices::{device_json, usable},
    load::device,
    out::{Failure, Out},
};
use serde_json::json;

pub(crate) fn run(global: &Global, args: &ReplayArgs, out: &mut Out) -> Result<(), Failure> {
    let capture = read(&args.file)?;
    let runtime = usable(global)?;
    let device = device(&runtime, &args.device)?;
    let done = device.replay(&capture)?;
    let different = done.different.len();
    if out.json() {
        out.value(json!({
            "device": device_json(&device), "operations": done.operations, "reads": done.reads,
            "different": done.different,
        }))?;
    } else {
        let same = done.reads - different as u64;
        out.line(&format!(
            "{} operations on {}; {same} of {} reads are those of the captured run",
            done.operations,
            device.id(),
            done.reads
        ))?;
        for op in &done.different {
            out.line(&format!("  operation {op} read other bytes"))?;
        }
    }
    if different > 0 { Err(Failure::Wanting) } else { Ok(()) }
}
