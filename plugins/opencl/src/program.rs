//! Programs: sources, SPIR-V where the device takes it, and what its own compiler made; their kernels, and launches.
//!
//! A kernel's arguments come as one packed block in C layout. Where each lies follows from the types that the driver
//! tells; where it tells none, from what it takes, or from the caller's layout. A parameter in local memory is not in
//! the block: it gets the launch's dynamic shared memory.
//!
//! # Safety
//! A kernel's word is the address of an entry of its own, which lives as long as its program is on the shelf.
#![allow(unsafe_code)]

use crate::{
    device::{Card, OpenclDevice},
    ffi::{self, Event, Kernel as Raw, Program as Built, Queue, Refusal, number, words},
    memory::Store,
    text::with_text,
};
use opencl_sys as cl;
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::CString,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use wharf_core::{
    device::{Block, Kernel, Param, Programs, SymbolKind},
    fault::{Blame, Fault, Kind, Site, Why},
};

/// First word of SPIR-V, in either byte order.
const SPIRV: [[u8; 4]; 2] = [0x0723_0203u32.to_le_bytes(), 0x0723_0203u32.to_be_bytes()];

/// What an argument is to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Bytes.
    Value,
    /// An address.
    Pointer,
    /// One or the other: the driver does not say, and its 8 bytes are an address if they are one of live memory.
    Either,
}

/// An argument in the packed block.
struct Slot {
    index: u32,
    role: Role,
    param: Param,
}

/// A kernel.
struct Entry {
    name: String,
    /// With the arguments set last: whoever launches has it for himself.
    raw: Mutex<Raw>,
    slots: Box<[Slot]>,
    args_len: u32,
    /// Number of the parameter in local memory.
    local: Option<u32>,
    group_max: u32,
    group_step: u32,
    fixed: u32,
}

struct Program {
    built: Built,
    /// What it was built from, if that says more than the driver does.
    source: Option<Box<[u8]>>,
    names: Vec<String>,
    /// Made when first asked for. They do not move: their addresses are the kernels' words.
    entries: Mutex<Vec<Arc<Entry>>>,
}

#[derive(Default)]
struct Inner {
    last: u64,
    programs: BTreeMap<u64, Arc<Program>>,
    /// Words of the kernels of all programs.
    entries: BTreeSet<u64>,
}

/// The programs of a device.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<Inner>);

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shelf {
    fn get(&self, program: u64, site: Site) -> Result<Arc<Program>, Fault> {
        lock(&self.0).programs.get(&program).cloned().ok_or(Fault::stale(site, program))
    }

    /// Answers from a live kernel.
    fn with<R>(&self, kernel: u64, site: Site, f: impl FnOnce(&Entry) -> R) -> Result<R, Fault> {
        let inner = lock(&self.0);
        if !inner.entries.contains(&kernel) {
            return Err(Fault::stale(site, kernel));
        }
        // SAFETY: the word is in the set, so its program is on the shelf, where the lock keeps it.
        Ok(f(unsafe { &*ptr::with_exposed_provenance::<Entry>(kernel as usize) }))
    }
}

/// Whether an image is read as source: text that speaks of kernels. Whether it compiles is seen at the load.
fn is_source(image: &[u8]) -> bool {
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\x0c');
    std::str::from_utf8(image).is_ok_and(|text| text.contains("kernel") && text.chars().all(plain))
}

fn is_spirv(image: &[u8]) -> bool {
    SPIRV.iter().any(|magic| image.starts_with(magic))
}

fn invalid(why: String) -> Fault {
    with_text(Fault::caller(Kind::InvalidImage, Site::Load, Why::Unknown, [0; 2]), why)
}

/// A program that the driver refused is a bad image, unless it ran out of something or is gone.
fn refused(refusal: Refusal, log: String) -> Fault {
    let mut fault = refusal.fault_with(Site::Load, log);
    if !matches!(fault.kind, Kind::ResourceExhausted | Kind::DeviceLost) {
        (fault.kind, fault.blame) = (Kind::InvalidImage, Blame::Caller);
    }
    fault
}

impl OpenclDevice {
    fn takes_spirv(&self) -> bool {
        self.card
            .api
            .device_info(self.card.id, cl::CL_DEVICE_IL_VERSION)
            .is_ok_and(|il| !words(&il).is_empty())
    }

