//! Whatever keeps a plugin from being used has a name and one line.

use super::common::*;
use std::fs;

/// The class of a file that is the host plugin with other bytes.
fn class_of(change: impl FnOnce(&mut Vec<u8>)) -> (String, String) {
    let folder = Folder::new();
    folder.changed("x", change);
    let plugins = folder.plugins();
    (plugins.class("x").to_owned(), plugins.reason("x").to_owned())
}

#[test]
fn a_missing_library_is_named_with_the_plugin() {
    let (class, reason) = class_of(|bytes| replace(bytes, b"libc.so.6\0", b"libq.so.6\0"));
    assert_eq!(class, "missing_dependency");
    assert!(reason.contains("`libq.so.6`"), "{reason}");
}

#[test]
fn several_missing_libraries_are_all_named() {
    let folder = Folder::new();
    for name in ["one", "two"] {
        folder.c(&format!("lib{name}"), &format!("WHARF_EXPORT int {name}(void) {{ return 1; }}\n"), &[]);
    }
    let path = format!("-L{}", folder.path().display());
    let source = format!(
        "int one(void);\nint two(void);\nWHARF_EXPORT int both(void) {{ return one() + two(); }}\n{}",
        refuses("x")
    );
    folder.c("x", &source, &[&path, "-lone", "-ltwo"]);
    for name in ["libone", "libtwo"] {
        fs::remove_file(folder.at(name)).unwrap();
    }
    let plugins = folder.plugins();
    assert_eq!(plugins.class("x"), "missing_dependency");
    let reason = plugins.reason("x");
    assert!(reason.contains("`libone.so`") && reason.contains("`libtwo.so`"), "{reason}");
}

#[test]
fn an_undefined_symbol_is_named_at_opening_not_at_its_first_use() {
    let folder = Folder::new();
    let source = format!(
        "void driver_init(void);\nWHARF_EXPORT void use(void) {{ driver_init(); }}\n{}",
        refuses("x")
    );
    folder.c("x", &source, &["-Wl,-z,lazy"]);
    let plugins = folder.plugins();
    assert_eq!(plugins.class("x"), "undefined_symbol");
    assert!(plugins.reason("x").contains("`driver_init`"), "{}", plugins.reason("x"));
}

#[test]
fn a_refusal_is_told_with_the_version_that_was_refused() {
    let folder = Folder::new();
    folder.c("x", &refuses("x"), &[]);
    let plugins = folder.plugins();
    assert_eq!(plugins.class("x"), "refused");
    assert!(plugins.reason("x").contains("abi 1."), "{}", plugins.reason("x"));
    assert_eq!(plugins.one("x")["id"], "x");
}

#[test]
fn a_record_of_a_higher_major_is_too_new_and_the_host_is_to_upgrade() {
    let (class, reason) = class_of(|bytes| {
        let at = field(bytes, 4);
        bytes[at] = 2;
    });
    assert_eq!(class, "too_new");
    assert!(reason.contains("upgrade the host"), "{reason}");
}

#[test]
fn a_record_of_a_lower_major_is_too_old_and_the_plugin_is_to_upgrade() {
    let (class, reason) = class_of(|bytes| {
        let at = field(bytes, 4);
        bytes[at] = 0;
    });
    assert_eq!(class, "too_old");
    assert!(reason.contains("upgrade the plugin"), "{reason}");
}

#[test]
fn a_record_that_wants_a_higher_minor_of_the_host_is_too_new() {
    let (class, reason) = class_of(|bytes| {
        let at = field(bytes, 4);
        bytes[at + 6] = 99;
    });
    assert_eq!(class, "too_new");
    assert!(reason.contains("minor 99"), "{reason}");
}

#[test]
fn a_record_with_a_higher_minor_that_wants_no_more_is_used() {
    let folder = Folder::new();
    folder.changed("x", |bytes| {
        let at = field(bytes, 4);
        bytes[at + 2] = 99;
    });
    assert_eq!(folder.plugins().state("x"), "loaded");
}

#[test]
fn a_record_that_is_damaged_is_bad_metadata() {
    let (class, reason) = class_of(|bytes| {
        let at = record(bytes);
        bytes[at] = b'w';
    });
    assert_eq!(class, "bad_metadata");
    assert!(reason.contains(".wharf.plugin"), "{reason}");
}

#[test]
fn a_record_with_another_id_than_the_plugin_is_refused() {
    let (class, reason) = class_of(|bytes| {
        let at = field(bytes, 1);
        bytes[at..at + 4].copy_from_slice(b"hosp");
    });
    assert_eq!(class, "id_differs");
    assert!(reason.contains("`hosp`") && reason.contains("`host`"), "{reason}");
}

