//! The runtime of an application: finds plugins, opens them, names their devices.

use crate::{
    device::Device,
    engine::Engine,
    error::{Error, ErrorKind, Result},
    layers::{LayerInUse, Layers},
    near,
    plugin::{Candidate, Opening, Report, Search, Surroundings},
};
use std::{
    path::PathBuf,
    sync::{Arc, PoisonError},
};
use wharf_abi::tables::EntryFn;
use wharf_core::runtime::Allocation;
use wharf_layers::Finding;

/// All devices of all plugins, and everything that is made on them. Cheap to clone; ends with the last of what was made.
#[derive(Clone)]
pub struct Runtime {
    engine: Arc<Engine>,
    /// What was asked for and is not there.
    unmet: Option<Error>,
}

/// How a runtime is wanted.
#[derive(Clone, Default)]
pub struct Builder {
    search: Search,
    linked: Vec<EntryFn>,
    no_pump: bool,
    layers: Vec<String>,
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

    /// Only plugins whose ids fit one of these patterns (`*` is any text, `?` any letter), whatever
    /// `WHARF_PLUGINS_SELECT` says. A pattern that fits nothing is an error ([`Runtime::usable`]).
    #[must_use]
    pub fn select(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.search.select.get_or_insert_default().extend(patterns.into_iter().map(Into::into));
        self
    }
    /// No plugin whose id fits one of these patterns, whatever `WHARF_PLUGINS_DISABLE` says. A pattern that fits nothing
    /// is an error ([`Runtime::usable`]).
    #[must_use]
    pub fn disable(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.search.disable.get_or_insert_default().extend(patterns.into_iter().map(Into::into));
        self
    }
    /// Nothing without these plugins, by id, whatever `WHARF_REQUIRE` says: if one has no device, the runtime has none
    /// either, and [`Runtime::usable`] tells why.
    #[must_use]
    pub fn require(mut self, ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.search.require.get_or_insert_default().extend(ids.into_iter().map(Into::into));
        self
    }
    /// Also plugins that others than root and this user may have written, as `WHARF_ALLOW_UNSAFE_PLUGINS=1`.
    #[must_use]
    pub fn allow_unsafe_plugins(mut self) -> Self {
        self.search.allow_unsafe = true;
        self
    }

    /// Also plugins that were set aside because they ended a process that tried them.
    #[must_use]
    pub fn try_all(mut self) -> Self {
        self.search.try_all = true;
        self
    }

    /// Also this layer over all devices, inside those chosen before and outside those of `WHARF_LAYERS`: `name` or
    /// `name:options`. One that is not there is an error ([`Runtime::usable`]).
    #[must_use]
    pub fn layer(mut self, layer: impl Into<String>) -> Self {
        self.layers.push(layer.into());
        self
    }

    /// Looks for plugins and judges their files, and runs nothing of them.
    pub fn survey(mut self) -> Report {
        self.search.survey = true;
        let surroundings = Surroundings::of_process();
        let mut opening = Opening::new(&self.search, &surroundings);
        self.search.places_in(&surroundings).iter().for_each(|place| opening.place(place));
        opening.report
    }

    /// Looks for plugins and opens them. One that is bad is a line of the [`Report`] and hides no other; no plugin and
    /// no driver is a runtime without devices.
    pub fn open(self) -> Runtime {
        let surroundings = Surroundings::of_process();
        let mut opening = Opening::new(&self.search, &surroundings);
        for entry in &self.linked {
            opening.linked_in(*entry);
        }
        for place in self.search.places_in(&surroundings) {
            opening.place(&place);
        }
        let layers = Layers::resolve(&self.layers, !self.search.only_named && !surroundings.elevated);
        let unmet = opening.unmet().or_else(|| layers.refused.clone());
        let files = opening.files_device();
        let Opening { report, devices, named, instances, .. } = opening;
        let engine = Engine::new(devices, named, instances, report, layers, !self.no_pump, files);
        Runtime { engine, unmet }
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
        &self.engine.report
    }

    /// Whether everything is there that was asked for: each pattern that selects or disables plugins fits one, and each
    /// required plugin has a device, and each layer is there. If not, this runtime has no devices. Nor has it any in a child of the process that
    /// opened it: there all calls on it and what was made of it are errors.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchPlugin`] with the ids that there are, or [`ErrorKind::Plugin`] with what became of the plugin;
    /// [`ErrorKind::Usage`] or [`ErrorKind::Io`] for a layer, with the names that are near or what its options lack.
    pub fn usable(&self) -> Result<()> {
        self.engine.core()?;
        self.unmet.clone().map_or(Ok(()), Err)
    }

    /// The layers over the devices, the outermost first, and those that were switched off.
    pub fn layers(&self) -> &[LayerInUse] {
        &self.engine.layers
    }

    /// What the layer `validation` found up to now; the first thousand.
    pub fn findings(&self) -> Vec<Finding> {
        self.engine.findings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All devices, in the order of the search; none if the runtime is not [usable](Self::usable).
    pub fn devices(&self) -> Vec<Device> {
        if self.usable().is_err() {
            return vec![];
        }
        let named = self.engine.named.len() - usize::from(self.engine.files.is_some());
        (0..named).map(|index| Device { engine: self.engine.clone(), index }).collect()
    }

    /// For a system that is short of memory, or about to sleep: all that is kept and not used goes back to the drivers.
    /// Everything is tried; how many bytes went.
    ///
    /// # Errors
    /// The first refusal of a driver; what it refused is kept.
    pub fn trim(&self) -> Result<u64> {
        self.engine.core()?;
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
        if let Ok(core) = self.engine.core() {
            core.each_allocation(|allocation| all.push(*allocation));
        }
        all
    }

    /// A device by its id ("host:0"), by a backend's name for its first, or by its stable id, of which the beginning will
    /// do. A device that is named is this one or an error; none stands in for another.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchDevice`] with the names that there are, and the reason why a backend of that name has none; or
    /// with those whose stable ids begin so, if they are several. If the runtime is not [usable](Self::usable), why.
    pub fn device(&self, name: &str) -> Result<Device> {
        self.usable()?;
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
        if let Ok(core) = self.engine.core() {
            core.poll();
        }
    }
}
