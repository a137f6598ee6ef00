//! What is measured: each of LLVM's costs that the map is there to avoid.

use super::{
    Map, StdLock, bytes,
    llvm::Llvm,
    plan::{Plan, Rng},
};
use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};
use wharf_bench::{
    args::Args,
    row::{Figure, Goal, Row},
    time::{Effort, Times, clocked, in_turn},
};
use wharf_core::ranges::{Indexed, Reader, Tree};

/// Addresses asked for, planned ahead.
const ASKED: usize = 1 << 20;
const PEER: &str = "LLVM's structure, rebuilt";

/// A map and the plan of what is in it.
struct Side<M> {
    map: M,
    plan: Plan,
    rng: Rng,
}

impl<M: Map> Side<M> {
    fn fill(live: usize) -> Self {
        let mut rng = Rng(live as u64);
        let plan = Plan::new(live, &mut rng);
        let map = M::new();
        (0..live).for_each(|place| map.insert(plan.at(place)));
        Side { map, plan, rng }
    }
    /// Frees and allocates at random places.
    fn write(&mut self, count: u64) -> Duration {
        let planned: Vec<_> = (0..count).map(|_| self.plan.swap(&mut self.rng)).collect();
        clocked(|| {
            for (out, back) in planned {
                self.map.remove(out);
                self.map.insert(back);
            }
        })
    }
    /// Of ten operations nine are lookups, half of them of bases, and one is a free or an allocation.
    fn mix(&mut self, count: u64) -> Duration {
        let planned: Vec<_> = (0..count.div_ceil(20))
            .map(|_| {
                let (plan, rng) = (&self.plan, &mut self.rng);
                let asked: [u64; 18] =
                    std::array::from_fn(|n| if n % 2 == 0 { plan.base(rng) } else { plan.interior(rng) });
                (asked, self.plan.swap(&mut self.rng))
            })
            .collect();
        clocked(|| {
            let mut sum = 0u64;
            for (asked, (out, back)) in planned {
                asked[..9].iter().for_each(|address| sum = sum.wrapping_add(self.map.find(*address)));
                self.map.remove(out);
                asked[9..].iter().for_each(|address| sum = sum.wrapping_add(self.map.find(*address)));
                self.map.insert(back);
            }
            black_box(sum);
        })
    }
}

/// Addresses, round and round.
struct Asked(Vec<u64>, usize);

impl Asked {
    fn new(mut one: impl FnMut() -> u64) -> Self {
        Asked((0..ASKED).map(|_| one()).collect(), 0)
    }
    #[inline]
    fn next(&mut self) -> u64 {
        self.1 = (self.1 + 1) % ASKED;
        self.0[self.1]
    }
    /// Looks so many up.
    #[inline]
    fn look(&mut self, count: u64, mut find: impl FnMut(u64) -> u64) -> Duration {
        clocked(|| {
            let mut sum = 0u64;
            for _ in 0..count {
                sum = sum.wrapping_add(find(self.next()));
            }
            black_box(sum);
        })
    }
}

/// The goals at 10, 1e3, 1e5 and 1e6.
fn goal(live: usize, goals: [f64; 4]) -> f64 {
    goals[match live {
        10 => 0,
        1_000 => 1,
        100_000 => 2,
        _ => 3,
    }]
}

/// All cases at one number of live allocations.
pub(crate) fn all(live: usize, args: &Args, give: &mut dyn FnMut(Row)) {
    let before = bytes::live();
    let mut ours = Side::<Tree<StdLock>>::fill(live);
    let plan_bytes = ours.plan.places.capacity() * 24 + ours.plan.order.capacity() * 4;
    let ours_bytes = bytes::live() - before - plan_bytes;
    let before = bytes::live();
    let mut peer = Side::<Llvm>::fill(live);
    let peer_bytes = bytes::live() - before - plan_bytes;
    let effort = match args.short {
        true => Effort { rounds: 15, round: Duration::from_millis(1) },
        false => Effort { rounds: 41, round: Duration::from_millis(3) },
    };
    let wanted = |what: &str| what.contains(&args.only);
    let mut timed = |what: &str, goals: [f64; 4], (value, peer): (Times, Times)| {
        let name = format!("{what}, {live} live");
        give(row(name, "ns", value.into(), peer.into(), goal(live, goals)));
    };

    if wanted("interior find") {
        timed("interior find", [7.5, 11.0, 18.0, 17.0], interior(&ours, &peer, effort));
    }
    if wanted("base find") {
        timed("base find, index", [2.0; 4], bases(&Side::<Indexed<StdLock>>::fill(live), &peer, effort));
        timed("base find, tree alone", [2.0; 4], bases(&ours, &peer, effort));
    }
    if live >= 1_000 && wanted("reader, 8 hot") {
        timed("reader, 8 hot", [25.0; 4], hot(&ours, &peer, effort));
    }
    if wanted("allocate and free") {
        let times = in_turn(effort, |count| ours.write(count), |count| peer.write(count));
        timed("allocate and free", [1.0, 1.7, 40.0, 300.0], times);
    }
    if wanted("mix 90/10") {
        timed(
            "mix 90/10",
            [4.0, 5.0, 15.0, 100.0],
            in_turn(effort, |count| ours.mix(count), |count| peer.mix(count)),
        );
    }
    if live == 1_000 && wanted("readers beside writers") {
        let times = beside(&mut ours, &mut peer, args.short);
        timed("readers beside writers, p99.99", [100.0; 4], times);
    }
    if wanted("bytes") {
        let each = |bytes: usize| bytes as f64 / live as f64;
        let mut bytes = |what: &str, bytes: usize| {
            let name = format!("bytes {what}, {live} live");
            give(row(name, "bytes", each(bytes).into(), each(peer_bytes).into(), 2.0));
        };
        bytes("after filling", ours_bytes);
        bytes("with the index of bases", Side::<Indexed<StdLock>>::fill(live).map.bytes());
        ours.write(live as u64 * 4);
        bytes("after churn", ours.map.bytes());
    }
}

