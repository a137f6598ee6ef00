//! One archive: its bytes mapped, its table read.
//!
//! # Safety
//! A mapping shows the file as it is; another process that cuts the file while bytes are read from it can end this one.
//! Nothing is concluded from the bytes beyond what the table proved at the file's length when it was opened.
#![allow(unsafe_code)]

use super::{external::Beside, populate, remote};
use crate::{
    error::{Error, ErrorKind, Result},
    files::OpenFile,
};
use memmap2::{Mmap, MmapMut};
use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use wharf_core::{
    archive::{self, Class, Format, Index, Input, Stop},
    bits::Access,
    fault::Fault,
};

/// How an archive is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Its bytes are only read.
    #[default]
    Read,
    /// Scatter may write into its tensors.
    Write,
}

enum Bytes {
    Empty,
    Read(Mmap),
    Write(MmapMut),
}

/// An archive that is open.
pub struct ArchiveFile {
    path: PathBuf,
    file: File,
    bytes: Bytes,
    index: Index,
    by_number: OnceLock<OpenFile>,
    direct: OnceLock<OpenFile>,
    /// Asked once: a load asks for each of its tensors.
    remote: OnceLock<bool>,
    /// Files beside this one that entries of it name, once they were needed.
    pub(super) beside: Mutex<HashMap<String, Arc<Beside>>>,
}

impl ArchiveFile {
    /// Opens a file, finds its format by its content (by its name only if that tells nothing, so that the error is about
    /// the format that was meant) and reads its table; no byte of a tensor is touched.
    ///
    /// # Errors
    /// A file that is not there; anything in it that does not hold, with where and what to do.
    pub fn open(path: &Path, mode: Mode) -> Result<ArchiveFile> {
        let (file, bytes) = map(path, mode)?;
        let input = Input::whole(bytes.as_slice());
        let index = match Format::detect(bytes.as_slice()).or_else(|| by_name(path)) {
            Some(format) => Index::read_as(format, input),
            None => Index::read(input),
        };
        let index = index.map_err(|stop| at_fault(path, stop))?;
        let beside = Mutex::default();
        Ok(ArchiveFile {
            path: path.to_owned(),
            file,
            bytes,
            index,
            by_number: OnceLock::new(),
            direct: OnceLock::new(),
            remote: OnceLock::new(),
            beside,
        })
    }

    /// Everything that is wrong with a file, as far as it can be told; empty if it can be opened.
    ///
    /// # Errors
    /// A file that is not there or cannot be mapped.
    pub fn examine(path: &Path) -> Result<Vec<archive::Error>> {
        let (_, bytes) = map(path, Mode::Read)?;
        let bytes = bytes.as_slice();
        let format = Format::detect(bytes).or_else(|| by_name(path));
        archive::examine(format, Input::whole(bytes)).map_err(|stop| at_fault(path, stop))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// The table.
    pub fn index(&self) -> &Index {
        &self.index
    }
    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }
    /// The file itself, to be read where a mapping would end the process if the file shrinks.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
    /// What may be done with its tensors.
    pub(crate) fn access(&self) -> Access {
        match self.bytes {
            Bytes::Write(_) => Access::READ | Access::WRITE,
            _ => Access::READ,
        }
    }
    /// The file's number at the backend of files; opened when first asked for.
    pub(crate) fn number(&self) -> Result<u64> {
        if let Some(open) = self.by_number.get() {
            return Ok(open.number());
        }
        let failed = |error| Error::io(&self.path, "cannot be opened once more", &error);
        let file = self.file.try_clone().map_err(failed)?;
        Ok(self.by_number.get_or_init(|| OpenFile::new(file)).number())
    }
    /// The same for reads past the page cache.
    pub(crate) fn direct_number(&self) -> Result<u64> {
        if let Some(open) = self.direct.get() {
            return Ok(open.number());
        }
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::Unsupported => {
                let message = format!("{}: cannot be read directly (O_DIRECT): {error}", self.path.display());
                let error = Error::new(ErrorKind::Unsupported, message).in_file(&self.path);
                error.next("read it through the system's cache: `--io read`")
            }
            _ => Error::io(&self.path, "cannot be opened to be read directly", &error),
        };
        let open = self.file.try_clone().and_then(OpenFile::direct).map_err(failed)?;
        Ok(self.direct.get_or_init(|| open).number())
    }
    /// Whether the file lies on a file system that is reached over a network, where page by page is slow.
    pub(crate) fn is_remote(&self) -> bool {
        *self.remote.get_or_init(|| remote::is_remote(&self.path))
    }
    /// Whether an address lies in the mapping.
    pub(crate) fn holds(&self, address: u64) -> bool {
        address.checked_sub(self.address()).is_some_and(|at| at < self.bytes().len() as u64)
    }
    /// See [`Parameters::populate`](super::Parameters).
    pub(super) fn populate(
        &self,
        address: u64,
        len: u64,
        least: u64,
        write: bool,
    ) -> std::result::Result<u64, Fault> {
        let at = address - self.address();
        let all = self.bytes().len() as u64;
        let advise = |len: u64| match &self.bytes {
            Bytes::Empty => Ok(()),
            Bytes::Read(map) => populate::read(map, at, len),
            Bytes::Write(map) => populate::write(map, at, len, write),
        };
        let wide = len.max(least).min(all - at);
        if advise(wide).is_ok() {
            return Ok(address + wide);
        }
        // What follows may be gone, and not be wanted.
        advise(len).map(|()| address + len).map_err(|error| populate::fault(&error, &self.file, at + len))
    }
    /// The same in a file beside this one; `None`: the address is in none of them.
    pub(super) fn populate_beside(&self, address: u64, len: u64) -> Option<std::result::Result<u64, Fault>> {
        let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        beside.values().find_map(|file| file.populate(address, len))
    }
    /// Address of the file's first byte.
    pub(crate) fn address(&self) -> u64 {
        self.bytes.as_slice().as_ptr() as u64
    }
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Empty => &[],
            Bytes::Read(map) => map,
            Bytes::Write(map) => map,
        }
    }
}

