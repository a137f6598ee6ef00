//! What a plugin file says about itself without being run: a record in the section [`SECTION`].
//!
//! Eight bytes [`MAGIC`], the record's whole length (`u32`), then fields: tag (`u16`), length (`u16`), bytes; tags in
//! rising order, integers little-endian. Unknown tags are skipped, so the record can grow; a known one of another
//! length, a missing one that is not optional, and anything past the end are errors. Nothing here needs a heap.

use crate::{
    refusal::Refusal,
    tables::{DRAFT, MAJOR, MINOR, plugin_flag},
};
use core::fmt;

/// Name of the section in an ELF file.
pub const SECTION: &str = ".wharf.plugin";
/// First bytes of the record.
pub const MAGIC: [u8; 8] = *b"WHARFMD1";
/// Bytes of a record at most.
pub const RECORD_LEN_MAX: usize = 4096;
/// Bytes of an id at most.
pub const ID_LEN_MAX: usize = 64;
/// Bytes of another text at most.
pub const TEXT_LEN_MAX: usize = 256;

const ID: u16 = 1;
const VENDOR: u16 = 2;
const VERSION: u16 = 3;
const ABI: u16 = 4;
const FLAGS: u16 = 5;
const BACKEND: u16 = 6;
const CPU: u16 = 7;
const LICENCE: u16 = 8;
/// The highest tag that is known.
const LAST: u16 = LICENCE;
const HEAD: usize = 12;
const FIELD: usize = 4;
const ABI_LEN: usize = 8;
const FLAGS_LEN: usize = 8;

/// What the record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// Short name: lower-case letters, digits, `_`, `-` and `.`.
    pub id: &'a str,
    /// Who made it.
    pub vendor: &'a str,
    /// Its own version.
    pub version: &'a str,
    /// Major version of the ABI.
    pub major: u16,
    /// Minor version it was built with.
    pub minor: u16,
    /// Draft it was built with.
    pub draft: u16,
    /// Least minor version of a host.
    pub min_host_minor: u16,
    /// Bits of [`plugin_flag`].
    pub flags: u64,
    /// Kind of the devices that it is for, an id; where nothing is said the plugin's own.
    pub backend: &'a str,
    /// What the processor must have beyond what every one of its kind has, with commas between; perhaps nothing.
    pub cpu_features: &'a str,
    /// Under which licence it is given.
    pub licence: Option<&'a str>,
}

impl<'a> Meta<'a> {
    /// What a plugin built here says.
    pub const fn new(id: &'a str, vendor: &'a str, version: &'a str, min_host_minor: u16) -> Self {
        Meta {
            id,
            vendor,
            version,
            major: MAJOR,
            minor: MINOR,
            draft: DRAFT,
            min_host_minor,
            flags: if cfg!(panic = "unwind") { plugin_flag::CONTAINS_PANICS } else { 0 },
            backend: id,
            cpu_features: "",
            licence: None,
        }
    }

    /// The same for devices of another kind than its id says.
    #[must_use]
    pub const fn with_backend(mut self, backend: Option<&'a str>) -> Self {
        if let Some(backend) = backend {
            self.backend = backend;
        }
        self
    }

    /// The same with what the processor must have ([`cpu::joined`](crate::cpu::joined)).
    #[must_use]
    pub const fn with_cpu_features(mut self, features: &'a str) -> Self {
        self.cpu_features = features;
        self
    }

    /// The same with a licence.
    #[must_use]
    pub const fn with_licence(mut self, licence: Option<&'a str>) -> Self {
        self.licence = licence;
        self
    }

    /// Whether a host built here can use it, as far as versions tell.
    ///
    /// # Errors
    /// Another major or draft, or a host that is too old.
    pub fn judge(&self) -> Result<(), Refusal> {
        if self.major != MAJOR {
            return Err(Refusal::Major { host: MAJOR, plugin: self.major });
        }
        if self.draft != DRAFT {
            return Err(Refusal::Draft { host: DRAFT, plugin: self.draft });
        }
        if self.min_host_minor > MINOR {
            return Err(Refusal::MinHostMinor { host: MINOR, needs: self.min_host_minor });
        }
        Ok(())
    }

