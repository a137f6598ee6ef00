//! Good files. What must come out was written down by the program that made the files and confirmed by gguf-py, the
//! reference reader of safetensors and IREE's reader, each where it can read the file.
#![cfg(feature = "alloc")]
// A test that cannot go on has failed.
#![allow(clippy::unwrap_used)]

mod archive_common;

use archive_common::{Gguf, Place, fixture, format, json, read, rows, safetensors};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use wharf_core::archive::gguf::Part;
use wharf_core::archive::{Data, Format, Index, Input, Shards, Stop, Value, Warning};

fn archives() -> Vec<Json> {
    let all: Vec<Json> = serde_json::from_value(json("expected.json")).unwrap();
    let all: Vec<Json> = all.into_iter().filter(|file| file["format"] != "safetensors-index").collect();
    assert!(all.len() >= 50, "only {} fixtures", all.len());
    all
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check_row(path: &str, want: &Json, got: &archive_common::Row, bytes: &[u8]) {
    assert_eq!(want["name"].as_str().unwrap(), got.name, "{path}");
    let what = format!("{path}: {}", got.name);
    if let Some(dtype) = want["dtype"].as_str() {
        assert_eq!(got.dtype, Some(dtype), "{what}");
        let shape: Vec<u64> = serde_json::from_value(want["shape"].clone()).unwrap();
        assert_eq!(got.shape, shape, "{what}");
    }
    let len = want["length"].as_u64().unwrap();
    match &got.data {
        Place::Range(offset, got_len) => {
            assert_eq!(*got_len, len, "{what}");
            if let Some(want) = want["offset"].as_u64() {
                assert_eq!(*offset, want, "{what}");
            }
            if let Some(sum) = want["sha256"].as_str() {
                let stored = &bytes[*offset as usize..(offset + len) as usize];
                assert_eq!(hex(&Sha256::digest(stored)), sum, "{what}");
            }
        }
        Place::Splat(pattern, got_len) => {
            assert_eq!((want["kind"].as_str(), *got_len), (Some("splat"), len), "{what}");
            assert_eq!(hex(pattern), want["pattern_hex"].as_str().unwrap(), "{what}");
        }
        Place::External(file, offset, got_len) => {
            assert_eq!(Some(file.as_str()), want["external_path"].as_str());
            assert_eq!((Some(*offset), *got_len), (want["external_offset"].as_u64(), len));
        }
    }
    if let Some(metadata) = want["entry_metadata_hex"].as_str() {
        let (at, len) = got.metadata.expect("metadata");
        assert_eq!(hex(&bytes[at as usize..(at + len) as usize]), metadata, "{what}");
    }
    if let Some(alignment) = want["minimum_alignment"].as_u64() {
        assert_eq!(got.alignment, alignment.max(1), "{what}");
    }
}

#[test]
fn good_files_give_the_expected_table() {
    for file in archives() {
        let path = file["path"].as_str().unwrap();
        let bytes = fixture(path);
        // Where `verdict` would allow a refusal, this reader has decided to read.
        let index =
            read(format(file["format"].as_str().unwrap()), &bytes).unwrap_or_else(|e| panic!("{path}: {e}"));
        let want = file["tensors"].as_array().unwrap();
        assert_eq!(index.len(), want.len(), "{path}");
        let got = rows(&index);
        for (number, want) in want.iter().enumerate() {
            // The table is in the order of the data, ours in the order of the file: they differ where the header does.
            let found =
                index.find(want["name"].as_str().unwrap()).unwrap_or_else(|| panic!("{path}: {want}"));
            assert!(
                found == number || path.ends_with("header_not_in_offset_order.safetensors"),
                "{path}: {want}"
            );
            check_row(path, want, &got[found], &bytes);
        }
        if let Some(at) = file["data_offset"].as_u64() {
            assert_eq!(index.data_at(), at, "{path}");
        }
        if let Some(alignment) = file["alignment"].as_u64() {
            assert_eq!(index.alignment(), alignment, "{path}");
        }
        if let Some(version) = file["version"].as_u64() {
            assert_eq!(u64::from(index.version().0), version, "{path}");
        }
        if let Some(endian) = file["endian"].as_str() {
            assert_eq!(index.big_endian(), endian == "big", "{path}");
        }
        for pairs in [&file["n_kv"], &file["n_metadata"]].into_iter().filter_map(Json::as_u64) {
            assert_eq!(index.metadata().len() as u64, pairs, "{path}");
        }
    }
}

#[test]
fn content_decides_the_format() {
    for file in archives() {
        let bytes = fixture(file["path"].as_str().unwrap());
        let want = format(file["format"].as_str().unwrap());
        assert_eq!(Format::detect(&bytes), Some(want));
        assert_eq!(Index::read(Input::whole(&bytes)).unwrap().format(), want);
    }
}

/// A file is read by growing prefixes to the same table, and never needs a byte of data.
#[test]
fn prefixes_lead_to_the_same_table() {
    for file in archives() {
        let path = file["path"].as_str().unwrap();
        let bytes = fixture(path);
        let whole = Index::read(Input::whole(&bytes)).unwrap();
        let mut held = 0_usize;
        let mut steps = 0;
        let index = loop {
            match Index::read(Input::prefix(&bytes[..held], bytes.len() as u64)) {
                Ok(index) => break index,
                Err(Stop::Need(need)) => {
                    assert!(need > held as u64 && need <= bytes.len() as u64, "{path}: {need} after {held}");
                    // Every step of the small ones, doubling for the rest.
                    held = if bytes.len() < 8192 { need as usize } else { (need as usize).max(held * 2) };
                    held = held.min(bytes.len());
                    steps += 1;
                }
                Err(Stop::Bad(error)) => panic!("{path}: {error} with {held} bytes"),
            }
        };
        assert!(steps > 0);
        assert_eq!(rows(&index), rows(&whole), "{path}");
        if index.data_at() > 0 && bytes.len() < 8192 && index.format() == Format::Safetensors {
            // The first look at a file is 512 bytes at most.
            assert!(held as u64 <= index.data_at().max(512), "{path}: {held}");
        }
    }
}

/// Every file that ends before its last tensor does is refused, at every length.
#[test]
fn cut_files_are_refused() {
    for file in archives() {
        let path = file["path"].as_str().unwrap();
        let bytes = fixture(path);
        let index = Index::read(Input::whole(&bytes)).unwrap();
        let ends = index.entries().filter_map(|item| match item.data {
            Data::Range { offset, len } if len > 0 => Some(offset + len),
            _ => None,
        });
        let end = ends.max().unwrap_or(0) as usize;
        let step = (end / 2000).max(1);
        for cut in (0..end).rev().step_by(step) {
            let error = read(index.format(), &bytes[..cut]).expect_err(path);
            let class = error.class().name();
            assert!(["truncated", "out_of_range"].contains(&class), "{path} cut at {cut}: {error}");
            assert!(!error.to_string().contains("{a"), "{error}");
        }
    }
}

#[test]
fn flipped_bytes_never_lead_outside_the_file() {
    for file in archives() {
        let mut bytes = fixture(file["path"].as_str().unwrap());
        if bytes.len() > 8192 {
            continue;
        }
        for at in 0..bytes.len().min(1024) {
            let old = bytes[at];
            for new in [old ^ 1, old ^ 0x80, !old, 0, 0xff] {
                bytes[at] = new;
                for format in [Format::Gguf, Format::Safetensors, Format::Irpa] {
                    if let Err(error) = read(format, &bytes) {
                        assert!(!error.to_string().contains("{a"), "{error}");
                    }
                }
            }
            bytes[at] = old;
        }
    }
}

fn same(want: &Json, got: &Value) {
    match got {
        Value::Unsigned(n) => assert_eq!(want.as_u64(), Some(*n)),
        Value::Signed(n) => assert_eq!(want.as_i64(), Some(*n)),
        Value::Bool(b) => assert_eq!(want.as_bool(), Some(*b)),
        Value::Text(text) => assert_eq!(want.as_str(), Some(text.as_str())),
        Value::Float(x) => match want.as_str() {
            Some("nan") => assert!(x.is_nan()),
            Some("inf") => assert_eq!(*x, f64::INFINITY),
            Some("-inf") => assert_eq!(*x, f64::NEG_INFINITY),
            _ => assert_eq!(want.as_f64(), Some(*x)),
        },
        Value::Array { count, .. } => assert_eq!(want.as_array().map(Vec::len), Some(*count as usize)),
        Value::LongText(_) => panic!("no text there is that long"),
    }
}

#[test]
fn every_type_of_metadata_is_read() {
    use wharf_core::archive::gguf::{Gguf, Value as Raw};
    let files = archives();
    let want = &files.iter().find(|file| file["path"] == "gguf/all_kv_types.gguf").unwrap()["metadata"];
    let bytes = fixture("gguf/all_kv_types.gguf");
    let index = Index::read(Input::whole(&bytes)).unwrap();
    assert_eq!(index.metadata().len(), want.as_object().unwrap().len());
    for pair in index.metadata() {
        same(&want[&pair.key], &pair.value);
    }
    let file = Gguf::open(Input::whole(&bytes)).unwrap();
    for (key, value) in file.metadata().map(|pair| pair.unwrap()) {
        let Raw::Array(array) = value else { continue };
        let want = want[key.raw()].as_array().unwrap();
        assert_eq!(array.iter().count(), want.len());
        for (want, got) in want.iter().zip(array.iter()) {
            match got {
                Raw::F32(x) => assert_eq!(want.as_f64(), Some(x.into())),
                Raw::F64(x) => assert_eq!(want.as_f64(), Some(x)),
                Raw::Bool(b) => assert_eq!(want.as_bool(), Some(b)),
                Raw::Text(text) => assert_eq!(want.as_str().unwrap().as_bytes(), text.bytes()),
                n => assert_eq!(want.as_i64().map(i128::from).or(want.as_u64().map(i128::from)), n.integer()),
            }
        }
    }
}

#[test]
fn a_part_of_a_set_says_so() {
    for number in 1..=3 {
        let bytes = fixture(&format!("gguf/split/model-0000{number}-of-00003.gguf"));
        let index = Index::read(Input::whole(&bytes)).unwrap();
        assert_eq!(index.part(), Some(Part { number, count: 3, tensors: Some(5) }));
    }
    assert_eq!(Index::read(Input::whole(&fixture("gguf/shapes.gguf"))).unwrap().part(), None);
}

#[test]
fn unusual_files_are_read_with_warnings() {
    let warnings = |path: &str| Index::read(Input::whole(&fixture(path))).unwrap().warnings().to_vec();
    assert_eq!(
        warnings("gguf/long_names.gguf"),
        [Warning::LongName { entry: 1, len: 65 }, Warning::LongName { entry: 2, len: 1000 }]
    );
    // 296 bytes, of which the last tensor with its padding ends at 224.
    assert_eq!(warnings("gguf/trailing_bytes.gguf"), [Warning::TrailingBytes(296 - 224)]);
    assert_eq!(warnings("gguf/big_endian.gguf"), [Warning::BigEndian]);
    assert_eq!(warnings("gguf/shapes.gguf"), []);
    assert_eq!(warnings("gguf/no_final_padding.gguf"), []);
}

/// Counts, lengths and dimensions of version 1 have 4 bytes.
#[test]
fn version_1_is_read() {
    let mut file = Gguf::new(1, 1, 2);
    file.u32(1).raw(b"k").u32(8).u32(2).raw(b"ab");
    file.u32(1).raw(b"v").u32(9).u32(8).u32(2).u32(1).raw(b"x").u32(0);
    file.u32(1).raw(b"a").u32(2).u32(3).u32(2).u32(0).u64(0);
    let header = file.bytes.len().next_multiple_of(32) as u64;
    let index = read(Format::Gguf, &file.data(32, 24)).unwrap();
    assert_eq!(index.version(), (1, 0));
    let row = &rows(&index)[0];
    assert_eq!((row.name.as_str(), &row.shape[..], &row.data), ("a", &[2, 3][..], &Place::Range(header, 24)));
    assert_eq!(index.metadata()[0].value, Value::Text("ab".into()));
}

#[test]
fn the_index_of_shards_is_read() {
    let files: Vec<Json> = serde_json::from_value(json("expected.json")).unwrap();
    let want = files.iter().find(|file| file["format"] == "safetensors-index").unwrap();
    let shards = Shards::parse(&fixture("safetensors/sharded/model.safetensors.index.json")).unwrap();
    assert_eq!(shards.total_size(), want["total_size"].as_u64());
    let map = want["weight_map"].as_object().unwrap();
    assert_eq!(shards.tensors().len(), map.len());
    for (name, file) in shards.tensors() {
        assert_eq!(map[name].as_str(), Some(shards.files()[file].as_str()));
    }
    assert_eq!(shards.files().len(), 3);
}

/// 20,000 tensors beside a vocabulary of 120,000 strings; a quarter of a second leaves room for a debug build on a busy
/// machine, a release build takes a few milliseconds.
#[test]
fn long_tables_are_listed_fast() {
    let mut file = Gguf::new(3, 20_000, 1);
    file.text("tokenizer.ggml.tokens").u32(9).u32(8).u64(120_000);
    for token in 0..120_000 {
        file.text(&format!("token-of-some-length-{token}"));
    }
    for number in 0..20_000_u64 {
        file.tensor(&format!("model.layers.{number}.weight"), &[8, 1], 0, number * 32);
    }
    let bytes = file.data(32, 20_000 * 32);
    let start = std::time::Instant::now();
    let index = Index::read(Input::whole(&bytes)).unwrap();
    let time = start.elapsed();
    println!("{} tensors, {} bytes of header: {time:?}", index.len(), index.data_at());
    assert_eq!(index.find("model.layers.19999.weight"), Some(19_999));
    assert!(matches!(index.metadata()[0].value, Value::Array { count: 120_000, .. }));
    assert!(time.as_millis() < 250 * if cfg!(debug_assertions) { 4 } else { 1 }, "{time:?}");
}

/// 5,000 pairs and one of 1.5 MB: the long one stays in the file.
#[test]
fn long_texts_of_metadata_stay_in_the_file() {
    let mut header = String::from("{\"__metadata__\":{");
    for number in 0..5000 {
        header += &format!("\"key{number}\":\"{number}\",");
    }
    header += &format!(
        "\"long\":\"{}\"}},\"w\":{{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}}}",
        "x".repeat(1_500_000)
    );
    let bytes = safetensors(&header, 16);
    let index = read(Format::Safetensors, &bytes).unwrap();
    assert_eq!(index.metadata().len(), 5001);
    assert_eq!(index.metadata()[4999].value, Value::Text("4999".into()));
    let Value::LongText(place) = &index.metadata()[5000].value else { panic!("it was copied") };
    assert_eq!(place.len, 1_500_000);
    assert!(bytes[place.offset as usize..][..place.len as usize].iter().all(|&byte| byte == b'x'));
}
