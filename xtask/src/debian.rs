//! Debian's packages, installed by name where that is allowed.

use crate::{fail::Outcome, shell};
use std::{fs, process::Command};

/// Only a machine that says it is a CI machine is changed, and only as root.
pub(crate) fn may_install() -> bool {
    use std::os::unix::fs::MetadataExt;
    let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    std::env::var("CI").is_ok_and(|ci| ci == "true") && root && shell::which("apt-get").is_some()
}

/// Installs packages.
pub(crate) fn install(packages: &[&str]) -> Outcome {
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-qq", "-y", "-o", "DPkg::Lock::Timeout=400", "-o", "Dpkg::Use-Pty=0"]).args(args);
        shell::run(command.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // Old lists name old packages; without any network the packages may still be at hand.
    let _ = apt(&["update"]);
    apt(&[&["install", "--no-install-recommends"], packages].concat())
}
