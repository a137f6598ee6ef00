//! Failures on purpose: a call refused, operations that end late, queues that end in another order, a device that is lost.
//!
//! What is held back is released by polls, so a device under this layer says that it must be polled and that its lanes do
//! not wait for one another: a wait inside the device would see an end that core has not been shown.

use crate::call::{At, Call, Facts, Layer, Outcome};
use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use wharf_core::{
    device::{Caps, Pace, Step, op},
    env::{Lock, Mutex},
    fault::{Fault, Kind, Site, Why},
};

/// How often lanes are looked at while something may be held back.
const POLL_NS: u32 = 50_000;
/// How long `reorder` holds an end at most, unless told.
const REORDER_NS: u64 = 2_000_000;

/// Kinds of calls and operations as plans name them. `operation` is any operation.
const KINDS: [(&str, Site); 19] = [
    ("allocate", Site::Allocate),
    ("free", Site::Free),
    ("queue", Site::Queue),
    ("map", Site::Map),
    ("flush", Site::Flush),
    ("register", Site::Register),
    ("load", Site::Load),
    ("kernel", Site::Kernel),
    ("global", Site::Global),
    ("operation", Site::Submit),
    ("barrier", Site::Barrier),
    ("copy", Site::Copy),
    ("fill", Site::Fill),
    ("update", Site::Update),
    ("launch", Site::Launch),
    ("call", Site::Call),
    ("read", Site::Read),
    ("write", Site::Write),
    ("prefetch", Site::Prefetch),
];

/// What is to go wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The so-manieth call or operation of a kind fails, counted from 1.
    pub fail: Vec<(Site, u64)>,
    /// The so-manieth operation of a kind is taken, and its queue fails when it comes to its end.
    pub broken: Vec<(Site, u64)>,
    /// Operations of a kind show their end so many nanoseconds late.
    pub delay: Vec<(Site, u64)>,
    /// Each end is held back up to so many nanoseconds, so that queues end in another order.
    pub reorder_ns: Option<u64>,
    /// From the operation after so many on the device is lost.
    pub lose_after: Option<u64>,
    /// Chance begins here.
    pub seed: u64,
}

impl FaultPlan {
    /// Reads a plan: items with `+` between them.
    ///
    /// - `fail=KIND:K`: the K-th call or operation of the kind is refused,
    /// - `break=KIND:K`: the K-th operation of the kind is taken, and its queue fails at its end,
    /// - `delay=KIND:TIME`: those of the kind end late (`ns`, `us`, `ms`, `s`),
    /// - `reorder` or `reorder=TIME`: ends of different queues come in another order,
    /// - `lose=after:K`: the device is lost after K operations,
    /// - `seed=N`.
    ///
    /// # Errors
    /// What is wrong with the first item that is.
    pub fn parse(text: &str) -> Result<FaultPlan, String> {
        let mut plan = FaultPlan::default();
        for item in text.split('+').map(str::trim).filter(|item| !item.is_empty()) {
            let (what, value) = item.split_once('=').unwrap_or((item, ""));
            let of_kind = || {
                let (name, amount) =
                    value.split_once(':').ok_or(format!("`{item}`: KIND:VALUE is wanted"))?;
                let kind = KINDS.iter().find(|(known, _)| *known == name);
                let names = || KINDS.map(|(name, _)| name).join(", ");
                let kind = kind.ok_or_else(|| format!("`{item}`: no kind `{name}`; kinds: {}", names()))?;
                Ok::<_, String>((kind.1, amount))
            };
            match what {
                "fail" => {
                    let (site, nth) = of_kind()?;
                    plan.fail.push((site, number(item, nth)?.max(1)));
                }
                "break" => {
                    let (site, nth) = of_kind()?;
                    plan.broken.push((site, number(item, nth)?.max(1)));
                }
                "delay" => {
                    let (site, time) = of_kind()?;
                    plan.delay.push((site, duration(item, time)?));
                }
                "reorder" if value.is_empty() => plan.reorder_ns = Some(REORDER_NS),
                "reorder" => plan.reorder_ns = Some(duration(item, value)?),
                "lose" => {
                    let after =
                        value.strip_prefix("after:").ok_or(format!("`{item}`: lose=after:K is wanted"))?;
                    plan.lose_after = Some(number(item, after)?);
                }
                "seed" => plan.seed = number(item, value)?,
                _ => return Err(format!("`{item}`: fail, break, delay, reorder, lose or seed is wanted")),
            }
        }
        Ok(plan)
    }
}

