//! IRPA, IREE's parameter archive: little-endian headers, each with a table of entries, a segment of names and metadata,
//! and a segment of stored bytes, whose offsets count from that header. Headers are linked forward; each is read with its
//! own fields. Layout as in IREE's `schemas/parameter_archive.h`: its structs are packed.
//!
//! Two entries may share bytes (tied weights). Minor versions up to 1 are read, with room for longer structs above 0;
//! an entry of a type that we don't know is refused, never left out.

use super::check::{self, Mark};
use super::entry::{Data, Entry, Shape, Text};
use super::error::{Class, Error};
use super::input::{Cursor, Input, Stop};
use super::{limits, path, sniff};

const HEADER: u64 = 88;
const ENTRY: u64 = 60;
/// Entries begin at multiples of this.
const STEP: u64 = 16;

/// An IRPA file whose headers and tables were read through and whose entries are all inside the file.
#[derive(Clone, Copy, Debug)]
pub struct Irpa<'a> {
    input: Input<'a>,
    minor: u16,
    entries: u64,
    headers: u64,
    flags: u64,
}

/// A header with its segments as ranges of the file.
#[derive(Clone, Copy, Debug)]
struct Header {
    base: u64,
    minor: u16,
    next: Option<u64>,
    count: u64,
    flags: u64,
    table: Segment,
    names: Segment,
    storage: Segment,
}

/// A range of the file, proven to be inside it.
#[derive(Clone, Copy, Debug)]
struct Segment {
    at: u64,
    len: u64,
}

impl Segment {
    /// The part of the segment that an entry refers to, as a range of the file.
    fn part(self, at: u64, len: u64) -> Option<(u64, u64)> {
        (at.checked_add(len)? <= self.len).then(|| (self.at + at, len))
    }
}

impl<'a> Irpa<'a> {
    /// Reads all headers and tables through.
    ///
    /// # Errors
    /// [`Stop::Need`] until the tables and names of all linked headers are in memory; the class of what is wrong.
    pub fn open(input: Input<'a>) -> Result<Self, Stop> {
        Self::open_with(input, |_| {})
    }

    /// The same, and gives every entry to `each`.
    pub(super) fn open_with(input: Input<'a>, mut each: impl FnMut(&Entry<'a>)) -> Result<Self, Stop> {
        sniff::magic(&input, "irpa")?;
        let mut file = Irpa { input, minor: 0, entries: 0, headers: 0, flags: 0 };
        let mut at = Some(0);
        // No writer lets tables or names share bytes. A small file whose headers all share theirs would cost much time and,
        // once names are copied, much memory.
        let (mut tables, mut names) = (0_u64, 0_u64);
        while let Some(base) = at {
            let header = Header::read(input, base)?;
            file.headers += 1;
            tables = tables.saturating_add(header.table.len);
            let (count, limit, detail) = if file.headers > limits::HEADERS {
                (file.headers, limits::HEADERS, "{a} linked headers, at most {b} are read")
            } else {
                (tables, input.len(), "the tables of all headers take {a} bytes together, the file has {b}")
            };
            if count > limit {
                return Err(Error::new(Class::LimitExceeded, base, detail).values(count, limit).into());
            }
            if base == 0 {
                file.minor = header.minor;
            }
            file.flags |= header.flags;
            file.table(&header, &mut names, &mut each)?;
            at = header.next;
        }
        Ok(file)
    }

    /// Gives every entry, good or bad, to a survey.
    #[cfg(feature = "alloc")]
    pub(super) fn survey(input: Input<'a>, survey: &mut super::examine::Survey) -> Result<(), Stop> {
        sniff::magic(&input, "irpa")?;
        let (mut at, mut headers, mut tables) = (Some(0), 0, 0_u64);
        while let Some(base) = at {
            let header = Header::read(input, base)?;
            headers += 1;
            tables = tables.saturating_add(header.table.len);
            if headers > limits::HEADERS || tables > input.len() {
                // Too much to look through: `open` says why.
                return Self::open(input).map(drop);
            }
            let mut rows = Rows::new(input, header);
            loop {
                let begin = rows.at;
                match rows.step() {
                    Ok(None) => break,
                    Ok(Some(entry)) => survey.entry(Ok(entry)),
                    // Behind a row whose own size is wrong there is no next one.
                    Err(Stop::Bad(error)) if rows.at > begin => survey.entry(Err(error)),
                    Err(stop) => return Err(stop),
                }
            }
            at = header.next;
        }
        Ok(())
    }

    /// Reads one table through and counts entries and the bytes of names.
    fn table(
        &mut self,
        header: &Header,
        names: &mut u64,
        each: &mut impl FnMut(&Entry<'a>),
    ) -> Result<(), Stop> {
        let mut rows = Rows::new(self.input, *header);
        while let Some(entry) = rows.step()? {
            self.entries += 1;
            *names = names.saturating_add(entry.name.raw().len() as u64);
            let (count, limit, detail) = if self.entries > limits::ENTRIES {
                (self.entries, limits::ENTRIES, "{a} entries, at most {b} are read")
            } else {
                (*names, self.input.len(), "the names up to {name} take {a} bytes together, the file has {b}")
            };
            if count > limit {
                let error = Error::new(Class::LimitExceeded, rows.at, detail).name(entry.name);
                return Err(error.values(count, limit).into());
            }
            each(&entry);
        }
        Ok(())
    }

    /// Minor version of the first header; the major version is 0.
    pub const fn minor(&self) -> u16 {
        self.minor
    }
    /// How many linked headers there are.
    pub const fn headers(&self) -> u64 {
        self.headers
    }
    /// The flags of all headers together; none has a meaning yet.
    pub const fn flags(&self) -> u64 {
        self.flags
    }
    /// How many entries there are, without erased ones.
    pub const fn count(&self) -> u64 {
        self.entries
    }
    /// The entries, header after header, in the order of the tables.
    pub fn entries(&self) -> Entries<'a> {
        Entries { input: self.input, rows: None, next: Some(0) }
    }

    /// Refuses names that occur twice, in one header or in two. Needs a mark for each entry.
    ///
    /// # Errors
    /// The class of what is wrong; `limit_exceeded` with too few marks.
    pub fn check(&self, marks: &mut [Mark]) -> Result<(), Stop> {
        let names = self.entries().map(|entry| Ok(entry?.name));
        check::names(self.input, false, names, marks, Class::DuplicateName)
    }
}

