//! Manners of the command: pipes that close, disks that are full, words it does not know, interrupts.
#![allow(clippy::unwrap_used, unsafe_code)]
//!
//! # Safety
//! The one unsafe call sends a signal to a child of this test.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
    time::{Duration, Instant},
};
use wharf_tests::{Ran, fixture, wharf, wharf_with_plugins};

#[test]
fn a_pipe_that_closes_ends_it_quietly() {
    let many = fixture("archives/gguf/many_tensors.gguf");
    for args in [vec!["list"], vec!["list", "--json"], vec!["info"]] {
        let mut command = wharf();
        command.args(args).arg(&many).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = wharf().arg("list").arg(fixture("digits/digits.gguf")).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"));
}

#[test]
fn a_closed_terminal_changes_nothing() {
    let ran = wharf_with_plugins()
        .arg("load")
        .arg(fixture("digits/digits.gguf"))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0));
}

#[test]
fn unknown_words_give_near_ones_and_code_2() {
    let ran = Ran::of(wharf().arg("lst"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("'list'"), "{}", ran.stderr);
    let json = Ran::of(wharf().args(["lst", "--json"]));
    assert_eq!(json.code, Some(2));
    assert_eq!(json.json()["error"]["kind"], "usage");
    assert_eq!(Ran::of(wharf().args(["load", "--timelines", "9", "x"])).code, Some(2));
    let glob = Ran::of(wharf().args(["list", "--include", "[", "--json"]).arg(fixture("digits/digits.gguf")));
    assert_eq!(glob.json()["error"]["kind"], "usage");
}

#[test]
fn a_missing_file_is_named_and_code_3() {
    let ran = Ran::of(wharf().args(["list", "/nonexistent/model.gguf", "--json"]));
    assert_eq!(ran.code, Some(3));
    assert_eq!(ran.json()["error"]["kind"], "no_such_file");
    let folder = Ran::of(wharf().args(["info", "/"]));
    assert_eq!(folder.code, Some(3));
    assert!(folder.stderr.contains("folder"), "{}", folder.stderr);
}

#[test]
fn help_has_examples_and_completions_are_written() {
    let ran = Ran::of(wharf().args(["load", "--help"]));
    assert!(ran.stdout.contains("Examples:"), "{}", ran.stdout);
    for shell in ["bash", "zsh", "fish"] {
        assert!(Ran::of(wharf().args(["completions", shell])).stdout.contains("wharf"));
    }
}

#[test]
fn quiet_is_names_only_and_include_filters() {
    let digits = fixture("digits/digits.irpa");
    let names = Ran::of(wharf().args(["list", "-q", "--include", "layer1.*"]).arg(&digits)).stdout;
    let mut names: Vec<&str> = names.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ["layer1.bias", "layer1.weight"]);
    let exact = Ran::of(wharf().args(["list", "--bytes", "--include", "images"]).arg(&digits)).stdout;
    assert!(exact.contains("115008"), "1,797 images of 64 bytes: {exact}");
}

#[test]
fn a_dry_run_says_what_would_be_done() {
    let ran = Ran::of(
        wharf_with_plugins().args(["load", "--dry-run", "--json"]).arg(fixture("digits/digits.gguf")),
    );
    let json = ran.json();
    assert_eq!((&json["tensors"], &json["fits"]), (&6.into(), &true.into()));
}

/// An archive whose load takes long enough to be interrupted: a sparse file, so that it costs no disk.
fn large_archive(folder: &std::path::Path, len: u64) -> std::path::PathBuf {
    let header = format!(r#"{{"big":{{"dtype":"U8","shape":[{len}],"data_offsets":[0,{len}]}}}}"#);
    let path = folder.join("large.safetensors");
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    fs::write(&path, &bytes).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes.len() as u64 + len).unwrap();
    path
}

#[test]
#[cfg(unix)]
fn an_interrupt_during_a_load_ends_it_with_130() {
    let folder = tempfile::tempdir().unwrap();
    let path = large_archive(folder.path(), 3 << 30);
    let mut interrupted = 0;
    for delay_ms in [30, 120, 300] {
        let mut command = wharf_with_plugins();
        command.args(["load", "--device", "host:0"]).arg(&path).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        // SAFETY: the child has not been waited for, so its number is still its own.
        assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
        let begin = Instant::now();
        let output = child.wait_with_output().unwrap();
        let took = begin.elapsed();
        if output.status.code() == Some(0) {
            continue; // A fast machine had it all.
        }
        assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
        // The design's bound is 250 ms; the test allows for a machine that runs other tests beside it.
        assert!(took < Duration::from_secs(2), "{took:?}");
        interrupted += 1;
    }
    assert!(interrupted > 0, "no load was slow enough to be interrupted");
}
