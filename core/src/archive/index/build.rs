//! How an index comes about: in one pass, as the archive is read through. What [`Archive::check`] refuses is found in what
//! was kept, by the table of names and by ranges that mostly are in order already; only a file that is refused is read
//! once more, so that the error is the same with and without a heap.

use alloc::string::String;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::super::any::Archive;
use super::super::check::Mark;
use super::super::entry::{Data, Entry, Text};
use super::super::error::{Class, Error};
use super::super::input::{Input, Stop};
use super::super::limits;
use super::super::sniff::Format;
use super::{Facts, Index, Pair, Place, Row, Span, Stored, Warning, metadata, warning};

pub(super) fn read(format: Format, input: Input<'_>) -> Result<Index, Stop> {
    let mut index = Index {
        facts: Facts::none(format, input.len()),
        rows: Vec::new(),
        text: String::new(),
        dims: Vec::new(),
        names: HashTable::new(),
        hasher: DefaultHashBuilder::default(),
        pairs: Vec::new(),
        warnings: Vec::new(),
    };
    // Nothing more is kept once a name came again: entries that share one name would make much of a small file.
    let mut once = true;
    let archive = Archive::open_with(format, input, |entry| once = once && index.add(entry))?;
    index.pairs = metadata::read(&archive)?;
    let dense = match &archive {
        Archive::Safetensors(file) => Some((file.data_at(), input.len())),
        Archive::Gguf(_) | Archive::Irpa(_) => None,
    };
    // Entries of IRPA may share bytes.
    let apart = format == Format::Irpa || index.apart(dense);
    if !once || !apart || !differ(&index.pairs) {
        refuse(&archive)?;
    }
    index.facts = Facts::of(&archive, input);
    warning::add(&archive, &mut index.warnings);
    Ok(index)
}

/// Says what is wrong with a file that was found wanting.
fn refuse(archive: &Archive<'_>) -> Result<(), Stop> {
    // The archive is open: the count is of what was read, not of what the file says.
    let marks = usize::try_from(archive.marks()).map_err(|_| {
        Error::new(Class::LimitExceeded, 0, "{a} entries do not fit this machine's memory")
            .values(archive.marks(), 0)
    })?;
    archive.check(&mut alloc::vec![Mark::default(); marks])?;
    Err(Error::new(Class::DuplicateName, 0, "a name or a range of bytes occurs twice").into())
}

/// Whether no key occurs twice.
fn differ(pairs: &[Pair]) -> bool {
    let mut keys: Vec<&str> = pairs.iter().map(|pair| pair.key.as_str()).collect();
    keys.sort_unstable();
    keys.is_sorted_by(|a, b| a != b)
}

impl Index {
    /// Keeps an entry; false if its name is there already.
    fn add(&mut self, entry: &Entry<'_>) -> bool {
        let name = self.keep(entry.name);
        // Entries are limited to fewer than 2^32.
        let number = self.rows.len() as u32;
        if !self.enter(name, number) {
            return false;
        }
        let begin = self.dims.len();
        self.dims.extend_from_slice(entry.shape.dims());
        let data = match entry.data {
            Data::Range { offset, len } => Stored::Range(Place { offset, len }),
            Data::Splat { pattern, pattern_len, len } => Stored::Splat { pattern, pattern_len, len },
            Data::External { path, offset, len } => {
                Stored::External { path: self.keep(path), place: Place { offset, len } }
            }
        };
        self.rows.push(Row {
            name,
            dtype: entry.dtype,
            dims: Span { begin, end: self.dims.len() },
            alignment: entry.alignment,
            metadata: entry.metadata.map(|(bytes, offset)| Place { offset, len: bytes.len() as u64 }),
            data,
        });
        if self.facts.format == Format::Gguf && name.end - name.begin > limits::GGUF_NAME_BYTES {
            let len = name.end - name.begin;
            self.warn(Warning::LongName { entry: number as usize, len });
        }
        true
    }

    /// Enters a name that was kept into the table; false if it is there already.
    fn enter(&mut self, name: Span, number: u32) -> bool {
        let Index { names, hasher, text, rows, .. } = self;
        let of = |number: u32| &text[rows.get(number as usize).map_or(name, |row| row.name).range()];
        let own = &text[name.range()];
        let entry =
            names.entry(hasher.hash_one(own), |other| of(*other) == own, |other| hasher.hash_one(of(*other)));
        match entry {
            hashbrown::hash_table::Entry::Occupied(_) => false,
            hashbrown::hash_table::Entry::Vacant(slot) => {
                slot.insert(number);
                true
            }
        }
    }

    fn keep(&mut self, text: Text<'_>) -> Span {
        let begin = self.text.len();
        match text.as_plain() {
            Some(plain) => self.text.push_str(plain),
            None => self.text.extend(text.chars()),
        }
        Span { begin, end: self.text.len() }
    }

    fn warn(&mut self, warning: Warning) {
        if self.warnings.len() < limits::WARNINGS {
            self.warnings.push(warning);
        }
    }

    /// Whether entries share no bytes and, where the format forbids them, there are no holes: the rules of
    /// [`Archive::check`], with yes or no as the answer.
    fn apart(&self, dense: Option<(u64, u64)>) -> bool {
        let mut ranges: Vec<(u64, u64)> = Vec::with_capacity(self.rows.len());
        ranges.extend(self.rows.iter().filter_map(|row| match row.data {
            Stored::Range(Place { offset, len }) => Some((offset, offset + len)),
            _ => None,
        }));
        if !ranges.is_sorted() {
            ranges.sort_unstable();
        }
        let mut end = dense.map_or(0, |(begin, _)| begin);
        for (begin, stop) in ranges {
            let empty = stop == begin;
            if (begin < end && (!empty || dense.is_some())) || (begin > end && dense.is_some()) {
                return false;
            }
            if !empty {
                end = stop;
            }
        }
        dense.is_none_or(|(_, stop)| stop <= end)
    }
}

impl Facts {
    fn none(format: Format, len: u64) -> Facts {
        Facts { format, version: (0, 0), big: false, alignment: 1, data_at: 0, part: None, len }
    }

    fn of(archive: &Archive<'_>, input: Input<'_>) -> Facts {
        let plain = Facts::none(archive.format(), input.len());
        match archive {
            Archive::Gguf(file) => Facts {
                version: (file.version(), 0),
                big: file.big_endian(),
                alignment: file.alignment(),
                data_at: file.data_at(),
                part: file.part(),
                ..plain
            },
            Archive::Safetensors(file) => Facts { data_at: file.data_at(), ..plain },
            Archive::Irpa(file) => Facts { version: (0, u32::from(file.minor())), ..plain },
        }
    }
}
