//! Plugins that are bad: one line with the reason in `plugins` and `devices`, and the others work.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::fs;
use wharf_tests::{Ran, fixture, host_plugin, kernels, test_plugin, wharf, wharf_with_plugins};

/// A folder with every kind of bad plugin and the good host plugin, which sorts in the middle.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let host = fs::read(host_plugin()).unwrap();
    fs::write(at("a_empty.so"), b"").unwrap();
    fs::write(at("b_text.so"), b"this is no library\n").unwrap();
    fs::write(at("c_cut.so"), &host[..host.len() / 2]).unwrap();
    fs::write(at("d_cut_early.so"), &host[..40]).unwrap();
    let mut other = host.clone();
    other[18] = 183; // e_machine of ELF: AArch64 (183) where x86-64 (62) was; or the other way round.
    if cfg!(target_arch = "aarch64") {
        other[18] = 62;
    }
    fs::write(at("e_machine.so"), other).unwrap();
    fs::copy(kernels(), at("f_no_entry.so")).unwrap();
    fs::copy(test_plugin("wharf_panics_plugin"), at("g_panics.so")).unwrap();
    fs::copy(host_plugin(), at("h_host.so")).unwrap();
    fs::copy(host_plugin(), at("i_host_again.so")).unwrap();
    fs::copy(test_plugin("wharf_null_plugin"), at("j_null.so")).unwrap();
    fs::write(at("readme.txt"), b"not a candidate").unwrap();
    folder
}

#[test]
fn each_bad_plugin_is_one_line_and_the_good_ones_work() {
    let folder = folder();
    let mut command = wharf();
    command.arg("--plugin-path").arg(folder.path()).args(["plugins", "--json"]);
    let json = Ran::of(&mut command).json();
    let all = json["plugins"].as_array().unwrap();
    let of = |file: &str| -> &Value {
        let mut found = all.iter().filter(|p| p["file"].as_str().unwrap().ends_with(file));
        let one = found.next().unwrap_or_else(|| panic!("{file} has no line"));
        assert!(found.next().is_none(), "{file} has two lines");
        one
    };
    let wanted = [
        ("a_empty.so", "rejected", "empty"),
        ("b_text.so", "rejected", "not_a_library"),
        ("c_cut.so", "rejected", "truncated"),
        ("d_cut_early.so", "rejected", "truncated"),
        ("e_machine.so", "rejected", "wrong_architecture"),
        ("f_no_entry.so", "rejected", "no_entry"),
        ("g_panics.so", "rejected", "panicked"),
        ("h_host.so", "loaded", ""),
        ("i_host_again.so", "duplicate", ""),
        ("j_null.so", "loaded", ""),
    ];
    for (file, state, class) in wanted {
        assert_eq!(of(file)["state"], state, "{}", of(file));
        assert_eq!(of(file)["class"].as_str().unwrap_or_default(), class, "{}", of(file));
        assert!(!of(file)["reason"].as_str().unwrap().contains('\n'), "one line");
    }
    assert_eq!(all.len(), wanted.len());
    assert!(
        of("g_panics.so")["reason"].as_str().unwrap().contains("on purpose, while starting"),
        "{}",
        of("g_panics.so")
    );
    assert!(of("i_host_again.so")["reason"].as_str().unwrap().contains("h_host.so"));
}

#[test]
fn devices_lists_the_good_ones_and_why_the_others_are_not_there() {
    let folder = folder();
    let mut command = wharf();
    command.arg("--plugin-path").arg(folder.path());
    let text = Ran::of(command.arg("devices"));
    assert_eq!(text.code, Some(0));
    assert!(text.stderr.is_empty(), "no panic message, no noise: {}", text.stderr);
    assert!(text.stdout.contains("host:0") && text.stdout.contains("null:0"), "{}", text.stdout);
    for file in ["a_empty.so", "b_text.so", "c_cut.so", "e_machine.so", "f_no_entry.so", "g_panics.so"] {
        assert_eq!(
            text.stdout.lines().filter(|line| line.contains(file)).count(),
            1,
            "{file}: {}",
            text.stdout
        );
    }
    let json = Ran::of(command.arg("--json")).json();
    assert_eq!(json["devices"].as_array().unwrap().len(), 2);
    assert_eq!(json["unavailable"].as_array().unwrap().len(), 7);
    let host = &json["devices"][0];
    for key in ["id", "backend", "name", "kind", "memory_total", "memory_free", "stable_id"] {
        assert!(!host[key].is_null(), "{key} in {host}");
    }
    assert!(host["memory_free"].as_u64() <= host["memory_total"].as_u64());
    assert!(!json["searched"].as_array().unwrap().is_empty());
}

#[test]
fn a_bad_plugin_does_not_keep_the_demo_from_its_device() {
    let folder = folder();
    let mut command = wharf();
    command.arg("--plugin-path").arg(folder.path()).arg("demo");
    command.arg("--archive").arg(fixture("digits/digits.irpa")).arg("--kernels").arg(kernels());
    let ran = Ran::of(command.arg("--expect").arg(fixture("digits/expected.json")));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn a_device_that_is_not_there_is_an_error_with_those_that_are() {
    for name in ["cuda:0", "host:7", "nonsense"] {
        let ran =
            Ran::of(wharf_with_plugins().args(["load", "--device", name]).arg(fixture("digits/digits.gguf")));
        assert_eq!(ran.code, Some(3), "{name}");
        assert!(ran.stderr.contains(name) && ran.stderr.contains("host:0"), "{}", ran.stderr);
        assert!(ran.stdout.is_empty(), "nothing was loaded elsewhere");
    }
    let json = Ran::of(
        wharf_with_plugins()
            .args(["load", "--device", "cuda:0", "--json"])
            .arg(fixture("digits/digits.gguf")),
    );
    assert_eq!(json.json()["error"]["kind"], "no_such_device");
    let none = Ran::of(wharf_with_plugins().args(["devices", "--backend", "cuda"]));
    assert_eq!(none.code, Some(6), "{}", none.stderr);
}

#[test]
fn without_any_plugin_the_places_are_named() {
    let ran = Ran::of(wharf().arg("devices"));
    assert_eq!(ran.code, Some(0), "no driver is no error");
    assert!(ran.stdout.contains("/usr/lib/wharf/plugins"), "{}", ran.stdout);
    let load = Ran::of(wharf().arg("load").arg(fixture("digits/digits.gguf")));
    assert_eq!(load.code, Some(3));
    assert!(load.stderr.contains("/usr/lib/wharf/plugins"), "{}", load.stderr);
}

#[test]
fn a_named_plugin_that_is_missing_is_a_line_of_the_report() {
    let mut command = wharf();
    command.arg("--plugin-path").arg(host_plugin().parent().unwrap());
    let ran = Ran::of(command.args(["--plugin", "/nonexistent/x.so", "plugins", "--json"]));
    let json = ran.json();
    assert_eq!(json["plugins"][0]["class"], "not_found", "{json}");
    assert_eq!(json["plugins"][1]["state"], "loaded");
}

#[test]
fn the_working_folder_is_never_searched() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(host_plugin(), folder.path().join("wharf_host_plugin.so")).unwrap();
    fs::create_dir(folder.path().join("plugins")).unwrap();
    fs::copy(host_plugin(), folder.path().join("plugins/wharf_host_plugin.so")).unwrap();
    let ran = Ran::of(
        wharf().current_dir(folder.path()).env("WHARF_PLUGIN_PATH", "::").args(["devices", "--json"]),
    );
    assert!(ran.json()["devices"].as_array().unwrap().is_empty());
}