    fn build(&self, image: &[u8]) -> Result<Program, Fault> {
        let (context, id) = (self.card.context(Site::Load)?, self.card.id);
        let built = if image.is_empty() {
            return Err(invalid("no bytes".into()));
        } else if is_source(image) {
            context.program_of_source(image)
        } else if !is_spirv(image) {
            context.program_of_binary(id, image)
        } else if self.takes_spirv() {
            context.program_of_il(image)
        } else {
            return Err(invalid("SPIR-V, which this device does not take".into()));
        };
        let built = built.map_err(|refusal| refused(refusal, String::new()))?;
        built.build(id, c"-cl-kernel-arg-info").map_err(|(refusal, log)| refused(refusal, log))?;
        let names = built.kernel_names().map_err(|refusal| refused(refusal, String::new()))?;
        if names.is_empty() {
            return Err(invalid("there is no kernel in it".into()));
        }
        let source = is_source(image).then(|| image.into());
        Ok(Program { built, source, names, entries: Mutex::default() })
    }
}

impl Programs for OpenclDevice {
    fn accepts(&self, image: &[u8]) -> bool {
        if image.is_empty() || is_source(image) {
            return !image.is_empty();
        }
        if is_spirv(image) {
            return self.takes_spirv();
        }
        let context = self.card.context(Site::Load);
        context.is_ok_and(|context| context.program_of_binary(self.card.id, image).is_ok())
    }

    fn load(&self, image: &[u8]) -> Result<u64, Fault> {
        let program = Arc::new(self.build(image)?);
        let mut inner = lock(&self.shelf.0);
        inner.last += 1;
        let name = inner.last;
        inner.programs.insert(name, program);
        Ok(name)
    }

    fn unload(&self, program: u64) -> Result<(), Fault> {
        let mut inner = lock(&self.shelf.0);
        let gone = inner.programs.remove(&program).ok_or(Fault::stale(Site::Unload, program))?;
        for entry in lock(&gone.entries).iter() {
            inner.entries.remove(&word(entry));
        }
        drop(inner);
        // The driver's own work, outside the lock.
        drop(gone);
        Ok(())
    }

    fn kernel(&self, program: u64, name: &[u8], layout: &[Param]) -> Result<Kernel, Fault> {
        let shelf = self.shelf.get(program, Site::Kernel)?;
        let known = shelf.names.iter().find(|known| known.as_bytes() == name);
        let known = known.ok_or(Fault::caller(Kind::NotFound, Site::Kernel, Why::Unknown, [0; 2]))?;
        let mut entries = lock(&shelf.entries);
        let at = match entries.iter().position(|entry| entry.name == *known) {
            Some(at) => at,
            None => {
                entries.push(Arc::new(entry(&self.card, &shelf, known, layout)?));
                entries.len() - 1
            }
        };
        let entry = &*entries[at];
        compare(entry, layout)?;
        let kernel = Kernel {
            native: word(entry),
            args_len: entry.args_len,
            params: entry.slots.len() as u32,
            group_max: entry.group_max,
            shared_static: entry.fixed,
        };
        drop(entries);
        let mut inner = lock(&self.shelf.0);
        if !inner.programs.contains_key(&program) {
            return Err(Fault::stale(Site::Kernel, program));
        }
        inner.entries.insert(kernel.native);
        Ok(kernel)
    }

    /// OpenCL gives no address of a global to the host.
    fn global(&self, program: u64, name: &[u8]) -> Result<Block, Fault> {
        let shelf = self.shelf.get(program, Site::Global)?;
        if shelf.names.iter().any(|kernel| kernel.as_bytes() == name) {
            return Err(Fault::caller(Kind::SymbolKind, Site::Global, Why::Unknown, [0; 2]));
        }
        let fault = Fault::caller(Kind::NotFound, Site::Global, Why::Unknown, [0; 2]);
        Err(with_text(fault, "OpenCL tells the host of kernels only, not of globals".into()))
    }

