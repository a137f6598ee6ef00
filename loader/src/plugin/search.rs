//! Where plugins are looked for: what was named, then folders, in one fixed order, never the working folder. Within a
//! folder by file name, so that the order is the same on every machine.
//!
//! # Safety
//! The only unsafe code asks the system for the rights of this process; those calls read and take no pointers.
#![allow(unsafe_code)]

use super::{Candidate, Fate, Found, Report};
use std::{
    env,
    ffi::{OsStr, OsString},
    fmt, fs,
    path::{Path, PathBuf},
};

/// Variable that names plugin files, before any folder.
pub(crate) const FILES_VARIABLE: &str = "WHARF_PLUGIN_FILES";
/// Variable that names folders of plugins.
pub(crate) const PATH_VARIABLE: &str = "WHARF_PLUGIN_PATH";
/// Folders of the system, last in the order.
const SYSTEM: [&str; 2] = ["/usr/local/lib/wharf/plugins", "/usr/lib/wharf/plugins"];

/// A place in the order of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Linked into the program.
    LinkedIn,
    /// A file named by the program, an option or `WHARF_PLUGIN_FILES`.
    File(PathBuf),
    /// A folder named by the program, an option or `WHARF_PLUGIN_PATH`.
    Named(PathBuf),
    /// `plugins` beside the executable.
    Beside(PathBuf),
    /// The user's folder.
    User(PathBuf),
    /// A folder of the system.
    System(PathBuf),
}

impl Place {
    /// The file or folder; none for what is linked in.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Place::LinkedIn => None,
            Place::File(path)
            | Place::Named(path)
            | Place::Beside(path)
            | Place::User(path)
            | Place::System(path) => Some(path),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::LinkedIn => write!(f, "linked in"),
            Place::File(path) => write!(f, "{} (named file)", path.display()),
            Place::Named(path) => write!(f, "{} (named folder)", path.display()),
            Place::Beside(path) => write!(f, "{} (beside the program)", path.display()),
            Place::User(path) => write!(f, "{} (user)", path.display()),
            Place::System(path) => write!(f, "{} (system)", path.display()),
        }
    }
}

/// The places of a search, in order.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Plugin files.
    pub files: Vec<PathBuf>,
    /// Folders of plugins.
    pub folders: Vec<PathBuf>,
    /// Only what is named here or linked in: no variables, no usual folders.
    pub only_named: bool,
}

impl Search {
    /// All places in order.
    pub fn places(&self) -> Vec<Place> {
        let elevated = elevated();
        let mut places = vec![];
        if !elevated {
            places.extend(self.files.iter().cloned().map(Place::File));
            if !self.only_named {
                places.extend(listed(env::var_os(FILES_VARIABLE)).map(Place::File));
            }
            places.extend(self.folders.iter().cloned().map(Place::Named));
        }
        if !self.only_named {
            if !elevated {
                places.extend(listed(env::var_os(PATH_VARIABLE)).map(Place::Named));
                let beside = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("plugins")));
                places.extend(beside.map(Place::Beside));
                places.extend(user_folder().map(Place::User));
            }
            places.extend(SYSTEM.iter().map(PathBuf::from).map(Place::System));
        }
        places
    }

    /// The candidates of a place, and what was found there; a place that does not exist is only a line of the report,
    /// unless it is a file that somebody named.
    pub(crate) fn look(place: &Place, report: &mut Report) -> Vec<PathBuf> {
        let Some(path) = place.path() else { return vec![] };
        let (files, found) = if matches!(place, Place::File(_)) { named_file(path) } else { folder(path) };
        if matches!(place, Place::File(_)) && found != Found::Candidates(1) {
            let reason = format!("{found}; named, so it should be there");
            report.candidates.push(Candidate::new(Some(path), place, Fate::rejected("not_found", reason)));
        }
        report.searched.push((place.clone(), found));
        files
    }
}

fn named_file(path: &Path) -> (Vec<PathBuf>, Found) {
    if path.exists() { (vec![path.to_owned()], Found::Candidates(1)) } else { (vec![], Found::Missing) }
}

/// Files of a folder that are named like libraries, in the order of their names.
fn folder(path: &Path) -> (Vec<PathBuf>, Found) {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (vec![], Found::Missing),
        Err(_) => return (vec![], Found::Unreadable),
    };
    let is_library = |path: &PathBuf| path.extension().is_some_and(|e| e == env::consts::DLL_EXTENSION);
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_library).collect();
    files.sort();
    let found = Found::Candidates(files.len());
    (files, found)
}

/// The entries of a path variable. Empty ones are skipped: they would mean the working folder.
fn listed(value: Option<OsString>) -> impl Iterator<Item = PathBuf> {
    let value = value.unwrap_or_default();
    env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect::<Vec<_>>().into_iter()
}

fn user_folder() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let set =
        |name: &str| env::var_os(name).filter(|v| v != OsStr::new("")).map(PathBuf::from).and_then(absolute);
    let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))?;
    Some(data.join("wharf/plugins"))
}

/// Whether the program runs with more rights than its user has; then what the user can set is not followed.
#[cfg(target_os = "linux")]
pub(crate) fn elevated() -> bool {
    // SAFETY: `getauxval` takes any number and only reads.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn elevated() -> bool {
    // SAFETY: takes nothing and only reads, as the three below.
    let user = unsafe { libc::getuid() };
    // SAFETY: as above.
    let effective_user = unsafe { libc::geteuid() };
    // SAFETY: as above.
    let group = unsafe { libc::getgid() };
    // SAFETY: as above.
    let effective_group = unsafe { libc::getegid() };
    user != effective_user || group != effective_group
}

#[cfg(not(unix))]
pub(crate) fn elevated() -> bool {
    false
}
