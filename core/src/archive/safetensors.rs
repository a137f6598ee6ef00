//! safetensors: a length of 8 bytes, a JSON object, and the bytes of the tensors without hole or overlap to the end of
//! the file. Rules of the format's README and its reference reader; where that one is lax (blanks before the object, a
//! name given twice) we are strict.
//!
//! A tensor has exactly one `dtype`, `shape` and `data_offsets`. Other fields are stepped over once they are checked
//! to be JSON, as the reference reader does: they cannot change where the bytes are.

use super::check::{self, Mark};
use super::dtype::{Dtype, Unsized};
use super::entry::{Data, Entry, Shape, Text};
use super::error::{Class, Error};
use super::input::{Cursor, Input, Stop};
use super::json::{Kind, Scanner};
use super::{limits, sniff};

/// The key of the map that is no tensor.
const METADATA: &str = "__metadata__";

/// A safetensors file whose header was read through and whose tensors are all inside the file.
#[derive(Clone, Copy, Debug)]
pub struct Safetensors<'a> {
    input: Input<'a>,
    header: &'a [u8],
    /// Behind the brace that opens `__metadata__`.
    metadata: Option<Scanner<'a>>,
    entries: u64,
    pairs: u64,
}

impl<'a> Safetensors<'a> {
    /// Reads the header through.
    ///
    /// # Errors
    /// [`Stop::Need`] until the whole header is in memory; the class of what is wrong with it.
    pub fn open(input: Input<'a>) -> Result<Self, Stop> {
        Self::open_with(input, |_| {})
    }

