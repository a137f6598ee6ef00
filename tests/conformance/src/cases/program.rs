//! Programs and their symbols.

use super::cases;
use crate::{
    case::{Outcome, refused},
    ctx::Ctx,
    ensure, ensure_eq,
    need::Need::*,
};
use std::fs;
use wharf_core::{
    device::{Param, SymbolKind},
    fault::Kind,
    handle::Handle,
};

cases! {
    "program.load_and_unload", [Programs], "a good image loads, unloads once and is stale then (liboffload olCreateProgram, olDestroyProgram)" => load;
    "program.accepts", [Programs], "a device says whether it would take an image: its own yes, nothing and garbage no (liboffload olIsValidBinary)" => accepts;
    "program.empty_image", [Programs], "an image of no bytes is InvalidImage (liboffload olCreateProgram ZeroSize)" => empty;
    "program.garbage", [Programs], "garbage is InvalidImage (liboffload olCreateProgram garbage)" => garbage;
    "program.wrong_architecture", [Programs], "an image of another machine is InvalidImage (liboffload WrongArchitecture)" => wrong_arch;
    "program.truncated", [Programs], "an image that is cut off anywhere is InvalidImage or refused, never a crash (liboffload issues)" => truncated;
    "program.image_is_not_kept", [Programs], "the caller's bytes may go after the load (core Programs::load)" => not_kept;
    "program.no_such_device", [Programs], "a device past the last is InvalidDevice (liboffload NullDevice)" => no_such_device;
    "program.kernel_by_name", [Programs], "a kernel is found by name, twice the same (liboffload olGetSymbol SamePtr)" => by_name;
    "program.kernel_name_is_not_kept", [Programs], "the caller's name may go after the call (liboffload issue: kernel name not copied)" => name_not_kept;
    "program.unknown_names", [Programs], "unknown, empty and longer names are NotFound (liboffload olGetSymbol unknown)" => unknown;
    "program.wrong_kind_of_symbol", [Programs], "a global asked for as kernel and the reverse are SymbolKind (liboffload SYMBOL_KIND)" => wrong_kind;
    "program.global_by_name", [Programs, Global], "a global has an address and its size (liboffload olGetSymbolInfo Size)" => global;
    "program.symbols_are_listed", [Programs], "kernels and globals are enumerated by name and kind, then there is none (liboffload olIterateSymbols)" => listed;
    "program.symbol_name_is_cut", [Programs], "a short buffer gets the beginning, the answer is the whole length (core Programs::symbol)" => cut;
    "program.parameters", [Programs], "a kernel's parameters lie inside its block and do not overlap (decisions, host kernel)" => params;
    "program.parameters_short_buffer", [Programs], "as many as fit are written, the answer is how many there are (core Programs::params)" => params_short;
    "program.layout_is_compared", [Programs], "the image's own layout is accepted, another is InvalidArgument (core Programs::kernel)" => layout;
    "program.kernels_are_stale_after_unload", [Programs], "kernels of an unloaded program are InvalidHandle (liboffload 4 row 48)" => stale_kernels;
    "program.two_loads_are_two", [Programs, Global], "the same image twice: two programs, each with its own global (liboffload)" => two_loads;
    "program.null_and_foreign_handles", [Programs], "handles of no program or kernel are InvalidHandle (design 3.3)" => foreign;
    "program.thousand_loads_leave_nothing", [Programs, Proc], "open files, maps and threads after 1,000 loads and unloads are as before (liboffload issue: image not unmapped)" => thousand;
}

fn load(ctx: &Ctx) -> Outcome {
    let program = ctx.load(0, ctx.sample()?.image)?;
    ctx.unload(program)?;
    refused(ctx.unload(program), Kind::InvalidHandle)?;
    Ok(())
}

fn accepts(ctx: &Ctx) -> Outcome {
    ensure!(ctx.accepts(0, ctx.sample()?.image), "its own image is not accepted");
    ensure!(!ctx.accepts(0, &[]), "no bytes are accepted");
    ensure!(!ctx.accepts(0, b"not an image of any kind"), "garbage is accepted");
    Ok(())
}

fn empty(ctx: &Ctx) -> Outcome {
    refused(ctx.load(0, &[]), Kind::InvalidImage)?;
    Ok(())
}

fn garbage(ctx: &Ctx) -> Outcome {
    for image in [&b"x"[..], b"\x7fELF", &[0; 4096], &[0xFF; 100]] {
        refused(ctx.load(0, image), Kind::InvalidImage)?;
    }
    Ok(())
}

fn wrong_arch(ctx: &Ctx) -> Outcome {
    let sample = ctx.sample()?;
    let image = (sample.foreign)(sample.image);
    ensure!(!ctx.accepts(0, &image), "an image of another machine is accepted");
    refused(ctx.load(0, &image), Kind::InvalidImage)?;
    Ok(())
}

