//! The descriptor of a plugin, and where an exported plugin lives.
//!
//! # Safety
//! See [`export`](super).
#![allow(unsafe_code)]

use super::{No, Plugin, Slot, answer};
use crate::{
    errors, guard,
    guard::State,
    sized,
    tables::{DRAFT, Ext, Head, HostV1, MAGIC, MAJOR, PluginV1, Status, Str, To, id, plugin_flag},
};
use core::{
    cell::UnsafeCell,
    ffi::c_void,
    mem::ManuallyDrop,
    sync::atomic::{AtomicU32, Ordering::*},
};
use std::{
    string::String,
    sync::{Mutex, MutexGuard, PoisonError},
    vec::Vec,
};
use wharf_core::fault::{Fault, Kind, Site, Why};

/// The host's `tell` and `fail`.
type Calls = (unsafe extern "C" fn(*mut c_void), unsafe extern "C" fn(*mut c_void, Status));

/// Where an exported plugin lives: one static beside its [`Plugin`] impl.
pub struct Home<D: 'static>(Mutex<Inner<D>>);

struct Inner<D: 'static> {
    calls: Option<Calls>,
    listing: Option<(Vec<&'static Slot<D>>, Option<String>)>,
}

/// What `list` answers.
pub(super) struct Listing {
    pub(super) handles: Vec<u64>,
    pub(super) reason: Option<String>,
}

