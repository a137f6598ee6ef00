//! Images: which are taken, names and layouts. Other images are made from the sample by changing bytes.
#![allow(clippy::unwrap_used)] // Helpers are tests too.

mod common;

use common::*;
use std::fs;
use wharf_core::{
    device::*,
    fault::{Fault, Kind, Why},
};
use wharf_host::HostDevice;

#[test]
fn each_flaw_is_told_apart() {
    let device = HostDevice::with_workers(1);
    let bent = |at: usize, value: u8| {
        let mut image = wharf_host_image::bytes().to_vec();
        image[at] = value;
        let fault = refused_image(&device, &image);
        (fault.why, fault.values)
    };
    assert_eq!(refused_image(&device, &[]).why, Why::Zero);
    assert_eq!(refused_image(&device, b"not an image at all").why, Why::Mismatch);
    assert_eq!(bent(4, 1), (Why::Mismatch, [1, 2]), "32 bits");
    assert_eq!(bent(5, 2), (Why::Mismatch, [2, 1]), "byte order");
    assert_eq!(bent(16, 2), (Why::Mismatch, [2, 3]), "an executable");
    assert_eq!(bent(16, 1), (Why::Mismatch, [1, 3]), "an object file");
    let (why, [machine, own]) = bent(18, 190);
    assert_eq!((why, machine), (Why::Mismatch, 190), "CUDA's machine");
    assert_ne!(machine, own);
    let test = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(refused_image(&device, &test).values[1], 0x0800_0000, "a position-independent executable");
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
    assert_eq!((kernels, listed.len()), (18, 21));

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

#[test]
fn constructors_run_in_their_order() {
    let sample = Sample::new(1);
    let block = sample.device.global(sample.program, b"order").unwrap();
    let (mut line, mut out) = (sample.line(), [0_u32]);
    line.put(Op::Copy { from: block.base, to: address(&mut out), len: block.len, peers: [PEER_HOST; 2] });
    line.finish();
    assert_eq!((block.len, out), (4, [123]));
}

#[test]
fn an_image_without_records_offers_its_functions_unchecked() {
    let device = HostDevice::with_workers(1);
    let image = replace(wharf_host_image::bytes(), b".wharf.kernels", b".other.kernels");
    let program = device.load(&image).unwrap();
    let kernel = device.kernel(program, b"foo", &[]).unwrap();
    assert_eq!((kernel.args_len, kernel.params, kernel.group_max), (Kernel::UNCHECKED, 0, 1024));
    assert!(device.kernel(program, b"foo", &[Param { offset: 4, size: 1, align: 1, flags: 0 }]).is_ok());
    assert!(device.kernel(program, b"rust_eh_personality", &[]).is_ok(), "a function like any other");
    let (mut line, mut out) = (Line::new(&device), [0_u32; 8]);
    let args = Args::default().address(&mut out);
    line.put(launch(kernel, 1, 8, &args.0));
    line.finish();
    assert_eq!(out, [0, 1, 2, 3, 4, 5, 6, 7]);
}
