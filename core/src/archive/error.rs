//! The error of the archive readers: plain data without a heap, so that it outlives the bytes it speaks of. Names are
//! kept shortened, and control codes in them are escaped when the message is made, never sent to a terminal.

use core::fmt;

use super::entry::Text;
use crate::fault::Kind;

/// What is wrong with an archive. An open set: classes are added, never renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Class {
    /// The file ends before what it declares.
    Truncated,
    /// Not a file of this format; the message says what it looks like.
    BadMagic,
    /// Known format, version not supported.
    UnsupportedVersion,
    /// Byte order not supported.
    UnsupportedEndianness,
    /// Tensor type unknown or withdrawn.
    UnsupportedDtype,
    /// Kind of entry or value not supported.
    UnsupportedEntry,
    /// A declared count or length is above one of [`limits`](super::limits).
    LimitExceeded,
    /// Sizes overflow when computed.
    Overflow,
    /// An offset or range lies outside its segment or file.
    OutOfRange,
    /// An offset does not meet the declared alignment.
    Misaligned,
    /// Two tensors share bytes.
    Overlap,
    /// Bytes that belong to no tensor.
    Hole,
    /// Shape and type do not give the declared length.
    SizeMismatch,
    /// The name of an entry occurs twice.
    DuplicateName,
    /// A key of metadata occurs twice.
    DuplicateKey,
    /// A string is not UTF-8.
    InvalidUtf8,
    /// The header is not the JSON that the format wants.
    InvalidJson,
    /// A field has a value that the format forbids.
    InvalidValue,
    /// A field has the wrong type.
    InvalidType,
    /// A chain of headers does not end.
    Cycle,
    /// A path leaves the archive's folder.
    PathEscape,
    /// A file that the set names is not there.
    MissingFile,
    /// A name that the index promises is not in its file.
    NotFound,
}

impl Class {
    /// The word that begins a message and names the class in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Truncated => "truncated",
            Class::BadMagic => "bad_magic",
            Class::UnsupportedVersion => "unsupported_version",
            Class::UnsupportedEndianness => "unsupported_endianness",
            Class::UnsupportedDtype => "unsupported_dtype",
            Class::UnsupportedEntry => "unsupported_entry",
            Class::LimitExceeded => "limit_exceeded",
            Class::Overflow => "overflow",
            Class::OutOfRange => "out_of_range",
            Class::Misaligned => "misaligned",
            Class::Overlap => "overlap",
            Class::Hole => "hole",
            Class::SizeMismatch => "size_mismatch",
            Class::DuplicateName => "duplicate_name",
            Class::DuplicateKey => "duplicate_key",
            Class::InvalidUtf8 => "invalid_utf8",
            Class::InvalidJson => "invalid_json",
            Class::InvalidValue => "invalid_value",
            Class::InvalidType => "invalid_type",
            Class::Cycle => "cycle",
            Class::PathEscape => "path_escape",
            Class::MissingFile => "missing_file",
            Class::NotFound => "not_found",
        }
    }

    /// The kind of [`Fault`](crate::fault::Fault) that a loader answers.
    pub const fn kind(self) -> Kind {
        match self {
            Class::UnsupportedVersion
            | Class::UnsupportedEndianness
            | Class::UnsupportedDtype
            | Class::UnsupportedEntry => Kind::Unsupported,
            Class::MissingFile | Class::NotFound => Kind::NotFound,
            _ => Kind::DataLoss,
        }
    }
}

const NOTE: usize = 68;
const WORD: usize = 28;

/// What is wrong, where and why.
///
/// `detail` is the message with places for the rest: `{name}`, `{word}`, `{a}`, `{b}` and `{a-b}`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error {
    class: Class,
    name: u8,
    word: u8,
    note: [u8; NOTE],
    offset: u64,
    values: [u64; 2],
    detail: &'static str,
}

impl Error {
    /// The offset of an error that is about no byte of a file: of what is to be written.
    pub const NOWHERE: u64 = u64::MAX;

