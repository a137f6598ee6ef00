//! Plugins that break one rule each, beside a good one: the rule is named in one line, the good one works, nothing is lost.
//! They are compiled from C here, in moments; what ends a process is tried in children by `wharf doctor`.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};
use wharf_tests::{Ran, host_plugin, root, wharf};

/// The template's plugin with the names filled in, once.
fn source() -> Option<&'static Path> {
    static SOURCE: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    let made = SOURCE.get_or_init(|| {
        if Command::new("cc").arg("--version").output().is_err() {
            eprintln!("skipped: no `cc` is installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(root().join("plugins/template/c/plugin.c.in")).unwrap();
        let text = text.replace("@NAME@", "evil").replace("@VENDOR@", "Nobody");
        std::fs::write(folder.path().join("plugin.c"), text).unwrap();
        Some(folder)
    });
    made.as_ref().map(|folder| folder.path())
}

/// The plugin that is wrong in this way; `None`: there is no compiler, and that was said.
fn evil(how: &str, folder: &Path) -> Option<PathBuf> {
    let source = source()?;
    let plugin = folder.join(format!("{how}.so"));
    let built = Command::new("cc")
        .args(["-std=c11", "-fPIC", "-shared", "-fvisibility=hidden", "-O1", "-w"])
        .arg(format!("-DEVIL=\"{how}\""))
        .arg("-I")
        .arg(root().join("plugins/abi/include"))
        .arg("-I")
        .arg(source)
        .arg("-o")
        .arg(&plugin)
        .arg(root().join("tests/bad-plugins/evil/evil.c"))
        .arg("-lpthread")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(plugin)
}

/// What `wharf ARGS` says with this plugin and the host's.
fn with(plugin: &Path, args: &[&str]) -> Ran {
    let mut command = wharf();
    command.arg("--plugin").arg(plugin).arg("--plugin").arg(host_plugin()).args(args);
    Ran::of(&mut command)
}

/// The line of the evil plugin in `wharf plugins`, where the host plugin has to be loaded all the same.
fn line(plugin: &Path) -> Value {
    let json = with(plugin, &["plugins", "--json"]).json();
    let all = json["plugins"].as_array().unwrap().clone();
    assert!(all.iter().any(|p| p["id"] == "host" && p["state"] == "loaded"), "{json}");
    let name = plugin.file_name().unwrap().to_str().unwrap();
    all.into_iter().find(|p| p["file"].as_str().unwrap().ends_with(name)).unwrap()
}

/// It is refused with these words, in one line.
#[track_caller]
fn refused(how: &str, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let Some(plugin) = evil(how, folder.path()) else { return };
    let line = line(&plugin);
    let reason = line["reason"].as_str().unwrap();
    assert_eq!(line["state"], "rejected", "{line}");
    assert!(!reason.contains('\n') && !line["class"].is_null(), "{line}");
    for word in words {
        assert!(reason.contains(word), "`{word}` is not in: {reason}");
    }
}

/// It is loaded, and a load onto its device fails with these words while one onto the host works.
#[track_caller]
fn fails_in_use(how: &str, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let Some(plugin) = evil(how, folder.path()) else { return };
    let archive = wharf_tests::fixture("digits/digits.gguf");
    let ran = with(&plugin, &["load", archive.to_str().unwrap(), "--device", "evil:0", "--io", "mmap"]);
    assert_eq!(ran.code, Some(6), "{}{}", ran.stdout, ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is not in: {}", ran.stderr);
    }
    let ran = with(&plugin, &["load", archive.to_str().unwrap(), "--device", "host:0"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// It does no harm: its device loads as any other.
#[track_caller]
fn works(how: &str) {
    let folder = tempfile::tempdir().unwrap();
    let Some(plugin) = evil(how, folder.path()) else { return };
    let archive = wharf_tests::fixture("digits/digits.gguf");
    let ran =
        with(&plugin, &["load", archive.to_str().unwrap(), "--device", "evil:0", "--io", "mmap", "--json"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    serde_json::from_str::<Value>(&ran.stdout).unwrap_or_else(|_| panic!("not JSON alone: {}", ran.stdout));
}

macro_rules! evil {
    ($($name:ident: $check:ident($($arg:expr),*);)*) => { $(#[test] fn $name() { $check($($arg),*); })* };
}

evil! {
    a_plugin_without_a_fault_works: works("nothing");
    a_host_that_a_plugin_refuses_is_said: refused("refuses-host", &["refuse"]);
    another_magic_is_no_descriptor: refused("magic", &["magic"]);
    another_major_says_which_side_to_upgrade: refused("major", &["abi major 2", "host has 1", "upgrade the host"]);
    another_draft_says_both_numbers: refused("draft", &["draft"]);
    a_minimum_above_the_host_is_refused: refused("minimum", &["999", "upgrade the host"]);
    a_descriptor_of_no_size_is_refused: refused("size-zero", &["0"]);
    a_short_descriptor_names_what_is_missing: refused("size-short", &["size of the descriptor"]);
    a_descriptor_that_is_misaligned_is_refused: refused("odd-descriptor", &[]);
    a_short_table_names_what_is_missing: refused("table-short", &["wharf.queue"]);
    a_table_that_is_too_long_is_refused: refused("table-long", &["wharf.queue"]);
    a_table_of_another_major_is_refused: refused("table-major", &["wharf.memory", "9"]);
    a_mandatory_table_that_is_missing_is_named: refused("no-table", &["wharf.queue"]);
    a_table_that_is_null_is_named: refused("null-table", &["wharf.memory"]);
    a_table_that_is_misaligned_is_named: refused("odd-table", &["wharf.memory"]);
    a_plugin_without_open_is_refused: refused("no-open", &["open"]);
    a_plugin_without_query_is_refused: refused("no-query", &["query"]);
    a_queue_table_without_submit_is_refused: refused("no-submit", &["wharf.queue", "submit"]);
    a_memory_table_without_free_is_refused: refused("no-free", &["wharf.memory", "free"]);
    a_device_table_without_caps_is_refused: refused("no-caps", &["wharf.device", "caps"]);
    an_id_that_is_not_the_records_is_refused: refused("id-other", &["other", "evil"]);
    an_empty_id_is_refused: refused("id-empty", &["id"]);
    an_id_of_bytes_is_refused: refused("id-bytes", &["id"]);
    an_endless_id_is_refused: refused("id-long", &["id"]);
    an_id_from_nowhere_is_refused: refused("id-null", &["id"]);
    a_driver_that_is_not_there_is_a_reason: refused("refuses", &["unavailable"]);
    a_code_that_no_host_knows_is_a_failure: refused("code", &["backend failure"]);
    a_number_of_devices_beyond_reason_is_refused: refused("many", &["too many devices"]);
    a_device_with_handle_0_is_refused: refused("null-handle", &["null or twice"]);
    one_device_listed_twice_is_refused: refused("twins", &["null or twice"]);
    an_alignment_that_is_no_power_is_refused: refused("caps-align", &["alignment"]);
    a_queue_that_takes_nothing_is_refused: refused("caps-depth", &["depth"]);
    a_pace_that_nobody_knows_is_refused: refused("caps-pace", &["pace"]);
    fills_without_patterns_are_refused: refused("caps-pattern", &["pattern"]);
    updates_of_no_length_are_refused: refused("caps-update", &["update"]);
    a_property_without_end_is_no_property: works("property-length");
    a_name_of_bytes_is_shown_escaped: works("property-bytes");
    free_memory_is_never_above_the_total: free_memory();
    a_block_at_null_is_a_failure: fails_in_use("block-null", &["address 0x0"]);
    a_block_that_is_too_short_is_a_failure: fails_in_use("block-short", &["too short"]);
    a_block_past_the_last_address_is_a_failure: fails_in_use("block-wraps", &["past the address space"]);
    a_misaligned_block_is_a_failure: fails_in_use("block-misaligned", &["multiple"]);
    one_block_given_out_twice_is_a_failure: fails_in_use("block-twice", &["overlap"]);
    a_queue_with_handle_0_is_a_failure: fails_in_use("queue-zero", &["handle 0"]);
    more_taken_than_given_is_a_failure: fails_in_use("takes-more", &["more operations than it was given"]);
    a_submit_that_fails_is_a_failure: fails_in_use("submit-fails", &["backend failure"]);
    a_lost_device_is_said_once: fails_in_use("lost", &["device lost"]);
    a_tell_too_many_does_no_harm: works("tells-twice");
    a_tell_after_the_end_does_no_harm: works("tells-late");
    a_refused_free_does_no_harm_to_a_load: works("free-refused");
    a_thread_of_the_plugins_does_no_harm: works("thread-open");
}

fn free_memory() {
    let folder = tempfile::tempdir().unwrap();
    let Some(plugin) = evil("free-above-total", folder.path()) else { return };
    let json = with(&plugin, &["devices", "--json"]).json();
    let device = json["devices"].as_array().unwrap().iter().find(|d| d["id"] == "evil:0").unwrap().clone();
    assert!(device["memory_free"].as_u64() <= device["memory_total"].as_u64(), "{device}");
}

#[test]
fn a_plugin_without_devices_is_loaded_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(plugin) = evil("none", folder.path()) else { return };
    let line = line(&plugin);
    assert_eq!((&line["state"], &line["devices"]), (&"loaded".into(), &0.into()), "{line}");
}

#[test]
fn a_load_that_never_ends_is_given_up_on_an_interrupt() {
    let folder = tempfile::tempdir().unwrap();
    let Some(plugin) = evil("never", folder.path()) else { return };
    let archive = wharf_tests::fixture("digits/digits.gguf");
    let mut command = wharf();
    command.arg("--plugin").arg(&plugin).args(["load", "--device", "evil:0", "--io", "mmap"]).arg(archive);
    let mut child =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it does not end by itself");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if std::time::Instant::now() > until {
            child.kill().unwrap();
            panic!("an interrupt does not end it");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(code, Some(130));
}

/// What `wharf doctor` says of this plugin beside the host's, which has to work; its list of those set aside is in
/// `folder`.
fn doctor(plugin: &Path, folder: &Path, args: &[&str]) -> (Ran, Value) {
    let mut command = wharf();
    command.env("XDG_CACHE_HOME", folder).arg("--plugin").arg(plugin).arg("--plugin").arg(host_plugin());
    command.arg("doctor").args(args).arg("--json");
    let ran = Ran::of(&mut command);
    let json: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
    let all = json["plugins"].as_array().unwrap();
    assert!(all.iter().any(|p| p["id"] == "host" && p["state"] == "works"), "{json}");
    let name = plugin.file_name().unwrap().to_str().unwrap();
    let one = all.iter().find(|p| p["file"].as_str().unwrap().ends_with(name)).unwrap().clone();
    (ran, one)
}

/// The doctor says so, sets the plugin aside, and then nobody opens it until its file changes.
#[track_caller]
fn set_aside(how: &str, state: &str, words: &str) {
    let folder = tempfile::tempdir().unwrap();
    let Some(plugin) = evil(how, folder.path()) else { return };
    let (ran, one) = doctor(&plugin, folder.path(), &["--timeout", "3"]);
    assert_eq!((ran.code, &one["state"]), (Some(1), &state.into()), "{one}");
    assert!(one["reason"].as_str().unwrap().contains(words), "{one}");
    let plugins = |folder: &Path| {
        let mut command = wharf();
        command.env("XDG_CACHE_HOME", folder).arg("--plugin").arg(&plugin).args(["plugins", "--json"]);
        Ran::of(&mut command).json()["plugins"][0].clone()
    };
    let line = plugins(folder.path());
    assert_eq!(line["class"], "set_aside", "{line}");
    assert!(line["reason"].as_str().unwrap().contains("--forgive"), "{line}");
    // Another build of it is another trial.
    let Some(good) = evil("nothing", folder.path()) else { return };
    std::fs::copy(good, &plugin).unwrap();
    assert_eq!(plugins(folder.path())["state"], "loaded");
}

macro_rules! aside {
    ($($name:ident: $how:literal, $state:literal, $words:literal;)*) => {
        $(#[test] fn $name() { set_aside($how, $state, $words); })*
    };
}

aside! {
    an_abort_in_the_entry_is_set_aside: "abort-entry", "crashed", "signal 6";
    an_abort_while_opening_is_set_aside: "abort-open", "crashed", "signal 6";
    an_abort_while_listing_is_set_aside: "abort-list", "crashed", "signal 6";
    an_abort_while_allocating_is_set_aside: "abort-allocate", "crashed", "signal 6";
    an_abort_in_a_submit_is_set_aside: "abort-submit", "crashed", "signal 6";
    a_crash_in_the_entry_is_set_aside: "crash-entry", "crashed", "signal 11";
    a_crash_while_listing_is_set_aside: "crash-list", "crashed", "signal 11";
    a_crash_while_a_queue_is_made_is_set_aside: "crash-queue", "crashed", "signal 11";
    a_crash_in_a_poll_is_set_aside: "crash-poll", "crashed", "signal 11";
    an_exit_while_opening_is_set_aside: "exit-open", "crashed", "exit code 3";
    an_exit_in_a_submit_is_set_aside: "exit-submit", "crashed", "exit code 3";
    a_plugin_that_hangs_while_opening_is_set_aside: "hang-open", "hung", "within 3 s";
    a_plugin_that_hangs_while_listing_is_set_aside: "hang-list", "hung", "within 3 s";
    a_plugin_that_hangs_in_a_submit_is_set_aside: "hang-submit", "hung", "within 3 s";
    a_plugin_that_never_ends_its_work_is_set_aside: "never", "hung", "within 3 s";
}

#[test]
fn a_plugin_that_prints_is_heard_by_the_doctor_alone() {
    let folder = tempfile::tempdir().unwrap();
    let Some(plugin) = evil("noise-list", folder.path()) else { return };
    let (ran, one) = doctor(&plugin, folder.path(), &[]);
    assert_eq!((ran.code, &one["state"]), (Some(0), &"works".into()), "{one}");
    assert!(!ran.stdout.contains("should not print"), "{}", ran.stdout);
}

#[test]
fn what_fails_without_a_crash_is_wanting_and_not_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let Some(plugin) = evil("submit-fails", folder.path()) else { return };
    let (ran, one) = doctor(&plugin, folder.path(), &[]);
    assert_eq!((ran.code, &one["state"]), (Some(1), &"failed".into()), "{one}");
    assert!(one["devices"][0]["said"].as_str().unwrap().contains("backend failure"), "{one}");
    assert_eq!(line(&plugin)["state"], "loaded");
}

#[test]
fn a_plugin_that_was_set_aside_is_forgiven_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let Some(plugin) = evil("abort-list", folder.path()) else { return };
    assert_eq!(doctor(&plugin, folder.path(), &[]).1["state"], "crashed");
    // Forgiven, it is tried, and crashes again.
    let (ran, one) = doctor(&plugin, folder.path(), &["--forgive"]);
    assert!(ran.stderr.contains("1 taken off"), "{}", ran.stderr);
    assert_eq!(one["state"], "crashed");
}

#[test]
fn the_doctor_says_what_drivers_there_are_and_what_they_lack() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = wharf();
    command.env("XDG_CACHE_HOME", folder.path()).arg("--plugin").arg(host_plugin()).arg("doctor");
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for word in
        ["works", "host:0: works", "libcuda.so.1", "libamdhip64.so", "libze_loader.so.1", "libOpenCL.so.1"]
    {
        assert!(ran.stdout.contains(word), "`{word}` is not in: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("Max locked memory"), "{}", ran.stdout);
}
