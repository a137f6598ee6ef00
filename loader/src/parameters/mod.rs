//! Parameters: the tensors of one or more archives, by name.

mod content;
mod external;
mod file;
mod parts;
mod populate;
mod remote;
mod shards;

pub use content::Content;
pub use file::{ArchiveFile, Mode};
pub use shards::is_index;

use crate::{
    error::{Error, ErrorKind, Result},
    load::Io,
    near,
};
use file::fault;
use hashbrown::{HashTable, hash_table};
use std::{
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    sync::Arc,
};
use wharf_core::{
    archive::{Class, Data, Escaped},
    batch::Stored,
};

/// A tensor of an archive, as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<'a> {
    /// The scope of its archive, empty unless one was given.
    pub scope: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its type, where the format has types.
    pub dtype: Option<&'static str>,
    /// Its dimensions, outermost first, where the format has shapes.
    pub shape: Option<&'a [u64]>,
    /// Bytes.
    pub bytes: u64,
    /// Where those are.
    pub place: TensorPlace,
    /// The archive that lists it.
    pub file: &'a Path,
    /// File and entry.
    at: (usize, usize),
}

/// Where a tensor's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorPlace {
    /// In its archive, from this offset on.
    Offset(u64),
    /// Nowhere: a pattern, repeated.
    Splat(Vec<u8>),
    /// In another file, from this offset on.
    External(PathBuf, u64),
}

/// Archives under scopes, opened together.
#[derive(Clone, Default)]
pub struct Parameters {
    files: Vec<Scoped>,
    /// File and entry by scope and name, both of which are kept with the file.
    names: HashTable<(usize, usize)>,
    hasher: RandomState,
    /// File and entry in the order of files and entries.
    order: Vec<(usize, usize)>,
}

#[derive(Clone)]
struct Scoped {
    scope: String,
    file: Arc<ArchiveFile>,
    /// Names that the set assigns to this file; none: all.
    only: Option<Arc<std::collections::HashSet<String>>>,
}

impl Parameters {
    /// The tensors of one archive (or of a sharded set, by its index file), to be read.
    ///
    /// # Errors
    /// A file that is missing or at fault.
    pub fn open(path: impl AsRef<Path>) -> Result<Parameters> {
        let mut parameters = Parameters::default();
        parameters.add("", path, Mode::Read)?;
        Ok(parameters)
    }

    /// Also the tensors of this archive, under a scope. On error nothing was added.
    ///
    /// # Errors
    /// A file that is missing or at fault; a name that the scope already has.
    pub fn add(&mut self, scope: &str, path: impl AsRef<Path>, mode: Mode) -> Result<()> {
        let path = path.as_ref();
        let mut grown = self.clone();
        if shards::is_index(path) {
            for (file, names) in shards::open(path, mode)? {
                grown.push(scope, file, Some(names))?;
            }
        } else {
            grown.push(scope, ArchiveFile::open(path, mode)?, None)?;
        }
        *self = grown;
        Ok(())
    }

    fn push(
        &mut self,
        scope: &str,
        file: ArchiveFile,
        only: Option<std::collections::HashSet<String>>,
    ) -> Result<()> {
        let number = self.files.len();
        let count = file.index().len();
        self.files.push(Scoped { scope: scope.into(), file: Arc::new(file), only: only.map(Arc::new) });
        self.order.reserve(count);
        let Parameters { files, names, hasher, order } = self;
        names.reserve(count, |at| hasher.hash_one(key(files, *at)));
        let added = &files[number];
        for (entry, item) in added.file.index().entries().enumerate() {
            if added.only.as_ref().is_some_and(|only| !only.contains(item.name)) {
                continue;
            }
            let own = (scope, item.name);
            let same = |at: &(usize, usize)| key(files, *at) == own;
            match names.entry(hasher.hash_one(own), same, |at| hasher.hash_one(key(files, *at))) {
                hash_table::Entry::Vacant(slot) => drop(slot.insert((number, entry))),
                hash_table::Entry::Occupied(before) => {
                    return Err(duplicate(&added.file, item.name, &files[before.get().0].file));
                }
            }
            order.push((number, entry));
        }
        Ok(())
    }

