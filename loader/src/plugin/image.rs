//! What the bytes of a library tell before anything of it runs: whether it is one for this machine, what it says about
//! itself, what it needs and what it exports.

use super::Fate;
use object::{
    Architecture, BinaryFormat, Endianness, FileKind, Object, ObjectKind, ObjectSection, ObjectSegment,
    ObjectSymbol, elf,
    read::elf::{Dyn, ElfFile, FileHeader},
};
use wharf_abi::{
    handshake::{ENTRY_SYMBOL, ROOT_SYMBOL},
    meta::{Meta, SECTION},
    tables::plugin_flag,
};

/// Bytes of the header of a 64-bit ELF file.
const ELF64_HEADER: usize = 64;
/// Symbols that a library of a sanitizer asks for, each with its kind.
const SANITIZERS: [(&str, &str); 3] =
    [("__asan_init", "address"), ("__tsan_init", "thread"), ("__msan_init", "memory")];

/// What a plugin file says about itself in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Its id.
    pub id: String,
    /// Who made it.
    pub vendor: String,
    /// Its own version.
    pub version: String,
    /// What its devices belong to.
    pub backend: String,
    /// Its licence, if given.
    pub licence: Option<String>,
    /// What the processor must have beyond what every one of its kind has.
    pub cpu_features: Vec<String>,
    /// Major version of the ABI.
    pub major: u16,
    /// Minor version of the ABI.
    pub minor: u16,
    /// Draft of the ABI.
    pub draft: u16,
    /// Least minor version of a host.
    pub min_host_minor: u16,
    /// Panics and exceptions stay inside.
    pub contains_panics: bool,
}

/// What a plugin file is, read without running anything of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// What it says about itself, if it does.
    pub record: Option<Record>,
    /// It has the entry that every plugin has.
    pub entry: bool,
    /// It has the root module of a Rust plugin, whose types are compared.
    pub root: bool,
    /// Libraries that it needs, by the names under which the system looks for them.
    pub needed: Vec<String>,
    /// Where it wants them looked for (RUNPATH, or RPATH).
    pub run_paths: Vec<String>,
    /// The older RPATH is used, which also rules over `LD_LIBRARY_PATH`.
    pub old_run_path: bool,
    /// Symbols that it exports.
    pub exports: Vec<String>,
    /// What tells its builds apart, in hex digits.
    pub build_id: Option<String>,
    /// The sanitizer that it was built with.
    pub sanitizer: Option<&'static str>,
}

impl Inspection {
    /// Id, vendor and version by its own record.
    pub(crate) fn says(&self) -> Option<[String; 3]> {
        let record = self.record.as_ref()?;
        Some([record.id.clone(), record.vendor.clone(), record.version.clone()])
    }
}

/// Reads the bytes of a file; a fate is the reason why it is no plugin for this machine.
pub(crate) fn read(bytes: &[u8]) -> Result<(Inspection, Result<(), Fate>), Fate> {
    head(bytes)?;
    let object = object::File::parse(bytes).map_err(|error| truncated(&error.to_string()))?;
    machine(&object)?;
    let end = object.segments().map(|segment| segment.file_range());
    let end = end.map(|(at, len)| at.saturating_add(len)).max().unwrap_or(0);
    if let Some(short) = end.checked_sub(bytes.len() as u64).filter(|short| *short > 0) {
        return Err(truncated(&format!("{short} bytes are missing at its end")));
    }
    let exports = object.exports().map_err(|error| truncated(&error.to_string()))?;
    let mut found = Inspection {
        exports: exports.iter().map(|e| String::from_utf8_lossy(e.name()).into_owned()).collect(),
        build_id: object.build_id().ok().flatten().map(hex),
        ..Inspection::default()
    };
    found.exports.sort_unstable();
    let has = |name: &str| found.exports.iter().any(|export| export == name);
    (found.root, found.entry) = (has(ROOT_SYMBOL), has(ENTRY_SYMBOL));
    if !found.root && !found.entry {
        let reason = format!("a shared library without the entry `{ENTRY_SYMBOL}`: not a Wharf plugin");
        return Err(Fate::rejected("no_entry", reason));
    }
    match &object {
        object::File::Elf32(file) => dynamic(file, bytes, &mut found),
        object::File::Elf64(file) => dynamic(file, bytes, &mut found),
        _ => {}
    }
    let fits = record(&object, &mut found)?;
    let asks = |name: &str| object.dynamic_symbols().any(|symbol| symbol.name() == Ok(name));
    let by_symbol = SANITIZERS.iter().find(|(symbol, _)| asks(symbol)).map(|(_, kind)| *kind);
    found.sanitizer = found.sanitizer.or(by_symbol);
    Ok((found, fits))
}

