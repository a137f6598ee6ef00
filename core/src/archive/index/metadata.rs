//! Metadata that an index keeps: numbers and short texts as they are, of the rest the place in the file.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::any::Archive;
use super::super::gguf::{self, ValueType};
use super::super::input::Stop;
use super::super::limits;
use super::Place;

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The key, decoded.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The type that the file gives it; text for all metadata of safetensors.
    pub kind: ValueType,
}

/// A value of metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An unsigned integer of any width.
    Unsigned(u64),
    /// A signed integer of any width.
    Signed(i64),
    /// A float of either width.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// A text of at most [`limits::COPIED_TEXT_BYTES`], decoded.
    Text(String),
    /// A longer text, or one that is not UTF-8: where its stored bytes are.
    LongText(Place),
    /// An array.
    Array {
        /// The type of its elements.
        element: ValueType,
        /// How many it has.
        count: u64,
        /// Where its stored elements are.
        place: Place,
    },
}

pub(super) fn read(archive: &Archive<'_>) -> Result<Vec<Pair>, Stop> {
    let mut pairs = Vec::new();
    match archive {
        Archive::Gguf(file) => {
            for pair in file.metadata() {
                let (key, value) = pair?;
                pairs.push(Pair { key: key.raw().to_owned(), value: owned(value), kind: value.kind() });
            }
        }
        Archive::Safetensors(file) => {
            for pair in file.metadata() {
                let (key, text) = pair?;
                let raw = text.raw();
                let value = if raw.len() > limits::COPIED_TEXT_BYTES {
                    Value::LongText(Place { offset: text.at(), len: raw.len() as u64 })
                } else {
                    Value::Text(text.chars().collect())
                };
                pairs.push(Pair { key: key.chars().collect(), value, kind: ValueType::Text });
            }
        }
        Archive::Irpa(_) => {}
    }
    Ok(pairs)
}

fn owned(value: gguf::Value<'_>) -> Value {
    use gguf::Value as From;
    match value {
        From::U8(n) => Value::Unsigned(n.into()),
        From::U16(n) => Value::Unsigned(n.into()),
        From::U32(n) => Value::Unsigned(n.into()),
        From::U64(n) => Value::Unsigned(n),
        From::I8(n) => Value::Signed(n.into()),
        From::I16(n) => Value::Signed(n.into()),
        From::I32(n) => Value::Signed(n.into()),
        From::I64(n) => Value::Signed(n),
        From::F32(x) => Value::Float(x.into()),
        From::F64(x) => Value::Float(x),
        From::Bool(b) => Value::Bool(b),
        From::Text(text) => match core::str::from_utf8(text.bytes()) {
            Ok(short) if short.len() <= limits::COPIED_TEXT_BYTES => Value::Text(short.to_owned()),
            _ => Value::LongText(Place { offset: text.at(), len: text.bytes().len() as u64 }),
        },
        From::Array(array) => Value::Array {
            element: array.element(),
            count: array.count(),
            place: Place { offset: array.at(), len: array.len_bytes() },
        },
    }
}
