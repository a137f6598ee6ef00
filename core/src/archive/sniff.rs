//! What a file is, told by its first bytes and never by its name; and what the usual wrong files are: the pointer that
//! Git LFS leaves, a web page that a download tool saved, a checkpoint of PyTorch, an older container of ggml.

use super::error::{Class, Error};
use super::input::{Input, Stop};

/// A format of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// GGUF, version 1 to 3.
    Gguf,
    /// safetensors.
    Safetensors,
    /// IREE's parameter archive.
    Irpa,
}

impl Format {
    /// The name used in messages and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Gguf => "gguf",
            Format::Safetensors => "safetensors",
            Format::Irpa => "irpa",
        }
    }
    /// The format that the first bytes of a file look like; 9 bytes are enough to tell.
    pub fn detect(bytes: &[u8]) -> Option<Format> {
        match &bytes[..bytes.len().min(9)] {
            [b'G', b'G', b'U', b'F', ..] => Some(Format::Gguf),
            [b'I', b'R', b'P', b'A', ..] => Some(Format::Irpa),
            // A text whose ninth byte is a brace has a first word far above any length.
            [len @ .., b'{'] if little(len) <= 1 << 40 => Some(Format::Safetensors),
            _ => None,
        }
    }
}

/// The number in the first 8 bytes; none is that small where there are fewer.
fn little(bytes: &[u8]) -> u64 {
    if bytes.len() < 8 { u64::MAX } else { bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)) }
}

/// What a file is that is none of our formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stranger {
    /// A Git LFS pointer, with the size of the file that it stands for (0 if it says none).
    Lfs(u64),
    /// A web page.
    Html,
    /// A zip with a pickle in it: a PyTorch checkpoint.
    Torch,
    /// Another zip.
    Zip,
    /// A Python pickle: an old PyTorch checkpoint.
    Pickle,
    /// The old container of ggml with this magic.
    Ggml(&'static str),
    /// JSON, perhaps the index of a sharded checkpoint.
    Json,
    /// Compressed by gzip.
    Gzip,
    /// An HDF5 file.
    Hdf5,
    /// Only zero bytes, as far as can be seen: a download that reserved its file.
    Zeros,
}

impl Stranger {
    /// What the first bytes of a file look like.
    pub fn detect(bytes: &[u8]) -> Option<Stranger> {
        let text = bytes.trim_ascii_start();
        let starts = |word: &[u8]| text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        if bytes.starts_with(b"version https://git-lfs") || bytes.starts_with(b"version http://git-lfs") {
            return Some(Stranger::Lfs(lfs_size(bytes)));
        }
        if starts(b"<!doctype") || starts(b"<html") || starts(b"<?xml") || starts(b"<head") {
            return Some(Stranger::Html);
        }
        match bytes {
            [b'P', b'K', 3, 4, ..] if contains(bytes, b"data.pkl") => Some(Stranger::Torch),
            [b'P', b'K', 3, 4, ..] => Some(Stranger::Zip),
            // The third byte tells a pickle from the length of a safetensors header.
            [0x80, 2..=5, b'}' | b']' | b'(' | b'c' | b'X' | 0x8a | 0x95, ..] => Some(Stranger::Pickle),
            [b't', b'j', b'g', b'g', ..] => Some(Stranger::Ggml("GGJT")),
            [b'l', b'm', b'g', b'g', ..] => Some(Stranger::Ggml("GGML")),
            [b'f', b'm', b'g', b'g', ..] => Some(Stranger::Ggml("GGMF")),
            [b'a', b'l', b'g', b'g', ..] => Some(Stranger::Ggml("GGLA")),
            [0x1f, 0x8b, ..] => Some(Stranger::Gzip),
            [0x89, b'H', b'D', b'F', ..] => Some(Stranger::Hdf5),
            _ if text.first() == Some(&b'{') => Some(Stranger::Json),
            _ if bytes.len() >= 16 && bytes.iter().take(256).all(|&byte| byte == 0) => Some(Stranger::Zeros),
            _ => None,
        }
    }
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(512)];
    head.windows(word.len()).any(|window| window == word)
}

