//! What a runtime and everything made on it share: core's runtime, the plugins' instances, the pump thread.
//!
//! # Safety
//! Core's runtime lives in memory that is given back only when every lane has ended, so that no backend still holds a
//! tick into it; until then, or if a lane never ends, it is left alone for ever.
#![allow(unsafe_code)]

use crate::{
    calls, fork,
    layers::{Findings, LayerInUse, Layers, Own},
    os::{Os, deadline},
    plugin::Report,
};
use core::ptr;
use std::{
    mem,
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
pub(crate) type Core = Runtime<Own, Os>;
type Memory = Store<Own, Os, 16, 64, 64, 64>;

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
    devices: &'static [Own],
    below: &'static [DynDevice],
    pub(crate) named: Vec<Named>,
    pub(crate) report: Report,
    pub(crate) layers: Vec<LayerInUse>,
    /// What validation found.
    pub(crate) findings: Findings,
    /// Number of the device of files.
    pub(crate) files: Option<usize>,
    instances: Vec<Arc<Instance>>,
    pump: Mutex<Option<JoinHandle<()>>>,
    ending: Arc<Ending>,
    pump_wanted: bool,
    pump_started: AtomicBool,
    /// Number of the process that made it.
    forks: u32,
}

/// What the pump thread shares with the engine it outlives.
#[derive(Default)]
struct Ending {
    stop: AtomicBool,
    /// Left by an engine whose last owner went where the engine could not be taken down.
    remains: Mutex<Option<Remains>>,
}

/// What is to be taken down when nobody is inside core any more.
struct Remains {
    core: &'static Core,
    memory: *const Memory,
    devices: &'static [Own],
    below: &'static [DynDevice],
    // Ends the plugins, after everything else.
    _instances: Vec<Arc<Instance>>,
}

// SAFETY: whoever ends it is the only one who uses it.
unsafe impl Send for Remains {}

impl Remains {
    /// Waits for what was submitted and gives everything back. Only where no thread is inside core.
    fn end(self) {
        let ended = self.core.drain(deadline(DRAIN));
        calls::forget(ptr::from_ref(self.core) as usize);
        if ended {
            // SAFETY: made by `Box::leak` in `Engine::new`; every lane has ended and no thread is inside.
            drop(unsafe { Box::from_raw(ptr::from_ref(self.core).cast_mut()) });
            // SAFETY: as above; core, which refers to it, is gone.
            drop(unsafe { Box::from_raw(self.memory.cast_mut()) });
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(ptr::from_ref(self.devices).cast_mut()) });
            // SAFETY: as above; the devices over these are gone.
            drop(unsafe { Box::from_raw(ptr::from_ref(self.below).cast_mut()) });
        }
    }
}

// SAFETY: `memory` is only used when the last owner drops the engine; the rest is shared state made for it.
unsafe impl Send for Engine {}
// SAFETY: as for `Send`.
unsafe impl Sync for Engine {}

