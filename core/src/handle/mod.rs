//! Handles and the tables behind them: slots that never move and are never given back, with a generation that tells
//! whose turn it is. Fixed or growing is a question of what [`Env::grow`] answers, not of another type.
//!
//! A lookup takes no lock: it compares the generation. What keeps the object after the lookup is the object's own
//! business: records are atomics that are copied out and the generation is looked at again; lanes are entered by their
//! lock and the generation is looked at again inside; waiters pin.
//!
//! # Safety
//! Blocks that `Env::grow` gave are written whole before their address is published and live for ever, so a shared
//! reference into them is good for ever.
#![allow(unsafe_code)]

mod pins;

pub(crate) use pins::Pins;

use crate::{
    env::{Env, Lock, Mutex},
    sync::{AtomicPtr, AtomicU32},
};
use core::{
    alloc::Layout,
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
    ptr,
    sync::atomic::Ordering::*,
};

/// Most slots of one table: 24 bits name a slot.
pub const SLOTS_MAX: u32 = 1 << 24;
/// Blocks a table grows by; each is as large as all before it together.
const BLOCKS: usize = 24;

/// What lives in a slot: built once, emptied and filled again through its own atomics or locks.
pub trait Body: Sync + 'static {
    /// An empty one.
    const NEW: Self;
    /// Number of the kind, 1 to 15; a handle of another kind is never taken for this one.
    const KIND: u8;
}

/// A place in a table.
pub struct Slot<T> {
    generation: AtomicU32,
    next: AtomicU32,
    body: T,
}

impl<T: Body> Slot<T> {
    /// An empty slot.
    pub const NEW: Self = Slot { generation: AtomicU32::new(0), next: AtomicU32::new(0), body: T::NEW };
}

/// Names an object of kind `T`: kind and realm 8 bits, slot 24, generation 32. Odd generations are live, so 0 is never
/// a handle. The realm tells runtimes of one process apart.
pub struct Handle<T>(u64, PhantomData<fn() -> T>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Handle<T> {}
impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Handle<T> {}
impl<T> Hash for Handle<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

impl<T> Handle<T> {
    /// The handle that never names anything.
    pub const NULL: Self = Handle(0, PhantomData);
    /// The number that crosses C.
    pub const fn raw(self) -> u64 {
        self.0
    }
    /// Any number; whether it names something is found out on use.
    pub const fn from_raw(raw: u64) -> Self {
        Handle(raw, PhantomData)
    }
    pub(crate) const fn slot(self) -> u32 {
        (self.0 >> 32) as u32 & (SLOTS_MAX - 1)
    }
    const fn generation(self) -> u32 {
        self.0 as u32
    }
    const fn tag(self) -> u8 {
        (self.0 >> 56) as u8
    }
}

struct Free {
    head: u32,
}

/// Slots of one kind.
pub struct Table<L, T: 'static> {
    first: &'static [Slot<T>],
    more: [AtomicPtr<Slot<T>>; BLOCKS],
    used: AtomicU32,
    free: Mutex<L, Free>,
    tag: u8,
}

impl<L: Lock, T: Body> Table<L, T> {
    /// A table that begins with `first`, whose length is a power of two. `realm`: 0 to 15, one for each runtime.
    pub const fn new(first: &'static [Slot<T>], realm: u8) -> Self {
        assert!(first.len().is_power_of_two(), "capacities are powers of two");
        assert!(T::KIND >= 1 && T::KIND <= 15 && realm <= 15, "kind and realm take four bits each");
        Self {
            first,
            more: [const { AtomicPtr::new(ptr::null_mut()) }; BLOCKS],
            used: AtomicU32::new(0),
            free: Mutex::new(Free { head: 0 }),
            tag: T::KIND | realm << 4,
        }
    }

    /// Block and index of a slot: block 0 is `first`, block k > 0 holds `first.len() << (k - 1)` slots.
    fn place(&self, slot: u32) -> (usize, usize) {
        let shift = self.first.len().trailing_zeros();
        match slot >> shift {
            0 => (0, slot as usize),
            folds => {
                let block = folds.ilog2();
                (block as usize + 1, (slot - (1 << (block + shift))) as usize)
            }
        }
    }

