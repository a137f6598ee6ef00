//! What core knows of a piece of memory, and the address spaces that records lie in.
//!
//! # Safety
//! `release` is null or was stored from a [`ReleaseFn`] by `set_release`.
#![allow(unsafe_code)]

use crate::{
    device::Block,
    env::Env,
    handle::{Body, Pins},
    ranges::Ranges,
    runtime::{LateLink, ReleaseFn},
    sync::{AtomicPtr, AtomicU32, AtomicUsize},
    word::Word64,
};
use core::{ptr, sync::atomic::Ordering::*};

/// The life of a record: (pending, for memory allocated in the order of a queue, until that is reached), live, (closing,
/// once its return is queued), then late (freed by its owner while work may still use it), then freeing (the backend's
/// own free runs), then gone, or kept in a pool. A refused free makes it live again.
pub mod state {
    /// Not yet entered.
    pub const RESERVED: u32 = 0;
    /// Allocated in the order of a queue that has not come there yet: operations may name it, the host may not touch it.
    pub const PENDING: u32 = 1;
    /// In use.
    pub const LIVE: u32 = 2;
    /// To be given back in the order of a queue that has not come there yet.
    pub const CLOSING: u32 = 3;
    /// Freed by its owner; waits for the last use.
    pub const LATE: u32 = 4;
    /// The backend's free runs.
    pub const FREEING: u32 = 5;
    /// Given back.
    pub const GONE: u32 = 6;
    /// Kept for the next allocation of its kind.
    pub const POOLED: u32 = 7;
    /// A registration that was to end and went to another record, since the range was registered again.
    pub const MOVED: u32 = 8;
}

/// Where memory came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Origin {
    /// The device's allocator.
    Own = 0,
    /// Host memory of the caller, with a release callback.
    Wrapped = 1,
    /// Host memory shown to the device.
    Registered = 2,
    /// A part of other memory.
    Part = 3,
}

/// A piece of memory. All fields are atomics: a reader copies them and looks at the generation again.
pub struct Record {
    pub(crate) state: AtomicU32,
    /// Buffers that share the root; registrations of the same range.
    pub(crate) refs: AtomicU32,
    pub(crate) base: Word64,
    pub(crate) len: Word64,
    pub(crate) native: Word64,
    pub(crate) device: AtomicU32,
    /// Slot of the space + 1; 0 for memory without an address.
    pub(crate) space: AtomicU32,
    pub(crate) kind: AtomicU32,
    pub(crate) access: AtomicU32,
    pub(crate) usage: AtomicU32,
    pub(crate) origin: AtomicU32,
    /// How it is given back: a function of the runtime's device type, and its argument.
    pub(crate) undo: AtomicUsize,
    pub(crate) user: AtomicUsize,
    release: AtomicPtr<()>,
    release_user: AtomicPtr<()>,
    /// Of memory allocated in the order of a queue: where that is reached. 0: allocated at once.
    pub(crate) commit_timeline: Word64,
    pub(crate) commit_value: Word64,
    /// Who looks at more than one field, or changes one; its turn ends when nobody does.
    pub(crate) pins: Pins,
    pub(crate) late: LateLink,
    /// The memory that this is a part of; 0: none.
    pub(crate) whole: Word64,
}

impl Body for Record {
    const NEW: Self = Record {
        state: AtomicU32::new(state::RESERVED),
        refs: AtomicU32::new(0),
        base: Word64::new(0),
        len: Word64::new(0),
        native: Word64::new(0),
        device: AtomicU32::new(0),
        space: AtomicU32::new(0),
        kind: AtomicU32::new(0),
        access: AtomicU32::new(0),
        usage: AtomicU32::new(0),
        origin: AtomicU32::new(0),
        undo: AtomicUsize::new(0),
        user: AtomicUsize::new(0),
        release: AtomicPtr::new(ptr::null_mut()),
        release_user: AtomicPtr::new(ptr::null_mut()),
        commit_timeline: Word64::new(0),
        commit_value: Word64::new(0),
        pins: Pins::NEW,
        late: LateLink::NEW,
        whole: Word64::new(0),
    };
    const KIND: u8 = 3;
}

impl Record {
    pub(crate) fn block(&self) -> Block {
        Block { base: self.base.get(), len: self.len.get(), native: self.native.get() }
    }

    /// From one state to the next; `false` if somebody was there first.
    pub(crate) fn go(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, AcqRel, Acquire).is_ok()
    }

    /// One reference more; `false` if none is left to join.
    pub(crate) fn retain(&self) -> bool {
        self.refs.fetch_update(AcqRel, Relaxed, |n| if n > 0 { n.checked_add(1) } else { None }).is_ok()
    }

    /// One reference less, and whether that was the last; `None` if there was none.
    pub(crate) fn release(&self) -> Option<bool> {
        let before = self.refs.fetch_update(AcqRel, Relaxed, |n| n.checked_sub(1));
        before.ok().map(|n| n == 1)
    }

    /// Notes what to call when wrapped memory is let go of.
    pub(crate) fn set_release(&self, (release, user): (ReleaseFn, *mut ())) {
        self.release_user.store(user, Relaxed);
        self.release.store(release as *mut (), Release);
    }

    /// What to call; once.
    pub(crate) fn take_release(&self) -> Option<(ReleaseFn, *mut ())> {
        let release = self.release.swap(ptr::null_mut(), AcqRel);
        if release.is_null() {
            return None;
        }
        // SAFETY: not null, so it was stored by `set_release` from a `ReleaseFn`.
        Some((
            unsafe { core::mem::transmute::<*mut (), ReleaseFn>(release) },
            self.release_user.load(Relaxed),
        ))
    }

    /// Whether its memory has gone back to the backend, or is on the way.
    pub(crate) fn leaving(&self) -> bool {
        self.state.load(Acquire) >= state::FREEING
    }
}

/// An address space, or the registrations of one device: what tells it apart, and its ranges.
pub struct Space<E: Env> {
    pub(crate) key: Word64,
    pub(crate) ranges: E::Ranges,
}

impl<E: Env> Body for Space<E> {
    const NEW: Self = Space { key: Word64::new(0), ranges: E::Ranges::NEW };
    const KIND: u8 = 4;
}
