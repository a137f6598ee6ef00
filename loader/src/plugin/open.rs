//! Opening a plugin: by real path, all symbols at once, nothing shared with others, never closed again. A library that
//! was opened before in this process is the same plugin, shared by all runtimes.
//!
//! # Safety
//! Opening a library runs its constructors: a candidate was named by the user or lies in a folder of plugins, and was
//! seen to have an entry of ours. Libraries stay loaded for ever, so what they export does too.
#![allow(unsafe_code)]

use super::{
    Fate,
    file::{Identity, Looked},
};
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
    let library = library(&looked.path)?;
    let entry = entry(&library, looked.root)?;
    core::mem::forget(library); // Code that a thread or a destructor may still run is never unmapped.
    let mut new = Known { identity: looked.identity, entry, instance: Weak::new() };
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
    let mut new = Known { identity, entry, instance: Weak::new() };
    let loaded = share(&mut new)?;
    all.push(new);
    Ok(loaded)
}

/// The instance that other runtimes use, or a new one.
fn share(known: &mut Known) -> Result<Loaded, Fate> {
    if let Some(instance) = known.instance.upgrade() {
        return Ok(Loaded { instance });
    }
    // SAFETY: the entry of a library that is never unloaded, or of this program.
    let opened = unsafe { negotiate(known.entry) }.map_err(|refusal| refused(&refusal))?;
    let instance = Instance::new(opened, next_backend());
    known.instance = Arc::downgrade(&instance);
    Ok(Loaded { instance })
}

fn refused(refusal: &Refusal) -> Fate {
    Fate::rejected(refusal.class(), refusal.to_string())
}

/// The entry: by the root module of a Rust plugin, whose types are compared first, else by the C symbol.
fn entry(library: &Library, root: bool) -> Result<EntryFn, Fate> {
    if root {
        // SAFETY: only the symbol's address is taken.
        let header = unsafe { library.get::<*const c_void>(ROOT_SYMBOL.as_bytes()) };
        let header = *header.map_err(|error| dlerror(&error))?;
        // SAFETY: the address of the root symbol in a library that stays loaded.
        return unsafe { check_root(header) }.map_err(|refusal| refused(&refusal));
    }
    // SAFETY: the symbol with this name is of this type in every plugin.
    let symbol = unsafe { library.get::<EntryFn>(ENTRY_SYMBOL.as_bytes()) };
    symbol.map(|symbol| *symbol).map_err(|error| dlerror(&error))
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

/// The linker's words, sorted into what a user can act on.
fn dlerror(error: &libloading::Error) -> Fate {
    let words = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let missing = ": cannot open shared object file";
    if let Some(at) = words.find(missing) {
        let library = words[..at].rsplit(": ").next().unwrap_or(&words[..at]);
        let reason = format!(
            "it needs `{library}`, which is not installed or not where the system looks for libraries"
        );
        return Fate::rejected("missing_dependency", reason);
    }
    let class = if words.contains("undefined symbol") { "undefined_symbol" } else { "not_loadable" };
    Fate::rejected(class, words)
}
