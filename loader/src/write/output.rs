//! A file that appears whole or not at all: it is written under another name in the same folder, brought to the disk,
//! and then takes its name in one step. Whoever opens the name sees the old file or the new one. If writing fails, or
//! the process is interrupted in a way that it notices, nothing is left.

use crate::error::{Error, ErrorKind, Result};
use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;
use wharf_core::archive::write::Sink;

/// Bytes that are collected before they are written.
const ROOM: usize = 1 << 20;

/// A file that is being written.
pub(super) struct Output {
    /// Where it will be, with links of that name followed.
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    written: u64,
}

impl Output {
    /// Begins a file that will take this name.
    pub(super) fn create(path: &Path) -> Result<Output> {
        let path = target(path)?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut builder = tempfile::Builder::new();
        let prefix = format!(".{name}.");
        builder.prefix(&prefix).suffix(".part");
        let file = fresh(&mut builder, folder).map_err(|error| {
            Error::io(&path, &format!("no file can be made in {}", folder.display()), &error)
        })?;
        Ok(Output { path, file: BufWriter::with_capacity(ROOM, file), written: 0 })
    }

    /// Bytes so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Brings everything to the disk and gives the file its name.
    pub(super) fn finish(self) -> Result<()> {
        let path = self.path;
        let file = self.file.into_inner().map_err(|error| failed(&path, error.error()))?;
        file.as_file().sync_all().map_err(|error| failed(&path, &error))?;
        file.persist(&path).map_err(|error| failed(&path, &error.error))?;
        // The name too; a file system that cannot do that for folders has it anyway.
        #[cfg(unix)]
        if let Some(folder) = path.parent().and_then(|folder| fs::File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Sink for Output {
    type Error = Error;
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| failed(&self.path, &error))?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// Where a file of this name ends up, if it can be replaced.
fn target(path: &Path) -> Result<PathBuf> {
    let facts = match fs::metadata(path) {
        Ok(facts) => facts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path.to_owned()),
        Err(error) => return Err(Error::io(path, "cannot be examined", &error)),
    };
    if facts.is_file() {
        return fs::canonicalize(path).map_err(|error| Error::io(path, "cannot be examined", &error));
    }
    let what = if facts.is_dir() { "a folder" } else { "no regular file" };
    let message = format!("{} is {what}: an archive cannot take its place", path.display());
    Err(Error::new(ErrorKind::Usage, message).in_file(path).next("name a file, such as out.irpa"))
}

/// A file with the rights that any new file gets.
fn fresh(builder: &mut tempfile::Builder<'_, '_>, folder: &Path) -> io::Result<NamedTempFile> {
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let error_of = Error::io(path, "cannot be written, nothing was left there", error);
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            error_of.next("make room, or name a file on another disk")
        }
        _ => error_of,
    }
}
