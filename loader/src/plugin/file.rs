//! A first look at a candidate without running anything of it: is it a library for this machine, is it whole, does it
//! have an entry, what does it say about itself.
//!
//! # Safety
//! The file is mapped while another may change it; nothing is concluded from its bytes that a change could turn into
//! undefined behaviour, and the system's linker checks them again.
#![allow(unsafe_code)]

use super::Fate;
use memmap2::Mmap;
use object::{Architecture, Object, ObjectKind, ObjectSection, ObjectSegment};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};
use wharf_abi::{
    handshake::{ENTRY_SYMBOL, ROOT_SYMBOL},
    meta::{Meta, SECTION},
};

/// What tells a file from every other, whatever it is called.
pub(crate) type Identity = (u64, u64);

/// What a candidate is, as far as its bytes tell.
pub(crate) struct Looked {
    /// Where it really lies.
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    /// It has the root module of a Rust plugin, whose types are compared.
    pub(crate) root: bool,
    /// Id, vendor and version by its own record.
    pub(crate) says: Option<[String; 3]>,
}

/// Looks at a file; a fate is the reason why it goes no further.
pub(crate) fn look(path: &Path) -> Result<Looked, Fate> {
    let real = fs::canonicalize(path).map_err(|error| unreadable(&error))?;
    let file = File::open(&real).map_err(|error| unreadable(&error))?;
    let facts = file.metadata().map_err(|error| unreadable(&error))?;
    if !facts.is_file() {
        return Err(Fate::rejected("not_a_library", "not a file"));
    }
    if facts.len() == 0 {
        return Err(Fate::rejected("empty", "the file is empty"));
    }
    let bytes = map(&file).map_err(|error| unreadable(&error))?;
    let (root, says) = inspect(&bytes)?;
    Ok(Looked { path: real, identity: identity(&facts), root, says })
}

fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: as this file's `# Safety` says: the bytes are only looked at.
    unsafe { Mmap::map(file) }
}

fn unreadable(error: &io::Error) -> Fate {
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

fn inspect(bytes: &[u8]) -> Result<(bool, Option<[String; 3]>), Fate> {
    let object = object::File::parse(bytes).map_err(|error| not_a_library(bytes, &error))?;
    let (machine, own) = (object.architecture(), own_architecture());
    if own.is_some_and(|own| own != machine) || object.is_64() != cfg!(target_pointer_width = "64") {
        let width = if object.is_64() { 64 } else { 32 };
        let reason =
            format!("built for {machine:?}, {width} bits; this program is {}", std::env::consts::ARCH);
        return Err(Fate::rejected("wrong_architecture", reason));
    }
    if object.kind() != ObjectKind::Dynamic {
        return Err(Fate::rejected("not_a_library", "an object or program, not a shared library"));
    }
    let end =
        object.segments().map(|segment| segment.file_range()).map(|(at, len)| at.saturating_add(len)).max();
    if let Some(short) = end.unwrap_or(0).checked_sub(bytes.len() as u64).filter(|short| *short > 0) {
        return Err(truncated(&format!("{short} bytes are missing at its end")));
    }
    let exports = object.exports().map_err(|error| truncated(&error.to_string()))?;
    let has = |name: &str| exports.iter().any(|export| export.name() == name.as_bytes());
    let root = has(ROOT_SYMBOL);
    if !root && !has(ENTRY_SYMBOL) {
        let reason = format!("a shared library without the entry `{ENTRY_SYMBOL}`: not a Wharf plugin");
        return Err(Fate::rejected("no_entry", reason));
    }
    let section = object.section_by_name(SECTION).and_then(|section| section.data().ok());
    let says = match section.map(Meta::parse) {
        None => None,
        Some(Ok(meta)) => Some([meta.id.into(), meta.vendor.into(), meta.version.into()]),
        Some(Err(error)) => {
            return Err(Fate::rejected("bad_metadata", format!("section {SECTION}: {error}")));
        }
    };
    Ok((root, says))
}

fn truncated(what: &str) -> Fate {
    Fate::rejected("truncated", format!("cut off or damaged: {what}"))
}

/// What a file that is no object may be instead.
fn not_a_library(bytes: &[u8], error: &object::Error) -> Fate {
    if bytes.starts_with(b"\x7fELF") {
        return truncated(&error.to_string());
    }
    let head = &bytes[..bytes.len().min(512)];
    let text = std::str::from_utf8(head).is_ok() && !head.contains(&0);
    Fate::rejected(
        "not_a_library",
        if text { "a text file, not a shared library" } else { "not a shared library" },
    )
}

/// This program's machine as object files name it; none where this list does not know it.
fn own_architecture() -> Option<Architecture> {
    Some(match std::env::consts::ARCH {
        "x86_64" => Architecture::X86_64,
        "x86" => Architecture::I386,
        "aarch64" => Architecture::Aarch64,
        "arm" => Architecture::Arm,
        "riscv64" => Architecture::Riscv64,
        "powerpc64" => Architecture::PowerPc64,
        "s390x" => Architecture::S390x,
        "loongarch64" => Architecture::LoongArch64,
        _ => return None,
    })
}
