//! The bytes of a tensor, read piece by piece: from its archive, from a file beside it, or made from a pattern. Files are
//! read, not mapped, so that one that shrinks meanwhile is an error and memory stays bounded whatever the size.

use super::{ArchiveFile, Parameters, Tensor, external, external::Beside};
use crate::error::{Error, ErrorKind, Result};
use std::{fs::File, io, path::Path, sync::Arc};
use wharf_core::archive::{Class, Data};

/// Most bytes of a piece; a multiple of every pattern's length.
const PIECE: u64 = 1 << 20;

/// The bytes of a tensor.
#[derive(Clone)]
pub struct Content<'a>(Kind<'a>);

#[derive(Clone)]
enum Kind<'a> {
    Archive { file: &'a ArchiveFile, offset: u64, len: u64 },
    Beside { file: Arc<Beside>, offset: u64, len: u64 },
    Splat { pattern: Vec<u8>, len: u64 },
    Bytes(Vec<u8>),
}

impl Parameters {
    /// The bytes of a tensor; those in another file are found and held against that file's length now.
    ///
    /// # Errors
    /// A file beside the archive that is not there or not as the archive says.
    pub fn content(&self, tensor: &Tensor<'_>) -> Result<Content<'_>> {
        let gone = || Error::new(ErrorKind::Internal, "a listed tensor is gone");
        let (file, entry) = tensor.at;
        let file = &self.files.get(file).ok_or_else(gone)?.file;
        let item = file.index().entry(entry).ok_or_else(gone)?;
        Ok(Content(match item.data {
            Data::Range { offset, len } => Kind::Archive { file, offset, len },
            Data::Splat { pattern, pattern_len, len } => {
                Kind::Splat { pattern: pattern[..usize::from(pattern_len).clamp(1, 16)].to_vec(), len }
            }
            Data::External { path, offset, len } => {
                Kind::Beside { file: external::open(file, item.name, path, offset, len)?, offset, len }
            }
        }))
    }

    /// What the format keeps with a tensor beside its bytes; empty for most.
    pub fn metadata(&self, tensor: &Tensor<'_>) -> &[u8] {
        let (file, entry) = tensor.at;
        let bytes = self.files.get(file).and_then(|scoped| {
            let place = scoped.file.index().entry(entry)?.metadata?;
            let begin = usize::try_from(place.offset).ok()?;
            scoped.file.bytes().get(begin..)?.get(..usize::try_from(place.len).ok()?)
        });
        bytes.unwrap_or_default()
    }
}

impl Content<'static> {
    /// Bytes that are in no file.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Content(Kind::Bytes(bytes))
    }

    /// A pattern of 1, 2, 4, 8 or 16 bytes, repeated; `None` for another, or one that does not divide the length.
    pub fn splat(pattern: &[u8], len: u64) -> Option<Self> {
        let known = matches!(pattern.len(), 1 | 2 | 4 | 8 | 16) && len.is_multiple_of(pattern.len() as u64);
        known.then(|| Content(Kind::Splat { pattern: pattern.to_vec(), len }))
    }
}

impl Content<'_> {
    /// Bytes in all.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Kind::Archive { len, .. } | Kind::Beside { len, .. } | Kind::Splat { len, .. } => *len,
            Kind::Bytes(bytes) => bytes.len() as u64,
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The pattern of a splat.
    pub fn pattern(&self) -> Option<&[u8]> {
        match &self.0 {
            Kind::Splat { pattern, .. } => Some(pattern),
            _ => None,
        }
    }

    /// The first so many bytes, or all.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn head(&self, len: u64) -> Result<Vec<u8>> {
        let mut head = vec![0; usize::try_from(len.min(self.len())).unwrap_or(usize::MAX)];
        self.piece(0, &mut head)?;
        Ok(head)
    }

    /// Gives all bytes in order, in pieces of at most 1 MiB; every piece but the last is a multiple of 16 bytes.
    ///
    /// # Errors
    /// A file that cannot be read or became shorter; what `each` answers.
    pub fn read(&self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut room = vec![0; self.len().min(PIECE) as usize];
        let mut at = 0;
        while at < self.len() {
            let len = (self.len() - at).min(PIECE);
            let room = &mut room[..len as usize];
            // All full pieces of a splat are alike.
            if at == 0 || len < PIECE || self.pattern().is_none() {
                self.piece(at, room)?;
            }
            each(room)?;
            at += len;
        }
        Ok(())
    }

    /// Whether both hold the same bytes. Splats are compared by their patterns, however long they are.
    ///
    /// # Errors
    /// A file that cannot be read; what `watch`, which is told of every piece, answers.
    pub fn same(&self, other: &Content<'_>, mut watch: impl FnMut(u64) -> Result<()>) -> Result<bool> {
        if self.len() != other.len() {
            return Ok(false);
        }
        if self.pattern().is_some() && other.pattern().is_some() {
            return Ok(self.head(16)? == other.head(16)?);
        }
        let (mut at, mut same) = (0, true);
        let mut room = vec![0; self.len().min(PIECE) as usize];
        while same && at < self.len() {
            let len = (self.len() - at).min(PIECE);
            let theirs = &mut room[..len as usize];
            let mut mine = vec![0; len as usize];
            self.piece(at, &mut mine)?;
            other.piece(at, theirs)?;
            same = mine == theirs;
            at += len;
            watch(len)?;
        }
        Ok(same)
    }

    /// Fills `room` with the bytes from `at` on, which are there.
    fn piece(&self, at: u64, room: &mut [u8]) -> Result<()> {
        match &self.0 {
            Kind::Archive { file, offset, .. } => read_exact(file.file(), file.path(), offset + at, room),
            Kind::Beside { file, offset, .. } => read_exact(&file.file, &file.path, offset + at, room),
            Kind::Splat { pattern, .. } => {
                let phase = (at % pattern.len() as u64) as usize;
                let bytes = pattern.iter().cycle().skip(phase);
                room.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
                Ok(())
            }
            Kind::Bytes(bytes) => {
                let begin = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                room.iter_mut().zip(&bytes[begin..]).for_each(|(slot, byte)| *slot = *byte);
                Ok(())
            }
        }
    }
}

fn read_exact(file: &File, path: &Path, mut at: u64, mut room: &mut [u8]) -> Result<()> {
    while !room.is_empty() {
        match read_at(file, room, at) {
            Ok(0) => {
                let message = format!(
                    "{}: truncated: it became shorter while it was read: nothing at {at}",
                    path.display()
                );
                return Err(Error::new(ErrorKind::Archive(Class::Truncated), message).in_file(path));
            }
            Ok(len) => {
                room = &mut room[len..];
                at += len as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(path, "cannot be read", &error)),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn read_at(file: &File, room: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, room, at)
}

#[cfg(windows)]
fn read_at(file: &File, room: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, room, at)
}
