//! Sharded sets: an index file that assigns tensors to files beside it. The index decides: exactly its tensors, each
//! from the file it names; other files and other copies are not part of the set.

use super::{ArchiveFile, Mode, fault};
use crate::{
    error::{Error, ErrorKind, Result},
    near,
};
use std::{collections::HashSet, fs, path::Path};
use wharf_core::archive::{Class, Shards, limits};

/// Whether a file is an index by its name (`model.safetensors.index.json`).
pub fn is_index(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().to_lowercase().ends_with(".index.json"))
}

/// Opens every file of the set; nothing is opened unless all are there.
pub(super) fn open(path: &Path, mode: Mode) -> Result<Vec<(ArchiveFile, HashSet<String>)>> {
    let facts = fs::metadata(path).map_err(|error| Error::io(path, "cannot be opened", &error))?;
    if facts.len() > limits::SHARD_INDEX_BYTES {
        let message = format!("{}: an index of {} bytes is above the limit", path.display(), facts.len());
        return Err(Error::new(ErrorKind::Archive(Class::LimitExceeded), message).in_file(path));
    }
    let text = fs::read(path).map_err(|error| Error::io(path, "cannot be read", &error))?;
    let shards = Shards::parse(&text).map_err(|error| fault(path, &error))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let missing: Vec<&String> = shards.files().iter().filter(|name| !folder.join(name).exists()).collect();
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|name| near::escaped(name)).collect();
        let message = format!(
            "{}: missing_file: {} of {} files are missing; nothing was opened: {}",
            path.display(),
            missing.len(),
            shards.files().len(),
            names.join(", ")
        );
        let error = Error::new(ErrorKind::Archive(Class::MissingFile), message).in_file(path);
        return Err(error.next("download the missing files into the folder of the index"));
    }
    let mut sets: Vec<HashSet<String>> = vec![HashSet::new(); shards.files().len()];
    for (tensor, file) in shards.tensors() {
        sets[file].insert(tensor.to_owned());
    }
    let mut opened = vec![];
    for (name, tensors) in shards.files().iter().zip(sets) {
        let file = ArchiveFile::open(&folder.join(name), mode)?;
        if let Some(lost) = tensors.iter().find(|tensor| file.index().find(tensor).is_none()) {
            let message = format!(
                "{}: not_found: tensor `{}` is assigned to {}, which does not hold it",
                path.display(),
                near::escaped(lost),
                near::escaped(name)
            );
            return Err(Error::new(ErrorKind::Archive(Class::NotFound), message).in_file(path));
        }
        opened.push((file, tensors));
    }
    Ok(opened)
}