/// The number in the line `size N` of a pointer.
fn lfs_size(bytes: &[u8]) -> u64 {
    let head = &bytes[..bytes.len().min(1024)];
    let size = head.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"size "));
    let digits = size.unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0_u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

/// How many bytes of a file have to be in memory before it is judged.
const ENOUGH: u64 = 512;

/// Refuses a file that is plainly something else than the format `wanted`; where only a parser can tell, it passes.
pub(super) fn known(input: &Input<'_>, wanted: &'static str) -> Result<(), Stop> {
    let enough = ENOUGH.min(input.len());
    if (input.bytes().len() as u64) < enough {
        return Err(Stop::Need(enough));
    }
    match stranger(input, wanted) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

fn stranger(input: &Input<'_>, wanted: &'static str) -> Option<Error> {
    let bytes = input.bytes();
    let bad = |detail| Error::new(Class::BadMagic, 0, detail).word(wanted.bytes());
    if input.is_empty() {
        return Some(Error::new(Class::Truncated, 0, "the file is empty, not {word}").word(wanted.bytes()));
    }
    match Format::detect(bytes) {
        Some(found) if found.name() == wanted => return None,
        Some(Format::Gguf) => return Some(bad("this is a GGUF file, not {word}: rename it")),
        Some(Format::Irpa) => return Some(bad("this is an IRPA file, not {word}: rename it")),
        Some(Format::Safetensors) => return Some(bad("this is a safetensors file, not {word}: rename it")),
        None => {}
    }
    Some(match Stranger::detect(bytes)? {
        Stranger::Lfs(0) => bad("this is a Git LFS pointer, not {word}: git lfs pull"),
        Stranger::Lfs(size) => bad(
            "this is a Git LFS pointer of {b} bytes, not {word}; the file itself has {a} bytes: git lfs pull",
        )
        .values(size, input.len()),
        Stranger::Html => bad("this is an HTML page, not {word}: the download was answered with a web page"),
        Stranger::Torch => bad("this is a PyTorch checkpoint (zip), not {word}: convert it"),
        Stranger::Zip => bad("this is a zip file, perhaps a PyTorch checkpoint, not {word}"),
        Stranger::Pickle => {
            bad("this is a Python pickle, perhaps an old PyTorch checkpoint, not {word}: convert it")
        }
        Stranger::Ggml("GGJT") => bad("this is GGJT, an old container of ggml, not {word}: convert it"),
        Stranger::Ggml("GGML") => bad("this is GGML, an old container of ggml, not {word}: convert it"),
        Stranger::Ggml("GGMF") => bad("this is GGMF, an old container of ggml, not {word}: convert it"),
        Stranger::Ggml(_) => {
            bad("this is GGLA, an adapter in an old container of ggml, not {word}: convert it")
        }
        Stranger::Json => bad("this is JSON, perhaps the index of a sharded checkpoint, not {word}"),
        Stranger::Gzip => bad("this is a gzip file, not {word}: decompress it"),
        Stranger::Hdf5 => bad("this is an HDF5 file, not {word}"),
        // The header of a safetensors file of length 0 looks alike and gets its own answer.
        Stranger::Zeros => bad("the first bytes are all zero, this is no {word} file: broken download?"),
    })
}

/// The format of a file, or what it is instead.
pub(super) fn format(input: &Input<'_>) -> Result<Format, Stop> {
    if let Some(format) = Format::detect(input.bytes()) {
        return Ok(format);
    }
    known(input, "an archive")?;
    let head = input.bytes().iter().copied().take(8);
    let detail = "this is neither GGUF nor safetensors nor IRPA: it begins with `{word}`";
    Err(Error::new(Class::BadMagic, 0, detail).word(head).into())
}

/// Refuses a file that lacks the four bytes that its format begins with.
pub(super) fn magic(input: &Input<'_>, wanted: &'static str) -> Result<(), Stop> {
    known(input, wanted)?;
    let head = input.slice(0, 4)?;
    if Format::detect(head).is_some_and(|format| format.name() == wanted) {
        return Ok(());
    }
    let error =
        Error::new(Class::BadMagic, 0, "the file begins with `{word}`, not with the magic of its format");
    Err(error.word(head.iter().copied()).into())
}
