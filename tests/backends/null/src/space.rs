//! The device's address space: blocks of host memory at addresses that mean nothing to the process, and mappings,
//! which are copies.
//!
//! # Safety
//! A mapping is handed out as an address of its copy, which the map keeps until `unmap`; the host and `sync` use its
//! bytes in turn, by the rule that makes it not coherent. Blocks themselves are only touched under the space's lock.
#![allow(unsafe_code)]

use std::{boxed::Box, collections::BTreeMap, ptr::NonNull, slice, vec};
use wharf_core::fault::{Fault, Kind, Site, Why};

pub(crate) struct Space {
    next: u64,
    memory_len: u64,
    used: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
    /// By block and offset: length and copy.
    mappings: BTreeMap<(u64, u64), Mapping>,
}

/// A host copy of a part of a block.
struct Mapping(NonNull<[u8]>);

// SAFETY: a box's pointer; who touches the bytes when is the rule of mappings, not of threads.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `map` leaked this box, and nobody else takes it back.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

fn unknown(site: Site, address: u64) -> Fault {
    Fault::caller(Kind::NotFound, site, Why::Address, [address, 0])
}

impl Space {
    pub(crate) fn new(base: u64, memory_len: u64) -> Self {
        Space { next: base, memory_len, used: 0, blocks: BTreeMap::new(), mappings: BTreeMap::new() }
    }

    pub(crate) fn free_len(&self) -> u64 {
        self.memory_len - self.used
    }

    /// Addresses are never used again, so an access after the free is found.
    pub(crate) fn allocate(&mut self, len: u64, align: u64) -> Result<u64, Fault> {
        let base = self.next.checked_next_multiple_of(align);
        let (Some(base), true) = (base, len != 0 && len <= self.free_len()) else {
            let values = [len, self.free_len()];
            return Err(Fault::backend(Kind::ResourceExhausted, Site::Allocate, Why::Limit, values));
        };
        self.next = base + len;
        self.used += len;
        self.blocks.insert(base, vec![0; len as usize].into_boxed_slice());
        Ok(base)
    }

    pub(crate) fn free(&mut self, base: u64) -> Result<(), Fault> {
        let block = self.blocks.remove(&base).ok_or(unknown(Site::Free, base))?;
        self.used -= block.len() as u64;
        self.mappings.retain(|(of, _), _| *of != base);
        Ok(())
    }

    /// The bytes at an address of the device.
    pub(crate) fn bytes(&mut self, at: u64, len: u64, site: Site) -> Result<&mut [u8], Fault> {
        let (base, block) = self.blocks.range_mut(..=at).next_back().ok_or(unknown(site, at))?;
        let offset = at - base;
        let end = offset.checked_add(len).filter(|end| *end <= block.len() as u64);
        let Some(end) = end else {
            let values = [offset.saturating_add(len), block.len() as u64];
            return Err(Fault::caller(Kind::OutOfRange, site, Why::PastEnd, values));
        };
        Ok(&mut block[offset as usize..end as usize])
    }

    pub(crate) fn map(&mut self, base: u64, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        let copy: Box<[u8]> = self.bytes(base + offset, len, Site::Map)?.into();
        if self.mappings.contains_key(&(base, offset)) {
            return Err(Fault::caller(Kind::AlreadyExists, Site::Map, Why::Address, [base + offset, 0]));
        }
        let copy = NonNull::from(Box::leak(copy));
        self.mappings.insert((base, offset), Mapping(copy));
        Ok(copy.as_ptr().cast())
    }

    /// A mapping that has ended already is none, which is no error.
    pub(crate) fn unmap(&mut self, base: u64, offset: u64) {
        self.mappings.remove(&(base, offset));
    }

    /// Moves a part of a mapping, which need not begin where the mapping does.
    pub(crate) fn sync(&mut self, base: u64, offset: u64, len: u64, to_device: bool) -> Result<(), Fault> {
        let found = self.mappings.range(..=(base, offset)).next_back();
        let Some((&(_, start), mapping)) = found.filter(|((of, _), _)| *of == base) else {
            return Err(unknown(Site::Flush, base + offset));
        };
        let (at, skip) = (mapping.0, (offset - start) as usize);
        if skip as u64 + len > at.len() as u64 {
            let values = [skip as u64 + len, at.len() as u64];
            return Err(Fault::caller(Kind::OutOfRange, Site::Flush, Why::PastEnd, values));
        }
        let block = self.bytes(base + offset, len, Site::Flush)?;
        // SAFETY: `skip` is inside the mapping.
        let host = unsafe { at.cast::<u8>().add(skip) };
        // SAFETY: `skip + len` is inside the mapping, whose copy lives until `unmap`; the host does not touch what it
        // asks to be moved meanwhile.
        let host = unsafe { slice::from_raw_parts_mut(host.as_ptr(), len as usize) };
        if to_device {
            block.copy_from_slice(host)
        } else {
            host.copy_from_slice(block)
        }
        Ok(())
    }
}