    /// The same, and gives every tensor to `each`.
    pub(super) fn open_with(input: Input<'a>, mut each: impl FnMut(&Entry<'a>)) -> Result<Self, Stop> {
        let mut file = Self::unread(input)?;
        file.walk(|entry| entry.map(|entry| each(&entry)))?;
        Ok(file)
    }

    /// Gives every tensor, good or bad, to a survey; answers where the data begins.
    #[cfg(feature = "alloc")]
    pub(super) fn survey(input: Input<'a>, survey: &mut super::examine::Survey) -> Result<u64, Stop> {
        let mut file = Self::unread(input)?;
        file.walk(|entry| {
            survey.entry(entry);
            Ok(())
        })?;
        let mut keys = alloc::vec::Vec::new();
        for pair in file.metadata() {
            let (key, _) = pair?;
            keys.push((key.chars().collect(), key.at()));
        }
        survey.once(keys, Class::DuplicateKey);
        Ok(file.data_at())
    }

    /// A file whose header is there and begins as it must.
    fn unread(input: Input<'a>) -> Result<Self, Stop> {
        sniff::known(&input, "safetensors")?;
        let mut cursor = Cursor::new(input, 0);
        let len = cursor.u64()?;
        if len > limits::JSON_HEADER_BYTES {
            let detail = "a header of {a} bytes, at most {b} are read; or this is no safetensors file";
            let error = Error::new(Class::LimitExceeded, 0, detail).values(len, limits::JSON_HEADER_BYTES);
            return Err(error.into());
        }
        let header = cursor.take(len)?;
        let file = Safetensors { input, header, metadata: None, entries: 0, pairs: 0 };
        if header.first() != Some(&b'{') {
            return Err(
                Error::new(Class::InvalidJson, 8, "the header does not begin with an opening brace").into()
            );
        }
        Ok(file)
    }

    /// Where the data begins.
    pub const fn data_at(&self) -> u64 {
        8 + self.header.len() as u64
    }
    /// How many tensors there are.
    pub const fn count(&self) -> u64 {
        self.entries
    }
    /// How many pairs of metadata there are.
    pub const fn metadata_count(&self) -> u64 {
        self.pairs
    }
    /// The tensors in the order of the header.
    pub fn entries(&self) -> Entries<'a> {
        Entries { file: *self, scan: self.scanner(), first: true }
    }
    /// The pairs of `__metadata__`.
    pub fn metadata(&self) -> Metadata<'a> {
        Metadata { scan: self.metadata, first: true }
    }

    /// Refuses names and keys that occur twice, overlaps and holes. Needs a mark for each tensor, or pair of metadata
    /// if those are more.
    ///
    /// # Errors
    /// The class of what is wrong; `limit_exceeded` with too few marks.
    pub fn check(&self, marks: &mut [Mark]) -> Result<(), Stop> {
        let names = self.entries().map(|entry| Ok(entry?.name));
        check::names(self.input, true, names, marks, Class::DuplicateName)?;
        let keys = self.metadata().map(|pair| Ok(pair?.0));
        check::names(self.input, true, keys, marks, Class::DuplicateKey)?;
        check::ranges(self.entries(), marks, Some((self.data_at(), self.input.len())))
    }

    /// Behind the brace that opens the header.
    fn scanner(&self) -> Scanner<'a> {
        let mut scan = Scanner::new(self.header, 8);
        scan.eat(b'{');
        scan
    }

    /// Checks the whole header and counts. `each` gets every tensor; what it lets pass is stepped over as plain JSON.
    fn walk(
        &mut self,
        mut each: impl FnMut(Result<Entry<'a>, Error>) -> Result<(), Error>,
    ) -> Result<(), Stop> {
        let mut scan = self.scanner();
        let mut first = true;
        while let Some(key) = scan.key(&mut first)? {
            if key == *METADATA {
                self.metadata_at(key, &mut scan)?;
            } else {
                let before = scan;
                let entry = self.tensor(key, &mut scan);
                let bad = entry.is_err();
                each(entry)?;
                if bad {
                    scan = before;
                    scan.skip()?;
                }
                self.entries += 1;
            }
        }
        scan.finish()?;
        Ok(())
    }

    /// Checks and counts the pairs of metadata.
    fn metadata_at(&mut self, key: Text<'a>, scan: &mut Scanner<'a>) -> Result<(), Error> {
        if self.metadata.is_some() {
            return Err(Error::new(Class::DuplicateKey, key.at(), "{name} occurs twice").name(key));
        }
        if scan.kind()? != Kind::Object {
            let detail = "{name} is no object of strings";
            return Err(Error::new(Class::InvalidType, scan.offset(), detail).name(key));
        }
        scan.eat(b'{');
        self.metadata = Some(*scan);
        let mut pairs = self.metadata();
        while pairs.step()?.is_some() {
            self.pairs += 1;
        }
        *scan = pairs.scan.unwrap_or(*scan);
        Ok(())
    }

    /// Reads one tensor, behind its key.
    fn tensor(&self, name: Text<'a>, scan: &mut Scanner<'a>) -> Result<Entry<'a>, Error> {
        if name.raw().len() as u64 > limits::NAME_BYTES {
            let error = Error::new(
                Class::LimitExceeded,
                name.at(),
                "the name {name} has {a} bytes, at most {b} are read",
            );
            return Err(error.name(name).values(name.raw().len() as u64, limits::NAME_BYTES));
        }
        let fields = Fields::read(scan).map_err(|error| error.name(name))?;
        let dtype = fields.dtype.ok_or_else(|| missing(scan, "{name} has no field dtype").name(name))?;
        let shape = fields.shape.ok_or_else(|| missing(scan, "{name} has no field shape").name(name))?;
        let offsets =
            fields.offsets.ok_or_else(|| missing(scan, "{name} has no field data_offsets").name(name))?;
        self.place(name, dtype, shape, offsets)
    }

    /// Proves that shape, type and offsets fit each other and the file.
    fn place(
        &self,
        name: Text<'a>,
        dtype: Dtype,
        shape: Shape,
        offsets: [u64; 2],
    ) -> Result<Entry<'a>, Error> {
        let [begin, end] = offsets;
        let fail = |class, detail, a, b| Error::new(class, name.at(), detail).name(name).values(a, b);
        let Some(len) = end.checked_sub(begin) else {
            return Err(fail(Class::OutOfRange, "{name} ends at {b}, before it begins at {a}", begin, end));
        };
        match dtype.bytes(shape.dims()) {
            Err(Unsized::Overflow) => {
                return Err(fail(
                    Class::Overflow,
                    "the shape of {name} has more bytes than fit 64 bits",
                    0,
                    0,
                ));
            }
            Err(Unsized::Ragged) => {
                return Err(fail(
                    Class::SizeMismatch,
                    "the bits of {name} are no whole number of bytes",
                    0,
                    0,
                ));
            }
            Ok(bytes) if bytes != len => {
                let detail = "shape and type of {name} give {a} bytes, its offsets {b}";
                return Err(fail(Class::SizeMismatch, detail, bytes, len));
            }
            Ok(_) => {}
        }
        let offset = self.data_at().checked_add(begin);
        self.input.prove(offset, len).map_err(|error| error.name(name))?;
        let data = Data::Range { offset: self.data_at() + begin, len };
        Ok(Entry { name, dtype: Some(dtype), shape, alignment: 1, metadata: None, data })
    }
}

fn missing(scan: &Scanner<'_>, detail: &'static str) -> Error {
    Error::new(Class::InvalidJson, scan.offset(), detail)
}

/// What is known of a tensor so far.
#[derive(Default)]
struct Fields {
    dtype: Option<Dtype>,
    shape: Option<Shape>,
    offsets: Option<[u64; 2]>,
}

impl Fields {
    fn read(scan: &mut Scanner<'_>) -> Result<Fields, Error> {
        if scan.kind()? != Kind::Object {
            return Err(Error::new(Class::InvalidType, scan.offset(), "{name} is no object"));
        }
        scan.eat(b'{');
        let mut fields = Fields::default();
        let mut first = true;
        while let Some(key) = scan.key(&mut first)? {
            let twice = if key == *"dtype" {
                fields.dtype.replace(dtype(scan)?).is_some()
            } else if key == *"shape" {
                fields.shape.replace(shape(scan)?).is_some()
            } else if key == *"data_offsets" {
                fields.offsets.replace(offsets(scan)?).is_some()
            } else {
                scan.skip()?;
                false
            };
            if twice {
                let error = Error::new(Class::InvalidJson, key.at(), "{name} has the field {word} twice");
                return Err(error.word(key.bytes()));
            }
        }
        Ok(fields)
    }
}

