//! Images: which are taken, what is left behind, names and layouts. The C compiler is not needed: other images are
//! made from the sample by changing bytes.
#![allow(clippy::unwrap_used)] // Helpers are tests too.

mod common;

use common::*;
use std::{collections::BTreeSet, fs};
use wharf_core::{
    device::*,
    fault::{Fault, Kind, Why},
};
use wharf_host::HostDevice;

/// Open descriptors and lines of the map that lead to an image.
fn traces() -> (usize, usize) {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let files = descriptors
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|to| is_image(&to.to_string_lossy())));
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    (files.count(), maps.lines().filter(|line| is_image(line)).count())
}

fn is_image(path: &str) -> bool {
    path.contains("memfd:wharf-image")
}

fn refused(device: &HostDevice, image: &[u8]) -> Fault {
    assert!(!device.accepts(image));
    let fault = device.load(image).unwrap_err();
    assert_eq!(fault.kind, Kind::InvalidImage);
    assert!(wharf_host::text(fault.text).is_some());
    fault
}

/// One test, since it looks at what the whole process has open.
#[test]
fn images_leave_nothing_behind() {
    let device = HostDevice::with_workers(1);
    let image = wharf_host_image::bytes();
    for len in 0..image.len() {
        refused(&device, &image[..len]);
    }
    assert_eq!(traces(), (0, 0));

    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    let all = || fs::read_dir("/proc/self/fd").unwrap().count();
    // The device's worker starts for the copies below: before the count.
    let program = device.load(image).unwrap();
    read(&device, device.global(program, b"stamp").unwrap());
    device.unload(program).unwrap();
    let before = (threads(), all());
    for _ in 0..1_000 {
        let program = device.load(image).unwrap();
        device.kernel(program, b"foo", &[]).unwrap();
        device.unload(program).unwrap();
    }
    assert_eq!(traces(), (0, 0));
    assert_eq!((threads(), all()), before);

    two_images_at_once_are_two(&device);
    assert_eq!(traces(), (0, 0));
    missing_symbols_are_named(&device);
    kernels_that_the_linker_does_not_find_are_named(&device);
    assert_eq!(traces(), (0, 0));
    {
        let other = HostDevice::with_workers(1);
        other.load(image).unwrap();
        assert_ne!(traces(), (0, 0));
    }
    assert_eq!(traces(), (0, 0));
}

/// The descriptor's number is the same for each, since it is closed after loading.
fn two_images_at_once_are_two(device: &HostDevice) {
    let image = wharf_host_image::bytes();
    let other = replace(image, b"stamp:01", b"stamp:02");
    let mut programs = [image, &other, image].map(|image| device.load(image).unwrap());
    let stamp = |program| {
        let block = device.global(program, b"stamp").unwrap();
        (block.base, read(device, block))
    };
    for round in 0..3 {
        let stamps = programs.map(stamp);
        assert_eq!(stamps.map(|(_, text)| text), [b"stamp:01", b"stamp:02", b"stamp:01"].map(|text| *text));
        assert_eq!(BTreeSet::from(stamps.map(|(base, _)| base)).len(), 3);
        device.unload(programs[round]).unwrap();
        programs[round] = device.load([image, &other, image][round]).unwrap();
    }
    for program in programs {
        device.unload(program).unwrap();
    }
}

/// The bytes of a global, copied by a lane.
fn read(device: &HostDevice, block: Block) -> [u8; 8] {
    let (mut line, mut out) = (Line::new(device), [0; 8]);
    line.put(Op::Copy { from: block.base, to: address(&mut out), len: block.len, peers: [PEER_HOST; 2] });
    line.finish();
    out
}

fn missing_symbols_are_named(device: &HostDevice) {
    let image = replace(wharf_host_image::bytes(), b"memset\0", b"mumset\0");
    assert!(device.accepts(&image), "only the linker can know");
    let fault = device.load(&image).unwrap_err();
    assert_eq!(fault.kind, Kind::InvalidImage);
    assert!(wharf_host::text(fault.text).unwrap().contains("mumset"));
}

fn kernels_that_the_linker_does_not_find_are_named(device: &HostDevice) {
    // The table of hashes keeps the old name.
    let image = replace(wharf_host_image::bytes(), b"noargs", b"nosuch");
    assert!(device.accepts(&image));
    let fault = device.load(&image).unwrap_err();
    assert_eq!(fault.kind, Kind::InvalidImage);
    assert!(wharf_host::text(fault.text).unwrap().contains("nosuch"));
}

/// Every occurrence of some bytes in an image changed to others.
fn replace(image: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut image = image.to_vec();
    let mut at = 0;
    while let Some(found) = image[at..].windows(from.len()).position(|bytes| bytes == from) {
        at += found;
        image[at..at + to.len()].copy_from_slice(to);
    }
    image
}

