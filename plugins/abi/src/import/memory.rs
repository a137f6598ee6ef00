//! The host's view of a plugin's memory.
//!
//! # Safety
//! As in [`device`](super::device).
#![allow(unsafe_code)]

use super::{device::DynDevice, instance::need};
use crate::{code, tables};
use core::ptr;
use wharf_core::{
    bits::Access,
    device::{Block, HostAccess},
    fault::{Fault, Site, Why},
};

/// A block as it crosses.
pub(super) const fn encode(block: &Block) -> tables::Block {
    tables::Block { base: block.base, len: block.len, native: block.native }
}

impl HostAccess for DynDevice {
    fn map(&self, block: &Block, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        let calls = self.started(Site::Map)?;
        let map = need(calls.memory.map, Site::Map)?;
        let mut at = ptr::null_mut();
        let (block, access) = (encode(block), Access::ALL.bits());
        // SAFETY: a started device; block and place live for the call.
        let status = unsafe { map(self.handle, &raw const block, offset, len, access, &raw mut at) };
        calls.check(status, Site::Map)?;
        if at.is_null() {
            return Err(code::broken(Site::Map, Why::Address, [0; 2], "the plugin mapped memory to null"));
        }
        Ok(at.cast())
    }

    fn unmap(&self, block: &Block, offset: u64, len: u64) -> Result<(), Fault> {
        let calls = self.started(Site::Unmap)?;
        let unmap = need(calls.memory.unmap, Site::Unmap)?;
        let block = encode(block);
        // SAFETY: a started device, and a block that lives for the call.
        calls.check(unsafe { unmap(self.handle, &raw const block, offset, len) }, Site::Unmap)
    }

    fn sync(&self, block: &Block, offset: u64, len: u64, to_device: bool) -> Result<(), Fault> {
        let calls = self.started(Site::Flush)?;
        let sync = if to_device { calls.memory.flush } else { calls.memory.invalidate };
        let sync = need(sync, Site::Flush)?;
        let block = encode(block);
        // SAFETY: a started device, and a block that lives for the call.
        calls.check(unsafe { sync(self.handle, &raw const block, offset, len) }, Site::Flush)
    }

    fn register(&self, host: *mut u8, len: u64, access: u32) -> Result<Block, Fault> {
        let calls = self.started(Site::Register)?;
        let register = need(calls.memory.register_host, Site::Register)?;
        let mut out = tables::Block { base: 0, len: 0, native: 0 };
        // SAFETY: a started device; the host memory is the caller's to show, the place lives for the call.
        let status = unsafe { register(self.handle, host.cast(), len, access, &raw mut out) };
        calls.check(status, Site::Register)?;
        Ok(Block { base: out.base, len: out.len, native: out.native })
    }

    fn unregister(&self, block: &Block) -> Result<(), Fault> {
        let calls = self.started(Site::Register)?;
        let unregister = need(calls.memory.unregister_host, Site::Register)?;
        let block = encode(block);
        // SAFETY: a started device, and a block that lives for the call.
        calls.check(unsafe { unregister(self.handle, &raw const block) }, Site::Register)
    }
}
