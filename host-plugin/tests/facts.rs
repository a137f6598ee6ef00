//! Every property against another source.
#![allow(clippy::unwrap_used)] // Helpers are tests too.

mod common;

use std::{fs, process::Command};
use wharf_core::device::Want;
use wharf_core::device::{Describe, Device, property as p};
use wharf_host::{HostDevice, limits};

fn bytes(device: &HostDevice, id: u32) -> Option<Vec<u8>> {
    let len = device.property(id, &mut []).unwrap()?;
    let mut out = vec![0xEE; len + 1];
    assert_eq!(device.property(id, &mut out).unwrap(), Some(len));
    assert_eq!(out.pop(), Some(0xEE), "property {id} writes past its length");
    let mut half = vec![0; len / 2];
    assert_eq!(device.property(id, &mut half).unwrap(), Some(len));
    assert!(id == p::MEMORY_FREE || half == out[..len / 2]);
    Some(out)
}

fn word(device: &HostDevice, id: u32) -> u32 {
    u32::from_le_bytes(bytes(device, id).unwrap().try_into().unwrap())
}

fn wide(device: &HostDevice, id: u32) -> u64 {
    u64::from_le_bytes(bytes(device, id).unwrap().try_into().unwrap())
}

fn words(device: &HostDevice, id: u32) -> String {
    let text = String::from_utf8(bytes(device, id).unwrap()).unwrap();
    assert!(!text.is_empty() && !text.contains('\0'), "property {id}");
    text
}

#[test]
fn identity_matches_the_system() {
    let device = HostDevice::new();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap();
    assert_eq!(word(&device, p::TYPE), 4);
    assert_eq!(bytes(&device, p::PLATFORM), None);
    assert!(cpuinfo.contains(&words(&device, p::NAME)));
    assert_eq!(words(&device, p::NAME), words(&device, p::PRODUCT_NAME));
    assert_eq!(words(&device, p::UID), words(&HostDevice::new(), p::UID));
    assert_eq!(words(&device, p::DRIVER_VERSION), env!("CARGO_PKG_VERSION"));
    assert!(words(&device, p::VENDOR).len() >= 3);
    assert!(word(&device, p::VENDOR_ID) > 0);
    if cpuinfo.contains("AuthenticAMD") {
        assert_eq!((words(&device, p::VENDOR), word(&device, p::VENDOR_ID)), ("AMD".into(), 0x1022));
    }
    assert_eq!(words(&device, p::MEMORY_KIND), "host");
    assert!(!words(&device, p::MEMORY_NOTE).is_empty());
    assert_eq!(bytes(&device, 0x7FFF_FFFF), None);
}

#[test]
fn sizes_match_the_limits_and_the_system() {
    let device = HostDevice::new();
    assert_eq!(word(&device, p::MAX_WORK_GROUP_SIZE), limits::GROUP_MAX);
    assert_eq!(
        bytes(&device, p::MAX_WORK_GROUP_SIZE_PER_DIMENSION),
        Some([limits::GROUP_MAX.to_le_bytes(); 3].concat())
    );
    assert_eq!(word(&device, p::MAX_WORK_SIZE), u32::MAX);
    assert_eq!(bytes(&device, p::MAX_WORK_SIZE_PER_DIMENSION), Some(vec![0xFF; 12]));
    let counted = Command::new("nproc").output().ok().and_then(|out| String::from_utf8(out.stdout).ok());
    if let Some(counted) = counted.and_then(|text| text.trim().parse().ok()) {
        assert_eq!(word(&device, p::NUM_COMPUTE_UNITS), counted);
    }
    assert_eq!(word(&HostDevice::with_workers(7), p::NUM_COMPUTE_UNITS), 7);
    assert_eq!(word(&device, p::ADDRESS_BITS), 64);
    assert!((100..10_000).contains(&word(&device, p::MAX_CLOCK_FREQUENCY)));
    assert!((100..20_000).contains(&word(&device, p::MEMORY_CLOCK_RATE)));
    assert_eq!(wide(&device, p::WORK_GROUP_LOCAL_MEM_SIZE), limits::SHARED_MAX.into());
    assert_eq!(device.caps().shared_max, limits::SHARED_MAX);
}

#[test]
fn memory_matches_the_system_and_counts_what_was_given_out() {
    let device = HostDevice::new();
    let total = wide(&device, p::GLOBAL_MEM_SIZE);
    // Pages times their size, from sysconf's own tool.
    let getconf = |name| {
        let out = Command::new("getconf").arg(name).output().ok()?;
        String::from_utf8(out.stdout).ok()?.trim().parse::<u64>().ok()
    };
    if let (Some(pages), Some(size)) = (getconf("_PHYS_PAGES"), getconf("PAGESIZE")) {
        assert!(total > 0 && total <= pages * size);
    }
    assert_eq!(wide(&device, p::MAX_MEM_ALLOC_SIZE), total);
    let before = wide(&device, p::MEMORY_FREE);
    assert!(before > 0 && before <= total);
    // Not touched: only the device's own count can know.
    let len = total - total / 8;
    let want = Want { len, align: 0, kind: 0, access: 0, usage: 0 };
    let Ok(block) = device.allocate(&want) else {
        return println!("skipped: the system does not overcommit");
    };
    assert!(wide(&device, p::MEMORY_FREE) <= total - len);
    device.free(&block).unwrap();
    assert!(wide(&device, p::MEMORY_FREE) > total - len);
}

#[test]
fn arithmetic_matches_the_processors_flags() {
    let device = HostDevice::new();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap();
    let has = |flag: &str| cpuinfo.split_whitespace().any(|word| word == flag);
    for id in [p::SINGLE_FP_SUPPORT, p::DOUBLE_FP_SUPPORT] {
        assert_eq!(bytes(&device, id), Some(vec![1]));
    }
    let half = bytes(&device, p::HALF_FP_SUPPORT).unwrap() == [1];
    assert_eq!(word(&device, p::HALF_FP_CONFIG) != 0, half);
    assert_eq!(word(&device, p::NATIVE_VECTOR_WIDTH_HALF) != 0, half);
    let chars = word(&device, p::NATIVE_VECTOR_WIDTH_CHAR);
    let widths = [p::NATIVE_VECTOR_WIDTH_SHORT, p::NATIVE_VECTOR_WIDTH_INT, p::NATIVE_VECTOR_WIDTH_LONG];
    assert_eq!(widths.map(|id| word(&device, id)), [chars / 2, chars / 4, chars / 8]);
    let widths = [p::NATIVE_VECTOR_WIDTH_FLOAT, p::NATIVE_VECTOR_WIDTH_DOUBLE];
    assert_eq!(widths.map(|id| word(&device, id)), [chars / 4, chars / 8]);
    if cfg!(target_arch = "x86_64") {
        let bytes = if has("avx512f") {
            64
        } else if has("avx2") {
            32
        } else {
            16
        };
        assert_eq!(chars, bytes);
        let fused = if has("fma") { 127 } else { 63 };
        assert_eq!([p::SINGLE_FP_CONFIG, p::DOUBLE_FP_CONFIG].map(|id| word(&device, id)), [fused; 2]);
        assert_eq!(half, has("avx512_fp16"));
    }
}
