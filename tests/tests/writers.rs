//! Archives that the command writes: round trips of every fixture, places as in IREE's own files, and what happens when
//! writing goes wrong.
#![allow(clippy::unwrap_used, unsafe_code)]
//!
//! # Safety
//! The unsafe calls set a limit and a disposition of signals between fork and exec, with functions that are allowed there.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};
use wharf_tests::{Ran, fixture, wharf};

fn run(args: &[&str]) -> Ran {
    Ran::of(wharf().args(args))
}

/// A run that must do what it was asked.
fn done(args: &[&str]) -> Ran {
    let ran = run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// All tensors that a list gives, of all its files.
fn listed(path: &Path) -> Vec<Value> {
    let json = done(&["list", "--json", text(path)]).json();
    let files = json["files"].as_array().unwrap();
    files.iter().flat_map(|file| file["tensors"].as_array().unwrap().clone()).collect()
}

/// The fixtures that an independent reader described.
fn table() -> Vec<Value> {
    let text = fs::read(fixture("archives/expected.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Name and hash of the tensors of a fixture, those in other files and splats too.
fn hashes_of(file: &Value) -> Vec<(String, String)> {
    let all = file["tensors"].as_array().into_iter().flatten();
    let pair = |t: &Value| Some((t["name"].as_str()?.to_owned(), t["sha256"].as_str()?.to_owned()));
    all.filter_map(pair).collect()
}

/// The same of a written archive, as its bytes are there.
fn hashes_in(path: &Path) -> Vec<(String, String)> {
    let bytes = fs::read(path).unwrap();
    let mut pairs = vec![];
    for tensor in listed(path) {
        let name = tensor["name"].as_str().unwrap().to_owned();
        let len = tensor["bytes"].as_u64().unwrap() as usize;
        let data = match tensor["splat"].as_str() {
            Some(hex) if len <= 1 << 20 => {
                let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
                let pattern: Vec<u8> = (0..hex.len()).step_by(2).map(digits).collect();
                pattern.into_iter().cycle().take(len).collect()
            }
            Some(_) => continue, // Nobody makes a tebibyte of it.
            None => {
                let at = tensor["offset"].as_u64().unwrap() as usize;
                bytes[at..at + len].to_vec()
            }
        };
        let digest = Sha256::digest(&data);
        pairs.push((name, digest.iter().map(|byte| format!("{byte:02x}")).collect()));
    }
    pairs
}

/// Every tensor that the table has a hash of has those bytes.
fn compare(expected: &[(String, String)], written: &[(String, String)], about: &Value) {
    let written: HashMap<&String, &String> = written.iter().map(|(name, hash)| (name, hash)).collect();
    for (name, hash) in expected {
        assert_eq!(written.get(name), Some(&hash), "{about}: {name}");
    }
}

/// The tensors with their types and shapes, for formats that have them.
fn typed(tensors: &[Value]) -> Vec<(String, String, String)> {
    let word = |t: &Value, key: &str| t[key].to_string();
    let mut all: Vec<_> =
        tensors.iter().map(|t| (word(t, "name"), word(t, "dtype"), word(t, "shape"))).collect();
    all.sort_unstable();
    all
}

/// The files of a fixture as they are given to a verb: the parts of a split set together, once.
fn inputs(file: &Value) -> Option<Vec<PathBuf>> {
    let path = fixture("archives").join(file["path"].as_str().unwrap());
    if !path.exists() {
        return None; // Too large for a fixture.
    }
    let name = path.file_name().unwrap().to_str().unwrap();
    match name.strip_prefix("model-0000").and_then(|rest| rest.strip_suffix("-of-00003.gguf")) {
        None => Some(vec![path]),
        Some("1") => {
            Some((1..=3).map(|n| path.with_file_name(format!("model-0000{n}-of-00003.gguf"))).collect())
        }
        Some(_) => None,
    }
}

#[test]
fn every_fixture_keeps_its_bytes_in_irpa() {
    let folder = tempfile::tempdir().unwrap();
    let (out, back) = (folder.path().join("out.irpa"), folder.path().join("back.irpa"));
    let (mut files, mut tensors) = (0, 0);
    let table = table();
    for file in &table {
        let Some(inputs) = inputs(file) else { continue };
        let mut args = vec!["convert", "--quiet", "-o", text(&out)];
        args.extend(inputs.iter().map(|path| text(path)));
        done(&args);
        let expected: Vec<_> = match inputs.len() {
            3 => table
                .iter()
                .filter(|f| f["path"].as_str().unwrap().contains("/split/"))
                .flat_map(hashes_of)
                .collect(),
            _ => hashes_of(file),
        };
        let written = hashes_in(&out);
        if file["format"] != "safetensors-index" {
            compare(&expected, &written, &file["path"]);
        }
        // What was written is written again to the same bytes.
        done(&["convert", "-q", text(&out), "-o", text(&back)]);
        assert!(fs::read(&out).unwrap() == fs::read(&back).unwrap(), "{}", file["path"]);
        assert_eq!(done(&["verify", "--strict", text(&out)]).code, Some(0));
        files += 1;
        tensors += written.len();
    }
    assert!(files > 45 && tensors > 5000, "{files} files, {tensors} tensors");
}

#[test]
fn every_fixture_keeps_bytes_types_and_shapes_in_safetensors() {
    let folder = tempfile::tempdir().unwrap();
    let (out, irpa) = (folder.path().join("out.safetensors"), folder.path().join("typed.irpa"));
    let (mut written, mut refused) = (0, 0);
    for file in table() {
        let Some(inputs) = inputs(&file) else { continue };
        let mut args = vec!["convert", "--json", "-o", text(&out)];
        args.extend(inputs.iter().map(|path| text(path)));
        let ran = run(&args);
        if ran.code != Some(0) {
            let kind = ran.json()["error"]["kind"].as_str().unwrap().to_owned();
            let known = ["unsupported_dtype", "unsupported_endianness", "out_of_memory"];
            assert!(known.contains(&kind.as_str()), "{}: {}", file["path"], ran.stdout);
            assert!(!out.exists());
            refused += 1;
            continue;
        }
        let tensors: Vec<Value> = inputs.iter().flat_map(|path| listed(path)).collect();
        let ours = listed(&out);
        if file["format"] != "irpa" {
            assert!(typed(&ours) == typed(&tensors), "{}", file["path"]);
            // Through IRPA, where type and shape are metadata, and back.
            done(&["convert", "-q", "--types", text(&out), "-o", text(&irpa)]);
            let described = typed(&listed(&irpa));
            let named = |dtype: &str| !["\"F4", "\"F6", "\"F8_E8"].iter().any(|kind| dtype.starts_with(kind));
            for tensor in typed(&ours).iter().filter(|(_, dtype, _)| named(dtype)) {
                assert!(described.contains(tensor), "{tensor:?}");
            }
        }
        if inputs.len() == 1 && file["format"] != "safetensors-index" {
            compare(&hashes_of(&file), &hashes_in(&out), &file["path"]);
        }
        // Every element begins at a multiple of its size, whatever the order was.
        for tensor in &ours {
            let size = match tensor["dtype"].as_str().unwrap() {
                "F64" | "I64" | "U64" | "C64" => 8,
                "F32" | "I32" | "U32" => 4,
                "F16" | "BF16" | "I16" | "U16" => 2,
                _ => 1,
            };
            assert_eq!(tensor["offset"].as_u64().unwrap() % size, 0, "{tensor}");
        }
        fs::remove_file(&out).unwrap();
        written += 1;
    }
    assert!(written > 35 && refused > 3, "{written} written, {refused} refused");
}

/// The lists of `iree.md`'s reference files, which IREE's own tests hold.
#[test]
fn places_are_those_of_irees_own_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let places = |path: &Path| -> Vec<(String, Option<u64>, u64)> {
        let row = |t: &Value| {
            (t["name"].as_str().unwrap().into(), t["offset"].as_u64(), t["bytes"].as_u64().unwrap())
        };
        listed(path).iter().map(row).collect()
    };
    let row = |name: &str, at: Option<u64>, len| (name.to_owned(), at, len);
    let create = |name: &str, args: &[&str]| {
        let path = at(name);
        let mut all = vec!["create", "-q", "-o", text(&path)];
        all.extend(args);
        done(&all);
        // A copy made by `convert` has the same places.
        done(&["convert", "-q", text(&path), "-o", text(&at("copy.irpa"))]);
        assert_eq!(fs::read(&path).unwrap(), fs::read(at("copy.irpa")).unwrap());
        places(&path)
    };
    assert_eq!(create("single.irpa", &["--data=key0=4xf32"]), [row("key0", Some(192), 16)]);
    assert_eq!(
        create("multiple.irpa", &["--data=key0=4xf32", "--data=key1=5xi8"]),
        [row("key0", Some(320), 16), row("key1", Some(384), 5)]
    );
    let mixed = [
        "--splat=splat0=i8=102",
        "--splat=splat1=4194304xi64=9223372036854775807",
        "--data=key0=4xf32",
        "--data=key1=5xi8=101",
    ];
    assert_eq!(
        create("mixed.irpa", &mixed),
        [
            row("splat0", None, 1),
            row("splat1", None, 33_554_432),
            row("key0", Some(512), 16),
            row("key1", Some(576), 5)
        ]
    );
    // Two safetensors files under scopes into one archive.
    let safetensors = |name: &str, keys: [&str; 2], len: [u64; 2]| {
        let path = at(name);
        let create = |key: &str, len: u64| format!("--data={key}={}xi64", len / 8);
        done(&[
            "create",
            "-q",
            "-o",
            text(&at("part.irpa")),
            &create(keys[0], len[0]),
            &create(keys[1], len[1]),
        ]);
        done(&["convert", "-q", text(&at("part.irpa")), "-o", text(&path)]);
        path
    };
    let a = safetensors("a.safetensors", ["a0", "a1"], [32, 32]);
    let b = safetensors("b.safetensors", ["b0", "b1"], [64, 128]);
    let both = [format!("a={}", text(&a)), format!("b={}", text(&b))];
    done(&["convert", "-q", &both[0], &both[1], "-o", text(&at("both.irpa"))]);
    assert_eq!(
        places(&at("both.irpa")),
        [
            row("a0", Some(448), 32),
            row("a1", Some(512), 32),
            row("b0", Some(576), 64),
            row("b1", Some(640), 128)
        ]
    );
}

/// The block that `iree-create-parameters` printed for this archive.
#[test]
fn irees_text_is_given_to_the_letter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.irpa");
    done(&[
        "create",
        "-q",
        "-o",
        text(&path),
        "--data=key0=4xf32",
        "--data=key1=5xi8=101",
        "--splat=s=8xi64=7",
    ]);
    let wanted = "\
//===--------------------------------------------------------------------------------------------------------------===//
// Parameter scope <global> (3 entries, 85 total bytes)
//===------------+------------------+------------------+-----------------------------------------------------------===//
//         Start |              End |           Length | Key
//---------------+------------------+------------------+--------------------------------------------------------------//
               - |                - |               64 | `s`
             384 |              400 |               16 | `key0`
             448 |              453 |                5 | `key1`

";
    assert_eq!(done(&["list", "--iree", text(&path)]).stdout, wanted);
    let scoped = done(&["list", "--iree", &format!("model={}", text(&path))]);
    assert!(scoped.stdout.contains("// Parameter scope `model` (3 entries, 85 total bytes)\n"));
}

#[test]
fn metadata_of_safetensors_is_kept_and_loss_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (out, irpa) = (folder.path().join("o.safetensors"), folder.path().join("o.irpa"));
    let source = fixture("digits/digits.safetensors");
    done(&["convert", "-q", text(&source), "-o", text(&out)]);
    let meta = |path: &Path| done(&["meta", "--json", text(path)]).json()["files"][0]["metadata"].clone();
    assert_eq!(meta(&out), meta(&source));
    let lost = done(&["convert", "-q", text(&source), "-o", text(&irpa)]);
    assert!(lost.stderr.contains("2 entries"), "{}", lost.stderr);
}

/// Names of files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

/// A limit on the size of files ends a write as a full disk does.
#[test]
#[cfg(unix)]
fn a_write_that_finds_no_room_leaves_nothing_and_keeps_what_was_there() {
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.irpa");
    for before in [None, Some(b"an older archive")] {
        if let Some(bytes) = before {
            fs::write(&out, bytes).unwrap();
        }
        let mut command = wharf();
        command.args(["create", "--json", "-o", text(&out), "--data=big=3000000xf64=1"]);
        let limit = || {
            let room = libc::rlimit { rlim_cur: 5_000_000, rlim_max: 5_000_000 };
            // SAFETY: `room` lives through the call.
            unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const room) };
            // SAFETY: ignoring a signal sets no handler that could run.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
            Ok(())
        };
        // SAFETY: `limit` calls only what may be called between fork and exec.
        let ran = Ran::of(unsafe { command.pre_exec(limit) });
        assert_eq!(ran.code, Some(4), "{}", ran.stdout);
        let error = &ran.json()["error"];
        assert_eq!(error["kind"], "io");
        assert!(error["message"].as_str().unwrap().contains("too large"), "{error}");
        assert!(error["next"].as_str().unwrap().contains("make room"), "{error}");
        assert_eq!(fs::read(&out).ok().as_deref(), before.map(|bytes| &bytes[..]));
        assert_eq!(names(folder.path()).len(), before.iter().len(), "no partial file");
    }
}

