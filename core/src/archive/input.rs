//! What a reader reads: a prefix of a file that is in memory, and the file's true length. A reader without mmap starts
//! with a few KiB and reads on while the parser answers [`Stop::Need`]; nothing here touches a byte of tensor data.

use super::error::{Class, Error};
use super::limits;

/// The bytes of a file that are in memory, from its first, and how long the file is.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    len: u64,
}

/// Why a parser stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The file goes on, but its first so many bytes are not all in memory yet. The least that gets the parser further,
    /// which begins anew each time: read at least twice what is there.
    Need(u64),
    /// The file is at fault.
    Bad(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Bad(error)
    }
}

impl core::fmt::Display for Stop {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Stop::Need(bytes) => write!(f, "the first {bytes} bytes of the file are needed"),
            Stop::Bad(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Stop {}

impl<'a> Input<'a> {
    /// A file that is in memory as a whole: mapped, read, or in flash.
    pub fn whole(bytes: &'a [u8]) -> Self {
        Input { bytes, len: bytes.len() as u64 }
    }
    /// The first bytes of a file of `len` bytes; what is beyond `len` is ignored.
    pub fn prefix(bytes: &'a [u8], len: u64) -> Self {
        let held = usize::try_from(len).map_or(bytes.len(), |len| len.min(bytes.len()));
        Input { bytes: &bytes[..held], len }
    }
    /// The bytes in memory.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// The length of the file.
    pub const fn len(&self) -> u64 {
        self.len
    }
    /// True for a file of no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `len` bytes at `at`. Every field of every entry comes through here, so the good case is small.
    #[inline]
    pub(super) fn slice(&self, at: u64, len: u64) -> Result<&'a [u8], Stop> {
        match at.checked_add(len) {
            // Both are at most `bytes.len()`, which is a `usize`.
            Some(end) if end <= self.bytes.len() as u64 => Ok(&self.bytes[at as usize..end as usize]),
            _ => Err(self.lacking(at, len)),
        }
    }
    #[cold]
    fn lacking(&self, at: u64, len: u64) -> Stop {
        self.end(at, len).map_or_else(Stop::Bad, Stop::Need)
    }

    /// Where a range of the header ends, if the file is that long.
    fn end(&self, at: u64, len: u64) -> Result<u64, Error> {
        let Some(end) = at.checked_add(len) else {
            return Err(Error::new(Class::Overflow, at, "{a} + {b} bytes do not fit 64 bits").values(at, len));
        };
        if end > self.len {
            let detail = "the header goes on to {a}, the file has {b} bytes ({a-b} short): broken download?";
            let class = if end > limits::FILE_BYTES { Class::LimitExceeded } else { Class::Truncated };
            return Err(Error::new(class, at, detail).values(end, self.len));
        }
        Ok(end)
    }

    /// Proves that `len` bytes of data at `at` are inside the file.
    pub(super) fn prove(&self, at: Option<u64>, len: u64) -> Result<u64, Error> {
        let end = at.and_then(|at| at.checked_add(len));
        let Some((at, end)) = at.zip(end) else {
            let detail = "{name} ends past 2^64: its length is {a}, the file has {b} bytes";
            return Err(Error::new(Class::Overflow, 0, detail).values(len, self.len));
        };
        if end > self.len {
            let detail = "tensor {name} ends at {a}, the file has {b} bytes ({a-b} short): broken download?";
            let class = if end > limits::FILE_BYTES { Class::OutOfRange } else { Class::Truncated };
            return Err(Error::new(class, at, detail).values(end, self.len));
        }
        Ok(end)
    }
}

/// Reads numbers one after the other, in either byte order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    pub(super) input: Input<'a>,
    pub(super) at: u64,
    pub(super) big: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(input: Input<'a>, at: u64) -> Self {
        Cursor { input, at, big: false }
    }
    #[inline]
    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], Stop> {
        let bytes = self.input.slice(self.at, len)?;
        self.at += len;
        Ok(bytes)
    }
    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, Stop> {
        let number = u16::from_le_bytes(self.array()?);
        Ok(if self.big { number.swap_bytes() } else { number })
    }
    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, Stop> {
        let number = u32::from_le_bytes(self.array()?);
        Ok(if self.big { number.swap_bytes() } else { number })
    }
    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64, Stop> {
        let number = u64::from_le_bytes(self.array()?);
        Ok(if self.big { number.swap_bytes() } else { number })
    }
    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64)?);
        Ok(out)
    }
}
