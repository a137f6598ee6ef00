//! The file of a capture: eight bytes that name the format, then records. A record is a kind (one byte), the length of
//! what follows (eight bytes), and its fields in the order in which they are declared here: numbers little-endian, bytes
//! behind their length. A file that ends in the middle of a record ends before it.

use alloc::vec::Vec;

/// The first eight bytes of a capture.
pub const MAGIC: [u8; 8] = *b"WHARFCP1";

/// A hash of bytes: SHA-256.
pub type Hash = [u8; 32];

/// What is wrong with a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// It does not begin with [`MAGIC`].
    NotACapture,
    /// The record that begins at this byte is of no kind that is known, or its fields do not fill it.
    Broken(u64),
}

impl core::fmt::Display for RecordError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            RecordError::NotACapture => f.write_str("not a capture, or one of another version"),
            RecordError::Broken(at) => write!(f, "the record at byte {at} is broken"),
        }
    }
}

impl core::error::Error for RecordError {}

/// A type of field.
trait Field<'a>: Sized {
    fn put(&self, to: &mut Vec<u8>);
    fn take(from: &mut &'a [u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl<'a> Field<'a> for $t {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
            fn take(from: &mut &'a [u8]) -> Option<Self> {
                let (number, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(<$t>::from_le_bytes(*number))
            }
        }
    )*};
}
numbers!(u16 u32 u64);

impl<'a> Field<'a> for &'a [u8] {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        to.extend_from_slice(self);
    }
    fn take(from: &mut &'a [u8]) -> Option<Self> {
        let len = usize::try_from(u64::take(from)?).ok()?;
        let (bytes, rest) = from.split_at_checked(len)?;
        *from = rest;
        Some(bytes)
    }
}

impl<'a, T: Field<'a> + Copy + Default, const N: usize> Field<'a> for [T; N] {
    fn put(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|one| one.put(to));
    }
    fn take(from: &mut &'a [u8]) -> Option<Self> {
        let mut all = [T::default(); N];
        for one in &mut all {
            *one = T::take(from)?;
        }
        Some(all)
    }
}

impl<'a> Field<'a> for Hash {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }
    fn take(from: &mut &'a [u8]) -> Option<Self> {
        let (hash, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(*hash)
    }
}

