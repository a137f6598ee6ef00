//! The main job: a model from each format, through a plugin found at run time, computes the reference's answers
//! (`tests/fixtures/digits/expected.json`, made by NumPy in double precision).
#![allow(clippy::unwrap_used)]

use wharf_tests::{Ran, fixture, kernels, plugins, wharf, wharf_with_plugins};

#[test]
fn all_three_formats_give_the_reference_answers() {
    for format in ["safetensors", "gguf", "irpa"] {
        let mut command = wharf_with_plugins();
        command.arg("demo").arg("--archive").arg(fixture(&format!("digits/digits.{format}")));
        command.arg("--kernels").arg(kernels()).arg("--expect").arg(fixture("digits/expected.json"));
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, Some(0), "{format}: {}", ran.stderr);
        let last = ran.stdout.lines().last().unwrap();
        assert_eq!(last, "1797 of 1797 predictions match the reference; 1747 correct (97.2 %)", "{format}");
        assert!(ran.stdout.contains("host:0") && ran.stdout.contains("8 timelines"), "{}", ran.stdout);
        let json = Ran::of(command.arg("--json")).json();
        assert_eq!(json["matching"], 1797);
        assert_eq!(json["correct"], 1747);
    }
}

#[test]
fn the_plugin_is_found_by_option_variable_and_file() {
    let host = wharf_tests::host_plugin();
    let mut by_path = wharf();
    by_path.env("WHARF_PLUGIN_PATH", plugins());
    let mut by_files = wharf();
    by_files.env("WHARF_PLUGIN_FILES", &host);
    let mut by_file = wharf();
    by_file.arg("--plugin").arg(&host);
    for mut command in [wharf_with_plugins(), by_path, by_files, by_file] {
        let json = Ran::of(command.args(["devices", "--json"])).json();
        assert_eq!(json["devices"][0]["id"], "host:0", "{command:?}");
    }
}

#[test]
fn a_kernel_that_is_not_there_is_named_with_its_neighbours() {
    // An image with other kernels: the plugin of the null device is a library without any.
    let mut command = wharf_with_plugins();
    command.arg("demo").arg("--archive").arg(fixture("digits/digits.gguf"));
    command.arg("--kernels").arg(wharf_tests::test_plugin("wharf_null_plugin"));
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("no kernel `dense_u8`"), "{}", ran.stderr);
}

#[test]
fn an_image_that_is_none_is_refused_with_its_reason() {
    let mut command = wharf_with_plugins();
    command.arg("demo").arg("--archive").arg(fixture("digits/digits.gguf"));
    command.arg("--kernels").arg(fixture("digits/expected.json"));
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(6), "{}", ran.stderr);
    assert!(ran.stderr.contains("invalid image"), "{}", ran.stderr);
}

/// The program in the crate's documentation, built and run as it stands there.
#[test]
fn the_documented_example_runs() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.current_dir(wharf_tests::root()).args([
        "run",
        "--quiet",
        "--package",
        "wharf",
        "--example",
        "digits",
        "--",
    ]);
    command.arg(fixture("digits/digits.irpa")).arg(kernels()).env("WHARF_PLUGIN_PATH", plugins());
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // The reference's first ten predictions.
    assert_eq!(ran.stdout.trim(), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]");
}
