//! Programs and kernels.

use crate::{
    device::Device,
    error::{Error, ErrorKind, Result},
    near,
};
use std::{fmt, sync::Arc};
use wharf_core::{
    device::{Block, Param, SymbolKind},
    fault::Kind,
    handle::Handle,
    runtime::{KernelRecord, ProgramRecord},
};

/// Longest name of a symbol that is listed.
const NAME_MAX: usize = 4096;

struct Inner {
    device: Device,
    handle: Handle<ProgramRecord>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It goes when nothing can run it any more; a refusal is counted by core.
        let _ = self.device.core().and_then(|core| core.unload(self.handle));
        self.device.engine.kick();
    }
}

/// An image loaded on a device; kernels keep it.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

impl Program {
    pub(crate) fn load(device: Device, image: &[u8]) -> Result<Program> {
        if !device.has_programs() {
            let message = format!("device {} loads no programs", device.id());
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let handle = device.core()?.load(device.index, image)?;
        Ok(Program(Arc::new(Inner { device, handle })))
    }

    /// Names of its kernels, or of its globals.
    ///
    /// # Errors
    /// What the driver says.
    pub fn symbols(&self, kind: SymbolKind) -> Result<Vec<String>> {
        let mut names = vec![];
        let mut bytes = vec![0u8; NAME_MAX];
        for index in 0.. {
            let Some((len, found)) = self.0.device.core()?.symbol(self.0.handle, index, &mut bytes)? else {
                break;
            };
            if found == kind {
                names.push(String::from_utf8_lossy(&bytes[..len.min(NAME_MAX)]).into_owned());
            }
        }
        Ok(names)
    }

    /// A kernel by name.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchKernel`] with the nearest names; what the driver says.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let core = self.0.device.core()?;
        let handle = core.kernel(self.0.handle, name.as_bytes(), &[]).map_err(|fault| {
            self.no_such(fault.kind, name, SymbolKind::Kernel).unwrap_or_else(|| fault.into())
        })?;
        Ok(Kernel { program: self.clone(), handle, name: name.into() })
    }

    /// Address and size of a global by name.
    ///
    /// # Errors
    /// As [`Program::kernel`].
    pub fn global(&self, name: &str) -> Result<Block> {
        self.0.device.core()?.global(self.0.handle, name.as_bytes()).map_err(|fault| {
            self.no_such(fault.kind, name, SymbolKind::Global).unwrap_or_else(|| fault.into())
        })
    }

    fn no_such(&self, kind: Kind, name: &str, wanted: SymbolKind) -> Option<Error> {
        let what = match wanted {
            SymbolKind::Kernel => "kernel",
            SymbolKind::Global => "global",
        };
        let name_shown = near::escaped(name);
        let message = match kind {
            Kind::NotFound => {
                let names = self.symbols(wanted).unwrap_or_default();
                let there = near::there_are(name, &format!("{what}s"), names.iter().map(String::as_str));
                format!("no {what} `{name_shown}` in the image{there}")
            }
            Kind::SymbolKind => format!("`{name_shown}` in the image is not a {what}"),
            _ => return None,
        };
        Some(Error::new(ErrorKind::NoSuchKernel, message))
    }
}

/// A kernel of a program.
#[derive(Clone)]
pub struct Kernel {
    program: Program,
    handle: Handle<KernelRecord>,
    name: String,
}

impl Kernel {
    pub(crate) fn handle(&self) -> Handle<KernelRecord> {
        self.handle
    }
    /// Its name in the image.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Its parameters, if the image lists them.
    ///
    /// # Errors
    /// What the driver says.
    pub fn params(&self) -> Result<Vec<Param>> {
        let core = self.program.0.device.core()?;
        let mut params = vec![Param::default(); 16];
        let count = core.params(self.handle, &mut params)?;
        params.resize(count, Param::default());
        if count > 16 {
            core.params(self.handle, &mut params)?;
        }
        Ok(params)
    }
    /// The number of work-items in a group that uses the device best with so much dynamic shared memory.
    ///
    /// # Errors
    /// What the driver says.
    pub fn best_group(&self, shared: u64) -> Result<u32> {
        Ok(self.program.0.device.core()?.occupancy(self.handle, shared)?)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({:?} on {})", self.0.handle, self.0.device.id())
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({} of {:?})", self.name, self.program)
    }
}