impl<D: Send + Sync + 'static> Home<D> {
    /// Not opened.
    #[allow(clippy::new_without_default)] // For statics only.
    pub const fn new() -> Self {
        Home(Mutex::new(Inner { calls: None, listing: None }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner<D>> {
        // A backend that panicked while its devices were listed has left nothing half done here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn calls(&self, site: Site) -> Result<Calls, Fault> {
        self.inner().calls.ok_or(not_open(site))
    }

    /// The devices, made now if they were not yet.
    pub(super) fn devices<P: Plugin<Device = D>>(&self) -> Result<Listing, Fault> {
        let mut inner = self.inner();
        if inner.calls.is_none() {
            return Err(not_open(Site::Device));
        }
        if inner.listing.is_none() {
            inner.listing = Some(match P::devices() {
                Ok(devices) if devices.len() >= usize::from(u16::MAX) => {
                    let values = [devices.len() as u64, u64::from(u16::MAX) - 1];
                    return Err(Fault::backend(Kind::ResourceExhausted, Site::Device, Why::Limit, values));
                }
                Ok(devices) => (devices.into_iter().enumerate().map(leak).collect(), None),
                Err(fault) if fault.kind == Kind::Unavailable => {
                    let own = if fault.text == 0 { None } else { P::text(fault.text) };
                    (Vec::new(), Some(own.unwrap_or_else(|| fault.to_string())))
                }
                Err(fault) => return Err(fault),
            });
        }
        let (slots, reason) = inner.listing.as_ref().expect("set above");
        let handles =
            slots.iter().map(|slot| core::ptr::from_ref(*slot).expose_provenance() as u64).collect();
        Ok(Listing { handles, reason: reason.clone() })
    }

    fn close(&self) -> Result<(), Fault> {
        let slots = {
            let mut inner = self.inner();
            if inner.calls.take().is_none() {
                return Err(not_open(Site::Close));
            }
            inner.listing.take().map(|(slots, _)| slots).unwrap_or_default()
        };
        for slot in slots {
            let usable = slot.state.get() <= State::STARTED;
            slot.state.advance(State::CLOSED);
            if usable && slot.queues.load(Acquire) == 0 {
                // SAFETY: the state keeps later calls out, no queue refers to the device, and by the rules of the
                // tables no call runs beside `close`; nobody drops it again, since the listing is gone.
                let device = unsafe { &mut *slot.device.get() };
                // SAFETY: as above.
                unsafe { ManuallyDrop::drop(device) };
            }
        }
        Ok(())
    }
}

fn leak<D>((index, device): (usize, D)) -> &'static Slot<D> {
    Box::leak(Box::new(Slot {
        state: State::new(State::LISTED),
        index: index as u16,
        queues: AtomicU32::new(0),
        device: UnsafeCell::new(ManuallyDrop::new(device)),
    }))
}

fn not_open(site: Site) -> Fault {
    Fault::caller(Kind::FailedPrecondition, site, Why::State, [State::LISTED.into(), 0])
}

/// The descriptor of a plugin.
pub const fn descriptor<P: Plugin>() -> PluginV1 {
    PluginV1 {
        magic: MAGIC,
        head: Head::of::<PluginV1>(),
        min_host_minor: P::MIN_HOST_MINOR,
        draft: DRAFT,
        reserved: 0,
        flags: if cfg!(panic = "unwind") { plugin_flag::CONTAINS_PANICS } else { 0 },
        names: P::NAMES,
        open: Some(open::<P>),
        close: Some(close::<P>),
        query: Some(query::<P>),
        error_text: Some(errors::error_text),
        error_drop: Some(errors::error_drop),
    }
}

/// Constants of a plugin that its tables point to.
struct Static<P>(P);

impl<P: Plugin> Static<P> {
    const DESCRIPTOR: &'static PluginV1 = &descriptor::<P>();
    const TABLES: &'static super::Tables<P> = &P::TABLES;
}

/// The entry of a plugin, an [`EntryFn`](crate::tables::EntryFn): NULL for a host of another major.
///
/// # Safety
/// None is needed; the type is that of a function in another library.
pub unsafe extern "C" fn entry<P: Plugin>(host_major: u32, _host_minor: u32) -> To<PluginV1> {
    if host_major != u32::from(MAJOR) {
        return To::NULL;
    }
    if P::OWN_LIBRARY {
        guard::hush();
    }
    To(Static::<P>::DESCRIPTOR)
}

unsafe extern "C" fn open<P: Plugin>(host: To<HostV1>, config: *const Ext) -> Status {
    let run = || -> Result<(), No> {
        // SAFETY: the host's table, with its size.
        let host = unsafe { sized::read(host) }.map_err(|bad| bad.fault(Site::Plugin))?;
        if host.head.major != MAJOR {
            let values = [host.head.major.into(), MAJOR.into()];
            return Err(Fault::caller(Kind::InvalidArgument, Site::Plugin, Why::Mismatch, values).into());
        }
        // SAFETY: the host's chain.
        unsafe { sized::chain(config, Site::Plugin) }?;
        let calls = host.tell.zip(host.fail);
        let mut inner = P::home().inner();
        if inner.calls.is_some() {
            let state = [State::STARTED.into(), 0];
            return Err(Fault::caller(Kind::FailedPrecondition, Site::Plugin, Why::State, state).into());
        }
        if calls.is_none() {
            return Err(Fault::caller(Kind::InvalidArgument, Site::Plugin, Why::Zero, [1, 0]).into());
        }
        inner.calls = calls;
        Ok(())
    };
    guard::cold(None, || answer::<P>(run()))
}

unsafe extern "C" fn close<P: Plugin>() -> Status {
    guard::cold(None, || answer::<P>(P::home().close().map_err(No::from)))
}

unsafe extern "C" fn query<P: Plugin>(name: Str, major: u32, table: *mut *const c_void) -> Status {
    let run = || -> Result<(), No> {
        // SAFETY: the caller's bytes.
        let name = unsafe { sized::list(name.ptr, name.len, Site::Plugin) }?;
        let found = if major == u32::from(MAJOR) { table_of::<P>(name) } else { None };
        // SAFETY: the caller's own place.
        unsafe { sized::put(table, found.unwrap_or(core::ptr::null()), Site::Plugin) }?;
        if found.is_some() { Ok(()) } else { Err(No::Plain(Kind::NotFound)) }
    };
    guard::cold(None, || answer::<P>(run()))
}

fn table_of<P: Plugin>(name: &[u8]) -> Option<*const c_void> {
    let tables = Static::<P>::TABLES;
    Some(match core::str::from_utf8(name).ok()? {
        id::DEVICE => (&raw const tables.device).cast(),
        id::MEMORY => (&raw const tables.memory).cast(),
        id::QUEUE => (&raw const tables.queue).cast(),
        id::PROGRAM => core::ptr::from_ref(tables.program.as_ref()?).cast(),
        _ => return None,
    })
}
