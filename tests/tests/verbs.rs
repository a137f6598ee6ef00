//! The verbs over archives: what they say in text and JSON, exit codes, manners.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::Stdio,
};
use wharf_tests::{Ran, fixture, wharf};

fn run(args: &[&str]) -> Ran {
    Ran::of(wharf().args(args))
}

/// `$D` stands for the digits' folder, `$A` for that of the archives.
fn at(path: &str) -> String {
    fixture(&path.replace("$D", "digits").replace("$A", "archives")).to_str().unwrap().to_owned()
}

fn list(options: &[&str], path: &str) -> Vec<String> {
    let path = at(path);
    let ran = run(&[&["list", "-q"], options, &[path.as_str()]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn a_list_is_sorted_by_name_size_or_place() {
    let names = list(&["--sort", "name"], "$D/digits.gguf");
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(names, sorted);
    // 115,008 bytes of images, 8,192 and 1,280 of weights, 1,797 labels, 128 and 40 of biases.
    assert_eq!(
        list(&["--sort", "size"], "$D/digits.irpa"),
        ["images", "layer1.weight", "labels", "layer2.weight", "layer1.bias", "layer2.bias"]
    );
    assert_eq!(list(&["--sort", "offset"], "$A/gguf/offsets_not_in_order.gguf").len(), 3);
    let json = run(&["list", "--json", "--sort", "offset", &at("$A/gguf/offsets_not_in_order.gguf")]).json();
    let offsets =
        json["files"][0]["tensors"].as_array().unwrap().iter().map(|t| t["offset"].as_u64().unwrap());
    assert!(offsets.is_sorted());
}

#[test]
fn a_filter_lets_through_what_it_says() {
    let digits = |filter: &str| list(&["--sort", "name", "--filter", filter], "$D/digits.gguf");
    assert_eq!(digits("size>1kB dtype=f32"), ["layer1.weight", "layer2.weight"]);
    assert_eq!(digits("shape=[_,64]"), ["images", "layer1.weight"]);
    assert_eq!(digits("rank=1 name!=layer*"), ["labels"]);
    assert_eq!(digits("size>=8KiB size<=8192"), ["layer1.weight"]);
    assert_eq!(digits("dtype!=F32 shape=[1797,..]"), ["images", "labels"]);
    assert_eq!(list(&["--filter", "place=splat"], "$A/irpa/mixed.irpa"), ["s"]);
    let either =
        list(&["--filter", "name=labels", "--filter", "size=40", "--sort", "name"], "$D/digits.gguf");
    assert_eq!(either, ["labels", "layer2.bias"]);
    for bad in ["size", "colour=red", "size>1XB", "dtype>F32", "shape=3"] {
        let ran = run(&["list", "--json", "--filter", bad, &at("$D/digits.gguf")]);
        assert_eq!((ran.code, &ran.json()["error"]["kind"]), (Some(2), &json!("usage")), "{bad}");
    }
}

#[test]
fn metadata_is_typed_and_long_values_are_shortened_unless_asked() {
    let file = at("$A/gguf/all_kv_types.gguf");
    let json = run(&["meta", "--json", &file]).json();
    let all = json["files"][0]["metadata"].as_array().unwrap();
    let of = |key: &str| all.iter().find(|pair| pair["key"] == key).unwrap_or_else(|| panic!("{key}"));
    assert_eq!(of("corpus.scalar.u64")["value"], u64::MAX);
    assert_eq!(of("corpus.scalar.i64")["value"], i64::MIN);
    assert_eq!(of("corpus.scalar.f32")["value"], 1.5);
    assert_eq!(of("corpus.scalar.f32_nan")["value"], "nan");
    assert_eq!(of("corpus.scalar.f64_ninf")["value"], "-inf");
    assert_eq!(
        of("corpus.scalar.bool_t"),
        &json!({"key": "corpus.scalar.bool_t", "type": "bool", "value": true})
    );
    let array = of("corpus.array.u32");
    assert_eq!((&array["count"], &array["shortened"]), (&json!(10), &json!(true)));
    assert_eq!(array["elements"].as_array().unwrap().len(), 8);
    let full = run(&["meta", "--json", "--full", &file, "corpus.array.u32"]).json();
    assert_eq!(full["files"][0]["metadata"][0]["elements"].as_array().unwrap().len(), 10);
    let text = run(&["meta", &file]);
    assert!(text.stdout.contains("2 more") && !text.stdout.contains('\u{202e}'), "{}", text.stdout);
    assert_eq!(run(&["meta", "-q", &at("$D/digits.gguf"), "general.architecture"]).stdout, "digits\n");
    let nested = run(&["meta", "--json", &at("$A/gguf/nested_array.gguf")]);
    assert_eq!(nested.code, Some(0));
    let none = run(&["meta", "--json", &at("$D/digits.gguf"), "general.architectur"]);
    assert_eq!((none.code, &none.json()["error"]["kind"]), (Some(3), &json!("no_such_key")));
    assert!(none.stdout.contains("general.architecture"));
}

/// Least, greatest and mean by arithmetic over the bytes that the listing gives.
#[test]
fn a_tensor_is_shown_with_what_its_values_come_to() {
    for format in ["gguf", "safetensors"] {
        let file = at(&format!("$D/digits.{format}"));
        let shown = run(&["show", "--json", &file, "layer1.bias", "--head", "4"]).json();
        let begin = shown["offset"].as_u64().unwrap() as usize;
        let bytes = &fs::read(&file).unwrap()[begin..begin + 128];
        let values: Vec<f32> =
            bytes.chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
        let of = |key: &str| shown["values"][key].as_f64().unwrap();
        let least = values.iter().copied().fold(f32::INFINITY, f32::min);
        let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / 32.0;
        assert_eq!(of("min") as f32, least);
        assert!((of("mean") - mean).abs() < 1e-12);
        assert_eq!(shown["values"]["first"].as_array().unwrap().len(), 4);
        assert_eq!(shown["values"]["nan"], 0);
        assert_eq!(shown["hex"].as_str().unwrap().len(), 8);
        assert_eq!(shown["shape"], json!([32]));
    }
    let quantised = run(&["show", &at("$A/gguf/all_types.gguf"), "t12.q4_k"]);
    assert!(
        quantised.stdout.contains("not shown") && quantised.stdout.contains("hex"),
        "{}",
        quantised.stdout
    );
    let splat = run(&["show", "--json", &at("$A/irpa/huge_splats.irpa"), "tebibyte", "--as", "f32"]).json();
    // Pattern 00 00 80 3e: 0.25 in IEEE 754.
    assert_eq!((&splat["values"]["min"], &splat["values"]["mean"]), (&json!(0.25), &json!(0.25)));
    let untyped = run(&["show", &at("$D/digits.irpa"), "layer1.bias"]);
    assert!(untyped.stdout.contains("--as"), "{}", untyped.stdout);
}

#[test]
fn a_tensor_that_is_not_there_is_answered_with_near_names() {
    let ran = run(&["show", "--json", &at("$A/gguf/many_tensors.gguf"), "blk.0.prt.0.weight"]);
    assert_eq!((ran.code, &ran.json()["error"]["kind"]), (Some(3), &json!("no_such_tensor")));
    let error = &ran.json()["error"];
    assert!(error["message"].as_str().unwrap().contains("`blk.0.part.0.weight`"), "{error}");
    assert!(error["next"].as_str().unwrap().contains("wharf list"), "{error}");
}

#[test]
fn hashes_are_those_of_the_bytes_and_verify_knows_them_again() {
    let folder = tempfile::tempdir().unwrap();
    let hashes = folder.path().join("hashes");
    let file = at("$D/digits.safetensors");
    let listed = run(&["list", "--json", &file]).json();
    let bytes = fs::read(&file).unwrap();
    for jobs in ["1", "7"] {
        let hashed = run(&["hash", "--json", "--jobs", jobs, &file]).json();
        let pairs = hashed["files"][0]["tensors"].as_array().unwrap().iter();
        for (hash, tensor) in pairs.zip(listed["files"][0]["tensors"].as_array().unwrap()) {
            let begin = tensor["offset"].as_u64().unwrap() as usize;
            let data = &bytes[begin..begin + tensor["bytes"].as_u64().unwrap() as usize];
            let digest: String = Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!((&hash["name"], &hash["sha256"]), (&tensor["name"], &json!(digest)));
        }
        fs::write(&hashes, hashed.to_string()).unwrap();
        assert_eq!(run(&["verify", "--hashes", hashes.to_str().unwrap(), &file]).code, Some(0));
    }
    // As text, and for the same tensors in another format.
    fs::write(&hashes, run(&["hash", &file]).stdout).unwrap();
    for format in ["gguf", "irpa"] {
        let ran = run(&["verify", "--hashes", hashes.to_str().unwrap(), &at(&format!("$D/digits.{format}"))]);
        assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    }
    // One byte of the last tensor, and a tensor that is in no file.
    let changed = folder.path().join("changed.safetensors");
    let mut other = bytes.clone();
    *other.last_mut().unwrap() ^= 1;
    fs::write(&changed, other).unwrap();
    let mut text = fs::read_to_string(&hashes).unwrap();
    text.push_str(&format!("{}  lost\n", "0".repeat(64)));
    fs::write(&hashes, text).unwrap();
    let ran = run(&["verify", "--json", "--hashes", hashes.to_str().unwrap(), changed.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    let kinds: Vec<Value> = problems(&ran);
    assert_eq!(kinds, ["hash_mismatch", "not_found"]);
    fs::write(&hashes, "nonsense").unwrap();
    assert_eq!(run(&["verify", "--hashes", hashes.to_str().unwrap(), &file]).code, Some(2));
    let endless = run(&["hash", "--json", &at("$A/irpa/huge_splats.irpa")]);
    assert_eq!(endless.code, Some(0));
    assert!(endless.json()["files"][0]["tensors"].as_array().unwrap().iter().any(|t| t["sha256"].is_null()));
}

fn problems(ran: &Ran) -> Vec<Value> {
    let json = ran.json();
    let files = json["files"].as_array().unwrap();
    files.iter().flat_map(|f| f["problems"].as_array().unwrap()).map(|p| p["kind"].clone()).collect()
}

#[test]
fn verify_names_every_bad_tensor_not_only_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.safetensors");
    let header = r#"{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,8]},"c":{"dtype":"I8","shape":[9],"data_offsets":[8,17]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend([0; 12]);
    fs::write(&path, bytes).unwrap();
    let ran = run(&["verify", "--json", path.to_str().unwrap(), &at("$D/digits.gguf")]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(problems(&ran), ["unsupported_dtype", "size_mismatch", "truncated"]);
    assert_eq!((&ran.json()["ok"], &ran.json()["files"][1]["ok"]), (&json!(false), &json!(true)));
    let text = run(&["verify", path.to_str().unwrap()]);
    assert!(text.stdout.contains("3 problems") && text.stdout.contains("F99") && text.stdout.contains("`a`"));
    assert_eq!(run(&["verify", "-q", path.to_str().unwrap()]).stdout.trim(), path.to_str().unwrap());
    assert_eq!(run(&["verify", "/nonexistent.gguf"]).code, Some(3));
}

#[test]
fn verify_finds_every_malformed_archive_wanting_in_its_class() {
    let text = fs::read(fixture("archives/malformed/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&text).unwrap();
    let mut found = 0;
    for case in manifest["cases"].as_array().unwrap().iter().filter(|case| case["expect"] == "reject") {
        let id = case["id"].as_str().unwrap();
        if id == "split_second_first" {
            continue; // A part is an archive of its own.
        }
        let ran =
            run(&["verify", "--json", &at(&format!("$A/malformed/{}", case["file"].as_str().unwrap()))]);
        assert_eq!(ran.code, Some(1), "{id}: {}", ran.stdout);
        let mut allowed = vec![case["error"].clone()];
        allowed.extend(case["alt"].as_array().unwrap().iter().cloned());
        assert!(problems(&ran).iter().any(|kind| allowed.contains(kind)), "{id}: {}", ran.stdout);
        found += 1;
    }
    assert!(found > 80, "{found}");
}

#[test]
fn strict_counts_warnings() {
    for file in [
        "$A/gguf/trailing_bytes.gguf",
        "$A/safetensors/unaligned.safetensors",
        "$A/safetensors/unaligned_inside.safetensors",
    ] {
        let ran = run(&["verify", "--json", &at(file)]);
        assert_eq!(ran.code, Some(0), "{file}");
        assert!(!ran.json()["files"][0]["warnings"].as_array().unwrap().is_empty(), "{file}");
        assert_eq!(run(&["verify", "--strict", &at(file)]).code, Some(1), "{file}");
    }
    assert_eq!(run(&["verify", "--strict", &at("$D/digits.gguf")]).code, Some(0));
}

#[test]
fn archives_are_compared_across_formats() {
    for pair in [["gguf", "irpa"], ["safetensors", "irpa"], ["gguf", "gguf"]] {
        let [a, b] = pair.map(|format| at(&format!("$D/digits.{format}")));
        let ran = run(&["diff", "--json", &a, &b]);
        assert_eq!((ran.code, &ran.json()["same"]), (Some(0), &json!(6)), "{}", ran.stdout);
    }
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.irpa");
    let other = other.to_str().unwrap();
    let made = run(&[
        "convert",
        "-o",
        other,
        &at("$D/digits.gguf"),
        "--exclude=images",
        "--rename=labels=tags",
        "--splat=layer2.bias=f32=1",
    ]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let ran = run(&["diff", "--json", &at("$D/digits.gguf"), other]);
    let json = ran.json();
    assert_eq!((ran.code, &json["equal"]), (Some(1), &json!(false)));
    assert_eq!((&json["added"], json["removed"].as_array().unwrap().len()), (&json!(["tags"]), 2));
    assert_eq!(json["changed"], json!([{"name": "layer2.bias", "differs": ["content"]}]));
    let text = run(&["diff", &at("$D/digits.gguf"), other]).stdout;
    for line in ["+ tags", "- images", "~ layer2.bias: content differs"] {
        assert!(text.lines().any(|own| own == line), "{text}");
    }
    // Splats without end are compared by their patterns.
    let huge = at("$A/irpa/huge_splats.irpa");
    assert_eq!(run(&["diff", &huge, &huge]).code, Some(0));
}

/// Every type that a format knows is listed, verified and kept, whatever the device could do with it.
#[test]
fn every_type_can_be_listed_verified_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    for file in
        ["$A/safetensors/all_dtypes.safetensors", "$A/gguf/all_types.gguf", "$A/gguf/types_q8_1_q2_0.gguf"]
    {
        assert_eq!(run(&["list", &at(file)]).code, Some(0));
        assert_eq!(run(&["verify", &at(file)]).code, Some(0));
        let out = folder.path().join("out.irpa");
        assert_eq!(run(&["convert", &at(file), "-o", out.to_str().unwrap()]).code, Some(0));
        assert_eq!(run(&["diff", &at(file), out.to_str().unwrap()]).code, Some(0));
    }
    let unknown = run(&["verify", &at("$A/malformed/safetensors/s_dtype_unknown.safetensors")]);
    assert!(unknown.stdout.contains("unknown dtype"), "{}", unknown.stdout);
}

fn verbs() -> Vec<Vec<String>> {
    let many = at("$A/gguf/many_tensors.gguf");
    let safe = at("$A/safetensors/many_tensors.safetensors");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    vec![
        words(&["list", &many]),
        words(&["list", "--iree", &many]),
        words(&["info", &many]),
        words(&["meta", &at("$A/gguf/all_kv_types.gguf")]),
        words(&["show", &at("$D/digits.gguf"), "labels"]),
        words(&["verify", &many]),
        words(&["hash", &safe]),
        words(&["diff", &many, &many]),
        words(&["man"]),
    ]
}

#[test]
fn every_verb_ends_quietly_when_its_pipe_closes() {
    for args in verbs() {
        for json in [false, true] {
            let mut command = wharf();
            command.args(&args).stdout(Stdio::piped()).stderr(Stdio::piped());
            if json && args[0] != "man" && args[1] != "--iree" {
                command.arg("--json");
            }
            let mut child = command.spawn().unwrap();
            let mut first = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.status.code(), Some(0), "{args:?}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_of_every_verb() {
    for args in verbs() {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = wharf().args(&args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{args:?}");
    }
}

/// A pointer, a web page, a zip, a pickle and another format under the name of a model: every verb says which it is.
#[test]
fn a_file_that_is_no_archive_is_called_by_its_name_by_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let cases: [(&[u8], &str); 4] = [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1234567890\n", "git lfs"),
        (b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>", "html"),
        (b"PK\x03\x04\x14\x00\x00\x00\x08\x00archive/data.pkl", "pytorch"),
        (b"\x80\x02}q\x00(X\x05\x00\x00\x00modelq\x01", "pickle"),
    ];
    let file = path.to_str().unwrap();
    let out = folder.path().join("out.irpa");
    for (bytes, word) in cases {
        fs::write(&path, bytes).unwrap();
        let good = at("$D/digits.gguf");
        let verbs: [&[&str]; 6] = [
            &["meta", file],
            &["show", file, "x"],
            &["hash", file],
            &["diff", file, &good],
            &["diff", &good, file],
            &["convert", file, "-o", out.to_str().unwrap()],
        ];
        for args in verbs {
            let ran = run(args);
            assert_eq!(ran.code, Some(4), "{args:?}: {}", ran.stderr);
            assert!(ran.stderr.to_lowercase().contains(word), "{args:?}: {}", ran.stderr);
        }
        let verify = run(&["verify", file]);
        assert_eq!(verify.code, Some(1));
        assert!(verify.stdout.to_lowercase().contains(word), "{}", verify.stdout);
    }
    assert!(!Path::new(&out).exists());
}

#[test]
fn man_pages_are_written_for_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(&["man", "--dir", folder.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for page in ["wharf.1", "wharf-convert.1", "wharf-verify.1", "wharf-list.1"] {
        let text = fs::read_to_string(PathBuf::from(folder.path()).join(page)).unwrap();
        assert!(text.contains(".TH"), "{page}");
    }
    assert!(run(&["man", "convert"]).stdout.contains("rename"));
    assert_eq!(run(&["man", "convrt"]).code, Some(2));
}
