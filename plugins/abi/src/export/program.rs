//! Table "wharf.program".
//!
//! # Safety
//! See [`export`](super). The backend's words for programs and kernels cross as they are.
#![allow(unsafe_code)]

use super::{No, Plugin, memory::encode, on_device};
use crate::{
    guard::State,
    sized,
    tables::{self, Ext, Status, Str, To, symbol},
};
use core::ffi::c_void;
use wharf_core::{
    device::{Param, Programs, SymbolKind},
    fault::{Kind, Site},
};

// Core's parameter and the ABI's are the same four words, so slices of them cross without a copy.
const _: () = {
    assert!(size_of::<Param>() == size_of::<tables::Param>());
    assert!(core::mem::offset_of!(Param, offset) == core::mem::offset_of!(tables::Param, offset));
    assert!(core::mem::offset_of!(Param, size) == core::mem::offset_of!(tables::Param, size));
    assert!(core::mem::offset_of!(Param, align) == core::mem::offset_of!(tables::Param, align));
    assert!(core::mem::offset_of!(Param, flags) == core::mem::offset_of!(tables::Param, flags));
};

pub(super) unsafe extern "C" fn accepts<P: Plugin>(device: u64, image: *const c_void, len: u64) -> Status
where
    P::Device: Programs,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's bytes.
        let image = unsafe { sized::list(image.cast::<u8>(), len, Site::Load) }?;
        if device.accepts(image) { Ok(()) } else { Err(No::Plain(Kind::InvalidImage)) }
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::LISTED, Site::Load, run) }
}

pub(super) unsafe extern "C" fn load<P: Plugin>(
    device: u64,
    image: *const c_void,
    len: u64,
    next: *const Ext,
    program: *mut u64,
) -> Status
where
    P::Device: Programs,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's chain.
        unsafe { sized::chain(next, Site::Load) }?;
        // SAFETY: the caller's bytes.
        let loaded = device.load(unsafe { sized::list(image.cast::<u8>(), len, Site::Load) }?)?;
        // SAFETY: the caller's own place.
        let put = unsafe { sized::put(program, loaded, Site::Load) };
        if put.is_err() {
            device.unload(loaded)?;
        }
        Ok(put?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Load, run) }
}

pub(super) unsafe extern "C" fn unload<P: Plugin>(device: u64, program: u64) -> Status
where
    P::Device: Programs,
{
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Unload, |device, _| Ok(device.unload(program)?)) }
}

pub(super) unsafe extern "C" fn kernel<P: Plugin>(
    device: u64,
    program: u64,
    name: Str,
    layout: *const tables::Param,
    count: u32,
    out: To<tables::Kernel>,
) -> Status
where
    P::Device: Programs,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's bytes.
        let name = unsafe { sized::list(name.ptr, name.len, Site::Kernel) }?;
        // SAFETY: the caller's parameters; core's type has the same layout (asserted above).
        let layout = unsafe { sized::list(layout.cast::<Param>(), count.into(), Site::Kernel) }?;
        let kernel = device.kernel(program, name, layout)?;
        let kernel = tables::Kernel {
            struct_size: size_of::<tables::Kernel>() as u32,
            params: kernel.params,
            native: kernel.native,
            args_len: kernel.args_len,
            group_max: kernel.group_max,
            shared_static: kernel.shared_static,
            flags: 0,
        };
        // SAFETY: the caller's own place, with its size.
        unsafe { sized::write(out, &kernel) }.map_err(|bad| bad.fault(Site::Kernel).into())
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Kernel, run) }
}

pub(super) unsafe extern "C" fn global<P: Plugin>(
    device: u64,
    program: u64,
    name: Str,
    out: *mut tables::Block,
) -> Status
where
    P::Device: Programs,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's bytes.
        let name = unsafe { sized::list(name.ptr, name.len, Site::Global) }?;
        let block = device.global(program, name)?;
        // SAFETY: the caller's own place.
        Ok(unsafe { sized::put(out, encode(&block), Site::Global) }?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Global, run) }
}

pub(super) unsafe extern "C" fn symbol<P: Plugin>(
    device: u64,
    program: u64,
    index: u32,
    buf: *mut u8,
    cap: u64,
    len: *mut u64,
    kind: *mut u32,
) -> Status
where
    P::Device: Programs,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's own place for `cap` bytes.
        let out = unsafe { sized::space(buf, cap, Site::Symbols) }?;
        let Some((whole, which)) = device.symbol(program, index, out)? else {
            return Err(No::Plain(Kind::NotFound));
        };
        let which = match which {
            SymbolKind::Kernel => symbol::KERNEL,
            SymbolKind::Global => symbol::GLOBAL,
        };
        // SAFETY: the caller's own place.
        unsafe { sized::put(len, whole as u64, Site::Symbols) }?;
        // SAFETY: the caller's own place.
        Ok(unsafe { sized::put(kind, which, Site::Symbols) }?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Symbols, run) }
}

pub(super) unsafe extern "C" fn params<P: Plugin>(
    device: u64,
    kernel: u64,
    out: *mut tables::Param,
    cap: u32,
    count: *mut u32,
) -> Status
where
    P::Device: Programs,
{
    let run = |device: &P::Device, _: &_| {
        // SAFETY: the caller's own place for `cap` parameters; the layouts are the same (asserted above).
        let out = unsafe { sized::space(out.cast::<Param>(), cap.into(), Site::Kernel) }?;
        let whole = device.params(kernel, out)?;
        // SAFETY: the caller's own place.
        Ok(unsafe { sized::put(count, whole as u32, Site::Kernel) }?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Kernel, run) }
}

pub(super) unsafe extern "C" fn occupancy<P: Plugin>(
    device: u64,
    kernel: u64,
    shared: u64,
    items: *mut u32,
) -> Status
where
    P::Device: Programs,
{
    let run = |device: &P::Device, _: &_| {
        let best = device.occupancy(kernel, shared)?;
        // SAFETY: the caller's own place.
        Ok(unsafe { sized::put(items, best, Site::Occupancy) }?)
    };
    // SAFETY: core passes handles of ours.
    unsafe { on_device::<P>(device, State::STARTED, Site::Occupancy, run) }
}
