//! A plugin in use: opened and listed at first need, closed when nothing of it is left. Errors are kept and repeated,
//! so a plugin that failed to begin fails the same way each time until it is closed.
//!
//! # Safety
//! Calls into the plugin pass what the tables ask for. `close` runs when no lane is left and nobody is inside: calls
//! about devices hold the gate for reading, `close` for writing.
#![allow(unsafe_code)]

use super::{device::DynDevice, host};
use crate::{
    code,
    negotiate::{Calls, Opened},
    tables::{Status, To},
    text,
};
use core::{
    ops::Deref,
    sync::atomic::{AtomicU32, Ordering::*},
};
use std::{
    string::String,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
    vec,
    vec::Vec,
};
use wharf_core::fault::{Fault, Kind, Site, Why};

/// Devices of a plugin at most.
pub(super) const DEVICES_MAX: usize = 4096;
/// Bytes of an error's text at most.
const TEXT_MAX: usize = 64 << 10;

/// A plugin in use.
pub struct Instance {
    /// Its names and version.
    opened: Opened,
    /// Our copies of its tables, for ever: lanes read them.
    calls: &'static Calls,
    backend: u16,
    /// Odd while open; a device of another number is one from before a `close`. Locked after `listing`.
    gate: RwLock<u32>,
    lanes: AtomicU32,
    listing: Mutex<Option<Result<Listing, Fault>>>,
}

#[derive(Clone)]
struct Listing {
    handles: &'static [u64],
    reason: Option<String>,
}

impl Instance {
    /// A plugin that begins when it is first asked for its devices. `backend` is its number in
    /// [`Caps::backend`](wharf_core::device::Caps).
    pub fn new(opened: Opened, backend: u16) -> Arc<Self> {
        let calls = Box::leak(Box::new(opened.calls));
        Arc::new(Instance {
            opened,
            calls,
            backend,
            gate: RwLock::new(0),
            lanes: AtomicU32::new(0),
            listing: Mutex::new(None),
        })
    }

    /// Its names and version.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The devices. Begins the plugin if it has not begun.
    ///
    /// # Errors
    /// The plugin's, or `BackendFailure` for a list or caps that cannot be. No driver is no error: see
    /// [`Instance::reason`].
    pub fn devices(self: &Arc<Self>) -> Result<Vec<DynDevice>, Fault> {
        let (handles, epoch) = {
            let mut listing = self.listing();
            let listing = listing.get_or_insert_with(|| self.begin());
            (listing.clone()?.handles, *self.gate())
        };
        handles.iter().map(|handle| DynDevice::new(self.clone(), handles, *handle, epoch)).collect()
    }

    /// Why there is no device, in the plugin's words.
    pub fn reason(&self) -> Option<String> {
        self.listing().as_ref()?.as_ref().ok()?.reason.clone()
    }

    /// Ends the plugin: its devices answer `FailedPrecondition` from here on, and [`Instance::devices`] begins again.
    ///
    /// # Errors
    /// `FailedPrecondition` while it has lanes; the plugin's.
    pub fn close(&self) -> Result<(), Fault> {
        let mut listing = self.listing();
        let mut epoch = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let lanes = self.lanes.load(Acquire);
        if lanes != 0 {
            let fault = Fault::caller(Kind::FailedPrecondition, Site::Close, Why::State, [lanes.into(), 0]);
            return Err(fault);
        }
        *listing = None;
        if epoch.is_multiple_of(2) {
            return Ok(());
        }
        *epoch += 1;
        match self.calls.plugin.close {
            // SAFETY: open, no lane is left, and the gate is ours.
            Some(close) => self.calls.check(unsafe { close() }, Site::Close),
            None => Ok(()),
        }
    }

    fn gate(&self) -> RwLockReadGuard<'_, u32> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn listing(&self) -> MutexGuard<'_, Option<Result<Listing, Fault>>> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Result<Listing, Fault> {
        let mut epoch = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        if epoch.is_multiple_of(2) {
            let open = need(self.calls.plugin.open, Site::Start)?;
            // SAFETY: our host table lives for ever; no configuration.
            let status = unsafe { open(To(&raw const host::TABLE), core::ptr::null()) };
            self.calls.check(status, Site::Start)?;
            *epoch += 1;
        }
        self.list()
    }

