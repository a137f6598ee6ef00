//! What IREE's tools are known to get wrong, one test each with the right behaviour: names that are not there, patterns
//! that do not fit, values of several bytes, tensors that would be lost.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use wharf_tests::{Ran, fixture, wharf};

fn out() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.irpa");
    (folder, path)
}

fn create(out: &Path, args: &[&str]) -> Ran {
    Ran::of(wharf().args(["create", "--json", "-o"]).arg(out).args(args))
}

fn convert(out: &Path, args: &[&str]) -> Ran {
    Ran::of(wharf().args(["convert", "--json", "-o"]).arg(out).arg(fixture("digits/digits.gguf")).args(args))
}

/// Exit code, kind and message of a run that must fail and leave nothing.
fn refused(ran: &Ran, out: &Path, code: i32, kind: &str) -> String {
    assert_eq!(ran.code, Some(code), "{}", ran.stdout);
    let error = &ran.json()["error"];
    assert_eq!(error["kind"], kind, "{error}");
    assert!(!out.exists(), "nothing is left");
    error["message"].as_str().unwrap().to_owned()
}

fn tensors(path: &Path) -> Vec<Value> {
    let json = Ran::of(wharf().args(["list", "--json"]).arg(path)).json();
    json["files"][0]["tensors"].as_array().unwrap().clone()
}

/// The bytes of a tensor that is stored in a file.
fn bytes(path: &Path, name: &str) -> Vec<u8> {
    let all = tensors(path);
    let tensor = all.iter().find(|tensor| tensor["name"] == name).unwrap();
    let at = tensor["offset"].as_u64().unwrap() as usize;
    fs::read(path).unwrap()[at..at + tensor["bytes"].as_u64().unwrap() as usize].to_vec()
}

#[test]
fn data_with_a_value_of_several_bytes_is_written() {
    let (_folder, out) = out();
    assert_eq!(
        create(&out, &["--data=a=4xf32=1.5", "--data=b=2xi64=-2", "--data=c=3xi16=1,2,3"]).code,
        Some(0)
    );
    assert_eq!(bytes(&out, "a"), 1.5_f32.to_le_bytes().repeat(4));
    assert_eq!(bytes(&out, "b"), (-2_i64).to_le_bytes().repeat(2));
    assert_eq!(bytes(&out, "c"), [1, 0, 2, 0, 3, 0]);
}

#[test]
fn an_alignment_that_is_no_power_of_two_is_refused() {
    let (_folder, out) = out();
    for alignment in ["0", "3", "-1", "x", "2147483648"] {
        for option in ["--alignment", "--align"] {
            let ran = create(&out, &["--data=a=4xf32", &format!("{option}={alignment}")]);
            assert!(refused(&ran, &out, 2, "usage").contains("power of two"));
            let ran = convert(&out, &[&format!("{option}={alignment}")]);
            assert!(refused(&ran, &out, 2, "usage").contains("power of two"));
        }
    }
}

#[test]
fn an_alignment_is_kept_by_every_tensor_and_stated() {
    let (_folder, out) = out();
    for alignment in [1, 16, 4096, 65_536] {
        let ran = create(&out, &["--data=a=3xi8", "--data=b=5xi8", &format!("--alignment={alignment}")]);
        assert_eq!(ran.code, Some(0), "{}", ran.stdout);
        for tensor in tensors(&out) {
            assert_eq!(tensor["offset"].as_u64().unwrap() % alignment, 0, "{tensor}");
        }
        // Field `minimum_alignment` of the first entry: byte 52 of it, at 96.
        let file = fs::read(&out).unwrap();
        assert_eq!(u64::from_le_bytes(file[148..156].try_into().unwrap()), alignment);
    }
}

#[test]
fn names_given_twice_are_refused() {
    let (_folder, out) = out();
    for args in [["--data=a=4xf32", "--data=a=2xi8"], ["--splat=a=4xf32=1", "--data=a=2xi8"]] {
        assert!(refused(&create(&out, &args), &out, 2, "usage").contains("`a`"));
    }
}

#[test]
fn a_rename_onto_a_name_that_is_there_is_refused() {
    let (_folder, out) = out();
    let ran = convert(&out, &["--rename=images=labels"]);
    assert!(refused(&ran, &out, 4, "duplicate_name").contains("`labels`"));
    // A name that is given up can be taken.
    let ran = convert(&out, &["--rename=images=labels", "--exclude=labels"]);
    assert_eq!((ran.code, ran.json()["tensors"].as_u64()), (Some(0), Some(5)));
    // Two can change places.
    let ran = convert(&out, &["--rename=images=labels", "--rename=labels=images"]);
    assert_eq!((ran.code, ran.json()["tensors"].as_u64()), (Some(0), Some(6)));
    assert_eq!(tensors(&out).iter().find(|t| t["name"] == "images").unwrap()["bytes"], 1797);
}

