//! The command on archives: good ones are listed as the independent table says, bad ones are refused with kind, place
//! and advice.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::{fs, path::Path, time::Instant};
use wharf_tests::{Ran, fixture, wharf, wharf_with_plugins};

fn list(file: &Path) -> Ran {
    Ran::of(wharf().args(["list", "--json"]).arg(file))
}

/// `tests/fixtures/archives/expected.json` comes from independent readers of each format.
#[test]
fn listings_are_what_independent_readers_say() {
    let table: Value = serde_json::from_slice(&fs::read(fixture("archives/expected.json")).unwrap()).unwrap();
    let (mut compared, mut tensors) = (0, 0);
    for file in table.as_array().unwrap() {
        let path = fixture("archives").join(file["path"].as_str().unwrap());
        if !path.exists() {
            continue; // Too large for a fixture; core's tests make an equal one.
        }
        let ran = list(&path);
        assert_eq!(ran.code, Some(0), "{}: {}", path.display(), ran.stdout);
        let json = ran.json();
        let files = json["files"].as_array().unwrap();
        compared += 1;
        if file["format"] == "safetensors-index" {
            assert_eq!(assigned(files), *file["weight_map"].as_object().unwrap());
            continue;
        }
        assert_eq!(files[0]["format"], file["format"]);
        let listed = files[0]["tensors"].as_array().unwrap();
        let expected = file["tensors"].as_array().unwrap();
        assert_eq!(listed.len(), expected.len(), "{}", path.display());
        for want in expected {
            let got = listed.iter().find(|t| t["name"] == want["name"]).unwrap_or_else(|| panic!("{want}"));
            assert_eq!(got["bytes"], want["length"], "{want}");
            for key in ["dtype", "shape", "offset"] {
                if !want[key].is_null() {
                    assert_eq!(got[key], want[key], "{}: {want}", path.display());
                }
            }
            if !want["pattern_hex"].is_null() {
                assert_eq!(got["splat"], want["pattern_hex"]);
                assert!(got.get("offset").is_none(), "a splat has no place");
            }
            tensors += 1;
        }
    }
    assert!(compared >= 50 && tensors > 5000, "{compared} files, {tensors} tensors");
}

/// Which file of a sharded set each tensor was listed in.
fn assigned(files: &[Value]) -> serde_json::Map<String, Value> {
    let mut map = serde_json::Map::new();
    for file in files {
        let name = Path::new(file["file"].as_str().unwrap()).file_name().unwrap().to_str().unwrap();
        for tensor in file["tensors"].as_array().unwrap() {
            map.insert(tensor["name"].as_str().unwrap().into(), name.into());
        }
    }
    map
}

#[test]
fn every_malformed_archive_is_refused_by_its_class_and_code() {
    let manifest: Value =
        serde_json::from_slice(&fs::read(fixture("archives/malformed/manifest.json")).unwrap()).unwrap();
    let mut refused = 0;
    for case in manifest["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        let begin = Instant::now();
        let ran = list(&fixture("archives/malformed").join(case["file"].as_str().unwrap()));
        assert!(begin.elapsed().as_secs() < 5, "{id} took {:?}", begin.elapsed());
        match (case["expect"].as_str().unwrap(), ran.code) {
            ("accept" | "either", Some(0)) => continue,
            ("accept", code) => panic!("{id}: good, but {code:?}: {}", ran.stdout),
            ("reject", Some(0)) if id == "split_second_first" => continue, // A part lists as that part.
            ("reject", Some(0)) => panic!("{id} was accepted"),
            _ => {}
        }
        let error = &ran.json()["error"];
        let kind = error["kind"].as_str().unwrap();
        let mut allowed = vec![case["error"].as_str().unwrap_or_default()];
        allowed.extend(case["alt"].as_array().unwrap().iter().filter_map(Value::as_str));
        assert!(allowed.contains(&kind), "{id}: {error}");
        let code = if kind.starts_with("unsupported") { 5 } else { 4 };
        assert_eq!(ran.code, Some(code), "{id}");
        for word in case["mention"].as_array().unwrap() {
            assert!(
                error["message"].as_str().unwrap().contains(word.as_str().unwrap()),
                "{id}: {error} lacks {word}"
            );
        }
        refused += 1;
    }
    assert!(refused > 80, "{refused}");
}

