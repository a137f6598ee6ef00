//! A first look at a candidate without running anything of it: what its bytes tell, who may have written it, and whether
//! this machine has what it asks for.
//!
//! # Safety
//! The file is mapped while another may change it; nothing is concluded from its bytes that a change could turn into
//! undefined behaviour, and the system's linker checks them again.
#![allow(unsafe_code)]

use super::{
    Fate,
    image::{self, Inspection},
    manifest::Hash,
    safe,
};
use memmap2::Mmap;
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};
use wharf_abi::cpu;

/// What tells a file from every other, whatever it is called.
pub(crate) type Identity = (u64, u64);

/// What a candidate is, as far as its bytes tell.
pub(crate) struct Looked {
    /// Where it really lies.
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) found: Inspection,
    /// The file as it was looked at: what is opened later must be the same one.
    pub(crate) bytes: Mmap,
    /// What the versions in its record come to.
    fits: Result<(), Fate>,
}

/// Whom a search trusts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trust {
    /// Who the process acts as.
    pub(crate) user: u32,
    /// Files that others may have written are used, and the report says so.
    pub(crate) anybody: bool,
}

/// Looks at a file; a fate is the reason why it goes no further.
pub(crate) fn look(path: &Path) -> Result<Looked, Fate> {
    let real = fs::canonicalize(path).map_err(|error| unreadable(&error))?;
    // A pipe or device would hold up whoever opens it.
    let facts = fs::metadata(&real).map_err(|error| unreadable(&error))?;
    if !facts.is_file() {
        return Err(Fate::rejected("not_a_library", "not a file"));
    }
    let file = File::open(&real).map_err(|error| unreadable(&error))?;
    let facts = file.metadata().map_err(|error| unreadable(&error))?;
    if facts.len() == 0 {
        return Err(Fate::rejected("empty", "the file is empty"));
    }
    let bytes = map(&file).map_err(|error| unreadable(&error))?;
    let (found, fits) = image::read(&bytes)?;
    Ok(Looked { path: real, identity: identity(&facts), found, bytes, fits })
}

impl Looked {
    /// Whether it may be opened here, as far as can be told without opening it.
    pub(crate) fn judge(&self) -> Result<(), Fate> {
        self.fits.clone()?;
        let features = self.found.record.iter().flat_map(|record| &record.cpu_features);
        for feature in features {
            let reason = match cpu::has(feature) {
                Some(true) => continue,
                Some(false) => format!("it needs a processor with {feature}, which this one has not"),
                None => format!("it needs a processor with `{feature}`, which this host does not know"),
            };
            return Err(Fate::rejected("cpu_feature", reason));
        }
        match self.found.sanitizer {
            Some(kind) if !has_sanitizer(kind) => Err(Fate::rejected(
                "sanitizer",
                format!("built with the {kind} sanitizer, which would end a program without it"),
            )),
            _ => Ok(()),
        }
    }

    /// Whether its bytes are those that a manifest names.
    pub(crate) fn pinned(&self, pin: &Hash) -> Result<(), Fate> {
        let hash = Sha256::digest(&self.bytes);
        if hash[..] == pin[..] {
            return Ok(());
        }
        let reason = format!("its sha256 is {}, the manifest says {}", image::hex(&hash), image::hex(pin));
        Err(Fate::rejected("hash", reason))
    }
}

impl Trust {
    /// Refuses what others may have written; `Ok` with the reason if that is allowed.
    pub(crate) fn of(self, real: &Path) -> Result<Option<String>, Fate> {
        match safe::distrust(real, self.user) {
            Some(reason) if !self.anybody => Err(Fate::rejected("unsafe", reason)),
            reason => Ok(reason),
        }
    }
}

/// Whether this program was built with the sanitizer too.
#[cfg(unix)]
fn has_sanitizer(kind: &str) -> bool {
    let symbol = match kind {
        "address" => c"__asan_init",
        "thread" => c"__tsan_init",
        _ => c"__msan_init",
    };
    // SAFETY: the name is a C string; only the symbol's address is taken.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) }.is_null()
}

#[cfg(not(unix))]
fn has_sanitizer(_: &str) -> bool {
    false
}

fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: as this file's `# Safety` says: the bytes are only looked at.
    unsafe { Mmap::map(file) }
}

pub(crate) fn unreadable(error: &io::Error) -> Fate {
    let class = match error.kind() {
        io::ErrorKind::NotFound => "not_found",
        io::ErrorKind::PermissionDenied => "permission",
        _ => "unreadable",
    };
    Fate::rejected(class, error.to_string())
}

#[cfg(unix)]
fn identity(facts: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (facts.dev(), facts.ino())
}

#[cfg(not(unix))]
fn identity(facts: &fs::Metadata) -> Identity {
    let modified = facts.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    (facts.len(), modified.map_or(0, |t| t.as_nanos() as u64))
}
