//! `wharf plugins inspect` and `check`.

use super::common::*;
use serde_json::{Value, json};
use std::{fs, path::Path};
use wharf_tests::{Ran, host_plugin, kernels, test_plugin, wharf};

fn inspect(file: &Path) -> Value {
    let ran = Ran::of(wharf().args(["plugins", "inspect", "--json"]).arg(file));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.json()["plugin"].clone()
}

fn check(file: &Path) -> (Option<i32>, Value) {
    let ran = Ran::of(wharf().args(["plugins", "check", "--json"]).arg(file));
    assert_eq!(ran.json()["ok"], ran.code == Some(0));
    (ran.code, ran.json())
}

/// Weight and reason of the finding of a class.
fn finding(json: &Value, class: &str) -> (String, String) {
    let all = json["findings"].as_array().unwrap();
    let found = all.iter().find(|f| f["class"] == class).unwrap_or_else(|| panic!("no {class}: {json}"));
    let text = |key: &str| found[key].as_str().unwrap().to_owned();
    assert!(!text("reason").contains('\n'));
    (text("weight"), text("reason"))
}

#[test]
fn inspect_shows_what_a_rust_plugin_says_and_needs() {
    let plugin = inspect(&host_plugin());
    for (key, value) in [("id", "host"), ("vendor", "Wharf"), ("backend", "host"), ("panics", "contained")] {
        assert_eq!(plugin[key], value, "{plugin}");
    }
    assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(plugin["abi"]["major"], 1);
    assert_eq!(plugin["types_compared"], true);
    assert_eq!(plugin["sanitizer"], Value::Null);
    let needed = plugin["needed"].as_array().unwrap();
    assert!(needed.iter().any(|library| library.as_str().unwrap().starts_with("libc.")), "{needed:?}");
}

#[test]
fn inspect_shows_what_a_plugin_in_c_says() {
    let folder = Folder::new();
    let meta =
        "WHARF_PLUGIN_META_MORE(\"acme-cuda\", \"Acme\", \"2.1\", 0, \"cuda\", \"avx2, fma\", \"MIT\");";
    let plugin = inspect(&folder.c("x", &format!("{REFUSES}{meta}"), &["-Wl,--build-id=0x0123456789abcdef"]));
    for (key, value) in [
        ("id", json!("acme-cuda")),
        ("vendor", json!("Acme")),
        ("version", json!("2.1")),
        ("backend", json!("cuda")),
        ("licence", json!("MIT")),
        ("cpu_features", json!(["avx2", "fma"])),
        ("panics", json!("end the process")),
        ("build_id", json!("0123456789abcdef")),
        ("types_compared", json!(false)),
    ] {
        assert_eq!(plugin[key], value, "{key} of {plugin}");
    }
}

#[test]
fn inspect_takes_blanks_for_what_a_plugin_in_c_has_nothing_to_say_of() {
    let folder = Folder::new();
    let meta = "WHARF_PLUGIN_META_MORE(\"acme\", \"Acme\", \"2.1\", 0, \" \", \" \", \" \");";
    let plugin = inspect(&folder.c("x", &format!("{REFUSES}{meta}"), &[]));
    assert_eq!(plugin["backend"], "acme");
    assert_eq!(plugin["cpu_features"], json!([]));
    assert_eq!(plugin["licence"], Value::Null);
}

#[test]
fn inspect_in_words_has_a_line_for_each_fact() {
    let ran = Ran::of(wharf().args(["plugins", "inspect"]).arg(host_plugin()));
    for fact in [
        "id ",
        "vendor",
        "version",
        "abi",
        "backend",
        "needs",
        "cpu features",
        "panics",
        "sanitizer",
        "build id",
    ] {
        assert_eq!(ran.stdout.lines().filter(|l| l.starts_with(fact)).count(), 1, "{fact}: {}", ran.stdout);
    }
}

#[test]
fn inspect_says_so_if_a_file_has_no_record() {
    let folder = Folder::new();
    let file = folder.c("x", REFUSES, &[]);
    assert_eq!(inspect(&file)["id"], Value::Null);
    let ran = Ran::of(wharf().args(["plugins", "inspect"]).arg(file));
    assert!(ran.stdout.contains("no record"), "{}", ran.stdout);
}

#[test]
fn neither_inspect_nor_check_runs_anything_of_the_file() {
    let folder = Folder::new();
    let told = folder.path().join("began");
    let file = folder.c("x", &format!("{}{}", tells(&told), refuses("x")), &[]);
    inspect(&file);
    check(&file);
    assert!(!told.exists());
    assert_eq!(folder.plugins().class("x"), "refused");
    assert!(told.exists(), "an opening would have been seen");
}

#[test]
fn a_file_that_is_not_there_is_exit_code_3() {
    for verb in ["inspect", "check"] {
        let ran = Ran::of(wharf().args(["plugins", verb, "/nonexistent/x.so", "--json"]));
        assert_eq!(ran.code, Some(3));
        assert_eq!(ran.json()["error"]["kind"], "no_such_file");
    }
}

#[test]
fn inspect_of_what_is_no_plugin_is_exit_code_6_and_says_what_it_is() {
    let folder = Folder::new();
    let ran = Ran::of(wharf().args(["plugins", "inspect"]).arg(folder.bytes("x", b"hello\n")));
    assert_eq!(ran.code, Some(6));
    assert!(ran.stderr.contains("text file"), "{}", ran.stderr);
}

