//! How evenly the planner spreads bytes over eight queues, against placing whole entries with the queue that has least.

use wharf_bench::{
    args::{Args, Fail},
    row::{Goal, Row},
};
use wharf_core::{
    batch::{Direction, OP_COST, Piece, Pieces, Plan, Side, check},
    fault::Fault,
    handle::Handle,
};

const QUEUES: usize = 8;
const MIB: u64 = 1 << 20;

/// Entries with a gap between one and the next.
struct Mix(Vec<(u64, u64)>);

impl Mix {
    fn new(sizes: &[u64], gap: u64) -> Mix {
        let mut at = 0;
        Mix(sizes
            .iter()
            .map(|len| {
                let own = (at, *len);
                at += len + gap;
                own
            })
            .collect())
    }
}

impl Pieces for Mix {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }
    fn piece(&self, index: u32) -> Result<Piece, Fault> {
        let (at, len) = self.0[index as usize];
        Ok(Piece { stored: Side::Memory(at), root: Handle::NULL, offset: at, len })
    }
}

fn mixes() -> Vec<Mix> {
    let layers = |layers: usize, wide: u64, narrow: u64| {
        let mut sizes = vec![wide * 8];
        (0..layers)
            .for_each(|_| sizes.extend([narrow, narrow, narrow, narrow, wide, wide, wide, 8192, 8192]));
        sizes
    };
    let scattered = |count: u64, most: u64| -> Vec<u64> {
        (0..count).map(|i| 1 + i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % most).collect()
    };
    vec![
        Mix::new(&layers(32, 90 * MIB, 34 * MIB), 64),
        Mix::new(&layers(12, 4 * MIB, MIB), 0),
        Mix::new(&[2048 * MIB], 0),
        Mix::new(&[700 * MIB, 600 * MIB, 700 * MIB], 0),
        Mix::new(&vec![4200; 20_000], 56),
        Mix::new(&vec![4200; 20_000], 0),
        Mix::new(&scattered(20_000, 9000), 8),
        Mix::new(&[scattered(20_000, 9000), vec![400 * MIB]].concat(), 8),
        Mix::new(&[vec![400 * MIB], scattered(20_000, 9000)].concat(), 8),
        Mix::new(&scattered(300, 8 * MIB), 32),
    ]
}

/// Most over mean.
fn spread(loads: &[u64]) -> f64 {
    let most = loads.iter().max().copied().unwrap_or(0) as f64;
    most * loads.len() as f64 / loads.iter().sum::<u64>() as f64
}

fn planned(mix: &Mix) -> Result<f64, Fail> {
    let fail = |fault: Fault| format!("{fault:?}");
    let totals = check(mix, Direction::In).map_err(fail)?;
    let mut plan = Plan::new(&totals, QUEUES);
    while let Some(mut last) = plan.next(mix, |_| true).map_err(fail)? {
        while let Some(more) = plan.more(mix, &last).map_err(fail)? {
            last = more;
        }
    }
    Ok(spread(plan.issued()))
}

fn whole(mix: &Mix) -> f64 {
    let mut loads = [0u64; QUEUES];
    for (_, len) in &mix.0 {
        if let Some(least) = loads.iter_mut().min() {
            *least += len + OP_COST;
        }
    }
    spread(&loads)
}

/// The worst of ten mixes of sizes.
pub(super) fn run(args: &Args, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
    let name = "imbalance of 8 timelines, worst of ten mixes";
    if args.wants(name) {
        let mixes = mixes();
        let ours = mixes.iter().map(planned).collect::<Result<Vec<_>, _>>()?;
        let worst = |all: &mut dyn Iterator<Item = f64>| all.fold(1.0, f64::max);
        give(Row {
            name: name.into(),
            value: worst(&mut ours.into_iter()).into(),
            unit: "x",
            baseline: "whole entries to the least loaded",
            baseline_value: worst(&mut mixes.iter().map(whole)).into(),
            goal: Goal::Most(1.01),
        });
    }
    Ok(())
}
