//! What a launch costs: `cargo run --release -p wharf-host --example latency`. Best and median of several rounds.
//!
//! # Safety
//! As in the tests: the lane's far end is leaked.
#![allow(unsafe_code, clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::*;
use std::{hint::black_box, time::Instant};
use wharf_core::device::*;

/// Nanoseconds for each of `n` things that `f` does, best and median of 31 rounds.
fn measure(what: &str, n: u32, mut f: impl FnMut()) {
    f();
    let mut rounds: Vec<f64> = (0..31)
        .map(|_| {
            let begin = Instant::now();
            f();
            begin.elapsed().as_nanos() as f64 / f64::from(n)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{what:<58} best {:>10.1} ns, median {:>10.1} ns", rounds[0], rounds[15]);
}

fn main() {
    for workers in [1, 2] {
        println!("workers: {workers}");
        let sample = Sample::new(workers);
        let (mut line, kernel) = (sample.line(), sample.kernel("noargs"));
        measure("empty launch, submit (waiting) and wait, idle lane", 10_000, || {
            for _ in 0..10_000 {
                line.push(launch(kernel, 1, 1, &[]), Hint::Waiting);
                line.gauge.wait(line.last, None);
            }
        });
        let args = [1_u8; 24];
        measure("as above, 24 bytes of arguments", 10_000, || {
            for _ in 0..10_000 {
                line.push(launch(kernel, 1, 1, &args), Hint::Waiting);
                line.gauge.wait(line.last, None);
            }
        });
        measure("empty launch, submit (none) and wait, idle lane", 1_000, || {
            for _ in 0..1_000 {
                line.put(launch(kernel, 1, 1, &[]));
                line.gauge.wait(line.last, None);
            }
        });
        for (what, hint) in [("more", Hint::More), ("none", Hint::None)] {
            measure(&format!("1,000 empty launches (submit {what}), then wait, each"), 1_000, || {
                for _ in 0..1_000 {
                    line.push(launch(kernel, 1, 1, &[]), hint);
                }
                line.gauge.wait(line.last, None);
            });
        }
        let quiet = |line: &mut Line, hint| {
            for _ in 0..1_000 {
                line.last += 1;
                let op = launch(kernel, 1, 1, &[]);
                line.lane.submit(&[Step { op, done: line.last, tell: false, stamp: false }], hint).unwrap();
            }
            line.gauge.wait(line.last, None);
        };
        measure("  the same, none of them told, more", 1_000, || quiet(&mut line, Hint::More));
        measure("  the same, none of them told, none", 1_000, || quiet(&mut line, Hint::None));
        let steps: Vec<_> = (0..1_000).map(|_| launch(kernel, 1, 1, &[])).collect();
        measure("1,000 empty launches in one submit, then wait, each", 1_000, || {
            let steps: Vec<_> = (line.last + 1..)
                .zip(&steps)
                .map(|(done, op)| Step { op: *op, done, tell: false, stamp: false })
                .collect();
            line.lane.submit(&steps, Hint::Waiting).unwrap();
            line.last += 1_000;
            line.gauge.wait(line.last, None);
        });
        large(&sample, &mut line);
    }
}

/// Bandwidth-bound work against the plain loop in the same run.
fn large(sample: &Sample, line: &mut Line) {
    const N: usize = 8 << 20;
    let (mut x, mut y) = (vec![1_f32; N], vec![2_f32; N]);
    let args = Args::default().with(&(N as u32).to_ne_bytes()).with(&3_f32.to_ne_bytes());
    let args = args.address(&mut x).address(&mut y);
    let saxpy = sample.kernel("saxpy");
    measure("saxpy, 64 MiB, groups of 1,024", 1, || {
        line.push(launch(saxpy, (N / 1024) as u32, 1024, &args.0), Hint::Waiting);
        line.gauge.wait(line.last, None);
    });
    measure("  plain loop, one thread", 1, || {
        for (y, x) in y.iter_mut().zip(&x) {
            *y += 3.0 * *x;
        }
        black_box(&mut y);
    });
    measure("  plain loop, two threads", 1, || {
        std::thread::scope(|scope| {
            for (y, x) in y.chunks_mut(N / 2).zip(x.chunks(N / 2)) {
                scope.spawn(move || {
                    for (y, x) in y.iter_mut().zip(x) {
                        *y += 3.0 * *x;
                    }
                });
            }
        });
        black_box(&mut y);
    });
    let to = address(&mut y);
    for pattern in [&[7_u8][..], &[1, 2, 3, 4], &[1, 2, 3]] {
        let len = (N as u64 * 4 / 12) * 12;
        measure(&format!("fill of 32 MiB, pattern of {}", pattern.len()), 1, || {
            line.push(Op::Fill { to, len, pattern }, Hint::Waiting);
            line.gauge.wait(line.last, None);
        });
    }
    measure("  memset of 32 MiB", 1, || {
        // Bytes through `black_box`, so that the call stays.
        y.fill(black_box(0.0));
        black_box(&mut y);
    });
    let from = address(&mut x);
    measure("copy of 32 MiB", 1, || {
        line.push(Op::Copy { from, to, len: 4 * N as u64, peers: [PEER_HOST; 2] }, Hint::Waiting);
        line.gauge.wait(line.last, None);
    });
    measure("  memcpy of 32 MiB", 1, || {
        y.copy_from_slice(&x);
        black_box(&mut y);
    });
}
