//! IRPA as IREE's tools write it: header, table of entries, names and metadata, storage. The table begins at byte 96,
//! entries at multiples of 16, names behind the table without gaps, the storage segment and every entry in it at
//! multiples of the alignment; the file ends at a multiple of 4096, in zeros.
//!
//! Where IREE aligns to any number that it is given, only powers of two up to a limit are taken here.

use super::super::error::{Class, Error};
use super::super::limits;
use super::{Draft, DraftData, Sink, align, named, power, refuse, sum, zeros};

/// The alignment of stored entries that IREE's tools use.
pub const ALIGNMENT: u64 = 64;

const HEADER: u64 = 88;
/// Where the table begins.
const TABLE: u64 = 96;
const STEP: u64 = 16;
const PAGE: u64 = 4096;
/// Bytes of an entry, packed.
const SPLAT: u64 = 85;
const DATA: u64 = 76;

/// Where everything is in a file that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    count: u64,
    table: u64,
    names: u64,
    storage_at: u64,
    storage: u64,
    alignment: u64,
    len: u64,
}

impl Layout {
    /// The layout of a file with these entries.
    ///
    /// # Errors
    /// An alignment that is no power of two, a name that is too long, a pattern that does not divide its entry, more
    /// entries than are read, sizes past any file.
    pub fn of<'a>(drafts: impl Iterator<Item = Draft<'a>>, alignment: u64) -> Result<Layout, Error> {
        power(alignment)?;
        let mut file =
            Layout { count: 0, table: 0, names: 0, storage_at: 0, storage: 0, alignment, len: PAGE };
        let mut stored = false;
        for draft in drafts {
            named(&draft)?;
            splat(&draft)?;
            let name = draft.name;
            file.count += 1;
            if file.count > limits::ENTRIES {
                let detail = "{a} entries, at most {b} are read";
                return Err(refuse(Class::LimitExceeded, name, detail, file.count, limits::ENTRIES));
            }
            file.table = sum(name, align(name, file.table, STEP)?, size(&draft))?;
            file.names = sum(name, file.names, name.len() as u64)?;
            file.names = sum(name, file.names, draft.metadata.len() as u64)?;
            if let DraftData::Stored(len) = draft.data {
                stored = true;
                file.storage = sum(name, align(name, file.storage, alignment)?, len)?;
            }
        }
        let head = file.head_len();
        file.storage_at = if stored { align("", head, alignment)? } else { head };
        file.len = align("", sum("", file.storage_at, file.storage)?, PAGE)?;
        Ok(file)
    }

    /// Length of the whole file.
    pub const fn file_len(&self) -> u64 {
        self.len
    }
    /// Bytes that [`head`](Self::head) writes.
    pub const fn head_len(&self) -> u64 {
        if self.count == 0 { HEADER } else { TABLE + self.table + self.names }
    }

    /// Where each of the entries begins in the file; none for a splat.
    pub fn offsets<'a>(&self, drafts: impl Iterator<Item = Draft<'a>>) -> impl Iterator<Item = Option<u64>> {
        let (base, places) = (self.storage_at, self.places(drafts));
        places.map(move |place| place.map(|offset| base + offset))
    }

    /// Where each entry begins in the storage segment. `of` has shown that nothing here grows past a file.
    fn places<'a>(&self, drafts: impl Iterator<Item = Draft<'a>>) -> impl Iterator<Item = Option<u64>> {
        let (mut at, alignment) = (0_u64, self.alignment);
        drafts.map(move |draft| {
            let DraftData::Stored(len) = draft.data else { return None };
            let begin = at.next_multiple_of(alignment);
            at = begin + len;
            Some(begin)
        })
    }

    /// Writes what comes before the stored bytes. The drafts are those of the layout.
    ///
    /// # Errors
    /// The sink's.
    pub fn head<'a, S: Sink>(
        &self,
        drafts: impl Iterator<Item = Draft<'a>> + Clone,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        self.header(sink)?;
        if self.count == 0 {
            return Ok(());
        }
        zeros(sink, TABLE - HEADER)?;
        let (mut name_at, mut left) = (0, self.count);
        for (draft, place) in drafts.clone().zip(self.places(drafts.clone())) {
            self.entry(&draft, place, &mut name_at, sink)?;
            left = left.saturating_sub(1);
            if left > 0 {
                zeros(sink, size(&draft).next_multiple_of(STEP) - size(&draft))?;
            }
        }
        for draft in drafts {
            sink.put(draft.name.as_bytes())?;
            sink.put(draft.metadata)?;
        }
        Ok(())
    }

    fn header<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        sink.put(b"IRPA")?;
        sink.put(&[0; 4])?; // Version 0.0.
        let names_at = if self.count == 0 { 0 } else { TABLE + self.table };
        let storage_at = if self.count == 0 { 0 } else { self.storage_at };
        let table_at = if self.count == 0 { 0 } else { TABLE };
        let fields =
            [HEADER, 0, 0, self.count, table_at, self.table, names_at, self.names, storage_at, self.storage];
        numbers(sink, &fields)
    }

    fn entry<S: Sink>(
        &self,
        draft: &Draft<'_>,
        place: Option<u64>,
        name_at: &mut u64,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let (name, metadata) = (draft.name.len() as u64, draft.metadata.len() as u64);
        let kind: u32 = if place.is_some() { 2 } else { 1 };
        numbers(sink, &[size(draft)])?;
        sink.put(&kind.to_le_bytes())?;
        let metadata_at = if metadata == 0 { 0 } else { *name_at + name };
        let alignment = if place.is_some() { self.alignment } else { 0 };
        numbers(sink, &[0, *name_at, name, metadata_at, metadata, alignment])?;
        *name_at += name + metadata;
        match draft.data {
            DraftData::Stored(len) => numbers(sink, &[place.unwrap_or(0), len]),
            DraftData::Splat { pattern, pattern_len, len } => {
                numbers(sink, &[len])?;
                sink.put(&pattern)?;
                sink.put(&[pattern_len])
            }
        }
    }
}

fn numbers<S: Sink>(sink: &mut S, fields: &[u64]) -> Result<(), S::Error> {
    fields.iter().try_for_each(|field| sink.put(&field.to_le_bytes()))
}

const fn size(draft: &Draft<'_>) -> u64 {
    match draft.data {
        DraftData::Stored(_) => DATA,
        DraftData::Splat { .. } => SPLAT,
    }
}

fn splat(draft: &Draft<'_>) -> Result<(), Error> {
    let DraftData::Splat { pattern_len, len, .. } = draft.data else { return Ok(()) };
    let pattern = u64::from(pattern_len);
    if !matches!(pattern_len, 1 | 2 | 4 | 8 | 16) {
        let detail = "the pattern of {name} has {a} bytes, not 1, 2, 4, 8 or 16";
        return Err(refuse(Class::InvalidValue, draft.name, detail, pattern, 0));
    }
    if !len.is_multiple_of(pattern) {
        let detail = "{name} has {a} bytes, no multiple of its pattern's {b}";
        return Err(refuse(Class::InvalidValue, draft.name, detail, len, pattern));
    }
    Ok(())
}