/// A file cut anywhere before the end of its last tensor: kind, file, what is missing, what to do.
#[test]
fn a_cut_archive_says_so_wherever_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["safetensors", "gguf", "irpa"] {
        let bytes = fs::read(fixture(&format!("digits/digits.{format}"))).unwrap();
        let ends = list(&fixture(&format!("digits/digits.{format}"))).json();
        let end = ends["files"][0]["tensors"].as_array().unwrap().iter();
        let end =
            end.map(|t| t["offset"].as_u64().unwrap() + t["bytes"].as_u64().unwrap()).max().unwrap() as usize;
        let cuts = [
            1,
            3,
            4,
            7,
            8,
            15,
            23,
            24,
            31,
            32,
            60,
            87,
            88,
            100,
            300,
            600,
            end / 2,
            end - 4096,
            end - 2,
            end - 1,
        ];
        for cut in cuts {
            let path = folder.path().join(format!("cut.{format}"));
            fs::write(&path, &bytes[..cut]).unwrap();
            let ran = list(&path);
            assert_eq!(ran.code, Some(4), "{format} cut at {cut}: {}", ran.stdout);
            let error = &ran.json()["error"];
            let kind = error["kind"].as_str().unwrap();
            assert!(
                ["truncated", "out_of_range", "bad_magic"].contains(&kind),
                "{format} cut at {cut}: {error}"
            );
            assert!(kind != "bad_magic" || cut < 8, "{format} cut at {cut}: {error}");
            assert_eq!(error["file"].as_str(), path.to_str());
            assert!(error["next"].as_str().is_some_and(|next| !next.is_empty()), "{error}");
        }
        fs::write(folder.path().join("whole"), &bytes[..end]).unwrap();
        let whole = list(&folder.path().join("whole"));
        assert_eq!(
            whole.code,
            Some(if format == "irpa" && end < bytes.len() { whole.code.unwrap() } else { 0 })
        );
    }
}

#[test]
fn what_is_no_archive_is_called_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&str, &[u8], &str); 5] = [
        (
            "lfs",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1234567890\n",
            "1234567890",
        ),
        ("html", b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>", "HTML"),
        ("zip", b"PK\x03\x04\x14\x00\x00\x00\x08\x00archive/data.pkl", "PyTorch"),
        ("pickle", b"\x80\x02}q\x00(X\x05\x00\x00\x00modelq\x01", "pickle"),
        ("empty", b"", "empty"),
    ];
    for (name, bytes, word) in cases {
        let path = folder.path().join(format!("{name}.safetensors"));
        fs::write(&path, bytes).unwrap();
        for verb in ["list", "info"] {
            let ran = Ran::of(wharf().arg(verb).arg(&path));
            assert_eq!(ran.code, Some(4), "{name}: {}", ran.stderr);
            let words = ran.stderr.to_lowercase();
            assert!(words.contains(&word.to_lowercase()), "{name}: {}", ran.stderr);
            assert!(ran.stdout.is_empty(), "nothing on stdout but results");
        }
    }
}

#[test]
fn names_with_control_codes_are_escaped_in_tables_and_exact_in_json() {
    for name in ["gguf/g_name_escape_codes.gguf", "safetensors/s_name_escape_codes.safetensors"] {
        let path = fixture("archives/malformed").join(name);
        let table = Ran::of(wharf().arg("list").arg(&path));
        assert_eq!(table.code, Some(0), "{}", table.stderr);
        assert!(!table.stdout.contains('\u{1b}'), "{name}");
        assert!(list(&path).stdout.contains("\\u001b"), "{name}");
    }
}

#[test]
fn a_sharded_set_is_what_its_index_assigns() {
    let overlay = list(&fixture("archives/malformed/index/x_overlay/model.safetensors.index.json"));
    let json = overlay.json();
    let one = json["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["file"].as_str().unwrap().ends_with("one.safetensors"));
    assert!(one.unwrap()["tensors"].as_array().unwrap().iter().any(|t| t["name"] == "a"));
    let two = json["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["file"].as_str().unwrap().ends_with("two.safetensors"));
    assert!(
        !two.unwrap()["tensors"].as_array().unwrap().iter().any(|t| t["name"] == "a"),
        "the other copy is not part"
    );
    let folder = fixture("archives/malformed/index/x_overlay");
    let both = Ran::of(
        wharf()
            .arg("list")
            .arg("--json")
            .arg(folder.join("one.safetensors"))
            .arg(folder.join("two.safetensors")),
    );
    assert_eq!(both.json()["error"]["kind"], "duplicate_name", "without the index a name twice is an error");
}

#[test]
fn a_tensor_without_end_is_listed_and_too_large_to_load() {
    let path = fixture("archives/malformed/irpa/i_splat_2_63.irpa");
    assert_eq!(list(&path).code, Some(0));
    let ran = Ran::of(wharf_with_plugins().args(["load", "--device", "host:0", "--json"]).arg(&path));
    assert_eq!(ran.code, Some(7), "{}", ran.stdout);
    assert_eq!(ran.json()["error"]["kind"], "out_of_memory");
}

#[test]
fn scopes_keep_equal_names_apart() {
    let digits = fixture("digits/digits.safetensors");
    let given = |scope: &str| format!("{scope}={}", digits.display());
    let ran = Ran::of(wharf_with_plugins().args(["load", "--json"]).arg(given("a")).arg(given("b")));
    assert_eq!(ran.json()["tensors"], 12, "{}", ran.stderr);
    assert!(ran.stderr.contains("using host:0"), "auto says what it chose");
}
