//! Vendors on their own: the tutorial's commands, as they stand there, in a folder outside this workspace.
#![allow(clippy::unwrap_used)]

use std::process::Command;
use wharf_tests::{command, root};

/// The shell blocks under a heading of the tutorial, as one script.
fn script(heading: &str) -> String {
    let text = std::fs::read_to_string(root().join("plugins/TUTORIAL.md")).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let blocks: Vec<&str> =
        section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty(), "no commands under {heading}");
    format!("set -e\n{}", blocks.concat())
}

fn run(script: &str) -> String {
    let work = tempfile::tempdir().unwrap();
    let wharf = command();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(root())
        .env("WORK", work.path())
        .env("PATH", format!("{}:{path}", wharf.parent().unwrap().display()))
        // What the kit needs was fetched when this workspace was built.
        .env("CARGO_NET_OFFLINE", "true")
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out.into_owned()
}

#[test]
fn the_tutorial_in_rust_works_as_it_stands() {
    let out = run(&script("In Rust"));
    assert!(out.contains("npu:0"), "{out}");
    let suite = out.lines().find(|line| line.contains(" passed, ")).unwrap();
    assert!(suite.contains(" passed, 0 failed, "), "{suite}");
    assert!(!suite.starts_with("0 passed"), "{suite}");
    assert!(out.lines().last().unwrap().contains("fine"), "nothing speaks against it: {out}");
}

#[test]
fn the_tutorial_in_c_works_as_it_stands() {
    if Command::new("cc").arg("--version").output().is_err()
        || Command::new("make").arg("-v").output().is_err()
    {
        eprintln!("skipped: no `cc` or no `make` is installed");
        return;
    }
    let out = run(&script("In C"));
    assert!(out.contains("npu-c:0"), "{out}");
    assert!(out.lines().last().unwrap().contains(" passed, 0 failed, "), "{out}");
}

#[test]
fn what_is_shipped_is_found_and_refused_if_it_was_changed() {
    if Command::new("cc").arg("--version").output().is_err()
        || Command::new("make").arg("-v").output().is_err()
    {
        eprintln!("skipped: no `cc` or no `make` is installed");
        return;
    }
    let ship = script("Shipping it");
    let out = run(&ship);
    let line = out.lines().find(|line| line.starts_with("npu-ship ")).unwrap();
    assert!(line.contains("loaded, 1 device"), "{out}");
    let changed =
        "printf x >> \"$WORK/plugins/npu-ship.so\"\nwharf --plugin-path \"$WORK/plugins\" plugins\n";
    let out = run(&(ship + changed));
    assert!(out.contains("not used (hash)"), "{out}");
}

#[test]
fn a_folder_that_is_there_is_not_written_into() {
    let work = tempfile::tempdir().unwrap();
    std::fs::create_dir(work.path().join("npu")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "xtask", "--", "new-plugin", "npu", "--path"])
        .arg(work.path())
        .current_dir(root())
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("is there already"));
    assert_eq!(std::fs::read_dir(work.path().join("npu")).unwrap().count(), 0);
}
