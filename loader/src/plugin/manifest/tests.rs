//! Every field that may be missing or wrong, and every text that is none.

use super::*;

const GOOD: &str =
    r#"{"file_format_version":"1.0.0","plugin":{"id":"cuda","path":"libwharf_cuda.so","abi":"1.0"}}"#;

fn said(text: &str) -> Said {
    parse(text.as_bytes()).unwrap()
}

/// The reason why a text is refused.
fn refused(text: impl AsRef<[u8]>) -> String {
    let reason = parse(text.as_ref()).unwrap_err();
    assert!(!reason.contains('\n') && !reason.is_empty(), "one line: {reason}");
    reason
}

/// The good manifest with a field of `plugin` made another.
fn with(field: &str, value: &str) -> String {
    let old = match field {
        "id" => r#""id":"cuda""#,
        "path" => r#""path":"libwharf_cuda.so""#,
        "abi" => r#""abi":"1.0""#,
        _ => return GOOD.replace(r#""abi":"1.0""#, &format!(r#""abi":"1.0","{field}":{value}"#)),
    };
    GOOD.replace(old, &format!(r#""{field}":{value}"#))
}

fn without(field: &str) -> String {
    let text = with(field, "0");
    text.replace(&format!(r#""{field}":0,"#), "").replace(&format!(r#","{field}":0"#), "")
}

#[test]
fn what_must_be_there_is_enough() {
    let wanted = Said { id: "cuda".into(), path: "libwharf_cuda.so".into(), abi_major: 1, pin: None };
    assert_eq!(said(GOOD), wanted);
}

#[test]
fn a_missing_format_version_is_named() {
    assert_eq!(refused(r#"{"plugin":{}}"#), "`file_format_version` is missing");
}

#[test]
fn a_mistyped_format_version_is_named() {
    let text = GOOD.replace(r#""1.0.0""#, "1");
    assert_eq!(refused(text), "`file_format_version` is a number, not a string");
}

#[test]
fn another_major_of_the_format_is_refused() {
    for version in ["2.0.0", "0.9", "17"] {
        let reason = refused(GOOD.replace("1.0.0", version));
        assert!(reason.contains(version) && reason.contains("1.x"), "{reason}");
    }
}

#[test]
fn a_higher_minor_of_the_format_is_read() {
    assert_eq!(said(&GOOD.replace("1.0.0", "1.9.3")), said(GOOD));
}

#[test]
fn a_format_version_that_is_none_is_refused() {
    for version in ["", "one", "1.", "1.x", "-1", "+1", "1.0.0 ", "70000"] {
        assert!(refused(GOOD.replace("1.0.0", version)).contains("file_format_version"), "{version}");
    }
}

#[test]
fn a_missing_plugin_is_named() {
    assert_eq!(refused(r#"{"file_format_version":"1"}"#), "`plugin` is missing");
}

#[test]
fn a_mistyped_plugin_is_named() {
    for (value, is) in [("[]", "an array"), ("null", "true, false or null"), (r#""x""#, "a string")] {
        let text = format!(r#"{{"file_format_version":"1","plugin":{value}}}"#);
        assert_eq!(refused(text), format!("`plugin` is {is}, not an object"));
    }
}

#[test]
fn a_missing_id_is_named() {
    assert_eq!(refused(without("id")), "`plugin.id` is missing");
}

#[test]
fn a_mistyped_id_is_named() {
    assert_eq!(refused(with("id", "7")), "`plugin.id` is a number, not a string");
}

#[test]
fn an_id_that_is_none_is_refused() {
    for id in ["", "Cuda", "a b", "a/b", "é"] {
        let reason = refused(with("id", &format!("\"{id}\"")));
        assert!(reason.contains("plugin.id"), "{reason}");
    }
}

#[test]
fn a_missing_path_is_named() {
    assert_eq!(refused(without("path")), "`plugin.path` is missing");
}

#[test]
fn a_mistyped_path_is_named() {
    assert_eq!(refused(with("path", "[]")), "`plugin.path` is an array, not a string");
}

#[test]
fn an_empty_path_is_refused() {
    assert_eq!(refused(with("path", r#""""#)), "`plugin.path` is empty");
}

#[test]
fn a_missing_abi_is_named() {
    assert_eq!(refused(without("abi")), "`plugin.abi` is missing");
}

#[test]
fn a_mistyped_abi_is_named() {
    assert_eq!(refused(with("abi", "1.0")), "`plugin.abi` is a number, not a string");
}

#[test]
fn an_abi_that_is_no_version_is_refused() {
    assert_eq!(refused(with("abi", r#""new""#)), "`plugin.abi` is `new`, no version");
}

#[test]
fn a_pin_is_read_in_either_case() {
    for digits in ["0a".repeat(32), "0A".repeat(32)] {
        assert_eq!(said(&with("sha256", &format!("\"{digits}\""))).pin, Some([10; 32]));
    }
}

#[test]
fn a_mistyped_pin_is_named() {
    assert_eq!(refused(with("sha256", "12")), "`plugin.sha256` is a number, not a string");
}

#[test]
fn a_pin_that_is_no_hash_is_refused() {
    for digits in [String::new(), "0a".repeat(31), "0a".repeat(33), "0g".repeat(32), "+a".repeat(32)] {
        let reason = refused(with("sha256", &format!("\"{digits}\"")));
        assert_eq!(reason, "`plugin.sha256` is not 64 hex digits");
    }
}

#[test]
fn a_description_may_be_there_and_is_text() {
    assert_eq!(said(&with("description", r#""for boards""#)), said(GOOD));
    assert_eq!(refused(with("description", "{}")), "`plugin.description` is an object, not a string");
}

#[test]
fn fields_that_are_not_known_are_skipped() {
    let text = with("priority", r#"{"of":[1,2,{"a":null}]}"#).replacen('{', r#"{"made_by":[1.5e3,true],"#, 1);
    assert_eq!(said(&text), said(GOOD));
}

#[test]
fn escapes_in_keys_and_texts_are_followed() {
    let text = GOOD.replace("cuda\"", "cu\\u0064a\"").replace("\"id\"", "\"\\u0069d\"");
    assert_eq!(said(&text), said(GOOD));
}

#[test]
fn a_field_that_is_there_twice_is_named() {
    assert_eq!(refused(with("id", r#""a","id":"b""#)), "`plugin.id` is there twice");
    let twice = GOOD.replacen('{', r#"{"plugin":{},"#, 1);
    assert_eq!(refused(twice), "`plugin` is there twice");
}

#[test]
fn a_field_that_is_there_twice_in_two_spellings_is_named() {
    assert_eq!(refused(with("id", r#""a","\u0069d":"b""#)), "`plugin.id` is there twice");
}

#[test]
fn an_unknown_field_that_is_there_twice_is_named() {
    assert_eq!(refused(with("x", r#"1,"x":2"#)), "`plugin.x` is there twice");
}

#[test]
fn a_byte_order_mark_is_refused_by_name() {
    assert!(refused([b"\xef\xbb\xbf", GOOD.as_bytes()].concat()).contains("byte order mark"));
}

#[test]
fn a_nul_byte_is_refused_with_its_place() {
    let mut text = GOOD.as_bytes().to_vec();
    text[5] = 0;
    assert_eq!(refused(text), "has a NUL byte at byte 5");
}

#[test]
fn a_nul_that_is_spelled_out_is_refused_as_a_path() {
    assert_eq!(refused(with("path", r#""a\u0000b""#)), "`plugin.path` has a NUL in it");
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let mut text = GOOD.as_bytes().to_vec();
    let at = GOOD.find("cuda").unwrap();
    text[at] = 0xff;
    assert!(refused(text).contains("utf-8"));
}

#[test]
fn a_manifest_of_the_greatest_length_is_read_and_one_byte_more_is_refused() {
    let mut text = GOOD.to_owned();
    text.push_str(&" ".repeat(LEN_MAX as usize - text.len()));
    assert_eq!(said(&text), said(GOOD));
    text.push(' ');
    assert!(refused(text).contains("1048576 bytes"));
}

#[test]
fn nesting_that_is_too_deep_is_refused_and_runs_no_stack_over() {
    for open in ["[", r#"{"a":"#] {
        let reason = refused(with("deep", &open.repeat(100_000)));
        assert!(reason.contains("too deep"), "{reason}");
    }
}

#[test]
fn a_text_that_is_no_object_is_refused() {
    for text in ["", " ", "[]", "null", "7", r#""x""#] {
        assert!(refused(text).contains("an object is wanted here"), "{text}");
    }
}

#[test]
fn every_cut_of_a_manifest_is_refused() {
    for len in 0..GOOD.len() {
        refused(&GOOD[..len]);
    }
}

#[test]
fn text_behind_the_object_is_refused() {
    assert!(refused(format!("{GOOD}{GOOD}")).contains("more text"));
}

#[test]
fn a_comma_before_the_end_is_refused() {
    assert!(refused(with("abi", r#""1","#)).contains("comma"));
}

#[test]
fn a_comment_is_refused() {
    refused(GOOD.replacen('{', "{/* x */", 1));
}

fn file(folder: &Path, path: &str) -> Manifest {
    let file = folder.join("x.json");
    std::fs::write(&file, GOOD.replace("libwharf_cuda.so", path)).unwrap();
    read(&file).unwrap()
}

#[test]
fn a_bare_path_is_beside_the_manifest_and_never_what_the_system_finds() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(file(folder.path(), "libc.so.6").library, folder.path().join("libc.so.6"));
}

#[test]
fn a_relative_path_begins_at_the_manifest() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(file(folder.path(), "../lib/x.so").library, folder.path().join("../lib/x.so"));
}

#[test]
fn an_absolute_path_stays_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(file(folder.path(), "/opt/x.so").library, Path::new("/opt/x.so"));
}

#[test]
fn a_folder_is_no_manifest() {
    let folder = tempfile::tempdir().unwrap();
    assert!(read(folder.path()).is_err());
}

#[test]
fn every_flipped_bit_of_a_manifest_is_another_manifest_or_an_error() {
    let full = with("sha256", &format!("\"{}\",\"description\":\"x\"", "0a".repeat(32)));
    for at in 0..full.len() {
        for bit in 0..8 {
            let mut text = full.clone().into_bytes();
            text[at] ^= 1 << bit;
            if let Err(reason) = parse(&text) {
                assert!(!reason.contains('\n') && reason.len() < 300, "{reason}");
            }
        }
    }
}