fn with_constructor(meta: &str) -> (Folder, std::path::PathBuf) {
    let folder = Folder::new();
    let told = folder.path().join("began");
    folder.c("x", &format!("{}{REFUSES}{meta}", tells(&told)), &[]);
    (folder, told)
}

#[test]
fn a_missing_feature_of_the_processor_is_named_before_anything_runs() {
    let meta = "WHARF_PLUGIN_META_MORE(\"x\", \"Test\", \"1.0\", 1, \" \", \"sse2, quantum\", \" \");";
    let (folder, told) = with_constructor(meta);
    let plugins = folder.plugins();
    assert_eq!(plugins.class("x"), "cpu_feature");
    assert!(plugins.reason("x").contains("`quantum`"), "{}", plugins.reason("x"));
    assert!(!told.exists());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn features_that_every_processor_has_keep_nothing_out() {
    let meta = "WHARF_PLUGIN_META_MORE(\"x\", \"Test\", \"1.0\", 1, \" \", \"sse,sse2\", \" \");";
    let (folder, told) = with_constructor(meta);
    assert_eq!(folder.plugins().class("x"), "refused");
    assert!(told.exists());
}

#[test]
fn a_plugin_with_a_sanitizer_is_refused_before_it_ends_the_program() {
    for (flag, kind) in [("ADDRESS", "address"), ("THREAD", "thread"), ("MEMORY", "memory")] {
        let meta =
            format!("WHARF_PLUGIN_META(\"x\", \"Test\", \"1.0\", WHARF_PLUGIN_FLAG_SANITIZER_{flag});");
        let (folder, told) = with_constructor(&meta);
        let plugins = folder.plugins();
        assert_eq!(plugins.class("x"), "sanitizer");
        assert!(plugins.reason("x").contains(kind), "{}", plugins.reason("x"));
        assert!(!told.exists());
    }
}

#[test]
fn a_plugin_that_asks_for_a_sanitizers_start_is_known_without_its_record() {
    let folder = Folder::new();
    let source = format!(
        "void __asan_init(void);\nWHARF_EXPORT void use(void) {{ __asan_init(); }}\n{}",
        refuses("x")
    );
    folder.c("x", &source, &[]);
    assert_eq!(folder.plugins().class("x"), "sanitizer");
}

#[test]
fn a_library_of_another_product_is_told_from_a_plugin() {
    let folder = Folder::new();
    folder.c("x", "WHARF_EXPORT int ggml_backend_init(void) { return 0; }\n", &[]);
    let plugins = folder.plugins();
    assert_eq!(plugins.class("x"), "no_entry");
    assert!(plugins.reason("x").contains("not a Wharf plugin"), "{}", plugins.reason("x"));
}

#[test]
fn a_root_symbol_of_another_kind_is_another_product() {
    let folder = Folder::new();
    let source = "WHARF_EXPORT const char header[256] __asm__(\"_1as_0lib_1header_0root_bmodule_bloader\") = \"other\";\n";
    folder.c("x", source, &[]);
    assert_eq!(folder.plugins().class("x"), "other_product");
}

#[test]
fn a_plugin_without_permission_to_read_it_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let file = folder.host("x");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&file).is_ok() {
        return println!("skipped: this user reads every file");
    }
    assert_eq!(folder.plugins().class("x"), "permission");
}

#[test]
fn a_folder_that_is_named_like_a_library_is_none() {
    let folder = Folder::new();
    fs::create_dir(folder.at("x")).unwrap();
    assert_eq!(folder.plugins().class("x"), "not_a_library");
}

#[test]
fn a_pipe_that_is_named_like_a_library_holds_nobody_up() {
    let folder = Folder::new();
    let made = std::process::Command::new("mkfifo").arg(folder.at("x")).status().unwrap();
    assert!(made.success());
    assert_eq!(folder.plugins().class("x"), "not_a_library");
}

#[test]
fn a_real_plugin_cut_at_any_boundary_of_its_tables_is_truncated() {
    let whole = fs::read(wharf_tests::host_plugin()).unwrap();
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let (programs, sections) = (number(32), number(40)); // e_phoff, e_shoff of the ELF-64 specification
    let folder = Folder::new();
    let cuts =
        [1, 3, 4, 16, 52, 63, 64, programs + 1, programs + 57, sections, sections + 1, whole.len() - 1];
    for (number, cut) in cuts.into_iter().enumerate() {
        folder.bytes(&format!("x{number}"), &whole[..cut]);
    }
    let plugins = folder.plugins();
    for (number, cut) in cuts.into_iter().enumerate() {
        assert_eq!(plugins.class(&format!("x{number}")), "truncated", "cut at {cut}");
    }
}