    fn list(&self) -> Result<Listing, Fault> {
        let list = need(self.calls.device.list, Site::Device)?;
        let mut handles = vec![0u64; 16];
        let mut count = 0u32;
        let mut status;
        loop {
            // SAFETY: places for as many handles as said, and for the count.
            status = unsafe { list(handles.as_mut_ptr(), handles.len() as u32, &raw mut count) };
            self.calls.check(status, Site::Device)?;
            if count as usize > DEVICES_MAX {
                let values = [count.into(), DEVICES_MAX as u64];
                return Err(code::broken(
                    Site::Device,
                    Why::Limit,
                    values,
                    "the plugin lists too many devices",
                ));
            }
            if count as usize <= handles.len() {
                break;
            }
            handles.resize(count as usize, 0);
        }
        handles.truncate(count as usize);
        for (n, handle) in handles.iter().enumerate() {
            if *handle == 0 || handles[..n].contains(handle) {
                let values = [n as u64, *handle];
                return Err(code::broken(
                    Site::Device,
                    Why::Entry,
                    values,
                    "a device handle is null or twice there",
                ));
            }
        }
        let reason = if status.err != 0 { self.calls.text(status.err) } else { None };
        Ok(Listing { handles: Box::leak(handles.into_boxed_slice()), reason })
    }

    pub(super) fn calls(&self) -> &'static Calls {
        self.calls
    }
    pub(super) fn backend(&self) -> u16 {
        self.backend
    }
    pub(super) fn lanes(&self) -> &AtomicU32 {
        &self.lanes
    }

    /// The plugin's functions, for a call about a device that was listed in `epoch`. `close` waits for it to end, so
    /// one thread holds one at a time.
    pub(super) fn enter(&self, epoch: u32, site: Site) -> Result<Use<'_>, Fault> {
        let gate = self.gate();
        if *gate != epoch {
            return Err(Fault::caller(Kind::FailedPrecondition, site, Why::State, [0; 2]));
        }
        Ok(Use { calls: self.calls, _gate: gate })
    }
}

/// The plugin's functions, while it stays open.
pub(super) struct Use<'a> {
    pub(super) calls: &'static Calls,
    _gate: RwLockReadGuard<'a, u32>,
}

impl Deref for Use<'_> {
    type Target = Calls;
    fn deref(&self) -> &Calls {
        self.calls
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Lanes hold the instance, so none is left. There is nobody to tell of an error.
        let _ = self.close();
    }
}

/// A function that the plugin may lack.
pub(super) fn need<F>(function: Option<F>, site: Site) -> Result<F, Fault> {
    function.ok_or(Fault::backend(Kind::Unsupported, site, Why::Unknown, [0; 2]))
}

impl Calls {
    /// A status as a result, with the plugin's words in the host's store.
    #[inline]
    pub(super) fn check(&self, status: Status, site: Site) -> Result<(), Fault> {
        if status.code == 0 { Ok(()) } else { Err(self.failure(status, site)) }
    }

    #[cold]
    pub(super) fn failure(&self, status: Status, site: Site) -> Fault {
        let text = if status.err != 0 { self.text(status.err) } else { None };
        code::fault(&status, site, text.map_or(0, text::keep))
    }

    /// The plugin's text of a key, which is given up.
    pub(super) fn text(&self, err: u64) -> Option<String> {
        let (read, drop) = (self.plugin.error_text?, self.plugin.error_drop?);
        let mut buf = vec![0u8; 256];
        let mut len = 0u64;
        // SAFETY: a place for as many bytes as said, and for the length.
        let mut status = unsafe { read(err, buf.as_mut_ptr(), buf.len() as u64, &raw mut len) };
        if status.code == 0 && len > buf.len() as u64 {
            buf.resize(usize::try_from(len).unwrap_or(TEXT_MAX).min(TEXT_MAX), 0);
            // SAFETY: as above.
            status = unsafe { read(err, buf.as_mut_ptr(), buf.len() as u64, &raw mut len) };
        }
        // SAFETY: the key is not used again.
        unsafe { drop(err) };
        if status.code != 0 {
            return None;
        }
        buf.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Some(String::from_utf8_lossy(&buf).into_owned())
    }
}
