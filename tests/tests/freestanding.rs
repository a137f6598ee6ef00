//! Core with no features, in a program without std, libc and allocator (`tests/freestanding`).
#![allow(clippy::unwrap_used)]

use wharf_tests::{Ran, root};

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn core_runs_in_a_program_without_std_libc_and_allocator() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.current_dir(root()).args(["run", "--quiet", "--package", "xtask", "--", "freestanding"]);
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("freestanding: ok"), "{}", ran.stdout);
}