impl Header {
    fn read(input: Input<'_>, base: u64) -> Result<Header, Stop> {
        let mut cursor = Cursor::new(input, base);
        if cursor.take(4)? != b"IRPA" {
            let detail = "a linked header does not begin with the magic IRPA";
            return Err(Error::new(Class::BadMagic, base, detail).into());
        }
        let (major, minor) = (cursor.u16()?, cursor.u16()?);
        if major != 0 || minor > 1 {
            let error =
                Error::new(Class::UnsupportedVersion, base + 4, "version {a}.{b}; 0.0 and 0.1 are read");
            return Err(error.values(u64::from(major), u64::from(minor)).into());
        }
        let size = cursor.u64()?;
        if size < HEADER || (minor == 0 && size != HEADER) {
            let detail = "header size {a}; a header of this version has {b} bytes, packed";
            return Err(Error::new(Class::InvalidValue, base + 8, detail).values(size, HEADER).into());
        }
        input.slice(base, size)?;
        let next = cursor.u64()?;
        let flags = cursor.u64()?;
        let count = cursor.u64()?;
        let table = Self::segment(&mut cursor, base, "entry table")?;
        let names = Self::segment(&mut cursor, base, "metadata segment")?;
        let storage = Self::segment(&mut cursor, base, "storage segment")?;
        if count > 0 && !table.at.is_multiple_of(STEP) {
            let error =
                Error::new(Class::Misaligned, base + 40, "the entry table begins at {a}, no multiple of {b}");
            return Err(error.values(table.at, STEP).into());
        }
        if count > table.len.div_ceil(ENTRY) {
            let detail = "{a} entries do not fit a table of {b} bytes";
            return Err(Error::new(Class::OutOfRange, base + 32, detail).values(count, table.len).into());
        }
        let next = Self::link(input, base, size, next)?;
        Ok(Header { base, minor, next, count, flags, table, names, storage })
    }

    fn segment(cursor: &mut Cursor<'_>, base: u64, what: &'static str) -> Result<Segment, Stop> {
        let field = cursor.at;
        let (offset, len) = (cursor.u64()?, cursor.u64()?);
        let bad = |detail, a, b| Error::new(Class::OutOfRange, field, detail).word(what.bytes()).values(a, b);
        // Writers leave the offset of what is empty at zero, or at the end of what comes before.
        let at = base.checked_add(offset);
        let Some((at, end)) = at.zip(at.and_then(|at| at.checked_add(len))) else {
            return Err(bad("the {word} at {a} with {b} bytes ends past 2^64", offset, len).into());
        };
        if end > cursor.input.len() {
            let detail = "the {word} ends at {a}, the file has {b} bytes ({a-b} short): broken download?";
            return Err(bad(detail, end, cursor.input.len()).into());
        }
        Ok(Segment { at, len })
    }

