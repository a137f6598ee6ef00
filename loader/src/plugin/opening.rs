//! A search under way: each candidate is looked at, judged, opened if nothing speaks against it, and gets its line.

use super::{
    Candidate, Choice, Fate, Loaded, Place, Report, Search, SetAside, Surroundings,
    file::{self, Identity, Looked, Trust},
    linked_in,
    manifest::Manifest,
    open,
    search::Wanted,
};
use crate::{engine::Named, error::Error, files};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use wharf_abi::{
    DynDevice, Instance,
    tables::{EntryFn, MAJOR},
    text,
};
use wharf_core::fault::Kind;

/// What a search has come to.
#[derive(Default)]
pub(crate) struct Opening {
    pub(crate) report: Report,
    pub(crate) devices: Vec<DynDevice>,
    pub(crate) named: Vec<Named>,
    pub(crate) instances: Vec<Arc<Instance>>,
    choice: Choice,
    trust: Trust,
    seen: Seen,
    aside: SetAside,
    /// Candidates are judged and not opened.
    survey: bool,
}

/// Name of the candidate that came first, by all that tells plugins apart.
#[derive(Default)]
struct Seen {
    paths: HashMap<PathBuf, String>,
    files: HashMap<Identity, String>,
    builds: HashMap<String, String>,
    ids: HashMap<String, String>,
}

impl Seen {
    /// The candidate that is the same plugin.
    fn same(&self, looked: &Looked) -> Option<Fate> {
        let found = &looked.found;
        let build = found.build_id.as_ref().and_then(|build| self.builds.get(build));
        let id = found.record.as_ref().and_then(|record| self.ids.get(&record.id));
        let ways = [
            (self.paths.get(&looked.path), "path"),
            (self.files.get(&looked.identity), "file (another name of it)"),
            (build, "build id"),
            (id, "id"),
        ];
        ways.into_iter().find_map(|(of, by)| Some(Fate::Duplicate { of: of?.clone(), by }))
    }

    fn add(&mut self, looked: &Looked, name: &str) {
        self.paths.insert(looked.path.clone(), name.into());
        self.files.insert(looked.identity, name.into());
    }

    /// It was opened, so copies of it are no use; copies of one that was not may lie better.
    fn opened(&mut self, looked: &Looked, name: &str) {
        if let Some(build) = &looked.found.build_id {
            self.builds.insert(build.clone(), name.into());
        }
    }
}

impl Opening {
    pub(crate) fn new(search: &Search, surroundings: &Surroundings) -> Self {
        Opening {
            choice: Choice::of(search, surroundings),
            trust: search.trust(surroundings),
            aside: if search.try_all { SetAside::default() } else { SetAside::of(surroundings) },
            survey: search.survey,
            ..Opening::default()
        }
    }

    /// A backend that is linked in.
    pub(crate) fn linked_in(&mut self, entry: EntryFn) {
        let mut candidate = Candidate::new(None, &Place::LinkedIn, Fate::rejected("internal", "not opened"));
        candidate.fate = linked_in(entry)
            .and_then(|loaded| self.enter(&mut candidate, loaded, None))
            .unwrap_or_else(|fate| fate);
        self.report.candidates.push(candidate);
    }

    /// All candidates of a place.
    pub(crate) fn place(&mut self, place: &Place) {
        for Wanted { file, manifest } in Search::look(place, self.trust, &mut self.report) {
            let mut candidate = Candidate::new(Some(&file), place, Fate::rejected("internal", "not opened"));
            candidate.manifest = manifest.as_ref().map(|manifest| manifest.file.clone());
            candidate.fate = self.file(&file, manifest.as_ref(), &mut candidate).unwrap_or_else(|fate| fate);
            self.report.candidates.push(candidate);
        }
    }

