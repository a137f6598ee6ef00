//! Launches of the sample kernels: arguments, grids, shared memory, globals, who runs them.
#![allow(clippy::unwrap_used)] // Helpers are tests too.

mod common;

use common::*;
use std::sync::atomic::Ordering::*;
use wharf_core::{device::*, fault::Kind};
use wharf_host::limits;

#[test]
fn foo_writes_every_item() {
    for workers in [1, 2, 4] {
        let sample = Sample::new(workers);
        let mut line = sample.line();
        let mut out = vec![0_u32; 64 * 1000];
        let args = Args::default().address(&mut out);
        line.put(launch(sample.kernel("foo"), 1000, 64, &args.0));
        line.finish();
        assert!(out.iter().enumerate().all(|(i, value)| i as u32 == *value));
    }
}

#[test]
fn arguments_arrive_from_their_places() {
    let sample = Sample::new(2);
    let mut line = sample.line();
    let (mut int, mut word, mut byte) = ([0_i32], [0_u32], [0_u8]);
    let args = Args::default().with(&[0xFE]).address(&mut int).with(&(-300_i16).to_ne_bytes());
    line.put(launch(sample.kernel("multiargs"), 1, 1, &args.0));
    let pair = [7_u32.to_ne_bytes(), 1_000_u32.to_ne_bytes()];
    let args = Args::default().with(&[5]).with(&pair[0]).with(&pair[1]).address(&mut word);
    line.put(launch(sample.kernel("composite"), 1, 1, &args.0));
    let args = Args::default().with(&[42]).address(&mut byte);
    line.put(launch(sample.kernel("byte"), 1, 1, &args.0));
    line.put(launch(sample.kernel("noargs"), 1, 1, &[]));
    line.finish();
    assert_eq!((int, word, byte), ([-302], [1_012], [42]));
}

#[test]
fn arguments_are_captured_by_submit() {
    let sample = Sample::new(1);
    let (gate, mut line) = (Gate::leaked(), sample.line());
    line.put(gate.call());
    let kernel = sample.kernel("byte");
    let mut out = [0_u8; 100];
    let base = address(&mut out);
    let mut args = [0; 16];
    let mut long = vec![0; 3 * 100];
    for i in 0..50_u64 {
        args[0] = i as u8 + 1;
        args[8..].copy_from_slice(&(base + i).to_ne_bytes());
        line.put(launch(kernel, 1, 1, &args));
        args.fill(0xEE);
    }
    // Longer than what a step holds inside.
    long[..50].fill(9);
    line.put(Op::Update { to: base + 50, bytes: &long[..50] });
    long.fill(0xEE);
    gate.open();
    line.finish();
    assert!(out[..50].iter().enumerate().all(|(i, value)| *value == i as u8 + 1));
    assert_eq!(out[50..], [9; 50]);
}

#[test]
fn each_group_of_an_odd_grid_runs_once() {
    for workers in [1, 2, 5] {
        let sample = Sample::new(workers);
        let mut line = sample.line();
        for groups in [[1, 1, 1], [1, 1, 7], [3, 5, 7], [1, 999, 1], [17, 1, 31], [64, 64, 9], [1013, 3, 2]] {
            let total = groups.iter().product::<u32>() as usize;
            let (mut hits, mut ids) = (vec![0_u32; total], vec![0_u64; total]);
            let args = Args::default().address(&mut hits).address(&mut ids);
            let kernel = sample.kernel("mark").native;
            line.put(Op::Launch { kernel, groups, size: [3, 2, 1], shared: 0, args: &args.0 });
            line.finish();
            assert!(hits.iter().all(|hits| *hits == 1), "{groups:?}");
            let [nx, ny, _] = groups.map(u64::from);
            for (i, id) in (0_u64..).zip(&ids) {
                assert_eq!(*id, (i % nx) | ((i / nx % ny) << 20) | ((i / nx / ny) << 40));
            }
        }
    }
}