    /// Where the next header is. Links count forward from their header, so only a sum that wraps can lead back.
    fn link(input: Input<'_>, base: u64, size: u64, next: u64) -> Result<Option<u64>, Error> {
        if next == 0 {
            return Ok(None);
        }
        let (at, wrapped) = base.overflowing_add(next);
        let bad = |class, detail| Error::new(class, base + 16, detail).values(base, at);
        if wrapped {
            let magic = usize::try_from(at).ok().and_then(|at| input.bytes().get(at..)?.get(..4));
            return Err(match magic {
                Some(b"IRPA") => bad(Class::Cycle, "the header at {a} links back to the one at {b}"),
                _ => bad(Class::OutOfRange, "the header at {a} links past 2^64"),
            });
        }
        if at >= input.len() {
            let class = if at > limits::FILE_BYTES { Class::OutOfRange } else { Class::Truncated };
            return Err(bad(
                class,
                "the header at {a} links to {b}, past the end of the file: broken download?",
            ));
        }
        if next < size {
            return Err(bad(Class::InvalidValue, "the header at {a} links into itself, to {b}"));
        }
        Ok(Some(at))
    }
}

/// The rows of one table.
#[derive(Clone, Debug)]
struct Rows<'a> {
    input: Input<'a>,
    header: Header,
    at: u64,
    left: u64,
}

/// The fields that all entries begin with.
struct Row<'a> {
    size: u64,
    kind: u32,
    name: Text<'a>,
    metadata: Option<(&'a [u8], u64)>,
    alignment: u64,
}

impl<'a> Rows<'a> {
    fn new(input: Input<'a>, header: Header) -> Self {
        Rows { input, header, at: header.table.at, left: header.count }
    }

    fn step(&mut self) -> Result<Option<Entry<'a>>, Stop> {
        while self.left > 0 {
            self.left -= 1;
            let at = self.at;
            let mut cursor = Cursor::new(self.input, at);
            let row = self.row(&mut cursor)?;
            // The size was held against the table, which is inside the file: at most STEP past its end.
            self.at = at.saturating_add(row.size.saturating_add(STEP - 1) / STEP * STEP);
            if row.kind != 0 {
                return self.entry(at, row, &mut cursor).map(Some);
            }
        }
        Ok(None)
    }

    fn row(&self, cursor: &mut Cursor<'a>) -> Result<Row<'a>, Stop> {
        let at = cursor.at;
        let table = self.header.table;
        let left = (table.at + table.len).saturating_sub(at);
        let out = |size| {
            let detail = "an entry of {a} bytes, the table has {b} left";
            Error::new(Class::OutOfRange, at, detail).values(size, left)
        };
        if left < ENTRY {
            return Err(out(ENTRY).into());
        }
        let size = cursor.u64()?;
        if size > left {
            return Err(out(size).into());
        }
        let kind = cursor.u32()?;
        cursor.u64()?;
        self.size(at, size, kind)?;
        let name = self.name(cursor, "name")?;
        let (offset, len) = (cursor.u64()?, cursor.u64()?);
        let Some((place, len)) = self.header.names.part(offset, len) else {
            let detail = "metadata of {name} at {a} with {b} bytes is outside the metadata segment";
            return Err(Error::new(Class::OutOfRange, at, detail).name(name).values(offset, len).into());
        };
        let metadata = if len == 0 { None } else { Some((self.input.slice(place, len)?, place)) };
        let alignment = cursor.u64()?;
        if alignment != 0 && !alignment.is_power_of_two() {
            let error =
                Error::new(Class::InvalidValue, at, "alignment {a} of {name} is no power of two").name(name);
            return Err(error.values(alignment, 0).into());
        }
        if alignment > limits::ALIGNMENT {
            let error = Error::new(Class::LimitExceeded, at, "alignment {a} of {name}, at most {b} is read")
                .name(name);
            return Err(error.values(alignment, limits::ALIGNMENT).into());
        }
        Ok(Row { size, kind, name, metadata, alignment: alignment.max(1) })
    }

    /// Holds the size of an entry against its type.
    fn size(&self, at: u64, size: u64, kind: u32) -> Result<(), Error> {
        let packed = match kind {
            0 => ENTRY,
            1 => 85,
            2 => 76,
            3 => 92,
            _ => {
                let error = Error::new(Class::UnsupportedEntry, at, "an entry of the unknown type {a}");
                return Err(error.values(u64::from(kind), 0));
            }
        };
        if size == packed || (size > packed && (kind == 0 || self.header.minor > 0)) {
            return Ok(());
        }
        let padded = size == packed + 4 || size == (packed + 4).next_multiple_of(8);
        let detail = match padded {
            true => "an entry has {a} bytes, packed it has {b}: the writer left C padding in the struct",
            false => "an entry has {a} bytes, one of its type has {b}",
        };
        Err(Error::new(Class::InvalidValue, at, detail).values(size, packed))
    }

    /// Text in the metadata segment.
    fn name(&self, cursor: &mut Cursor<'a>, what: &'static str) -> Result<Text<'a>, Stop> {
        let at = cursor.at;
        let (offset, len) = (cursor.u64()?, cursor.u64()?);
        let bad =
            |class, detail, a, b| Stop::Bad(Error::new(class, at, detail).word(what.bytes()).values(a, b));
        let Some((place, len)) = self.header.names.part(offset, len) else {
            let detail = "a {word} at {a} with {b} bytes is outside the metadata segment";
            return Err(bad(Class::OutOfRange, detail, offset, len));
        };
        if len > limits::NAME_BYTES {
            return Err(bad(
                Class::LimitExceeded,
                "a {word} of {a} bytes, at most {b} are read",
                len,
                limits::NAME_BYTES,
            ));
        }
        match core::str::from_utf8(self.input.slice(place, len)?) {
            Ok(raw) => Ok(Text::plain(raw, place)),
            Err(_) => Err(bad(Class::InvalidUtf8, "a {word} is not utf-8", 0, 0)),
        }
    }

    /// Reads what follows the common fields.
    fn entry(&self, at: u64, row: Row<'a>, cursor: &mut Cursor<'a>) -> Result<Entry<'a>, Stop> {
        let Row { kind, name, metadata, alignment, .. } = row;
        let data = match kind {
            1 => splat(at, name, cursor)?,
            2 => self.stored(at, name, alignment, cursor)?,
            _ => self.external(at, name, cursor)?,
        };
        Ok(Entry { name, dtype: None, shape: Shape::scalar(), alignment, metadata, data })
    }

    fn stored(
        &self,
        at: u64,
        name: Text<'a>,
        alignment: u64,
        cursor: &mut Cursor<'a>,
    ) -> Result<Data<'a>, Stop> {
        let (offset, len) = (cursor.u64()?, cursor.u64()?);
        let Some((place, len)) = self.header.storage.part(offset, len) else {
            let detail = "{name} at {a} with {b} bytes is outside the storage segment";
            return Err(Error::new(Class::OutOfRange, at, detail).name(name).values(offset, len).into());
        };
        // IREE's writer aligns within the storage segment, and the segment only for its first entry.
        let aligned =
            [offset, place, place - self.header.base].into_iter().any(|at| at.is_multiple_of(alignment));
        if len > 0 && !aligned {
            let detail = "{name} begins at {a}, its alignment is {b}";
            return Err(Error::new(Class::Misaligned, at, detail).name(name).values(place, alignment).into());
        }
        Ok(Data::Range { offset: place, len })
    }

    fn external(&self, at: u64, name: Text<'a>, cursor: &mut Cursor<'a>) -> Result<Data<'a>, Stop> {
        let file = self.name(cursor, "path")?;
        let (offset, len) = (cursor.u64()?, cursor.u64()?);
        if let Some(why) = path::leaves(file.raw()) {
            return Err(Error::new(Class::PathEscape, at, why).name(name).word(file.bytes()).into());
        }
        if offset.checked_add(len).is_none() {
            let detail = "{name} at {a} with {b} bytes ends past 2^64";
            return Err(Error::new(Class::OutOfRange, at, detail).name(name).values(offset, len).into());
        }
        Ok(Data::External { path: file, offset, len })
    }
}

