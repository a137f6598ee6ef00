//! Programs: loaded images, their kernels and globals by name.
//!
//! # Safety
//! An exported function that is listed as a kernel has a kernel's signature: the image says so by its record, or,
//! without records, the caller does by launching it.
#![allow(unsafe_code)]

use crate::{device::HostDevice, elf, launch::Entry, limits, object::Object, text::with_text};
use std::{
    collections::{BTreeMap, BTreeSet},
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use wharf_core::{
    device::{Block, Kernel, Param, Programs, SymbolKind},
    fault::{Fault, Kind, Site, Why},
};
use wharf_kernel::KernelFn;

struct Global {
    name: Box<str>,
    base: u64,
    size: u64,
}

/// A loaded image. Entries do not move: their addresses are the kernels' words.
struct Program {
    kernels: Box<[Entry]>,
    globals: Box<[Global]>,
    /// Last: what is above points into it.
    _object: Object,
}

#[derive(Default)]
struct Inner {
    last: u64,
    programs: BTreeMap<u64, Arc<Program>>,
    /// Words of the kernels of all programs.
    words: BTreeSet<u64>,
}

/// The programs of a device.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<Inner>);

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, program: u64, site: Site) -> Result<Arc<Program>, Fault> {
        self.lock().programs.get(&program).cloned().ok_or(Fault::stale(site, program))
    }

    /// Answers from a live kernel.
    fn with<R>(&self, kernel: u64, site: Site, f: impl FnOnce(&Entry) -> R) -> Result<R, Fault> {
        let inner = self.lock();
        if !inner.words.contains(&kernel) {
            return Err(Fault::stale(site, kernel));
        }
        // SAFETY: the word is in the set, so it is the address of an entry of a program on the shelf, which the lock
        // keeps there.
        Ok(f(unsafe { &*ptr::with_exposed_provenance::<Entry>(kernel as usize) }))
    }
}

fn word(entry: &Entry) -> u64 {
    ptr::from_ref(entry).expose_provenance() as u64
}

fn refuse(flaw: elf::Flaw) -> Fault {
    let fault = Fault::caller(Kind::InvalidImage, Site::Load, flaw.why, flaw.values);
    with_text(fault, flaw.what.into())
}

fn open(image: &[u8]) -> Result<Program, Fault> {
    let symbols = elf::read(image).map_err(refuse)?;
    let object = Object::load(image)?;
    let (mut kernels, mut globals) = (Vec::new(), Vec::new());
    for symbol in symbols {
        let Some(address) = object.symbol(&symbol.name) else {
            // Listed, but not for the linker: its table of hashes says otherwise, or the address is 0.
            if symbol.record.is_none() {
                continue;
            }
            let fault = Fault::caller(Kind::InvalidImage, Site::Load, Why::Address, [0; 2]);
            return Err(with_text(fault, format!("the linker does not find kernel {}", symbol.name)));
        };
        let name = symbol.name.into_boxed_str();
        if symbol.kind == SymbolKind::Global {
            globals.push(Global {
                name,
                base: address.as_ptr().expose_provenance() as u64,
                size: symbol.size,
            });
            continue;
        }
        // SAFETY: an exported function of the image, with a kernel's signature (module rule).
        let call = unsafe { std::mem::transmute::<*mut libc::c_void, KernelFn>(address.as_ptr()) };
        kernels.push(entry(name, call, symbol.record));
    }
    Ok(Program { kernels: kernels.into(), globals: globals.into(), _object: object })
}

fn entry(name: Box<str>, call: KernelFn, record: Option<elf::Record>) -> Entry {
    let Some(record) = record else {
        let (args_len, group_max) = (Kernel::UNCHECKED, limits::GROUP_MAX);
        return Entry { name, call, args_len, needs: 0, group_max, fixed: 0, params: Box::default() };
    };
    let own = if record.group_max == 0 { limits::GROUP_MAX } else { record.group_max };
    Entry {
        name,
        call,
        args_len: record.args_len,
        // In order and inside `args_len`: the parser has looked.
        needs: record.params.last().map_or(0, |last| last.offset + last.size),
        group_max: own.min(limits::GROUP_MAX),
        fixed: record.shared,
        params: record.params,
    }
}

impl Programs for HostDevice {
    fn accepts(&self, image: &[u8]) -> bool {
        elf::read(image).is_ok()
    }

