//! The runner: each case over a runtime of its own, in each mode; then a look at what it left.

use crate::{
    case::{Case, Fail, Outcome},
    cases,
    ctx::{Ctx, LIMIT},
    known::known,
    mode::Mode,
    report::{Line, Report, Result},
    target::{Open, Target},
};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::PoisonError,
    time::{Duration, Instant},
};

/// How long a case that is to fail may hang.
const KNOWN_LIMIT: Duration = Duration::from_millis(300);

/// What to run.
#[derive(Clone)]
pub struct Options<'a> {
    /// Only cases whose name contains this.
    pub filter: Option<&'a str>,
    /// Modes.
    pub modes: &'a [Mode],
    /// Told of each line as it comes.
    pub tell: fn(&Line),
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { filter: None, modes: &Mode::ALL, tell: |_| {} }
    }
}

/// Runs the suite on a target.
///
/// # Errors
/// Why the target cannot be opened.
pub fn run(target: &Target, options: &Options<'_>) -> std::result::Result<Report, String> {
    let open = target.open()?;
    let _alone = open.alone();
    let mut report = Report { target: target.name(), lines: Vec::new() };
    for mode in options.modes {
        for case in cases::all() {
            if options.filter.is_some_and(|part| !case.name.contains(part)) {
                continue;
            }
            let begin = Instant::now();
            let result = one(open, *mode, &case);
            let line = Line { case: case.name, mode: mode.name(), result, took: begin.elapsed() };
            (options.tell)(&line);
            report.lines.push(line);
        }
    }
    Ok(report)
}

fn one(open: &Open, mode: Mode, case: &Case) -> Result {
    let rig = open.rig(mode);
    if let Some(why) = case.needs.iter().find_map(|need| need.lack(&open.facts, &*rig)) {
        return Result::Skipped(why);
    }
    let expected = known(case.name, &open.facts, mode);
    let limit = match expected {
        None => LIMIT,
        Some(_) => KNOWN_LIMIT,
    };
    let ctx = Ctx::new(rig, open.facts, mode.pumps(), limit);
    let begin = Instant::now();
    let outcome = ctx.pumped(|| {
        let checked = caught(|| (case.check)(&ctx));
        let taken_down = ctx.take_down();
        checked.and(taken_down)
    });
    let outcome = outcome.and_then(|()| ctx.nothing_left());
    let found = std::mem::take(&mut *open.found.lock().unwrap_or_else(PoisonError::into_inner));
    let outcome = outcome.and_then(|()| silent(&found));
    let outcome = outcome.and_then(|()| in_time(begin.elapsed(), limit));
    match (outcome, expected) {
        (Ok(()), None) => Result::Passed,
        (Err(fail), None) => Result::Failed(fail.to_string()),
        (Err(fail), Some(known)) => Result::Known(known.reason.into(), fail.to_string()),
        (Ok(()), Some(known)) => {
            Result::Failed(format!("passes, but is in the table of known failures: {}", known.reason))
        }
    }
}

/// What core asks of a device breaks no rule.
fn silent(found: &[String]) -> Outcome {
    match found {
        [] => Ok(()),
        [first, ..] => Err(Fail::new(format!("validation found {} things, the first: {first}", found.len()))),
    }
}

/// A wait that is woken only by its deadline finds everything done, and says so: it was lost all the same.
fn in_time(took: Duration, limit: Duration) -> Outcome {
    if took < limit {
        return Ok(());
    }
    Err(Fail::new(format!(
        "expected an end within {limit:?}, got {took:?}: a wait was woken only by its deadline"
    )))
}

fn caught(check: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(check))
        .unwrap_or_else(|panic| Err(Fail::new(format!("panicked: {}", words(&*panic)))))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied()).unwrap_or("")
}
