//! A strict scanner of JSON (RFC 8259) without a heap: the header of safetensors, the index of its shards. Strings are
//! checked and stay where they are; depth is bounded; a number that is not a plain unsigned integer is refused by the
//! one who wanted one.

use super::entry::Text;
use super::error::{Class, Error};
use super::limits;

/// A place in JSON text that begins at byte `base` of the file.
#[derive(Clone, Copy, Debug)]
pub struct Scanner<'a> {
    bytes: &'a [u8],
    base: u64,
    at: usize,
}

/// What a value begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// A digit or a minus.
    Number,
    /// `true`, `false` or `null`.
    Word,
}

impl<'a> Scanner<'a> {
    /// Over text that begins at byte `base` of its file.
    pub fn new(bytes: &'a [u8], base: u64) -> Self {
        Scanner { bytes, base, at: 0 }
    }
    /// The byte of the file that is next.
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }
    pub(super) fn bad(&self, detail: &'static str) -> Error {
        Error::new(Class::InvalidJson, self.offset(), detail)
    }
    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
    fn blanks(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over `wanted` if it is next, after blanks.
    pub fn eat(&mut self, wanted: u8) -> bool {
        self.blanks();
        let found = self.byte() == Some(wanted);
        self.at += usize::from(found);
        found
    }
    /// Steps over `wanted`, or an error with these words.
    pub fn expect(&mut self, wanted: u8, detail: &'static str) -> Result<(), Error> {
        if self.eat(wanted) { Ok(()) } else { Err(self.bad(detail)) }
    }
    /// Only blanks may be left.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.blanks();
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(self.bad("more text after the end of the object"))
        }
    }
    /// What the next value begins with.
    pub fn kind(&mut self) -> Result<Kind, Error> {
        self.blanks();
        match self.byte() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f' | b'n') => Ok(Kind::Word),
            _ => Err(self.bad("a value is missing")),
        }
    }

    /// The next key of an object whose `{` is behind us, with its `:`; none at the `}`.
    pub fn key(&mut self, first: &mut bool) -> Result<Option<Text<'a>>, Error> {
        if self.eat(b'}') {
            return Ok(None);
        }
        if !core::mem::replace(first, false) {
            self.expect(b',', "a comma or the end of an object is missing")?;
            self.blanks();
        }
        if self.byte() == Some(b'}') {
            return Err(self.bad("a comma before the end of an object"));
        }
        let key = self.string()?;
        self.expect(b':', "a colon is missing after a key")?;
        Ok(Some(key))
    }
    /// True if another element of an array whose `[` is behind us follows.
    pub(super) fn element(&mut self, first: &mut bool) -> Result<bool, Error> {
        if core::mem::replace(first, false) {
            return Ok(!self.eat(b']'));
        }
        if self.eat(b']') {
            return Ok(false);
        }
        self.expect(b',', "a comma or the end of an array is missing")?;
        Ok(true)
    }

    /// A string, checked: no raw control codes, known escapes, surrogates in pairs, UTF-8.
    pub fn string(&mut self) -> Result<Text<'a>, Error> {
        self.expect(b'"', "a string is missing")?;
        let begin = self.at;
        let at = self.offset();
        let mut escaped = false;
        loop {
            let rest = &self.bytes[self.at..];
            self.at += rest.iter().position(|byte| STOPS[usize::from(*byte)]).unwrap_or(rest.len());
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.bad("a raw control code in a string")),
                None => return Err(self.bad("a string does not end")),
            }
        }
        let Ok(raw) = core::str::from_utf8(&self.bytes[begin..self.at]) else {
            return Err(Error::new(Class::InvalidUtf8, at, "a string of the header is not utf-8"));
        };
        self.at += 1;
        Ok(Text::json(raw, at, escaped))
    }
    fn escape(&mut self) -> Result<(), Error> {
        let rest = &self.bytes[self.at..];
        let len = match rest.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => match hex(rest) {
                Some(0xdc00..=0xdfff) => return Err(self.bad("half of a surrogate pair")),
                Some(0xd800..=0xdbff) => match rest.get(6..).and_then(hex) {
                    Some(0xdc00..=0xdfff) => 12,
                    _ => return Err(self.bad("half of a surrogate pair")),
                },
                Some(_) => 6,
                None => return Err(self.bad("\\u without four hex digits")),
            },
            _ => return Err(self.bad("an unknown escape in a string")),
        };
        self.at += len;
        Ok(())
    }

    /// An unsigned integer that fits 64 bits; anything else is an error of the class that says how it is not one.
    pub(super) fn number(&mut self) -> Result<u64, Error> {
        let begin = self.at;
        match self.kind()? {
            Kind::Number => {}
            _ => {
                return Err(Error::new(Class::InvalidType, self.offset(), "a whole number is wanted here"));
            }
        }
        let at = self.offset();
        let text = self.number_text()?;
        match text {
            [b'-', ..] => Err(Error::new(Class::InvalidValue, at, "a negative number")),
            digits if digits.iter().all(u8::is_ascii_digit) => digits
                .iter()
                .try_fold(0_u64, |n, digit| n.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
                .ok_or_else(|| Error::new(Class::Overflow, at, "a number does not fit 64 bits")),
            _ => {
                self.at = begin;
                Err(Error::new(Class::InvalidType, at, "a whole number is wanted here, not a fraction"))
            }
        }
    }
    /// A number of any kind.
    fn number_text(&mut self) -> Result<&'a [u8], Error> {
        let begin = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        let zero = self.byte() == Some(b'0');
        let whole = self.digits()?;
        if zero && whole > 1 {
            return Err(self.bad("a number with a leading zero"));
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(&self.bytes[begin..self.at])
    }
    fn digits(&mut self) -> Result<usize, Error> {
        let begin = self.at;
        while self.byte().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == begin { Err(self.bad("a digit is missing")) } else { Ok(self.at - begin) }
    }

    /// Steps over a value of any kind, checking it.
    pub fn skip(&mut self) -> Result<(), Error> {
        self.skip_to(limits::JSON_DEPTH)
    }
    fn skip_to(&mut self, depth: u32) -> Result<(), Error> {
        let Some(below) = depth.checked_sub(1) else {
            return Err(self.bad("nested too deep"));
        };
        let mut first = true;
        match self.kind()? {
            Kind::String => self.string().map(|_| ()),
            Kind::Number => self.number_text().map(|_| ()),
            Kind::Word => self.literal(),
            Kind::Object => {
                self.at += 1;
                while self.key(&mut first)?.is_some() {
                    self.skip_to(below)?;
                }
                Ok(())
            }
            Kind::Array => {
                self.at += 1;
                while self.element(&mut first)? {
                    self.skip_to(below)?;
                }
                Ok(())
            }
        }
    }
    fn literal(&mut self) -> Result<(), Error> {
        let rest = &self.bytes[self.at..];
        let known = [&b"true"[..], b"false", b"null"].into_iter().find(|word| rest.starts_with(word));
        self.at += known.ok_or_else(|| self.bad("an unknown word"))?.len();
        Ok(())
    }
}

/// The bytes that a string is not simply gone past for: its end, a backslash, control codes.
static STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        stops[byte] = byte < 0x20 || byte == b'"' as usize || byte == b'\\' as usize;
        byte += 1;
    }
    stops
};

/// The number after `\u`.
fn hex(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |n, &digit| Some(n * 16 + char::from(digit).to_digit(16)?))
}

/// Decodes one escape of a checked string; `rest` is behind its backslash.
pub(super) fn unescape(rest: &mut core::str::Chars<'_>) -> Option<char> {
    Some(match rest.next()? {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let high = hex4(rest)?;
            if !(0xd800..0xdc00).contains(&high) {
                return char::from_u32(high);
            }
            // The scanner let only whole pairs through.
            rest.nth(1)?;
            let low = hex4(rest)?;
            char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low.checked_sub(0xdc00)?))?
        }
        same => same,
    })
}

fn hex4(rest: &mut core::str::Chars<'_>) -> Option<u32> {
    let mut n = 0;
    for _ in 0..4 {
        n = n * 16 + rest.next()?.to_digit(16)?;
    }
    Some(n)
}