    fn symbol(&self, program: u64, index: u32, out: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault> {
        let shelf = self.shelf.get(program, Site::Symbols)?;
        let Some(name) = shelf.names.get(index as usize) else { return Ok(None) };
        let fits = name.len().min(out.len());
        out[..fits].copy_from_slice(&name.as_bytes()[..fits]);
        Ok(Some((name.len(), SymbolKind::Kernel)))
    }

    fn params(&self, kernel: u64, out: &mut [Param]) -> Result<usize, Fault> {
        self.shelf.with(kernel, Site::Kernel, |entry| {
            for (to, slot) in out.iter_mut().zip(&entry.slots) {
                *to = slot.param;
            }
            entry.slots.len()
        })
    }

    /// The largest group that is a multiple of what the device runs at once.
    fn occupancy(&self, kernel: u64, shared: u64) -> Result<u32, Fault> {
        let most = self.card.number(cl::CL_DEVICE_LOCAL_MEM_SIZE);
        if shared > most {
            return Err(Fault::caller(Kind::InvalidArgument, Site::Occupancy, Why::Limit, [shared, most]));
        }
        self.shelf.with(kernel, Site::Occupancy, |entry| match entry.group_max / entry.group_step {
            0 => entry.group_max,
            steps => steps * entry.group_step,
        })
    }
}

fn word(entry: &Entry) -> u64 {
    ptr::from_ref(entry).expose_provenance() as u64
}

/// The caller's layout against the kernel's. An alignment of 0 is not compared.
fn compare(entry: &Entry, layout: &[Param]) -> Result<(), Fault> {
    if layout.is_empty() {
        return Ok(());
    }
    let refuse = |why, values| Err(Fault::caller(Kind::InvalidArgument, Site::Kernel, why, values));
    if layout.len() != entry.slots.len() {
        return refuse(Why::Mismatch, [layout.len() as u64, entry.slots.len() as u64]);
    }
    let differs = |(given, slot): (&Param, &Slot)| {
        let needed = &slot.param;
        (given.offset, given.size) != (needed.offset, needed.size)
            || given.align != 0 && given.align != needed.align
    };
    match layout.iter().zip(&entry.slots).position(differs) {
        None => Ok(()),
        Some(number) => refuse(Why::Entry, [number as u64, 0]),
    }
}

/// Looks a kernel up, and its parameters.
fn entry(card: &Card, program: &Program, name: &str, layout: &[Param]) -> Result<Entry, Fault> {
    let of = |refusal: Refusal| refusal.fault(Site::Kernel);
    let text =
        CString::new(name).map_err(|_| Fault::caller(Kind::NotFound, Site::Kernel, Why::Unknown, [0; 2]))?;
    let mut raw = program.built.kernel(&text).map_err(of)?;
    let count = raw.info(cl::CL_KERNEL_NUM_ARGS).map_err(of)? as u32;
    let (mut slots, mut local, mut end) = (Vec::new(), None, 0);
    for index in 0..count {
        let given = layout.get(slots.len());
        let measure = |ty: &str| measure(card, program.source.as_deref()?, ty);
        let found = argument(&mut raw, index, given, &measure).map_err(|why| unlaid(name, index, why))?;
        let (role, param) = match found {
            Argument::Local if local.is_some() => {
                return Err(unlaid(
                    name,
                    index,
                    "is the second in local memory; one gets the shared memory".into(),
                ));
            }
            Argument::Local => {
                local = Some(index);
                continue;
            }
            Argument::Sized { role, size, align } => {
                let offset = u32::next_multiple_of(end, align);
                (role, Param { offset, size, align, flags: 0 })
            }
            Argument::Given(role, param) => (role, param),
        };
        end = param.offset.saturating_add(param.size);
        slots.push(Slot { index, role, param });
    }
    let about = |what| raw.work_group_info(card.id, what).map_err(of);
    let group_max = number(&about(cl::CL_KERNEL_WORK_GROUP_SIZE)?) as u32;
    let group_step = number(&about(cl::CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE)?) as u32;
    let fixed = number(&about(cl::CL_KERNEL_LOCAL_MEM_SIZE)?) as u32;
    let widest = slots.iter().map(|slot| slot.param.align).max().unwrap_or(1);
    let args_len = end.next_multiple_of(widest.max(1));
    Ok(Entry {
        name: name.to_owned(),
        raw: Mutex::new(raw),
        slots: slots.into(),
        args_len,
        local,
        group_max,
        group_step: group_step.max(1),
        fixed,
    })
}

fn unlaid(name: &str, index: u32, why: String) -> Fault {
    let fault = Fault::backend(Kind::Unsupported, Site::Kernel, Why::Entry, [index.into(), 0]);
    with_text(fault, format!("parameter {index} of {name} {why}"))
}

/// What is known of a parameter.
#[derive(Debug, PartialEq, Eq)]
enum Argument {
    /// It gets the dynamic shared memory.
    Local,
    /// By its type.
    Sized { role: Role, size: u32, align: u32 },
    /// By the caller's layout.
    Given(Role, Param),
}

/// Finds size and alignment of a type that a program defines.
type Measure<'a> = &'a dyn Fn(&str) -> Option<[u32; 2]>;

fn argument(
    raw: &mut Raw,
    index: u32,
    given: Option<&Param>,
    measure: Measure<'_>,
) -> Result<Argument, String> {
    let Ok(place) = raw.arg_info(index, cl::CL_KERNEL_ARG_ADDRESS_QUALIFIER) else {
        return match (tried(raw, index), given) {
            (Some(Argument::Local), _) => Ok(Argument::Local),
            (Some(Argument::Sized { role, .. }), Some(param)) => Ok(Argument::Given(role, *param)),
            (Some(found), None) => Ok(found),
            (_, Some(param)) if param.size == 8 => Ok(Argument::Given(Role::Either, *param)),
            (_, Some(param)) => Ok(Argument::Given(Role::Value, *param)),
            (None, None) => Err("is not described by this program: give the layout of its parameters".into()),
        };
    };
    let ty = raw.arg_info(index, cl::CL_KERNEL_ARG_TYPE_NAME).map_or(String::new(), |name| words(&name));
    match number(&place) as u32 {
        cl::CL_KERNEL_ARG_ADDRESS_LOCAL => Ok(Argument::Local),
        cl::CL_KERNEL_ARG_ADDRESS_GLOBAL | cl::CL_KERNEL_ARG_ADDRESS_CONSTANT if ty.ends_with('*') => {
            Ok(Argument::Sized { role: Role::Pointer, size: 8, align: 8 })
        }
        cl::CL_KERNEL_ARG_ADDRESS_PRIVATE => by_value(&ty, given, measure),
        _ => Err(format!("is a `{ty}`, for which there is no place in a block of arguments")),
    }
}

/// What a parameter is that the program does not describe, as SPIR-V mostly does not: the driver takes a null address where
/// an address goes, any length where local memory goes, and by value only what has the parameter's size
/// (`CL_INVALID_ARG_SIZE`). Alignment is that of a built-in type of the size.
fn tried(raw: &mut Raw, index: u32) -> Option<Argument> {
    const SIZES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    if raw.set_local(index, size_of::<u64>()).is_ok() {
        let local = raw.set_local(index, size_of::<u64>() + size_of::<u32>()).is_ok();
        let address = Argument::Sized { role: Role::Pointer, size: 8, align: 8 };
        return Some(if local { Argument::Local } else { address });
    }
    let size = SIZES.into_iter().find(|size| raw.set(index, &[0; 128][..*size]).is_ok())? as u32;
    Some(Argument::Sized { role: Role::Value, size, align: size })
}

fn by_value(ty: &str, given: Option<&Param>, measure: Measure<'_>) -> Result<Argument, String> {
    if let Some(size) = size_of_type(ty) {
        return Ok(Argument::Sized { role: Role::Value, size, align: size });
    }
    if let Some(param) = given {
        return Ok(Argument::Given(Role::Value, *param));
    }
    let Some([size, align]) = measure(ty) else {
        return Err(format!(
            "is a `{ty}`, whose size OpenCL does not tell: give the layout of its parameters"
        ));
    };
    Ok(Argument::Sized { role: Role::Value, size, align })
}

/// Size and alignment of a type of a source. OpenCL tells neither, but it tells the size of the groups that a kernel
/// asks for: one is compiled behind the source that asks for these two numbers, and never run.
fn measure(card: &Card, source: &[u8], ty: &str) -> Option<[u32; 2]> {
    let attribute = format!("reqd_work_group_size(sizeof({ty}), __alignof__({ty}), 1)");
    let behind = format!("\n__kernel __attribute__(({attribute})) void wharf_measure(void) {{}}\n");
    let context = card.context(Site::Kernel).ok()?;
    let program = context.program_of_source(&[source, behind.as_bytes()].concat()).ok()?;
    program.build(card.id, c"").ok()?;
    let kernel = program.kernel(c"wharf_measure").ok()?;
    let sizes = kernel.work_group_info(card.id, cl::CL_KERNEL_COMPILE_WORK_GROUP_SIZE).ok()?;
    let mut numbers = sizes.chunks_exact(size_of::<usize>()).map(|size| number(size) as u32);
    let [size, align] = [numbers.next()?, numbers.next()?];
    (size > 0 && align.is_power_of_two()).then_some([size, align])
}

/// Bytes of a built-in type, which is aligned to as many (OpenCL C 3.0, 6.3.5); a vector of three is as one of four.
fn size_of_type(ty: &str) -> Option<u32> {
    let scalar = ty.trim_end_matches(|c: char| c.is_ascii_digit());
    let size = match scalar {
        "char" | "uchar" | "unsigned char" => 1,
        "short" | "ushort" | "unsigned short" | "half" => 2,
        "int" | "uint" | "unsigned int" | "float" => 4,
        "long" | "ulong" | "unsigned long" | "double" => 8,
        _ => return None,
    };
    match &ty[scalar.len()..] {
        "" => Some(size),
        "2" => Some(2 * size),
        "3" | "4" => Some(4 * size),
        "8" => Some(8 * size),
        "16" => Some(16 * size),
        _ => None,
    }
}

/// A launch as core gives it.
pub(crate) struct Launch<'a> {
    pub(crate) groups: [u32; 3],
    pub(crate) size: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) args: &'a [u8],
    pub(crate) tell: bool,
}

