//! `wharf bench`: the line that other programs' scripts read, and its words.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use wharf_tests::{Ran, fixture, kernels, wharf_with_plugins};

fn bench(args: &[&str]) -> Value {
    let ran = Ran::of(wharf_with_plugins().arg("bench").args(args).args(["--device", "host:0", "--json"]));
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), 1, "one line");
    ran.json()
}

/// Seconds of each repetition, none of them nothing.
fn check(json: &Value, reps: usize) {
    let op: Vec<f64> = json["op"].as_array().unwrap().iter().map(|op| op.as_f64().unwrap()).collect();
    assert_eq!(op.len(), reps, "{json}");
    assert!(op.iter().all(|seconds| *seconds > 0.0), "{json}");
    assert_eq!(json["device"], "host:0");
}

#[test]
fn loads_of_each_kind_say_how_long_they_took() {
    for (format, op) in [("safetensors", "load"), ("gguf", "gather"), ("irpa", "gather")] {
        for io in ["auto", "mmap", "read"] {
            let file = fixture(&format!("digits/digits.{format}"));
            let json = bench(&["load", file.to_str().unwrap(), "--op", op, "--io", io, "--reps", "2"]);
            check(&json, 2);
            // The six tensors of the fixture: 1797 x 64 and 1797 bytes; (64 x 32 + 32 + 32 x 10 + 10) floats.
            assert_eq!((json["n"].as_u64(), json["bytes"].as_u64()), (Some(6), Some(126_445)), "{format}");
            assert!(json["parse"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn copies_allocations_and_launches_say_how_long_they_took() {
    for kind in ["copy", "fill", "write", "read"] {
        let json = bench(&["copy", "--size", "1MiB", "--kind", kind]);
        check(&json, 3);
        assert_eq!(json["bytes"], 1 << 20, "{kind}");
    }
    let json = bench(&["alloc", "--count", "50", "--size", "4096", "--reps", "4"]);
    check(&json, 4);
    assert_eq!((json["n"].as_u64(), json["bytes"].as_u64()), (Some(50), Some(0)));
    for each in [&[][..], &["--each"]] {
        let image = kernels().to_str().unwrap();
        let launch = ["launch", "--kernels", image, "--kernel", "noargs", "--count", "20"];
        let json = bench(&[&launch[..], each].concat());
        check(&json, 3);
        assert_eq!(json["n"], 20);
    }
}

#[test]
fn without_json_there_is_a_line_for_people() {
    let ran = Ran::of(wharf_with_plugins().args(["bench", "copy", "--size", "4KiB", "--device", "host:0"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("1 copy on host:0: ") && ran.stdout.contains("median"), "{}", ran.stdout);
    let ran = Ran::of(wharf_with_plugins().args(["bench", "lunch"]));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let ran = Ran::of(wharf_with_plugins().args(["bench", "load", "none.gguf", "--json"]));
    assert_eq!((ran.code, ran.json()["error"]["kind"].as_str()), (Some(3), Some("no_such_file")));
}
