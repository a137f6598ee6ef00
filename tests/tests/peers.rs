//! A second opinion on what the command writes: independent readers of each format, from their Python packages. They
//! are installed into a folder of the build, which takes a network; so this runs only if `WHARF_PEERS=1` asks for it, as
//! `cargo xtask ci --full` does.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};
use wharf_tests::{Ran, fixture, root, wharf};

const PACKAGES: [&str; 4] = ["numpy", "safetensors", "gguf", "iree-base-runtime"];

/// The Python that has the readers; none, with the reason on stderr, where they are not wanted or not to be had.
fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let python = PYTHON.get_or_init(|| {
        if env::var("WHARF_PEERS").as_deref() != Ok("1") {
            eprintln!("skipped: WHARF_PEERS=1 asks for independent readers, which are installed then");
            return None;
        }
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        let folder = target.join("peers");
        let python = folder.join("bin/python");
        let run = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let there =
            || run(Command::new(&python).args(["-c", "import numpy, safetensors, gguf, iree.runtime"]));
        if !there() {
            let made = run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
            let installed =
                made && run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES));
            if !installed || !there() {
                eprintln!("skipped: {} cannot be installed into {}", PACKAGES.join(", "), folder.display());
                return None;
            }
        }
        Some(python)
    });
    python.as_deref()
}

type Hashes = BTreeMap<String, String>;

fn theirs(python: &Path, file: &Path) -> Hashes {
    read(python, file, &[])
}

fn read(python: &Path, file: &Path, options: &[&str]) -> Hashes {
    let script = root().join("tests/tests/peers.py");
    let ran = Ran::of(Command::new(python).arg(script).arg(file).args(options));
    assert_eq!(ran.code, Some(0), "{}: {}", file.display(), ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn ours(file: &Path) -> Hashes {
    let json = Ran::of(wharf().args(["hash", "--json"]).arg(file)).json();
    let pair = |t: &Value| (t["name"].as_str().unwrap().to_owned(), t["sha256"].as_str().unwrap().to_owned());
    json["files"][0]["tensors"].as_array().unwrap().iter().map(pair).collect()
}

/// One test, since runners start each in a process of its own, and the readers are installed once.
#[test]
fn independent_readers_find_the_same_tensors_in_what_is_written() {
    let Some(python) = python() else { return };
    types_and_shapes_are_kept(python);
    let folder = tempfile::tempdir().unwrap();
    let files = [
        "digits/digits.gguf",
        "digits/digits.safetensors",
        "digits/digits.irpa",
        "archives/gguf/many_tensors.gguf",
        "archives/gguf/all_types.gguf",
        "archives/safetensors/all_dtypes.safetensors",
        "archives/safetensors/names.safetensors",
        "archives/irpa/mixed.irpa",
        "archives/irpa/splats.irpa",
        "archives/irpa/external/external.irpa",
    ];
    let mut compared = 0;
    for file in files {
        let source = fixture(file);
        let expected = ours(&source);
        for extension in ["irpa", "safetensors"] {
            if file.contains("all_types") && extension == "safetensors" {
                continue; // A format without quantised types.
            }
            let out = folder.path().join(format!("out.{extension}"));
            let ran = Ran::of(wharf().args(["convert", "-q", "-o"]).arg(&out).arg(&source));
            assert_eq!(ran.code, Some(0), "{file}: {}", ran.stderr);
            assert!(theirs(python, &out) == expected, "{file} as {extension}");
            compared += 1;
        }
    }
    assert_eq!(compared, 19);
    // What is read is what the reader of its own makers reads.
    for file in ["digits/digits.gguf", "archives/gguf/many_tensors.gguf"] {
        assert!(theirs(python, &fixture(file)) == ours(&fixture(file)), "{file}");
    }
}

/// IREE's Python makes typed arrays of what `--types` keeps.
fn types_and_shapes_are_kept(python: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.irpa");
    let ran = Ran::of(
        wharf().args(["convert", "--types", "-q", "-o"]).arg(&out).arg(fixture("digits/digits.gguf")),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let typed = read(python, &out, &["typed"]);
    assert_eq!(typed["layer1.weight"], "float32 [32, 64]");
    assert_eq!(typed["images"], "int8 [1797, 64]");
}