#[test]
#[cfg(unix)]
fn an_interrupted_write_leaves_nothing_and_exits_with_130() {
    use std::{process::Stdio, time::Duration};
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.irpa");
    let mut command = wharf();
    command.args(["create", "-o", text(&out), "--data=big=20000000000xi8=1"]).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // Until it has begun to write.
    while names(folder.path()).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: the child has not been waited for, so its number is still its own.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(names(folder.path()), [""; 0]);
}

/// Not even a process that is killed outright leaves half a file under the name that was asked for.
#[test]
#[cfg(unix)]
fn a_killed_write_leaves_the_older_file_whole() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.irpa");
    fs::copy(fixture("digits/digits.irpa"), &out).unwrap();
    let mut child =
        wharf().args(["create", "-o", text(&out), "--data=big=20000000000xi8=1"]).spawn().unwrap();
    while names(folder.path()).len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(fs::read(&out).unwrap() == fs::read(fixture("digits/digits.irpa")).unwrap());
    // What is left says by its name what it is.
    let left = names(folder.path());
    assert!(left[0].starts_with(".out.irpa.") && left[0].ends_with(".part"), "{left:?}");
}

#[test]
fn an_input_is_never_overwritten_by_whatever_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::copy(fixture("digits/digits.irpa"), at("in.irpa")).unwrap();
    let before = fs::read(at("in.irpa")).unwrap();
    let mut outs = vec!["in.irpa"];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(at("in.irpa"), at("link.irpa")).unwrap();
        outs.push("link.irpa");
    }
    fs::hard_link(at("in.irpa"), at("hard.irpa")).unwrap();
    outs.push("hard.irpa");
    for out in outs {
        let dotted = folder.path().join(".").join(out);
        for out in [at(out), dotted] {
            let ran = run(&["convert", "--json", "--strip", text(&at("in.irpa")), "-o", text(&out)]);
            assert_eq!(ran.code, Some(2), "{}", out.display());
            let error = &ran.json()["error"];
            assert!(error["message"].as_str().unwrap().contains("would be lost"), "{error}");
            assert_eq!(fs::read(at("in.irpa")).unwrap(), before);
        }
    }
}

