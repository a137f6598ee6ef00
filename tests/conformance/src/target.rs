//! Targets: a backend in one of its forms. Opened once a process, shared by all modes, used by one at a time.
//!
//! # Safety
//! Entries are those of this program or of libraries that stay loaded.
#![allow(unsafe_code)]

use crate::{
    images,
    lacking::Lacking,
    layers::{Found, reordered, validated},
    library,
    mode::Mode,
    need::{Facts, Form},
    plugins::{Companion, DmaDevice, DmaTables, HostTables, NullTables, dma},
    rig::{Over, Rig, over::Backend},
    shallow::Shallow,
};
use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
};
use wharf_abi::{DynDevice, Instance, export, negotiate, tables::EntryFn, text};
use wharf_host::HostDevice;
use wharf_null::Null;

/// A backend, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Linked in and used as it is.
    Static(&'static str),
    /// Linked in, behind its exported tables.
    Tables(&'static str),
    /// The plugin of a backend of this tree, built if need be.
    Built(&'static str),
    /// A plugin file.
    File(PathBuf),
}

/// A target that is open.
pub struct Open {
    /// Makes a runtime over its devices.
    rig: Box<dyn Fn(Mode) -> Box<dyn Rig> + Send + Sync>,
    /// What validation found, in the mode that has it.
    pub(crate) found: Found,
    /// What is known of it.
    pub facts: Facts,
    turn: Mutex<()>,
}

impl Open {
    /// A fresh runtime.
    pub fn rig(&self, mode: Mode) -> Box<dyn Rig> {
        (self.rig)(mode)
    }
    /// Nobody else uses the devices while this is held.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Target {
    /// The target of this name: a backend of this tree, or a file.
    pub fn from_name(name: &str) -> Target {
        match name {
            "host" => Target::Static("host"),
            "null" => Target::Static("null"),
            "dma" => Target::Static("dma"),
            file => Target::File(file.into()),
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Target::Static(backend) => (*backend).into(),
            Target::Tables(backend) => format!("{backend}-tables"),
            Target::Built(backend) => format!("{backend}-plugin"),
            Target::File(path) => path.display().to_string(),
        }
    }

    /// Opens it, once a process.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(&self) -> Result<&'static Open, String> {
        static OPEN: Mutex<Vec<(Target, &'static Open)>> = Mutex::new(Vec::new());
        let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, open)) = all.iter().find(|(target, _)| target == self) {
            return Ok(open);
        }
        let open: &'static Open = Box::leak(Box::new(match self {
            Target::Static(backend) => linked(backend)?,
            Target::Tables(backend) => dynamic(tables(backend)?)?,
            Target::Built(backend) => dynamic(library::entry(&library::of_tree(backend)?)?)?,
            Target::File(path) => dynamic(library::entry(Path::new(path))?)?,
        }));
        all.push((self.clone(), open));
        Ok(open)
    }
}

fn linked(backend: &str) -> Result<Open, String> {
    let facts = Facts {
        backend: "host",
        form: Form::Static,
        programs: true,
        host_access: true,
        properties: true,
        times: true,
        sample: images::sample(backend),
    };
    match backend {
        "host" => Ok(open(vec![HostDevice::new(), HostDevice::new()], facts)),
        // One only: two would share the number of their backend, and with it an address space.
        "null" => Ok(open(vec![Null::default()], Facts { backend: "null", ..facts })),
        "dma" => {
            let engine = || dma().map(Lacking::<DmaDevice>).map_err(|fault| fault.to_string());
            Ok(open(
                vec![engine()?, engine()?],
                Facts { backend: "dma", programs: false, times: false, ..facts },
            ))
        }
        other => Err(format!("no backend `{other}` is linked in")),
    }
}

fn tables(backend: &str) -> Result<EntryFn, String> {
    match backend {
        "host" => Ok(export::entry::<HostTables>),
        "null" => Ok(export::entry::<NullTables>),
        "dma" => Ok(export::entry::<DmaTables>),
        other => Err(format!("no backend `{other}` is linked in")),
    }
}

/// Devices of a plugin, numbered so that no other backend of the process has the number.
fn devices(entry: EntryFn) -> Result<Vec<DynDevice>, String> {
    static NEXT: AtomicU16 = AtomicU16::new(1000);
    // SAFETY: an entry of this program, or of a library that stays loaded.
    let opened = unsafe { negotiate(entry) }.map_err(|refusal| refusal.to_string())?;
    let instance = Instance::new(opened, NEXT.fetch_add(1, Relaxed));
    let devices = instance.devices().map_err(|fault| text::of(&fault))?;
    if devices.is_empty() {
        return Err(instance.reason().unwrap_or_else(|| "the plugin has no device".into()));
    }
    Ok(devices)
}

/// The first device of a plugin, and beside it one of another backend.
fn dynamic(entry: EntryFn) -> Result<Open, String> {
    let first = devices(entry)?.remove(0);
    let backend: &'static str = first.instance().opened().id.clone().leak();
    let facts = Facts {
        backend,
        form: Form::Dynamic,
        programs: first.has_programs(),
        host_access: first.has_host_access(),
        properties: first.has_properties(),
        times: backend != "dma",
        sample: images::sample(backend),
    };
    Ok(open(vec![first, companion()?.numbered_from(1)], facts))
}

/// The companion serves several targets of a process in turn.
fn companion() -> Result<DynDevice, String> {
    static ENTERED: Mutex<Option<std::sync::Arc<Instance>>> = Mutex::new(None);
    let mut entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if entered.is_none() {
        *entered = Some(devices(export::entry::<Companion>)?[0].instance().clone());
    }
    let instance = entered.as_ref().ok_or("the companion is not there")?;
    Ok(instance.devices().map_err(|fault| text::of(&fault))?.remove(0))
}

fn open<D: Backend + Send>(devices: Vec<D>, facts: Facts) -> Open {
    let devices: &'static [D] = devices.leak();
    let wrap = |make: fn(&'static D) -> Shallow<D>| -> &'static [Shallow<D>] {
        devices.iter().map(make).collect::<Vec<_>>().leak()
    };
    let (one_step, no_native_wait) = (wrap(Shallow::one_step), wrap(Shallow::no_native_wait));
    let (under_validation, found) = validated(devices);
    let under_faults = reordered(devices);
    let rig = move |mode| -> Box<dyn Rig> {
        match mode {
            Mode::Pump | Mode::NoPump => Box::new(Over::new(devices)),
            Mode::Depth1 => Box::new(Over::new(one_step)),
            Mode::NoNativeWait => Box::new(Over::new(no_native_wait)),
            Mode::Layers => Box::new(Over::new(under_validation)),
            Mode::Reordered => Box::new(Over::new(under_faults)),
        }
    };
    Open { rig: Box::new(rig), found, facts, turn: Mutex::new(()) }
}