#[test]
fn equal_names_from_two_inputs_are_refused() {
    let (_folder, out) = out();
    let digits = |scope: &str| format!("{scope}={}", fixture("digits/digits.irpa").display());
    let ran = Ran::of(wharf().args(["convert", "--json", "-o"]).arg(&out).args([digits("a"), digits("b")]));
    refused(&ran, &out, 4, "duplicate_name");
}

#[test]
fn names_that_are_not_there_are_errors_with_near_ones() {
    let (_folder, out) = out();
    let cases = [
        "--exclude=layer1.wight",
        "--rename=layer1.wight=x",
        "--splat=layer1.wight",
        "--splat=layer1.wight=f32=1",
        "--include=layer1.wight",
        "--exclude=*.wight",
    ];
    for option in cases {
        let message = refused(&convert(&out, &[option]), &out, 3, "no_such_tensor");
        assert!(message.contains("layer1.weight"), "{option}: {message}");
    }
}

#[test]
fn a_pattern_that_does_not_divide_its_tensor_is_refused() {
    let (_folder, out) = out();
    // 1,797 labels of one byte.
    let message = refused(&convert(&out, &["--splat=labels=i16=1"]), &out, 2, "usage");
    assert!(message.contains("1797"), "{message}");
    assert_eq!(convert(&out, &["--splat=labels=i8=7"]).code, Some(0));
    let labels = tensors(&out).into_iter().find(|tensor| tensor["name"] == "labels").unwrap();
    assert_eq!((&labels["splat"], &labels["bytes"]), (&"07".into(), &1797.into()));
}

#[test]
fn a_value_that_its_type_cannot_hold_is_refused() {
    let (_folder, out) = out();
    for data in [
        "--data=a=4xi8=300",
        "--data=a=4xf16=1e9",
        "--splat=a=4xui8=-1",
        "--data=a=4xi32=1.5",
        "--data=a=4xf33=1",
    ] {
        refused(&create(&out, &[data]), &out, 2, "usage");
    }
}

#[test]
fn an_empty_name_is_refused() {
    let (_folder, out) = out();
    for data in ["--data==4xf32", "--splat==4xf32=1"] {
        assert!(refused(&create(&out, &[data]), &out, 2, "usage").contains("empty"));
    }
    assert!(refused(&convert(&out, &["--rename=labels="]), &out, 2, "usage").contains("empty"));
}

#[test]
fn strip_makes_every_tensor_a_splat_of_zeros() {
    let (_folder, out) = out();
    assert_eq!(convert(&out, &["--strip", "--splat=labels=i8=3"]).code, Some(0));
    for tensor in tensors(&out) {
        assert_eq!(tensor["splat"], if tensor["name"] == "labels" { "03" } else { "00" });
    }
    assert_eq!(fs::metadata(&out).unwrap().len(), 4096);
}

#[test]
fn a_splat_can_have_eight_bytes_and_a_name_an_equals_sign() {
    let (_folder, out) = out();
    let made = create(&out, &["--splat=s=2x4xf64=-1.5"]);
    assert_eq!(made.json()["bytes"], 64);
    assert_eq!(tensors(&out)[0]["splat"], "000000000000f8bf");
    let renamed = convert(&out, &["--rename=labels=a=b"]);
    assert_eq!(renamed.code, Some(0));
    let again = out.with_file_name("again.irpa");
    let ran = Ran::of(wharf().args(["convert", "--json", "-o"]).arg(&again).arg(&out).arg("--rename=a=b=c"));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(tensors(&again).iter().any(|tensor| tensor["name"] == "c"));
}

#[test]
fn what_a_format_lacks_is_refused_by_tensor() {
    let (folder, _) = out();
    let out = folder.path().join("out.safetensors");
    let all = fixture("archives/gguf/all_types.gguf");
    let ran = Ran::of(wharf().args(["convert", "--json", "-o"]).arg(&out).arg(&all));
    let message = refused(&ran, &out, 5, "unsupported_dtype");
    assert!(message.contains("t02.q4_0") && message.contains("Q4_0"), "{message}");
    let some = Ran::of(wharf().args(["convert", "--json", "-o"]).arg(&out).arg(&all).arg("--include=*.f32"));
    assert_eq!(some.json()["tensors"], 1);
    for option in ["--strip", "--splat=x", "--types"] {
        let ran = Ran::of(
            wharf()
                .args(["convert", "--json", option, "-o"])
                .arg(folder.path().join("b.safetensors"))
                .arg(&all),
        );
        refused(&ran, &folder.path().join("b.safetensors"), 2, "usage");
    }
    for name in ["out", "out.gguf", "out.bin"] {
        refused(&convert(&folder.path().join(name), &[]), &folder.path().join(name), 2, "usage");
    }
}
