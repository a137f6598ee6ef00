//! The host device in the forms in which a program meets it: behind its plugin, linked in behind the same tables, and
//! without tables under core's runtime. Plugin and kernels are found as tests find them, by the environment.
//!
//! # Safety
//! Entries are those of this program, or of a plugin of this tree that stays loaded.
#![allow(unsafe_code)]

use crate::{args::Fail, sys};
use std::{env, path::PathBuf};
use wharf::{Device, Runtime, os::Os};
use wharf_abi::{DynDevice, Instance, export, handshake::ENTRY_SYMBOL, negotiate, tables::EntryFn};
use wharf_core::{
    device::Device as CoreDevice,
    runtime::{Runtime as Core, Store},
};
use wharf_host::HostDevice;

wharf_abi::plugin! {
    /// The host device, linked in.
    pub struct Linked,
    backend: HostDevice,
    id: "host", vendor: "Wharf", version: "1",
    devices: || Ok(vec![HostDevice::new()]),
    roles: [programs, host_access, properties],
    text: wharf_host::text,
}

wharf_abi::plugin! {
    /// The host device once more: a plugin is begun once a process, and the loader has begun the other.
    pub struct Bare,
    backend: HostDevice,
    id: "bare", vendor: "Wharf", version: "1",
    devices: || Ok(vec![HostDevice::new()]),
    roles: [programs, host_access, properties],
    text: wharf_host::text,
}

fn built(variable: &str) -> Result<PathBuf, Fail> {
    let value = env::var_os(variable).ok_or(format!("{variable} is not set: run `cargo xtask bench`"))?;
    Ok(PathBuf::from(value))
}

/// The plugin's file.
///
/// # Errors
/// If it was not built.
pub fn plugin_file() -> Result<PathBuf, Fail> {
    let folder = built("WHARF_TEST_PRODUCT_PLUGINS")?;
    Ok(folder.join(format!("wharf_host_plugin{}", env::consts::DLL_SUFFIX)))
}

/// The image with the sample kernels.
///
/// # Errors
/// If it was not built.
pub fn image() -> Result<Vec<u8>, Fail> {
    let file = built("WHARF_TEST_KERNELS")?;
    std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// The host device through its plugin.
///
/// # Errors
/// If it is not there.
pub fn plugin() -> Result<Device, Fail> {
    Ok(Runtime::builder().only_named().plugin_file(plugin_file()?).open().device("host:0")?)
}

/// The host device linked in, behind the same tables.
///
/// # Errors
/// If it cannot be opened.
pub fn linked() -> Result<Device, Fail> {
    Ok(Runtime::builder().only_named().linked_in(export::entry::<Linked>).open().device("host:0")?)
}

/// A device with memory of its own, which is reached through staging; none where its plugin was not built.
///
/// # Errors
/// If it is there and cannot be opened.
pub fn staged() -> Result<Option<Device>, Fail> {
    let Some(folder) = env::var_os("WHARF_TEST_PLUGINS").map(PathBuf::from) else { return Ok(None) };
    let file = folder.join(format!("wharf_null_plugin{}", env::consts::DLL_SUFFIX));
    if !file.exists() {
        return Ok(None);
    }
    Ok(Runtime::builder().only_named().plugin_file(file).open().devices().into_iter().next())
}

/// A linked-in device behind its tables as core sees it, without the loader.
///
/// # Errors
/// If it cannot be opened, which it is once a process.
pub fn tables() -> Result<DynDevice, Fail> {
    first(export::entry::<Bare>)
}

/// The plugin's device as core sees it, without the loader.
///
/// # Errors
/// If it cannot be opened, which it is once a process.
pub fn plugin_tables() -> Result<DynDevice, Fail> {
    let symbol = sys::open(&plugin_file()?)?.symbol(ENTRY_SYMBOL)?;
    // SAFETY: the symbol of this name is of this type in every plugin.
    first(unsafe { std::mem::transmute::<*mut std::ffi::c_void, EntryFn>(symbol) })
}

fn first(entry: EntryFn) -> Result<DynDevice, Fail> {
    // SAFETY: an entry of this program, or of a plugin that stays loaded.
    let opened = unsafe { negotiate(entry) }.map_err(|refusal| refusal.to_string())?;
    let devices = Instance::new(opened, 900).devices().map_err(|fault| format!("{fault:?}"))?;
    devices.into_iter().next().ok_or("the plugin has no device".into())
}

/// Core's runtime over one device, for the rest of the process.
pub fn core<D: CoreDevice + Send>(device: D) -> &'static Core<D, Os> {
    let devices: &'static [D] = vec![device].leak();
    let store: &'static Store<D, Os, 4, 8, 8, 8> = Box::leak(Box::new(Store::new()));
    Box::leak(Box::new(Core::new(store.parts(), devices, 0)))
}
