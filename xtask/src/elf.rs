//! As much of an ELF file as tells whether a program stands alone, and how much memory firmware takes. Offsets are those
//! of the ELF-64 specification, and of the ELF-32 one for firmware.

use crate::fail::Fail;

/// Type of a program header that names an interpreter.
const PT_INTERP: u32 = 3;
/// Type of the program header of the dynamic table.
const PT_DYNAMIC: u32 = 2;
/// Tag of a needed library in the dynamic table.
const DT_NEEDED: u64 = 1;

/// What a program needs to be started.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) interpreter: bool,
    pub(crate) libraries: usize,
}

/// Reads the program headers of a little-endian 64-bit file.
pub(crate) fn needs(file: &[u8]) -> Result<Needs, Fail> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return Err(Fail::new("no little-endian 64-bit ELF file"));
    }
    let (table, size, count) = (word(file, 32, 8)?, word(file, 54, 2)?, word(file, 56, 2)?);
    let mut needs = Needs::default();
    for index in 0..count {
        let header = table + index * size;
        match word(file, header, 4)? as u32 {
            PT_INTERP => needs.interpreter = true,
            PT_DYNAMIC => {
                let (at, len) = (word(file, header + 8, 8)?, word(file, header + 32, 8)?);
                for entry in (at..at + len).step_by(16) {
                    needs.libraries += usize::from(word(file, entry, 8)? == DT_NEEDED);
                }
            }
            _ => {}
        }
    }
    Ok(needs)
}

/// Bytes of firmware in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// What has to be in flash: code, constants, and what variables begin with.
    pub(crate) flash: u64,
    /// Variables; the stack is not counted.
    pub(crate) ram: u64,
}

/// Flag of a section that lies in memory.
const SHF_ALLOC: u64 = 2;
/// Flag of a section that is written.
const SHF_WRITE: u64 = 1;
/// Type of a section without bytes in the file.
const SHT_NOBITS: u64 = 8;

/// Adds up the sections of a little-endian 32-bit file; one that is called `.stack` is left out.
pub(crate) fn memory(file: &[u8]) -> Result<Memory, Fail> {
    if !file.starts_with(b"\x7fELF\x01\x01") {
        return Err(Fail::new("no little-endian 32-bit ELF file"));
    }
    let (table, size) = (word(file, 32, 4)?, word(file, 46, 2)?);
    let (count, names) = (word(file, 48, 2)?, word(file, 50, 2)?);
    let names = word(file, table + names * size + 16, 4)?;
    let mut memory = Memory::default();
    for header in (0..count).map(|index| table + index * size) {
        let (name, kind) = (names + word(file, header, 4)?, word(file, header + 4, 4)?);
        let (flags, len) = (word(file, header + 8, 4)?, word(file, header + 20, 4)?);
        let is_stack = file.get(name as usize..).is_some_and(|name| name.starts_with(b".stack\0"));
        if flags & SHF_ALLOC == 0 || is_stack {
            continue;
        }
        if kind != SHT_NOBITS {
            memory.flash += len;
        }
        if kind == SHT_NOBITS || flags & SHF_WRITE != 0 {
            memory.ram += len;
        }
    }
    Ok(memory)
}

/// `len` bytes at `at` as a number.
fn word(file: &[u8], at: u64, len: u64) -> Result<u64, Fail> {
    let end = at.checked_add(len).ok_or_else(|| Fail::new("ELF: an offset past 2^64"))?;
    let bytes = file.get(at as usize..end as usize).ok_or_else(|| Fail::new("ELF: the file is cut off"))?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one program header of this type, whose segment is the dynamic table that follows.
    fn file(kind: u32, tags: &[u64]) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32] = 64;
        file[54] = 56;
        file[56] = 1;
        file[64..68].copy_from_slice(&kind.to_le_bytes());
        file[72] = 120;
        file[96] = 16 * tags.len() as u8;
        tags.iter().for_each(|tag| file.extend([tag.to_le_bytes(), [0; 8]].concat()));
        file
    }

    #[test]
    fn flash_and_memory_of_firmware_are_added_up() {
        // Names, a section of code, one of variables, one of zeros, the stack, a comment: (name, type, flags, bytes).
        let names = b"\0.stack\0";
        let sections =
            [(0, 3, 0, 8), (0, 1, 6, 100), (0, 1, 3, 10), (0, 8, 3, 1000), (1, 8, 3, 5000), (0, 1, 0, 7)];
        let mut file = vec![0; 52];
        file[..6].copy_from_slice(b"\x7fELF\x01\x01");
        file[32] = 60;
        file[46] = 40;
        file[48] = sections.len() as u8;
        file.extend(names);
        for (name, kind, flags, bytes) in sections {
            let words: [u32; 10] = [name, kind, flags, 0, 52, bytes, 0, 0, 0, 0];
            file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        assert_eq!(memory(&file).unwrap(), Memory { flash: 110, ram: 1010 });
        assert!(memory(&file[..90]).is_err());
        assert!(memory(b"\x7fELF\x02\x01").is_err());
    }

    #[test]
    fn interpreters_and_libraries_are_seen() {
        assert_eq!(needs(&file(1, &[])).unwrap(), Needs { interpreter: false, libraries: 0 });
        assert_eq!(needs(&file(PT_INTERP, &[])).unwrap(), Needs { interpreter: true, libraries: 0 });
        assert_eq!(needs(&file(PT_DYNAMIC, &[1, 5, 1])).unwrap(), Needs { interpreter: false, libraries: 2 });
        assert!(needs(&file(PT_DYNAMIC, &[1])[..124]).is_err());
        assert!(needs(b"MZ").is_err());
    }
}