/// Enqueues a kernel.
///
/// # Safety
/// `kernel` is the word of a kernel whose program stays loaded, and what its arguments lead to is good until it has ended.
pub(crate) unsafe fn launch(
    card: &Card,
    queue: &Queue,
    kernel: u64,
    launch: &Launch<'_>,
) -> Result<Option<Event>, Fault> {
    // SAFETY: the caller's promise, and this file's rule.
    let entry = unsafe { &*ptr::with_exposed_provenance::<Entry>(kernel as usize) };
    let of = |refusal: Refusal| refusal.fault(Site::Launch);
    let mut raw = lock(&entry.raw);
    for slot in &entry.slots {
        let Param { offset, size, .. } = slot.param;
        let (offset, size) = (offset as usize, size as usize);
        let Some(bytes) = launch.args.get(offset..).and_then(|rest| rest.get(..size)) else {
            let values = [launch.args.len() as u64, entry.args_len.into()];
            return Err(Fault::caller(Kind::InvalidArgument, Site::Launch, Why::Mismatch, values));
        };
        set(card, &mut raw, slot, bytes)?;
    }
    if let Some(index) = entry.local {
        // The driver takes no local memory of no bytes.
        raw.set_local(index, launch.shared.max(1) as usize).map_err(of)?;
    }
    let local = launch.size.map(|n| n as usize);
    let global: [usize; 3] = std::array::from_fn(|i| launch.groups[i] as usize * local[i]);
    // SAFETY: the caller's promise.
    unsafe { queue.launch(&mut raw, global, local, launch.tell) }.map_err(of)
}

