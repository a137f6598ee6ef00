//! What a runtime and everything made on it share: core's runtime, the plugins' instances, the pump thread.
//!
//! # Safety
//! Core's runtime lives in memory that is given back only when every lane has ended, so that no backend still holds a
//! tick into it; until then, or if a lane never ends, it is left alone for ever.
#![allow(unsafe_code)]

use crate::{
    calls,
    os::{Os, deadline},
    plugin::Report,
};
use core::ptr;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering::*},
    },
    thread::{self, JoinHandle},
    time::Duration,
};
use wharf_abi::{DynDevice, Instance};
use wharf_core::{
    buffer::Home,
    fault::Fault,
    handle::Handle,
    record::Record,
    runtime::{Runtime, Store},
};

/// Core's runtime over plugins.
pub(crate) type Core = Runtime<DynDevice, Os>;
type Memory = Store<DynDevice, Os, 16, 64, 64, 64>;

/// How long an ending runtime waits for work that was submitted.
const DRAIN: Duration = Duration::from_secs(5);

/// A device's names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) id: String,
    pub(crate) backend: String,
}

/// Shared by everything that was made on a runtime.
pub(crate) struct Engine {
    core: &'static Core,
    memory: *const Memory,
    devices: &'static [DynDevice],
    pub(crate) named: Vec<Named>,
    pub(crate) report: Report,
    /// Number of the device of files.
    pub(crate) files: Option<usize>,
    // Ends the plugins, after everything else.
    _instances: Vec<Arc<Instance>>,
    pump: Mutex<Option<JoinHandle<()>>>,
    stop: Arc<AtomicBool>,
    pump_wanted: bool,
    pump_started: AtomicBool,
}

// SAFETY: `memory` is only used when the last owner drops the engine; the rest is shared state made for it.
unsafe impl Send for Engine {}
// SAFETY: as for `Send`.
unsafe impl Sync for Engine {}

impl Engine {
    pub(crate) fn new(
        devices: Vec<DynDevice>,
        named: Vec<Named>,
        instances: Vec<Arc<Instance>>,
        report: Report,
        pump_wanted: bool,
        files: Option<usize>,
    ) -> Arc<Engine> {
        // Tells the handles of several runtimes of one process apart.
        static REALM: AtomicU8 = AtomicU8::new(0);
        let memory: &'static Memory = Box::leak(Box::new(Store::new()));
        let devices: &'static [DynDevice] = Box::leak(devices.into_boxed_slice());
        let core = Runtime::new(memory.parts(), devices, REALM.fetch_add(1, Relaxed) % 16);
        Arc::new(Engine {
            core: Box::leak(Box::new(core)),
            memory,
            devices,
            named,
            report,
            files,
            _instances: instances,
            pump: Mutex::new(None),
            stop: Arc::new(AtomicBool::new(false)),
            pump_wanted,
            pump_started: AtomicBool::new(false),
        })
    }

    pub(crate) fn core(&self) -> &'static Core {
        self.core
    }

    pub(crate) fn device(&self, index: usize) -> &'static DynDevice {
        &self.devices[index]
    }

    /// Starts the pump thread, if something waits that only a pump moves and none runs yet.
    pub(crate) fn kick(&self) {
        let needed = self.core.bell().interest.load(Relaxed) != 0;
        if needed
            && self.pump_wanted
            && !self.pump_started.load(Acquire)
            && !self.pump_started.swap(true, AcqRel)
        {
            let (core, stop) = (self.core, self.stop.clone());
            let spawned = thread::Builder::new()
                .name("wharf-pump".into())
                .spawn(move || core.pump_until(|| stop.load(Acquire)));
            match spawned {
                Ok(handle) => *self.pump.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle),
                // Without the thread whoever waits is the pump; the next submit tries again.
                Err(_) => self.pump_started.store(false, Release),
            }
        }
    }

    fn stop_pump(&self) {
        self.stop.store(true, Release);
        self.core.ring();
        let pump = self.pump.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last owner may be a job that the pump itself has just dropped.
        if let Some(pump) = pump.filter(|pump| pump.thread().id() != thread::current().id()) {
            let _ = pump.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let on_pump = self
            .pump
            .lock()
            .is_ok_and(|p| p.as_ref().is_some_and(|p| p.thread().id() == thread::current().id()));
        self.stop_pump();
        if on_pump {
            return; // The pump is inside core below this frame: its memory stays.
        }
        let ended = self.core.drain(deadline(DRAIN));
        calls::forget(ptr::from_ref(self.core) as usize);
        if ended {
            // SAFETY: made by `Box::leak` in `new`; every lane has ended and no thread is inside.
            drop(unsafe { Box::from_raw(ptr::from_ref(self.core).cast_mut()) });
            // SAFETY: as above; core, which refers to it, is gone.
            drop(unsafe { Box::from_raw(self.memory.cast_mut()) });
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(ptr::from_ref(self.devices).cast_mut()) });
        }
    }
}

/// What buffers keep alive.
#[derive(Clone)]
pub(crate) struct EngineHome(pub(crate) Arc<Engine>);

impl Home for EngineHome {
    fn retain(&self, root: Handle<Record>) -> Result<(), Fault> {
        self.0.core().retain(root)
    }
    fn release(&self, root: Handle<Record>) {
        // A refusal leaves the memory live and is counted; a drop has nobody to tell.
        let _ = self.0.core().release(root);
        self.0.kick();
    }
}