/// Declares the records with their numbers, and both ways through the file.
macro_rules! records {
    ($($(#[$doc:meta])* $number:literal $name:ident { $($(#[$fdoc:meta])* $field:ident: $t:ty,)* })*) => {
        /// A record. `device` is a number of the captured runtime; `op` counts operations over all queues.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Record<'a> {
            $($(#[$doc])* $name { $($(#[$fdoc])* $field: $t,)* },)*
        }

        impl<'a> Record<'a> {
            /// Adds the record to a file.
            pub fn encode(&self, to: &mut Vec<u8>) {
                let begin = to.len();
                match self {
                    $(Record::$name { $($field),* } => {
                        to.push($number);
                        to.extend_from_slice(&[0; 8]);
                        $($field.put(to);)*
                    })*
                }
                let len = (to.len() - begin - 9) as u64;
                to[begin + 1..begin + 9].copy_from_slice(&len.to_le_bytes());
            }

            fn decode(kind: u8, mut from: &'a [u8]) -> Option<Record<'a>> {
                let record = match kind {
                    $($number => Record::$name { $($field: <$t>::take(&mut from)?,)* },)*
                    _ => return None,
                };
                from.is_empty().then_some(record)
            }
        }
    };
}

records! {
    /// A device: its name and address space.
    1 Device {
        /// Its number.
        device: u16,
        /// Its address space.
        space: u16,
        /// Its name, UTF-8.
        name: &'a [u8],
    }
    /// Memory that a device gave out, or the process's that it was shown (`bytes` are its contents then).
    2 Allocated {
        /// The device.
        device: u16,
        /// First address.
        base: u64,
        /// Bytes.
        len: u64,
        /// Memory type as it was wanted, 0 for what was shown.
        kind: u32,
        /// Contents, where they are known.
        bytes: &'a [u8],
    }
    /// Memory goes back.
    3 Freed {
        /// The device.
        device: u16,
        /// First address.
        base: u64,
    }
    /// An image, once for each hash.
    4 Image {
        /// Hash of the bytes.
        hash: Hash,
        /// The image.
        bytes: &'a [u8],
    }
    /// A program is loaded.
    5 Loaded {
        /// The device.
        device: u16,
        /// The device's word for it.
        program: u64,
        /// The image.
        hash: Hash,
    }
    /// A program is unloaded.
    6 Unloaded {
        /// The device.
        device: u16,
        /// The program.
        program: u64,
    }
    /// A kernel was found.
    7 Kernel {
        /// The device.
        device: u16,
        /// The program.
        program: u64,
        /// The device's word for the kernel.
        native: u64,
        /// Its name.
        name: &'a [u8],
    }
    /// A global was found.
    8 Global {
        /// The device.
        device: u16,
        /// The program.
        program: u64,
        /// First address.
        base: u64,
        /// Bytes.
        len: u64,
        /// Its name.
        name: &'a [u8],
    }
    /// Bytes from the host or a file to device memory.
    9 Put {
        /// The operation; 0 for what came by a mapping or a file.
        op: u64,
        /// The device.
        device: u16,
        /// Target address.
        to: u64,
        /// The bytes.
        bytes: &'a [u8],
    }
    /// A fill.
    10 Fill {
        /// The operation.
        op: u64,
        /// The device.
        device: u16,
        /// Target address.
        to: u64,
        /// Bytes.
        len: u64,
        /// The pattern.
        pattern: &'a [u8],
    }
    /// A copy between device memory.
    11 Copy {
        /// The operation.
        op: u64,
        /// Devices of source and target.
        devices: [u16; 2],
        /// Source address.
        from: u64,
        /// Target address.
        to: u64,
        /// Bytes.
        len: u64,
    }
    /// A launch.
    12 Launch {
        /// The operation.
        op: u64,
        /// The device.
        device: u16,
        /// The device's word for the kernel.
        kernel: u64,
        /// Groups.
        groups: [u32; 3],
        /// Work-items of a group.
        size: [u32; 3],
        /// Bytes of dynamic shared memory.
        shared: u32,
        /// Packed arguments, with addresses of the captured run.
        args: &'a [u8],
    }
    /// Device memory is read by the host.
    13 Get {
        /// The operation.
        op: u64,
        /// The device.
        device: u16,
        /// Source address.
        from: u64,
        /// Bytes.
        len: u64,
    }
    /// What the host saw of a [`Record::Get`].
    14 Result {
        /// The operation.
        op: u64,
        /// Hash of the bytes.
        hash: Hash,
    }
    /// Operations from this one on, so many, were not taken after all.
    15 Untaken {
        /// The first.
        op: u64,
        /// How many.
        count: u64,
    }
}

/// The records of a file, in order.
pub struct Records<'a> {
    at: u64,
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// The records of `file`.
    ///
    /// # Errors
    /// [`RecordError::NotACapture`].
    pub fn new(file: &'a [u8]) -> Result<Self, RecordError> {
        let rest = file.strip_prefix(&MAGIC).ok_or(RecordError::NotACapture)?;
        Ok(Records { at: MAGIC.len() as u64, rest })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let ([kind], rest) = self.rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        let (fields, rest) = rest.split_at_checked(len)?;
        let broken = RecordError::Broken(self.at);
        (self.at, self.rest) = (self.at + 9 + len as u64, rest);
        Some(Record::decode(*kind, fields).ok_or(broken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const SOME: [Record<'static>; 4] = [
        Record::Device { device: 3, space: 1, name: b"null:0" },
        Record::Copy { op: 7, devices: [0, 1], from: 1 << 40, to: 2, len: 3 },
        Record::Result { op: 9, hash: [5; 32] },
        Record::Put { op: 0, device: 0, to: 1, bytes: b"" },
    ];

    fn file() -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        SOME.iter().for_each(|record| record.encode(&mut file));
        file
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let file = file();
        let all: Result<Vec<_>, _> = Records::new(&file).unwrap().collect();
        assert_eq!(all, Ok(SOME.to_vec()));
    }

    #[test]
    fn a_file_that_is_cut_ends_before_the_record() {
        let file = file();
        for len in MAGIC.len()..file.len() {
            let all: Vec<_> = Records::new(&file[..len]).unwrap().collect();
            assert!(all.len() < SOME.len() && all.iter().zip(&SOME).all(|(one, other)| *one == Ok(*other)));
        }
    }

    #[test]
    fn what_is_no_record_is_said() {
        assert_eq!(Records::new(b"WHARFCP0").err(), Some(RecordError::NotACapture));
        let mut file = MAGIC.to_vec();
        Record::Freed { device: 1, base: 2 }.encode(&mut file);
        for (at, byte) in [(8, 99), (8, 6 + 1)] {
            let mut bad = file.clone();
            bad[at] = byte;
            assert_eq!(Records::new(&bad).unwrap().next(), Some(Err(RecordError::Broken(8))));
        }
        assert_eq!(Records::new(&MAGIC).unwrap().collect::<Vec<_>>(), vec![]);
    }
}
