//! Records of kernels: what the section `.wharf.kernels` of an image holds. They are plain numbers without
//! relocations, so that they are read from the bytes of the image before any of it is mapped.
//!
//! A record, little-endian on little-endian machines, begins at a multiple of 8 bytes:
//!
//! | bytes | what |
//! | --- | --- |
//! | 0..4 | size of the whole record in bytes, a multiple of 8 |
//! | 4..6 | version, 1 |
//! | 6..8 | number of parameters |
//! | 8..12 | bytes of the packed arguments (the size of the C structure) |
//! | 12..16 | most work-items in a group, 0: the device's limit |
//! | 16..20 | bytes of static shared memory |
//! | 20..24 | length of the name |
//! | 24.. | parameters, four 32-bit words each: offset, size, alignment, flags (0) |
//! | then | the name, UTF-8, filled up with zeros to a multiple of 8 |
//!
//! Eight zero bytes between records are padding of the linker. A later version only appends behind the name.

/// The version this crate writes.
pub const VERSION: u16 = 1;
/// Name of the section.
pub const SECTION: &str = ".wharf.kernels";
/// Bytes before the parameters.
const HEAD: usize = 24;
/// Bytes of a parameter.
const PARAM: usize = 16;
/// Most parameters of a kernel.
pub const PARAMS_MAX: usize = 255;
/// Longest name in bytes.
pub const NAME_MAX: usize = 255;

/// One parameter in the packed block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Param {
    /// Bytes from the start of the block.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// 0.
    pub flags: u32,
}

/// A record as the linker sees it: `P` parameters, a name in `N` bytes.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Record<const P: usize, const N: usize> {
    size: u32,
    version: u16,
    count: u16,
    args_len: u32,
    group_max: u32,
    shared: u32,
    name_len: u32,
    params: [Param; P],
    name: [u8; N],
}

/// The bytes that a name of `len` bytes takes.
pub const fn padded(len: usize) -> usize {
    len.next_multiple_of(8)
}

impl<const P: usize, const N: usize> Record<P, N> {
    /// A record; made by `kernel!`.
    ///
    /// # Panics
    /// At compile time, if the name or the list of parameters is too long.
    pub const fn new(name: &str, args_len: u32, group_max: u32, shared: u32, params: [Param; P]) -> Self {
        assert!(P <= PARAMS_MAX, "too many parameters");
        assert!(name.len() <= NAME_MAX && N == padded(name.len()), "name too long");
        let mut text = [0; N];
        let mut i = 0;
        while i < name.len() {
            text[i] = name.as_bytes()[i];
            i += 1;
        }
        Self {
            size: size_of::<Self>() as u32,
            version: VERSION,
            count: P as u16,
            args_len,
            group_max,
            shared,
            name_len: name.len() as u32,
            params,
            name: text,
        }
    }
}

/// A record read from the bytes of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The kernel's name, without a NUL.
    pub name: &'a str,
    /// Bytes of the packed arguments.
    pub args_len: u32,
    /// Most work-items in a group, 0: the device's limit.
    pub group_max: u32,
    /// Bytes of static shared memory.
    pub shared: u32,
    params: &'a [u8],
}

impl<'a> Entry<'a> {
    /// The parameters in order.
    pub fn params(&self) -> impl ExactSizeIterator<Item = Param> + 'a {
        self.params.chunks_exact(PARAM).map(|bytes| Param {
            offset: word(bytes, 0),
            size: word(bytes, 4),
            align: word(bytes, 8),
            flags: word(bytes, 12),
        })
    }
}

/// What is wrong with a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where the record begins in the section.
    pub at: usize,
    /// What is wrong, lower case.
    pub what: &'static str,
}

/// The records of a section, in order. After an error nothing more comes.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Reads the bytes of a section. They need no alignment.
pub const fn entries(section: &[u8]) -> Entries<'_> {
    Entries { bytes: section, at: 0 }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Flaw>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.bytes.get(self.at..self.at + 8) == Some(&[0; 8]) {
            self.at += 8;
        }
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let answer = read(rest).map_err(|what| Flaw { at: self.at, what });
        match &answer {
            Ok((_, size)) => self.at += size,
            Err(_) => self.at = self.bytes.len(),
        }
        Some(answer.map(|(entry, _)| entry))
    }
}

fn read(bytes: &[u8]) -> Result<(Entry<'_>, usize), &'static str> {
    let head = bytes.get(..HEAD).ok_or("the record is cut off")?;
    let size = word(head, 0) as usize;
    let record = bytes.get(..size).filter(|_| size >= HEAD).ok_or("the size of the record is wrong")?;
    if !size.is_multiple_of(8) {
        return Err("the size of the record is not a multiple of 8");
    }
    if u16::from_ne_bytes([head[4], head[5]]) < VERSION {
        return Err("the version of the record is 0");
    }
    let count = u16::from_ne_bytes([head[6], head[7]]) as usize;
    let name_len = word(head, 20) as usize;
    if count > PARAMS_MAX || name_len > NAME_MAX || name_len == 0 {
        return Err("the name or the list of parameters is too long");
    }
    let names = HEAD + count * PARAM;
    let params = record.get(HEAD..names).ok_or("the parameters do not fit the record")?;
    let name = record.get(names..names + name_len).ok_or("the name does not fit the record")?;
    let name = core::str::from_utf8(name).map_err(|_| "the name is not UTF-8")?;
    if name.contains('\0') {
        return Err("the name holds a NUL");
    }
    let entry =
        Entry { name, args_len: word(head, 8), group_max: word(head, 12), shared: word(head, 16), params };
    check(&entry)?;
    Ok((entry, size))
}

/// Parameters are in order, aligned, apart and inside the block.
fn check(entry: &Entry<'_>) -> Result<(), &'static str> {
    let mut end = 0;
    for param in entry.params() {
        if !param.align.is_power_of_two() || !param.offset.is_multiple_of(param.align) {
            return Err("a parameter is not aligned");
        }
        if u64::from(param.offset) < end {
            return Err("two parameters overlap");
        }
        end = u64::from(param.offset) + u64::from(param.size);
    }
    if end > u64::from(entry.args_len) { Err("a parameter ends past the block") } else { Ok(()) }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
