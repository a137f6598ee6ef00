//! Opening a plugin: by real path, all symbols at once, nothing shared with others, never closed again. A library that
//! was opened before in this process is the same plugin, shared by all runtimes.
//!
//! # Safety
//! Opening a library runs its constructors: a candidate was named by the user or lies in a folder of plugins, and was
//! seen to have an entry of ours. Libraries stay loaded for ever, so what they export does too.
#![allow(unsafe_code)]

use super::{
    Fate, check,
    file::{Identity, Looked},
    maps,
};
use crate::fork;
use core::ffi::c_void;
use libloading::Library;
use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
};
use wharf_abi::{
    Instance, Refusal,
    handshake::{ENTRY_SYMBOL, ROOT_SYMBOL, check_root},
    negotiate,
    tables::EntryFn,
};

/// A plugin that is loaded, and what it is used through.
pub(crate) struct Loaded {
    pub(crate) instance: Arc<Instance>,
}

/// One library of this process.
struct Known {
    identity: Identity,
    entry: EntryFn,
    instance: Weak<Instance>,
    /// Number of the process in which the instance was begun.
    forks: u32,
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

fn known() -> MutexGuard<'static, Vec<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Numbers of backends in this process, from 1.
fn next_backend() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// Opens a file that was looked at.
pub(crate) fn open(looked: &Looked) -> Result<Loaded, Fate> {
    let mut all = known();
    if let Some(before) = all.iter_mut().find(|k| k.identity == looked.identity) {
        return share(before);
    }
    let library = library(&looked.path).map_err(|fate| all_missing(fate, looked))?;
    let (entry, symbol) = entry(&library, looked.found.root)?;
    if !maps::same_file(symbol, looked.bytes.as_ptr().addr()) {
        core::mem::forget(library);
        return Err(Fate::rejected(
            "changed",
            "the file was exchanged between the look at it and its opening",
        ));
    }
    core::mem::forget(library); // Code that a thread or a destructor may still run is never unmapped.
    let mut new = Known { identity: looked.identity, entry, instance: Weak::new(), forks: fork::watch() };
    let loaded = share(&mut new)?;
    all.push(new);
    Ok(loaded)
}

/// A backend that is linked in, by its entry.
pub(crate) fn linked_in(entry: EntryFn) -> Result<Loaded, Fate> {
    let mut all = known();
    let identity = (u64::MAX, entry as usize as u64);
    if let Some(before) = all.iter_mut().find(|k| k.identity == identity) {
        return share(before);
    }
    let mut new = Known { identity, entry, instance: Weak::new(), forks: fork::watch() };
    let loaded = share(&mut new)?;
    all.push(new);
    Ok(loaded)
}

/// The instance that other runtimes use, or a new one.
fn share(known: &mut Known) -> Result<Loaded, Fate> {
    if let Some(instance) = known.instance.upgrade() {
        if known.forks != fork::count() {
            // Its threads are not in this process, and whoever ends it is in the parent.
            core::mem::forget(instance);
            return Err(Fate::rejected(
                "forked",
                "in use by a runtime that was opened before this process was forked",
            ));
        }
        return Ok(Loaded { instance });
    }
    // SAFETY: the entry of a library that is never unloaded, or of this program.
    let opened = unsafe { negotiate(known.entry) }.map_err(|refusal| refused(&refusal))?;
    let instance = Instance::new(opened, next_backend());
    known.instance = Arc::downgrade(&instance);
    known.forks = fork::watch();
    Ok(Loaded { instance })
}

fn refused(refusal: &Refusal) -> Fate {
    Fate::rejected(refusal.class(), refusal.to_string())
}

/// The entry: by the root module of a Rust plugin, whose types are compared first, else by the C symbol. And an address
/// in the library.
fn entry(library: &Library, root: bool) -> Result<(EntryFn, usize), Fate> {
    if root {
        // SAFETY: only the symbol's address is taken.
        let header = unsafe { library.get::<*const c_void>(ROOT_SYMBOL.as_bytes()) };
        let header = *header.map_err(|error| dlerror(&error))?;
        // SAFETY: the address of the root symbol in a library that stays loaded.
        let entry = unsafe { check_root(header) }.map_err(|refusal| refused(&refusal))?;
        return Ok((entry, header.addr()));
    }
    // SAFETY: the symbol with this name is of this type in every plugin.
    let symbol = unsafe { library.get::<EntryFn>(ENTRY_SYMBOL.as_bytes()) };
    let entry = *symbol.map_err(|error| dlerror(&error))?;
    Ok((entry, entry as usize))
}

#[cfg(unix)]
fn library(path: &Path) -> Result<Library, Fate> {
    use libloading::os::unix;
    // SAFETY: as this file's `# Safety` says.
    let library = unsafe { unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_LOCAL) };
    library.map(Library::from).map_err(|error| dlerror(&error))
}

