//! Time on a machine that is not quiet: short rounds of the two in turn, and of each the lower quartile.

use std::time::{Duration, Instant};

/// How long to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Rounds of each side.
    pub rounds: usize,
    /// How long a round should take.
    pub round: Duration,
}

/// What the rounds of one side took, in order of size; nanoseconds for one operation.
#[derive(Clone, Debug)]
pub struct Times(Vec<f64>);

impl Times {
    /// Of one round or more.
    pub fn new(mut all: Vec<f64>) -> Times {
        all.sort_by(f64::total_cmp);
        Times(all)
    }
    /// The figure that is compared: what others' work on the machine disturbs least, and still no lucky shot.
    pub fn quartile(&self) -> f64 {
        self.0[self.0.len() / 4]
    }
    /// The fastest round.
    pub fn min(&self) -> f64 {
        self.0[0]
    }
    /// The round in the middle.
    pub fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }
    /// The slowest round.
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
    /// The same in another unit.
    #[must_use]
    pub fn per(self, nanoseconds: f64) -> Times {
        Times(self.0.into_iter().map(|time| time / nanoseconds).collect())
    }
}

/// Runs `ours` and `peer` in turn; each runs the operations it is told to and says how long that took, less what it had
/// to prepare. The answer is nanoseconds for one.
pub fn in_turn(
    effort: Effort,
    mut ours: impl FnMut(u64) -> Duration,
    mut peer: impl FnMut(u64) -> Duration,
) -> (Times, Times) {
    let (ops_ours, ops_peer) = (ops(effort.round, &mut ours), ops(effort.round, &mut peer));
    let (mut all_ours, mut all_peer) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        all_ours.push(one(ops_ours, &mut ours));
        all_peer.push(one(ops_peer, &mut peer));
    }
    (Times::new(all_ours), Times::new(all_peer))
}

/// The same for work that takes long enough alone: one a round, after one of each that does not count. Nanoseconds.
pub fn one_by_one(
    rounds: usize,
    mut ours: impl FnMut() -> Duration,
    mut peer: impl FnMut() -> Duration,
) -> (Times, Times) {
    let (mut all_ours, mut all_peer) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let (a, b) = (ours().as_nanos() as f64, peer().as_nanos() as f64);
        if round > 0 {
            all_ours.push(a);
            all_peer.push(b);
        }
    }
    (Times::new(all_ours), Times::new(all_peer))
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
pub fn clocked(f: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    f();
    begin.elapsed()
}

/// How long `f` takes, with its answer.
///
/// # Errors
/// Its own.
pub fn timed<T, E>(f: impl FnOnce() -> Result<T, E>) -> Result<(Duration, T), E> {
    let begin = Instant::now();
    let done = f()?;
    Ok((begin.elapsed(), done))
}
