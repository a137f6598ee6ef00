//! The table of an archive that outlives the bytes it was read from: entries in the order of the file, found by name
//! through a hash; metadata; facts; warnings. Names go into one text, dimensions into one list; arrays and long texts
//! of metadata stay in the file and only their place is kept.

mod build;
mod metadata;
mod warning;

use alloc::string::String;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

pub use metadata::{Pair, Value};
pub use warning::Warning;

use super::dtype::Dtype;
use super::entry::{Data, Text};
use super::gguf::Part;
use super::input::{Input, Stop};
use super::sniff::{self, Format};
#[cfg(doc)]
use super::{any::Archive, limits};

/// A range of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From the beginning of the file.
    pub offset: u64,
    /// In bytes.
    pub len: u64,
}

/// Facts of a file as a whole.
#[derive(Clone, Copy, Debug)]
struct Facts {
    format: Format,
    version: (u32, u32),
    big: bool,
    alignment: u64,
    data_at: u64,
    part: Option<Part>,
    len: u64,
}

/// The table of an archive.
#[derive(Clone, Debug)]
pub struct Index {
    facts: Facts,
    rows: Vec<Row>,
    text: String,
    dims: Vec<u64>,
    names: HashTable<u32>,
    hasher: DefaultHashBuilder,
    pairs: Vec<Pair>,
    warnings: Vec<Warning>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    begin: usize,
    end: usize,
}

#[derive(Clone, Debug)]
struct Row {
    name: Span,
    dtype: Option<Dtype>,
    dims: Span,
    alignment: u64,
    metadata: Option<Place>,
    data: Stored,
}

#[derive(Clone, Debug)]
enum Stored {
    Range(Place),
    Splat { pattern: [u8; 16], pattern_len: u8, len: u64 },
    External { path: Span, place: Place },
}

/// An entry of an [`Index`].
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The key.
    pub name: &'a str,
    /// The type, where the format has types.
    pub dtype: Option<Dtype>,
    /// The dimensions, outermost first; empty for a scalar and where the format has none.
    pub shape: &'a [u64],
    /// The alignment that the file declares for the entry, 1 if it declares none.
    pub alignment: u64,
    /// Where the bytes are that the format keeps with the entry.
    pub metadata: Option<Place>,
    /// Where the bytes are.
    pub data: Data<'a>,
}

impl Index {
    /// Reads and checks a file of the format that its content shows.
    ///
    /// # Errors
    /// As [`Archive::open`] and [`Archive::check`].
    pub fn read(input: Input<'_>) -> Result<Index, Stop> {
        Self::read_as(sniff::format(&input)?, input)
    }
    /// Reads and checks a file that must be of this format.
    ///
    /// # Errors
    /// As [`Archive::open_as`] and [`Archive::check`].
    pub fn read_as(format: Format, input: Input<'_>) -> Result<Index, Stop> {
        build::read(format, input)
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.facts.format
    }
    /// Major and minor version; 0.0 where the format has none.
    pub fn version(&self) -> (u32, u32) {
        self.facts.version
    }
    /// True if header and data are big-endian.
    pub fn big_endian(&self) -> bool {
        self.facts.big
    }
    /// The alignment that the file declares for all entries, 1 if it declares none.
    pub fn alignment(&self) -> u64 {
        self.facts.alignment
    }
    /// Where the data begins; 0 where there is no one such place (IRPA).
    pub fn data_at(&self) -> u64 {
        self.facts.data_at
    }
    /// Length of the file.
    pub fn file_len(&self) -> u64 {
        self.facts.len
    }
    /// Which part of a split model the file is.
    pub fn part(&self) -> Option<Part> {
        self.facts.part
    }
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// True for a file of no entries.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// Entry `number` in the order of the file.
    pub fn entry(&self, number: usize) -> Option<Item<'_>> {
        let row = self.rows.get(number)?;
        let data = match row.data {
            Stored::Range(Place { offset, len }) => Data::Range { offset, len },
            Stored::Splat { pattern, pattern_len, len } => Data::Splat { pattern, pattern_len, len },
            Stored::External { path, place: Place { offset, len } } => {
                Data::External { path: Text::plain(&self.text[path.range()], 0), offset, len }
            }
        };
        Some(Item {
            name: &self.text[row.name.range()],
            dtype: row.dtype,
            shape: &self.dims[row.dims.range()],
            alignment: row.alignment,
            metadata: row.metadata,
            data,
        })
    }
    /// The name of entry `number` in the order of the file.
    pub fn name(&self, number: usize) -> Option<&str> {
        self.rows.get(number).map(|row| &self.text[row.name.range()])
    }
    /// The entries in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = Item<'_>> {
        (0..self.rows.len()).filter_map(|number| self.entry(number))
    }
    /// Number of the entry with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        let same = |number: &u32| &self.text[self.rows[*number as usize].name.range()] == name;
        self.names.find(self.hasher.hash_one(name), same).map(|&number| number as usize)
    }
    /// The metadata of the file in its order.
    pub fn metadata(&self) -> &[Pair] {
        &self.pairs
    }
    /// What is unusual about the file, but allowed. At most [`limits::WARNINGS`].
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl Span {
    fn range(self) -> core::ops::Range<usize> {
        self.begin..self.end
    }
}