#[test]
fn shared_memory_is_the_groups_own() {
    for workers in [1, 3] {
        let sample = Sample::new(workers);
        let mut line = sample.line();
        let mut out = vec![1_u32; 4 * 64];
        let args = Args::default().address(&mut out);
        let kernel = sample.kernel("localmem").native;
        line.put(Op::Launch { kernel, groups: [4, 1, 1], size: [64, 1, 1], shared: 256, args: &args.0 });
        line.finish();
        assert!(out.iter().enumerate().all(|(i, value)| *value == (i as u32 % 64) * 2));

        out.fill(1);
        let fixed = sample.kernel("localmem_static");
        assert_eq!((fixed.group_max, fixed.shared_static), (64, 256));
        line.put(launch(fixed, 4, 64, &args.0));
        line.finish();
        assert!(out.iter().enumerate().all(|(i, value)| *value == (i as u32 % 64) * 2));

        let kernel = sample.kernel("localmem_reduction").native;
        line.put(Op::Launch { kernel, groups: [4, 1, 1], size: [32, 2, 2], shared: 512, args: &args.0 });
        line.finish();
        assert_eq!(out[..4], [127 * 128 / 2; 4]);

        // Long groups side by side.
        let mut wrong = vec![9_u32; 200];
        let args = Args::default().with(&20_000_u64.to_ne_bytes()).address(&mut wrong);
        let kernel = sample.kernel("localmem_apart").native;
        line.put(Op::Launch { kernel, groups: [200, 1, 1], size: [1; 3], shared: 70_000, args: &args.0 });
        line.finish();
        assert!(wrong.iter().all(|wrong| *wrong == 0));
    }
}

#[test]
fn the_whole_shared_memory_can_be_had_and_no_more() {
    let sample = Sample::new(2);
    let mut line = sample.line();
    let mut wrong = [9_u32; 2];
    let args = Args::default().with(&0_u64.to_ne_bytes()).address(&mut wrong);
    let kernel = sample.kernel("localmem_apart").native;
    let op = |shared| Op::Launch { kernel, groups: [2, 1, 1], size: [1; 3], shared, args: &args.0 };
    line.put(op(limits::SHARED_MAX));
    line.finish();
    assert_eq!(wrong, [0; 2]);
    refused(&mut line, op(limits::SHARED_MAX + 1));
}

fn refused(line: &mut Line, op: Op<'_>) {
    let steps = [Op::Barrier, op].map(|op| Step { op, done: 0, tell: false, stamp: false });
    let (taken, fault) = line.lane.submit(&steps, Hint::None).unwrap_err();
    assert_eq!((taken, fault.kind), (1, Kind::InvalidArgument));
}

#[test]
fn a_launch_past_a_limit_is_refused_and_the_lane_goes_on() {
    let sample = Sample::new(1);
    let mut line = sample.line();
    let kernel = sample.kernel("noargs");
    refused(&mut line, launch(kernel, 1, limits::GROUP_MAX + 1, &[]));
    refused(&mut line, launch(sample.kernel("localmem_static"), 1, 65, &[0; 8]));
    refused(&mut line, launch(kernel, 0, 1, &[]));
    refused(&mut line, launch(kernel, 1, 0, &[]));
    let far = [u32::MAX; 3];
    let (groups, size) = (far, [1; 3]);
    refused(&mut line, Op::Launch { kernel: kernel.native, groups, size, shared: 0, args: &[] });
    refused(&mut line, Op::Launch { kernel: kernel.native, groups: [1; 3], size: far, shared: 0, args: &[] });
    refused(&mut line, launch(kernel, 1, 1, &vec![0; limits::ARGS_MAX as usize + 1]));
    refused(&mut line, launch(sample.kernel("multiargs"), 1, 1, &[0; 17]));
    line.put(launch(kernel, 1, limits::GROUP_MAX, &[]));
    line.put(launch(kernel, 1, 1, &vec![0; limits::ARGS_MAX as usize]));
    line.finish();
}

#[test]
fn a_global_is_one_for_kernels_and_host() {
    let sample = Sample::new(2);
    let mut line = sample.line();
    let block = sample.device.global(sample.program, b"global").unwrap();
    assert_eq!(block.len, 256);
    let mut out = [0_u32; 64];
    let args = Args::default().address(&mut out);
    line.put(launch(sample.kernel("write"), 1, 64, &[]));
    line.put(launch(sample.kernel("read"), 1, 64, &args.0));
    line.finish();
    assert!(out.iter().enumerate().all(|(i, value)| *value == 2 * i as u32));
    line.put(Op::Fill { to: block.base, len: 256, pattern: &7_u32.to_ne_bytes() });
    line.put(launch(sample.kernel("read"), 1, 64, &args.0));
    line.finish();
    assert_eq!(out, [7; 64]);
}

