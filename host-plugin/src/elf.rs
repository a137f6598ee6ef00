//! Reads an ELF image before any of it is mapped: that it is a shared object for this machine, that everything its
//! headers speak of lies inside the bytes, and which symbols and kernel records it has. The system's linker trusts
//! its input; what is refused here never reaches it.

use crate::limits;
use std::collections::HashSet;
use wharf_core::{
    device::{Param, SymbolKind},
    fault::Why,
};
use wharf_kernel::record;

/// Why an image is refused: `why` and `values` as in a fault, and words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) why: Why,
    pub(crate) values: [u64; 2],
    pub(crate) what: &'static str,
}

/// A kernel's record, owned.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) args_len: u32,
    pub(crate) group_max: u32,
    pub(crate) shared: u32,
    pub(crate) params: Box<[Param]>,
}

/// A symbol that the image exports.
#[derive(Debug)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) kind: SymbolKind,
    pub(crate) size: u64,
    pub(crate) record: Option<Record>,
}

/// `e_machine` of this machine, of the System V ABI's list.
const MACHINE: u64 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "riscv64") {
    243
} else if cfg!(target_arch = "loongarch64") {
    258
} else if cfg!(target_arch = "s390x") {
    22
} else if cfg!(target_arch = "powerpc64") {
    21
} else {
    0
};
const ENDIAN: u64 = if cfg!(target_endian = "little") { 1 } else { 2 };

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;
const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const SHT_NULL: u64 = 0;
const SHT_NOBITS: u64 = 8;
const SHT_DYNSYM: u64 = 11;
const DT_FLAGS_1: u64 = 0x6FFF_FFFB;
const DF_1_PIE: u64 = 0x0800_0000;

/// Bytes with checked access.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn at(self, offset: u64, len: u64, what: &'static str) -> Result<Bytes<'a>, Flaw> {
        let total = self.0.len() as u64;
        let end = offset.saturating_add(len);
        if end > total {
            return Err(Flaw { why: Why::PastEnd, values: [end, total], what });
        }
        Ok(Bytes(&self.0[offset as usize..end as usize]))
    }
    /// An integer of `N` bytes at a place inside a structure whose length was checked.
    fn int<const N: usize>(self, at: usize) -> u64 {
        let mut wide = [0; 8];
        let place = if cfg!(target_endian = "little") { 0 } else { 8 - N };
        wide[place..place + N].copy_from_slice(&self.0[at..at + N]);
        u64::from_ne_bytes(wide)
    }
    /// The text at `offset`, up to its NUL.
    fn text(self, offset: u64) -> Option<&'a [u8]> {
        let rest = self.0.get(usize::try_from(offset).ok()?..)?;
        rest.iter().position(|byte| *byte == 0).map(|len| &rest[..len])
    }
}

fn same(given: u64, needed: u64, what: &'static str) -> Result<(), Flaw> {
    if given == needed { Ok(()) } else { Err(Flaw { why: Why::Mismatch, values: [given, needed], what }) }
}

fn entry(number: usize, what: &'static str) -> Flaw {
    Flaw { why: Why::Entry, values: [number as u64, 0], what }
}

/// The symbols of an image, kernels first, each kind by name.
pub(crate) fn read(image: &[u8]) -> Result<Vec<Symbol>, Flaw> {
    if image.len() > limits::IMAGE_MAX {
        let values = [image.len() as u64, limits::IMAGE_MAX as u64];
        return Err(Flaw { why: Why::Limit, values, what: "the image is too large" });
    }
    let file = Bytes(image);
    let header = header(file)?;
    segments(file, header)?;
    let sections = Sections::read(file, header)?;
    let records = sections.records()?;
    let mut symbols = sections.symbols(records.is_some())?;
    if let Some(records) = records {
        let mut named = HashSet::new();
        for (number, (name, record)) in records.into_iter().enumerate() {
            if !named.insert(name.clone()) {
                return Err(entry(number, "two records have the same name"));
            }
            let function = symbols.iter_mut().find(|s| s.kind == SymbolKind::Kernel && s.name == name);
            function.ok_or(entry(number, "the record names no exported function"))?.record = Some(record);
        }
        symbols.retain(|s| s.kind == SymbolKind::Global || s.record.is_some());
    }
    symbols.sort_by(|a, b| (a.kind as u8, &a.name).cmp(&(b.kind as u8, &b.name)));
    Ok(symbols)
}