fn set(card: &Card, raw: &mut Raw, slot: &Slot, bytes: &[u8]) -> Result<(), Fault> {
    let address = ffi::number(bytes);
    let shared = matches!(card.memory.kind(), Store::Shared { .. });
    let pointer = match slot.role {
        Role::Value => false,
        Role::Pointer => true,
        Role::Either if shared => card.memory.holds(address),
        Role::Either => card.memory.argument(address, 1).is_ok_and(|found| found.is_some()),
    };
    let set = match (pointer, shared) {
        (false, _) => raw.set(slot.index, bytes),
        (true, true) => raw.set_svm(slot.index, ptr::with_exposed_provenance(address as usize)),
        (true, false) => {
            let align = card.number(cl::CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
            let mem = card.memory.argument(address, align.max(1))?;
            if mem.is_none() && address != 0 {
                return Err(Fault::caller(Kind::InvalidArgument, Site::Launch, Why::Address, [address, 0]));
            }
            raw.set_mem(slot.index, mem.as_ref())
        }
    };
    set.map_err(|refusal| refusal.fault(Site::Launch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_types_have_the_sizes_of_the_specification() {
        for (ty, size) in
            [("char", 1), ("ushort", 2), ("float", 4), ("ulong", 8), ("float3", 16), ("double16", 128)]
        {
            assert_eq!(size_of_type(ty), Some(size), "{ty}");
        }
        for ty in ["Pair", "struct Pair", "float5", "", "image2d_t", "3"] {
            assert_eq!(size_of_type(ty), None, "{ty}");
        }
    }

    #[test]
    fn what_speaks_of_kernels_is_source() {
        assert!(is_source(b"__kernel void f() {}\n"));
        assert!(!is_source(b"not an image of any sort"));
        assert!(!is_source(b"kernel\0"));
        assert!(is_spirv(&[0x03, 0x02, 0x23, 0x07, 0]));
    }

    #[test]
    fn a_type_without_a_known_size_needs_the_callers_layout() {
        let param = Param { offset: 4, size: 8, align: 4, flags: 0 };
        assert_eq!(by_value("Pair", Some(&param), &|_| None), Ok(Argument::Given(Role::Value, param)));
        assert!(by_value("Pair", None, &|_| None).is_err_and(|why| why.contains("Pair")));
        let measured = Argument::Sized { role: Role::Value, size: 8, align: 4 };
        assert_eq!(by_value("Pair", None, &|_| Some([8, 4])), Ok(measured));
    }
}
