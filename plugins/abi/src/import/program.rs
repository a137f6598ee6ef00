//! Programs of a plugin's device.
//!
//! # Safety
//! As in [`device`](super::device).
#![allow(unsafe_code)]

use super::{
    device::{DynDevice, LEN_MAX},
    instance::{Use, need},
};
use crate::{
    code,
    tables::{self, ProgramV1, Sized32, Str, To, symbol},
};
use core::ptr;
use wharf_core::{
    device::{Block, Kernel, Param, Programs, SymbolKind},
    fault::{Fault, Kind, Site, Why},
};

impl DynDevice {
    fn programs(&self, site: Site) -> Result<(Use<'_>, &'static ProgramV1), Fault> {
        let inside = self.started(site)?;
        let program = need(inside.calls.program.as_ref(), site)?;
        Ok((inside, program))
    }
}

impl Programs for DynDevice {
    fn accepts(&self, image: &[u8]) -> bool {
        let Ok(calls) = self.listed(Site::Load) else { return false };
        let Some(accepts) = calls.program.as_ref().and_then(|program| program.accepts) else { return false };
        // SAFETY: a listed device, and bytes that live for the call.
        let status = unsafe { accepts(self.handle, image.as_ptr().cast(), image.len() as u64) };
        calls.check(status, Site::Load).is_ok()
    }

    fn load(&self, image: &[u8]) -> Result<u64, Fault> {
        let (calls, program) = self.programs(Site::Load)?;
        let load = need(program.load, Site::Load)?;
        let mut out = 0u64;
        let (at, len) = (image.as_ptr().cast(), image.len() as u64);
        // SAFETY: a started device; bytes and place live for the call.
        calls.check(unsafe { load(self.handle, at, len, ptr::null(), &raw mut out) }, Site::Load)?;
        Ok(out)
    }

    fn unload(&self, program: u64) -> Result<(), Fault> {
        let (calls, table) = self.programs(Site::Unload)?;
        let unload = need(table.unload, Site::Unload)?;
        // SAFETY: a started device, and a program that core loaded there and no longer uses.
        calls.check(unsafe { unload(self.handle, program) }, Site::Unload)
    }

    fn kernel(&self, program: u64, name: &[u8], layout: &[Param]) -> Result<Kernel, Fault> {
        let (calls, table) = self.programs(Site::Kernel)?;
        let kernel = need(table.kernel, Site::Kernel)?;
        let Ok(count) = u32::try_from(layout.len()) else {
            let values = [layout.len() as u64, u32::MAX.into()];
            return Err(Fault::caller(Kind::InvalidArgument, Site::Kernel, Why::Limit, values));
        };
        let mut out = tables::Kernel::empty();
        let (name, layout) = (Str::bytes(name), layout.as_ptr().cast::<tables::Param>());
        // SAFETY: a started device and a program of it; names, parameters (of the same layout, asserted in `export`)
        // and place live for the call.
        let status = unsafe { kernel(self.handle, program, name, layout, count, To::to_mut(&raw mut out)) };
        calls.check(status, Site::Kernel)?;
        Ok(Kernel {
            native: out.native,
            args_len: out.args_len,
            params: out.params,
            group_max: out.group_max,
            shared_static: out.shared_static,
        })
    }

    fn global(&self, program: u64, name: &[u8]) -> Result<Block, Fault> {
        let (calls, table) = self.programs(Site::Global)?;
        let global = need(table.global, Site::Global)?;
        let mut out = tables::Block { base: 0, len: 0, native: 0 };
        // SAFETY: a started device and a program of it; name and place live for the call.
        calls.check(unsafe { global(self.handle, program, Str::bytes(name), &raw mut out) }, Site::Global)?;
        if out.base.checked_add(out.len).is_none() {
            let text = "the plugin gave a global that ends past the address space";
            return Err(code::broken(Site::Global, Why::Overflow, [out.base, out.len], text));
        }
        Ok(Block { base: out.base, len: out.len, native: out.native })
    }

    fn symbol(&self, program: u64, index: u32, out: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault> {
        let (calls, table) = self.programs(Site::Symbols)?;
        let symbol = need(table.symbol, Site::Symbols)?;
        let (mut len, mut kind) = (0u64, 0u32);
        let (buf, cap) = (out.as_mut_ptr(), out.len() as u64);
        // SAFETY: a started device and a program of it; the places live for the call.
        let status = unsafe { symbol(self.handle, program, index, buf, cap, &raw mut len, &raw mut kind) };
        if status.err == 0 && status.code != 0 && code::decode(status.code).0 == Kind::NotFound {
            return Ok(None);
        }
        calls.check(status, Site::Symbols)?;
        let kind = match kind {
            symbol::KERNEL => SymbolKind::Kernel,
            symbol::GLOBAL => SymbolKind::Global,
            other => {
                let text = "the plugin gave a symbol of unknown kind";
                return Err(code::broken(Site::Symbols, Why::Mismatch, [other.into(), 1], text));
            }
        };
        if len > LEN_MAX {
            let text = "the plugin gave a name an impossible length";
            return Err(code::broken(Site::Symbols, Why::Limit, [len, LEN_MAX], text));
        }
        Ok(Some((len as usize, kind)))
    }

    fn params(&self, kernel: u64, out: &mut [Param]) -> Result<usize, Fault> {
        let (calls, table) = self.programs(Site::Kernel)?;
        let params = need(table.params, Site::Kernel)?;
        let cap = u32::try_from(out.len()).unwrap_or(u32::MAX);
        let mut count = 0u32;
        // SAFETY: a started device and a kernel of it; the places (of the same layout) live for the call.
        let status = unsafe { params(self.handle, kernel, out.as_mut_ptr().cast(), cap, &raw mut count) };
        calls.check(status, Site::Kernel)?;
        Ok(count as usize)
    }

    fn occupancy(&self, kernel: u64, shared: u64) -> Result<u32, Fault> {
        let (calls, table) = self.programs(Site::Occupancy)?;
        let occupancy = need(table.occupancy, Site::Occupancy)?;
        let mut items = 0u32;
        // SAFETY: a started device and a kernel of it; the place lives for the call.
        calls.check(unsafe { occupancy(self.handle, kernel, shared, &raw mut items) }, Site::Occupancy)?;
        Ok(items)
    }
}
