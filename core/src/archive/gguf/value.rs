//! Typed metadata. An array is checked and stepped over, never stored: a vocabulary of 120,000 strings costs a walk over
//! its lengths. Text of values is bytes: vocabularies in the field hold pieces that are no UTF-8.

use super::super::entry::Text;
use super::super::error::{Class, Error};
use super::super::input::{Cursor, Stop};
use super::super::limits;
use super::count;

/// The type of a value, with the file's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // Each is the type it is named after.
pub enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    Text = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl ValueType {
    /// The type with this number.
    pub const fn from_number(number: u32) -> Option<Self> {
        use ValueType::*;
        const ALL: [ValueType; 13] = [U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64];
        if (number as usize) < ALL.len() { Some(ALL[number as usize]) } else { None }
    }
    /// The name used in messages and JSON.
    pub const fn name(self) -> &'static str {
        use ValueType::*;
        match self {
            U8 => "u8",
            I8 => "i8",
            U16 => "u16",
            I16 => "i16",
            U32 => "u32",
            I32 => "i32",
            F32 => "f32",
            Bool => "bool",
            Text => "string",
            Array => "array",
            U64 => "u64",
            I64 => "i64",
            F64 => "f64",
        }
    }
    /// Bytes of a value of fixed size.
    const fn size(self) -> Option<u64> {
        use ValueType::*;
        match self {
            U8 | I8 | Bool => Some(1),
            U16 | I16 => Some(2),
            U32 | I32 | F32 => Some(4),
            U64 | I64 | F64 => Some(8),
            Text | Array => None,
        }
    }
}

/// A value of metadata.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Each holds a value of the type it is named after.
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// Bytes, UTF-8 in all but some vocabularies.
    Text(RawText<'a>),
    Array(Array<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl Value<'_> {
    /// The type.
    pub const fn kind(&self) -> ValueType {
        match self {
            Value::U8(_) => ValueType::U8,
            Value::I8(_) => ValueType::I8,
            Value::U16(_) => ValueType::U16,
            Value::I16(_) => ValueType::I16,
            Value::U32(_) => ValueType::U32,
            Value::I32(_) => ValueType::I32,
            Value::F32(_) => ValueType::F32,
            Value::Bool(_) => ValueType::Bool,
            Value::Text(_) => ValueType::Text,
            Value::Array(_) => ValueType::Array,
            Value::U64(_) => ValueType::U64,
            Value::I64(_) => ValueType::I64,
            Value::F64(_) => ValueType::F64,
        }
    }
    /// The value of any integer type.
    pub fn integer(&self) -> Option<i128> {
        Some(match *self {
            Value::U8(n) => n.into(),
            Value::I8(n) => n.into(),
            Value::U16(n) => n.into(),
            Value::I16(n) => n.into(),
            Value::U32(n) => n.into(),
            Value::I32(n) => n.into(),
            Value::U64(n) => n.into(),
            Value::I64(n) => n.into(),
            _ => return None,
        })
    }
}

/// Text of a value, UTF-8 or not.
#[derive(Clone, Copy, Debug)]
pub struct RawText<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> RawText<'a> {
    /// The bytes.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// The byte of the file where it begins.
    pub const fn at(&self) -> u64 {
        self.at
    }
}

/// An array of metadata, checked but not decoded.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    element: ValueType,
    count: u64,
    start: Cursor<'a>,
    len: u64,
    version: u32,
}

impl<'a> Array<'a> {
    /// The type of its elements.
    pub const fn element(&self) -> ValueType {
        self.element
    }
    /// How many elements it has.
    pub const fn count(&self) -> u64 {
        self.count
    }
    /// The byte of the file where the first element begins.
    pub const fn at(&self) -> u64 {
        self.start.at
    }
    /// Bytes of all elements as stored.
    pub const fn len_bytes(&self) -> u64 {
        self.len
    }
    /// The elements.
    pub const fn iter(&self) -> Elements<'a> {
        Elements { cursor: self.start, element: self.element, left: self.count, version: self.version }
    }
}

/// The elements of an [`Array`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    cursor: Cursor<'a>,
    element: ValueType,
    left: u64,
    version: u32,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;
    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        // The array was checked when it was made.
        read(&mut self.cursor, self.version, self.element, limits::GGUF_DEPTH).ok()
    }
}

/// The pairs of metadata of a file.
#[derive(Clone, Debug)]
pub struct Metadata<'a> {
    cursor: Cursor<'a>,
    version: u32,
    left: u64,
}

impl<'a> Metadata<'a> {
    pub(super) const fn new(cursor: Cursor<'a>, version: u32, pairs: u64) -> Self {
        Metadata { cursor, version, left: pairs }
    }
    pub(super) const fn at(&self) -> u64 {
        self.cursor.at
    }
    fn step(&mut self) -> Result<(Text<'a>, Value<'a>), Stop> {
        let key = name(&mut self.cursor, self.version, "key")?;
        let named = |stop| match stop {
            Stop::Bad(error) => Stop::Bad(error.name(key)),
            need => need,
        };
        let kind = kind(&mut self.cursor, "{name} has the unknown value type {a}").map_err(named)?;
        let value = read(&mut self.cursor, self.version, kind, limits::GGUF_DEPTH).map_err(named)?;
        Ok((key, value))
    }
}

impl<'a> Iterator for Metadata<'a> {
    type Item = Result<(Text<'a>, Value<'a>), Stop>;
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let step = self.step();
        if step.is_err() {
            self.left = 0;
        }
        Some(step)
    }
}

