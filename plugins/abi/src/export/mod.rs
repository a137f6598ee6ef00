//! Export: any backend of core behind the tables. Roles that a backend has join the tables by bounds
//! ([`Tables::with_programs`] and so on), so a DMA engine needs no stubs.
//!
//! Devices are made at the first `list`, never at load, and stay until `close`. Their slots are never given back: a
//! handle of a closed device answers an error.
//!
//! # Safety
//! A device handle is the address of a leaked `Slot`, a queue handle that of a boxed queue. Only core holds them,
//! and by the rules of the tables nothing of a queue runs during or after `destroy`, and nothing of the plugin during
//! `close`. Every function here is unsafe to call by the promise of its place in a table.
#![allow(unsafe_code)]

mod device;
mod memory;
mod op;
mod plugin;
mod program;
mod queue;

pub use plugin::{Home, descriptor, entry};

use crate::{
    code, errors, guard,
    guard::State,
    tables::{DeviceV1, Head, MemoryV1, Names, ProgramV1, QueueV1, Status},
};
use core::{cell::UnsafeCell, marker::PhantomData, mem::ManuallyDrop, sync::atomic::AtomicU32};
use std::{string::String, vec::Vec};
use wharf_core::{
    device::{Describe, Device, HostAccess, Programs},
    fault::{Fault, Kind, Site, Why},
};

/// A plugin: its names, its devices and the roles they have. [`plugin!`](crate::plugin!) writes the impl.
pub trait Plugin: Sized + 'static {
    /// The backend.
    type Device: Device + Send;
    /// Names in the descriptor.
    const NAMES: Names;
    /// Least minor version of a host.
    const MIN_HOST_MINOR: u16;
    /// The backend that its devices belong to, if not the one its id names. Said in the file only.
    const DEVICES_OF: Option<&'static str> = None;
    /// Its licence. Said in the file only.
    const LICENCE: Option<&'static str> = None;
    /// Whether this is a shared library with a standard library of its own, so that the panic hook is the plugin's.
    const OWN_LIBRARY: bool;
    /// The roles of the device.
    const TABLES: Tables<Self>;
    /// The devices. Called at the first `list` after `open`. A fault of kind `Unavailable` (no driver) is no error:
    /// there are no devices, and its words are the reason.
    fn devices() -> Result<Vec<Self::Device>, Fault>;
    /// The backend's own words for a fault of its devices.
    fn text(key: u32) -> Option<String>;
    /// Where the exported plugin lives.
    fn home() -> &'static Home<Self::Device>;
}

/// The tables of a plugin.
#[derive(Clone, Copy)]
pub struct Tables<P> {
    pub(crate) device: DeviceV1,
    pub(crate) memory: MemoryV1,
    pub(crate) queue: QueueV1,
    pub(crate) program: Option<ProgramV1>,
    plugin: PhantomData<fn() -> P>,
}

impl<P: Plugin> Tables<P> {
    /// What every device has: memory and queues.
    pub const CORE: Self = Tables {
        device: DeviceV1 {
            head: Head::of::<DeviceV1>(),
            list: Some(device::list::<P>),
            start: Some(device::start::<P>),
            stop: Some(device::stop::<P>),
            caps: Some(device::caps::<P>),
            property: None,
            peer: None,
        },
        memory: MemoryV1 {
            head: Head::of::<MemoryV1>(),
            allocate: Some(memory::allocate::<P>),
            free: Some(memory::free::<P>),
            map: None,
            unmap: None,
            flush: None,
            invalidate: None,
            register_host: None,
            unregister_host: None,
            import_: None,
            export_: None,
        },
        queue: QueueV1 {
            head: Head::of::<QueueV1>(),
            create: Some(queue::create::<P>),
            destroy: Some(queue::destroy::<P>),
            submit: Some(queue::submit::<P>),
            poll: Some(queue::poll::<P>),
            wait: Some(queue::wait::<P>),
            times: Some(queue::times::<P>),
            cancel: None,
        },
        program: None,
        plugin: PhantomData,
    };

