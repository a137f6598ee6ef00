//! The DMA engine as a plugin. What a timer interrupt does on a microcontroller, a thread does here.
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

wharf_abi::export! {
    backend: Device,
    id: "dma",
    vendor: "Wharf",
    version: env!("CARGO_PKG_VERSION"),
    devices: devices,
    roles: [host_access, properties],
}

type Device = Dma<Std, 2, 4, 64>;

/// Bytes of the engine's memory.
const MEMORY_LEN: usize = 16 << 20;
/// Time between two ticks of an idle engine.
const IDLE: Duration = Duration::from_micros(50);

struct Std(Mutex<()>);

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

/// A new engine each time the plugin is opened; its timer runs until the process ends.
fn devices() -> Result<Vec<Device>, Fault> {
    let engine: &'static Engine<Std, 2, 4, 64> = Box::leak(Box::new(Engine::new()));
    let device = Dma::new(engine, vec![0; MEMORY_LEN].leak());
    let timer = move || {
        loop {
            if !engine.tick() {
                thread::sleep(IDLE);
            }
        }
    };
    let started = thread::Builder::new().name("wharf-dma timer".into()).spawn(timer);
    started.map_err(|error| {
        let code = error.raw_os_error().unwrap_or(0);
        Fault::backend(Kind::ResourceExhausted, Site::Start, Why::Native, [0; 2]).with_native(code)
    })?;
    Ok(vec![device])
}