    /// Whether an archive was opened under this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.files.iter().any(|known| known.scope == scope)
    }

    /// The archives with their scopes.
    pub fn files(&self) -> impl Iterator<Item = (&str, &ArchiveFile)> {
        self.files.iter().map(|scoped| (scoped.scope.as_str(), &*scoped.file))
    }

    /// Whether the archive with this number is a part of a set that an index put together.
    pub fn is_shard(&self, file: usize) -> bool {
        self.files.get(file).is_some_and(|scoped| scoped.only.is_some())
    }

    /// Tensors in all.
    pub fn len(&self) -> usize {
        self.order.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
    /// Bytes of all tensors, saturating.
    pub fn total_bytes(&self) -> u64 {
        self.tensors().fold(0, |sum, tensor| sum.saturating_add(tensor.bytes))
    }

    /// All tensors, in the order of archives and entries.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor<'_>> {
        self.order.iter().filter_map(|(file, entry)| self.tensor(*file, *entry))
    }

    fn tensor(&self, file: usize, entry: usize) -> Option<Tensor<'_>> {
        let scoped = self.files.get(file)?;
        let item = scoped.file.index().entry(entry)?;
        let (bytes, place) = match item.data {
            Data::Range { offset, len } => (len, TensorPlace::Offset(offset)),
            Data::Splat { pattern, pattern_len, len } => {
                (len, TensorPlace::Splat(pattern[..usize::from(pattern_len).min(16)].to_vec()))
            }
            Data::External { path, offset, len } => {
                let path: String = path.chars().collect();
                (len, TensorPlace::External(path.into(), offset))
            }
        };
        Some(Tensor {
            scope: &scoped.scope,
            name: item.name,
            dtype: item.dtype.map(|dtype| dtype.name()),
            shape: item.dtype.map(|_| item.shape),
            bytes,
            place,
            file: scoped.file.path(),
            at: (file, entry),
        })
    }

    /// A tensor by name: `name`, or `scope::name`.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchTensor`] with the nearest names.
    pub fn find(&self, name: &str) -> Result<Tensor<'_>> {
        let (file, entry) = self.place(name)?;
        self.tensor(file, entry).ok_or_else(|| Error::new(ErrorKind::Internal, "a listed tensor is gone"))
    }

    fn place(&self, name: &str) -> Result<(usize, usize)> {
        let at = |scope: &str, name: &str| {
            let own = (scope, name);
            self.names.find(self.hasher.hash_one(own), |at| key(&self.files, *at) == own)
        };
        let scoped = || name.split_once("::").and_then(|(scope, name)| at(scope, name));
        at("", name).or_else(scoped).copied().ok_or_else(|| self.no_such(name))
    }

    fn no_such(&self, name: &str) -> Error {
        let full: Vec<String> = self
            .tensors()
            .map(|t| if t.scope.is_empty() { t.name.to_owned() } else { format!("{}::{}", t.scope, t.name) })
            .collect();
        let there = near::there_are(name, "tensors", full.iter().map(String::as_str));
        let files: Vec<String> = self.files().map(|(_, file)| file.path().display().to_string()).collect();
        let message = format!("no tensor `{}` in {}{there}", Escaped(name.as_bytes()), files.join(", "));
        let error = Error::new(ErrorKind::NoSuchTensor, message).next("`wharf list FILE` lists them all");
        match self.files.first() {
            Some(scoped) if self.files.len() == 1 => error.in_file(scoped.file.path()),
            _ => error,
        }
    }

    /// The file whose mapping holds this address.
    pub(crate) fn file_at(&self, address: u64) -> Option<&Arc<ArchiveFile>> {
        self.files.iter().map(|scoped| &scoped.file).find(|file| file.holds(address))
    }

    /// Has the bytes at an address of a mapped file in memory, and if they are fewer than `least`, what follows them too;
    /// answers the address up to which that is so.
    ///
    /// # Errors
    /// `DataLoss` where the file does not reach so far any more; `Io` where it cannot be read.
    pub(crate) fn populate(
        &self,
        address: u64,
        len: u64,
        least: u64,
        write: bool,
    ) -> std::result::Result<u64, wharf_core::fault::Fault> {
        match self.file_at(address) {
            Some(file) => file.populate(address, len, least, write),
            None => self
                .files
                .iter()
                .find_map(|scoped| scoped.file.populate_beside(address, len))
                .unwrap_or(Ok(u64::MAX)),
        }
    }

    /// Whether a file of this name is one of those that are open here, by whatever name or link.
    ///
    /// # Errors
    /// A file that cannot be examined.
    pub fn reads(&self, path: &Path) -> Result<bool> {
        let failed = |error| Error::io(path, "cannot be examined", &error);
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
            Ok(_) => {}
        }
        for Scoped { file, .. } in &self.files {
            let beside = file.beside.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut others = beside.values();
            if same_file(file.file(), file.path(), path).map_err(failed)?
                || others.any(|other| same_file(&other.file, &other.path, path).unwrap_or(false))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where the bytes of a tensor are in this process, for a batch.
    ///
    /// # Errors
    /// No such tensor; one whose bytes are in another file that is not as the archive says.
    pub(crate) fn stored(&self, name: &str, io: Io) -> Result<Stored> {
        let (file, entry) = self.place(name)?;
        let file = &self.files[file].file;
        let gone = || Error::new(ErrorKind::Internal, "a listed tensor is gone");
        let item = file.index().entry(entry).ok_or_else(gone)?;
        match item.data {
            Data::Range { offset, len } => {
                let access = file.access();
                let number = match io {
                    _ if len == 0 => None,
                    Io::Direct => Some(file.direct_number()?),
                    Io::Read => Some(file.number()?),
                    Io::Auto if file.is_remote() => Some(file.number()?),
                    Io::Auto | Io::Map => None,
                };
                Ok(match number {
                    Some(file) => Stored::File { file, offset, len, access },
                    None => Stored::Memory { address: file.address() + offset, len, access },
                })
            }
            Data::Splat { pattern, pattern_len, len } => Ok(Stored::Splat { pattern, pattern_len, len }),
            Data::External { path, offset, len } => {
                Ok(external::open(file, name, path, offset, len)?.stored(offset, len))
            }
        }
    }
}

/// Scope and name of an entry.
fn key(files: &[Scoped], (file, entry): (usize, usize)) -> (&str, &str) {
    let Some(scoped) = files.get(file) else { return ("", "") };
    (&scoped.scope, scoped.file.index().name(entry).unwrap_or_default())
}

fn duplicate(file: &ArchiveFile, name: &str, first: &ArchiveFile) -> Error {
    let message = format!(
        "{}: duplicate_name: tensor `{}` is in {} too",
        file.path().display(),
        near::escaped(name),
        first.path().display()
    );
    let error = Error::new(ErrorKind::Archive(Class::DuplicateName), message).in_file(file.path());
    error.next("give the archives scopes of their own: `scope=FILE`")
}

/// Whether an open file is the one that a name leads to.
#[cfg(unix)]
fn same_file(file: &std::fs::File, _: &Path, other: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (one, two) = (file.metadata()?, std::fs::metadata(other)?);
    Ok((one.dev(), one.ino()) == (two.dev(), two.ino()))
}

#[cfg(not(unix))]
fn same_file(_: &std::fs::File, path: &Path, other: &Path) -> std::io::Result<bool> {
    Ok(std::fs::canonicalize(path)? == std::fs::canonicalize(other)?)
}
