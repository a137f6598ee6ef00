//! Tensors in several files: those beside an archive that it names, the parts of a split model, shards of an index.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use wharf_tests::{Ran, fixture, wharf, wharf_with_plugins};

/// A copy of the archive with a tensor in `payload.bin`, without that file.
fn external() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.irpa");
    fs::copy(fixture("archives/irpa/external/external.irpa"), &path).unwrap();
    (folder, path)
}

fn load(files: &[&Path]) -> Ran {
    Ran::of(wharf_with_plugins().args(["load", "--json", "--device", "host:0"]).args(files))
}

fn kind(ran: &Ran) -> String {
    ran.json()["error"]["kind"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_tensor_in_another_file_is_loaded_and_hashed() {
    let path = fixture("archives/irpa/external/external.irpa");
    let ran = load(&[&path]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!((&ran.json()["tensors"], &ran.json()["bytes"]), (&2.into(), &160.into()));
    let hashes = Ran::of(wharf().args(["hash", "--json"]).arg(&path)).json();
    // Of the independent table.
    let table: Value = serde_json::from_slice(&fs::read(fixture("archives/expected.json")).unwrap()).unwrap();
    let file = table.as_array().unwrap().iter().find(|f| f["path"] == "irpa/external/external.irpa").unwrap();
    for (own, wanted) in
        hashes["files"][0]["tensors"].as_array().unwrap().iter().zip(file["tensors"].as_array().unwrap())
    {
        assert_eq!((&own["name"], &own["sha256"]), (&wanted["name"], &wanted["sha256"]));
    }
}

#[test]
fn a_file_that_is_missing_short_or_no_file_is_named() {
    let (folder, path) = external();
    let payload = folder.path().join("payload.bin");
    let list = || Ran::of(wharf().arg("list").arg(&path));
    let check = |wanted: &str| {
        let ran = load(&[&path]);
        assert_eq!((kind(&ran).as_str(), ran.code), (wanted, Some(4)), "{}", ran.stdout);
        assert!(ran.stdout.contains("payload.bin") && ran.stdout.contains("`ext`"), "{}", ran.stdout);
        assert_eq!(list().code, Some(0), "listing needs the archive only");
        let verify = Ran::of(wharf().args(["verify", "--json"]).arg(&path));
        assert_eq!(verify.code, Some(1));
        assert_eq!(verify.json()["files"][0]["problems"][0]["kind"], wanted);
    };
    check("missing_file");
    fs::write(&payload, [0; 191]).unwrap();
    check("out_of_range"); // The tensor ends at 64 + 128.
    fs::write(&payload, b"").unwrap();
    check("out_of_range");
    fs::remove_file(&payload).unwrap();
    fs::create_dir(&payload).unwrap();
    check("invalid_value");
    fs::remove_dir(&payload).unwrap();
    fs::write(&payload, [0; 192]).unwrap();
    assert_eq!(load(&[&path]).code, Some(0));
}

#[test]
#[cfg(unix)]
fn a_link_that_leaves_the_folder_is_refused_and_one_that_stays_is_followed() {
    use std::os::unix::fs::symlink;
    let (folder, path) = external();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("secret"), [0; 192]).unwrap();
    let payload = folder.path().join("payload.bin");
    symlink(elsewhere.path().join("secret"), &payload).unwrap();
    assert_eq!(kind(&load(&[&path])), "path_escape");
    fs::remove_file(&payload).unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data/real"), [0; 192]).unwrap();
    symlink("data/real", &payload).unwrap();
    assert_eq!(load(&[&path]).code, Some(0));
    // A pipe is not opened, which would wait for its other end.
    fs::remove_file(&payload).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&payload).status().unwrap().success());
    assert_eq!(kind(&load(&[&path])), "invalid_value");
}

#[test]
fn an_archive_in_the_working_folder_finds_its_files() {
    let folder = fixture("archives/irpa/external");
    let ran = Ran::of(wharf().current_dir(folder).args(["hash", "external.irpa"]));
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stderr);
}

fn part(number: u32) -> PathBuf {
    fixture(&format!("archives/gguf/split/model-0000{number}-of-00003.gguf"))
}

#[test]
fn a_part_is_listed_as_that_part() {
    let ran = Ran::of(wharf().arg("list").arg(part(2)));
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("part 2 of 3"), "{}", ran.stderr);
    let json = Ran::of(wharf().args(["list", "--json"]).arg(part(2))).json();
    assert_eq!(json["files"][0]["part"]["number"], 2);
    assert_eq!(json["files"][0]["part"]["count"], 3);
}