#[test]
fn a_file_that_an_entry_lies_in_is_an_input_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::copy(fixture("archives/irpa/external/external.irpa"), at("x.irpa")).unwrap();
    fs::copy(fixture("archives/irpa/external/payload.bin"), at("payload.bin")).unwrap();
    fs::hard_link(at("payload.bin"), at("payload.irpa")).unwrap();
    let ran = run(&["convert", text(&at("x.irpa")), "-o", text(&at("payload.irpa"))]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert_eq!(
        fs::read(at("payload.bin")).unwrap(),
        fs::read(fixture("archives/irpa/external/payload.bin")).unwrap()
    );
}

#[test]
fn an_older_file_is_replaced_and_what_is_no_file_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let digits = fixture("digits/digits.gguf");
    fs::write(at("old.irpa"), b"older").unwrap();
    done(&["convert", "-q", text(&digits), "-o", text(&at("old.irpa"))]);
    assert_eq!(listed(&at("old.irpa")).len(), 6);
    fs::create_dir(at("folder.irpa")).unwrap();
    assert_eq!(run(&["convert", text(&digits), "-o", text(&at("folder.irpa"))]).code, Some(2));
    let nowhere = run(&["convert", text(&digits), "-o", text(&at("none/out.irpa"))]);
    assert_eq!(nowhere.code, Some(3), "{}", nowhere.stderr);
    #[cfg(unix)]
    {
        // A link to elsewhere stays one, and what it leads to is replaced.
        std::os::unix::fs::symlink(at("old.irpa"), at("link.irpa")).unwrap();
        done(&["convert", "-q", "--strip", text(&digits), "-o", text(&at("link.irpa"))]);
        assert!(fs::symlink_metadata(at("link.irpa")).unwrap().is_symlink());
        assert!(listed(&at("old.irpa")).iter().all(|tensor| tensor["splat"] == "00"));
    }
}
