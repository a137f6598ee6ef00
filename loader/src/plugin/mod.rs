//! Plugins: where they are looked for, what became of each file that was found, and the ones in use.

mod aside;
mod check;
mod choice;
mod file;
mod image;
mod manifest;
mod maps;
mod open;
mod opening;
mod safe;
mod search;
mod surroundings;

pub use aside::SetAside;
pub use check::{Check, Finding, Weight, check, inspect};
pub use image::{Inspection, Record};
pub use search::{Place, Search};

pub(crate) use choice::Choice;
pub(crate) use open::{Loaded, linked_in};
pub(crate) use opening::Opening;
pub(crate) use surroundings::Surroundings;

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// What was found, and where it was looked for.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One line for each candidate, in the order of the search.
    pub candidates: Vec<Candidate>,
    /// Each place that was looked at and what was found there.
    pub searched: Vec<(Place, Found)>,
    /// What else is worth knowing: files that were used although others may have written them.
    pub notes: Vec<String>,
}

/// What a place held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// So many candidates.
    Candidates(usize),
    /// There is no such place.
    Missing,
    /// It is there and could not be read.
    Unreadable,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Candidates(0) => write!(f, "no plugins"),
            Found::Candidates(1) => write!(f, "1 candidate"),
            Found::Candidates(n) => write!(f, "{n} candidates"),
            Found::Missing => write!(f, "does not exist"),
            Found::Unreadable => write!(f, "cannot be read"),
        }
    }
}

/// A file (or a backend linked in) that may be a plugin, and its fate.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The file; none for a backend linked in.
    pub path: Option<PathBuf>,
    /// The manifest that names it, if one does.
    pub manifest: Option<PathBuf>,
    /// Where it was found.
    pub place: Place,
    /// What the plugin calls itself, once known.
    pub id: Option<String>,
    /// Who made it, once known.
    pub vendor: Option<String>,
    /// Its version, once known.
    pub version: Option<String>,
    /// What became of it.
    pub fate: Fate,
}

impl Candidate {
    pub(crate) fn new(path: Option<&Path>, place: &Place, fate: Fate) -> Self {
        Candidate {
            path: path.map(Path::to_owned),
            manifest: None,
            place: place.clone(),
            id: None,
            vendor: None,
            version: None,
            fate,
        }
    }

    /// The file's name, or "linked in".
    pub fn name(&self) -> String {
        self.path.as_ref().map_or_else(|| "linked in".into(), |path| path.display().to_string())
    }
}

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// In use, with so many devices; with none, why there is none.
    Loaded {
        /// Devices it lists.
        devices: usize,
        /// Why there is none, in the plugin's words.
        reason: Option<String>,
    },
    /// Nothing speaks against it, and it was not opened ([`Builder::survey`](crate::Builder::survey)).
    Judged,
    /// Another candidate that is the same plugin came first.
    Duplicate {
        /// That one.
        of: String,
        /// By what they are the same: file, build id, or id.
        by: &'static str,
    },
    /// Not used.
    Rejected {
        /// A stable word: `empty`, `not_a_library`, `truncated`, `wrong_architecture`, `no_entry`, `bad_metadata`,
        /// `bad_manifest`, `hash`, `unsafe`, `cpu_feature`, `sanitizer`, `missing_dependency`, `undefined_symbol`,
        /// `too_old`, `too_new`, `layout`, `refused`, `panicked`, `disabled`, `not_selected` ...
        class: &'static str,
        /// One line.
        reason: String,
    },
}

impl Fate {
    /// Not used, and why.
    pub(crate) fn rejected(class: &'static str, reason: impl Into<String>) -> Self {
        Fate::Rejected { class, reason: reason.into() }
    }

    /// A stable word.
    pub fn word(&self) -> &'static str {
        match self {
            Fate::Loaded { .. } => "loaded",
            Fate::Judged => "judged",
            Fate::Duplicate { .. } => "duplicate",
            Fate::Rejected { .. } => "rejected",
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Loaded { devices: 0, reason } => {
                write!(f, "loaded, no devices: {}", reason.as_deref().unwrap_or("the plugin gives no reason"))
            }
            Fate::Loaded { devices: 1, .. } => write!(f, "loaded, 1 device"),
            Fate::Loaded { devices, .. } => write!(f, "loaded, {devices} devices"),
            Fate::Judged => write!(f, "not opened; nothing speaks against it"),
            Fate::Duplicate { of, by } => {
                write!(f, "not used: the same plugin, by its {by}, was found before: {of}")
            }
            Fate::Rejected { class, reason } => write!(f, "not used ({class}): {reason}"),
        }
    }
}
