//! Work that is bound by memory, through the host plugin on its buffers: fills against memset, copies against memcpy, a
//! kernel against the best plain loop; the baselines work on the same buffers.
//!
//! # Safety
//! The baselines reach the buffers by address, between operations that have ended.
#![allow(unsafe_code)]

use std::{hint::black_box, process::ExitCode, thread, time::Duration};
use wharf::{Buffer, Device, Queue};
use wharf_bench::{
    args::{self, Args, Fail},
    devices,
    row::{Goal, Row},
    sys,
    time::{Times, clocked, one_by_one},
};

/// Bytes of each of two buffers.
const LEN: u64 = 64 << 20;
/// Above the caches of any machine of today: what a fill's goal is about.
const LARGE: u64 = 1 << 30;
/// Items of a group of the kernel.
const GROUP: u32 = 1024;

struct Bench {
    device: Device,
    queue: Queue,
    from: Buffer,
    to: Buffer,
    rounds: usize,
}

fn main() -> ExitCode {
    args::main(run)
}

fn run(args: &Args, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
    let device = devices::plugin()?;
    let (from, to) = (device.allocate(LEN)?, device.allocate(LEN)?);
    let bench = Bench { queue: device.queue()?, device, from, to, rounds: args.pick(31, 3) };
    bench.done(bench.queue.fill(&bench.from, &1f32.to_ne_bytes()));
    for pattern in [&[7u8][..], &[1, 2, 3, 4], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]] {
        let name = format!("fill of 64 MiB, pattern of {}", pattern.len());
        give(row(name, bench.fill(&bench.to, pattern)?, "memset", Goal::None));
    }
    if !args.short && args.wants("fill of 1 GiB, above the caches") {
        let times = bench.fill(&bench.device.allocate(LARGE)?, &[1, 2, 3, 4])?;
        give(row("fill of 1 GiB, above the caches".into(), times, "memset", Goal::Ratio(2.0)));
    }
    give(row("copy of 64 MiB".into(), bench.copy()?, "memcpy", Goal::None));
    let (ours, peer) = bench.saxpy()?;
    give(row("saxpy, 64 MiB".into(), (ours, peer), "best plain loop", Goal::Ratio(0.97)));
    Ok(())
}

fn row(name: String, times: (Times, Times), baseline: &'static str, goal: Goal) -> Row {
    let (value, baseline_value) = (times.0.per(1e6).into(), times.1.per(1e6).into());
    Row { name, value, unit: "ms", baseline, baseline_value, goal }
}

impl Bench {
    fn done<T>(&self, submitted: wharf::Result<T>) {
        let ended = submitted.and_then(|_| self.queue.sync());
        ended.unwrap_or_else(|why| panic!("an operation on live buffers: {why}"));
    }

    fn fill(&self, to: &Buffer, pattern: &[u8]) -> Result<(Times, Times), Fail> {
        let ours = || clocked(|| self.done(self.queue.fill(to, pattern)));
        let theirs = || {
            // SAFETY: every operation has ended; nothing else uses the buffer until this returns.
            let bytes = unsafe { sys::bytes_of(to) }.unwrap_or_else(|why| panic!("{why}"));
            clocked(|| {
                bytes.fill(black_box(0));
                black_box(&mut *bytes);
            })
        };
        Ok(one_by_one(self.rounds, ours, theirs))
    }

    fn copy(&self) -> Result<(Times, Times), Fail> {
        let ours = || clocked(|| self.done(self.queue.copy(&self.from, &self.to)));
        let theirs = || {
            // SAFETY: as in `fill`.
            let from = unsafe { sys::bytes_of(&self.from) }.unwrap_or_else(|why| panic!("{why}"));
            // SAFETY: as in `fill`; the two buffers share nothing.
            let to = unsafe { sys::bytes_of(&self.to) }.unwrap_or_else(|why| panic!("{why}"));
            clocked(|| {
                to.copy_from_slice(from);
                black_box(&mut *to);
            })
        };
        Ok(one_by_one(self.rounds, ours, theirs))
    }

    /// `y += 3 x` over 32 MiB each. The plain loop is the faster of one thread and one for each core.
    fn saxpy(&self) -> Result<(Times, Times), Fail> {
        let (x, y) = (self.from.slice(0, LEN / 2)?, self.to.slice(0, LEN / 2)?);
        let n = (LEN / 2 / 4) as u32;
        let kernel = self.device.program(&devices::image()?)?.kernel("saxpy")?;
        let args = wharf::Args::new().u32(n).f32(3.0).buffer(&x)?.buffer(&y)?;
        let launch =
            || clocked(|| self.done(self.queue.launch(&kernel, [n / GROUP, 1, 1], [GROUP, 1, 1], &args)));
        let mut best: Option<(Times, Times)> = None;
        for threads in [1, thread::available_parallelism()?.get()] {
            let plain = || {
                // SAFETY: as in `fill`.
                let x = unsafe { sys::bytes_of(&x) }.unwrap_or_else(|why| panic!("{why}"));
                // SAFETY: as in `copy`.
                let y = unsafe { sys::bytes_of(&y) }.unwrap_or_else(|why| panic!("{why}"));
                plain(x, y, threads)
            };
            let times = one_by_one(self.rounds, launch, plain);
            if best.as_ref().is_none_or(|(_, peer)| times.1.quartile() < peer.quartile()) {
                best = Some(times);
            }
        }
        best.ok_or("no loop was run".into())
    }
}

fn plain(x: &[u8], y: &mut [u8], threads: usize) -> Duration {
    // SAFETY: every four bytes are a float, and buffers are aligned to more.
    let (_, x, _) = unsafe { x.align_to::<f32>() };
    // SAFETY: as above.
    let (_, y, _) = unsafe { y.align_to_mut::<f32>() };
    let each = x.len().div_ceil(threads);
    let add = |y: &mut [f32], x: &[f32]| y.iter_mut().zip(x).for_each(|(y, x)| *y += 3.0 * *x);
    clocked(|| {
        if threads == 1 {
            add(y, x);
        } else {
            thread::scope(|scope| {
                y.chunks_mut(each)
                    .zip(x.chunks(each))
                    .for_each(|(y, x)| drop(scope.spawn(move || add(y, x))));
            });
        }
        black_box(&mut *y);
    })
}
