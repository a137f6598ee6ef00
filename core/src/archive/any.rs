//! An archive of any format.

use super::check::Mark;
use super::entry::Entry;
use super::gguf::{self, Gguf};
use super::input::{Input, Stop};
use super::irpa::{self, Irpa};
use super::safetensors::{self, Safetensors};
use super::sniff::{self, Format};

/// A file that was read through: its header is valid and its entries are inside the file. Names that occur twice,
/// overlaps and holes are found by [`check`](Self::check).
#[derive(Clone, Copy, Debug)]
pub enum Archive<'a> {
    /// A GGUF file.
    Gguf(Gguf<'a>),
    /// A safetensors file.
    Safetensors(Safetensors<'a>),
    /// An IRPA file.
    Irpa(Irpa<'a>),
}

impl<'a> Archive<'a> {
    /// Reads a file of the format that its content shows.
    ///
    /// # Errors
    /// [`Stop::Need`] until the header is in memory; `bad_magic`, with what the file looks like, if it is of no format
    /// that is read here; the class of what is wrong with it.
    pub fn open(input: Input<'a>) -> Result<Self, Stop> {
        Self::open_as(sniff::format(&input)?, input)
    }

    /// Reads a file that must be of this format.
    ///
    /// # Errors
    /// As [`open`](Self::open); `bad_magic` also for a file of another format.
    pub fn open_as(format: Format, input: Input<'a>) -> Result<Self, Stop> {
        Self::open_with(format, input, |_| {})
    }

    /// The same, and gives every entry to `each` on the way: those before an error too.
    pub(super) fn open_with(
        format: Format,
        input: Input<'a>,
        each: impl FnMut(&Entry<'a>),
    ) -> Result<Self, Stop> {
        Ok(match format {
            Format::Gguf => Archive::Gguf(Gguf::open_with(input, each)?),
            Format::Safetensors => Archive::Safetensors(Safetensors::open_with(input, each)?),
            Format::Irpa => Archive::Irpa(Irpa::open_with(input, each)?),
        })
    }

    /// The format.
    pub const fn format(&self) -> Format {
        match self {
            Archive::Gguf(_) => Format::Gguf,
            Archive::Safetensors(_) => Format::Safetensors,
            Archive::Irpa(_) => Format::Irpa,
        }
    }
    /// How many entries there are.
    pub const fn count(&self) -> u64 {
        match self {
            Archive::Gguf(file) => file.count(),
            Archive::Safetensors(file) => file.count(),
            Archive::Irpa(file) => file.count(),
        }
    }
    /// How many marks [`check`](Self::check) needs.
    pub const fn marks(&self) -> u64 {
        let pairs = match self {
            Archive::Gguf(file) => file.metadata_count(),
            Archive::Safetensors(file) => file.metadata_count(),
            Archive::Irpa(_) => 0,
        };
        if pairs > self.count() { pairs } else { self.count() }
    }
    /// The entries in the order of the file.
    pub fn entries(&self) -> Entries<'a> {
        match self {
            Archive::Gguf(file) => Entries::Gguf(file.entries()),
            Archive::Safetensors(file) => Entries::Safetensors(file.entries()),
            Archive::Irpa(file) => Entries::Irpa(file.entries()),
        }
    }
    /// Refuses names and keys that occur twice; overlaps and holes where the format forbids them. `marks` needs
    /// [`marks`](Self::marks) elements; what they hold does not matter.
    ///
    /// # Errors
    /// The class of what is wrong; `limit_exceeded` with too few marks.
    pub fn check(&self, marks: &mut [Mark]) -> Result<(), Stop> {
        match self {
            Archive::Gguf(file) => file.check(marks),
            Archive::Safetensors(file) => file.check(marks),
            Archive::Irpa(file) => file.check(marks),
        }
    }
}

/// The entries of an archive. None of them is an error once the archive is open.
#[derive(Clone, Debug)]
pub enum Entries<'a> {
    /// Of a GGUF file.
    Gguf(gguf::Entries<'a>),
    /// Of a safetensors file.
    Safetensors(safetensors::Entries<'a>),
    /// Of an IRPA file.
    Irpa(irpa::Entries<'a>),
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Stop>;
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Entries::Gguf(entries) => entries.next(),
            Entries::Safetensors(entries) => entries.next(),
            Entries::Irpa(entries) => entries.next(),
        }
    }
}