fn kind(cursor: &mut Cursor<'_>, detail: &'static str) -> Result<ValueType, Stop> {
    let at = cursor.at;
    let number = cursor.u32()?;
    let unknown = || Error::new(Class::InvalidType, at, detail).values(u64::from(number), 0);
    ValueType::from_number(number).ok_or_else(|| unknown().into())
}

/// A name or key: UTF-8 and not too long.
pub(super) fn name<'a>(cursor: &mut Cursor<'a>, version: u32, what: &'static str) -> Result<Text<'a>, Stop> {
    let at = cursor.at;
    let word = |error: Error| Stop::Bad(error.word(what.bytes()));
    let len = count(cursor, version)?;
    if len > limits::NAME_BYTES {
        let error = Error::new(Class::LimitExceeded, at, "a {word} of {a} bytes, at most {b} are read");
        return Err(word(error.values(len, limits::NAME_BYTES)));
    }
    let begin = cursor.at;
    let bytes = cursor.take(len)?;
    match core::str::from_utf8(bytes) {
        Ok(raw) => Ok(Text::plain(raw, begin)),
        Err(_) => Err(word(Error::new(Class::InvalidUtf8, begin, "a {word} is not utf-8"))),
    }
}

/// Reads a value; `depth` is how many arrays may still be opened.
fn read<'a>(cursor: &mut Cursor<'a>, version: u32, kind: ValueType, depth: u32) -> Result<Value<'a>, Stop> {
    let at = cursor.at;
    Ok(match kind {
        ValueType::U8 => Value::U8(cursor.take(1)?[0]),
        ValueType::I8 => Value::I8(cursor.take(1)?[0].cast_signed()),
        ValueType::U16 => Value::U16(cursor.u16()?),
        ValueType::I16 => Value::I16(cursor.u16()?.cast_signed()),
        ValueType::U32 => Value::U32(cursor.u32()?),
        ValueType::I32 => Value::I32(cursor.u32()?.cast_signed()),
        ValueType::F32 => Value::F32(f32::from_bits(cursor.u32()?)),
        ValueType::U64 => Value::U64(cursor.u64()?),
        ValueType::I64 => Value::I64(cursor.u64()?.cast_signed()),
        ValueType::F64 => Value::F64(f64::from_bits(cursor.u64()?)),
        ValueType::Bool => match cursor.take(1)?[0] {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            byte => {
                let error =
                    Error::new(Class::InvalidValue, at, "{name} is a bool of {a}, which must be 0 or 1");
                return Err(error.values(u64::from(byte), 0).into());
            }
        },
        ValueType::Text => {
            let len = count(cursor, version)?;
            let at = cursor.at;
            Value::Text(RawText { bytes: cursor.take(len)?, at })
        }
        ValueType::Array => Value::Array(array(cursor, version, depth)?),
    })
}

/// Steps over an array, checking it.
fn array<'a>(cursor: &mut Cursor<'a>, version: u32, depth: u32) -> Result<Array<'a>, Stop> {
    let at = cursor.at;
    let Some(below) = depth.checked_sub(1) else {
        let error = Error::new(Class::LimitExceeded, at, "arrays in {name} are nested deeper than {a}");
        return Err(error.values(u64::from(limits::GGUF_DEPTH), 0).into());
    };
    let element = kind(cursor, "{name} is an array of the unknown type {a}")?;
    let elements = count(cursor, version)?;
    let start = *cursor;
    // The least an element takes: a length, or type and length. Refuses absurd counts before the first step.
    let header = if version == 1 { 4 } else { 8 };
    let least = element.size().unwrap_or(if element == ValueType::Array { 4 + header } else { header });
    let Some(total) = elements.checked_mul(least) else {
        let error = Error::new(
            Class::Overflow,
            at,
            "an array of {a} elements in {name} has more bytes than fit 64 bits",
        );
        return Err(error.values(elements, 0).into());
    };
    cursor.input.slice(start.at, total)?;
    match element.size() {
        Some(_) if element != ValueType::Bool => {
            cursor.take(total)?;
        }
        None if element == ValueType::Text => {
            // The long arrays: nothing but lengths is looked at.
            for _ in 0..elements {
                let len = count(cursor, version)?;
                cursor.take(len)?;
            }
        }
        _ => {
            for _ in 0..elements {
                read(cursor, version, element, below)?;
            }
        }
    }
    Ok(Array { element, count: elements, start, len: cursor.at - start.at, version })
}

/// The value of a key that holds a count.
pub(super) fn whole(key: Text<'_>, value: Value<'_>) -> Result<u64, Error> {
    let Some(number) = value.integer() else {
        let error = Error::new(Class::InvalidType, key.at(), "{name} is a {word}, it must be a whole number");
        return Err(error.name(key).word(value.kind().name().bytes()));
    };
    u64::try_from(number)
        .map_err(|_| Error::new(Class::InvalidValue, key.at(), "{name} is negative").name(key))
}

/// The value of `general.alignment`.
pub(super) fn alignment(key: Text<'_>, value: Value<'_>) -> Result<u64, Error> {
    let Value::U32(number) = value else {
        let error = Error::new(Class::InvalidType, key.at(), "{name} is a {word}, it must be a u32");
        return Err(error.name(key).word(value.kind().name().bytes()));
    };
    let number = u64::from(number);
    let error = if !number.is_power_of_two() {
        Error::new(Class::InvalidValue, key.at(), "{name} is {a}, it must be a power of two")
    } else if number > limits::ALIGNMENT {
        Error::new(Class::LimitExceeded, key.at(), "{name} is {a}, at most {b} is read")
    } else {
        return Ok(number);
    };
    Err(error.name(key).values(number, limits::ALIGNMENT))
}
