//! The suite itself: names and rules, what a failing case looks like, the runner's options.

use std::collections::HashSet;
use wharf_conformance::{Fail, Mode, Options, Target, case::same, cases, known::KNOWN, run};

#[test]
fn names_are_grouped_and_unique_and_every_rule_has_a_source() {
    let mut names = HashSet::new();
    for case in cases::all() {
        assert!(names.insert(case.name), "{} is there twice", case.name);
        let (group, name) = case.name.split_once('.').expect("a group and a name");
        assert!(!group.is_empty() && !name.is_empty());
        assert!(case.rule.ends_with(')') && !case.rule.contains('\n'), "{} has no source", case.name);
    }
    assert!(names.len() >= 270, "{} cases", names.len());
}

#[test]
fn known_failures_name_cases_that_are_there() {
    for known in KNOWN {
        assert!(cases::all().any(|case| case.name == known.case), "{}", known.case);
        assert!(known.modes.iter().all(|mode| Mode::from_name(mode).is_some()), "{}", known.case);
    }
}

#[test]
fn a_filter_and_modes_choose_what_runs() {
    let options = Options {
        filter: Some("timeline.begins"),
        modes: &[Mode::NoPump, Mode::Depth1],
        ..Options::default()
    };
    let report = run(&Target::Static("null"), &options).expect("it is linked in");
    let ran: Vec<_> = report.lines.iter().map(|line| (line.case, line.mode)).collect();
    assert_eq!(
        ran,
        [("timeline.begins_at_its_value", "no-pump"), ("timeline.begins_at_its_value", "depth-1")]
    );
    assert_eq!((report.passed(), report.failed(), report.skipped()), (2, 0, 0));
}

#[test]
fn a_target_that_is_not_there_is_an_error() {
    assert!(run(&Target::File("/nowhere/plugin.so".into()), &Options::default()).is_err());
    assert!(run(&Target::Static("nothing"), &Options::default()).is_err());
}

#[test]
fn a_failure_says_what_was_expected_and_where() {
    let fail = same(&[1, 2, 3], &[1, 9, 3]).expect_err("they differ");
    assert!(fail.to_string().contains("at byte 1: expected [09, 03], got [02, 03]"), "{fail}");
    assert!(fail.to_string().contains("suite.rs:"), "{fail}");
    assert!(Fail::new("x").to_string().starts_with("x ("));
}
