//! Memory. With shared virtual memory an address is a pointer; without, a block is a buffer at an address that this
//! backend made up, in an address space of the device's own, and an address is looked up where it is used.
//!
//! # Safety
//! A base in the table of shared memory came from `svm_alloc` of the card's context and is given back by whoever takes it
//! out.
#![allow(unsafe_code)]

use crate::{
    device::{ALIGN, Card, OpenclDevice},
    ffi::{Context, Mem},
    text::with_text,
};
use std::{
    collections::BTreeMap,
    ptr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use wharf_core::{
    device::{Block, HostAccess, Want},
    fault::{Blame, Fault, Kind, Site, Why},
};

/// Largest alignment.
const ALIGN_MAX: u64 = 1 << 30;
/// First address of buffers: no pointer of a process is so large, so a mistake is found.
const BASE: u64 = 1 << 56;

/// What a device has given out.
pub(crate) struct Memory {
    live: AtomicU64,
    held: Mutex<Held>,
    kind: Store,
}

/// How the device's memory is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    /// Addresses are pointers.
    Shared {
        /// The host may touch them too.
        fine: bool,
    },
    /// Addresses are looked up.
    Buffers,
}

#[derive(Default)]
struct Held {
    /// By address: what the driver gave, which may lie before it, and the length.
    shared: BTreeMap<u64, (Address, u64)>,
    buffers: BTreeMap<u64, Buffer>,
    next: u64,
}

/// What the driver gave.
struct Address(*mut std::ffi::c_void);

// SAFETY: an address of memory that no thread owns.
unsafe impl Send for Address {}

struct Buffer {
    mem: Mem,
    len: u64,
}

impl Memory {
    pub(crate) fn shared(fine: bool) -> Memory {
        Memory { live: AtomicU64::new(0), held: Mutex::default(), kind: Store::Shared { fine } }
    }

    pub(crate) fn buffers() -> Memory {
        let held = Held { next: BASE, ..Held::default() };
        Memory { live: AtomicU64::new(0), held: Mutex::new(held), kind: Store::Buffers }
    }

    pub(crate) fn kind(&self) -> Store {
        self.kind
    }