fn dtype(scan: &mut Scanner<'_>) -> Result<Dtype, Error> {
    if scan.kind()? != Kind::String {
        return Err(Error::new(Class::InvalidType, scan.offset(), "dtype of {name} is no string"));
    }
    let text = scan.string()?;
    let known = Dtype::all().find(|t| t.in_safetensors() && text == *t.name());
    known.ok_or_else(|| {
        Error::new(Class::UnsupportedDtype, text.at(), "{name} has the unknown dtype {word}")
            .word(text.bytes())
    })
}

fn shape(scan: &mut Scanner<'_>) -> Result<Shape, Error> {
    open_array(scan, "shape of {name} is no array")?;
    let mut shape = Shape::scalar();
    let mut first = true;
    while scan.element(&mut first)? {
        let at = scan.offset();
        let dim = scan.number().map_err(|e| field(e, "shape of {name} holds what is no dimension"))?;
        if !shape.push(dim) {
            let error = Error::new(Class::LimitExceeded, at, "{name} has more than {a} dimensions");
            return Err(error.values(limits::DIMENSIONS as u64, 0));
        }
    }
    Ok(shape)
}

fn offsets(scan: &mut Scanner<'_>) -> Result<[u64; 2], Error> {
    open_array(scan, "data_offsets of {name} is no array")?;
    let mut pair = [0; 2];
    let mut count = 0;
    let mut first = true;
    while scan.element(&mut first)? {
        let at = scan.offset();
        let number = scan.number().map_err(|e| field(e, "data_offsets of {name} holds what is no offset"))?;
        let Some(slot) = pair.get_mut(count) else {
            return Err(Error::new(
                Class::InvalidJson,
                at,
                "data_offsets of {name} holds more than two numbers",
            ));
        };
        *slot = number;
        count += 1;
    }
    if count < 2 {
        return Err(Error::new(
            Class::InvalidJson,
            scan.offset(),
            "data_offsets of {name} holds fewer than two numbers",
        ));
    }
    Ok(pair)
}

fn open_array(scan: &mut Scanner<'_>, detail: &'static str) -> Result<(), Error> {
    if scan.kind()? != Kind::Array {
        return Err(Error::new(Class::InvalidType, scan.offset(), detail));
    }
    scan.eat(b'[');
    Ok(())
}

/// The same error with a message that names the field; what the text itself has wrong stays as it is.
fn field(error: Error, detail: &'static str) -> Error {
    match error.class() {
        Class::InvalidJson | Class::InvalidUtf8 => error,
        class => Error::new(class, error.offset(), detail),
    }
}

/// The tensors of a file.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    file: Safetensors<'a>,
    scan: Scanner<'a>,
    first: bool,
}

impl<'a> Entries<'a> {
    fn step(&mut self) -> Result<Option<Entry<'a>>, Error> {
        while let Some(key) = self.scan.key(&mut self.first)? {
            if key != *METADATA {
                return self.file.tensor(key, &mut self.scan).map(Some);
            }
            self.scan.skip()?;
        }
        Ok(None)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Stop>;
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            // An empty object: nothing follows an error.
            self.scan = Scanner::new(b"}", 0);
        }
        step.map_err(Stop::Bad).transpose()
    }
}

/// The pairs of `__metadata__`.
#[derive(Clone, Debug)]
pub struct Metadata<'a> {
    scan: Option<Scanner<'a>>,
    first: bool,
}

impl<'a> Metadata<'a> {
    fn step(&mut self) -> Result<Option<(Text<'a>, Text<'a>)>, Error> {
        let Some(scan) = &mut self.scan else { return Ok(None) };
        let Some(key) = scan.key(&mut self.first)? else {
            return Ok(None);
        };
        if key.raw().len() as u64 > limits::NAME_BYTES {
            let detail = "the key {name} has {a} bytes, at most {b} are read";
            let error = Error::new(Class::LimitExceeded, key.at(), detail).name(key);
            return Err(error.values(key.raw().len() as u64, limits::NAME_BYTES));
        }
        if scan.kind()? != Kind::String {
            let detail = "the value of {name} in __metadata__ is no string";
            return Err(Error::new(Class::InvalidType, scan.offset(), detail).name(key));
        }
        Ok(Some((key, scan.string()?)))
    }
}

impl<'a> Iterator for Metadata<'a> {
    type Item = Result<(Text<'a>, Text<'a>), Stop>;
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if !matches!(step, Ok(Some(_))) {
            // What follows is the rest of the header; nothing of it is a pair.
            self.scan = None;
        }
        step.map_err(Stop::Bad).transpose()
    }
}
