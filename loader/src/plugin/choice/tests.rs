//! Patterns, what they refuse, and what is said when they fit nothing.

use super::*;
use crate::plugin::Place;
use std::ffi::OsString;

fn fits(pattern: &str, text: &str) -> bool {
    glob(pattern.as_bytes(), text.as_bytes())
}

fn surroundings(variables: &[(&'static str, &str)]) -> Surroundings {
    let variables = variables.iter().map(|(name, value)| (*name, OsString::from(value))).collect();
    Surroundings { variables, ..Surroundings::default() }
}

fn of_environment(variables: &[(&'static str, &str)]) -> Choice {
    Choice::of(&Search::default(), &surroundings(variables))
}

fn class(fate: Option<Fate>) -> Option<&'static str> {
    match fate? {
        Fate::Rejected { class, .. } => Some(class),
        other => panic!("{other}"),
    }
}

fn candidate(id: Option<&str>, fate: Fate) -> Candidate {
    let mut candidate = Candidate::new(None, &Place::LinkedIn, fate);
    candidate.id = id.map(str::to_owned);
    candidate
}

fn loaded(id: &str, devices: usize) -> Candidate {
    candidate(Some(id), Fate::Loaded { devices, reason: None })
}

#[test]
fn a_pattern_without_signs_fits_itself_only() {
    assert!(fits("host", "host"));
    assert!(!fits("host", "hosts") && !fits("host", "hos") && !fits("host", ""));
}

#[test]
fn a_star_fits_any_text_also_none() {
    assert!(fits("*", "") && fits("*", "cuda") && fits("c*", "cuda") && fits("*a", "cuda"));
    assert!(fits("c*d*", "cuda") && fits("**", "cuda") && fits("cuda*", "cuda"));
    assert!(!fits("c*x", "cuda") && !fits("x*", "cuda"));
}

#[test]
fn a_star_gives_back_what_it_took_too_much() {
    assert!(fits("*ab", "aab") && fits("*a*b", "xaab") && !fits("*ab", "aba"));
}

#[test]
fn a_question_mark_fits_one_letter() {
    assert!(fits("h?st", "host") && !fits("h?st", "hst") && !fits("?", ""));
}

#[test]
fn many_stars_take_no_longer_than_pattern_times_text() {
    let (pattern, text) = ("*a".repeat(500) + "b", "a".repeat(5000));
    assert!(!fits(&pattern, &text));
}

#[test]
fn without_a_choice_nothing_is_refused() {
    assert_eq!(of_environment(&[]).refuses("host"), None);
}

#[test]
fn what_is_not_selected_is_refused() {
    let mut choice = of_environment(&[(SELECT, "cuda,h*")]);
    assert_eq!(choice.refuses("host"), None);
    assert_eq!(choice.refuses("cuda"), None);
    assert_eq!(class(choice.refuses("null")), Some("not_selected"));
}

#[test]
fn what_is_disabled_is_refused_also_if_it_is_selected() {
    let mut choice = of_environment(&[(SELECT, "*"), (DISABLE, "null")]);
    assert_eq!(class(choice.refuses("null")), Some("disabled"));
    assert_eq!(choice.refuses("host"), None);
}

#[test]
fn blanks_around_commas_and_empty_words_are_nothing() {
    let mut choice = of_environment(&[(SELECT, " host , ,cuda,")]);
    assert_eq!(choice.refuses("host"), None);
    assert_eq!(choice.refuses("cuda"), None);
    assert!(choice.unmet(&[]).is_none());
}

#[test]
fn an_empty_variable_selects_nothing_and_forbids_nothing() {
    for empty in ["", ",", " , "] {
        let mut choice = of_environment(&[(SELECT, empty), (DISABLE, empty), (REQUIRE, empty)]);
        assert_eq!(choice.refuses("host"), None);
        assert!(choice.unmet(&[]).is_none());
    }
}

#[test]
fn what_the_program_selects_replaces_what_the_environment_selects() {
    let search = Search { select: Some(vec!["host".into()]), ..Search::default() };
    let mut choice = Choice::of(&search, &surroundings(&[(SELECT, "cuda")]));
    assert_eq!(choice.refuses("host"), None);
    assert_eq!(class(choice.refuses("cuda")), Some("not_selected"));
}

#[test]
fn what_the_program_disables_replaces_what_the_environment_disables() {
    let search = Search { disable: Some(vec!["host".into()]), ..Search::default() };
    let mut choice = Choice::of(&search, &surroundings(&[(DISABLE, "cuda")]));
    assert_eq!(choice.refuses("cuda"), None);
    assert_eq!(class(choice.refuses("host")), Some("disabled"));
}

#[test]
fn what_the_program_requires_replaces_what_the_environment_requires() {
    let search = Search { require: Some(vec![]), ..Search::default() };
    let choice = Choice::of(&search, &surroundings(&[(REQUIRE, "cuda")]));
    assert!(choice.unmet(&[]).is_none());
}

#[test]
fn only_what_is_named_follows_no_variable_of_choice() {
    let search = Search { only_named: true, ..Search::default() };
    let variables = surroundings(&[(SELECT, "cuda"), (DISABLE, "host"), (REQUIRE, "cuda")]);
    let mut choice = Choice::of(&search, &variables);
    assert_eq!(choice.refuses("host"), None);
    assert!(choice.unmet(&[]).is_none());
}

#[test]
fn with_more_rights_than_the_user_no_variable_of_choice_is_followed() {
    let mut variables = surroundings(&[(SELECT, "cuda"), (DISABLE, "host"), (REQUIRE, "cuda")]);
    variables.elevated = true;
    let mut choice = Choice::of(&Search::default(), &variables);
    assert_eq!(choice.refuses("host"), None);
    assert!(choice.unmet(&[]).is_none());
}

#[test]
fn a_pattern_that_selects_nothing_is_an_error_with_the_nearest_ids() {
    let mut choice = of_environment(&[(SELECT, "hsot")]);
    let refused = choice.refuses("host").unwrap();
    let error = choice.unmet(&[candidate(Some("host"), refused)]).unwrap();
    assert_eq!(error.kind(), ErrorKind::NoSuchPlugin);
    let text = error.to_string();
    assert!(text.contains("select") && text.contains("`hsot`") && text.contains("`host`"), "{text}");
}

#[test]
fn a_pattern_that_disables_nothing_is_an_error_with_the_nearest_ids() {
    let mut choice = of_environment(&[(DISABLE, "nul")]);
    assert_eq!(choice.refuses("null"), None);
    let text = choice.unmet(&[loaded("null", 1)]).unwrap().to_string();
    assert!(text.contains("disable") && text.contains("`nul`") && text.contains("`null`"), "{text}");
}

#[test]
fn each_pattern_must_fit_something() {
    let mut choice = of_environment(&[(SELECT, "host,cuda")]);
    assert_eq!(choice.refuses("host"), None);
    assert!(choice.unmet(&[loaded("host", 1)]).unwrap().to_string().contains("`cuda`"));
}

#[test]
fn a_plugin_that_one_pattern_disables_still_counts_for_the_one_that_selects_it() {
    let mut choice = of_environment(&[(SELECT, "host"), (DISABLE, "host")]);
    assert!(choice.refuses("host").is_some());
    assert!(choice.unmet(&[]).is_none());
}

#[test]
fn an_id_in_an_error_is_there_once() {
    let mut choice = of_environment(&[(SELECT, "x")]);
    let _ = choice.refuses("host");
    let text = choice.unmet(&[loaded("host", 1), loaded("host", 1)]).unwrap().to_string();
    assert_eq!(text.matches("`host`").count(), 1, "{text}");
}

#[test]
fn a_required_plugin_with_a_device_is_all_that_is_required() {
    assert!(of_environment(&[(REQUIRE, "host")]).unmet(&[loaded("host", 1)]).is_none());
}

#[test]
fn a_required_plugin_without_devices_is_an_error_with_its_reason() {
    let reason = Some("libcuda.so.1 is not installed".to_owned());
    let none = candidate(Some("cuda"), Fate::Loaded { devices: 0, reason });
    let error = of_environment(&[(REQUIRE, "cuda")]).unmet(&[loaded("host", 1), none]).unwrap();
    assert_eq!(error.kind(), ErrorKind::Plugin);
    assert!(error.to_string().contains("libcuda.so.1 is not installed"), "{error}");
}

#[test]
fn a_required_plugin_that_was_refused_is_an_error_with_its_reason() {
    let refused = candidate(Some("cuda"), Fate::rejected("layout", "types differ: device.count"));
    let error = of_environment(&[(REQUIRE, "cuda")]).unmet(&[refused]).unwrap();
    assert!(error.to_string().contains("types differ: device.count"), "{error}");
}

#[test]
fn a_required_plugin_that_nobody_has_is_an_error_with_the_ids_there_are() {
    let error = of_environment(&[(REQUIRE, "cuda")]).unmet(&[loaded("host", 1)]).unwrap();
    assert_eq!(error.kind(), ErrorKind::NoSuchPlugin);
    assert!(error.to_string().contains("`host`"), "{error}");
}

#[test]
fn a_required_plugin_may_be_a_file_whose_id_nobody_knows_so_those_are_told() {
    let cut = candidate(None, Fate::rejected("truncated", "cut off at 40 bytes"));
    let error = of_environment(&[(REQUIRE, "cuda")]).unmet(&[cut]).unwrap();
    assert_eq!(error.kind(), ErrorKind::Plugin);
    assert!(error.to_string().contains("cut off at 40 bytes"), "{error}");
}

#[test]
fn all_of_the_required_plugins_must_be_there() {
    let error = of_environment(&[(REQUIRE, "host,cuda")]).unmet(&[loaded("host", 1)]).unwrap();
    assert!(error.to_string().contains("`cuda`"), "{error}");
}

#[test]
fn a_required_plugin_that_is_disabled_is_an_error_that_says_so() {
    let mut choice = of_environment(&[(REQUIRE, "host"), (DISABLE, "h*")]);
    let refused = candidate(Some("host"), choice.refuses("host").unwrap());
    let error = choice.unmet(&[refused]).unwrap();
    assert!(error.to_string().contains("`h*` disables it"), "{error}");
}

#[test]
fn errors_of_choice_are_one_line() {
    let choice = of_environment(&[(REQUIRE, "a\nb")]);
    assert!(!choice.unmet(&[]).unwrap().to_string().contains('\n'));
}
