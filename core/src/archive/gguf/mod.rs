//! GGUF, versions 1 to 3, little-endian and (version 3) big-endian: a header, typed metadata, tensor infos, padding, data.
//! Layout as in ggml's `gguf.md`. A big-endian file is listed as it is; its data is not swapped.
//!
//! Stricter than most readers: no tensor shares bytes with another, offsets meet the alignment, no name or key occurs
//! twice. Laxer where real files are: offsets in any order, no padding after the last tensor, bytes after it.

mod tensor;
mod value;

pub use tensor::Entries;
pub use value::{Array, Elements, Metadata, RawText, Value, ValueType};

use super::check::{self, Mark};
use super::entry::{Data, Entry};
use super::error::{Class, Error};
use super::input::{Cursor, Input, Stop};
use super::{limits, sniff};
use tensor::Info;

/// One part of a model that was split into files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which part this file is, from 1.
    pub number: u64,
    /// How many parts there are.
    pub count: u64,
    /// How many tensors all parts have together, if the file says.
    pub tensors: Option<u64>,
}

/// A GGUF file whose header was read through and whose tensors are all inside the file.
#[derive(Clone, Copy, Debug)]
pub struct Gguf<'a> {
    input: Input<'a>,
    version: u32,
    big: bool,
    tensors: u64,
    pairs: u64,
    pairs_at: u64,
    infos_at: u64,
    data_at: u64,
    end: u64,
    alignment: u64,
    part: Option<Part>,
}

impl<'a> Gguf<'a> {
    /// Reads header, metadata and tensor infos through.
    ///
    /// # Errors
    /// [`Stop::Need`] until all of it is in memory; the class of what is wrong with it.
    pub fn open(input: Input<'a>) -> Result<Self, Stop> {
        Self::open_with(input, |_| {})
    }

