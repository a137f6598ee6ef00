//! Loads of warm archives through the host plugin against one map of the file and one memcpy of the same bytes, and
//! against one memcpy into memory that is as fresh.

mod cold;
mod import;
mod spread;

use std::{
    fs::File,
    hint::black_box,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use wharf::{Device, Io, LoadOptions, Parameters, Span};
use wharf_bench::{
    archives,
    args::{self, Args, Fail},
    devices,
    row::{Goal, Row},
    sys,
    time::{Times, clocked, one_by_one, timed},
};

const MIB: u64 = 512;

/// An archive that is open, mapped by hand too, and where a gather goes.
struct Case<'a> {
    name: String,
    device: &'a Device,
    path: PathBuf,
    parameters: Parameters,
    spans: Vec<(String, u64)>,
    file: File,
    data_at: usize,
    bytes: usize,
    rounds: usize,
    goal: f64,
}

fn main() -> ExitCode {
    args::main(run)
}

fn run(args: &Args, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
    let device = devices::plugin()?;
    let mib = args.mib.unwrap_or(args.pick(MIB, 64));
    let (path, data_at) = archives::safetensors(&format!("large-{mib}.safetensors"), &archives::large(mib))?;
    let rounds = args.pick(15, 3);
    let large = Case::open(format!("{mib} MiB in 300 tensors"), &device, &path, data_at, rounds, 1.1)?;
    large.all(args, give)?;
    large.cold(args, give)?;
    // The device with memory of its own has 64 MiB.
    let (path, data_at) = archives::safetensors("large-48.safetensors", &archives::large(48))?;
    Case::open("48 MiB in 300 tensors".into(), &device, &path, data_at, rounds, 1.1)?.memory(args, give)?;
    spread::run(args, give)?;
    import::run(args, &device, give)?;
    let (path, data_at) = archives::safetensors("small.safetensors", &archives::small())?;
    Case::open("84 MB in 20,000 tensors".into(), &device, &path, data_at, rounds, 1.3)?.all(args, give)
}

impl<'a> Case<'a> {
    fn open(
        name: String,
        device: &'a Device,
        path: &Path,
        data_at: u64,
        rounds: usize,
        goal: f64,
    ) -> Result<Self, Fail> {
        let parameters = Parameters::open(path)?;
        let mut at = 0;
        let mut spans = vec![];
        for tensor in parameters.tensors() {
            spans.push((tensor.name.to_owned(), at));
            at += tensor.bytes;
        }
        let (bytes, data_at) = (at as usize, data_at as usize);
        let (path, file) = (path.to_owned(), File::open(path)?);
        Ok(Case { name, device, path, parameters, spans, file, data_at, bytes, rounds, goal })
    }

    fn all(&self, args: &Args, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
        self.gathers(args, give)?;
        if args.wants(&format!("load, fresh buffers, {}", self.name)) {
            let times = self.load()?;
            give(self.row("load, fresh buffers", times, "memcpy into fresh memory", Goal::Ratio(1.0 / 1.3)));
        }
        Ok(())
    }

    fn gathers(&self, args: &Args, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
        let ways = ["gather", "gather, map kept", "gather, --io read"];
        if !ways.iter().any(|what| args.wants(&format!("{what}, {}", self.name))) {
            return Ok(());
        }
        let (to, mut peer) = (self.device.allocate(self.bytes as u64)?, vec![1u8; self.bytes]);
        let kept = sys::map(&self.file)?;
        let kept = &kept[self.data_at..];
        let map_and_copy = |peer: &mut Vec<u8>| {
            clocked(|| match sys::map(&self.file) {
                Ok(map) => peer.copy_from_slice(&map[self.data_at..]),
                Err(error) => panic!("mapped a moment ago: {error}"),
            })
        };
        // Both sides touch their memory and are right before anything counts.
        self.gather(&to, Io::Map)?;
        let mut seen = vec![0; self.bytes];
        self.device.queue()?.read(&to, &mut seen)?;
        if seen != kept {
            return Err("the gathered bytes are not those of the file".into());
        }
        drop(seen);
        let goal = Goal::Ratio(1.0 / self.goal);
        for (what, io, baseline, goal) in [
            ("gather", Io::Auto, "mmap+memcpy", goal),
            ("gather, map kept", Io::Auto, "memcpy from a kept map", Goal::None),
            ("gather, --io read", Io::Read, "mmap+memcpy", Goal::None),
        ] {
            if !args.wants(&format!("{what}, {}", self.name)) {
                continue;
            }
            let ours = || self.gather(&to, io).unwrap_or_else(|why| panic!("it went well before: {why}"));
            let theirs = || match baseline {
                "mmap+memcpy" => map_and_copy(&mut peer),
                _ => clocked(|| peer.copy_from_slice(kept)),
            };
            let times = one_by_one(self.rounds, ours, theirs);
            give(self.row(what, times, baseline, goal));
        }
        black_box(&peer);
        Ok(())
    }

    fn gather(&self, to: &wharf::Buffer, io: Io) -> Result<Duration, Fail> {
        self.gather_on(self.device, to, io)
    }

    fn gather_on(&self, device: &Device, to: &wharf::Buffer, io: Io) -> Result<Duration, Fail> {
        let spans: Vec<_> = self.spans.iter().map(|(name, at)| Span::whole(name, *at)).collect();
        let options = LoadOptions { io, ..LoadOptions::default() };
        let (took, _) = timed(|| device.gather(&self.parameters, &spans, to, options)?.wait())?;
        Ok(took)
    }

    /// Buffers are given back between rounds, on both sides outside the clock, and our allocator keeps nothing of them: its
    /// memory is as fresh as the baseline's.
    fn load(&self) -> Result<(Times, Times), Fail> {
        let names: Vec<&str> = self.spans.iter().map(|(name, _)| name.as_str()).collect();
        let kept = sys::map(&self.file)?;
        let ours = || {
            sys::trim();
            let loaded = timed(|| self.device.load(&self.parameters, &names, LoadOptions::default())?.wait());
            loaded.unwrap_or_else(|why| panic!("{why}")).0
        };
        ours();
        let theirs = || {
            let fresh = timed(|| {
                let mut fresh = memmap2::MmapMut::map_anon(self.bytes)?;
                fresh.copy_from_slice(&kept[self.data_at..]);
                std::io::Result::Ok(fresh)
            });
            fresh.unwrap_or_else(|why| panic!("{why}")).0
        };
        Ok(one_by_one(self.rounds, ours, theirs))
    }

    fn row(&self, what: &str, times: (Times, Times), baseline: &'static str, goal: Goal) -> Row {
        let (value, baseline_value) = (times.0.per(1e6).into(), times.1.per(1e6).into());
        Row { name: format!("{what}, {}", self.name), value, unit: "ms", baseline, baseline_value, goal }
    }
}