#[test]
fn all_parts_together_are_the_set() {
    let all = [part(3), part(1), part(2)];
    let ran = load(&all.each_ref().map(PathBuf::as_path));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(ran.json()["tensors"], 5);
}

#[test]
fn a_set_that_lacks_a_part_is_refused_with_its_name() {
    for given in [vec![1], vec![2, 3], vec![3]] {
        let paths: Vec<PathBuf> = given.iter().map(|number| part(*number)).collect();
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let ran = load(&paths);
        assert_eq!((kind(&ran).as_str(), ran.code), ("missing_file", Some(4)), "{}", ran.stdout);
        for missing in (1..=3).filter(|number| !given.contains(number)) {
            assert!(ran.stdout.contains(&format!("model-0000{missing}-of-00003.gguf")), "{}", ran.stdout);
        }
    }
    // Its first part is not there at all.
    let second = load(&[&fixture("archives/malformed/gguf/second-00002-of-00002.gguf")]);
    assert_eq!(kind(&second), "missing_file");
    assert!(second.stdout.contains("00001"), "{}", second.stdout);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("half.irpa");
    let ran = Ran::of(wharf().args(["convert", "--json", "-o"]).arg(&out).arg(part(1)));
    assert_eq!(kind(&ran), "missing_file");
    assert!(!out.exists());
}

#[test]
fn a_part_twice_or_of_another_set_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // The third part with the number of the second: a u16 behind the key `split.no` and the type.
    let mut bytes = fs::read(part(3)).unwrap();
    let at = bytes.windows(8).position(|w| w == b"split.no").unwrap() + 12;
    assert_eq!(bytes[at], 2);
    bytes[at] = 1;
    let twice = folder.path().join("model-00003-of-00003.gguf");
    fs::write(&twice, &bytes).unwrap();
    for number in [1, 2] {
        fs::copy(part(number), folder.path().join(part(number).file_name().unwrap())).unwrap();
    }
    let at = |number: u32| folder.path().join(part(number).file_name().unwrap());
    let ran = load(&[&at(1), &at(2), &twice]);
    assert_eq!(kind(&ran), "invalid_value", "{}", ran.stdout);
    assert!(ran.stdout.contains("part 2 of 3"), "{}", ran.stdout);
    // One that says it is of four.
    let mut bytes = fs::read(part(3)).unwrap();
    let at_count = bytes.windows(11).position(|w| w == b"split.count").unwrap() + 15;
    bytes[at_count] = 4;
    fs::write(&twice, &bytes).unwrap();
    assert_eq!(kind(&load(&[&at(1), &at(2), &twice])), "invalid_value");
}

#[test]
fn an_index_without_some_of_its_files_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let index = "model.safetensors.index.json";
    let shards = fixture("archives/safetensors/sharded");
    fs::copy(shards.join(index), folder.path().join(index)).unwrap();
    let second = "model-00002-of-00003.safetensors";
    fs::copy(shards.join(second), folder.path().join(second)).unwrap();
    let ran = load(&[&folder.path().join(index)]);
    assert_eq!(kind(&ran), "missing_file");
    for missing in ["model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"] {
        assert!(ran.stdout.contains(missing), "{}", ran.stdout);
    }
    let verify = Ran::of(wharf().args(["verify", "--json"]).arg(folder.path().join(index)));
    assert_eq!(verify.code, Some(1));
    let whole = Ran::of(wharf().args(["verify", "--json"]).arg(shards.join(index))).json();
    assert_eq!((&whole["ok"], &whole["files"][0]["tensors"]), (&true.into(), &5.into()));
}

/// What the index assigns is converted, whatever else its files hold; without the index a name twice is an error.
#[test]
fn an_index_decides_which_copy_is_converted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.irpa");
    for case in ["x_overlay", "x_extra_file"] {
        let set = fixture("archives/malformed/index").join(case);
        let convert =
            |inputs: &[PathBuf]| Ran::of(wharf().args(["convert", "--json", "-o"]).arg(&out).args(inputs));
        let ran = convert(&[set.join("model.safetensors.index.json")]);
        assert_eq!(ran.code, Some(0), "{}", ran.stdout);
        let shown = Ran::of(wharf().args(["show", "--json"]).arg(&out).arg("a")).json();
        assert_eq!(shown["hex"], "000102030405060708090a0b0c0d0e0f", "{case}");
        let mut files: Vec<PathBuf> =
            fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
        let without = convert(&files);
        let twice = if case == "x_overlay" { "duplicate_name" } else { "" };
        assert_eq!(kind(&without), twice, "{case}: {}", without.stdout);
    }
}