    /// The same, and gives every tensor to `each`.
    pub(super) fn open_with(input: Input<'a>, mut each: impl FnMut(&Entry<'a>)) -> Result<Self, Stop> {
        let mut file = Self::layout(input)?;
        for entry in file.entries() {
            let entry = entry?;
            if let Data::Range { offset, len } = entry.data {
                file.end = file.end.max(offset + len);
            }
            each(&entry);
        }
        Ok(file)
    }

    /// Reads to the end of the infos, without holding them against the data.
    fn layout(input: Input<'a>) -> Result<Self, Stop> {
        let (mut file, mut cursor) = Self::header(input)?;
        file.read_pairs(&mut cursor)?;
        file.infos_at = cursor.at;
        for _ in 0..file.tensors {
            Info::read(&mut cursor, file.version)?;
        }
        // With no tensors there's no data either, and writers leave the padding out.
        file.data_at = if file.tensors == 0 {
            cursor.at
        } else {
            cursor.at.checked_next_multiple_of(file.alignment).ok_or_else(|| {
                Error::new(Class::Overflow, cursor.at, "the data begins past 2^64: alignment {a}")
                    .values(file.alignment, 0)
            })?
        };
        file.end = file.data_at;
        Ok(file)
    }

    /// Gives every tensor, good or bad, to a survey.
    #[cfg(feature = "alloc")]
    pub(super) fn survey(input: Input<'a>, survey: &mut super::examine::Survey) -> Result<(), Stop> {
        let file = Self::layout(input)?;
        for entry in file.entries() {
            match entry {
                Ok(entry) => survey.entry(Ok(entry)),
                Err(Stop::Bad(error)) => survey.entry(Err(error)),
                Err(need) => return Err(need),
            }
        }
        let mut keys = alloc::vec::Vec::new();
        for pair in file.metadata() {
            let (key, _) = pair?;
            keys.push((key.chars().collect(), key.at()));
        }
        survey.once(keys, Class::DuplicateKey);
        Ok(())
    }

    /// The fixed part: magic, version, counts.
    fn header(input: Input<'a>) -> Result<(Self, Cursor<'a>), Stop> {
        sniff::magic(&input, "gguf")?;
        let mut cursor = Cursor::new(input, 0);
        cursor.take(4)?;
        let mut version = cursor.u32()?;
        // A small number in the other byte order has only its high byte set.
        let big = version != 0 && version.trailing_zeros() >= 16;
        if big {
            cursor.big = true;
            version = version.swap_bytes();
        }
        if !(1..=3).contains(&version) || (big && version != 3) {
            let class =
                if big && version <= 3 { Class::UnsupportedEndianness } else { Class::UnsupportedVersion };
            let detail = match big {
                true => "version {a}, big-endian; versions 1 to 3 are read, and version 3 if big-endian",
                false => "version {a}; versions 1 to 3 are read",
            };
            return Err(Error::new(class, 4, detail).values(u64::from(version), 0).into());
        }
        let tensors = count(&mut cursor, version)?;
        let pairs = count(&mut cursor, version)?;
        for (count, limit, at) in [(tensors, limits::ENTRIES, 8), (pairs, limits::PAIRS, 16)] {
            if count <= limit {
                continue;
            }
            if big && count.swap_bytes() <= limit {
                let detail = "the version is big-endian, the counts are little-endian";
                return Err(Error::new(Class::UnsupportedEndianness, at, detail).into());
            }
            let detail = if at == 8 {
                "{a} tensors, at most {b} are read"
            } else {
                "{a} metadata pairs, at most {b} are read"
            };
            return Err(Error::new(Class::LimitExceeded, at, detail).values(count, limit).into());
        }
        let at = cursor.at;
        let file = Gguf {
            input,
            version,
            big,
            tensors,
            pairs,
            pairs_at: at,
            infos_at: at,
            data_at: at,
            end: at,
            alignment: 32,
            part: None,
        };
        Ok((file, cursor))
    }

    /// Steps over the metadata and keeps what matters for the layout.
    fn read_pairs(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Stop> {
        let mut aligned = false;
        let (mut number, mut count, mut total) = (None, None, None);
        let mut pairs = self.metadata();
        for pair in pairs.by_ref() {
            let (key, value) = pair?;
            match key.raw() {
                "general.alignment" if core::mem::replace(&mut aligned, true) => {
                    return Err(Error::new(Class::DuplicateKey, key.at(), "{name} occurs twice")
                        .name(key)
                        .into());
                }
                "general.alignment" => self.alignment = value::alignment(key, value)?,
                "split.no" => number = Some(value::whole(key, value)?),
                "split.count" => count = Some(value::whole(key, value)?),
                "split.tensors.count" => total = Some(value::whole(key, value)?),
                _ => {}
            }
        }
        cursor.at = pairs.at();
        self.part = part(number, count, total, self.tensors)?;
        Ok(())
    }

    /// Version of the format.
    pub const fn version(&self) -> u32 {
        self.version
    }
    /// True if header and data are big-endian.
    pub const fn big_endian(&self) -> bool {
        self.big
    }
    /// Alignment of the tensors' offsets.
    pub const fn alignment(&self) -> u64 {
        self.alignment
    }
    /// Which part of a split model the file is.
    pub const fn part(&self) -> Option<Part> {
        self.part
    }
    /// Where the data begins.
    pub const fn data_at(&self) -> u64 {
        self.data_at
    }
    /// Bytes after the last tensor and its padding.
    pub fn trailing(&self) -> u64 {
        let padded = self.end.checked_next_multiple_of(self.alignment).unwrap_or(self.end);
        self.input.len().saturating_sub(padded)
    }
    /// How many tensors there are.
    pub const fn count(&self) -> u64 {
        self.tensors
    }
    /// How many pairs of metadata there are.
    pub const fn metadata_count(&self) -> u64 {
        self.pairs
    }
    /// The tensors in the order of their infos.
    pub fn entries(&self) -> Entries<'a> {
        Entries::new(*self)
    }
    /// The pairs of metadata in order.
    pub fn metadata(&self) -> Metadata<'a> {
        let mut cursor = Cursor::new(self.input, self.pairs_at);
        cursor.big = self.big;
        Metadata::new(cursor, self.version, self.pairs)
    }

    /// Refuses names and keys that occur twice, and overlaps. Needs a mark for each tensor, or pair of metadata if those
    /// are more.
    ///
    /// # Errors
    /// The class of what is wrong; `limit_exceeded` with too few marks.
    pub fn check(&self, marks: &mut [Mark]) -> Result<(), Stop> {
        let names = self.entries().map(|entry| Ok(entry?.name));
        check::names(self.input, false, names, marks, Class::DuplicateName)?;
        let keys = self.metadata().map(|pair| Ok(pair?.0));
        check::names(self.input, false, keys, marks, Class::DuplicateKey)?;
        check::ranges(self.entries(), marks, None)
    }
}

/// A count or length: 4 bytes in version 1, 8 after it.
#[inline]
fn count(cursor: &mut Cursor<'_>, version: u32) -> Result<u64, Stop> {
    if version == 1 { cursor.u32().map(u64::from) } else { cursor.u64() }
}

/// What the `split.*` keys say; gguf-split writes a count of 0 into what it merged.
fn part(
    number: Option<u64>,
    count: Option<u64>,
    total: Option<u64>,
    own: u64,
) -> Result<Option<Part>, Error> {
    let Some(count) = count.filter(|&count| count > 0) else {
        return Ok(None);
    };
    let number = number.unwrap_or(0);
    if number >= count {
        let detail = "split.no is {a}, but split.count says that there are {b} parts";
        return Err(Error::new(Class::InvalidValue, 0, detail).values(number, count));
    }
    if total.is_some_and(|total| total < own) {
        let detail = "{a} tensors are in this part, but split.tensors.count says that all parts have {b}";
        return Err(Error::new(Class::InvalidValue, 0, detail).values(own, total.unwrap_or(0)));
    }
    Ok(Some(Part { number: number + 1, count, tensors: total }))
}