#[test]
fn check_of_the_plugins_that_users_get_finds_nothing_wrong() {
    let (code, json) = check(&host_plugin());
    assert_eq!(code, Some(0), "{json}");
    let wrong = |f: &&Value| f["weight"] != "advice" && f["class"] != "unsafe";
    assert!(json["findings"].as_array().unwrap().iter().find(wrong).is_none(), "{json}");
}

#[test]
fn check_of_what_is_no_plugin_is_a_finding_and_exit_code_1() {
    let folder = Folder::new();
    for (file, class) in [(kernels().to_owned(), "no_entry"), (folder.bytes("x", b""), "empty")] {
        let (code, json) = check(&file);
        assert_eq!(code, Some(1));
        assert_eq!(finding(&json, class).0, "error");
    }
}

#[test]
fn check_names_a_library_that_is_missing() {
    let folder = Folder::new();
    let file = folder.changed("x", |bytes| replace(bytes, b"libc.so.6\0", b"libq.so.6\0"));
    let (code, json) = check(&file);
    assert_eq!(code, Some(1));
    assert!(finding(&json, "missing_dependency").1.contains("`libq.so.6`"));
}

#[test]
fn check_warns_of_symbols_that_are_exported_beside_the_entry() {
    let folder = Folder::new();
    let source = format!("{}WHARF_EXPORT int llvm_options;\n", refuses("x"));
    let (code, json) = check(&folder.c("x", &source, &[]));
    assert_eq!(code, Some(0), "a warning is not an error");
    let (weight, reason) = finding(&json, "exported_symbols");
    assert_eq!(weight, "warning");
    assert!(reason.contains("`llvm_options`"), "{reason}");
}

#[test]
fn check_finds_panics_that_end_the_process() {
    let folder = Folder::new();
    let meta = "WHARF_PLUGIN_META(\"x\", \"Test\", \"1.0\", 0);";
    let (code, json) = check(&folder.c("x", &format!("{REFUSES}{meta}"), &[]));
    assert_eq!(code, Some(1));
    assert_eq!(finding(&json, "panic_mode").0, "error");
}

#[test]
fn check_warns_of_a_run_path_that_begins_at_the_working_folder() {
    let folder = Folder::new();
    let (_, json) = check(&folder.c("x", &refuses("x"), &["-Wl,-rpath,lib"]));
    assert_eq!(finding(&json, "run_path").0, "warning");
}

#[test]
fn check_takes_a_run_path_from_the_plugins_folder() {
    let folder = Folder::new();
    let (_, json) = check(&folder.c("x", &refuses("x"), &["-Wl,--enable-new-dtags,-rpath,$ORIGIN/lib"]));
    assert!(json["findings"].as_array().unwrap().iter().all(|f| f["class"] != "run_path"), "{json}");
}

#[test]
fn check_finds_a_processor_that_lacks_a_feature() {
    let folder = Folder::new();
    let meta = "WHARF_PLUGIN_META_MORE(\"x\", \"Test\", \"1.0\", 1, \" \", \"quantum\", \" \");";
    let (code, json) = check(&folder.c("x", &format!("{REFUSES}{meta}"), &[]));
    assert_eq!(code, Some(1));
    assert!(finding(&json, "cpu_feature").1.contains("`quantum`"));
}

#[test]
fn check_warns_of_a_file_without_record() {
    let folder = Folder::new();
    assert_eq!(finding(&check(&folder.c("x", REFUSES, &[])).1, "no_metadata").0, "warning");
}

#[test]
fn check_in_words_says_that_nothing_was_found() {
    let ran = Ran::of(wharf().args(["plugins", "check"]).arg(test_plugin("wharf_null_plugin")));
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("fine"), "{}", ran.stdout);
}

/// Where the tables of an ELF file begin and how long they are, by its header.
fn tables(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let number = |at: usize, len: usize| -> usize {
        bytes[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let (programs, sections) = (number(32, 8), number(40, 8));
    let record = record(bytes);
    vec![
        0..64,
        programs..programs + number(54, 2) * number(56, 2),
        sections..sections + number(58, 2) * number(60, 2),
        record..record + 100,
    ]
}

#[test]
fn no_flipped_byte_of_its_tables_makes_a_look_at_a_file_panic() {
    use std::os::unix::fs::FileExt;
    let folder = Folder::new();
    let (path, bytes) = (folder.host("x"), fs::read(host_plugin()).unwrap());
    let file = fs::File::options().write(true).open(&path).unwrap();
    for at in tables(&bytes).into_iter().flatten() {
        for flip in [1, 0x80, 0xff] {
            file.write_all_at(&[bytes[at] ^ flip], at as u64).unwrap();
            let _ = wharf::plugin::inspect(&path);
        }
        file.write_all_at(&[bytes[at]], at as u64).unwrap();
    }
    assert!(wharf::plugin::inspect(&path).is_ok());
}

#[test]
fn the_record_survives_stripping() {
    let folder = Folder::new();
    let file = folder.c("x", &refuses("x"), &["-s"]);
    assert_eq!(inspect(&file)["id"], "x");
    assert!(fs::metadata(file).unwrap().len() > 0);
}