fn row(name: String, unit: &'static str, value: Figure, baseline_value: Figure, goal: f64) -> Row {
    Row { name, value, unit, baseline: PEER, baseline_value, goal: Goal::Ratio(goal) }
}

fn interior(ours: &Side<Tree<StdLock>>, peer: &Side<Llvm>, effort: Effort) -> (Times, Times) {
    let mut rng = Rng(1);
    let mut asked =
        (Asked::new(|| ours.plan.interior(&mut rng)), Asked::new(|| peer.plan.interior(&mut rng)));
    in_turn(
        effort,
        |count| asked.0.look(count, |address| ours.map.find(address).map_or(0, |range| range.end)),
        |count| asked.1.look(count, |address| peer.map.find(address)),
    )
}

fn bases<M: Map>(ours: &Side<M>, peer: &Side<Llvm>, effort: Effort) -> (Times, Times) {
    let mut rng = Rng(2);
    let mut asked = (Asked::new(|| ours.plan.base(&mut rng)), Asked::new(|| peer.plan.base(&mut rng)));
    in_turn(
        effort,
        |count| asked.0.look(count, |address| ours.map.find_base(address)),
        |count| asked.1.look(count, |address| peer.map.find_base(address)),
    )
}

/// Addresses within eight allocations, again and again, as the arguments of a launch.
fn hot(ours: &Side<Tree<StdLock>>, peer: &Side<Llvm>, effort: Effort) -> (Times, Times) {
    let mut rng = Rng(4);
    let mut asked = |plan: &Plan| {
        let eight: [u64; 8] = std::array::from_fn(|_| plan.interior(&mut rng));
        Asked::new(|| eight[rng.below(8)])
    };
    let (mut asked_ours, mut asked_peer) = (asked(&ours.plan), asked(&peer.plan));
    let mut reader = Reader::new(&ours.map);
    in_turn(
        effort,
        |count| asked_ours.look(count, |address| reader.find(address).map_or(0, |range| range.end)),
        |count| asked_peer.look(count, |address| peer.map.find(address)),
    )
}

/// The time that one in ten thousand lookups of two readers exceeds, beside two writers; of some runs.
fn beside(ours: &mut Side<Tree<StdLock>>, peer: &mut Side<Llvm>, short: bool) -> (Times, Times) {
    let (runs, run) = if short { (3, Duration::from_millis(150)) } else { (9, Duration::from_millis(400)) };
    let (mut all_ours, mut all_peer) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        all_ours.push(tail(&ours.map, &ours.plan, run));
        all_peer.push(tail(&peer.map, &peer.plan, run));
    }
    (Times::new(all_ours), Times::new(all_peer))
}

fn tail<M: Map>(map: &M, plan: &Plan, run: Duration) -> f64 {
    let (live, stop) = (plan.live, &AtomicBool::new(false));
    let mut times: Vec<u32> = thread::scope(|scope| {
        for writer in 0..2 {
            // Each takes out and puts back what is its own.
            scope.spawn(move || {
                let mut rng = Rng(writer as u64);
                while !stop.load(Relaxed) {
                    let range = plan.at(rng.below(live / 2) * 2 + writer);
                    map.remove(range);
                    map.insert(range);
                }
            });
        }
        let readers = [10, 11].map(|seed| scope.spawn(move || reads(map, plan, Rng(seed), stop)));
        thread::sleep(run);
        stop.store(true, Relaxed);
        readers.into_iter().flat_map(|reader| reader.join().expect("readers do not panic")).collect()
    });
    times.sort_unstable();
    f64::from(times[times.len() - 1 - times.len() / 10_000])
}

fn reads<M: Map>(map: &M, plan: &Plan, mut rng: Rng, stop: &AtomicBool) -> Vec<u32> {
    let mut times = Vec::with_capacity(1 << 22);
    while !stop.load(Relaxed) && times.len() < times.capacity() {
        let address = plan.interior(&mut rng);
        let begin = Instant::now();
        black_box(map.find(address));
        times.push(begin.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32);
    }
    times
}