    /// The fields that are not said where they are what they would be anyhow.
    const fn optional(&self) -> [(u16, &'a [u8]); 3] {
        let backend = if same(self.backend.as_bytes(), self.id.as_bytes()) { "" } else { self.backend };
        let licence = match self.licence {
            Some(licence) => licence,
            None => "",
        };
        [(BACKEND, backend.as_bytes()), (CPU, self.cpu_features.as_bytes()), (LICENCE, licence.as_bytes())]
    }

    /// Bytes of the record.
    ///
    /// # Panics
    /// (At compile time.) If a text is too long or the id is not one.
    pub const fn record_len(&self) -> usize {
        assert!(is_id(self.id.as_bytes()), "an id is 1 to 64 of a-z 0-9 _ - .");
        assert!(self.vendor.len() <= TEXT_LEN_MAX && self.version.len() <= TEXT_LEN_MAX, "text is too long");
        assert!(is_id(self.backend.as_bytes()), "a backend is named by 1 to 64 of a-z 0-9 _ - .");
        let mut len =
            HEAD + 5 * FIELD + self.id.len() + self.vendor.len() + self.version.len() + ABI_LEN + FLAGS_LEN;
        let (optional, mut i) = (self.optional(), 0);
        while i < optional.len() {
            let bytes = optional[i].1;
            assert!(bytes.len() <= TEXT_LEN_MAX, "text is too long");
            len += if bytes.is_empty() { 0 } else { FIELD + bytes.len() };
            i += 1;
        }
        len
    }

    /// The record; `N` is [`Meta::record_len`].
    ///
    /// # Panics
    /// (At compile time.) As [`Meta::record_len`], and if `N` is another number.
    pub const fn record<const N: usize>(&self) -> [u8; N] {
        assert!(N == self.record_len());
        let mut record = [0; N];
        let mut at = put(&mut record, 0, &MAGIC);
        at = put(&mut record, at, &(N as u32).to_le_bytes());
        at = field(&mut record, at, ID, self.id.as_bytes());
        at = field(&mut record, at, VENDOR, self.vendor.as_bytes());
        at = field(&mut record, at, VERSION, self.version.as_bytes());
        let version = self.major as u64
            | (self.minor as u64) << 16
            | (self.draft as u64) << 32
            | (self.min_host_minor as u64) << 48;
        at = field(&mut record, at, ABI, &version.to_le_bytes());
        at = field(&mut record, at, FLAGS, &self.flags.to_le_bytes());
        let (optional, mut i) = (self.optional(), 0);
        while i < optional.len() {
            let (tag, bytes) = optional[i];
            if !bytes.is_empty() {
                at = field(&mut record, at, tag, bytes);
            }
            i += 1;
        }
        assert!(at == N);
        record
    }

    /// Reads a section; what follows the record in it must be zero (padding).
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(section: &'a [u8]) -> Result<Self, MetaError> {
        let head = section.first_chunk::<HEAD>().ok_or(MetaError::Short)?;
        if !head.starts_with(&MAGIC) {
            return Err(MetaError::Magic);
        }
        let len = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        if len > RECORD_LEN_MAX {
            return Err(MetaError::Long { len });
        }
        let record = section.get(HEAD..len).ok_or(MetaError::Short)?;
        if section[len..].iter().any(|byte| *byte != 0) {
            return Err(MetaError::Trailing);
        }
        Fields::read(record)?.meta()
    }
}

const fn put<const N: usize>(record: &mut [u8; N], at: usize, bytes: &[u8]) -> usize {
    let mut i = 0;
    while i < bytes.len() {
        record[at + i] = bytes[i];
        i += 1;
    }
    at + i
}

const fn field<const N: usize>(record: &mut [u8; N], at: usize, tag: u16, bytes: &[u8]) -> usize {
    let at = put(record, at, &tag.to_le_bytes());
    let at = put(record, at, &(bytes.len() as u16).to_le_bytes());
    put(record, at, bytes)
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Whether this is an id.
pub const fn is_id(id: &[u8]) -> bool {
    if id.is_empty() || id.len() > ID_LEN_MAX {
        return false;
    }
    let mut i = 0;
    while i < id.len() {
        if !matches!(id[i], b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.') {
            return false;
        }
        i += 1;
    }
    true
}

/// The known fields of a record, not yet looked into.
#[derive(Default)]
struct Fields<'a>([Option<&'a [u8]>; LAST as usize]);

