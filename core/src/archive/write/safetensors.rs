//! safetensors: the header as JSON on one line, padded with blanks so that the data begins at a multiple of the
//! alignment, then the tensors without gaps in the order in which they are given. The format forbids holes, so whoever
//! wants each tensor at a multiple of its element's size gives those with the largest elements first, as the
//! reference writer does.

use super::super::dtype::Unsized;
use super::super::error::{Class, Error};
use super::super::limits;
use super::{Count, Draft, DraftData, Sink, named, power, refuse, sum};

/// The alignment that readers of the format can count on: data of the reference writer begins at multiples of 8; with
/// 64, devices can take the data where it lies.
pub const ALIGNMENT: u64 = 64;

const METADATA: &str = "__metadata__";

/// Where everything is in a file that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    json: u64,
    data_at: u64,
    len: u64,
}

impl Layout {
    /// The layout of a file with these tensors and these pairs of metadata.
    ///
    /// # Errors
    /// An alignment that is no power of two; a tensor without a type, with a type that the format lacks, or whose bytes
    /// are not what type and shape say; a splat; a name that is too long or `__metadata__`; sizes past limits.
    pub fn of<'a>(
        drafts: impl Iterator<Item = Draft<'a>> + Clone,
        metadata: impl Iterator<Item = (&'a str, &'a str)> + Clone,
        alignment: u64,
    ) -> Result<Layout, Error> {
        power(alignment)?;
        let mut data = 0;
        for draft in drafts.clone() {
            check(&draft)?;
            data = sum(draft.name, data, bytes(&draft))?;
        }
        let mut count = Count(0);
        let Ok(()) = object(drafts, metadata, &mut count);
        let data_at = sum("", 8 + count.0, (8 + count.0).wrapping_neg() & (alignment - 1))?;
        if data_at - 8 > limits::JSON_HEADER_BYTES {
            let detail = "the header takes {a} bytes, at most {b} are read";
            return Err(refuse(Class::LimitExceeded, "", detail, data_at - 8, limits::JSON_HEADER_BYTES));
        }
        Ok(Layout { json: count.0, data_at, len: sum("", data_at, data)? })
    }

    /// Length of the whole file.
    pub const fn file_len(&self) -> u64 {
        self.len
    }
    /// Bytes that [`head`](Self::head) writes; there the first tensor begins.
    pub const fn head_len(&self) -> u64 {
        self.data_at
    }
    /// Where each of the tensors begins in the file.
    pub fn offsets<'a>(&self, drafts: impl Iterator<Item = Draft<'a>>) -> impl Iterator<Item = u64> {
        let mut at = self.data_at;
        drafts.map(move |draft| {
            let begin = at;
            at += bytes(&draft);
            begin
        })
    }

    /// Writes what comes before the data. The drafts and pairs are those of the layout.
    ///
    /// # Errors
    /// The sink's.
    pub fn head<'a, S: Sink>(
        &self,
        drafts: impl Iterator<Item = Draft<'a>>,
        metadata: impl Iterator<Item = (&'a str, &'a str)>,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        sink.put(&(self.data_at - 8).to_le_bytes())?;
        object(drafts, metadata, sink)?;
        (8 + self.json..self.data_at).try_for_each(|_| sink.put(b" "))
    }
}

const fn bytes(draft: &Draft<'_>) -> u64 {
    match draft.data {
        DraftData::Stored(len) | DraftData::Splat { len, .. } => len,
    }
}

fn check(draft: &Draft<'_>) -> Result<(), Error> {
    named(draft)?;
    let refuse = |class, detail, a, b| Err(refuse(class, draft.name, detail, a, b));
    if draft.name == METADATA {
        return refuse(Class::InvalidValue, "{name} is the key of the metadata, no tensor's name", 0, 0);
    }
    if matches!(draft.data, DraftData::Splat { .. }) {
        return refuse(Class::UnsupportedEntry, "safetensors has no splats, {name} is one", 0, 0);
    }
    if draft.shape.len() > limits::DIMENSIONS {
        let (rank, limit) = (draft.shape.len() as u64, limits::DIMENSIONS as u64);
        return refuse(Class::LimitExceeded, "{name} has {a} dimensions, at most {b} are read", rank, limit);
    }
    let Some(dtype) = draft.dtype else {
        return refuse(Class::UnsupportedDtype, "safetensors needs a type, {name} has none", 0, 0);
    };
    if !dtype.in_safetensors() {
        let detail = "safetensors has no type {word}, which {name} has";
        let error = super::refuse(Class::UnsupportedDtype, draft.name, detail, 0, 0);
        return Err(error.word(dtype.name().bytes()));
    }
    match dtype.bytes(draft.shape) {
        Ok(len) if len == bytes(draft) => Ok(()),
        Ok(len) => refuse(
            Class::SizeMismatch,
            "shape and type of {name} give {a} bytes, it has {b}",
            len,
            bytes(draft),
        ),
        Err(Unsized::Overflow) => {
            refuse(Class::Overflow, "the shape of {name} has more bytes than fit 64 bits", 0, 0)
        }
        Err(Unsized::Ragged) => {
            refuse(Class::SizeMismatch, "the bits of {name} are no whole number of bytes", 0, 0)
        }
    }
}

/// The header, without padding.
fn object<'a, S: Sink>(
    drafts: impl Iterator<Item = Draft<'a>>,
    metadata: impl Iterator<Item = (&'a str, &'a str)>,
    sink: &mut S,
) -> Result<(), S::Error> {
    let mut more = false;
    sink.put(b"{")?;
    for (key, value) in metadata {
        sink.put(if more { b"," } else { b"\"__metadata__\":{" })?;
        more = true;
        string(key, sink)?;
        sink.put(b":")?;
        string(value, sink)?;
    }
    if more {
        sink.put(b"}")?;
    }
    let mut at = 0;
    for draft in drafts {
        if core::mem::replace(&mut more, true) {
            sink.put(b",")?;
        }
        string(draft.name, sink)?;
        sink.put(b":{\"dtype\":\"")?;
        sink.put(draft.dtype.map_or("", |dtype| dtype.name()).as_bytes())?;
        sink.put(b"\",\"shape\":[")?;
        for (index, dim) in draft.shape.iter().enumerate() {
            if index > 0 {
                sink.put(b",")?;
            }
            number(*dim, sink)?;
        }
        sink.put(b"],\"data_offsets\":[")?;
        number(at, sink)?;
        sink.put(b",")?;
        at += bytes(&draft);
        number(at, sink)?;
        sink.put(b"]}")?;
    }
    sink.put(b"}")
}

fn number<S: Sink>(mut number: u64, sink: &mut S) -> Result<(), S::Error> {
    let (mut digits, mut begin) = ([0_u8; 20], 20); // 2^64 has 20 digits.
    loop {
        begin -= 1;
        digits[begin] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return sink.put(&digits[begin..]);
        }
    }
}

/// A JSON string: quotes, backslashes and control codes are escaped, all else is as it is.
fn string<S: Sink>(text: &str, sink: &mut S) -> Result<(), S::Error> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    sink.put(b"\"")?;
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| byte < 0x20 || matches!(byte, b'"' | b'\\' | 0x7f)) {
        sink.put(&rest[..at])?;
        match rest[at] {
            byte @ (b'"' | b'\\') => sink.put(&[b'\\', byte])?,
            byte => {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                sink.put(&[b'\\', b'u', b'0', b'0', high, low])?;
            }
        }
        rest = &rest[at + 1..];
    }
    sink.put(rest)?;
    sink.put(b"\"")
}
