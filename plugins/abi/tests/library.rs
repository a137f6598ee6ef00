//! The null backend as a shared library, opened as a loader does: by the C entry and by the root module of abi_stable.
//!
//! # Safety
//! The library is built from this tree and never closed.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)] // These are tests.

mod common;

use common::Watch;
use std::{ffi::c_void, path::PathBuf, process::Command, sync::Mutex};
use wharf_abi::{
    Instance, Refusal, export, handshake,
    handshake::{ENTRY_SYMBOL, ROOT_SYMBOL, check_root},
    meta::Meta,
    negotiate,
    tables::{DRAFT, EntryFn, plugin_flag},
};
use wharf_core::device::{Device, Gauge, Hint, Lane, Op, Step};

/// Builds the plugin into this test's own target folder and profile.
fn library() -> PathBuf {
    static ONCE: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut once = ONCE.lock().unwrap();
    once.get_or_insert_with(|| {
        let exe = std::env::current_exe().unwrap();
        let profile = exe.parent().and_then(|deps| deps.parent()).unwrap();
        let target = profile.parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "wharf-null-plugin", "--target-dir"]).arg(target);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
        let name =
            format!("{}wharf_null_plugin{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        profile.join(name)
    })
    .clone()
}

/// The address of a symbol of the library, which stays open.
fn symbol(name: &str) -> *const c_void {
    // SAFETY: the library's initialisers are those of Rust's own.
    let library = unsafe { libloading::Library::new(library()) }.unwrap();
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
    let c = unsafe { std::mem::transmute::<*const c_void, EntryFn>(symbol(ENTRY_SYMBOL)) };
    use_it(c);
    for _ in 0..2 {
        // SAFETY: the symbol of this name is a root header, in a library that stays open.
        let rust = unsafe { check_root(symbol(ROOT_SYMBOL)) }.unwrap();
        use_it(rust);
    }
}

#[test]
fn the_root_symbol_has_the_name_that_the_macro_writes() {
    assert_eq!(ROOT_SYMBOL, "_1as_0lib_1header_0root_bmodule_bloader");
}

#[test]
fn the_record_is_found_in_the_file_without_running_it() {
    let file = std::fs::read(library()).unwrap();
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
