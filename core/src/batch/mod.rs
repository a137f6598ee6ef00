//! Batches: load, gather and scatter of many entries over several timelines.
//!
//! Phase one ([`check`]) resolves and validates every entry before anything is submitted; nothing is stored per entry.
//! Phase two ([`Batch`]) asks for the entries again in the same order, cuts them into chunks ([`Plan`]) and submits
//! those to the least loaded queue. The caller's signals fire, or fail with the first error, only after every chunk
//! that was issued has ended: nothing writes into a target after its batch has failed.

mod check;
mod job;
mod plan;
mod way;

pub use check::{CHECK_QUADRATIC_MAX, Totals, check};
pub use job::{Batch, BatchOptions, Control, FLIGHT_BYTES_MAX, POINTS_MAX};
pub use plan::{BUNDLE_MAX, CHUNK_FAR_MIN, CHUNK_MAX, CHUNK_MIN, Chunk, LANES_MAX, OP_COST, Plan};
pub use way::{STAGE_MIN, Staging};

use crate::{
    bits::Access,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    record::Record,
};

/// One entry of a batch as its caller names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Name of the parameter.
    pub key: &'a [u8],
    /// First byte, from the parameter's start.
    pub parameter_offset: u64,
    /// First byte, from the buffer's start.
    pub buffer_offset: u64,
    /// Bytes.
    pub len: u64,
}

/// Where a parameter is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// In memory of the process that stays there: a mapped file, flash.
    Memory {
        /// First byte.
        address: u64,
        /// Bytes.
        len: u64,
        /// How it was opened.
        access: Access,
    },
    /// In a file that a backend of files reads and writes.
    File {
        /// That backend's word for the file.
        file: u64,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// How it was opened.
        access: Access,
    },
    /// A pattern again and again.
    Splat {
        /// The pattern.
        pattern: [u8; 16],
        /// Its length: 1, 2, 4, 8 or 16.
        pattern_len: u8,
        /// Bytes in all.
        len: u64,
    },
}

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From parameters into buffers: load and gather.
    In,
    /// From buffers into parameters: scatter.
    Out,
}

/// The part of a root allocation that a batch works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The root.
    pub root: Handle<Record>,
    /// First byte, from the root's start.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// The stored side of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From this address on.
    Memory(u64),
    /// In a file, from this offset on.
    File {
        /// The word of the backend of files.
        file: u64,
        /// First byte.
        offset: u64,
    },
    /// In a root on another device, from this offset on.
    Remote {
        /// That root.
        root: Handle<Record>,
        /// First byte.
        offset: u64,
    },
    /// The pattern, rotated so that it begins with the piece's first byte.
    Splat {
        /// The pattern.
        pattern: [u8; 16],
        /// Its length.
        len: u8,
    },
}

/// An entry after it was resolved and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where the parameter's bytes are.
    pub stored: Side,
    /// The root of the buffer.
    pub root: Handle<Record>,
    /// First byte, from the root's start.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// The entries of a batch. Asked in both phases; the answers must not change.
pub trait Pieces {
    /// How many there are.
    fn count(&self) -> u32;
    /// Entry `index`, resolved ([`resolve`]).
    fn piece(&self, index: u32) -> Result<Piece, Fault>;
    /// A part of an entry is about to be moved: its bytes are made ready, if anything is to be done for that. May wait for
    /// a file.
    ///
    /// # Errors
    /// What keeps the bytes from being moved; the batch fails with it.
    fn ready(&self, part: &Piece) -> Result<(), Fault> {
        let _ = part;
        Ok(())
    }
    /// Whether the entries' targets cannot overlap by their making (each has a root of its own).
    fn disjoint(&self) -> bool {
        false
    }
}

/// An item and what its key stands for, checked against each other and against the buffer.
///
/// # Errors
/// `PermissionDenied` if the parameter cannot be read (or written, for [`Direction::Out`]; a splat can only be read);
/// `OutOfRange` if the item ends past the parameter or past the buffer.
pub fn resolve(
    item: &Item<'_>,
    stored: &Stored,
    target: &Target,
    direction: Direction,
) -> Result<Piece, Fault> {
    let (len, access) = match *stored {
        Stored::Memory { len, access, .. } | Stored::File { len, access, .. } => (len, access),
        Stored::Splat { len, .. } => (len, Access::READ),
    };
    let needed = match direction {
        Direction::In => Access::READ,
        Direction::Out => Access::WRITE,
    };
    if !access.contains(needed) {
        let bits = [needed.bits() as u64, access.bits() as u64];
        return Err(Fault::caller(Kind::PermissionDenied, Site::Resolve, Why::Bits, bits));
    }
    inside(item.parameter_offset, item.len, len)?;
    inside(item.buffer_offset, item.len, target.len)?;
    let side = match *stored {
        Stored::Memory { address, .. } => Side::Memory(address + item.parameter_offset),
        Stored::File { file, offset, .. } => Side::File { file, offset: offset + item.parameter_offset },
        Stored::Splat { mut pattern, pattern_len, .. } => {
            let step = (pattern_len as usize).clamp(1, 16);
            pattern[..step].rotate_left((item.parameter_offset % step as u64) as usize);
            Side::Splat { pattern, len: step as u8 }
        }
    };
    Ok(Piece { stored: side, root: target.root, offset: target.offset + item.buffer_offset, len: item.len })
}

fn inside(offset: u64, len: u64, whole: u64) -> Result<(), Fault> {
    match offset.checked_add(len) {
        Some(end) if end <= whole => Ok(()),
        Some(end) => Err(Fault::caller(Kind::OutOfRange, Site::Resolve, Why::PastEnd, [end, whole])),
        None => Err(Fault::caller(Kind::OutOfRange, Site::Resolve, Why::Overflow, [offset, len])),
    }
}
