//! Runs the suite on a target in a mode as one test.

use std::fmt::Write;
use wharf_conformance::{Mode, Options, Result, Target, run};

/// Asserts that nothing fails, and with `whole` that nothing is skipped.
pub(crate) fn suite(target: &Target, mode: Mode, whole: bool) {
    let options = Options { modes: &[mode], ..Options::default() };
    let report = run(target, &options).unwrap_or_else(|why| panic!("{}: {why}", target.name()));
    let mut wrong = String::new();
    for line in &report.lines {
        let bad = match &line.result {
            Result::Failed(_) => true,
            Result::Skipped(_) => whole,
            _ => false,
        };
        if bad {
            writeln!(wrong, "{line}").expect("a string takes all");
        }
    }
    assert!(wrong.is_empty(), "{}, {mode}: {}\n{wrong}", target.name(), report.summary());
    println!("{}, {mode}: {}", target.name(), report.summary());
}
