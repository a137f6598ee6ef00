//! Files by number, as steps name them.

use super::direct::Direct;
use std::{
    collections::HashMap,
    fs::File,
    io,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// A file as lanes use it.
pub(super) struct Opened {
    pub(super) file: File,
    /// Reads go this way.
    pub(super) direct: Option<Direct>,
}

fn all() -> &'static RwLock<HashMap<u64, Arc<Opened>>> {
    static ALL: OnceLock<RwLock<HashMap<u64, Arc<Opened>>>> = OnceLock::new();
    ALL.get_or_init(RwLock::default)
}

/// A file that lanes can read and write; closed when this and the last step that uses it are gone.
pub(crate) struct OpenFile(u64);

impl OpenFile {
    pub(crate) fn new(file: File) -> OpenFile {
        Self::enter(Opened { file, direct: None })
    }

    /// The same, to be read past the page cache; writes go through it.
    ///
    /// # Errors
    /// `Unsupported` where the file system has no such reads; what the system says.
    pub(crate) fn direct(file: File) -> io::Result<OpenFile> {
        let direct = Some(Direct::open(&file)?);
        Ok(Self::enter(Opened { file, direct }))
    }

    fn enter(opened: Opened) -> OpenFile {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        all().write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(opened));
        OpenFile(number)
    }

    /// What steps call it.
    pub(crate) fn number(&self) -> u64 {
        self.0
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        all().write().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// The file with this number.
pub(super) fn find(number: u64) -> Option<Arc<Opened>> {
    all().read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
}
