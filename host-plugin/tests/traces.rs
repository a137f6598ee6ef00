//! What loading and refusing images leaves behind: nothing.
#![allow(clippy::unwrap_used)] // Helpers are tests too.

mod common;

use common::*;
use std::{collections::BTreeSet, fs};
use wharf_core::{device::*, fault::Kind};
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

/// The only test of its process, since it looks at all that the process has open.
#[test]
fn images_leave_nothing_behind() {
    let device = HostDevice::with_workers(1);
    let image = wharf_host_image::bytes();
    for len in 0..image.len() {
        refused_image(&device, &image[..len]);
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
    a_device_ends_its_threads();
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

/// They are joined, so that a library that holds a device can be unloaded after it.
fn a_device_ends_its_threads() {
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    for _ in 0..50 {
        let device = HostDevice::with_workers(3);
        let mut lines: Vec<Line> = (0..10).map(|_| Line::new(&device)).collect();
        for line in &mut lines {
            line.put(Op::Barrier);
        }
        for line in &lines {
            until("the step", || line.reached() == 1);
        }
        drop(lines);
        drop(device);
        // The kernel drops a joined thread a moment later.
        until("the end of the threads", || threads() == before);
    }
}
