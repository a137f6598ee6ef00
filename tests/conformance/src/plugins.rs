//! The backends of this tree behind the tables, in this process, as programs link them in.
//!
//! # Safety
//! The lock is a mutex of the standard library: one closure at a time, and nested ones would block for ever.
#![allow(unsafe_code)]

use std::{
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};
use wharf_core::{
    env::Lock,
    fault::{Fault, Kind, Site, Why},
};
use wharf_dma::{Dma, Engine};
use wharf_host::HostDevice;
use wharf_null::Null;

wharf_abi::plugin! {
    /// The host device.
    pub struct HostTables,
    backend: HostDevice,
    id: "host", vendor: "Wharf", version: "1",
    devices: || Ok(vec![HostDevice::new()]),
    roles: [programs, host_access, properties],
    text: wharf_host::text,
}

wharf_abi::plugin! {
    /// The null device.
    pub struct NullTables,
    backend: Null,
    id: "null", vendor: "Wharf", version: "1",
    devices: wharf_null::devices,
    roles: [programs, host_access, properties],
}

wharf_abi::plugin! {
    /// The DMA engine.
    pub struct DmaTables,
    backend: DmaDevice,
    id: "dma", vendor: "Wharf", version: "1",
    devices: || dma().map(|device| vec![device]),
    roles: [host_access, properties],
}

wharf_abi::plugin! {
    /// The null device once more, as the second device beside whatever is under test.
    pub struct Companion,
    backend: Null,
    id: "companion", vendor: "Wharf", version: "1",
    devices: wharf_null::devices,
    roles: [programs, host_access, properties],
}

/// The engine as the suite has it: two channels of four steps.
pub type DmaDevice = Dma<Std, 2, 4, 64>;

/// Bytes of the engine's memory.
const MEMORY_LEN: usize = 16 << 20;
/// Time between two ticks of an idle engine.
const IDLE: Duration = Duration::from_micros(50);

/// A mutex as a lock of core.
pub struct Std(Mutex<()>);

// SAFETY: a mutex lets one closure run at a time and blocks a nested one.
unsafe impl Lock for Std {
    const NEW: Self = Std(Mutex::new(()));
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f()
    }
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let _inside = self.0.try_lock().ok()?;
        Some(f())
    }
}

/// A DMA engine and the thread that is its timer, which runs until the process ends.
///
/// # Errors
/// If there is no thread.
pub fn dma() -> Result<DmaDevice, Fault> {
    let engine: &'static Engine<Std, 2, 4, 64> = Box::leak(Box::new(Engine::new()));
    let device = Dma::new(engine, vec![0; MEMORY_LEN].leak());
    let timer = move || loop {
        if !engine.tick() {
            thread::sleep(IDLE);
        }
    };
    let started = thread::Builder::new().name("dma timer".into()).spawn(timer);
    started.map_err(|_| Fault::backend(Kind::ResourceExhausted, Site::Start, Why::Native, [0; 2]))?;
    Ok(device)
}
