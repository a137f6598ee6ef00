//! What the tests of the archive readers share: the fixtures, and both ways to read a file.

// Each test binary uses its own part of this module.
#![allow(dead_code)]

use std::fs;
use std::path::PathBuf;

use serde_json::Value as Json;
use wharf_core::archive::{Archive, Data, Error, Format, Index, Input, Mark, Stop, Text, examine};

pub(crate) fn fixture(path: &str) -> Vec<u8> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/archives").join(path);
    fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

pub(crate) fn json(path: &str) -> Json {
    serde_json::from_slice(&fixture(path)).unwrap()
}

pub(crate) fn format(name: &str) -> Format {
    [Format::Gguf, Format::Safetensors, Format::Irpa].into_iter().find(|f| f.name() == name).unwrap()
}

/// An entry in a form that can be compared and outlives the bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) dtype: Option<&'static str>,
    pub(crate) shape: Vec<u64>,
    pub(crate) alignment: u64,
    pub(crate) metadata: Option<(u64, u64)>,
    pub(crate) data: Place,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    Range(u64, u64),
    Splat(Vec<u8>, u64),
    External(String, u64, u64),
}

fn text(text: Text<'_>) -> String {
    text.chars().collect()
}

fn place(data: Data<'_>) -> Place {
    match data {
        Data::Range { offset, len } => Place::Range(offset, len),
        Data::Splat { pattern, pattern_len, len } => {
            Place::Splat(pattern[..usize::from(pattern_len)].to_vec(), len)
        }
        Data::External { path, offset, len } => Place::External(text(path), offset, len),
    }
}

fn bad(stop: Stop) -> Error {
    match stop {
        Stop::Bad(error) => error,
        Stop::Need(bytes) => panic!("{bytes} bytes are needed of a file that is there as a whole"),
    }
}

/// Reads without an index: what a firmware without a heap does.
pub(crate) fn walk(format: Format, bytes: &[u8]) -> Result<Vec<Row>, Error> {
    let archive = Archive::open_as(format, Input::whole(bytes)).map_err(bad)?;
    archive.check(&mut vec![Mark::default(); archive.marks() as usize]).map_err(bad)?;
    let rows: Vec<Row> = archive
        .entries()
        .map(|entry| entry.expect("the archive is open"))
        .map(|entry| Row {
            name: text(entry.name),
            dtype: entry.dtype.map(|t| t.name()),
            shape: entry.shape.dims().to_vec(),
            alignment: entry.alignment,
            metadata: entry.metadata.map(|(bytes, at)| (at, bytes.len() as u64)),
            data: place(entry.data),
        })
        .collect();
    assert_eq!(rows.len() as u64, archive.count());
    Ok(rows)
}

pub(crate) fn rows(index: &Index) -> Vec<Row> {
    let row = |item: wharf_core::archive::Item<'_>| Row {
        name: item.name.to_owned(),
        dtype: item.dtype.map(|t| t.name()),
        shape: item.shape.to_vec(),
        alignment: item.alignment,
        metadata: item.metadata.map(|place| (place.offset, place.len)),
        data: place(item.data),
    };
    index.entries().map(row).collect()
}

/// Reads both ways, demands the same answer, that the survey finds a problem exactly in what cannot be read, and that
/// every entry is inside the file and found by its name.
pub(crate) fn read(format: Format, bytes: &[u8]) -> Result<Index, Error> {
    let walked = walk(format, bytes);
    let index = Index::read_as(format, Input::whole(bytes)).map_err(bad);
    let problems = examine(Some(format), Input::whole(bytes)).map_err(bad)?;
    assert_eq!(problems.is_empty(), index.is_ok(), "{index:?}, problems: {problems:?}");
    match (&walked, &index) {
        (Ok(walked), Ok(index)) => assert_eq!(*walked, rows(index)),
        (Err(a), Err(b)) => assert_eq!(a, b),
        (a, b) => panic!("the walk says {a:?}, the index {b:?}"),
    }
    let index = index?;
    for (number, item) in index.entries().enumerate() {
        assert_eq!(index.find(item.name), Some(number));
        if let Data::Range { offset, len } = item.data {
            assert!(offset.checked_add(len).unwrap() <= bytes.len() as u64, "{item:?}");
        }
        if let Some(place) = item.metadata {
            assert!(place.offset.checked_add(place.len).unwrap() <= bytes.len() as u64);
        }
    }
    Ok(index)
}

/// A GGUF file made by hand.
pub(crate) struct Gguf {
    pub(crate) bytes: Vec<u8>,
}

impl Gguf {
    pub(crate) fn new(version: u32, tensors: u64, pairs: u64) -> Self {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(version.to_le_bytes());
        let mut file = Gguf { bytes };
        if version == 1 {
            file.u32(tensors as u32).u32(pairs as u32);
        } else {
            file.u64(tensors).u64(pairs);
        }
        file
    }
    pub(crate) fn u32(&mut self, n: u32) -> &mut Self {
        self.bytes.extend(n.to_le_bytes());
        self
    }
    pub(crate) fn u64(&mut self, n: u64) -> &mut Self {
        self.bytes.extend(n.to_le_bytes());
        self
    }
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend(bytes);
        self
    }
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.u64(text.len() as u64).raw(text.as_bytes())
    }
    pub(crate) fn pair_u32(&mut self, key: &str, n: u32) -> &mut Self {
        self.text(key).u32(4).u32(n)
    }
    pub(crate) fn tensor(&mut self, name: &str, dims: &[u64], kind: u32, offset: u64) -> &mut Self {
        self.text(name).u32(dims.len() as u32);
        for &dim in dims {
            self.u64(dim);
        }
        self.u32(kind).u64(offset)
    }
    /// Pads to `align` and adds data.
    pub(crate) fn data(&mut self, align: usize, len: usize) -> Vec<u8> {
        self.bytes.resize(self.bytes.len().next_multiple_of(align) + len, 7);
        self.bytes.clone()
    }
}

/// A safetensors file with this header and so much data.
pub(crate) fn safetensors(header: &str, data: usize) -> Vec<u8> {
    safetensors_raw(header.as_bytes(), data)
}

pub(crate) fn safetensors_raw(header: &[u8], data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.resize(bytes.len() + data, 7);
    bytes
}
