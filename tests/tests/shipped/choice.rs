//! Selecting, disabling and requiring plugins, by option and by variable.

use super::common::*;
use serde_json::Value;
use std::process::Command;
use wharf_tests::{Ran, test_plugin};

/// The host and the null plugin.
fn both() -> Folder {
    let folder = Folder::new();
    folder.host("a");
    std::fs::copy(test_plugin("wharf_null_plugin"), folder.at("b")).unwrap();
    folder
}

fn devices(command: &mut Command) -> Vec<String> {
    let ran = Ran::of(command.args(["devices", "--json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    let json = ran.json();
    json["devices"].as_array().unwrap().iter().map(|d| d["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn without_a_choice_all_are_used_in_the_order_of_their_files() {
    assert_eq!(devices(&mut both().wharf()), ["host:0", "null:0"]);
}

#[test]
fn select_by_option() {
    assert_eq!(devices(both().wharf().args(["--select", "nul*"])), ["null:0"]);
}

#[test]
fn select_by_variable() {
    assert_eq!(devices(both().wharf().env("WHARF_PLUGINS_SELECT", "nul*")), ["null:0"]);
}

#[test]
fn several_patterns_select_together() {
    assert_eq!(devices(both().wharf().args(["--select", "null,h*"])), ["host:0", "null:0"]);
}

#[test]
fn disable_by_option() {
    assert_eq!(devices(both().wharf().args(["--disable", "null"])), ["host:0"]);
}

#[test]
fn disable_by_variable() {
    assert_eq!(devices(both().wharf().env("WHARF_PLUGINS_DISABLE", "null")), ["host:0"]);
}

#[test]
fn the_option_goes_before_the_variable() {
    let folder = both();
    let mut command = folder.wharf();
    command
        .env("WHARF_PLUGINS_SELECT", "null")
        .env("WHARF_PLUGINS_DISABLE", "host")
        .env("WHARF_REQUIRE", "cuda");
    command.args(["--select", "*", "--disable", "null", "--require", "host"]);
    assert_eq!(devices(&mut command), ["host:0"]);
}

#[test]
fn a_plugin_that_is_not_wanted_is_never_opened() {
    for option in ["--disable=x", "--select=host"] {
        let folder = both();
        let told = folder.path().join("began");
        folder.c("x", &format!("{}{}", tells(&told), refuses("x")), &[]);
        assert_eq!(devices(folder.wharf().arg(option))[0], "host:0");
        assert!(!told.exists(), "{option}");
    }
}

#[test]
fn the_report_says_why_a_plugin_is_not_used() {
    let folder = both();
    let plugins = Plugins::of(folder.wharf().args(["--select", "host"]));
    assert_eq!(plugins.class("b"), "not_selected");
    let plugins = Plugins::of(folder.wharf().args(["--disable", "nu??"]));
    assert_eq!(plugins.class("b"), "disabled");
    assert!(plugins.reason("b").contains("`nu??`"), "{}", plugins.reason("b"));
}

fn fails(command: &mut Command, code: i32) -> Value {
    let ran = Ran::of(command.args(["devices", "--json"]));
    assert_eq!(ran.code, Some(code), "{}", ran.stdout);
    ran.json()["error"].clone()
}

#[test]
fn a_typo_in_select_is_an_error_with_the_nearest_id() {
    let error = fails(both().wharf().args(["--select", "hots"]), 3);
    assert_eq!(error["kind"], "no_such_plugin");
    assert!(error["message"].as_str().unwrap().contains("`host`"), "{error}");
}

#[test]
fn a_typo_in_the_variable_is_an_error_too() {
    for variable in ["WHARF_PLUGINS_SELECT", "WHARF_PLUGINS_DISABLE", "WHARF_REQUIRE"] {
        assert_eq!(fails(both().wharf().env(variable, "hots"), 3)["kind"], "no_such_plugin");
    }
}

#[test]
fn a_typo_keeps_a_load_from_the_wrong_device() {
    let archive = wharf_tests::fixture("digits/digits.gguf");
    let ran = Ran::of(both().wharf().args(["--select", "cudda", "load"]).arg(archive));
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("`cudda`"), "{}", ran.stderr);
}

#[test]
fn a_required_plugin_that_is_there_changes_nothing() {
    assert_eq!(devices(both().wharf().env("WHARF_REQUIRE", "null")), ["host:0", "null:0"]);
}

#[test]
fn a_required_plugin_that_is_bad_is_an_error_with_its_reason_and_nothing_runs_elsewhere() {
    let folder = both();
    folder.c("libdriver", "WHARF_EXPORT int driver(void) { return 1; }\n", &[]);
    let source =
        format!("int driver(void);\nWHARF_EXPORT int use(void) {{ return driver(); }}\n{}", refuses("cuda"));
    folder.c("c", &source, &[&format!("-L{}", folder.path().display()), "-ldriver"]);
    std::fs::remove_file(folder.at("libdriver")).unwrap();
    let error = fails(folder.wharf().args(["--require", "cuda"]), 6);
    assert_eq!(error["kind"], "plugin");
    assert!(error["message"].as_str().unwrap().contains("`libdriver.so`"), "{error}");
}

#[test]
fn a_required_plugin_that_is_disabled_is_an_error() {
    let error = fails(both().wharf().args(["--require", "null", "--disable", "null"]), 6);
    assert!(error["message"].as_str().unwrap().contains("disables"), "{error}");
}

#[test]
fn the_list_of_plugins_is_shown_also_if_a_required_one_is_missing() {
    let folder = both();
    let ran = Ran::of(folder.wharf().args(["--require", "cuda", "plugins", "--json"]));
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.json()["plugins"].as_array().unwrap().len(), 2);
    assert!(ran.json()["unmet"].as_str().unwrap().contains("`cuda`"));
    let text = Ran::of(folder.wharf().args(["--require", "cuda", "plugins"]));
    assert!(text.stdout.contains("loaded") && text.stderr.contains("`cuda`"), "{}", text.stderr);
}
