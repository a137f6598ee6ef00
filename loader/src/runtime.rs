//! The runtime of an application: finds plugins, opens them, names their devices.

use crate::{
    device::Device,
    engine::{Engine, Named},
    error::{Error, ErrorKind, Result},
    files,
    layers::{self, LayerInUse, Layers},
    near,
    plugin::{self, Candidate, Fate, Loaded, Place, Report, Search},
};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, PoisonError},
};
use wharf_abi::{DynDevice, Instance, tables::EntryFn, text};
use wharf_core::runtime::Allocation;
use wharf_layers::{Finding, choice::Choice};

/// All devices of all plugins, and everything that is made on them. Cheap to clone; ends with the last of what was made.
#[derive(Clone)]
pub struct Runtime(pub(crate) Arc<Engine>);

/// How a runtime is wanted.
#[derive(Clone, Default)]
pub struct Builder {
    search: Search,
    linked: Vec<EntryFn>,
    no_pump: bool,
    layers: Vec<Choice>,
}

impl Builder {
    /// Also this plugin file, before any folder.
    #[must_use]
    pub fn plugin_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.search.files.push(file.into());
        self
    }
    /// Also the plugins of this folder, before those of the environment.
    #[must_use]
    pub fn plugin_path(mut self, folder: impl Into<PathBuf>) -> Self {
        self.search.folders.push(folder.into());
        self
    }
    /// Also a backend that is linked into the program, before any file.
    #[must_use]
    pub fn linked_in(mut self, entry: EntryFn) -> Self {
        self.linked.push(entry);
        self
    }
    /// Nothing but what is named here: no variables of the environment, no usual folders.
    #[must_use]
    pub fn only_named(mut self) -> Self {
        self.search.only_named = true;
        self
    }
    /// No thread of its own: held work moves only while somebody waits or calls [`Runtime::poll`].
    #[must_use]
    pub fn without_pump(mut self) -> Self {
        self.no_pump = true;
        self
    }

    /// Also this layer over all devices, inside those chosen before and outside those of `WHARF_LAYERS`: `name` or
    /// `name:options`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a name that no layer has, with those that are near.
    pub fn layer(mut self, layer: &str) -> Result<Self> {
        self.layers.push(layers::parse(layer)?);
        Ok(self)
    }

    /// Looks for plugins and opens them. One that is bad is a line of the [`Report`] and hides no other; no plugin and
    /// no driver is a runtime without devices.
    pub fn open(self) -> Runtime {
        let mut opening = Opening::default();
        for entry in &self.linked {
            opening.take(None, &Place::LinkedIn, None, plugin::linked_in(*entry));
        }
        for place in self.search.places() {
            for file in Search::look(&place, &mut opening.report) {
                opening.file(&file, &place);
            }
        }
        let files = opening.files_device();
        let layers = Layers::resolve(&self.layers, !self.search.only_named);
        let Opening { report, devices, named, instances, .. } = opening;
        Runtime(Engine::new(devices, named, instances, report, layers, !self.no_pump, files))
    }
}

/// A search under way.
#[derive(Default)]
struct Opening {
    report: Report,
    devices: Vec<DynDevice>,
    named: Vec<Named>,
    instances: Vec<Arc<Instance>>,
    /// Name of the candidate that is used, by plugin id and by file.
    ids: HashMap<String, String>,
    files: HashMap<plugin::Identity, String>,
}

impl Opening {
    fn file(&mut self, path: &std::path::Path, place: &Place) {
        let looked = match plugin::look(path) {
            Ok(looked) => looked,
            Err(fate) => return self.report.candidates.push(Candidate::new(Some(path), place, fate)),
        };
        let same_file = self.files.get(&looked.identity);
        let same_id = looked.says.as_ref().and_then(|says| self.ids.get(&says[0]));
        if let Some(of) = same_file.or(same_id) {
            let mut candidate = Candidate::new(Some(path), place, Fate::Duplicate { of: of.clone() });
            candidate.says(looked.says.as_ref());
            return self.report.candidates.push(candidate);
        }
        self.files.insert(looked.identity, path.display().to_string());
        let loaded = plugin::open(&looked);
        self.take(Some(path), place, looked.says.as_ref(), loaded);
    }

    /// The backend of files, behind all devices that have names. Its number.
    fn files_device(&mut self) -> Option<usize> {
        let Loaded { instance } = plugin::linked_in(files::ENTRY).ok()?;
        let device = instance.devices().ok()?.pop()?;
        self.devices.push(device);
        self.named.push(Named { id: "files:0".into(), backend: "files".into() });
        self.instances.push(instance);
        Some(self.devices.len() - 1)
    }

    /// A candidate that was opened, or not.
    fn take(
        &mut self,
        path: Option<&std::path::Path>,
        place: &Place,
        says: Option<&[String; 3]>,
        loaded: std::result::Result<Loaded, Fate>,
    ) {
        let mut candidate = Candidate::new(path, place, Fate::rejected("internal", "not opened"));
        candidate.says(says);
        candidate.fate = match loaded {
            Err(fate) => fate,
            Ok(Loaded { instance }) => {
                let opened = instance.opened();
                candidate.says(Some(&[opened.id.clone(), opened.vendor.clone(), opened.version.clone()]));
                let id = instance.opened().id.clone();
                match self.ids.get(&id) {
                    Some(of) => Fate::Duplicate { of: of.clone() },
                    None => {
                        self.ids.insert(id.clone(), candidate.name());
                        self.enlist(&id, instance)
                    }
                }
            }
        };
        self.report.candidates.push(candidate);
    }