fn splat<'a>(at: u64, name: Text<'a>, cursor: &mut Cursor<'a>) -> Result<Data<'a>, Stop> {
    let len = cursor.u64()?;
    let mut pattern = [0; 16];
    pattern.copy_from_slice(cursor.take(16)?);
    let pattern_len = cursor.take(1)?[0];
    if !matches!(pattern_len, 1 | 2 | 4 | 8 | 16) {
        let error =
            Error::new(Class::InvalidValue, at, "the pattern of {name} has {a} bytes, not 1, 2, 4, 8 or 16");
        return Err(error.name(name).values(u64::from(pattern_len), 0).into());
    }
    if !len.is_multiple_of(u64::from(pattern_len)) {
        let detail = "{name} has {a} bytes, no multiple of its pattern's {b}";
        return Err(Error::new(Class::InvalidValue, at, detail)
            .name(name)
            .values(len, u64::from(pattern_len))
            .into());
    }
    pattern[usize::from(pattern_len)..].fill(0);
    Ok(Data::Splat { pattern, pattern_len, len })
}

/// The entries of a file.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    input: Input<'a>,
    rows: Option<Rows<'a>>,
    next: Option<u64>,
}

impl<'a> Entries<'a> {
    fn step(&mut self) -> Result<Option<Entry<'a>>, Stop> {
        loop {
            if let Some(entry) = self.rows.as_mut().map(Rows::step).transpose()?.flatten() {
                return Ok(Some(entry));
            }
            let Some(base) = self.next else { return Ok(None) };
            let header = Header::read(self.input, base)?;
            self.next = header.next;
            self.rows = Some(Rows::new(self.input, header));
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Stop>;
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            (self.rows, self.next) = (None, None);
        }
        step.transpose()
    }
}
