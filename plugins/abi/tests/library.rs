//! The null backend as a shared library, opened as a loader does: by the C entry and by the root module of abi_stable.
//!
//! # Safety
//! The library is built from this tree and never closed.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)] // These are tests.

mod common;

use common::Watch;
use std::{
    ffi::c_void,
    path::PathBuf,
    process::Command,
    sync::{Mutex, atomic::Ordering::Acquire},
};
use wharf_abi::{
    Instance, Refusal, export, handshake,
    handshake::{ENTRY_SYMBOL, ROOT_SYMBOL, check_root},
    meta::Meta,
    negotiate,
    tables::{DRAFT, EntryFn, plugin_flag},
};
use wharf_core::device::{Device, Gauge, Hint, HostAccess, Lane, Op, Step, Want};

const NULL: &str = "wharf-null-plugin";
const DMA: &str = "wharf-dma-plugin";

/// Builds a plugin into this test's own target folder and profile.
fn library(crate_name: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    let exe = std::env::current_exe().unwrap();
    let profile = exe.parent().and_then(|deps| deps.parent()).unwrap();
    let target = profile.parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", crate_name, "--target-dir"]).arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success());
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    profile.join(format!("{prefix}{}{suffix}", crate_name.replace('-', "_")))
}

/// The address of a symbol of the library, which stays open.
fn symbol(crate_name: &str, name: &str) -> *const c_void {
    // SAFETY: the library's initialisers are those of Rust's own.
    let library = unsafe { libloading::Library::new(library(crate_name)) }.unwrap();
    // SAFETY: only the address is taken.
    let at = *unsafe { library.get::<*const c_void>(name.as_bytes()) }.unwrap();
    std::mem::forget(library);
    at
}

fn use_it(entry: EntryFn) {
    // SAFETY: the entry of a library that stays open.
    let opened = unsafe { negotiate(entry) }.unwrap();
    assert_eq!((&*opened.id, &*opened.vendor, opened.minor), ("null", "Wharf", 0));
    let plugin = Instance::new(opened, 2);
    let device = plugin.devices().unwrap().remove(0);
    let watch = Watch::new();
    let (mut lane, gauge, _) = device.lane(watch.tick()).unwrap();
    let step = Step { op: Op::Barrier, done: 1, tell: true, stamp: false };
    assert_eq!(lane.submit(&[step], Hint::None).unwrap(), 1);
    gauge.poll();
    assert_eq!(watch.word.get(), 1);
}

#[test]
fn the_plugin_works_through_either_entry() {
    // SAFETY: the symbol of this name is an entry.
    let c = unsafe { std::mem::transmute::<*const c_void, EntryFn>(symbol(NULL, ENTRY_SYMBOL)) };
    use_it(c);
    for _ in 0..2 {
        // SAFETY: the symbol of this name is a root header, in a library that stays open.
        let rust = unsafe { check_root(symbol(NULL, ROOT_SYMBOL)) }.unwrap();
        use_it(rust);
    }
}

#[test]
fn two_plugins_side_by_side_are_two() {
    // SAFETY: root headers in libraries that stay open.
    let entries = [NULL, DMA].map(|name| unsafe { check_root(symbol(name, ROOT_SYMBOL)) }.unwrap());
    // SAFETY: entries of libraries that stay open.
    let plugins = entries.map(|entry| Instance::new(unsafe { negotiate(entry) }.unwrap(), 1));
    assert_eq!(plugins.each_ref().map(|plugin| &*plugin.opened().id), ["null", "dma"]);
    let device = plugins[1].devices().unwrap().remove(0);
    assert!(!device.has_programs() && device.has_host_access());
    assert_eq!((device.caps().depth, device.caps().lanes, device.caps().space), (4, 2, 0));
    let block = device.allocate(&Want { len: 64, align: 0, kind: 0, access: 0, usage: 0 }).unwrap();
    let at = device.map(&block, 0, 64).unwrap();
    let watch = Watch::new();
    let (mut lane, _, _) = device.lane(watch.tick()).unwrap();
    let fill = Op::Fill { to: block.base, len: 64, pattern: &[5] };
    let steps = [Step { op: fill, done: 1, tell: true, stamp: false }];
    assert_eq!(lane.submit(&steps, Hint::None).unwrap(), 1);
    // The engine's own thread pushes.
    while watch.told.load(Acquire) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(watch.word.get(), 1);
    // SAFETY: mapped, 64 bytes, and the fill has ended.
    assert_eq!(unsafe { std::slice::from_raw_parts(at, 64) }, [5; 64]);
    drop(lane);
    device.free(&block).unwrap();
}

#[test]
fn the_root_symbol_has_the_name_that_the_macro_writes() {
    assert_eq!(ROOT_SYMBOL, "_1as_0lib_1header_0root_bmodule_bloader");
}

#[test]
fn the_record_is_found_in_the_file_without_running_it() {
    let file = std::fs::read(library(NULL)).unwrap();
    // The magic also stands in the code that compares it; only one place parses.
    let found = file.windows(8).enumerate().filter(|(_, bytes)| *bytes == b"WHARFMD1").find_map(|(at, _)| {
        let len = u32::from_le_bytes(file.get(at + 8..at + 12)?.try_into().ok()?) as usize;
        Meta::parse(file.get(at..at.checked_add(len)?)?).ok()
    });
    let meta = found.unwrap();
    assert_eq!((meta.id, meta.vendor, meta.version), ("null", "Wharf", "0.1.0"));
    assert_eq!((meta.major, meta.minor, meta.draft, meta.min_host_minor), (1, 0, DRAFT, 0));
    assert_eq!(meta.flags, plugin_flag::CONTAINS_PANICS);
}

#[test]
fn an_address_that_is_no_root_module_is_refused() {
    // SAFETY: null and misaligned addresses are found.
    assert_eq!(unsafe { check_root(std::ptr::null()) }.unwrap_err().class(), "bad_descriptor");
    let zeros = [0u64; 64];
    // SAFETY: long enough for the header whose magic is looked at first.
    let refusal = unsafe { check_root(zeros.as_ptr().cast()) }.unwrap_err();
    assert!(matches!(refusal, Refusal::NotAbiStable { .. }), "{refusal}");
    assert!(!refusal.to_string().contains('\n'));
}

extern "C" fn root() -> handshake::RootResult {
    handshake::root(export::entry::<common::toy::ToyPlugin>)
}
static ROOT: handshake::RootHeader = handshake::root_header(root);

#[test]
fn a_root_module_of_this_program_fits_it() {
    // SAFETY: a root header of this program.
    let entry = unsafe { check_root((&raw const ROOT).cast()) }.unwrap();
    // SAFETY: its entry.
    assert_eq!(unsafe { negotiate(entry) }.unwrap().id, "toy");
}
