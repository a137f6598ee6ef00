//! Where plugins are looked for: what was named, then folders, in one fixed order, never the working folder. Within a
//! folder manifests come first, since a library that one names is a candidate through it only; then both by file name,
//! so that the order is the same on every machine.

use super::{
    Candidate, Fate, Found, Report,
    file::Trust,
    manifest::{self, Manifest},
    surroundings::{ALLOW_UNSAFE, FILES, PATH, Surroundings},
};
use std::{
    env,
    ffi::OsStr,
    fmt, fs,
    path::{Path, PathBuf},
};

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

/// What a search is told, and by whom: what is said here goes before what the environment says.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Plugin files or manifests.
    pub files: Vec<PathBuf>,
    /// Folders of plugins.
    pub folders: Vec<PathBuf>,
    /// Only what is named here or linked in: no variables, no usual folders.
    pub only_named: bool,
    /// Patterns: only plugins whose ids fit one are used.
    pub select: Option<Vec<String>>,
    /// Patterns: plugins whose ids fit one are not used.
    pub disable: Option<Vec<String>>,
    /// Plugins without which nothing is to be done.
    pub require: Option<Vec<String>>,
    /// Use files that others may have written.
    pub allow_unsafe: bool,
    /// Also open what was set aside.
    pub try_all: bool,
    /// Open nothing.
    pub(crate) survey: bool,
}

/// A file that may be a plugin, and the manifest that names it.
pub(crate) struct Wanted {
    pub(crate) file: PathBuf,
    pub(crate) manifest: Option<Manifest>,
}

impl Search {
    /// All places in order.
    pub fn places(&self) -> Vec<Place> {
        self.places_in(&Surroundings::of_process())
    }

    pub(crate) fn places_in(&self, surroundings: &Surroundings) -> Vec<Place> {
        let mut places = vec![];
        if !surroundings.elevated {
            places.extend(self.files.iter().cloned().map(Place::File));
            if !self.only_named {
                places.extend(surroundings.listed(FILES).into_iter().map(Place::File));
            }
            places.extend(self.folders.iter().cloned().map(Place::Named));
        }
        if !self.only_named {
            places.extend(surroundings.listed(PATH).into_iter().map(Place::Named));
            places.extend(surroundings.beside().map(Place::Beside));
            places.extend(surroundings.user_folder().map(Place::User));
            places.extend(surroundings.system.iter().cloned().map(Place::System));
        }
        places
    }

    /// Whom this search trusts; with more rights than the user has, nobody but root and itself.
    pub(crate) fn trust(&self, surroundings: &Surroundings) -> Trust {
        let by_variable = !self.only_named && surroundings.variable(ALLOW_UNSAFE) == Some(OsStr::new("1"));
        let anybody = !surroundings.elevated && (self.allow_unsafe || by_variable);
        Trust { user: surroundings.user, anybody }
    }

    /// The candidates of a place, and what was found there; a place that does not exist is only a line of the report,
    /// unless it is a file that somebody named.
    pub(crate) fn look(place: &Place, trust: Trust, report: &mut Report) -> Vec<Wanted> {
        let Some(path) = place.path() else { return vec![] };
        let named = matches!(place, Place::File(_));
        let (files, found) = if named { named_file(path) } else { folder(path) };
        if named && found != Found::Candidates(1) {
            let reason = format!("{found}; named, so it should be there");
            report.candidates.push(Candidate::new(Some(path), place, Fate::rejected("not_found", reason)));
        }
        report.searched.push((place.clone(), found));
        let (manifests, libraries): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| is_manifest(file));
        let mut wanted: Vec<Wanted> =
            manifests.iter().filter_map(|file| through(file, place, trust, report)).collect();
        let claimed: Vec<PathBuf> = wanted.iter().filter_map(|w| fs::canonicalize(&w.file).ok()).collect();
        let free = |file: &PathBuf| fs::canonicalize(file).map_or(true, |real| !claimed.contains(&real));
        wanted.extend(libraries.into_iter().filter(free).map(|file| Wanted { file, manifest: None }));
        wanted
    }
}

/// What a manifest names; if it is no good, that is a line of the report.
fn through(file: &Path, place: &Place, trust: Trust, report: &mut Report) -> Option<Wanted> {
    let mut read = || {
        let real = fs::canonicalize(file).map_err(|error| super::file::unreadable(&error))?;
        if let Some(reason) = trust.of(&real)? {
            report.notes.push(format!("{} is used although {reason}", file.display()));
        }
        manifest::read(file).map_err(|reason| Fate::rejected("bad_manifest", reason))
    };
    match read() {
        Ok(manifest) => Some(Wanted { file: manifest.library.clone(), manifest: Some(manifest) }),
        Err(fate) => {
            report.candidates.push(Candidate::new(Some(file), place, fate));
            None
        }
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == manifest::EXTENSION)
}

fn named_file(path: &Path) -> (Vec<PathBuf>, Found) {
    if path.exists() { (vec![path.to_owned()], Found::Candidates(1)) } else { (vec![], Found::Missing) }
}

/// Files of a folder that are named like libraries or manifests, in the order of their names.
fn folder(path: &Path) -> (Vec<PathBuf>, Found) {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (vec![], Found::Missing),
        Err(_) => return (vec![], Found::Unreadable),
    };
    let is_library = |path: &Path| path.extension().is_some_and(|e| e == env::consts::DLL_EXTENSION);
    let fits = |path: &PathBuf| is_library(path) || is_manifest(path);
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(fits).collect();
    files.sort();
    let found = Found::Candidates(files.len());
    (files, found)
}

#[cfg(test)]
mod tests;
