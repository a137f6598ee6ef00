//! Files by number, as steps name them.

use std::{
    collections::HashMap,
    fs::File,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

fn all() -> &'static RwLock<HashMap<u64, Arc<File>>> {
    static ALL: OnceLock<RwLock<HashMap<u64, Arc<File>>>> = OnceLock::new();
    ALL.get_or_init(RwLock::default)
}

/// A file that lanes can read and write; closed when this and the last step that uses it are gone.
pub(crate) struct OpenFile(u64);

impl OpenFile {
    pub(crate) fn new(file: File) -> OpenFile {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        all().write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(file));
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
pub(super) fn find(number: u64) -> Option<Arc<File>> {
    all().read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
}
