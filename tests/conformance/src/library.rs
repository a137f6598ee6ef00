//! The plugin under test as a shared library: opened as a loader does, built by cargo when it is one of this tree.
//!
//! # Safety
//! Opening a library runs its constructors: the file was named by whoever runs the suite. It stays loaded for ever.
#![allow(unsafe_code)]

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};
use wharf_abi::{handshake::ENTRY_SYMBOL, tables::EntryFn};

/// The entry of the plugin in this file.
///
/// # Errors
/// The linker's words.
pub fn entry(file: &Path) -> Result<EntryFn, String> {
    let path = file.canonicalize().map_err(|error| format!("{}: {error}", file.display()))?;
    let library = open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    // SAFETY: the symbol with this name is of this type in every plugin.
    let symbol = unsafe { library.get::<EntryFn>(ENTRY_SYMBOL.as_bytes()) };
    let entry = *symbol.map_err(|error| format!("{}: {error}", path.display()))?;
    std::mem::forget(library);
    Ok(entry)
}

#[cfg(unix)]
fn open(path: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix;
    // SAFETY: as this file's `# Safety` says.
    unsafe { unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_LOCAL) }.map(Into::into)
}

#[cfg(not(unix))]
fn open(path: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: as this file's `# Safety` says.
    unsafe { libloading::Library::new(path) }
}

/// The plugin of a backend of this tree: from the folders `$WHARF_TEST_PLUGINS` and `$WHARF_TEST_PRODUCT_PLUGINS`, else built into the target folder and
/// with the profile of the running test.
///
/// # Errors
/// What cargo says.
pub fn of_tree(backend: &str) -> Result<PathBuf, String> {
    let crate_name = format!("wharf-{backend}-plugin");
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let file = format!("{prefix}{}{suffix}", crate_name.replace('-', "_"));
    let built = format!("{}{suffix}", crate_name.replace('-', "_"));
    let folders = ["WHARF_TEST_PLUGINS", "WHARF_TEST_PRODUCT_PLUGINS"].map(env::var_os);
    let mut named = folders.iter().flatten().map(|folder| Path::new(folder).join(&built));
    if let Some(file) = named.find(|file| file.exists()) {
        return Ok(file);
    }
    let exe = env::current_exe().map_err(|error| error.to_string())?;
    let beside = exe.parent().ok_or("the test has no folder")?;
    let profile = if beside.ends_with("deps") { beside.parent().unwrap_or(beside) } else { beside };
    let target = profile.parent().ok_or("the test has no target folder")?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    command.args(["build", "--quiet", "--package", &crate_name, "--manifest-path"]).arg(manifest);
    command.arg("--target-dir").arg(target);
    if profile.ends_with("release") {
        command.arg("--release");
    }
    let output = command.output().map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("{crate_name}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(profile.join(file))
}
