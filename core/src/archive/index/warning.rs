//! What is unusual about a file, but allowed.

use alloc::vec::Vec;
use core::fmt;

use super::super::any::Archive;
use super::super::limits;

/// Something to tell the user; the file is read all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A GGUF name is longer than the specification allows.
    LongName {
        /// Number of the entry.
        entry: usize,
        /// Bytes of its name.
        len: usize,
    },
    /// Bytes after the last tensor of a GGUF file and its padding.
    TrailingBytes(u64),
    /// Data and header are big-endian; the data is listed and loaded as it is.
    BigEndian,
    /// An IRPA header has these flags, which mean nothing yet.
    UnknownFlags(u64),
}

pub(super) fn add(archive: &Archive<'_>, warnings: &mut Vec<Warning>) {
    let more = match archive {
        Archive::Gguf(file) => [
            (file.trailing() > 0).then_some(Warning::TrailingBytes(file.trailing())),
            file.big_endian().then_some(Warning::BigEndian),
        ],
        Archive::Irpa(file) => [(file.flags() != 0).then_some(Warning::UnknownFlags(file.flags())), None],
        Archive::Safetensors(_) => [None, None],
    };
    warnings.extend(more.into_iter().flatten());
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::LongName { entry, len } => {
                write!(
                    f,
                    "the name of entry {entry} has {len} bytes, gguf allows {}",
                    limits::GGUF_NAME_BYTES
                )
            }
            Warning::TrailingBytes(len) => write!(f, "{len} bytes after the last tensor belong to none"),
            Warning::BigEndian => f.write_str("the file is big-endian, data is not swapped"),
            Warning::UnknownFlags(flags) => write!(f, "unknown flags {flags:#x} in a header"),
        }
    }
}