fn header(file: Bytes<'_>) -> Result<Bytes<'_>, Flaw> {
    if file.0.is_empty() {
        return Err(Flaw { why: Why::Zero, values: [0, 0], what: "the image is empty" });
    }
    let magic = file.0.get(..4).unwrap_or(file.0);
    if magic != &b"\x7fELF"[..magic.len()] {
        return Err(Flaw { why: Why::Mismatch, values: [magic[0].into(), 0x7F], what: "not an ELF image" });
    }
    let header = file.at(0, HEADER as u64, "the ELF header is cut off")?;
    same(header.int::<1>(4), 2, "not a 64-bit image")?;
    same(header.int::<1>(5), ENDIAN, "an image of the other byte order")?;
    same(header.int::<1>(6), 1, "an ELF version that is not known")?;
    same(header.int::<2>(18), MACHINE, "an image for another machine")?;
    same(header.int::<2>(16), 3, "not a shared object")?;
    same(header.int::<4>(20), 1, "an ELF version that is not known")?;
    same(header.int::<2>(52), HEADER as u64, "the ELF header has another length")?;
    same(header.int::<2>(54), PROGRAM_HEADER as u64, "program headers have another length")?;
    same(header.int::<2>(58), SECTION_HEADER as u64, "section headers have another length")?;
    Ok(header)
}

fn segments(file: Bytes<'_>, header: Bytes<'_>) -> Result<(), Flaw> {
    let count = header.int::<2>(56);
    let table =
        file.at(header.int::<8>(32), count * PROGRAM_HEADER as u64, "the program headers are cut off")?;
    let (mut loads, mut dynamic, mut end) = (0, None, 0);
    for (number, raw) in table.0.chunks_exact(PROGRAM_HEADER).enumerate() {
        let raw = Bytes(raw);
        let kind = raw.int::<4>(0);
        if kind != PT_LOAD && kind != PT_DYNAMIC {
            continue;
        }
        let [offset, address, in_file, in_memory, align] = [8, 16, 32, 40, 48].map(|at| raw.int::<8>(at));
        let bytes = file.at(offset, in_file, "a segment is cut off")?;
        if kind == PT_DYNAMIC {
            dynamic = Some(bytes);
            continue;
        }
        loads += 1;
        let last =
            address.checked_add(in_memory).ok_or(entry(number, "a segment ends past the address space"))?;
        if in_file > in_memory || address < end {
            return Err(entry(number, "a segment overlaps another or its own end"));
        }
        if align > 1 && (!align.is_power_of_two() || address % align != offset % align) {
            return Err(entry(number, "a segment is not aligned"));
        }
        end = last;
    }
    let dynamic = dynamic.filter(|_| loads != 0);
    let dynamic =
        dynamic.ok_or(Flaw { why: Why::Zero, values: [1, 0], what: "nothing in the image is loadable" })?;
    for pair in dynamic.0.chunks_exact(16) {
        if Bytes(pair).int::<8>(0) == DT_FLAGS_1 && Bytes(pair).int::<8>(8) & DF_1_PIE != 0 {
            return Err(Flaw {
                why: Why::Bits,
                values: [0, DF_1_PIE],
                what: "an executable, not a shared object",
            });
        }
    }
    Ok(())
}

struct Section<'a> {
    name: &'a [u8],
    kind: u64,
    link: usize,
    bytes: Bytes<'a>,
}

struct Sections<'a>(Vec<Section<'a>>);

