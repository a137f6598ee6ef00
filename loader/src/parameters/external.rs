//! Tensors whose bytes lie in another file beside their archive. The archive names that file, so it is opened strictly:
//! a plain relative name, and after all links a regular file inside the archive's folder, whatever the links say. (The
//! files of a sharded set are links to elsewhere in the caches of model hubs; those are placed by the user's tools. Nobody
//! places external files so.)

use super::{ArchiveFile, file, populate};
use crate::{
    error::{Error, ErrorKind, Result},
    near,
};
use memmap2::Mmap;
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
};
use wharf_core::{
    archive::{Class, Text},
    batch::Stored,
    bits::Access,
    fault::Fault,
};

/// A file beside an archive.
pub(crate) struct Beside {
    pub(super) path: PathBuf,
    pub(super) file: File,
    map: Option<Mmap>,
    len: u64,
}

impl Beside {
    /// See [`Parameters::populate`](super::Parameters); `None`: not an address of this file.
    pub(super) fn populate(&self, address: u64, len: u64) -> Option<std::result::Result<u64, Fault>> {
        let map = self.map.as_ref()?;
        let at = address.checked_sub(map.as_ptr() as u64).filter(|at| *at < self.len)?;
        let made = populate::read(map, at, len);
        Some(made.map(|()| address + len).map_err(|error| populate::fault(&error, &self.file, at + len)))
    }
    /// Where a part of it is in this process; the part was held against its length.
    pub(super) fn stored(&self, offset: u64, len: u64) -> Stored {
        let base = self.map.as_ref().map_or(0, |map| map.as_ptr() as u64);
        Stored::Memory { address: base + offset, len, access: Access::READ }
    }
}

/// Opens the file that an entry names, once for each archive, and holds the entry's range against it.
pub(super) fn open(
    archive: &ArchiveFile,
    tensor: &str,
    path: Text<'_>,
    offset: u64,
    len: u64,
) -> Result<Arc<Beside>> {
    let name: String = path.chars().collect();
    let mut known = archive.beside.lock().unwrap_or_else(PoisonError::into_inner);
    let beside = match known.get(&name) {
        Some(beside) => beside.clone(),
        None => {
            let opened = Arc::new(find(archive.path(), tensor, &name)?);
            known.insert(name.clone(), opened.clone());
            opened
        }
    };
    let end = offset.checked_add(len);
    if end.is_none_or(|end| end > beside.len) {
        let what = format!("{len} bytes at {offset}, but that file has {}", beside.len);
        let error = refuse(archive.path(), tensor, &name, Class::OutOfRange, &what);
        return Err(error.next("download that file again, or compare its length with the source's"));
    }
    Ok(beside)
}

fn refuse(archive: &Path, tensor: &str, name: &str, class: Class, what: &str) -> Error {
    let (tensor, name) = (near::escaped(tensor), near::escaped(name));
    let message =
        format!("{}: {}: tensor `{tensor}` lies in `{name}`: {what}", archive.display(), class.name());
    Error::new(ErrorKind::Archive(class), message).in_file(archive)
}

fn find(archive: &Path, tensor: &str, name: &str) -> Result<Beside> {
    let bad = |class, what: &str| refuse(archive, tensor, name, class, what);
    let folder = match archive.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let failed = |error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            let what = format!("no such file in {}", folder.display());
            bad(Class::MissingFile, &what).next("put that file beside the archive")
        }
        _ => bad(Class::MissingFile, &format!("it cannot be opened: {error}")),
    };
    let home = fs::canonicalize(folder).map_err(|error| failed(&error))?;
    let real = fs::canonicalize(home.join(name)).map_err(|error| failed(&error))?;
    if !real.starts_with(&home) {
        return Err(bad(Class::PathEscape, "a link leads out of the archive's folder"));
    }
    // Asked before it is opened: opening a pipe would wait for its other end.
    let facts = fs::metadata(&real).map_err(|error| failed(&error))?;
    if !facts.is_file() {
        return Err(bad(Class::InvalidValue, "it is no regular file"));
    }
    let file = File::open(&real).map_err(|error| failed(&error))?;
    let len = file.metadata().map_err(|error| failed(&error))?.len();
    let map = match len {
        0 => None,
        _ => Some(file::map_read(&file).map_err(|error| failed(&error))?),
    };
    let len = map.as_ref().map_or(0, |map| map.len() as u64);
    Ok(Beside { path: real, file, map, len })
}
