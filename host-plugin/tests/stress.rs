//! Seeded random work over many lanes against what order demands. Rounds: `WHARF_STRESS_ROUNDS`, 200 by default.
#![allow(clippy::unwrap_used)] // Helpers are tests too.

mod common;

use common::*;
use std::{sync::atomic::Ordering::*, thread, time::Duration};
use wharf_core::device::*;
use wharf_host::HostDevice;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }
    fn hint(&mut self) -> Hint {
        [Hint::None, Hint::None, Hint::More, Hint::Waiting][self.below(4) as usize]
    }
}

fn rounds() -> u64 {
    std::env::var("WHARF_STRESS_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

/// Each lane writes its values to its own cell; who waits for another lane's value copies that lane's cell, and must
/// find that value or a later one.
#[test]
fn random_waits_between_lanes_hold() {
    for seed in 1..=rounds() {
        let mut random = Random(seed);
        let device = HostDevice::with_workers(1 + random.below(4) as usize);
        let count = 2 + random.below(12) as usize;
        let mut lines: Vec<Line> = (0..count).map(|_| Line::new(&device)).collect();
        let mut cells = vec![0_u64; count];
        let mut seen = vec![0_u64; 400];
        let (cells, copies) = (address(&mut cells), address(&mut seen));
        let (mut wanted, calls, mut called) = (Vec::new(), counter(), 0);
        for _ in 0..400 {
            let (i, j) = (random.below(count as u64) as usize, random.below(count as u64) as usize);
            let hint = random.hint();
            match random.below(8) {
                0 => {
                    lines[i].push(add_one(calls), hint);
                    called += 1;
                }
                1 | 2 if i != j && lines[j].last > 0 => {
                    let value = 1 + random.below(lines[j].last);
                    let to = copies + 8 * wanted.len() as u64;
                    let lane = lines[j].name;
                    lines[i].push(Op::After { lane, value }, Hint::More);
                    let from = cells + 8 * j as u64;
                    lines[i].push(Op::Copy { from, to, len: 8, peers: [PEER_HOST; 2] }, hint);
                    wanted.push((lines[j].written(value), seed));
                }
                3 if random.below(4) == 0 => lines[i].finish(),
                4 => lines[i].gauge.poll(),
                _ => {
                    let value = lines[i].last + 1;
                    lines[i].push(Op::Update { to: cells + 8 * i as u64, bytes: &value.to_ne_bytes() }, hint);
                    lines[i].note(value);
                }
            }
        }
        for line in &lines {
            if random.below(2) == 0 {
                line.finish();
            } else {
                line.gauge.poll();
                until(&format!("seed {seed}"), || line.reached() == line.last);
            }
        }
        assert_eq!(calls.load(SeqCst), called);
        for (seen, (least, seed)) in seen.iter().zip(&wanted) {
            assert!(seen >= least, "seed {seed}: {seen} {least}");
        }
    }
}

/// Nobody helps: each single step must be seen by a worker, whatever state the lane was just in.
#[test]
fn no_step_is_overlooked() {
    for workers in [1, 2, 3] {
        let device = HostDevice::with_workers(workers);
        let mut line = Line::new(&device);
        let mut random = Random(7);
        for _ in 0..50 * rounds() {
            for _ in 0..random.below(3) {
                line.push(Op::Barrier, Hint::More);
            }
            line.put(Op::Barrier);
            if random.below(8) == 0 {
                until("the step", || line.reached() == line.last);
            }
            for _ in 0..random.below(400) {
                std::hint::spin_loop();
            }
        }
        until("the last step", || line.reached() == line.last);
    }
}

/// Waiters sleep for values all along a lane while it is fed slowly, and all come back.
#[test]
fn sleepers_on_one_lane_all_wake() {
    let device = HostDevice::with_workers(2);
    for round in 0..rounds() / 20 {
        let mut line = Line::new(&device);
        let gate = Gate::leaked();
        line.put(gate.call());
        thread::scope(|scope| {
            for waiter in 0..8_u64 {
                let gauge = line.gauge.clone();
                scope.spawn(move || {
                    for value in (1 + waiter..=200).step_by(8) {
                        assert!(gauge.wait(value, None));
                    }
                });
            }
            thread::sleep(Duration::from_millis(round % 3)); // So that some sleep and some spin; nothing hangs on it.
            gate.open();
            for value in 2..=200 {
                line.put(Op::Barrier);
                if value % 50 == 0 {
                    thread::yield_now();
                }
            }
        });
        line.finish();
    }
}
