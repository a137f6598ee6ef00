//! A device of a plugin.
//!
//! # Safety
//! Calls into the plugin pass handles that it listed and places that live for the call.
#![allow(unsafe_code)]

use super::{
    instance::{Instance, Use, need},
    lane::Peers,
    lane::{DynGauge, DynLane},
};
use crate::{
    code,
    tables::{self, Sized32, To, caps_flag, pace},
};
use std::sync::{Arc, OnceLock};
use wharf_core::{
    device::{Block, Caps, Describe, Device, Pace, Want, op},
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// A device of a plugin. It is started at the first call that needs it to be.
pub struct DynDevice {
    pub(super) instance: Arc<Instance>,
    pub(super) peers: Peers,
    pub(super) handle: u64,
    epoch: u32,
    caps: Caps,
    started: OnceLock<Result<(), Fault>>,
}

/// Bytes of a property or name at most; more is garbage.
pub(super) const LEN_MAX: u64 = 1 << 24;

impl DynDevice {
    pub(super) fn new(
        instance: Arc<Instance>,
        handles: &'static [u64],
        handle: u64,
        epoch: u32,
    ) -> Result<Self, Fault> {
        let mut caps = tables::Caps::empty();
        {
            let calls = instance.enter(epoch, Site::Device)?;
            let ask = need(calls.device.caps, Site::Device)?;
            // SAFETY: a handle that was listed, and a place with its size.
            calls.check(unsafe { ask(handle, To::to_mut(&raw mut caps)) }, Site::Device)?;
        }
        let caps = decode(&caps, instance.backend())?;
        let peers = Peers { first: 0, handles };
        Ok(DynDevice { instance, peers, handle, epoch, caps, started: OnceLock::new() })
    }

    /// The same device of a runtime that numbers this plugin's devices from `first` on (0 unless said).
    #[must_use]
    pub fn numbered_from(mut self, first: u16) -> Self {
        self.peers.first = first;
        self
    }

    /// The plugin that it belongs to.
    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
    /// Whether it loads programs.
    pub fn has_programs(&self) -> bool {
        self.instance.calls().program.is_some()
    }
    /// Whether its memory can be mapped, or host memory registered.
    pub fn has_host_access(&self) -> bool {
        let memory = &self.instance.calls().memory;
        memory.map.is_some() || memory.register_host.is_some()
    }
    /// Whether it tells facts about itself.
    pub fn has_properties(&self) -> bool {
        self.instance.calls().device.property.is_some()
    }

    /// The plugin's functions, for a call that works before the device is started.
    pub(super) fn listed(&self, site: Site) -> Result<Use<'_>, Fault> {
        self.instance.enter(self.epoch, site)
    }

    /// The plugin's functions, once the device is started.
    pub(super) fn started(&self, site: Site) -> Result<Use<'_>, Fault> {
        let calls = self.listed(site)?;
        let start = || {
            let start = need(calls.device.start, Site::Start)?;
            // SAFETY: a handle that was listed.
            calls.check(unsafe { start(self.handle) }, Site::Start)
        };
        (*self.started.get_or_init(start))?;
        Ok(calls)
    }
}

fn decode(from: &tables::Caps, backend: u16) -> Result<Caps, Fault> {
    let broken = |what, value: u32| Err(code::broken(Site::Device, Why::Mismatch, [value.into(), 0], what));
    let pace = match from.pace {
        pace::PUSHED => Pace::Pushed,
        pace::ON_REQUEST => Pace::OnRequest,
        pace::POLLED => Pace::Polled { every_ns: from.poll_ns },
        other => return broken("caps of the device: pace is not known", other),
    };
    if !from.align.is_power_of_two() {
        return broken("caps of the device: alignment is not a power of two", from.align);
    }
    if from.depth == 0 {
        return broken("caps of the device: depth is zero", 0);
    }
    if from.ops >> op::FILL & 1 == 1 && from.pattern_max == 0 {
        return broken("caps of the device: fills are taken, but patterns of no length", 0);
    }
    if from.ops >> op::UPDATE & 1 == 1 && from.update_max == 0 {
        return broken("caps of the device: updates are taken, but of no length", 0);
    }
    let Ok(space) = u16::try_from(from.space) else {
        return broken("caps of the device: address space above 65535", from.space);
    };
    let small = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    Ok(Caps {
        // What this host does not know it will not ask for.
        ops: from.ops & ((2 << op::PREFETCH) - 1),
        backend,
        space,
        native_wait: from.flags & caps_flag::NATIVE_WAIT != 0,
        depth: small(from.depth),
        pace,
        lanes: small(from.lanes),
        align: from.align,
        args_max: from.args_max,
        group_max: from.group_max,
        shared_max: from.shared_max,
        pattern_max: from.pattern_max,
        pattern_pow2: from.flags & caps_flag::PATTERN_POW2 != 0,
        update_max: from.update_max,
        alloc_max: from.alloc_max,
        mappable: from.flags & caps_flag::MAPPABLE != 0,
        coherent: from.flags & caps_flag::COHERENT != 0,
        host_copies: from.flags & caps_flag::HOST_COPIES != 0,
    })
}

impl Device for DynDevice {
    type Lane = DynLane;
    type Gauge = DynGauge;

    fn caps(&self) -> Caps {
        self.caps
    }

    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        let calls = self.started(Site::Allocate)?;
        let allocate = need(calls.memory.allocate, Site::Allocate)?;
        let mut args = tables::Alloc::empty();
        args.kind = want.kind;
        (args.len, args.align) = (want.len, want.align);
        (args.access, args.usage) = (want.access, want.usage);
        let mut out = tables::Block { base: 0, len: 0, native: 0 };
        // SAFETY: a started device, and structs that live for the call.
        calls.check(unsafe { allocate(self.handle, To(&raw const args), &raw mut out) }, Site::Allocate)?;
        let block = Block { base: out.base, len: out.len, native: out.native };
        if block.len < want.len || block.base.checked_add(block.len).is_none() {
            drop(calls);
            let _ = self.free(&block);
            let values = [block.len, want.len];
            let text = "the plugin gave a block that is too short or ends past the address space";
            return Err(code::broken(Site::Allocate, Why::Mismatch, values, text));
        }
        Ok(block)
    }

    fn free(&self, block: &Block) -> Result<(), Fault> {
        let calls = self.started(Site::Free)?;
        let free = need(calls.memory.free, Site::Free)?;
        let block = super::memory::encode(block);
        // SAFETY: a started device, and a block that lives for the call.
        calls.check(unsafe { free(self.handle, &raw const block) }, Site::Free)
    }

    fn lane(&self, tick: Tick) -> Result<(DynLane, DynGauge, usize), Fault> {
        let inside = self.started(Site::Queue)?;
        DynLane::new(self, inside.calls, tick)
    }
}

impl Describe for DynDevice {
    fn property(&self, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault> {
        let calls = self.listed(Site::Property)?;
        let property = need(calls.device.property, Site::Property)?;
        let mut len = 0u64;
        // SAFETY: a listed device, a place for as many bytes as said, and one for the length.
        let status = unsafe { property(self.handle, id, out.as_mut_ptr(), out.len() as u64, &raw mut len) };
        if status.err == 0 && status.code != 0 && code::decode(status.code).0 == Kind::NotFound {
            return Ok(None);
        }
        calls.check(status, Site::Property)?;
        if len > LEN_MAX {
            let text = "the plugin gave a property an impossible length";
            return Err(code::broken(Site::Property, Why::Limit, [len, LEN_MAX], text));
        }
        Ok(Some(len as usize))
    }
}
