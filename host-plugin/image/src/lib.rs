//! The sample kernels of the host device as an image, for tests of any crate of the workspace: built by cargo the
//! first time a test process asks.
//!
//! The build goes into `host-kernels` in the target folder of the running test, so that it is kept between runs;
//! cargo's own lock keeps processes apart. `WHARF_HOST_KERNELS` names an image that was built before.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// Path of the sample image.
///
/// # Panics
/// If it cannot be built: a test cannot go on without it.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| env::var_os("WHARF_HOST_KERNELS").map_or_else(build, PathBuf::from))
}

/// The bytes of the sample image.
///
/// # Panics
/// If it cannot be built or read.
pub fn bytes() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| std::fs::read(path()).unwrap_or_else(|e| panic!("{}: {e}", path().display())))
}

fn build() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-kernels/Cargo.toml");
    let target = target().join("host-kernels");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--locked", "--offline", "--quiet", "--manifest-path"])
        .arg(&manifest);
    // Flags of the outer build (coverage, sanitizers) are not for kernels, and its target folder is locked by it.
    command.arg("--target-dir").arg(&target).env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.env_remove("CARGO_BUILD_TARGET");
    let output = command.output().unwrap_or_else(|e| panic!("cargo cannot be started: {e}"));
    assert!(output.status.success(), "sample kernels: {}", String::from_utf8_lossy(&output.stderr));
    target.join("release/libwharf_host_kernels.so")
}

/// The target folder that the running test was built into.
fn target() -> PathBuf {
    if let Some(folder) = env::var_os("CARGO_TARGET_DIR") {
        return PathBuf::from(folder);
    }
    let test = env::current_exe().unwrap_or_default();
    let folder = test.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    folder.map_or_else(env::temp_dir, Path::to_path_buf)
}