    #[inline]
    fn at(&self, slot: u32) -> Option<&'static Slot<T>> {
        match self.first.get(slot as usize) {
            Some(slot) => Some(slot),
            None => self.grown(slot),
        }
    }

    /// A slot past the first block.
    fn grown(&self, slot: u32) -> Option<&'static Slot<T>> {
        let (block, index) = self.place(slot);
        let base = self.more.get(block - 1)?.load(Acquire);
        if base.is_null() {
            return None;
        }
        // SAFETY: a published block has `first.len() << (block - 1)` written slots, and `place` keeps the index below.
        let slot = unsafe { base.add(index) };
        // SAFETY: the slot was written before its block was published, and blocks are never given back.
        Some(unsafe { &*slot })
    }

    /// The body, if the handle's turn is on.
    #[inline]
    pub fn get(&self, handle: Handle<T>) -> Option<&'static T> {
        if handle.tag() != self.tag || handle.generation() & 1 == 0 {
            return None;
        }
        let slot = self.at(handle.slot())?;
        (slot.generation.load(Acquire) == handle.generation()).then_some(&slot.body)
    }

    /// Whether the handle's turn is on.
    #[inline]
    pub fn live(&self, handle: Handle<T>) -> bool {
        self.get(handle).is_some()
    }

    /// The body in a slot, whoever's turn it is.
    pub(crate) fn body(&self, slot: u32) -> Option<&'static T> {
        self.at(slot).map(|s| &s.body)
    }

    /// The handle whose turn it is in a slot.
    pub(crate) fn current(&self, slot: u32) -> Option<Handle<T>> {
        let generation = self.at(slot)?.generation.load(Acquire);
        (generation & 1 == 1).then(|| self.handle(slot, generation))
    }

    fn handle(&self, slot: u32, generation: u32) -> Handle<T> {
        Handle((self.tag as u64) << 56 | (slot as u64) << 32 | generation as u64, PhantomData)
    }

    /// How many slots have ever been used; all live ones are below.
    pub fn used(&self) -> u32 {
        self.used.load(Acquire)
    }

    /// A free slot, prepared by `fill` before anyone can reach it; `None` at capacity.
    pub fn insert<E: Env>(&self, fill: impl FnOnce(&'static T, Handle<T>)) -> Option<Handle<T>> {
        let index = self.take::<E>()?;
        let slot = self.at(index)?;
        let handle = self.handle(index, slot.generation.load(Relaxed).wrapping_add(1));
        fill(&slot.body, handle);
        slot.generation.store(handle.generation(), Release);
        Some(handle)
    }

    fn take<E: Env>(&self) -> Option<u32> {
        self.free.with(|free| {
            if free.head != 0 {
                let index = free.head - 1;
                free.head = self.at(index)?.next.load(Relaxed);
                return Some(index);
            }
            let used = self.used.load(Relaxed);
            if used == SLOTS_MAX {
                return None;
            }
            if self.at(used).is_none() {
                self.grow::<E>(used)?;
            }
            self.used.store(used + 1, Release);
            Some(used)
        })
    }

    /// Ends the turn: nobody new gets in. `false` if it was over. The slot is used again only after it was given back.
    pub fn end(&self, handle: Handle<T>) -> bool {
        let ended = handle.generation().wrapping_add(1);
        handle.tag() == self.tag
            && handle.generation() & 1 == 1
            && self.at(handle.slot()).is_some_and(|slot| {
                slot.generation.compare_exchange(handle.generation(), ended, AcqRel, Relaxed).is_ok()
            })
    }

    /// Gives an ended slot to the next turn. Once for each end.
    pub(crate) fn reuse(&self, index: u32) {
        let Some(slot) = self.at(index) else { return };
        if slot.generation.load(Relaxed) == u32::MAX - 1 {
            return; // All generations are used up: the slot is retired for good.
        }
        self.free.with(|free| {
            slot.next.store(free.head, Relaxed);
            free.head = index + 1;
        });
    }

    fn grow<E: Env>(&self, slot: u32) -> Option<()> {
        let (block, _) = self.place(slot);
        let count = self.first.len() << (block - 1);
        let cell = self.more.get(block - 1)?;
        let base = E::grow(Layout::array::<Slot<T>>(count).ok()?)?.cast::<Slot<T>>();
        for i in 0..count {
            // SAFETY: `grow` gave room for `count` slots.
            let slot = unsafe { base.add(i) };
            // SAFETY: nobody else knows the block yet.
            unsafe { slot.write(Slot::NEW) };
        }
        cell.store(base.as_ptr(), Release);
        Some(())
    }
}
