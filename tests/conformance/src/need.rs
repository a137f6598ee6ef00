//! What a case needs of its target, as data, and whether a target has it.

use crate::{images::Sample, rig::Rig};
use wharf_core::device::{op, property};

/// Something that not every target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Programs, and an image for the target's backend.
    Programs,
    /// This kernel in the image.
    Kernel(&'static str),
    /// A global in the image.
    Global,
    /// Host calls in a queue.
    HostCalls,
    /// Memory that the host can map.
    Map,
    /// Host memory that can be wrapped: device memory is process memory.
    Wrap,
    /// So many queues of the device at once.
    Lanes(u16),
    /// A second device.
    TwoDevices,
    /// A second device that belongs to another backend.
    TwoBackends,
    /// Times of operations.
    Times,
    /// Facts about the device.
    Properties,
    /// A host that says what it is: every fact of liboffload's device info.
    EveryProperty,
    /// So many bytes in one allocation.
    Memory(u64),
    /// The process' open files, maps and threads can be counted, and the backend runs in it.
    Proc,
}

/// How a backend is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As core's own device type.
    Static,
    /// Behind the tables, linked in or in a library.
    Dynamic,
}

/// What is known of a target.
#[derive(Clone, Copy)]
pub struct Facts {
    /// Short name of the backend.
    pub backend: &'static str,
    /// How it is reached.
    pub form: Form,
    /// It has the role of programs.
    pub programs: bool,
    /// It has the role of host access.
    pub host_access: bool,
    /// It has the role of properties.
    pub properties: bool,
    /// Its lanes keep times.
    pub times: bool,
    /// Its sample image.
    pub sample: Option<&'static Sample>,
}

impl Need {
    /// Why the target lacks it; `None`: it has it.
    pub fn lack(self, facts: &Facts, rig: &dyn Rig) -> Option<String> {
        let caps = rig.caps(0);
        let second = (rig.devices() > 1).then(|| rig.caps(1));
        let unless = |there: bool, why: &str| (!there).then(|| why.to_owned());
        match self {
            Need::Programs => unless(facts.programs && facts.sample.is_some(), no_image(facts)),
            Need::Kernel(name) => {
                let there =
                    facts.programs && facts.sample.is_some_and(|sample| sample.kernels.contains(&name));
                (!there).then(|| format!("no kernel `{name}` for backend {}", facts.backend))
            }
            Need::Global => {
                let there = facts.sample.is_some_and(|sample| sample.global.is_some());
                unless(there, "no global in the image of this backend")
            }
            Need::HostCalls => unless(caps.takes(op::CALL), "the device runs no host calls"),
            Need::Map => unless(facts.host_access && caps.mappable, "its memory cannot be mapped"),
            Need::Wrap => unless(caps.space == 0 && caps.host_copies, "it does not reach process memory"),
            Need::Lanes(n) => (caps.lanes < n).then(|| format!("{n} queues needed, {} there", caps.lanes)),
            Need::TwoDevices => unless(second.is_some(), "one device only"),
            Need::TwoBackends => unless(
                second.is_some_and(|other| other.backend != caps.backend),
                "no device of another backend",
            ),
            Need::Times => unless(facts.times, "its queues keep no times"),
            Need::Properties => unless(facts.properties, "it tells no facts about itself"),
            Need::EveryProperty => unless(facts.backend == "host", "its facts are not those of a processor"),
            Need::Memory(len) => lacks_memory(len, facts, rig),
            Need::Proc => {
                unless(cfg!(target_os = "linux") && facts.backend == "host", "no kernel code in this process")
            }
        }
    }
}

fn no_image(facts: &Facts) -> &'static str {
    if facts.programs { "no sample image for this backend" } else { "it loads no programs" }
}

/// Half of what it says it has is surely there.
fn lacks_memory(len: u64, facts: &Facts, rig: &dyn Rig) -> Option<String> {
    let mut size = [0; 8];
    let told = facts
        .properties
        .then(|| rig.property(0, property::GLOBAL_MEM_SIZE, &mut size).ok().flatten())
        .flatten();
    let there = if told == Some(8) { u64::from_le_bytes(size) } else { u64::MAX };
    (there / 2 < len).then(|| format!("{len} bytes needed, {there} there in all"))
}