    /// Bytes that live.
    pub(crate) fn live(&self) -> u64 {
        self.live.load(Relaxed)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn allocate(&self, card: &Card, want: &Want) -> Result<Block, Fault> {
        let refuse = |why, values| Err(Fault::caller(Kind::InvalidArgument, Site::Allocate, why, values));
        if want.len == 0 {
            return refuse(Why::Zero, [0, 0]);
        }
        let align = want.align.max(ALIGN.into());
        if !align.is_power_of_two() {
            return refuse(Why::Multiple, [want.align, ALIGN.into()]);
        }
        if align > ALIGN_MAX {
            return refuse(Why::Limit, [want.align, ALIGN_MAX]);
        }
        let context = card.context(Site::Allocate)?;
        let base = match self.kind {
            Store::Shared { fine } => self.allocate_shared(context, fine, want.len, align)?,
            Store::Buffers => self.allocate_buffer(context, want.len, align)?,
        };
        self.live.fetch_add(want.len, Relaxed);
        Ok(Block { base, len: want.len, native: 0 })
    }

    /// The driver aligns to its widest type, 128 bytes; what needs more gets so much more.
    fn allocate_shared(&self, context: &Context, fine: bool, len: u64, align: u64) -> Result<u64, Fault> {
        let slack = if align > ALIGN.into() { align } else { 0 };
        let whole = len.checked_add(slack).and_then(|len| usize::try_from(len).ok());
        let given = whole.map_or(ptr::null_mut(), |whole| context.svm_alloc(fine, whole));
        if given.is_null() {
            let fault =
                Fault::new(Kind::ResourceExhausted, Blame::Driver, Site::Allocate, Why::Memory, [len, 0]);
            return Err(with_text(fault, format!("clSVMAlloc gave no memory for {len} bytes")));
        }
        let base = (given.expose_provenance() as u64).next_multiple_of(align);
        self.held().shared.insert(base, (Address(given), len));
        Ok(base)
    }

    /// Buffers begin where the device aligns them, so the alignment of an address that means nothing is ours to give.
    fn allocate_buffer(&self, context: &Context, len: u64, align: u64) -> Result<u64, Fault> {
        let exhausted = Fault::full(Site::Allocate, len);
        let whole = usize::try_from(len).map_err(|_| exhausted)?;
        let mem = context.buffer(whole).map_err(|refusal| refusal.fault(Site::Allocate))?;
        let mut held = self.held();
        let base = held.next.checked_next_multiple_of(align).ok_or(exhausted)?;
        // A gap, so that an address just past a block is in none. Addresses do not come again.
        held.next = base.checked_add(len + 1).ok_or(exhausted)?;
        held.buffers.insert(base, Buffer { mem, len });
        Ok(base)
    }

    pub(crate) fn free(&self, card: &Card, block: &Block) -> Result<(), Fault> {
        let unknown = Fault::caller(Kind::InvalidArgument, Site::Free, Why::Address, [block.base, 0]);
        let len = match self.kind {
            Store::Shared { .. } => {
                let context = card.context(Site::Free)?;
                let (given, len) = self.held().shared.remove(&block.base).ok_or(unknown)?;
                // SAFETY: taken out of the table (module rule); core frees what no queue uses any more.
                unsafe { context.svm_free(given.0) };
                len
            }
            Store::Buffers => self.held().buffers.remove(&block.base).ok_or(unknown)?.len,
        };
        self.live.fetch_sub(len, Relaxed);
        Ok(())
    }

    /// Whether an address lies in shared memory that was given out here.
    pub(crate) fn holds(&self, at: u64) -> bool {
        self.held().shared.range(..=at).next_back().is_some_and(|(base, (_, len))| at - base < *len)
    }

    /// The buffer that `len` bytes at an address lie in, and where.
    pub(crate) fn buffer(&self, at: u64, len: u64, site: Site) -> Result<(Mem, usize), Fault> {
        let held = self.held();
        let unknown = Fault::caller(Kind::NotFound, site, Why::Address, [at, 0]);
        let (base, buffer) = held.buffers.range(..=at).next_back().ok_or(unknown)?;
        let offset = at - base;
        match offset.checked_add(len) {
            Some(end) if end <= buffer.len => Ok((buffer.mem.clone(), offset as usize)),
            _ => Err(unknown),
        }
    }

    /// The buffer that begins at an address, or a view of what follows one inside; `None`: no live address.
    pub(crate) fn argument(&self, at: u64, align: u64) -> Result<Option<Mem>, Fault> {
        let held = self.held();
        let Some((base, buffer)) = held.buffers.range(..=at).next_back() else { return Ok(None) };
        let offset = at - base;
        if offset >= buffer.len {
            return Ok(None);
        }
        if offset == 0 {
            return Ok(Some(buffer.mem.clone()));
        }
        if !offset.is_multiple_of(align) {
            let fault = Fault::caller(Kind::InvalidArgument, Site::Launch, Why::Multiple, [offset, align]);
            let why = "a kernel gets a part of a buffer only where the device can begin one";
            return Err(with_text(fault, format!("{why}: {offset} is not a multiple of {align}")));
        }
        let part = buffer.mem.part(offset as usize, (buffer.len - offset) as usize);
        part.map(Some).map_err(|refusal| refusal.fault(Site::Launch))
    }

    /// Gives all back, before the context goes.
    pub(crate) fn clear(&mut self, context: &Context) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (given, _) in std::mem::take(&mut held.shared).into_values() {
            // SAFETY: taken out of the table (module rule); the device goes, and with it every use of its memory.
            unsafe { context.svm_free(given.0) };
        }
        held.buffers.clear();
    }
}

impl HostAccess for OpenclDevice {
    fn map(&self, block: &Block, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        if self.card.memory.kind() != (Store::Shared { fine: true }) {
            return Err(Fault::backend(Kind::Unsupported, Site::Map, Why::Unknown, [0; 2]));
        }
        let end = offset.checked_add(len).filter(|end| *end <= block.len);
        if end.is_none() {
            let values = [offset.saturating_add(len), block.len];
            return Err(Fault::caller(Kind::OutOfRange, Site::Map, Why::PastEnd, values));
        }
        Ok(ptr::with_exposed_provenance_mut((block.base + offset) as usize))
    }

    // A mapping is the memory itself.
    fn unmap(&self, _: &Block, _: u64, _: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn sync(&self, _: &Block, _: u64, _: u64, _: bool) -> Result<(), Fault> {
        Ok(())
    }

    /// Copies reach process memory as it is, so there is nothing to prepare. A kernel reaches it only where the driver
    /// shares all of the process' memory.
    fn register(&self, host: *mut u8, len: u64, access: u32) -> Result<Block, Fault> {
        let base = host.expose_provenance() as u64;
        if base == 0 || len == 0 {
            let which = u64::from(base != 0);
            return Err(Fault::caller(Kind::InvalidArgument, Site::Register, Why::Zero, [which, 0]));
        }
        if base.checked_add(len).is_none() {
            return Err(Fault::caller(Kind::InvalidArgument, Site::Register, Why::Overflow, [base, len]));
        }
        Ok(Block { base, len, native: access.into() })
    }

    fn unregister(&self, _: &Block) -> Result<(), Fault> {
        Ok(())
    }
}