/// The devices as core sees them.
fn over(below: &'static [DynDevice], named: &[Named], layers: &Layers) -> &'static [Own] {
    let devices = below.iter().zip(named).enumerate().map(|(number, (device, named))| match &layers.chain {
        None => Own::bare(device),
        Some(chain) => {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            Own::new(device, chain.clone(), number, named.id.clone())
        }
    });
    Box::leak(devices.collect())
}

impl Engine {
    pub(crate) fn new(
        devices: Vec<DynDevice>,
        named: Vec<Named>,
        instances: Vec<Arc<Instance>>,
        report: Report,
        layers: Layers,
        pump_wanted: bool,
        files: Option<usize>,
    ) -> Arc<Engine> {
        // Tells the handles of several runtimes of one process apart.
        static REALM: AtomicU8 = AtomicU8::new(0);
        let memory: &'static Memory = Box::leak(Box::new(Store::new()));
        let below: &'static [DynDevice] = Box::leak(devices.into_boxed_slice());
        let devices = over(below, &named, &layers);
        let core = Runtime::new(memory.parts(), devices, REALM.fetch_add(1, Relaxed) % 16);
        Arc::new(Engine {
            core: Box::leak(Box::new(core)),
            memory,
            devices,
            below,
            named,
            report,
            layers: layers.listed,
            findings: layers.findings,
            files,
            instances,
            pump: Mutex::new(None),
            ending: Arc::default(),
            pump_wanted,
            pump_started: AtomicBool::new(false),
            forks: fork::watch(),
        })
    }

    /// The way into core, for every call.
    ///
    /// # Errors
    /// In a child of the process that made it.
    pub(crate) fn core(&self) -> Result<&'static Core, Fault> {
        if self.forks == fork::count() { Ok(self.core) } else { Err(fork::FAULT) }
    }

    /// What tells it from other runtimes.
    pub(crate) fn number(&self) -> usize {
        ptr::from_ref(self.core) as usize
    }

    pub(crate) fn device(&self, index: usize) -> &'static Own {
        &self.devices[index]
    }

    /// Starts the pump thread, if something waits that only a pump moves and none runs yet.
    pub(crate) fn kick(&self) {
        let needed = self.core().is_ok_and(|core| core.bell().interest.load(Relaxed) != 0);
        if needed
            && self.pump_wanted
            && !self.pump_started.load(Acquire)
            && !self.pump_started.swap(true, AcqRel)
        {
            let (core, ending) = (self.core, self.ending.clone());
            let spawned = thread::Builder::new().name("wharf-pump".into()).spawn(move || {
                core.pump_until(|| ending.stop.load(Acquire));
                let remains = ending.remains.lock().unwrap_or_else(PoisonError::into_inner).take();
                remains.into_iter().for_each(Remains::end);
            });
            match spawned {
                Ok(handle) => *self.pump.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle),
                // Without the thread whoever waits is the pump; the next submit tries again.
                Err(_) => self.pump_started.store(false, Release),
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.core().is_err() {
            // Of all this only memory is left here; whoever would end it is in the parent.
            mem::forget(mem::take(&mut self.instances));
            mem::forget(self.pump.get_mut().unwrap_or_else(PoisonError::into_inner).take());
            return;
        }
        let remains = Remains {
            core: self.core,
            memory: self.memory,
            devices: self.devices,
            below: self.below,
            _instances: mem::take(&mut self.instances),
        };
        let pump = self.pump.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // The last owner was a job that the pump dropped: it is inside core below this frame.
        let in_pump = pump.as_ref().is_some_and(|pump| pump.thread().id() == thread::current().id());
        match pump {
            // Its lane cannot end before this host call has returned. The pump thread sees to the rest once it is out of
            // core; or a thread that is there for nothing else.
            Some(_) if in_pump || calls::inside() => {
                *self.ending.remains.lock().unwrap_or_else(PoisonError::into_inner) = Some(remains);
                self.ending.stop.store(true, Release);
                self.core.ring();
            }
            None if calls::inside() => {
                let ending = thread::Builder::new().name("wharf-end".into());
                drop(ending.spawn(move || remains.end())); // Without a thread it is left alone, as if it never ended.
            }
            pump => {
                self.ending.stop.store(true, Release);
                self.core.ring();
                pump.map(JoinHandle::join);
                remains.end();
            }
        }
    }
}

/// What buffers keep alive.
#[derive(Clone)]
pub(crate) struct EngineHome(pub(crate) Arc<Engine>);

impl Home for EngineHome {
    fn retain(&self, root: Handle<Record>) -> Result<(), Fault> {
        self.0.core()?.retain(root)
    }
    fn release(&self, root: Handle<Record>) {
        // A refusal leaves the memory live and is counted; a drop has nobody to tell.
        let _ = self.0.core().and_then(|core| core.release(root));
        self.0.kick();
    }
}
