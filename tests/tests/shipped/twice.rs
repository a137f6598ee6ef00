//! One plugin found several times is used once, and the report says which and why.

use super::common::*;
use std::{fs, os::unix::fs::symlink};
use wharf_tests::wharf;

/// The first is used; the second is not, for this reason.
fn second(plugins: &Plugins, by: &str) {
    let all = plugins.all();
    assert_eq!(all.len(), 2, "{}", plugins.0);
    assert_eq!(all[0]["state"], "loaded", "{}", plugins.0);
    assert_eq!(all[1]["state"], "duplicate", "{}", plugins.0);
    let reason = all[1]["reason"].as_str().unwrap();
    assert!(reason.contains(&format!("by its {by}")), "{reason}");
    assert!(reason.contains(all[0]["file"].as_str().unwrap()), "which one came first: {reason}");
}

#[test]
fn the_same_path_twice() {
    let folder = Folder::new();
    let file = folder.host("a");
    second(&Plugins::of(wharf().arg("--plugin").arg(&file).arg("--plugin").arg(&file)), "path");
}

#[test]
fn the_same_folder_twice() {
    let folder = Folder::new();
    folder.host("a");
    second(&Plugins::of(folder.wharf().env("WHARF_PLUGIN_PATH", folder.path())), "path");
}

#[test]
fn a_path_with_two_slashes_and_dots() {
    let folder = Folder::new();
    let file = folder.host("a");
    let odd = format!("{}//./{}", folder.path().display(), file.file_name().unwrap().display());
    second(&Plugins::of(wharf().arg("--plugin").arg(&file).arg("--plugin").arg(odd)), "path");
}

#[test]
fn a_link_to_the_file() {
    let folder = Folder::new();
    symlink(folder.host("a"), folder.at("b")).unwrap();
    second(&folder.plugins(), "path");
}

#[test]
fn a_hard_link_of_the_file() {
    let folder = Folder::new();
    fs::hard_link(folder.host("a"), folder.at("b")).unwrap();
    second(&folder.plugins(), "file");
}

#[test]
fn a_copy_of_the_file() {
    let folder = Folder::new();
    folder.host("a");
    folder.host("b");
    second(&folder.plugins(), "build id");
}

#[test]
fn another_version_of_the_plugin() {
    let folder = Folder::new();
    folder.host("a");
    folder.changed("b", |bytes| {
        let id = build_id();
        replace(bytes, &id, &vec![7; id.len()]);
        let at = field(bytes, 3);
        bytes[at] = b'9';
    });
    let plugins = folder.plugins();
    second(&plugins, "id");
    assert!(plugins.one("b")["version"].as_str().unwrap().starts_with('9'));
}

#[test]
fn a_copy_takes_the_place_of_one_that_could_not_be_opened() {
    let folder = Folder::new();
    folder.changed("a", |bytes| replace(bytes, b"libc.so.6\0", b"libq.so.6\0"));
    folder.host("b");
    let plugins = folder.plugins();
    assert_eq!(plugins.class("a"), "missing_dependency");
    assert_eq!(plugins.state("b"), "loaded");
}

#[test]
fn what_is_named_goes_before_what_is_found() {
    let (named, found) = (Folder::new(), Folder::new());
    let file = named.host("z");
    found.host("a");
    let plugins = Plugins::of(found.wharf().arg("--plugin").arg(file));
    assert_eq!(plugins.state("z"), "loaded");
    assert_eq!(plugins.state("a"), "duplicate");
}

#[test]
fn the_order_is_the_same_every_time() {
    let folder = Folder::new();
    for name in ["c", "a", "b", "Z", "10", "9"] {
        folder.host(name);
    }
    let stems = |plugins: &Plugins| -> Vec<String> {
        plugins.all().iter().map(|p| p["file"].as_str().unwrap().to_owned()).collect()
    };
    let first = stems(&folder.plugins());
    let mut sorted = first.clone();
    sorted.sort();
    assert_eq!(first, sorted);
    assert_eq!(first, stems(&folder.plugins()));
}