fn map(path: &Path, mode: Mode) -> Result<(File, Bytes)> {
    let opened = match mode {
        Mode::Read => File::open(path),
        Mode::Write => OpenOptions::new().read(true).write(true).open(path),
    };
    let file = opened.map_err(|error| Error::io(path, "cannot be opened", &error))?;
    let facts = file.metadata().map_err(|error| Error::io(path, "cannot be examined", &error))?;
    if facts.is_dir() {
        let error =
            Error::new(ErrorKind::NoSuchFile, format!("{} is a folder, not an archive", path.display()));
        return Err(error
            .in_file(path)
            .next("name the archive itself, or the index file of a sharded model"));
    }
    if facts.len() == 0 {
        return Ok((file, Bytes::Empty)); // Nothing can be mapped; the reader says that it is empty.
    }
    let mapped = match mode {
        // SAFETY: as this file's `# Safety` says.
        Mode::Read => unsafe { Mmap::map(&file) }.map(Bytes::Read),
        // SAFETY: as above.
        Mode::Write => unsafe { MmapMut::map_mut(&file) }.map(Bytes::Write),
    };
    let bytes = mapped.map_err(|error| Error::io(path, "cannot be mapped", &error))?;
    Ok((file, bytes))
}

/// Maps a file to be read.
pub(super) fn map_read(file: &File) -> io::Result<Mmap> {
    // SAFETY: as this file's `# Safety` says; the range that is used was held against the length of the file.
    unsafe { Mmap::map(file) }
}

fn by_name(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_string_lossy().to_lowercase();
    [Format::Gguf, Format::Safetensors, Format::Irpa].into_iter().find(|format| format.name() == extension)
}

/// A reader's error about a file.
pub(crate) fn at_fault(path: &Path, stop: Stop) -> Error {
    let error = match stop {
        Stop::Bad(error) => error,
        Stop::Need(_) => return Error::new(ErrorKind::Internal, "a whole file was not enough").in_file(path),
    };
    fault(path, &error)
}

pub(crate) fn fault(path: &Path, error: &archive::Error) -> Error {
    let advice = match error.class() {
        Class::Truncated => "download it again, or compare its length with the source's",
        Class::BadMagic => "check that this is the file you meant",
        _ => "the file is damaged or its writer is at fault; another copy may be good",
    };
    let message = format!("{}: {error}", path.display());
    Error::new(ErrorKind::Archive(error.class()), message).in_file(path).next(advice)
}
