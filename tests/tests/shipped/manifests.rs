//! Manifests in folders and named as files, through the command.

use super::common::*;
use sha2::{Digest, Sha256};
use std::fs;
use wharf_tests::{host_plugin, wharf};

fn library() -> String {
    format!("a.{}", std::env::consts::DLL_EXTENSION)
}

fn pin(bytes: &[u8]) -> String {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!(r#","sha256":"{digits}""#)
}

#[test]
fn a_plugin_is_found_through_its_manifest_wherever_it_lies() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let file = elsewhere.host("a");
    let manifest = folder.manifest("m", file.to_str().unwrap(), "");
    let plugins = folder.plugins();
    assert_eq!(plugins.state("a"), "loaded");
    assert_eq!(plugins.one("a")["manifest"], manifest.to_str().unwrap());
}

#[test]
fn a_manifest_can_be_named_like_a_plugin_file() {
    let folder = Folder::new();
    folder.host("a");
    let manifest = folder.manifest("m", &library(), "");
    let plugins = Plugins::of(wharf().arg("--plugin").arg(manifest));
    assert_eq!(plugins.state("a"), "loaded");
}

#[test]
fn a_manifest_in_the_users_folder_is_followed() {
    let home = tempfile::tempdir().unwrap();
    let plugins = home.path().join("wharf/plugins");
    fs::create_dir_all(&plugins).unwrap();
    fs::copy(host_plugin(), plugins.join(library())).unwrap();
    let text =
        format!(r#"{{"file_format_version":"1","plugin":{{"id":"host","abi":"1","path":"{}"}}}}"#, library());
    fs::write(plugins.join("m.json"), text).unwrap();
    let all = Plugins::of(wharf().env("XDG_DATA_HOME", home.path()));
    assert_eq!(all.state("a"), "loaded");
    assert!(all.one("a")["manifest"].is_string());
}

#[test]
fn a_bare_path_is_never_looked_for_by_the_system() {
    let folder = Folder::new();
    folder.manifest("m", "libc.so.6", "");
    let plugins = folder.plugins();
    assert_eq!(plugins.all()[0]["class"], "not_found");
}

#[test]
fn a_pin_that_is_right_lets_the_plugin_in() {
    let folder = Folder::new();
    let file = folder.host("a");
    folder.manifest("m", &library(), &pin(&fs::read(file).unwrap()));
    assert_eq!(folder.plugins().state("a"), "loaded");
}

#[test]
fn a_pin_that_is_wrong_keeps_the_library_out_also_as_a_plain_file() {
    let folder = Folder::new();
    folder.host("a");
    folder.manifest("m", &library(), &pin(b"another"));
    let plugins = folder.plugins();
    assert_eq!(plugins.all().len(), 1, "no second way in: {}", plugins.0);
    assert_eq!(plugins.class("a"), "hash");
    assert!(plugins.reason("a").contains("sha256"));
}

#[test]
fn a_library_that_changed_under_its_pin_is_not_opened() {
    let folder = Folder::new();
    let told = folder.path().join("began");
    let good = folder.c("a", &refuses("host"), &[]);
    folder.manifest("m", &library(), &pin(&fs::read(good).unwrap()));
    folder.c("a", &format!("{}{}", tells(&told), refuses("host")), &[]);
    assert_eq!(folder.plugins().class("a"), "hash");
    assert!(!told.exists());
}

#[test]
fn an_abi_of_another_major_is_refused_by_the_manifest_alone() {
    let folder = Folder::new();
    for (abi, class) in [("2.0", "too_new"), ("0.9", "too_old")] {
        let text =
            format!(r#"{{"file_format_version":"1","plugin":{{"id":"x","abi":"{abi}","path":"none.so"}}}}"#);
        fs::write(folder.path().join("m.json"), text).unwrap();
        assert_eq!(folder.plugins().all()[0]["class"], class);
    }
}

#[test]
fn a_manifest_with_another_id_than_the_record_is_refused() {
    let folder = Folder::new();
    folder.changed("a", |bytes| {
        let at = field(bytes, 1);
        bytes[at..at + 4].copy_from_slice(b"hosp");
    });
    folder.manifest("m", &library(), "");
    let plugins = folder.plugins();
    assert_eq!(plugins.class("a"), "id_differs");
    assert!(plugins.reason("a").contains("manifest"), "{}", plugins.reason("a"));
}

#[test]
fn a_manifest_tells_the_id_of_a_library_without_record() {
    let folder = Folder::new();
    let told = folder.path().join("began");
    folder.c("a", &format!("{}{REFUSES}", tells(&told)), &[]);
    folder.manifest("m", &library(), "");
    let plugins = Plugins::of(folder.wharf().args(["--disable", "host"]));
    assert_eq!(plugins.class("a"), "disabled");
    assert!(!told.exists());
}

#[test]
fn a_manifest_that_is_no_good_is_one_line_and_the_others_work() {
    let folder = Folder::new();
    folder.host("a");
    fs::write(folder.path().join("bad.json"), b"\xef\xbb\xbf{}").unwrap();
    let plugins = folder.plugins();
    assert_eq!(plugins.state("a"), "loaded");
    assert_eq!(plugins.class("bad"), "bad_manifest");
}

#[test]
fn two_manifests_of_one_library_give_it_once() {
    let folder = Folder::new();
    folder.host("a");
    folder.manifest("m", &library(), "");
    folder.manifest("n", &format!("./{}", library()), "");
    let plugins = folder.plugins();
    let states: Vec<_> = plugins.all().iter().map(|p| p["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["loaded", "duplicate"]);
    assert!(plugins.all()[1]["reason"].as_str().unwrap().contains("by its path"), "{}", plugins.0);
}
