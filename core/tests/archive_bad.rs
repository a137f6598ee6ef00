//! Bad files: the made ones with the class that the manifest gives, and more of their kinds, made here. The right class
//! of these follows from the format's specification, named where it is not plain.
#![cfg(feature = "alloc")]
// A test that cannot go on has failed.
#![allow(clippy::unwrap_used)]

mod archive_common;

use std::time::{Duration, Instant};

use archive_common::{Gguf, fixture, format, json, read, safetensors, safetensors_raw};
use serde_json::Value as Json;
use wharf_core::archive::{Error, Format, Index, Input, Shards, Stop, Warning};

/// Cases that only a loader, which opens the other files of a set, can decide.
const LOADER: [&str; 2] = ["split_second_first", "x_tensor_not_in_shard"];

fn answer(case: &Json, bytes: &[u8]) -> Result<(), Error> {
    match case["read_as"].as_str().unwrap() {
        "safetensors-index" => Shards::parse(bytes).map(|_| ()),
        name => read(format(name), bytes).map(|_| ()),
    }
}

#[test]
fn bad_files_give_their_class() {
    let manifest = json("malformed/manifest.json");
    let cases = manifest["cases"].as_array().unwrap();
    assert!(cases.len() >= 113);
    let mut wrong = Vec::new();
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let bytes = fixture(&format!("malformed/{}", case["file"].as_str().unwrap()));
        let start = Instant::now();
        let answer = answer(case, &bytes);
        assert!(start.elapsed() < Duration::from_secs(1), "{id}: {:?}", start.elapsed());
        let error = match (case["expect"].as_str().unwrap(), answer) {
            ("accept" | "either", Ok(())) => continue,
            (_, Ok(())) if LOADER.contains(&id) => continue,
            (_, Ok(())) => {
                wrong.push(format!("{id}: accepted"));
                continue;
            }
            ("accept", Err(error)) => {
                wrong.push(format!("{id}: refused: {error}"));
                continue;
            }
            (_, Err(error)) => error,
        };
        let class = error.class().name();
        let alt = case["alt"].as_array().unwrap();
        if case["error"] != class && !alt.iter().any(|alt| alt == class) {
            wrong.push(format!("{id}: {} wanted: {error}", case["error"]));
        }
        let message = error.to_string();
        for word in case["mention"].as_array().unwrap() {
            if !message.contains(word.as_str().unwrap()) {
                wrong.push(format!("{id}: {word} is not in: {message}"));
            }
        }
        println!("{id}: {message}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_are_escaped_in_messages() {
    let file = Gguf::new(3, 2, 0)
        .tensor("\u{1b}[31m\n", &[2], 0, 0)
        .tensor("\u{1b}[31m\n", &[2], 0, 32)
        .data(32, 64);
    let message = read(Format::Gguf, &file).unwrap_err().to_string();
    assert!(message.starts_with("duplicate_name: `\\u{1b}[31m\\n` occurs twice"), "{message}");
    let long = "n".repeat(30_000);
    let file = Gguf::new(3, 1, 0).tensor(&long, &[2], 99, 0).data(32, 64);
    let message = read(Format::Gguf, &file).unwrap_err().to_string();
    assert!(message.len() < 200 && message.contains("nnn...nnn") && message.contains("99"), "{message}");
}

#[track_caller]
fn refused(class: &str, format: Format, bytes: &[u8]) {
    match read(format, bytes) {
        Ok(_) => panic!("accepted, {class} wanted"),
        Err(error) => assert_eq!(error.class().name(), class, "{error}"),
    }
}

#[test]
fn what_a_file_really_is_is_said() {
    let says = |bytes: &[u8], words: &[&str]| {
        for message in [
            Index::read(Input::whole(bytes)).unwrap_err().to_string(),
            read(Format::Safetensors, bytes).unwrap_err().to_string(),
        ] {
            assert!(words.iter().all(|word| message.contains(word)), "{message}");
        }
    };
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 1234567890\n";
    says(pointer, &["bad_magic", "Git LFS pointer", "1234567890"]);
    says(b"<!DOCTYPE html><html><body>Sign in</body></html>", &["bad_magic", "HTML"]);
    says(b"\n\n<html lang=en><head></head></html>", &["bad_magic", "HTML"]);
    says(b"PK\x03\x04\x00\x00\x00\x00\x00\x00archive/data.pkl\x00\x00", &["bad_magic", "PyTorch", "zip"]);
    says(b"PK\x03\x04\x00\x00\x00\x00\x00\x00readme.txt\x00\x00", &["bad_magic", "zip"]);
    says(b"\x80\x02}q\x00(X\x06\x00\x00\x00weightq\x01", &["bad_magic", "pickle"]);
    says(b"lmgg\x01\x00\x00\x00\x00\x00\x00\x00", &["bad_magic", "GGML"]);
    says(b"fmgg\x01\x00\x00\x00\x00\x00\x00\x00", &["bad_magic", "GGMF"]);
    says(b"", &["truncated", "empty"]);
    let gguf = Gguf::new(3, 0, 0).bytes;
    let message = read(Format::Irpa, &gguf).unwrap_err().to_string();
    assert!(message.contains("GGUF") && message.contains("irpa"), "{message}");
}

/// Siblings of the made GGUF files.
#[test]
fn gguf_rules() {
    let g = Format::Gguf;
    let one =
        |dims: &[u64], kind, offset, len| Gguf::new(3, 1, 0).tensor("a", dims, kind, offset).data(32, len);
    assert!(read(g, &one(&[8], 0, 0, 32)).is_ok());
    for kind in [4, 5, 31, 32, 33, 36, 37, 38, 43, 255, 256, 1 << 31] {
        refused("unsupported_dtype", g, &one(&[256], kind, 0, 2048));
    }
    refused("truncated", g, &one(&[8], 0, 0, 31));
    refused("truncated", g, &one(&[8], 0, 32, 32));
    refused("misaligned", g, &one(&[1], 0, 31, 64));
    refused("misaligned", g, &one(&[0], 0, 1, 64));
    refused("size_mismatch", g, &one(&[16, 2], 2, 0, 64));
    refused("size_mismatch", g, &one(&[], 2, 0, 64));
    refused("overflow", g, &one(&[1 << 62, 4], 0, 0, 64));
    refused("overflow", g, &one(&[u64::MAX - 255], 0, 0, 64));
    refused("overflow", g, &one(&[8], 0, u64::MAX - 31, 64));
    refused("limit_exceeded", g, &one(&[1; 5], 0, 0, 64));
    refused("out_of_range", g, &one(&[1 << 62], 24, 0, 64));
    // The first does not end where the second begins, in either order of the infos.
    let two = |a, b| Gguf::new(3, 2, 0).tensor("a", &[9], 0, a).tensor("b", &[9], 0, b).data(32, 128);
    assert!(read(g, &two(0, 64)).is_ok() && read(g, &two(64, 0)).is_ok());
    for (a, b) in [(0, 0), (0, 32), (32, 0)] {
        refused("overlap", g, &two(a, b));
    }
    for version in [0, 4, 0x0001_0000, u32::MAX] {
        assert!(read(g, &Gguf::new(version, 0, 0).bytes).is_err());
    }
    // Version 1 and 2 were never big-endian.
    let mut swapped = Gguf::new(2, 0, 0).bytes;
    swapped[4..8].reverse();
    refused("unsupported_endianness", g, &swapped);
}

#[test]
fn gguf_metadata_rules() {
    let g = Format::Gguf;
    let pair = |key: &str, rest: &[u8]| Gguf::new(3, 0, 1).text(key).raw(rest).bytes.clone();
    let array = |kind: u32, count: u64, rest: &[u8]| {
        let mut file = Gguf::new(3, 0, 1);
        file.text("k").u32(9).u32(kind).u64(count).raw(rest).bytes.clone()
    };
    assert!(read(g, &pair("k", &[7, 0, 0, 0, 1])).is_ok());
    refused("invalid_value", g, &pair("k", &[7, 0, 0, 0, 2]));
    refused("invalid_type", g, &pair("k", &[13, 0, 0, 0, 0]));
    refused("invalid_value", g, &array(7, 2, &[1, 3]));
    refused("invalid_type", g, &array(13, 0, &[]));
    refused("truncated", g, &array(0, 2, &[0]));
    refused("truncated", g, &array(7, 2, &[0]));
    refused("overflow", g, &array(10, 1 << 61, &[]));
    refused("overflow", g, &array(8, 1 << 61, &[]));
    refused("overflow", g, &array(9, u64::MAX, &[]));
    refused("limit_exceeded", g, &array(0, 1 << 61, &[]));
    // Four arrays in each other are read, five are not; nor is an endless nest.
    let nest = |depth: u32| {
        let mut file = Gguf::new(3, 0, 1);
        file.text("k").u32(9);
        for _ in 1..depth {
            file.u32(9).u64(1);
        }
        file.u32(0).u64(1).raw(&[5]).bytes.clone()
    };
    assert!(read(g, &nest(4)).is_ok());
    refused("limit_exceeded", g, &nest(5));
    refused("limit_exceeded", g, &nest(100_000));
    let long = "k".repeat(65_536);
    assert!(read(g, &pair(&long, &[0, 0, 0, 0, 1])).is_ok());
    refused("limit_exceeded", g, &pair(&(long + "k"), &[0, 0, 0, 0, 1]));
    let align =
        |n: u32| Gguf::new(3, 1, 1).pair_u32("general.alignment", n).tensor("a", &[1], 0, 0).data(64, 4);
    assert!(read(g, &align(1)).is_ok() && read(g, &align(64)).is_ok());
    refused("invalid_value", g, &align(48));
    refused("invalid_value", g, &align(0));
    let split = |no: u32, count: u32, total: u32| {
        let mut file = Gguf::new(3, 1, 3);
        file.pair_u32("split.no", no).pair_u32("split.count", count).pair_u32("split.tensors.count", total);
        file.tensor("a", &[1], 0, 0).data(32, 4)
    };
    assert!(read(g, &split(1, 2, 5)).is_ok());
    // What gguf-split merged has a count of 0.
    assert!(read(g, &split(0, 0, 1)).unwrap().part().is_none());
    refused("invalid_value", g, &split(2, 2, 5));
    refused("invalid_value", g, &split(0, 2, 0));
    refused("invalid_type", g, &Gguf::new(3, 0, 1).text("split.no").u32(8).text("0").bytes);
}

const A: &str = r#""a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}"#;

/// Siblings of the made safetensors files.
#[test]
fn safetensors_rules() {
    let s = Format::Safetensors;
    let file = |header: &str| safetensors(header, 4);
    assert!(read(s, &file(&format!("{{{A}}}"))).is_ok());
    assert!(read(s, &file(&format!("{{{A}}}  \n"))).is_ok());
    // Unknown fields are stepped over, as the reference reader does.
    let field =
        |more: &str| file(&format!(r#"{{"a":{{"dtype":"U8",{more}"shape":[4],"data_offsets":[0,4]}}}}"#));
    assert!(read(s, &field(r#""x":[{"y":[null,true,-1.5e3]}],"#)).is_ok());
    refused("invalid_json", s, &field(r#""x":[01],"#));
    refused("invalid_json", s, &field(r#""x":nul,"#));
    refused("invalid_json", s, &field(r#""dtype":"U8","#));
    refused("invalid_json", s, &field(&format!(r#""x":{},"#, "[".repeat(5000))));
    refused("invalid_json", s, &file(&format!("{{{A}}}\0")));
    refused("invalid_json", s, &file(&format!("{{{A}}}{{}}")));
    refused("invalid_json", s, &file(&format!("{{{A}")));
    refused("invalid_json", s, &file(&format!("{{{A},}}")));
    refused("invalid_json", s, &file(&format!("{{,{A}}}")));
    refused("invalid_json", s, &file(&format!("{{{A} {A}}}")));
    refused("duplicate_name", s, &file(&format!("{{{A},{A}}}")));
    refused("hole", s, &safetensors(&format!("{{{A}}}"), 5));
    refused("hole", s, &safetensors("{}", 1));
    refused("truncated", s, &safetensors(&format!("{{{A}}}"), 3));
    let tensor = |dtype: &str, shape: &str, offsets: &str, data| {
        safetensors(&format!(r#"{{"a":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}}}"#), data)
    };
    assert!(read(s, &tensor(r#""F4""#, "[2,4]", "[0,4]", 4)).is_ok());
    assert!(read(s, &tensor(r#""F6_E2M3""#, "[16]", "[0,12]", 12)).is_ok());
    refused("size_mismatch", s, &tensor(r#""F4""#, "[3]", "[0,2]", 2));
    refused("size_mismatch", s, &tensor(r#""F32""#, "[4]", "[0,4]", 4));
    refused("size_mismatch", s, &tensor(r#""F32""#, "[]", "[0,0]", 0));
    // A type of ggml is none here.
    refused("unsupported_dtype", s, &tensor(r#""Q4_0""#, "[32]", "[0,18]", 18));
    refused("unsupported_dtype", s, &tensor(r#""u8""#, "[4]", "[0,4]", 4));
    refused("overflow", s, &tensor(r#""U8""#, "[4294967296,4294967296]", "[0,0]", 0));
    refused("overflow", s, &tensor(r#""U8""#, "[18446744073709551616]", "[0,0]", 0));
    refused("overflow", s, &tensor(r#""U8""#, "[18446744073709551615]", "[0,18446744073709551615]", 0));
    refused("out_of_range", s, &tensor(r#""U8""#, "[9223372036854775807]", "[0,9223372036854775807]", 0));
    refused("limit_exceeded", s, &tensor(r#""U8""#, &format!("[{}1]", "1,".repeat(16)), "[0,1]", 1));
    assert!(read(s, &tensor(r#""U8""#, &format!("[{}1]", "1,".repeat(15)), "[0,1]", 1)).is_ok());
    refused("invalid_json", s, &tensor(r#""U8""#, "[4]", "[0,4,4]", 4));
    refused("invalid_type", s, &tensor(r#""U8""#, "[4]", "[0,4.0]", 4));
    refused("invalid_type", s, &tensor(r#""U8""#, "[4]", "[0,4e0]", 4));
    refused("invalid_value", s, &tensor(r#""U8""#, "[4]", "[-0,4]", 4));
    refused("invalid_type", s, &tensor("null", "[4]", "[0,4]", 4));
    refused("invalid_type", s, &tensor(r#""U8""#, "4", "[0,4]", 4));
    refused("invalid_json", s, &tensor(r#""U8""#, "[4,]", "[0,4]", 4));
    refused("invalid_type", s, &safetensors(r#"{"a":[]}"#, 0));
}

#[test]
fn safetensors_text_rules() {
    let s = Format::Safetensors;
    let named = |name: &[u8]| {
        let mut header = b"{\"".to_vec();
        header.extend(name);
        header.extend(br#"":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#);
        safetensors_raw(&header, 4)
    };
    let name = |raw: &[u8]| read(s, &named(raw)).unwrap().entry(0).unwrap().name.to_owned();
    assert_eq!(name(br"\ud83d\ude80\n\/\\\u00e9"), "\u{1f680}\n/\\\u{e9}");
    refused("invalid_json", s, &named(br"\ud83d"));
    refused("invalid_json", s, &named(br"\ude80\ud83d"));
    refused("invalid_json", s, &named(br"\ud83d\u0041"));
    refused("invalid_json", s, &named(br"\u00g0"));
    refused("invalid_json", s, &named(br"\u+123"));
    refused("invalid_json", s, &named(br"\x41"));
    refused("invalid_json", s, &named(b"a\x1f"));
    refused("invalid_utf8", s, &named(b"\xff\xfe"));
    refused("invalid_utf8", s, &named(b"\xed\xa0\x80"));
    refused("limit_exceeded", s, &named(&vec![b'n'; 65_537]));
    assert_eq!(name(&vec![b'n'; 65_536]).len(), 65_536);
    // The key of the metadata is found through escapes as well.
    let meta = |inner: &str| safetensors(&format!(r#"{{"\u005f_metadata__":{inner},{A}}}"#), 4);
    assert_eq!(read(s, &meta(r#"{"k":"v"}"#)).unwrap().metadata().len(), 1);
    refused("duplicate_key", s, &meta(r#"{"k":"v","\u006b":"w"}"#));
    refused("duplicate_key", s, &safetensors(r#"{"__metadata__":{},"__metadata__":{}}"#, 0));
    refused("invalid_type", s, &meta(r#"{"k":1}"#));
    refused("invalid_type", s, &meta("[]"));
    refused("invalid_type", s, &meta("null"));
}

/// An IRPA file with one data entry, and its fields by offset.
fn irpa() -> Vec<u8> {
    fixture("malformed/irpa/i_control.irpa")
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, new: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&new);
}

#[track_caller]
fn patched(class: &str, at: usize, n: u64) {
    let mut bytes = irpa();
    put(&mut bytes, at, n.to_le_bytes());
    refused(class, Format::Irpa, &bytes);
}

/// Siblings of the made IRPA files. The header is at 0, the entry of 76 bytes at 96, its name at 172, data at 192..256.
#[test]
fn irpa_rules() {
    assert!(read(Format::Irpa, &irpa()).is_ok());
    patched("unsupported_version", 0, 0x0000_0001_4150_5249);
    patched("invalid_value", 8, 87);
    patched("invalid_value", 16, 87);
    patched("bad_magic", 16, 200);
    patched("bad_magic", 16, 100);
    patched("out_of_range", 16, u64::MAX);
    patched("truncated", 16, 256);
    patched("out_of_range", 32, 3);
    patched("out_of_range", 40, u64::MAX - 15);
    patched("out_of_range", 48, u64::MAX);
    patched("misaligned", 40, 88);
    patched("out_of_range", 56, u64::MAX);
    patched("out_of_range", 72, u64::MAX - 63);
    patched("out_of_range", 80, 65);
    patched("invalid_value", 96, 75);
    patched("out_of_range", 96, 77);
    patched("unsupported_entry", 104, 4);
    patched("out_of_range", 124, 2);
    patched("out_of_range", 124, u64::MAX);
    patched("out_of_range", 132, 2);
    patched("out_of_range", 140, 2);
    patched("limit_exceeded", 148, 1 << 31);
    patched("invalid_value", 148, 48);
    let mut shifted = irpa();
    put(&mut shifted, 148, 128_u64.to_le_bytes());
    put(&mut shifted, 156, 1_u64.to_le_bytes());
    put(&mut shifted, 164, 8_u64.to_le_bytes());
    refused("misaligned", Format::Irpa, &shifted);
}

#[test]
fn irpa_minor_1_is_read_and_may_be_longer() {
    let mut bytes = irpa();
    put(&mut bytes, 6, 1_u16.to_le_bytes());
    assert_eq!(read(Format::Irpa, &bytes).unwrap().version(), (0, 1));
    put(&mut bytes, 104, 4_u32.to_le_bytes());
    refused("unsupported_entry", Format::Irpa, &bytes);
    let mut bytes = irpa();
    put(&mut bytes, 24, 5_u64.to_le_bytes());
    assert_eq!(read(Format::Irpa, &bytes).unwrap().warnings(), [Warning::UnknownFlags(5)]);
}

/// Some writers let their compiler pad the packed structs.
#[test]
fn irpa_c_padding_is_named() {
    let mut bytes = irpa();
    put(&mut bytes, 96, 80_u64.to_le_bytes());
    put(&mut bytes, 48, 80_u64.to_le_bytes());
    let message = read(Format::Irpa, &bytes).unwrap_err().to_string();
    assert!(
        message.contains("80 bytes") && message.contains("76") && message.contains("C padding"),
        "{message}"
    );
}

/// Links count forward, so a chain can only come back by a sum that wraps.
#[test]
fn irpa_links() {
    let mut bytes = fixture("irpa/linked.irpa");
    put(&mut bytes, 4096 + 16, (0_u64.wrapping_sub(4096)).to_le_bytes());
    refused("cycle", Format::Irpa, &bytes);
    put(&mut bytes, 4096 + 16, (0_u64.wrapping_sub(8192)).to_le_bytes());
    refused("out_of_range", Format::Irpa, &bytes);
    // The same name in two linked headers.
    let mut bytes = fixture("irpa/linked.irpa");
    let names = |name: &[u8], bytes: &[u8]| bytes.windows(name.len()).position(|w| w == name).unwrap();
    let second = names(b"second.w", &bytes);
    let first = names(b"first.w", &bytes);
    bytes.copy_within(first..first + 7, second);
    // Its length is the first name's now: the entry is the first of its table.
    put(&mut bytes, 4096 + 96 + 28, 7_u64.to_le_bytes());
    refused("duplicate_name", Format::Irpa, &bytes);
}

#[test]
fn irpa_external_paths_stay_in_the_folder() {
    let good = fixture("irpa/external/external.irpa");
    let at = good.windows(11).position(|w| w == b"payload.bin").unwrap();
    for (path, fine) in [
        ("payload.bin", true),
        ("sub/loa.bin", true),
        ("a..b/..c.bn", true),
        ("../load.bin", false),
        ("a/../../bin", false),
        ("payload/../", false),
        ("/ayload.bin", false),
        ("C:yload.bin", false),
        ("..\\load.bin", false),
        ("\\\\load.bin0", false),
        ("pay\0oad.bin", false),
    ] {
        let mut bytes = good.clone();
        bytes[at..at + 11].copy_from_slice(&path.as_bytes()[..11]);
        match read(Format::Irpa, &bytes) {
            Ok(_) => assert!(fine, "{path:?} was accepted"),
            Err(error) => assert!(!fine && error.class().name() == "path_escape", "{error}"),
        }
    }
}

/// A few kilobytes whose entries all have overlapping names of 64 KiB: refused before anything is copied.
#[test]
fn irpa_names_do_not_multiply() {
    let entries = 200_usize;
    let names = 60_000_usize;
    let mut bytes = fixture("malformed/irpa/i_control.irpa")[..88].to_vec();
    bytes.resize(96, 0);
    for number in 0..entries {
        let mut entry = [0; 80];
        put(&mut entry, 0, 76_u64.to_le_bytes());
        put(&mut entry, 8, 2_u32.to_le_bytes());
        put(&mut entry, 20, (number as u64).to_le_bytes());
        put(&mut entry, 28, (names as u64 - 1000).to_le_bytes());
        bytes.extend(entry);
    }
    let at = bytes.len() as u64;
    put(&mut bytes, 32, (entries as u64).to_le_bytes());
    put(&mut bytes, 48, (entries as u64 * 80).to_le_bytes());
    put(&mut bytes, 56, at.to_le_bytes());
    put(&mut bytes, 64, (names as u64).to_le_bytes());
    put(&mut bytes, 72, at.to_le_bytes());
    put(&mut bytes, 80, 0_u64.to_le_bytes());
    bytes.extend((0..names).map(|n| b'a' + (n % 23) as u8));
    refused("limit_exceeded", Format::Irpa, &bytes);
}

#[test]
fn shard_index_rules() {
    let class = |text: &str| Shards::parse(text.as_bytes()).map(|_| ()).map_err(|e| e.class().name());
    let map = |file: &str| class(&format!(r#"{{"weight_map":{{"a":{file}}}}}"#));
    assert_eq!(map(r#""one.safetensors""#), Ok(()));
    assert_eq!(map(r#""sub/one.safetensors""#), Ok(()));
    assert_eq!(map(r#""..""#), Err("path_escape"));
    assert_eq!(map(r#""a\\..\\b.safetensors""#), Err("path_escape"));
    assert_eq!(map(r#""\u002e./b.safetensors""#), Err("path_escape"));
    assert_eq!(map(r#""sub\\b.safetensors""#), Err("path_escape"));
    assert_eq!(map(r#""C:/b.safetensors""#), Err("path_escape"));
    assert_eq!(map(r#""""#), Err("path_escape"));
    assert_eq!(map("7"), Err("invalid_type"));
    assert_eq!(class("[]"), Err("invalid_type"));
    assert_eq!(class(""), Err("invalid_json"));
    assert_eq!(class("{}"), Err("invalid_json"));
    assert_eq!(class(r#"{"weight_map":[]}"#), Err("invalid_type"));
    assert_eq!(class(r#"{"weight_map":{},"weight_map":{}}"#), Err("duplicate_key"));
    assert_eq!(class(r#"{"weight_map":{"a":"x","\u0061":"y"}}"#), Err("duplicate_name"));
    assert_eq!(class(r#"{"weight_map":{}} x"#), Err("invalid_json"));
    // A total that is a float, as some writers make it, is as good as none.
    let shards = Shards::parse(br#"{"metadata":{"total_size":1.5e3},"weight_map":{"a":"x"}}"#).unwrap();
    assert_eq!(shards.total_size(), None);
}

/// Headers in a row that all take the same long table of erased entries: work grows with the file, not with its square.
#[test]
fn irpa_tables_do_not_multiply() {
    let (headers, rows) = (2000_u64, 2000_u64);
    let mut bytes = Vec::new();
    for number in 0..headers {
        let left = (headers - number) * 96;
        let mut header = [0; 96];
        put(&mut header, 0, *b"IRPA");
        put(&mut header, 8, 88_u64.to_le_bytes());
        put(&mut header, 16, if number + 1 < headers { 96_u64 } else { 0 }.to_le_bytes());
        put(&mut header, 32, rows.to_le_bytes());
        put(&mut header, 40, left.to_le_bytes());
        put(&mut header, 48, (rows * 64).to_le_bytes());
        bytes.extend(header);
    }
    for _ in 0..rows {
        let mut erased = [0; 64];
        put(&mut erased, 0, 60_u64.to_le_bytes());
        bytes.extend(erased);
    }
    let start = Instant::now();
    refused("limit_exceeded", Format::Irpa, &bytes);
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// A prefix of a bad file asks for more or gives the answer that the whole file gets.
#[test]
fn prefixes_of_bad_files_give_no_other_answer() {
    let manifest = json("malformed/manifest.json");
    for case in manifest["cases"].as_array().unwrap() {
        if case["read_as"] == "safetensors-index" {
            continue;
        }
        let bytes = fixture(&format!("malformed/{}", case["file"].as_str().unwrap()));
        let format = format(case["read_as"].as_str().unwrap());
        let whole = Index::read_as(format, Input::whole(&bytes)).map(|index| index.len());
        for held in (0..bytes.len()).step_by((bytes.len() / 300).max(1)) {
            match Index::read_as(format, Input::prefix(&bytes[..held], bytes.len() as u64)) {
                Err(Stop::Need(need)) => assert!(need > held as u64 && need <= bytes.len() as u64),
                answer => assert_eq!(answer.map(|index| index.len()), whole, "{}: {held}", case["id"]),
            }
        }
    }
}

/// The length of a safetensors header can begin as a pickle does, and one of 640 bytes does.
#[test]
fn a_length_is_no_pickle() {
    let header = format!("{{{A}}}{}", " ".repeat(640 - A.len() - 2));
    let bytes = safetensors(&header, 4);
    assert_eq!(bytes[..2], [0x80, 2]);
    for held in 0..bytes.len() {
        match Index::read_as(Format::Safetensors, Input::prefix(&bytes[..held], bytes.len() as u64)) {
            Err(Stop::Bad(error)) => panic!("{error} with {held} bytes"),
            Err(Stop::Need(_)) => {}
            Ok(index) => assert_eq!(index.len(), 1),
        }
    }
}
