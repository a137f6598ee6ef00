//! Programs and their kernels. Unloading waits for the last use, like freed memory: work that was submitted, and calls
//! that are inside the backend with the program, which pin it.
//!
//! # Safety
//! `ProgramRecord::undo` holds a function of this runtime's device type, written by `load` of the same runtime.
#![allow(unsafe_code)]

use super::{
    Runtime,
    late::{LateItem, LateLink},
};
use crate::{
    device::{Block, Device, Kernel, Param, Programs, SymbolKind},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::{Body, Handle, Pins},
    record::state,
    sync::{AtomicU32, AtomicUsize, fence},
    word::Word64,
};
use core::sync::atomic::Ordering::*;

type Undo<D> = fn(&D, u64) -> Result<(), Fault>;

/// An image loaded on a device.
pub struct ProgramRecord {
    pub(crate) state: AtomicU32,
    pub(crate) device: AtomicU32,
    pub(crate) native: Word64,
    undo: AtomicUsize,
    /// Calls that are inside the backend with it.
    pub(crate) pins: Pins,
    pub(crate) late: LateLink,
}

impl Body for ProgramRecord {
    const NEW: Self = ProgramRecord {
        state: AtomicU32::new(0),
        device: AtomicU32::new(0),
        native: Word64::new(0),
        undo: AtomicUsize::new(0),
        pins: Pins::NEW,
        late: LateLink::NEW,
    };
    const KIND: u8 = 5;
}

/// A kernel of a program.
pub struct KernelRecord {
    program: Word64,
    native: Word64,
    device: AtomicU32,
    args_len: AtomicU32,
    params: AtomicU32,
    group_max: AtomicU32,
    shared_static: AtomicU32,
}

impl Body for KernelRecord {
    const NEW: Self = KernelRecord {
        program: Word64::new(0),
        native: Word64::new(0),
        device: AtomicU32::new(0),
        args_len: AtomicU32::new(0),
        params: AtomicU32::new(0),
        group_max: AtomicU32::new(0),
        shared_static: AtomicU32::new(0),
    };
    const KIND: u8 = 6;
}

/// What is known of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// Number of the device.
    pub device: usize,
    /// As the backend describes it.
    pub kernel: Kernel,
}

impl<D: Device, E: Env> Runtime<D, E> {
    fn program(
        &self,
        program: Handle<ProgramRecord>,
        site: Site,
    ) -> Result<(&'static D, &'static ProgramRecord), Fault> {
        let stale = Fault::stale(site, program.raw());
        let body = self.programs.get(program).ok_or(stale)?;
        if body.state.load(Acquire) != state::LIVE {
            return Err(stale);
        }
        Ok((self.device(body.device.load(Relaxed) as usize, site)?, body))
    }

    /// Keeps a program loaded while `f` is inside the backend with it.
    fn with_program<R>(
        &self,
        program: Handle<ProgramRecord>,
        site: Site,
        f: impl FnOnce(&'static D, &'static ProgramRecord) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let (owner, body) = self.program(program, site)?;
        if !body.pins.pin() {
            return Err(Fault::stale(site, program.raw()));
        }
        // Looked at again: what was pinned may be the slot's next turn, or a program that is to go.
        let result = self.program(program, site).and_then(|_| f(owner, body));
        self.leave(&body.pins);
        result
    }

    /// A kernel by handle; stale as soon as its program is unloaded.
    ///
    /// # Errors
    /// `InvalidHandle`.
    pub fn kernel_info(&self, kernel: Handle<KernelRecord>) -> Result<KernelInfo, Fault> {
        let stale = Fault::stale(Site::Kernel, kernel.raw());
        let body = self.kernels.get(kernel).ok_or(stale)?;
        let known = Kernel {
            native: body.native.get(),
            args_len: body.args_len.load(Relaxed),
            params: body.params.load(Relaxed),
            group_max: body.group_max.load(Relaxed),
            shared_static: body.shared_static.load(Relaxed),
        };
        let device = body.device.load(Relaxed) as usize;
        self.program(Handle::from_raw(body.program.get()), Site::Kernel).map_err(|_| stale)?;
        if self.kernels.live(kernel) { Ok(KernelInfo { device, kernel: known }) } else { Err(stale) }
    }

    /// Unloads a program; its kernels are stale at once, the image goes when nothing can run it any more.
    ///
    /// # Errors
    /// `InvalidHandle`; what the backend says if it is unloaded at once, and then the program is live again.
    pub fn unload(&self, program: Handle<ProgramRecord>) -> Result<(), Fault> {
        let body = self.with_program(program, Site::Unload, |_, body| {
            let late = body.state.compare_exchange(state::LIVE, state::LATE, AcqRel, Relaxed);
            late.map(|_| body).map_err(|_| Fault::stale(Site::Unload, program.raw()))
        })?;
        body.late.begin();
        if self.late_over(&body.late) && body.pins.end_if_free() {
            return self.unload_body(program.slot(), body);
        }
        self.be_late(LateItem::Program(program.slot()));
        Ok(())
    }

    pub(crate) fn unload_now(&self, slot: u32) {
        let Some(body) = self.programs.body(slot) else { return };
        if self.unload_body(slot, body).is_err() {
            self.refused.fetch_add(1, Relaxed);
        }
    }

