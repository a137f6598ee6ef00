//! Table "wharf.memory".
//!
//! # Safety
//! See [`export`](super).
#![allow(unsafe_code)]

use super::{No, Plugin, on_device};
use crate::{
    guard::State,
    sized,
    tables::{self, Status, To},
};
use core::ffi::c_void;
use wharf_core::{
    device::{Block, Device, HostAccess, Want},
    fault::{Fault, Site},
};

pub(super) const fn encode(block: &Block) -> tables::Block {
    tables::Block { base: block.base, len: block.len, native: block.native }
}

/// A block that the caller points to.
///
/// # Safety
/// Null, or a block lies there.
unsafe fn decode(block: *const tables::Block, site: Site) -> Result<Block, Fault> {
    // SAFETY: one block lies there by the caller's promise.
    let block = unsafe { sized::list(block, 1, site) }?;
    Ok(Block { base: block[0].base, len: block[0].len, native: block[0].native })
}

pub(super) unsafe extern "C" fn allocate<P: Plugin>(
    device: u64,
    want: To<tables::Alloc>,
    out: *mut tables::Block,
) -> Status {
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's struct, with its size.
        let want = unsafe { sized::read(want) }.map_err(|bad| bad.fault(Site::Allocate))?;
        // SAFETY: the caller's chain.
        unsafe { sized::chain(want.next, Site::Allocate) }?;
        let want = Want {
            len: want.len,
            align: want.align,
            kind: want.kind,
            access: want.access,
            usage: want.usage,
        };
        let block = device.allocate(&want)?;
        // SAFETY: the caller's own place.
        let put = unsafe { sized::put(out, encode(&block), Site::Allocate) };
        if put.is_err() {
            device.free(&block)?;
        }
        Ok(put?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Allocate, run) }
}

pub(super) unsafe extern "C" fn free<P: Plugin>(device: u64, block: *const tables::Block) -> Status {
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's block.
        Ok(device.free(&unsafe { decode(block, Site::Free) }?)?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Free, run) }
}

pub(super) unsafe extern "C" fn map<P: Plugin>(
    device: u64,
    block: *const tables::Block,
    offset: u64,
    len: u64,
    _access: u32,
    host: *mut *mut c_void,
) -> Status
where
    P::Device: HostAccess,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's block.
        let block = unsafe { decode(block, Site::Map) }?;
        let at = device.map(&block, offset, len)?;
        // SAFETY: the caller's own place.
        let put = unsafe { sized::put(host, at.cast::<c_void>(), Site::Map) };
        if put.is_err() {
            device.unmap(&block, offset, len)?;
        }
        Ok(put?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Map, run) }
}

pub(super) unsafe extern "C" fn unmap<P: Plugin>(
    device: u64,
    block: *const tables::Block,
    offset: u64,
    len: u64,
) -> Status
where
    P::Device: HostAccess,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's block.
        let block = unsafe { decode(block, Site::Unmap) }?;
        Ok(device.unmap(&block, offset, len)?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Unmap, run) }
}

pub(super) unsafe extern "C" fn flush<P: Plugin>(
    device: u64,
    block: *const tables::Block,
    offset: u64,
    len: u64,
) -> Status
where
    P::Device: HostAccess,
{
    // SAFETY: the caller's promise is ours.
    unsafe { sync::<P>(device, block, offset, len, true) }
}

pub(super) unsafe extern "C" fn invalidate<P: Plugin>(
    device: u64,
    block: *const tables::Block,
    offset: u64,
    len: u64,
) -> Status
where
    P::Device: HostAccess,
{
    // SAFETY: the caller's promise is ours.
    unsafe { sync::<P>(device, block, offset, len, false) }
}

unsafe fn sync<P: Plugin>(
    device: u64,
    block: *const tables::Block,
    offset: u64,
    len: u64,
    to_device: bool,
) -> Status
where
    P::Device: HostAccess,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's block.
        let block = unsafe { decode(block, Site::Flush) }?;
        Ok(device.sync(&block, offset, len, to_device)?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Flush, run) }
}

pub(super) unsafe extern "C" fn register_host<P: Plugin>(
    device: u64,
    host: *mut c_void,
    len: u64,
    access: u32,
    out: *mut tables::Block,
) -> Status
where
    P::Device: HostAccess,
{
    let run = |device: &P::Device, _: &_| -> Result<(), No> {
        let block = device.register(host.cast(), len, access)?;
        // SAFETY: the caller's own place.
        let put = unsafe { sized::put(out, encode(&block), Site::Register) };
        if put.is_err() {
            device.unregister(&block)?;
        }
        Ok(put?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Register, run) }
}

pub(super) unsafe extern "C" fn unregister_host<P: Plugin>(device: u64, block: *const tables::Block) -> Status
where
    P::Device: HostAccess,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's block.
        Ok(device.unregister(&unsafe { decode(block, Site::Register) }?)?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Register, run) }
}
