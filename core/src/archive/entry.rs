//! An entry of an archive, the same for all formats, and the text in it. Nothing is copied: names with JSON escapes are
//! decoded as they are read, compared or hashed.

use core::cmp::Ordering;
use core::fmt;

use super::dtype::Dtype;
use super::error::escape;
use super::json;
use super::limits::DIMENSIONS;

/// Text of a file, always valid UTF-8. Two texts are equal if they mean the same, however they are spelled.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    raw: &'a str,
    at: u64,
    json: bool,
}

impl<'a> Text<'a> {
    /// Text that means what it says.
    pub const fn plain(raw: &'a str, at: u64) -> Self {
        Text { raw, at, json: false }
    }
    /// The inside of a JSON string that was checked; `escaped` says if there is a backslash in it.
    pub(super) const fn json(raw: &'a str, at: u64, escaped: bool) -> Self {
        Text { raw, at, json: escaped }
    }
    /// The byte of the file where it begins.
    pub const fn at(&self) -> u64 {
        self.at
    }
    /// The stored bytes, escapes and all.
    pub const fn raw(&self) -> &'a str {
        self.raw
    }
    /// The text itself, if no escape has to be decoded.
    pub fn as_plain(&self) -> Option<&'a str> {
        (!self.json).then_some(self.raw)
    }
    /// The characters it means.
    pub fn chars(&self) -> Chars<'a> {
        Chars { rest: self.raw.chars(), json: self.json }
    }
    /// The bytes of the characters it means, in UTF-8.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + 'a {
        self.chars().flat_map(|c| {
            let mut utf8 = [0; 4];
            let len = c.encode_utf8(&mut utf8).len();
            utf8.into_iter().take(len)
        })
    }
    /// A hash of what it means (FNV-1a). Anybody can make two texts with one hash: compare after it.
    pub fn hash(&self) -> u64 {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        match self.as_plain() {
            Some(plain) => plain.bytes().fold(0xcbf2_9ce4_8422_2325, step),
            None => self.bytes().fold(0xcbf2_9ce4_8422_2325, step),
        }
    }
}

impl PartialEq for Text<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self.as_plain(), other.as_plain()) {
            (Some(a), Some(b)) => a == b,
            _ => self.chars().eq(other.chars()),
        }
    }
}
impl Eq for Text<'_> {}
impl PartialEq<str> for Text<'_> {
    #[inline]
    fn eq(&self, other: &str) -> bool {
        *self == Text::plain(other, 0)
    }
}
impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.as_plain(), other.as_plain()) {
            (Some(a), Some(b)) => a.cmp(b),
            _ => self.chars().cmp(other.chars()),
        }
    }
}

/// Escaped: safe to print.
impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|c| escape(f, c))
    }
}
impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// The characters of a [`Text`].
#[derive(Clone, Debug)]
pub struct Chars<'a> {
    rest: core::str::Chars<'a>,
    json: bool,
}

impl Iterator for Chars<'_> {
    type Item = char;
    fn next(&mut self) -> Option<char> {
        match self.rest.next()? {
            '\\' if self.json => json::unescape(&mut self.rest),
            c => Some(c),
        }
    }
}

/// The dimensions of a tensor, outermost first; at most [`DIMENSIONS`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    dims: [u64; DIMENSIONS],
    rank: u8,
}

impl Shape {
    /// A scalar's.
    pub const fn scalar() -> Self {
        Shape { dims: [0; DIMENSIONS], rank: 0 }
    }
    /// Adds an innermost dimension; false if there is no room.
    #[must_use]
    pub fn push(&mut self, dim: u64) -> bool {
        let Some(slot) = self.dims.get_mut(usize::from(self.rank)) else { return false };
        *slot = dim;
        self.rank += 1;
        true
    }
    pub(super) fn reverse(&mut self) {
        self.dims[..usize::from(self.rank)].reverse();
    }
    /// The dimensions.
    pub fn dims(&self) -> &[u64] {
        &self.dims[..usize::from(self.rank)]
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dims().fmt(f)
    }
}

/// Where the bytes of an entry are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// In this file; proven to be inside it.
    Range {
        /// From the beginning of the file.
        offset: u64,
        /// In bytes.
        len: u64,
    },
    /// Nowhere: a pattern, repeated.
    Splat {
        /// The pattern, in its first `pattern_len` bytes.
        pattern: [u8; 16],
        /// 1, 2, 4, 8 or 16.
        pattern_len: u8,
        /// In bytes, a multiple of `pattern_len`. Can be far more than any memory.
        len: u64,
    },
    /// In another file beside this one; its length is not known here.
    External {
        /// Relative, with `/`, without `..`.
        path: Text<'a>,
        /// From the beginning of that file.
        offset: u64,
        /// In bytes; `offset + len` fits 64 bits.
        len: u64,
    },
}

impl Data<'_> {
    /// Length in bytes.
    pub const fn len(&self) -> u64 {
        match *self {
            Data::Range { len, .. } | Data::Splat { len, .. } | Data::External { len, .. } => len,
        }
    }
    /// True for an entry of no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An entry of an archive.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The key.
    pub name: Text<'a>,
    /// The type, where the format has types.
    pub dtype: Option<Dtype>,
    /// The shape; a scalar's where the format has none.
    pub shape: Shape,
    /// The alignment that the file declares for the entry, 1 if it declares none.
    pub alignment: u64,
    /// Bytes that the format keeps with the entry, and where they are in the file.
    pub metadata: Option<(&'a [u8], u64)>,
    /// Where the bytes are.
    pub data: Data<'a>,
}