#[test]
fn each_flaw_is_told_apart() {
    let device = HostDevice::with_workers(1);
    let bent = |at: usize, value: u8| {
        let mut image = wharf_host_image::bytes().to_vec();
        image[at] = value;
        let fault = refused(&device, &image);
        (fault.why, fault.values)
    };
    assert_eq!(refused(&device, &[]).why, Why::Zero);
    assert_eq!(refused(&device, b"not an image at all").why, Why::Mismatch);
    assert_eq!(bent(4, 1), (Why::Mismatch, [1, 2]), "32 bits");
    assert_eq!(bent(5, 2), (Why::Mismatch, [2, 1]), "byte order");
    assert_eq!(bent(16, 2), (Why::Mismatch, [2, 3]), "an executable");
    assert_eq!(bent(16, 1), (Why::Mismatch, [1, 3]), "an object file");
    let (why, [machine, own]) = bent(18, 190);
    assert_eq!((why, machine), (Why::Mismatch, 190), "CUDA's machine");
    assert_ne!(machine, own);
    let test = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(refused(&device, &test).values[1], 0x0800_0000, "a position-independent executable");
}

#[test]
fn bent_headers_never_reach_the_linker_or_panic() {
    let device = HostDevice::with_workers(1);
    let image = wharf_host_image::bytes();
    let sections = u64::from_le_bytes(image[40..48].try_into().unwrap()) as usize;
    for at in (0..64 + 12 * 56).chain(sections..image.len()) {
        for value in [0, 1, 0x7F, 0xFF] {
            let mut image = image.to_vec();
            image[at] = value;
            // Refused or not, it must come back; what is taken is not loaded here.
            device.accepts(&image);
        }
    }
}

#[test]
fn names_lead_to_what_they_stand_for() {
    let sample = Sample::new(1);
    let (device, program) = (&sample.device, sample.program);
    let kind = |fault: Fault| fault.kind;
    assert_eq!(device.kernel(program, b"nothing", &[]).map_err(kind), Err(Kind::NotFound));
    assert_eq!(device.kernel(program, b"", &[]).map_err(kind), Err(Kind::NotFound));
    assert_eq!(device.kernel(program, b"fo", &[]).map_err(kind), Err(Kind::NotFound));
    assert_eq!(device.kernel(program, b"global", &[]).map_err(kind), Err(Kind::SymbolKind));
    assert_eq!(device.global(program, b"foo").map_err(kind), Err(Kind::SymbolKind));
    assert_eq!(device.global(program, b"nothing").map_err(kind), Err(Kind::NotFound));
    assert_eq!(device.kernel(program + 1, b"foo", &[]).map_err(kind), Err(Kind::InvalidHandle));
    assert_eq!(
        device.kernel(program, b"foo", &[]),
        device.kernel(program, b"foo", &[]),
        "the same word twice"
    );

    let mut listed = Vec::new();
    let mut name = [0; 6];
    while let Some((len, kind)) = device.symbol(program, listed.len() as u32, &mut name).unwrap() {
        listed.push((String::from_utf8_lossy(&name[..len.min(6)]).into_owned(), len, kind));
    }
    assert!(
        listed.contains(&("locala".into(), 14, SymbolKind::Kernel))
            || listed.contains(&("localm".into(), 8, SymbolKind::Kernel))
    );
    assert!(listed.contains(&("global".into(), 6, SymbolKind::Global)));
    assert!(!listed.iter().any(|(name, ..)| name.starts_with("rust_e")), "not every function is a kernel");
    let kernels = listed.iter().filter(|(.., kind)| *kind == SymbolKind::Kernel).count();
    assert_eq!((kernels, listed.len()), (18, 20));

    device.unload(program).unwrap();
    assert_eq!(device.unload(program).map_err(kind), Err(Kind::InvalidHandle));
    assert_eq!(device.global(program, b"global").map_err(kind), Err(Kind::InvalidHandle));
}

#[test]
fn a_layout_is_compared_where_one_is_given() {
    let sample = Sample::new(1);
    let kernel = sample.kernel("multiargs");
    assert_eq!((kernel.args_len, kernel.params), (24, 3));
    let layout = [(0, 1, 1), (8, 8, 8), (16, 2, 2)].map(|(offset, size, align)| Param {
        offset,
        size,
        align,
        flags: 0,
    });
    let mut found = [Param::default(); 4];
    assert_eq!(sample.device.params(kernel.native, &mut found).unwrap(), 3);
    assert_eq!(found[..3], layout);
    assert_eq!(sample.device.params(kernel.native, &mut found[..1]).unwrap(), 3);
    assert!(sample.device.params(kernel.native ^ 8, &mut found).is_err());
    let ask = |layout: &[Param]| {
        sample.device.kernel(sample.program, b"multiargs", layout).map_err(|fault| fault.kind)
    };
    assert_eq!(ask(&layout), Ok(kernel));
    assert_eq!(ask(&layout[..2]), Err(Kind::InvalidArgument));
    for number in 0..3 {
        for bend in [|p: &mut Param| p.offset += 1, |p: &mut Param| p.size += 1, |p: &mut Param| p.align *= 2]
        {
            let mut layout = layout;
            bend(&mut layout[number]);
            assert_eq!(ask(&layout), Err(Kind::InvalidArgument));
        }
    }
    let occupancy = |name, shared| sample.device.occupancy(sample.kernel(name).native, shared);
    assert_eq!(occupancy("foo", 0), Ok(1024));
    assert_eq!(occupancy("localmem_static", 256), Ok(64));
    assert!(occupancy("foo", u64::MAX).is_err());
}
