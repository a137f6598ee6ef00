//! Files that others may have written, links, and programs with more rights than their user.

use super::common::*;
use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown, symlink},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};
use wharf_tests::{Ran, wharf};

/// A user who is neither root nor who runs the tests.
const OTHER: u32 = 54_321;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// User and group that run this, as an own file tells them.
fn who() -> (u32, u32) {
    use std::os::unix::fs::MetadataExt;
    let facts = tempfile::NamedTempFile::new().unwrap().as_file().metadata().unwrap();
    (facts.uid(), facts.gid())
}

/// Refused, and let in on request with a note that says so.
fn refused_unless_allowed(folder: &Folder, what: &str) {
    let plugins = folder.plugins();
    assert_eq!(plugins.class("x"), "unsafe", "{}", plugins.0);
    assert!(plugins.reason("x").contains(what), "{}", plugins.reason("x"));
    assert_eq!(plugins.one("x")["id"], "host", "its record is read all the same");
    let allowed = Plugins::of(folder.wharf().env("WHARF_ALLOW_UNSAFE_PLUGINS", "1"));
    assert_eq!(allowed.state("x"), "loaded", "{}", allowed.0);
    assert!(allowed.0["notes"][0].as_str().unwrap().contains(what), "{}", allowed.0);
}

#[test]
fn a_plugin_that_everybody_writes_is_refused() {
    let folder = Folder::new();
    mode(&folder.host("x"), 0o757);
    refused_unless_allowed(&folder, "by everybody");
}

#[test]
fn a_plugin_that_its_group_writes_is_refused() {
    let (folder, (user, group)) = (Folder::new(), who());
    if user != 0 && user == group {
        return println!("skipped: the group is this user's own");
    }
    mode(&folder.host("x"), 0o775);
    refused_unless_allowed(&folder, "by its group");
}

#[test]
fn a_plugin_in_a_folder_that_everybody_writes_is_refused() {
    let folder = Folder::new();
    folder.host("x");
    mode(folder.path(), 0o777);
    refused_unless_allowed(&folder, "by everybody");
}

#[test]
fn a_plugin_below_a_folder_that_everybody_writes_is_refused() {
    let above = tempfile::tempdir().unwrap();
    let below = above.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let file = below.join("x.so");
    fs::copy(wharf_tests::host_plugin(), &file).unwrap();
    mode(&above.path().join("a"), 0o777);
    let plugins = Plugins::of(wharf().arg("--plugin").arg(file));
    assert_eq!(plugins.class("x"), "unsafe");
}

#[test]
fn the_sticky_bit_makes_a_folder_good_enough() {
    let folder = Folder::new();
    folder.host("x");
    mode(folder.path(), 0o1777);
    assert_eq!(folder.plugins().state("x"), "loaded");
}

#[test]
fn a_plugin_of_another_user_is_refused() {
    let folder = Folder::new();
    if chown(folder.host("x"), Some(OTHER), None).is_err() {
        return println!("skipped: only root gives files away");
    }
    refused_unless_allowed(&folder, "another user (54321)");
}

#[test]
fn a_plugin_in_a_folder_of_another_user_is_refused() {
    let folder = Folder::new();
    folder.host("x");
    if chown(folder.path(), Some(OTHER), None).is_err() {
        return println!("skipped: only root gives folders away");
    }
    refused_unless_allowed(&folder, "another user (54321)");
}

#[test]
fn a_plugin_that_is_not_trusted_is_never_opened() {
    let folder = Folder::new();
    let told = folder.path().join("began");
    mode(&folder.c("x", &format!("{}{}", tells(&told), refuses("x")), &[]), 0o777);
    assert_eq!(folder.plugins().class("x"), "unsafe");
    assert!(!told.exists());
}

#[test]
fn a_link_is_followed_to_the_file_and_the_file_is_what_counts() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let file = elsewhere.host("y");
    symlink(&file, folder.at("x")).unwrap();
    assert_eq!(folder.plugins().state("x"), "loaded");
    mode(&file, 0o777);
    refused_unless_allowed(&folder, "by everybody");
}

#[test]
fn a_link_into_a_folder_that_everybody_writes_is_refused() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    symlink(elsewhere.host("y"), folder.at("x")).unwrap();
    mode(elsewhere.path(), 0o777);
    refused_unless_allowed(&folder, "by everybody");
}

#[test]
fn a_link_that_leads_nowhere_is_a_line() {
    let folder = Folder::new();
    symlink("nowhere", folder.at("x")).unwrap();
    assert_eq!(folder.plugins().class("x"), "not_found");
}

#[test]
fn a_link_that_leads_to_itself_is_a_line() {
    let folder = Folder::new();
    symlink(folder.at("x"), folder.at("x")).unwrap();
    assert_eq!(folder.plugins().class("x"), "unreadable");
}

#[test]
fn the_switch_is_the_number_one_and_nothing_else() {
    let folder = Folder::new();
    mode(&folder.host("x"), 0o777);
    for value in ["", "0", "yes"] {
        let plugins = Plugins::of(folder.wharf().env("WHARF_ALLOW_UNSAFE_PLUGINS", value));
        assert_eq!(plugins.class("x"), "unsafe", "{value}");
    }
}

#[test]
fn the_note_of_the_switch_is_shown_in_words_too() {
    let folder = Folder::new();
    mode(&folder.host("x"), 0o777);
    let ran = Ran::of(folder.wharf().env("WHARF_ALLOW_UNSAFE_PLUGINS", "1").arg("plugins"));
    assert!(ran.stdout.lines().any(|line| line.starts_with("note: ")), "{}", ran.stdout);
}

/// A copy of the command that runs with root's rights, and a user who starts it.
fn elevated(folder: &Folder) -> Option<Command> {
    if who().0 != 0 {
        println!("skipped: only root can make a program that has root's rights");
        return None;
    }
    let program = folder.path().join("wharf");
    fs::copy(wharf().get_program(), &program).unwrap();
    mode(folder.path(), 0o755);
    mode(&program, 0o4755);
    let mut command = Command::new(program);
    command.uid(OTHER).env_clear();
    Some(command)
}

#[test]
fn a_program_with_more_rights_than_its_user_follows_nothing_that_the_user_sets() {
    let folder = Folder::new();
    let file = folder.host("x");
    let Some(mut command) = elevated(&folder) else { return };
    for name in ["WHARF_PLUGIN_PATH", "XDG_DATA_HOME", "HOME"] {
        command.env(name, folder.path());
    }
    command
        .env("WHARF_PLUGIN_FILES", &file)
        .env("WHARF_ALLOW_UNSAFE_PLUGINS", "1")
        .env("WHARF_REQUIRE", "none");
    command.arg("--plugin").arg(&file).arg("--plugin-path").arg(folder.path());
    let ran = Ran::of(command.args(["plugins", "--json"]));
    let json = ran.json();
    if json["plugins"].as_array().unwrap().len() > 1 {
        return println!("skipped: the file system of temporary files gives no rights");
    }
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(json["plugins"], serde_json::json!([]), "{json}");
    for place in json["searched"].as_array().unwrap() {
        assert!(place["place"].as_str().unwrap().ends_with("(system)"), "{json}");
    }
}
