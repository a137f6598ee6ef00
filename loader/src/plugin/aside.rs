//! Plugins that are set aside: they ended or crashed a process that tried them, and are not opened again until their
//! file changes. The list is the user's, in `wharf/set-aside.txt` of his cache folder; a program with more rights than
//! its user has neither reads nor writes it.

use super::{Fate, surroundings::Surroundings};
use crate::error::{Error, ErrorKind, Result};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

/// Longest list that is read.
const BYTES_MAX: u64 = 1 << 20;

/// What is known of each file, by its real path: what tells its versions apart, and what it did.
#[derive(Clone, Debug, Default)]
pub struct SetAside {
    list: Option<PathBuf>,
    files: BTreeMap<String, (String, String)>,
}

impl SetAside {
    /// The list of the user of this process; empty if there is none.
    pub fn of_user() -> Self {
        Self::of(&Surroundings::of_process())
    }

    pub(crate) fn of(surroundings: &Surroundings) -> Self {
        let Some(list) = surroundings.cache_folder().map(|folder| folder.join("set-aside.txt")) else {
            return SetAside::default();
        };
        let short = fs::metadata(&list).is_ok_and(|metadata| metadata.len() <= BYTES_MAX);
        let text = if short { fs::read_to_string(&list).unwrap_or_default() } else { String::new() };
        SetAside { files: parse(&text), list: Some(list) }
    }

    /// Why this file is not to be opened.
    pub(crate) fn refuses(&self, path: &Path) -> std::result::Result<(), Fate> {
        match self.files.get(&*path.to_string_lossy()) {
            Some((version, reason)) if version_of(path).as_ref() == Some(version) => {
                let advice = "it is used again once its file changes, or after `wharf doctor --forgive`";
                Err(Fate::rejected("set_aside", format!("{reason}: {advice}")))
            }
            _ => Ok(()),
        }
    }

    /// Puts a file on the list.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn add(&mut self, path: &Path, reason: &str) -> Result<()> {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let Some(version) = version_of(&real) else { return Ok(()) };
        self.files.insert(real.to_string_lossy().into_owned(), (version, reason.replace(['\t', '\n'], " ")));
        self.write()
    }

    /// Takes a file off the list, or all of them; how many there were.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn forgive(&mut self, path: Option<&Path>) -> Result<usize> {
        let before = self.files.len();
        match path {
            None => self.files.clear(),
            Some(path) => {
                let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                self.files.remove(&*real.to_string_lossy());
            }
        }
        let gone = before - self.files.len();
        if gone > 0 { self.write().map(|()| gone) } else { Ok(0) }
    }

    /// Under another name first, so that a list is whole or not there.
    fn write(&self) -> Result<()> {
        let Some(list) = &self.list else { return Ok(()) };
        let write = || {
            let folder = list.parent().unwrap_or(Path::new("/"));
            fs::create_dir_all(folder)?;
            let new = folder.join(format!("set-aside.{}", std::process::id()));
            fs::write(&new, self.text())?;
            fs::rename(&new, list)
        };
        write().map_err(|error: io::Error| {
            let message = format!("{}: cannot be written: {error}", list.display());
            Error::new(ErrorKind::Io, message)
        })
    }

    fn text(&self) -> String {
        self.files.iter().map(|(path, (version, reason))| format!("{path}\t{version}\t{reason}\n")).collect()
    }
}

/// Lines of path, version and reason; what is no such line is skipped, and so written no more.
fn parse(text: &str) -> BTreeMap<String, (String, String)> {
    let line = |line: &str| {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        Some((parts.next()?, (parts.next()?, parts.next()?)))
    };
    text.lines().filter_map(line).collect()
}

/// Length and time of the last change.
fn version_of(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{}+{}", metadata.len(), changed.as_nanos()))
}
