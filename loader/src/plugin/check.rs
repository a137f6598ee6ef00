//! What can be said of a plugin file without running anything of it, for its author and for whoever installs it.

use super::{
    Fate,
    file::{self, Looked, Trust},
    image::Inspection,
    surroundings::Surroundings,
};
use crate::error::{Error, ErrorKind, Result};
use std::{
    env, fs,
    path::{Path, PathBuf},
};
use wharf_abi::handshake::{ENTRY_SYMBOL, ROOT_SYMBOL};

/// Where glibc keeps which libraries there are.
const CACHE: &str = "/etc/ld.so.cache";
/// Where every system has libraries; distributions add folders by name of the machine.
const FOLDERS: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];
/// Names of symbols in a finding at most.
const SYMBOLS_SHOWN: usize = 5;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It will not work, here or anywhere.
    Error,
    /// It works, and will hurt somebody.
    Warning,
    /// It could be better.
    Advice,
}

impl Weight {
    /// A stable word.
    pub fn word(self) -> &'static str {
        match self {
            Weight::Error => "error",
            Weight::Warning => "warning",
            Weight::Advice => "advice",
        }
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it weighs.
    pub weight: Weight,
    /// A stable word.
    pub class: &'static str,
    /// One line.
    pub reason: String,
}

/// What a look at a plugin came to.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// What the file is, if it is a plugin at all.
    pub found: Option<Inspection>,
    /// What speaks against it.
    pub findings: Vec<Finding>,
}

impl Check {
    /// Whether something is an error.
    pub fn wanting(&self) -> bool {
        self.findings.iter().any(|finding| finding.weight == Weight::Error)
    }

    fn add(&mut self, weight: Weight, class: &'static str, reason: impl Into<String>) {
        self.findings.push(Finding { weight, class, reason: reason.into() });
    }

    fn fate(&mut self, fate: Fate) {
        if let Fate::Rejected { class, reason } = fate {
            self.add(Weight::Error, class, reason);
        }
    }
}

/// Reads what a plugin file says and needs. Nothing of it is run.
///
/// # Errors
/// [`ErrorKind::NoSuchFile`]; [`ErrorKind::Plugin`] if it is no plugin for this machine, and why.
pub fn inspect(path: &Path) -> Result<Inspection> {
    look(path)?.map(|looked| looked.found).map_err(|fate| {
        let why = match fate {
            Fate::Rejected { class, reason } => format!("{class}: {reason}"),
            other => other.to_string(),
        };
        Error::new(ErrorKind::Plugin, format!("{}: {why}", path.display())).in_file(path)
    })
}

/// Judges a plugin file without running anything of it.
///
/// # Errors
/// [`ErrorKind::NoSuchFile`]; whatever else is wrong is a finding.
pub fn check(path: &Path) -> Result<Check> {
    let mut check = Check::default();
    let looked = match look(path)? {
        Ok(looked) => looked,
        Err(fate) => {
            check.fate(fate);
            return Ok(check);
        }
    };
    if let Err(fate) = looked.judge() {
        check.fate(fate);
    }
    let trust = Trust { user: Surroundings::of_process().user, anybody: true };
    if let Ok(Some(reason)) = trust.of(&looked.path) {
        check.add(Weight::Warning, "unsafe", format!("{reason}: a host refuses it there"));
    }
    of_record(&looked.found, &mut check);
    of_symbols(&looked.found, &mut check);
    of_libraries(&looked, &mut check);
    check.found = Some(looked.found);
    Ok(check)
}

/// A look at a file that somebody named: that it is not there is an error of his.
fn look(path: &Path) -> Result<std::result::Result<Looked, Fate>> {
    match file::look(path) {
        Err(Fate::Rejected { class: "not_found", reason }) => {
            Err(Error::new(ErrorKind::NoSuchFile, format!("{}: {reason}", path.display())).in_file(path))
        }
        other => Ok(other),
    }
}

fn of_record(found: &Inspection, check: &mut Check) {
    match &found.record {
        None => check.add(
            Weight::Warning,
            "no_metadata",
            "no record says what it is: a host must run it to learn its id",
        ),
        Some(record) if !record.contains_panics => check.add(
            Weight::Error,
            "panic_mode",
            "panics and exceptions do not stay inside (built with panic=abort?): one ends the whole program",
        ),
        Some(_) => {}
    }
}