    fn enlist(&mut self, id: &str, instance: Arc<Instance>) -> Fate {
        let devices = match instance.devices() {
            Ok(devices) => devices,
            Err(fault) => {
                let class =
                    if fault.kind == wharf_core::fault::Kind::Panicked { "panicked" } else { "failed" };
                return Fate::rejected(class, text::of(&fault));
            }
        };
        let fate = Fate::Loaded { devices: devices.len(), reason: instance.reason() };
        let first = u16::try_from(self.devices.len()).unwrap_or(u16::MAX);
        for (number, device) in devices.into_iter().enumerate() {
            self.named.push(Named { id: format!("{id}:{number}"), backend: id.into() });
            self.devices.push(device.numbered_from(first));
        }
        self.instances.push(instance);
        fate
    }
}

impl Candidate {
    fn says(&mut self, says: Option<&[String; 3]>) {
        if let Some([id, vendor, version]) = says {
            self.id = Some(id.clone());
            self.vendor = Some(vendor.clone());
            self.version = Some(version.clone());
        }
    }
}

/// Fewer bytes of a stable id name nothing.
const STABLE_PREFIX_MIN: usize = 4;

fn several(name: &str, found: &[&Device]) -> Error {
    let each: Vec<String> =
        found.iter().map(|d| format!("{} ({})", d.id(), d.stable_id().unwrap_or_default())).collect();
    let message = format!("`{}` may be any of {}", near::escaped(name), each.join(", "));
    Error::new(ErrorKind::NoSuchDevice, message).next("give more of the stable id, or the id")
}

impl Runtime {
    /// A runtime over the plugins that are found where they usually are.
    pub fn open() -> Runtime {
        Builder::default().open()
    }

    /// A runtime by choice.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// What was found, and what became of it.
    pub fn report(&self) -> &Report {
        &self.0.report
    }

    /// The layers over the devices, the outermost first, and those that were switched off.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] or [`ErrorKind::Io`] when layers were chosen that are not there, or that do not take their
    /// options: then there are none, and [`Runtime::device`] says so too.
    pub fn layers(&self) -> Result<&[LayerInUse]> {
        self.0.layers_refused.clone().map_or(Ok(&self.0.layers), Err)
    }

    /// What the layer `validation` found up to now; the first thousand.
    pub fn findings(&self) -> Vec<Finding> {
        self.0.findings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All devices, in the order of the search.
    pub fn devices(&self) -> Vec<Device> {
        let named = self.0.named.len() - usize::from(self.0.files.is_some());
        (0..named).map(|index| Device { engine: self.0.clone(), index }).collect()
    }

    /// For a system that is short of memory, or about to sleep: all that is kept and not used goes back to the drivers.
    /// Everything is tried; how many bytes went.
    ///
    /// # Errors
    /// The first refusal of a driver; what it refused is kept.
    pub fn trim(&self) -> Result<u64> {
        let (mut bytes, mut first) = (0, None);
        for device in self.devices() {
            match device.trim() {
                Ok(freed) => bytes += freed,
                Err(error) => _ = first.get_or_insert(error),
            }
        }
        first.map_or(Ok(bytes), Err)
    }

    /// All memory that is live, in the order of address spaces and addresses: what is still here when nothing should be
    /// is a leak.
    pub fn live_memory(&self) -> Vec<Allocation> {
        let mut all = vec![];
        self.0.core().each_allocation(|allocation| all.push(*allocation));
        all
    }

    /// A device by its id ("host:0"), by a backend's name for its first, or by its stable id, of which the beginning will
    /// do. A device that is named is this one or an error; none stands in for another.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchDevice`] with the names that there are, and the reason why a backend of that name has none; or
    /// with those whose stable ids begin so, if they are several. What [`Runtime::layers`] says.
    pub fn device(&self, name: &str) -> Result<Device> {
        self.layers()?;
        let all = self.devices();
        if let Some(device) = all.iter().find(|d| d.id() == name || d.backend() == name) {
            return Ok(device.clone());
        }
        let stable = |fits: &dyn Fn(&str) -> bool| -> Vec<&Device> {
            all.iter().filter(|d| d.stable_id().is_some_and(|id| fits(&id))).collect()
        };
        let begins = |id: &str| name.len() >= STABLE_PREFIX_MIN && id.starts_with(name);
        for found in [stable(&|id| id == name), stable(&begins)] {
            match found[..] {
                [] => {}
                [one] => return Ok(one.clone()),
                _ => return Err(several(name, &found)),
            }
        }
        let there = near::there_are(name, "devices", all.iter().map(Device::id));
        let mut message = format!("no device `{}`{there}", near::escaped(name));
        let backend = name.split(':').next().unwrap_or(name);
        let of_backend = |c: &&Candidate| c.id.as_deref() == Some(backend);
        for candidate in self.report().candidates.iter().filter(of_backend) {
            message.push_str(&format!("; plugin {}: {}", candidate.name(), candidate.fate));
        }
        let advice = if all.is_empty() { self.nowhere() } else { "`wharf devices` lists them".into() };
        Err(Error::new(ErrorKind::NoSuchDevice, message).next(advice))
    }

    /// Where plugins were looked for, when none was found.
    fn nowhere(&self) -> String {
        let places: Vec<String> =
            self.report().searched.iter().map(|(place, found)| format!("{place}: {found}")).collect();
        format!("no plugin has a device; looked in {}", places.join(", "))
    }

    /// Moves held work on; needed only without a pump thread and while nobody waits.
    pub fn poll(&self) {
        self.0.core().poll();
    }
}