    /// The backend's own unload, of a program whose pins have ended.
    fn unload_body(&self, slot: u32, body: &'static ProgramRecord) -> Result<(), Fault> {
        let device = self.device(body.device.load(Relaxed) as usize, Site::Unload)?;
        // SAFETY: `undo` was stored from an `Undo<D>` of this runtime's `D`.
        let undo = unsafe { core::mem::transmute::<usize, Undo<D>>(body.undo.load(Relaxed)) };
        let Some(handle) = self.programs.current(slot) else { return Err(Self::bug(Site::Unload)) };
        if let Err(fault) = undo(device, body.native.get()) {
            body.pins.reset();
            body.state.store(state::LIVE, Release);
            return Err(fault);
        }
        for index in 0..self.kernels.used() {
            let of_this = |k: &&KernelRecord| k.program.get() == handle.raw();
            if self.kernels.body(index).filter(of_this).is_some()
                && let Some(kernel) = self.kernels.current(index)
                && self.kernels.end(kernel)
            {
                self.kernels.reuse(index);
            }
        }
        body.state.store(state::GONE, Release);
        self.programs.end(handle);
        body.pins.reset();
        self.programs.reuse(slot);
        Ok(())
    }
}

impl<D: Programs, E: Env> Runtime<D, E> {
    /// Loads an image on a device.
    ///
    /// # Errors
    /// `InvalidImage`; `InvalidDevice`; `ResourceExhausted`; what the backend says.
    pub fn load(&self, device: usize, image: &[u8]) -> Result<Handle<ProgramRecord>, Fault> {
        let owner = self.device(device, Site::Load)?;
        if image.is_empty() {
            return Err(Fault::caller(Kind::InvalidImage, Site::Load, Why::Zero, [0; 2]));
        }
        let native = owner.load(image)?;
        let undo: Undo<D> = |owner, native| owner.unload(native);
        let entered = self.programs.insert::<E>(|program, _| {
            program.device.store(device as u32, Relaxed);
            program.native.set(native);
            program.undo.store(undo as *const () as usize, Relaxed);
            program.state.store(state::LIVE, Release);
        });
        entered.ok_or_else(|| {
            let _ = owner.unload(native);
            Fault::full(Site::Load, self.programs.used() as u64)
        })
    }

    /// A kernel by name; `layout` is the caller's idea of its parameters, empty for none.
    ///
    /// # Errors
    /// `NotFound`; `SymbolKind` if the name is a global's; `InvalidArgument` if the image knows another layout.
    pub fn kernel(
        &self,
        program: Handle<ProgramRecord>,
        name: &[u8],
        layout: &[Param],
    ) -> Result<Handle<KernelRecord>, Fault> {
        self.with_program(program, Site::Kernel, |owner, body| {
            let kernel = owner.kernel(body.native.get(), name, layout)?;
            // Still pinned, so that the unload that ends all kernels of the program meets this one too.
            let entered = self.kernels.insert::<E>(|k, _| {
                k.program.set(program.raw());
                k.native.set(kernel.native);
                k.device.store(body.device.load(Relaxed), Relaxed);
                k.args_len.store(kernel.args_len, Relaxed);
                k.params.store(kernel.params, Relaxed);
                k.group_max.store(kernel.group_max, Relaxed);
                k.shared_static.store(kernel.shared_static, Relaxed);
            });
            entered.ok_or(Fault::full(Site::Kernel, self.kernels.used() as u64))
        })
    }

    /// Address and size of a global by name.
    ///
    /// # Errors
    /// `NotFound`; `SymbolKind` if the name is a kernel's.
    pub fn global(&self, program: Handle<ProgramRecord>, name: &[u8]) -> Result<Block, Fault> {
        self.with_program(program, Site::Global, |owner, body| owner.global(body.native.get(), name))
    }

    /// Symbol number `index`: writes its name (a prefix if `out` is short), answers the name's length and the kind.
    ///
    /// # Errors
    /// What the backend says; `InvalidHandle`.
    pub fn symbol(
        &self,
        program: Handle<ProgramRecord>,
        index: u32,
        out: &mut [u8],
    ) -> Result<Option<(usize, SymbolKind)>, Fault> {
        self.with_program(program, Site::Symbols, |owner, body| owner.symbol(body.native.get(), index, out))
    }

    /// The kernel's parameters (as many as fit) and how many there are.
    ///
    /// # Errors
    /// What the backend says; `InvalidHandle`.
    pub fn params(&self, kernel: Handle<KernelRecord>, out: &mut [Param]) -> Result<usize, Fault> {
        self.with_kernel(kernel, Site::Kernel, |owner, native| owner.params(native, out))
    }

    /// The number of work-items in a group that uses the device best with so much dynamic shared memory.
    ///
    /// # Errors
    /// What the backend says; `InvalidHandle`.
    pub fn occupancy(&self, kernel: Handle<KernelRecord>, shared: u64) -> Result<u32, Fault> {
        self.with_kernel(kernel, Site::Occupancy, |owner, native| owner.occupancy(native, shared))
    }

    /// Keeps a kernel's program loaded while `f` is inside the backend with the kernel.
    fn with_kernel<R>(
        &self,
        kernel: Handle<KernelRecord>,
        site: Site,
        f: impl FnOnce(&'static D, u64) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let stale = Fault::stale(site, kernel.raw());
        let body = self.kernels.get(kernel).ok_or(stale)?;
        let (program, native) = (Handle::from_raw(body.program.get()), body.native.get());
        fence(Acquire);
        if !self.kernels.live(kernel) {
            return Err(stale);
        }
        let mut inside = false;
        let result = self.with_program(program, site, |owner, _| {
            inside = true;
            f(owner, native)
        });
        if inside { result } else { Err(stale) }
    }
}