fn truncated(ctx: &Ctx) -> Outcome {
    let image = ctx.sample()?.image;
    for n in 1..60 {
        let cut = &image[..image.len() * n / 60];
        if let Ok(program) = ctx.load(0, cut) {
            return Err(crate::Fail::new(format!(
                "expected {} of {} bytes to be refused, got {program:?}",
                cut.len(),
                image.len()
            )));
        }
    }
    refused(ctx.load(0, &image[..image.len() / 2]), Kind::InvalidImage)?;
    Ok(())
}

fn not_kept(ctx: &Ctx) -> Outcome {
    let mut image = ctx.sample()?.image.to_vec();
    let program = ctx.load(0, &image)?;
    image.fill(0);
    drop(image);
    ctx.kernel(program, ctx.sample()?.idle, &[])?;
    Ok(ctx.unload(program)?)
}

fn no_such_device(ctx: &Ctx) -> Outcome {
    refused(ctx.load(ctx.devices(), ctx.sample()?.image), Kind::InvalidDevice)?;
    Ok(())
}

fn by_name(ctx: &Ctx) -> Outcome {
    let (program, sample) = (ctx.program()?, ctx.sample()?);
    for name in sample.kernels {
        let (a, b) = (ctx.kernel(program, name, &[])?, ctx.kernel(program, name, &[])?);
        let (a, b) = (ctx.kernel_info(a)?, ctx.kernel_info(b)?);
        ensure_eq!(a, b, "{name}");
        ensure!(a.kernel.group_max > 0, "{name} runs in groups of nothing");
    }
    Ok(())
}

fn name_not_kept(ctx: &Ctx) -> Outcome {
    let (program, sample) = (ctx.program()?, ctx.sample()?);
    let mut name = String::from(sample.idle);
    let kernel = ctx.kernel(program, &name, &[])?;
    let before = ctx.kernel_info(kernel)?;
    name.clear();
    name.push_str("other");
    ensure_eq!(ctx.kernel_info(kernel)?, before);
    Ok(())
}

fn unknown(ctx: &Ctx) -> Outcome {
    let (program, sample) = (ctx.program()?, ctx.sample()?);
    let longer = format!("{}x", sample.idle);
    let shorter = &sample.idle[..sample.idle.len() - 1];
    for name in ["nothing_of_this_name", "", &longer, shorter] {
        refused(ctx.kernel(program, name, &[]), Kind::NotFound)?;
        refused(ctx.global(program, name), Kind::NotFound)?;
    }
    Ok(())
}

fn wrong_kind(ctx: &Ctx) -> Outcome {
    let (program, sample) = (ctx.program()?, ctx.sample()?);
    if let Some((name, _)) = sample.global {
        refused(ctx.kernel(program, name, &[]), Kind::SymbolKind)?;
    }
    refused(ctx.global(program, sample.idle), Kind::SymbolKind)?;
    Ok(())
}

fn global(ctx: &Ctx) -> Outcome {
    let (program, (name, len)) = (ctx.program()?, ctx.sample_global()?);
    let block = ctx.global(program, name)?;
    ensure!(block.base != 0, "the global has address 0");
    ensure_eq!(block.len, len);
    ensure_eq!(ctx.global(program, name)?, block);
    Ok(())
}

fn listed(ctx: &Ctx) -> Outcome {
    let (program, sample) = (ctx.program()?, ctx.sample()?);
    let (mut kernels, mut globals, mut index) = (Vec::new(), Vec::new(), 0);
    let mut name = [0; 256];
    while let Some((len, kind)) = ctx.symbol(program, index, &mut name)? {
        let name = String::from_utf8_lossy(&name[..len.min(256)]).into_owned();
        match kind {
            SymbolKind::Kernel => kernels.push(name),
            SymbolKind::Global => globals.push(name),
        }
        index += 1;
        ensure!(index < 10_000, "symbols never end");
    }
    for name in sample.kernels {
        ensure_eq!(kernels.iter().filter(|other| other == name).count(), 1, "kernel {name}");
    }
    if let Some((name, _)) = sample.global {
        ensure_eq!(globals.iter().filter(|other| *other == name).count(), 1, "global {name}");
    }
    ensure_eq!(ctx.symbol(program, index + 1000, &mut name)?, None);
    Ok(())
}

fn cut(ctx: &Ctx) -> Outcome {
    let program = ctx.program()?;
    let (mut whole, mut short) = ([0xEE; 256], [0xEE; 2]);
    let first = ctx.symbol(program, 0, &mut whole)?;
    ensure_eq!(ctx.symbol(program, 0, &mut short)?, first);
    ensure_eq!(short, whole[..2]);
    ensure_eq!(ctx.symbol(program, 0, &mut [])?, first);
    Ok(())
}

