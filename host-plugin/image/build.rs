//! Builds the sample kernels, which are a workspace of their own because they are built without unwinding.

use std::{env, path::PathBuf, process::Command};

fn main() {
    let kernels =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../sample-kernels");
    let target = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("kernels");
    for watched in ["src", "Cargo.toml", "Cargo.lock", "../kernel/src"] {
        println!("cargo:rerun-if-changed={}", kernels.join(watched).display());
    }
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["build", "--release", "--locked", "--offline", "--quiet", "--manifest-path"])
        .arg(kernels.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    // What the outer build was told (flags of coverage and sanitizers, wrappers, a target) is not for kernels.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_") && !text.starts_with("CARGO_HOME")
            || text == "RUSTFLAGS"
            || text.starts_with("RUSTC_WORKSPACE")
        {
            command.env_remove(&name);
        }
    }
    let output = command.output().unwrap_or_else(|error| panic!("cargo cannot be started: {error}"));
    assert!(output.status.success(), "sample kernels: {}", String::from_utf8_lossy(&output.stderr));
    let image = format!("{}wharf_host_kernels{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    println!("cargo:rustc-env=WHARF_HOST_IMAGE={}", target.join("release").join(image).display());
}
