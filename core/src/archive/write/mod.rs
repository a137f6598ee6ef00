//! Writers of archives: the layout of a file is computed first, from what its entries are; then its head is written, and
//! the caller puts the bytes of the entries behind it, each at its offset. No heap is needed: entries come as an iterator
//! that is walked more than once and must give the same entries each time.
//!
//! What is left to the caller: names that occur twice (it has the table of names already), files, and the bytes.

pub mod irpa;
pub mod safetensors;
#[cfg(test)]
mod tests;

use super::dtype::Dtype;
use super::entry::Text;
use super::error::{Class, Error};
use super::limits;

/// Where bytes go, one piece after the other.
pub trait Sink {
    /// Why a piece could not be taken.
    type Error;
    /// Takes all of these bytes.
    ///
    /// # Errors
    /// The sink's own, after which what it holds is of no use.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// An entry that is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// The key.
    pub name: &'a str,
    /// The type; IRPA keeps none, safetensors needs one.
    pub dtype: Option<Dtype>,
    /// The dimensions, outermost first.
    pub shape: &'a [u64],
    /// Bytes that IRPA keeps with the entry.
    pub metadata: &'a [u8],
    /// What it holds.
    pub data: DraftData,
}

/// What an entry that is to be written holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftData {
    /// So many bytes, stored.
    Stored(u64),
    /// A pattern, repeated, of which only the pattern is stored. IRPA has this, safetensors has not.
    Splat {
        /// The pattern, in its first `pattern_len` bytes.
        pattern: [u8; 16],
        /// 1, 2, 4, 8 or 16.
        pattern_len: u8,
        /// In bytes, a multiple of `pattern_len`.
        len: u64,
    },
}

/// A sink that is a piece of memory.
#[derive(Debug)]
pub struct Room<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

/// A [`Room`] has no place for so many bytes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full(pub usize);

impl<'a> Room<'a> {
    /// A room that is filled from its first byte.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Room { bytes, used: 0 }
    }
    /// What was put in so far.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

impl Sink for Room<'_> {
    type Error = Full;
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let free = &mut self.bytes[self.used..];
        let left = free.len();
        let Some(place) = free.get_mut(..bytes.len()) else { return Err(Full(bytes.len() - left)) };
        place.copy_from_slice(bytes);
        self.used += bytes.len();
        Ok(())
    }
}

/// A sink that only counts.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    type Error = core::convert::Infallible;
    fn put(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
}

/// Puts zeros.
///
/// # Errors
/// The sink's.
pub fn zeros<S: Sink>(sink: &mut S, mut len: u64) -> Result<(), S::Error> {
    const ZEROS: [u8; 256] = [0; 256];
    while len > 0 {
        let part = len.min(ZEROS.len() as u64);
        sink.put(&ZEROS[..part as usize])?;
        len -= part;
    }
    Ok(())
}

/// An error about an entry that is to be written; it has no place in a file.
fn refuse(class: Class, name: &str, detail: &'static str, a: u64, b: u64) -> Error {
    Error::new(class, Error::NOWHERE, detail).name(Text::plain(name, 0)).values(a, b)
}

fn sum(name: &str, a: u64, b: u64) -> Result<u64, Error> {
    let end = a.checked_add(b).filter(|&end| end <= limits::FILE_BYTES);
    end.ok_or_else(|| {
        refuse(Class::Overflow, name, "with {name} the file grows past any file: {a} + {b} bytes", a, b)
    })
}

fn align(name: &str, at: u64, alignment: u64) -> Result<u64, Error> {
    sum(name, at, at.wrapping_neg() & (alignment - 1))
}

/// What every format asks of a name.
fn named(draft: &Draft<'_>) -> Result<(), Error> {
    if draft.name.len() as u64 > limits::NAME_BYTES {
        let detail = "the name {name} has {a} bytes, at most {b} are written";
        let len = draft.name.len() as u64;
        return Err(refuse(Class::LimitExceeded, draft.name, detail, len, limits::NAME_BYTES));
    }
    Ok(())
}

/// What every format asks of an alignment.
fn power(alignment: u64) -> Result<(), Error> {
    if !alignment.is_power_of_two() {
        let detail = "alignment {a} is no power of two";
        return Err(refuse(Class::InvalidValue, "", detail, alignment, 0));
    }
    if alignment > limits::ALIGNMENT {
        let detail = "alignment {a}, at most {b} is written";
        return Err(refuse(Class::LimitExceeded, "", detail, alignment, limits::ALIGNMENT));
    }
    Ok(())
}