fn params(ctx: &Ctx) -> Outcome {
    let (program, sample) = (ctx.program()?, ctx.sample()?);
    for name in sample.kernels {
        let kernel = ctx.kernel(program, name, &[])?;
        let info = ctx.kernel_info(kernel)?.kernel;
        let mut all = [Param::default(); 32];
        let count = ctx.params(kernel, &mut all)?;
        ensure_eq!(count, info.params as usize, "{name}");
        let mut end = 0;
        for param in &all[..count] {
            ensure!(param.offset >= end && param.align.is_power_of_two(), "{name}: {param:?} behind {end}");
            ensure!(param.offset.is_multiple_of(param.align), "{name}: {param:?} is misaligned");
            end = param.offset + param.size;
        }
        ensure!(end <= info.args_len, "{name}: parameters end at {end}, the block at {}", info.args_len);
    }
    let idle = ctx.kernel(program, sample.idle, &[])?;
    let mut all = [Param::default(); 32];
    let count = ctx.params(idle, &mut all)?;
    ensure_eq!(all[..count].iter().map(|param| param.size).collect::<Vec<_>>(), sample.idle_params);
    Ok(())
}

fn params_short(ctx: &Ctx) -> Outcome {
    let (program, sample) = (ctx.program()?, ctx.sample()?);
    for name in sample.kernels {
        let kernel = ctx.kernel(program, name, &[])?;
        let mut all = [Param::default(); 32];
        let count = ctx.params(kernel, &mut all)?;
        ensure_eq!(ctx.params(kernel, &mut [])?, count);
        let mut one = [Param::default(); 1];
        ensure_eq!(ctx.params(kernel, &mut one)?, count);
        ensure_eq!(one[..count.min(1)], all[..count.min(1)]);
    }
    Ok(())
}

fn layout(ctx: &Ctx) -> Outcome {
    let (program, sample) = (ctx.program()?, ctx.sample()?);
    for name in sample.kernels {
        let kernel = ctx.kernel(program, name, &[])?;
        let mut all = [Param::default(); 32];
        let count = ctx.params(kernel, &mut all)?;
        ctx.kernel(program, name, &all[..count])?;
        let mut other = all[..count].to_vec();
        other.push(Param { offset: 512, size: 8, align: 8, flags: 0 });
        refused(ctx.kernel(program, name, &other), Kind::InvalidArgument)?;
        if count > 0 {
            all[0].size += 1;
            refused(ctx.kernel(program, name, &all[..count]), Kind::InvalidArgument)?;
        }
    }
    Ok(())
}

fn stale_kernels(ctx: &Ctx) -> Outcome {
    let program = ctx.program()?;
    let kernel = ctx.kernel(program, ctx.sample()?.idle, &[])?;
    ctx.unload(program)?;
    refused(ctx.kernel_info(kernel), Kind::InvalidHandle)?;
    refused(ctx.occupancy(kernel, 0), Kind::InvalidHandle)?;
    refused(ctx.kernel(program, ctx.sample()?.idle, &[]), Kind::InvalidHandle)?;
    refused(ctx.global(program, ctx.sample()?.idle), Kind::InvalidHandle)?;
    refused(ctx.symbol(program, 0, &mut []), Kind::InvalidHandle)?;
    Ok(())
}

fn two_loads(ctx: &Ctx) -> Outcome {
    let (a, b) = (ctx.program()?, ctx.program()?);
    let (name, _) = ctx.sample_global()?;
    let (one, two) = (ctx.global(a, name)?, ctx.global(b, name)?);
    let apart = one.base + one.len <= two.base || two.base + two.len <= one.base;
    ensure!(apart, "the globals of two programs overlap: {one:?}, {two:?}");
    ctx.unload(a)?;
    ensure_eq!(ctx.global(b, name)?, two);
    Ok(())
}

fn foreign(ctx: &Ctx) -> Outcome {
    let timeline = ctx.new_timeline(0)?;
    for raw in [0, u64::MAX, timeline.raw()] {
        refused(ctx.unload(Handle::from_raw(raw)), Kind::InvalidHandle)?;
        refused(ctx.kernel(Handle::from_raw(raw), "foo", &[]), Kind::InvalidHandle)?;
        refused(ctx.kernel_info(Handle::from_raw(raw)), Kind::InvalidHandle)?;
    }
    Ok(())
}

/// Open files, maps of files that are programs, and threads of this process.
fn proc() -> [usize; 3] {
    let entries = |folder| fs::read_dir(folder).map_or(0, Iterator::count);
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    [
        entries("/proc/self/fd"),
        maps.lines().filter(|line| line.contains("r-xp")).count(),
        entries("/proc/self/task"),
    ]
}

fn thousand(ctx: &Ctx) -> Outcome {
    let image = ctx.sample()?.image;
    let turn = || -> Outcome {
        let program = ctx.load(0, image)?;
        ctx.kernel(program, ctx.sample()?.idle, &[])?;
        Ok(ctx.unload(program)?)
    };
    turn()?;
    let before = proc();
    for _ in 0..1000 {
        turn()?;
    }
    let after = proc();
    // Other tests of the process may open and close a few meanwhile.
    for (what, (before, after)) in ["files", "maps", "threads"].iter().zip(before.into_iter().zip(after)) {
        ensure!(after <= before + 20, "expected about {before} {what}, got {after}");
    }
    Ok(())
}