    fn file(
        &mut self,
        path: &Path,
        manifest: Option<&Manifest>,
        candidate: &mut Candidate,
    ) -> Result<Fate, Fate> {
        candidate.id = manifest.map(|manifest| manifest.id.clone());
        self.chosen(candidate)?;
        if let Some(manifest) = manifest {
            version(manifest)?;
        }
        let looked = file::look(path)?;
        let says = looked.found.says();
        if let (Some(manifest), Some([id, ..])) = (manifest, &says) {
            same_id("the manifest", &manifest.id, id)?;
        }
        candidate.says(says.as_ref());
        self.chosen(candidate)?;
        if let Some(duplicate) = self.seen.same(&looked) {
            return Ok(duplicate);
        }
        if let Some(reason) = self.trust.of(&looked.path)? {
            self.report.notes.push(format!("{} is used although {reason}", candidate.name()));
        }
        if let Some(pin) = manifest.and_then(|manifest| manifest.pin.as_ref()) {
            looked.pinned(pin)?;
        }
        looked.judge()?;
        self.seen.add(&looked, &candidate.name());
        if self.survey {
            self.seen.opened(&looked, &candidate.name());
            return Ok(Fate::Judged);
        }
        self.aside.refuses(&looked.path)?;
        let loaded = open::open(&looked)?;
        self.seen.opened(&looked, &candidate.name());
        let expected = candidate.id.clone();
        if let Some(id) = expected {
            same_id("its file", &id, &loaded.instance.opened().id)?;
        }
        let backend = looked.found.record.as_ref().map(|record| record.backend.as_str());
        self.enter(candidate, loaded, backend)
    }

    /// Whether a plugin of the candidate's id is wanted, as far as the id is known.
    fn chosen(&mut self, candidate: &Candidate) -> Result<(), Fate> {
        let refused = candidate.id.as_deref().and_then(|id| self.choice.refuses(id));
        refused.map_or(Ok(()), Err)
    }

    /// A plugin that was opened.
    fn enter(
        &mut self,
        candidate: &mut Candidate,
        loaded: Loaded,
        backend: Option<&str>,
    ) -> Result<Fate, Fate> {
        let instance = loaded.instance;
        let opened = instance.opened();
        candidate.says(Some(&[opened.id.clone(), opened.vendor.clone(), opened.version.clone()]));
        let id = opened.id.clone();
        // A file without a record tells its id only now.
        self.chosen(candidate)?;
        if let Some(of) = self.seen.ids.get(&id) {
            return Ok(Fate::Duplicate { of: of.clone(), by: "id" });
        }
        self.seen.ids.insert(id.clone(), candidate.name());
        self.enlist(&id, backend.unwrap_or(&id), instance)
    }

    fn enlist(&mut self, id: &str, backend: &str, instance: Arc<Instance>) -> Result<Fate, Fate> {
        let devices = instance.devices().map_err(|fault| {
            let class = if fault.kind == Kind::Panicked { "panicked" } else { "failed" };
            Fate::rejected(class, text::of(&fault))
        })?;
        let fate = Fate::Loaded { devices: devices.len(), reason: instance.reason() };
        let first = u16::try_from(self.devices.len()).unwrap_or(u16::MAX);
        for (number, device) in devices.into_iter().enumerate() {
            self.named.push(Named { id: format!("{id}:{number}"), backend: backend.into() });
            self.devices.push(device.numbered_from(first));
        }
        self.instances.push(instance);
        Ok(fate)
    }

    /// What was asked for and is not there.
    pub(crate) fn unmet(&self) -> Option<Error> {
        self.choice.unmet(&self.report.candidates)
    }

    /// The backend of files, behind all devices that have names. Its number.
    pub(crate) fn files_device(&mut self) -> Option<usize> {
        let Loaded { instance } = linked_in(files::ENTRY).ok()?;
        let device = instance.devices().ok()?.pop()?;
        self.devices.push(device);
        self.named.push(Named { id: "files:0".into(), backend: "files".into() });
        self.instances.push(instance);
        Some(self.devices.len() - 1)
    }
}

/// Refuses what a manifest says is for another ABI, before its library is looked at.
fn version(manifest: &Manifest) -> Result<(), Fate> {
    let plugin = manifest.abi_major;
    let (class, side) = match plugin.cmp(&MAJOR) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Less => ("too_old", "plugin"),
        std::cmp::Ordering::Greater => ("too_new", "host"),
    };
    let reason = format!("its manifest says abi major {plugin}, host has {MAJOR}: upgrade the {side}");
    Err(Fate::rejected(class, reason))
}

fn same_id(who: &str, said: &str, is: &str) -> Result<(), Fate> {
    if said == is {
        return Ok(());
    }
    Err(Fate::rejected("id_differs", format!("{who} says `{said}`, the plugin says `{is}`")))
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