fn number(item: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{item}`: `{text}` is not a number"))
}

fn duration(item: &str, text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let unit = match &text[digits..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(format!("`{item}`: `{text}` is not a time such as 10ms (ns, us, ms, s)")),
    };
    Ok(number(item, &text[..digits])?.saturating_mul(unit))
}

/// The layer.
pub struct Faults<L: Lock> {
    plan: FaultPlan,
    state: Mutex<L, State>,
}

#[derive(Default)]
struct State {
    /// How many of each planned failure's kind there were.
    met: Vec<u64>,
    /// The same for operations that break.
    broken: Vec<u64>,
    /// Operations taken, of each device.
    operations: BTreeMap<u16, u64>,
    lost: BTreeMap<u16, ()>,
    lanes: BTreeMap<u32, Held>,
    chance: u64,
}

/// Ends of a lane that are held back: values, when they may show, and how long after they are reached.
#[derive(Default)]
struct Held {
    ends: Vec<HeldEnd>,
    /// The value of an operation that breaks, what of it, and whether all before it has shown.
    broken: Option<(u64, Site, bool)>,
}

struct HeldEnd {
    value: u64,
    late_ns: u64,
    /// Set when the value was first seen reached.
    due_ns: Option<u64>,
}

impl<L: Lock> Faults<L> {
    /// Faults as planned.
    pub fn new(plan: FaultPlan) -> Self {
        // Xorshift stays at zero for ever.
        let chance = plan.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let (met, broken) = (plan.fail.iter().map(|_| 0).collect(), plan.broken.iter().map(|_| 0).collect());
        let state = State { met, broken, chance, ..State::default() };
        Faults { plan, state: Mutex::new(state) }
    }

    fn lost() -> Fault {
        Fault::backend(Kind::DeviceLost, Site::Submit, Why::Unknown, [0; 2])
    }

    /// The steps that go through, and the fault of the one that does not.
    fn admit(&self, state: &mut State, device: u16, steps: &[Step<'_>]) -> Outcome<()> {
        let taken = state.operations.get(&device).copied().unwrap_or(0);
        let mut met = state.met.clone();
        for (n, step) in steps.iter().enumerate() {
            if self.plan.lose_after.is_some_and(|after| taken + n as u64 >= after) {
                state.lost.insert(device, ());
                return Err((n, Self::lost()));
            }
            for ((site, nth), met) in self.plan.fail.iter().zip(&mut met) {
                if fits(*site, step) {
                    *met += 1;
                    if *met == *nth {
                        let fault = failure(site_of(step));
                        self.count(state, device, &steps[..=n]);
                        return Err((n, fault));
                    }
                }
            }
        }
        Ok(())
    }

    fn count(&self, state: &mut State, device: u16, steps: &[Step<'_>]) {
        *state.operations.entry(device).or_default() += steps.len() as u64;
        for step in steps {
            for ((site, _), met) in self.plan.fail.iter().zip(&mut state.met) {
                *met += u64::from(fits(*site, step));
            }
            for ((site, _), met) in self.plan.broken.iter().zip(&mut state.broken) {
                *met += u64::from(fits(*site, step));
            }
        }
    }

    fn holds(&self) -> bool {
        !self.plan.delay.is_empty() || !self.plan.broken.is_empty() || self.plan.reorder_ns.is_some()
    }

    /// What of these steps is to be held back.
    fn hold(&self, state: &mut State, lane: u32, steps: &[Step<'_>]) {
        let mut late_ns = 0;
        let mut met = state.broken.clone();
        let mut breaks = None;
        for step in steps {
            for ((site, nth), met) in self.plan.broken.iter().zip(&mut met) {
                *met += u64::from(fits(*site, step));
                if fits(*site, step) && *met == *nth {
                    breaks = Some(site_of(step));
                }
            }
            for (site, delay_ns) in &self.plan.delay {
                late_ns += if fits(*site, step) { *delay_ns } else { 0 };
            }
            if step.done == 0 {
                continue;
            }
            if let Some(site) = breaks.take() {
                state.lanes.entry(lane).or_default().broken.get_or_insert((step.done, site, false));
            }
            if let Some(most) = self.plan.reorder_ns {
                late_ns += chance(&mut state.chance) % most.max(1);
            }
            if late_ns > 0 {
                let end = HeldEnd { value: step.done, late_ns, due_ns: None };
                state.lanes.entry(lane).or_default().ends.push(end);
            }
            late_ns = 0;
        }
    }
}

fn chance(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn site_of(step: &Step<'_>) -> Site {
    match step.op.kind() {
        op::COPY => Site::Copy,
        op::FILL => Site::Fill,
        op::UPDATE => Site::Update,
        op::LAUNCH => Site::Launch,
        op::CALL => Site::Call,
        op::READ => Site::Read,
        op::WRITE => Site::Write,
        op::PREFETCH => Site::Prefetch,
        op::AFTER => Site::Wait,
        _ => Site::Barrier,
    }
}

fn fits(site: Site, step: &Step<'_>) -> bool {
    site == Site::Submit || site == site_of(step)
}

fn failure(site: Site) -> Fault {
    let kind = if site == Site::Allocate { Kind::ResourceExhausted } else { Kind::BackendFailure };
    Fault::backend(kind, site, Why::Unknown, [0; 2])
}

impl<L: Lock> Layer for Faults<L> {
    fn name(&self) -> &'static str {
        "faults"
    }

    fn caps(&self, caps: Caps) -> Caps {
        if !self.holds() && self.plan.lose_after.is_none() {
            return caps;
        }
        let every_ns = match caps.pace {
            Pace::Polled { every_ns } => every_ns.min(POLL_NS),
            _ => POLL_NS,
        };
        Caps { pace: Pace::Polled { every_ns }, native_wait: false, ..caps }
    }

    fn before(&self, at: &At<'_>, call: &Call<'_>) -> Outcome<()> {
        self.state.with(|state| {
            let device = at.device.number;
            if matches!(call, Call::Close | Call::Ask(_)) {
                return Ok(());
            }
            if state.lost.contains_key(&device) {
                return Err((0, Self::lost().at(call.site())));
            }
            if let Call::Submit(steps, _) = call {
                self.admit(state, device, steps)?;
                return Ok(());
            }
            let mut refused = Ok(());
            for ((site, nth), met) in self.plan.fail.iter().zip(&mut state.met) {
                if *site == call.site() {
                    *met += 1;
                    if *met == *nth {
                        refused = Err((0, failure(*site)));
                    }
                }
            }
            refused
        })?;
        // Held before the device can end them.
        if let Call::Submit(steps, _) = call
            && self.holds()
        {
            self.state.with(|state| self.hold(state, at.lane, steps));
        }
        Ok(())
    }

    fn after(&self, at: &At<'_>, call: &Call<'_>, outcome: &Outcome) {
        match call {
            Call::Submit(steps, _) => {
                let (Ok(crate::Answer::Taken(n)) | Err((n, _))) = outcome else { return };
                self.state.with(|state| {
                    self.count(state, at.device.number, &steps[..*n]);
                    let again: Vec<u64> = steps[*n..].iter().map(|step| step.done).collect();
                    if let Some(held) = state.lanes.get_mut(&at.lane).filter(|_| !again.is_empty()) {
                        held.ends.retain(|end| !again.contains(&end.value));
                        held.broken = held.broken.filter(|(value, ..)| !again.contains(value));
                    }
                });
            }
            Call::Close => {
                self.state.with(|state| state.lanes.remove(&at.lane));
            }
            _ => {}
        }
    }

    fn reach(&self, at: &At<'_>, value: u64) -> Result<u64, Fault> {
        self.state.with(|state| {
            if state.lost.contains_key(&at.device.number) {
                return Err(Self::lost());
            }
            let Some(held) = state.lanes.get_mut(&at.lane) else { return Ok(value) };
            let value = match &mut held.broken {
                Some((broken, site, true)) if value >= *broken => return Err(failure(*site)),
                Some((broken, _, before)) if value >= *broken => {
                    *before = true;
                    *broken - 1
                }
                _ => value,
            };
            let now = at.begin_ns;
            for end in held.ends.iter_mut().filter(|end| end.value <= value) {
                end.due_ns.get_or_insert(now.saturating_add(end.late_ns));
            }
            let due = |end: &HeldEnd| end.due_ns.is_some_and(|due| due <= now);
            // In order: an end that is due shows when those before it do.
            let gone = held.ends.iter().take_while(|end| due(end)).count();
            held.ends.drain(..gone);
            Ok(held.ends.first().map_or(value, |end| value.min(end.value - 1)))
        })
    }

    fn close(&self, device: &Facts) {
        self.state.with(|state| state.operations.remove(&device.number));
    }
}

impl core::fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let name = |site: Site| KINDS.iter().find(|(_, known)| *known == site).map_or("?", |(name, _)| name);
        let mut items: Vec<String> = Vec::new();
        items.extend(self.fail.iter().map(|(site, nth)| format!("fail={}:{nth}", name(*site))));
        items.extend(self.broken.iter().map(|(site, nth)| format!("break={}:{nth}", name(*site))));
        items.extend(self.delay.iter().map(|(site, ns)| format!("delay={}:{ns}ns", name(*site))));
        items.extend(self.reorder_ns.map(|ns| format!("reorder={ns}ns")));
        items.extend(self.lose_after.map(|after| format!("lose=after:{after}")));
        if self.seed != 0 {
            items.push("seed=".to_string() + &self.seed.to_string());
        }
        f.write_str(&items.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_plan_is_read_and_written_the_same() {
        let plan = FaultPlan {
            fail: vec![(Site::Allocate, 3), (Site::Submit, 1)],
            broken: vec![(Site::Launch, 2)],
            delay: vec![(Site::Copy, 10_000_000)],
            reorder_ns: Some(5_000),
            lose_after: Some(100),
            seed: 7,
        };
        let text = "fail=allocate:3+fail=operation:1+break=launch:2+delay=copy:10ms+reorder=5us+lose=after:100+seed=7";
        assert_eq!(FaultPlan::parse(text), Ok(plan.clone()));
        assert_eq!(FaultPlan::parse(&plan.to_string()), Ok(plan));
        assert_eq!(FaultPlan::parse("reorder").map(|plan| plan.reorder_ns), Ok(Some(REORDER_NS)));
    }

    #[test]
    fn what_is_wrong_with_a_plan_is_said() {
        for (text, says) in [
            ("fail=copi:1", "no kind `copi`"),
            ("fail=copy", "KIND:VALUE"),
            ("fail=copy:x", "not a number"),
            ("delay=copy:10", "not a time"),
            ("lose=100", "lose=after:K"),
            ("explode", "fail, break, delay, reorder, lose or seed"),
        ] {
            let error = FaultPlan::parse(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