#[cfg(not(unix))]
fn library(path: &Path) -> Result<Library, Fate> {
    // SAFETY: as this file's `# Safety` says.
    unsafe { Library::new(path) }.map_err(|error| dlerror(&error))
}

/// The linker names the first library that it misses; with more of them missing, all are named.
fn all_missing(fate: Fate, looked: &Looked) -> Fate {
    if !matches!(fate, Fate::Rejected { class: "missing_dependency", .. }) {
        return fate;
    }
    let origin = looked.path.parent().unwrap_or(Path::new("/"));
    let missing = check::missing(&looked.found, origin);
    if missing.len() < 2 {
        return fate;
    }
    let reason = format!(
        "it needs `{}`, which are not installed or not where the system looks for libraries",
        missing.join("`, `")
    );
    Fate::rejected("missing_dependency", reason)
}

/// The linker's words, sorted into what a user can act on.
fn dlerror(error: &libloading::Error) -> Fate {
    sorted(&std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string))
}

/// glibc's words name what is missing and not always who misses it; the candidate is named beside them.
fn sorted(words: &str) -> Fate {
    let words = words.lines().next().unwrap_or_default().trim();
    let quoted = |behind: &str, end: &[char]| {
        let rest = &words[words.find(behind)? + behind.len()..];
        Some(rest.split(end).next().unwrap_or(rest).trim())
    };
    if let Some(at) = words.find(": cannot open shared object file") {
        let library = words[..at].rsplit(": ").next().unwrap_or(&words[..at]);
        let reason = format!(
            "it needs `{library}`, which is not installed or not where the system looks for libraries"
        );
        return Fate::rejected("missing_dependency", reason);
    }
    if let Some(symbol) = quoted("undefined symbol: ", &[',', ' ', '(']) {
        let reason = format!("it needs the symbol `{symbol}`, which no library that it names has");
        return Fate::rejected("undefined_symbol", reason);
    }
    if let Some(version) = quoted("version `", &['\'']).filter(|_| words.contains("not found")) {
        let reason = format!("it needs {version} of a system library, and this system's is older");
        return Fate::rejected("missing_dependency", reason);
    }
    if words.contains("failed to map segment") || words.contains("Permission denied") {
        let reason = format!("the system does not run code from there (mounted noexec?): {words}");
        return Fate::rejected("permission", reason);
    }
    Fate::rejected("not_loadable", words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(words: &str) -> (&'static str, String) {
        match sorted(words) {
            Fate::Rejected { class, reason } => (class, reason),
            other => panic!("{other}"),
        }
    }

    // The words are glibc 2.36's.
    #[test]
    fn a_missing_dependency_is_named() {
        let (class, reason) =
            class("libXext.so.6: cannot open shared object file: No such file or directory");
        assert_eq!(class, "missing_dependency");
        assert!(reason.contains("`libXext.so.6`"), "{reason}");
    }

    #[test]
    fn a_missing_dependency_of_a_dependency_is_named() {
        let (class, reason) = class("/opt/x.so: libz.so.9: cannot open shared object file: No such file");
        assert_eq!(class, "missing_dependency");
        assert!(reason.contains("`libz.so.9`"), "{reason}");
    }

    #[test]
    fn an_undefined_symbol_is_named() {
        let (class, reason) = class("/opt/x.so: undefined symbol: zeInit2");
        assert_eq!(class, "undefined_symbol");
        assert!(reason.contains("`zeInit2`"), "{reason}");
    }

    #[test]
    fn an_undefined_symbol_with_a_version_is_named_without_it() {
        let (_, reason) = class("/opt/x.so: undefined symbol: hipInit, version hip_4.2");
        assert!(reason.contains("`hipInit`"), "{reason}");
    }

    #[test]
    fn a_system_library_that_is_too_old_is_named_with_the_version() {
        let words = "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.99' not found (required by /opt/x.so)";
        let (class, reason) = class(words);
        assert_eq!(class, "missing_dependency");
        assert!(reason.contains("GLIBC_2.99"), "{reason}");
    }

    #[test]
    fn a_place_that_nothing_runs_from_is_told() {
        let (class, _) = class("/mnt/x.so: failed to map segment from shared object");
        assert_eq!(class, "permission");
    }

    #[test]
    fn other_words_stay_as_they_are_in_one_line() {
        let (class, reason) = class("/opt/x.so: cannot allocate memory in static TLS block\nmore");
        assert_eq!(
            (class, &*reason),
            ("not_loadable", "/opt/x.so: cannot allocate memory in static TLS block")
        );
    }
}
