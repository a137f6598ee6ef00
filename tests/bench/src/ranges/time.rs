//! Time on a machine that is not quiet: short rounds of the two in turn, and of each the lower quartile.

use std::time::{Duration, Instant};

/// How long to measure.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    pub(crate) round: Duration,
}

/// Runs `ours` and `peer` in turn; each runs the operations it is told to and says how long that took, less what it had
/// to prepare. The answer is nanoseconds for one.
pub(crate) fn in_turn(
    effort: Effort,
    mut ours: impl FnMut(u64) -> Duration,
    mut peer: impl FnMut(u64) -> Duration,
) -> (f64, f64) {
    let (ops_ours, ops_peer) = (ops(effort.round, &mut ours), ops(effort.round, &mut peer));
    let (mut all_ours, mut all_peer) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        all_ours.push(one(ops_ours, &mut ours));
        all_peer.push(one(ops_peer, &mut peer));
    }
    (quartile(all_ours), quartile(all_peer))
}

/// How many operations fill a round.
fn ops(round: Duration, run: &mut impl FnMut(u64) -> Duration) -> u64 {
    let mut count = 16;
    while run(count) < round {
        count *= 2;
    }
    count
}

fn one(count: u64, run: &mut impl FnMut(u64) -> Duration) -> f64 {
    run(count).as_nanos() as f64 / count as f64
}

/// How long `f` takes.
pub(crate) fn clocked(f: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    f();
    begin.elapsed()
}

fn quartile(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 4]
}