fn of_symbols(found: &Inspection, check: &mut Check) {
    if !found.entry {
        let reason =
            format!("the entry `{ENTRY_SYMBOL}` is not exported: hosts in other languages cannot use it");
        check.add(Weight::Warning, "no_entry", reason);
    }
    let own = |name: &&str| ![ENTRY_SYMBOL, ROOT_SYMBOL].contains(name);
    let others: Vec<&str> = found.exports.iter().map(String::as_str).filter(own).collect();
    if !others.is_empty() {
        let shown = others[..others.len().min(SYMBOLS_SHOWN)].join("`, `");
        let more = others.len().saturating_sub(SYMBOLS_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let reason = format!(
            "exports `{shown}`{more} beside its entry: hide them (-fvisibility=hidden), or two plugins may meet in them"
        );
        check.add(Weight::Warning, "exported_symbols", reason);
    }
}

fn of_libraries(looked: &Looked, check: &mut Check) {
    let found = &looked.found;
    let origin = looked.path.parent().unwrap_or(Path::new("/"));
    for library in missing(found, origin) {
        let reason = format!(
            "it needs `{library}`, which is not installed or not where the system looks for libraries"
        );
        check.add(Weight::Error, "missing_dependency", reason);
    }
    run_paths(found, check);
}

fn run_paths(found: &Inspection, check: &mut Check) {
    if found.old_run_path {
        let reason = "RPATH rules over LD_LIBRARY_PATH; link with --enable-new-dtags for RUNPATH";
        check.add(Weight::Advice, "run_path", reason);
    }
    for path in found.run_paths.iter().filter(|path| !is_anchored(path)) {
        let reason = if path.is_empty() || !path.starts_with('/') {
            format!("looks for libraries in `{path}`, which is relative to the working folder")
        } else {
            format!(
                "looks for libraries in `{path}`, which is there on one machine only; $ORIGIN is where the plugin lies"
            )
        };
        let weight = if path.starts_with('/') { Weight::Advice } else { Weight::Warning };
        check.add(weight, "run_path", reason);
    }
}

fn is_anchored(path: &str) -> bool {
    ["$ORIGIN", "${ORIGIN}"].iter().any(|origin| path.starts_with(origin))
}

/// Needed libraries that are nowhere to be found.
pub(crate) fn missing<'a>(found: &'a Inspection, origin: &Path) -> Vec<&'a str> {
    let cache = fs::read(CACHE).unwrap_or_default();
    let folders = folders(found, origin);
    let there = |name: &str| {
        if name.contains('/') {
            return Path::new(name).exists();
        }
        folders.iter().any(|folder| folder.join(name).exists()) || cached(&cache, name)
    };
    found.needed.iter().map(String::as_str).filter(|name| !there(name)).collect()
}

fn folders(found: &Inspection, origin: &Path) -> Vec<PathBuf> {
    let origin = origin.to_string_lossy();
    let expand = |path: &String| path.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
    let machine = format!("{}-linux-gnu", env::consts::ARCH);
    let own: Vec<PathBuf> = found.run_paths.iter().map(|path| PathBuf::from(expand(path))).collect();
    let user = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut all: Vec<PathBuf> = own.into_iter().chain(env::split_paths(&user)).collect();
    all.extend(FOLDERS.iter().flat_map(|folder| [PathBuf::from(folder), Path::new(folder).join(&machine)]));
    all
}

/// Whether glibc's list has a library of this name: names stand in it with a zero on both sides.
fn cached(cache: &[u8], name: &str) -> bool {
    cache.split(|byte| *byte == 0).any(|word| word == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(library: &str) -> Inspection {
        Inspection { needed: vec![library.into()], ..Inspection::default() }
    }

    #[test]
    fn a_library_that_every_system_has_is_not_missing() {
        let found = needs(if cfg!(target_env = "musl") { "libc.so" } else { "libc.so.6" });
        assert!(missing(&found, Path::new("/")).is_empty());
    }

    #[test]
    fn a_library_that_is_nowhere_is_missing() {
        assert_eq!(missing(&needs("libnowhere.so.7"), Path::new("/")), ["libnowhere.so.7"]);
    }

    #[test]
    fn a_library_beside_the_plugin_is_found_through_origin() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("libmine.so"), b"").unwrap();
        let mut found = needs("libmine.so");
        assert_eq!(missing(&found, folder.path()), ["libmine.so"]);
        for path in ["$ORIGIN", "${ORIGIN}/."] {
            found.run_paths = vec![path.into()];
            assert!(missing(&found, folder.path()).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_library_in_the_list_of_the_system_is_found_by_its_whole_name() {
        let cache = b"glibc-ld.so.cache1.1\0\0libz.so.1\0/opt/odd/libz.so.1\0";
        assert!(cached(cache, "libz.so.1"));
        assert!(!cached(cache, "libz.so"));
    }

    #[test]
    fn a_relative_run_path_is_a_warning_and_an_absolute_one_advice() {
        let paths = |path: &str| {
            let found = Inspection { run_paths: vec![path.into()], ..Inspection::default() };
            let mut check = Check::default();
            run_paths(&found, &mut check);
            check.findings.iter().map(|f| f.weight).collect::<Vec<_>>()
        };
        assert_eq!(paths("lib"), [Weight::Warning]);
        assert_eq!(paths(""), [Weight::Warning]);
        assert_eq!(paths("/users/me/lib"), [Weight::Advice]);
        assert_eq!(paths("$ORIGIN/lib"), []);
    }
}