#[test]
fn a_chain_over_sixteen_lanes_counts_fibonacci() {
    let sample = Sample::new(2);
    let mut lines: Vec<Line> = (0..16).map(|_| sample.line()).collect();
    let mut numbers = [0_u32; 16];
    let kernel = sample.kernel("sequence");
    for i in 0..16 {
        if i > 0 {
            let (lane, value) = (lines[i - 1].name, lines[i - 1].last);
            lines[i].push(Op::After { lane, value }, Hint::More);
        }
        let args = Args::default().with(&(i as u32).to_ne_bytes()).address(&mut numbers);
        lines[i].push(launch(kernel, 1, 1, &args.0), Hint::Waiting);
    }
    lines[15].finish();
    assert_eq!(numbers, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610]);
}

#[test]
fn a_waiter_completes_its_launch_while_all_workers_are_blocked() {
    let sample = Sample::new(2);
    let gate = Gate::leaked();
    let mut held = [sample.line(), sample.line()];
    for line in &mut held {
        line.put(gate.call());
    }
    until("both calls", || gate.entered.load(SeqCst) == 2);
    let threads = sample.device.threads();
    let mut line = sample.line();
    let mut out = vec![0_u32; 64];
    let args = Args::default().address(&mut out);
    line.push(launch(sample.kernel("foo"), 1, 64, &args.0), Hint::Waiting);
    line.finish();
    assert_eq!((out[63], sample.device.threads()), (63, threads), "nobody else was needed");
    gate.open();
    held.iter().for_each(Line::finish);
}

#[test]
fn twenty_threads_launch_on_their_lanes() {
    let sample = Sample::new(2);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            let (mut line, kernel) = (sample.line(), sample.kernel("foo"));
            scope.spawn(move || {
                for round in 0..50 {
                    let mut out = vec![0_u32; 256];
                    let args = Args::default().address(&mut out);
                    let hint = if round % 2 == 0 { Hint::None } else { Hint::Waiting };
                    line.push(launch(kernel, 4, 64, &args.0), hint);
                    line.finish();
                    assert!(out.iter().enumerate().all(|(i, value)| i as u32 == *value));
                }
            });
        }
    });
}

#[test]
fn the_layers_of_a_net_match_a_plain_calculation() {
    let sample = Sample::new(2);
    let mut line = sample.line();
    let (inputs, outputs, images) = (5_usize, 3_usize, 4_usize);
    let mut pixels: Vec<u8> = (0..inputs * images).map(|i| (i * 7 % 17) as u8).collect();
    let mut weights: Vec<f32> = (0..inputs * outputs).map(|i| i as f32 / 4.0 - 1.5).collect();
    let mut bias = [0.25_f32, -0.5, -1.0];
    let mut second: Vec<f32> = (0..9).map(|i| (i % 4) as f32 - 1.0).collect();
    let (mut hidden, mut scores) = (vec![0_f32; outputs * images], vec![0_f32; outputs * images]);
    let mut best = vec![9_u8; images];
    let tail = |args: Args, n: usize, relu: u32| {
        args.with(&(n as u32).to_ne_bytes()).with(&3_u32.to_ne_bytes()).with(&relu.to_ne_bytes()).0
    };
    let args =
        Args::default().address(&mut pixels).address(&mut weights).address(&mut bias).address(&mut hidden);
    line.put(launch(sample.kernel("dense_u8"), images as u32, outputs as u32, &tail(args, inputs, 1)));
    let args =
        Args::default().address(&mut hidden).address(&mut second).address(&mut bias).address(&mut scores);
    line.put(launch(sample.kernel("dense_f32"), images as u32, outputs as u32, &tail(args, outputs, 0)));
    let args = Args::default().address(&mut scores).address(&mut best).with(&3_u32.to_ne_bytes());
    line.put(launch(sample.kernel("argmax_u8"), images as u32, 1, &args.0));
    line.finish();
    for image in 0..images {
        let dense = |from: &[f32], weights: &[f32], o: usize| {
            from.iter().zip(&weights[o * from.len()..]).map(|(v, w)| v * w).sum::<f32>() + bias[o]
        };
        let from: Vec<f32> =
            pixels[image * inputs..][..inputs].iter().map(|p| f32::from(*p) / 16.0).collect();
        let first: Vec<f32> = (0..outputs).map(|o| dense(&from, &weights, o).max(0.0)).collect();
        let last: Vec<f32> = (0..outputs).map(|o| dense(&first, &second, o)).collect();
        let largest = (0..3).rev().max_by(|a, b| last[*a].total_cmp(&last[*b])).unwrap();
        assert!(last.iter().zip(&scores[image * 3..]).all(|(a, b)| (a - b).abs() < 1e-5));
        assert_eq!(usize::from(best[image]), largest);
    }
}
