//! Tensors used where they are mapped, for each; and host memory that a load of a file which is read takes on the way.

use super::Case;
use wharf::{Device, Io, LoadOptions, Parameters};
use wharf_bench::{
    archives,
    args::{Args, Fail},
    row::{Goal, Row},
    sys,
    time::{one_by_one, timed},
};

const TENSORS: u64 = 20_000;
const LEN: u64 = 4096;

/// Imports of aligned tensors against a memcpy of each.
pub(super) fn run(args: &Args, device: &Device, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
    let name = "import, each of 20,000 tensors";
    if !args.wants(name) {
        return Ok(());
    }
    let sizes: archives::Sizes = (0..TENSORS).map(|i| (format!("layer.{i:05}.weight"), LEN)).collect();
    let (path, data_at) = archives::safetensors("import.safetensors", &sizes)?;
    let parameters = Parameters::open(&path)?;
    let names: Vec<&str> = sizes.iter().map(|(name, _)| name.as_str()).collect();
    let options = LoadOptions { import: true, ..LoadOptions::default() };
    let load = device.load(&parameters, &names, options)?;
    if load.progress().1 != 0 {
        return Err("not every aligned tensor was imported".into());
    }
    drop(load.wait()?);
    let kept = sys::map(&std::fs::File::open(&path)?)?;
    let kept = &kept[data_at as usize..];
    let mut peer = vec![1u8; kept.len()];
    let ours = || {
        let loaded = timed(|| device.load(&parameters, &names, options)?.wait());
        loaded.unwrap_or_else(|why| panic!("it went well before: {why}")).0
    };
    let theirs = || wharf_bench::time::clocked(|| peer.copy_from_slice(kept));
    let (ours, theirs) = one_by_one(args.pick(15, 3), ours, theirs);
    give(Row {
        name: name.into(),
        value: ours.per(TENSORS as f64 * 1e3).into(),
        unit: "us",
        baseline: "memcpy of each",
        baseline_value: theirs.per(TENSORS as f64 * 1e3).into(),
        goal: Goal::Most(1.0),
    });
    Ok(())
}

impl Case<'_> {
    /// Host memory beyond what was there and the target: for a device that reads straight, and for one with memory of its
    /// own, where a staging budget bounds it. The target of either is memory of this process.
    pub(super) fn memory(&self, args: &Args, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
        let staged = wharf_bench::devices::staged()?;
        for (what, device) in [("staged", staged.as_ref()), ("straight", Some(self.device))] {
            let name = format!("extra memory of a load, {what}, {}", self.name);
            let (Some(device), true) = (device, args.wants(&name)) else { continue };
            let budget = LoadOptions::default().staging as f64 / (1 << 20) as f64;
            let to = device.allocate(self.bytes as u64)?;
            let queue = device.queue()?;
            queue.fill(&to, &[1])?;
            queue.sync()?;
            sys::trim();
            let Some(before) = sys::peak_from_now() else { return Ok(()) };
            self.gather_on(device, &to, Io::Read)?;
            let peak = sys::peak().unwrap_or(before);
            give(Row {
                name,
                value: (peak.saturating_sub(before) as f64 / (1 << 20) as f64).max(0.001).into(),
                unit: "MiB",
                baseline: "the staging budget",
                baseline_value: budget.into(),
                // Stacks of lanes and the table of names are memory too.
                goal: Goal::Most(budget + 2.0),
            });
        }
        Ok(())
    }
}