    fn load(&self, image: &[u8]) -> Result<u64, Fault> {
        let program = Arc::new(open(image)?);
        let mut inner = self.shelf.lock();
        inner.last += 1;
        let name = inner.last;
        inner.words.extend(program.kernels.iter().map(word));
        inner.programs.insert(name, program);
        Ok(name)
    }

    fn unload(&self, program: u64) -> Result<(), Fault> {
        let mut inner = self.shelf.lock();
        let gone = inner.programs.remove(&program).ok_or(Fault::stale(Site::Unload, program))?;
        for kernel in &gone.kernels {
            inner.words.remove(&word(kernel));
        }
        drop(inner);
        // Destructors of the image run here, outside the lock.
        drop(gone);
        Ok(())
    }

    fn kernel(&self, program: u64, name: &[u8], layout: &[Param]) -> Result<Kernel, Fault> {
        let program = self.shelf.get(program, Site::Kernel)?;
        let Some(entry) = program.kernels.iter().find(|entry| entry.name.as_bytes() == name) else {
            let other = program.globals.iter().any(|global| global.name.as_bytes() == name);
            return Err(absent(Site::Kernel, other));
        };
        compare(entry, layout)?;
        Ok(Kernel {
            native: word(entry),
            args_len: entry.args_len,
            params: entry.params.len() as u32,
            group_max: entry.group_max,
            shared_static: entry.fixed,
        })
    }

    fn global(&self, program: u64, name: &[u8]) -> Result<Block, Fault> {
        let program = self.shelf.get(program, Site::Global)?;
        if let Some(global) = program.globals.iter().find(|global| global.name.as_bytes() == name) {
            return Ok(Block { base: global.base, len: global.size, native: 0 });
        }
        let other = program.kernels.iter().any(|entry| entry.name.as_bytes() == name);
        Err(absent(Site::Global, other))
    }

    fn symbol(&self, program: u64, index: u32, out: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault> {
        let program = self.shelf.get(program, Site::Symbols)?;
        let kernels = program.kernels.iter().map(|entry| (&entry.name, SymbolKind::Kernel));
        let globals = program.globals.iter().map(|global| (&global.name, SymbolKind::Global));
        let Some((name, kind)) = kernels.chain(globals).nth(index as usize) else { return Ok(None) };
        let fits = name.len().min(out.len());
        out[..fits].copy_from_slice(&name.as_bytes()[..fits]);
        Ok(Some((name.len(), kind)))
    }

    fn params(&self, kernel: u64, out: &mut [Param]) -> Result<usize, Fault> {
        self.shelf.with(kernel, Site::Kernel, |entry| {
            let fits = entry.params.len().min(out.len());
            out[..fits].copy_from_slice(&entry.params[..fits]);
            entry.params.len()
        })
    }

    /// A group runs on one thread from its first item to its last, so the largest group wastes least between groups.
    fn occupancy(&self, kernel: u64, shared: u64) -> Result<u32, Fault> {
        let most = self.shelf.with(kernel, Site::Occupancy, |entry| entry.group_max)?;
        if shared > limits::SHARED_MAX.into() {
            let values = [shared, limits::SHARED_MAX.into()];
            return Err(Fault::caller(Kind::InvalidArgument, Site::Occupancy, Why::Limit, values));
        }
        Ok(most)
    }
}

fn absent(site: Site, other_kind: bool) -> Fault {
    let kind = if other_kind { Kind::SymbolKind } else { Kind::NotFound };
    Fault::caller(kind, site, Why::Unknown, [0; 2])
}

/// The caller's layout against the image's. An alignment of 0 is not compared, nor is anything if the image is silent.
fn compare(entry: &Entry, layout: &[Param]) -> Result<(), Fault> {
    if layout.is_empty() || entry.args_len == Kernel::UNCHECKED {
        return Ok(());
    }
    let refuse = |why, values| Err(Fault::caller(Kind::InvalidArgument, Site::Kernel, why, values));
    if layout.len() != entry.params.len() {
        return refuse(Why::Mismatch, [layout.len() as u64, entry.params.len() as u64]);
    }
    let differs = |(given, needed): (&Param, &Param)| {
        (given.offset, given.size) != (needed.offset, needed.size)
            || !matches!(given.align, 0) && given.align != needed.align
    };
    match layout.iter().zip(&entry.params).position(differs) {
        None => Ok(()),
        Some(number) => refuse(Why::Entry, [number as u64, 0]),
    }
}