impl<'a> Sections<'a> {
    fn read(file: Bytes<'a>, header: Bytes<'a>) -> Result<Self, Flaw> {
        let count = header.int::<2>(60);
        if count == 0 {
            return Err(Flaw { why: Why::Zero, values: [2, 0], what: "the image has no section headers" });
        }
        let table =
            file.at(header.int::<8>(40), count * SECTION_HEADER as u64, "the section headers are cut off")?;
        let mut sections = Vec::with_capacity(count as usize);
        for raw in table.0.chunks_exact(SECTION_HEADER).map(Bytes) {
            let kind = raw.int::<4>(4);
            let empty = kind == SHT_NOBITS || kind == SHT_NULL;
            let len = if empty { 0 } else { raw.int::<8>(32) };
            let offset = if empty { 0 } else { raw.int::<8>(24) };
            let bytes = file.at(offset, len, "a section is cut off")?;
            sections.push(Section { name: &[], kind, link: raw.int::<4>(40) as usize, bytes });
        }
        let names = header.int::<2>(62) as usize;
        let names = sections.get(names).ok_or(entry(names, "the names of the sections are missing"))?.bytes;
        for (number, raw) in table.0.chunks_exact(SECTION_HEADER).map(Bytes).enumerate() {
            let name = names.text(raw.int::<4>(0));
            sections[number].name = name.ok_or(entry(number, "a section's name is cut off"))?;
        }
        Ok(Self(sections))
    }

    /// The kernels' records; `None` if the image has none.
    fn records(&self) -> Result<Option<Vec<(String, Record)>>, Flaw> {
        let Some(section) = self.0.iter().find(|s| s.name == record::SECTION.as_bytes()) else {
            return Ok(None);
        };
        let mut found = Vec::new();
        for (number, read) in record::entries(section.bytes.0).enumerate() {
            let read = read.map_err(|flaw| entry(number, flaw.what))?;
            let over = [(read.args_len, limits::ARGS_MAX), (read.shared, limits::SHARED_MAX)];
            if let Some((given, most)) = over.into_iter().find(|(given, most)| given > most) {
                let values = [given.into(), most.into()];
                return Err(Flaw {
                    why: Why::Limit,
                    values,
                    what: "a kernel asks for more than the device has",
                });
            }
            let params = read.params().map(|p| Param {
                offset: p.offset,
                size: p.size,
                align: p.align,
                flags: p.flags,
            });
            let record = Record {
                args_len: read.args_len,
                group_max: read.group_max,
                shared: read.shared,
                params: params.collect(),
            };
            found.push((read.name.to_owned(), record));
        }
        Ok(Some(found))
    }

    /// Exported functions and variables.
    fn symbols(&self, recorded: bool) -> Result<Vec<Symbol>, Flaw> {
        let table = self.0.iter().find(|s| s.kind == SHT_DYNSYM);
        let table =
            table.ok_or(Flaw { why: Why::Zero, values: [3, 0], what: "the image exports nothing" })?;
        let names =
            self.0.get(table.link).ok_or(entry(table.link, "the names of the symbols are missing"))?.bytes;
        let count = table.bytes.0.len() / SYMBOL;
        if count > limits::SYMBOLS_MAX || !table.bytes.0.len().is_multiple_of(SYMBOL) {
            let values = [count as u64, limits::SYMBOLS_MAX as u64];
            return Err(Flaw { why: Why::Limit, values, what: "the table of symbols is too long or bent" });
        }
        let mut found = Vec::new();
        for (number, raw) in table.bytes.0.chunks_exact(SYMBOL).map(Bytes).enumerate() {
            let name = names.text(raw.int::<4>(0)).ok_or(entry(number, "a symbol's name is cut off"))?;
            let (info, seen, section) = (raw.int::<1>(4), raw.int::<1>(5) & 3, raw.int::<2>(6));
            let bound = matches!(info >> 4, 1 | 2 | 10) && matches!(seen, 0 | 3);
            // STT_OBJECT and STT_COMMON; STT_FUNC and STT_GNU_IFUNC. Section 0: used, not defined.
            let kind = match info & 15 {
                1 | 5 => SymbolKind::Global,
                2 | 10 => SymbolKind::Kernel,
                _ => continue,
            };
            let inner = !recorded && matches!(name, b"_init" | b"_fini");
            let Ok(name) = std::str::from_utf8(name) else { continue };
            if bound && section != 0 && !inner && !name.is_empty() {
                found.push(Symbol { name: name.to_owned(), kind, size: raw.int::<8>(16), record: None });
            }
        }
        Ok(found)
    }
}