impl<'a> Fields<'a> {
    fn read(mut rest: &'a [u8]) -> Result<Self, MetaError> {
        let (mut fields, mut last) = (Fields::default(), 0);
        while !rest.is_empty() {
            let (head, body) = rest.split_first_chunk::<FIELD>().ok_or(MetaError::Short)?;
            let (tag, len) = (u16::from_le_bytes([head[0], head[1]]), u16::from_le_bytes([head[2], head[3]]));
            if tag <= last {
                return Err(MetaError::Order { tag });
            }
            last = tag;
            let (value, behind) = body.split_at_checked(len.into()).ok_or(MetaError::Short)?;
            if let Some(place) = fields.0.get_mut(usize::from(tag) - 1) {
                *place = Some(value);
            }
            rest = behind;
        }
        Ok(fields)
    }

    fn get(&self, tag: u16) -> Result<&'a [u8], MetaError> {
        self.0[usize::from(tag) - 1].ok_or(MetaError::Missing { tag })
    }

    fn text(&self, tag: u16, len_max: usize) -> Result<&'a str, MetaError> {
        let bytes = self.get(tag)?;
        let text = core::str::from_utf8(bytes).map_err(|_| MetaError::Value { tag })?;
        if text.len() > len_max { Err(MetaError::Value { tag }) } else { Ok(text) }
    }

    /// A text that need not be there; blanks are as good as none.
    fn optional(&self, tag: u16, len_max: usize) -> Result<Option<&'a str>, MetaError> {
        match self.text(tag, len_max) {
            Err(MetaError::Missing { .. }) => Ok(None),
            other => other.map(|text| Some(text.trim()).filter(|text| !text.is_empty())),
        }
    }

    fn id(&self, tag: u16, text: &'a str) -> Result<&'a str, MetaError> {
        if is_id(text.as_bytes()) { Ok(text) } else { Err(MetaError::Value { tag }) }
    }

    fn word(&self, tag: u16) -> Result<u64, MetaError> {
        Ok(u64::from_le_bytes(self.get(tag)?.try_into().map_err(|_| MetaError::Value { tag })?))
    }

    fn meta(&self) -> Result<Meta<'a>, MetaError> {
        let id = self.id(ID, self.text(ID, ID_LEN_MAX)?)?;
        let backend = self.optional(BACKEND, ID_LEN_MAX)?.unwrap_or(id);
        let abi = self.word(ABI)?;
        Ok(Meta {
            id,
            vendor: self.text(VENDOR, TEXT_LEN_MAX)?,
            version: self.text(VERSION, TEXT_LEN_MAX)?,
            major: abi as u16,
            minor: (abi >> 16) as u16,
            draft: (abi >> 32) as u16,
            min_host_minor: (abi >> 48) as u16,
            flags: self.word(FLAGS)?,
            backend: self.id(BACKEND, backend)?,
            cpu_features: self.optional(CPU, TEXT_LEN_MAX)?.unwrap_or(""),
            licence: self.optional(LICENCE, TEXT_LEN_MAX)?,
        })
    }
}

/// What is wrong with a record.
#[allow(missing_docs)] // The fields are the values in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaError {
    /// Ends inside something.
    Short,
    /// Not a record of this kind.
    Magic,
    /// Longer than any record.
    Long { len: usize },
    /// Bytes that are not zero behind the record.
    Trailing,
    /// Tags not in rising order.
    Order { tag: u16 },
    /// A field is not there.
    Missing { tag: u16 },
    /// A field's bytes are not a value of it.
    Value { tag: u16 },
}

impl fmt::Display for MetaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetaError::Short => write!(f, "plugin record ends too early"),
            MetaError::Magic => write!(f, "plugin record has another magic"),
            MetaError::Long { len } => write!(f, "plugin record of {len} bytes, at most {RECORD_LEN_MAX}"),
            MetaError::Trailing => write!(f, "bytes behind the plugin record"),
            MetaError::Order { tag } => write!(f, "plugin record: tag {tag} out of order"),
            MetaError::Missing { tag } => write!(f, "plugin record: field {tag} is missing"),
            MetaError::Value { tag } => write!(f, "plugin record: field {tag} is not valid"),
        }
    }
}

impl core::error::Error for MetaError {}

#[cfg(test)]
mod tests;