/// What the first bytes say.
fn head(bytes: &[u8]) -> Result<(), Fate> {
    let strange = |what: &str| Err(Fate::rejected("not_a_library", what));
    if bytes.is_empty() {
        return Err(Fate::rejected("empty", "the file is empty"));
    }
    if elf::ELFMAG.starts_with(&bytes[..bytes.len().min(4)]) {
        if bytes.len() < ELF64_HEADER {
            return Err(truncated(&format!("{} bytes of the {ELF64_HEADER} of its header", bytes.len())));
        }
        return match (bytes[4], bytes[5]) {
            (elf::ELFCLASS32 | elf::ELFCLASS64, elf::ELFDATA2LSB | elf::ELFDATA2MSB) => Ok(()),
            (class, data) => {
                Err(truncated(&format!("class {class} and byte order {data} in its header are none")))
            }
        };
    }
    match FileKind::parse(bytes) {
        Ok(FileKind::Pe32 | FileKind::Pe64) if !cfg!(windows) => strange("a library of Windows (PE)"),
        Ok(FileKind::MachO32 | FileKind::MachO64 | FileKind::MachOFat32 | FileKind::MachOFat64)
            if !cfg!(target_vendor = "apple") =>
        {
            strange("a library of macOS (Mach-O)")
        }
        _ if bytes.starts_with(b"!<arch>\n") => strange("a static library, not a shared one"),
        Ok(FileKind::Coff) => strange("not a shared library"),
        Ok(_) => Ok(()),
        Err(_) => {
            let start = &bytes[..bytes.len().min(512)];
            // A letter may be cut where this look ends.
            let utf8 = std::str::from_utf8(start).map_or_else(|error| error.error_len().is_none(), |_| true);
            let text = utf8 && !start.contains(&0);
            strange(if text { "a text file, not a shared library" } else { "not a shared library" })
        }
    }
}

/// Whether it is a shared library for this program's machine and system.
fn machine(object: &object::File<'_>) -> Result<(), Fate> {
    let (machine, own) = (object.architecture(), own_architecture());
    if own.is_some_and(|own| own != machine) || object.is_64() != cfg!(target_pointer_width = "64") {
        let width = if object.is_64() { 64 } else { 32 };
        let reason =
            format!("built for {machine:?}, {width} bits; this program is {}", std::env::consts::ARCH);
        return Err(Fate::rejected("wrong_architecture", reason));
    }
    let order = if cfg!(target_endian = "little") { Endianness::Little } else { Endianness::Big };
    if object.endianness() != order {
        return Err(Fate::rejected("wrong_architecture", "built for the other byte order"));
    }
    let native = if cfg!(windows) {
        BinaryFormat::Pe
    } else if cfg!(target_vendor = "apple") {
        BinaryFormat::MachO
    } else {
        BinaryFormat::Elf
    };
    if object.kind() != ObjectKind::Dynamic || object.format() != native {
        return Err(Fate::rejected("not_a_library", "an object or program, not a shared library"));
    }
    Ok(())
}

/// What its dynamic table says.
fn dynamic<E: FileHeader<Endian = Endianness>>(file: &ElfFile<'_, E>, bytes: &[u8], found: &mut Inspection) {
    let (endian, sections) = (file.endian(), file.elf_section_table());
    let Ok(Some((table, strings))) = sections.dynamic(endian, bytes) else { return };
    let Ok(strings) = sections.strings(endian, bytes, strings) else { return };
    for entry in table {
        let tag = entry.tag32(endian).unwrap_or(elf::DT_NULL);
        if tag == elf::DT_NULL {
            break;
        }
        let Some(text) = entry.val32(endian).and_then(|at| strings.get(at).ok()) else { continue };
        let text = || String::from_utf8_lossy(text).into_owned();
        match tag {
            elf::DT_NEEDED => found.needed.push(text()),
            elf::DT_RUNPATH | elf::DT_RPATH => {
                found.run_paths.extend(text().split(':').map(str::to_owned));
                found.old_run_path |= tag == elf::DT_RPATH;
            }
            _ => {}
        }
    }
}

/// Its record; the inner result is what its versions come to.
fn record(object: &object::File<'_>, found: &mut Inspection) -> Result<Result<(), Fate>, Fate> {
    let Some(section) = object.section_by_name(SECTION).and_then(|section| section.data().ok()) else {
        return Ok(Ok(()));
    };
    let meta = Meta::parse(section)
        .map_err(|error| Fate::rejected("bad_metadata", format!("section {SECTION}: {error}")))?;
    let features = meta.cpu_features.split(',').map(str::trim).filter(|name| !name.is_empty());
    let bits = [
        (plugin_flag::SANITIZER_ADDRESS, "address"),
        (plugin_flag::SANITIZER_THREAD, "thread"),
        (plugin_flag::SANITIZER_MEMORY, "memory"),
    ];
    found.sanitizer = bits.iter().find(|(bit, _)| meta.flags & bit != 0).map(|(_, kind)| *kind);
    found.record = Some(Record {
        id: meta.id.into(),
        vendor: meta.vendor.into(),
        version: meta.version.into(),
        backend: meta.backend.into(),
        licence: meta.licence.map(str::to_owned),
        cpu_features: features.map(str::to_owned).collect(),
        major: meta.major,
        minor: meta.minor,
        draft: meta.draft,
        min_host_minor: meta.min_host_minor,
        contains_panics: meta.flags & plugin_flag::CONTAINS_PANICS != 0,
    });
    Ok(meta.judge().map_err(|refusal| Fate::rejected(refusal.class(), refusal.to_string())))
}

fn truncated(what: &str) -> Fate {
    Fate::rejected("truncated", format!("cut off or damaged: {what}"))
}

/// Bytes in hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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

#[cfg(test)]
mod tests;