    /// With programs and kernels.
    pub const fn with_programs(mut self) -> Self
    where
        P::Device: Programs,
    {
        self.program = Some(ProgramV1 {
            head: Head::of::<ProgramV1>(),
            accepts: Some(program::accepts::<P>),
            load: Some(program::load::<P>),
            unload: Some(program::unload::<P>),
            kernel: Some(program::kernel::<P>),
            global: Some(program::global::<P>),
            symbol: Some(program::symbol::<P>),
            params: Some(program::params::<P>),
            occupancy: Some(program::occupancy::<P>),
        });
        self
    }

    /// With mapping and registration.
    pub const fn with_host_access(mut self) -> Self
    where
        P::Device: HostAccess,
    {
        self.memory.map = Some(memory::map::<P>);
        self.memory.unmap = Some(memory::unmap::<P>);
        self.memory.flush = Some(memory::flush::<P>);
        self.memory.invalidate = Some(memory::invalidate::<P>);
        self.memory.register_host = Some(memory::register_host::<P>);
        self.memory.unregister_host = Some(memory::unregister_host::<P>);
        self
    }

    /// With facts about the devices.
    pub const fn with_properties(mut self) -> Self
    where
        P::Device: Describe,
    {
        self.device.property = Some(device::property::<P>);
        self
    }
}

/// An exported device.
pub(crate) struct Slot<D> {
    state: State,
    index: u16,
    queues: AtomicU32,
    /// Dropped by `close`, if it has no queue left and never panicked; not touched in the states after that.
    device: UnsafeCell<ManuallyDrop<D>>,
}

// SAFETY: the device is `Sync` (a bound of the role), shared only by reference; the one exclusive access, its drop in
// `close`, runs when nothing else of the plugin does, and may move to that thread because it is `Send`.
unsafe impl<D: Send + Sync> Sync for Slot<D> {}

/// Why an exported function does not succeed.
pub(crate) enum No {
    /// A failure, with words.
    Fault(Fault),
    /// An answer that is no failure.
    Plain(Kind),
}

impl From<Fault> for No {
    fn from(fault: Fault) -> Self {
        No::Fault(fault)
    }
}

/// The result as it crosses.
fn answer<P: Plugin>(result: Result<(), No>) -> Status {
    match result {
        Ok(()) => Status::OK,
        Err(No::Fault(fault)) => errors::status(&fault, P::text),
        Err(No::Plain(kind)) => code::plain(kind),
    }
}

/// The slot of a handle.
///
/// # Safety
/// 0, or a handle that `list` of this plugin gave out.
unsafe fn slot<P: Plugin>(handle: u64, site: Site) -> Result<&'static Slot<P::Device>, Fault> {
    let slot = core::ptr::with_exposed_provenance::<Slot<P::Device>>(handle as usize);
    if slot.is_null() || !slot.is_aligned() {
        return Err(Fault::caller(Kind::InvalidDevice, site, Why::Stale, [handle, 0]));
    }
    // SAFETY: `list` gives out addresses of leaked slots only.
    Ok(unsafe { &*slot })
}

/// Runs a call about a device that must be in state `least` or, if that is `LISTED`, in any usable one.
///
/// # Safety
/// As for [`slot`].
unsafe fn on_device<P: Plugin>(
    handle: u64,
    least: u8,
    site: Site,
    run: impl FnOnce(&'static P::Device, &'static Slot<P::Device>) -> Result<(), No>,
) -> Status {
    // SAFETY: the caller's promise is ours.
    let slot = match unsafe { slot::<P>(handle, site) } {
        Ok(slot) => slot,
        Err(fault) => return answer::<P>(Err(fault.into())),
    };
    guard::cold(Some(&slot.state), || {
        let state = slot.state.get();
        if state < least || state > State::STARTED {
            return slot.state.refusal(site);
        }
        // SAFETY: in these states the device has not been dropped, and `close` does not run beside this call.
        let device = unsafe { &*slot.device.get() };
        answer::<P>(run(device, slot))
    })
}
