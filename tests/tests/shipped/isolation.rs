//! Good plugins are the same beside any bad one, wherever in the order it comes.

use super::common::*;
use serde_json::Value;
use std::fs;
use wharf_tests::{Ran, kernels, test_plugin};

/// Two good plugins with room before, between and behind them.
fn good() -> Folder {
    let folder = Folder::new();
    folder.host("b");
    fs::copy(test_plugin("wharf_null_plugin"), folder.at("d")).unwrap();
    folder
}

/// What is said of the devices, without how much memory is free just now.
fn devices(folder: &Folder) -> Vec<Value> {
    let ran = Ran::of(folder.wharf().args(["devices", "--json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut devices = ran.json()["devices"].as_array().unwrap().clone();
    for device in &mut devices {
        device["memory_free"] = Value::Null;
    }
    devices
}

fn beside(put: impl Fn(&Folder, &str)) {
    let alone = devices(&good());
    assert_eq!(alone.len(), 2);
    for position in ["a", "c", "e"] {
        let folder = good();
        put(&folder, position);
        assert_eq!(devices(&folder), alone, "at {position}");
        assert_eq!(folder.plugins().state(position), "rejected", "at {position}");
    }
}

macro_rules! beside {
    ($($name:ident: $put:expr;)+) => {$(
        #[test]
        fn $name() {
            beside($put);
        }
    )+};
}

beside! {
    good_ones_beside_an_empty_file: |f, name| drop(f.bytes(name, b""));
    good_ones_beside_a_text: |f, name| drop(f.bytes(name, b"no library\n"));
    good_ones_beside_a_cut_one: |f, name| drop(f.changed(name, |bytes| bytes.truncate(5000)));
    good_ones_beside_one_of_another_machine: |f, name| drop(f.changed(name, |bytes| bytes[18] = 8));
    good_ones_beside_a_library_that_is_no_plugin: |f, name| _ = fs::copy(kernels(), f.at(name)).unwrap();
    good_ones_beside_one_that_refuses: |f, name| drop(f.c(name, &refuses("x"), &[]));
    good_ones_beside_one_that_panics:
        |f, name| _ = fs::copy(test_plugin("wharf_panics_plugin"), f.at(name)).unwrap();
    good_ones_beside_one_that_misses_a_library: |f, name| {
        // Another id and build, or it would be the good one over again.
        let source = format!("int one(void);\nWHARF_EXPORT int use(void) {{ return one(); }}\n{}", refuses("x"));
        f.c("libone", "WHARF_EXPORT int one(void) { return 1; }\n", &[]);
        f.c(name, &source, &[&format!("-L{}", f.path().display()), "-lone"]);
        fs::remove_file(f.at("libone")).unwrap();
    };
    good_ones_beside_one_that_misses_a_symbol: |f, name| {
        let source = format!("void none(void);\nWHARF_EXPORT void use(void) {{ none(); }}\n{}", refuses("x"));
        f.c(name, &source, &["-Wl,-z,lazy"]);
    };
    good_ones_beside_one_of_a_newer_abi: |f, name| drop(f.changed(name, |bytes| {
        let id = build_id();
        replace(bytes, &id, &vec![7; id.len()]);
        let (id, abi) = (field(bytes, 1), field(bytes, 4));
        bytes[id] = b'x';
        bytes[abi] = 2;
    }));
}