    /// An error found at byte `offset` of the file.
    pub const fn new(class: Class, offset: u64, detail: &'static str) -> Self {
        Error { class, name: 0, word: 0, note: [0; NOTE], offset, values: [0; 2], detail }
    }
    /// The same error with the numbers of its message.
    pub const fn values(mut self, a: u64, b: u64) -> Self {
        self.values = [a, b];
        self
    }
    /// The same error about this entry or key; what does not fit is left out in the middle.
    pub fn name(self, name: Text<'_>) -> Self {
        self.name_bytes(name.bytes())
    }
    /// The same error with one more word of the file: a type, a path, another name.
    pub fn word(mut self, word: impl Iterator<Item = u8>) -> Self {
        let (short, used) = shorten::<WORD>(word);
        self.note[NOTE - WORD..].copy_from_slice(&short);
        self.word = used;
        self
    }
    fn name_bytes(mut self, name: impl Iterator<Item = u8>) -> Self {
        let (short, used) = shorten::<{ NOTE - WORD }>(name);
        self.note[..NOTE - WORD].copy_from_slice(&short);
        self.name = used;
        self
    }

    /// What a caller can act on.
    pub const fn class(&self) -> Class {
        self.class
    }
    /// The byte of the file where it was found.
    pub const fn offset(&self) -> u64 {
        self.offset
    }
    /// The (shortened) name of the entry or key, empty if it is about none.
    pub fn entry(&self) -> &[u8] {
        &self.note[..usize::from(self.name)]
    }
    fn second(&self) -> &[u8] {
        &self.note[NOTE - WORD..][..usize::from(self.word)]
    }
    fn place(&self, f: &mut fmt::Formatter<'_>, place: &str) -> fmt::Result {
        let [a, b] = self.values;
        match place {
            "name" => write!(f, "`{}`", Escaped(self.entry())),
            "word" => write!(f, "{}", Escaped(self.second())),
            "a" => write!(f, "{a}"),
            "b" => write!(f, "{b}"),
            _ => write!(f, "{}", a.saturating_sub(b)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.class.name())?;
        let mut rest = self.detail;
        while let Some((before, after)) = rest.split_once('{') {
            f.write_str(before)?;
            let (place, tail) = after.split_once('}').unwrap_or((after, ""));
            self.place(f, place)?;
            rest = tail;
        }
        f.write_str(rest)?;
        if self.offset == Self::NOWHERE { Ok(()) } else { write!(f, " (at byte {})", self.offset) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Error {}

/// Head and tail of `bytes` in `N` bytes, and how many of those are used. A character that is cut shows as escapes.
fn shorten<const N: usize>(bytes: impl Iterator<Item = u8>) -> ([u8; N], u8) {
    const DOTS: &[u8] = b"...";
    let tail = N / 3;
    let head = N - tail - DOTS.len();
    let mut out = [0; N];
    let mut count = 0_usize;
    for byte in bytes {
        // Past `N` the last `tail` bytes are a window that moves on.
        if count < N {
            out[count] = byte;
        } else {
            out.copy_within(N - tail + 1.., N - tail);
            out[N - 1] = byte;
        }
        count += 1;
    }
    if count > N {
        out[head..head + DOTS.len()].copy_from_slice(DOTS);
    }
    (out, count.min(N) as u8)
}

/// Bytes as text that is safe to print: control codes, invisible direction marks and bytes that are not UTF-8 become
/// escapes.
#[derive(Clone, Copy)]
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                escape(f, c)?;
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Writes `c` as it is where a terminal shows it as one sign, escaped where it would act on it.
pub(super) fn escape(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    // Direction marks and overrides can make a name read as another one.
    let hidden =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    match c {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        '\\' => f.write_str("\\\\"),
        c if c.is_control() || hidden => write!(f, "{}", c.escape_unicode()),
        c => fmt::Write::write_char(f, c),
    }
}
