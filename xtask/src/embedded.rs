//! `embedded`: what must also build for targets without an operating system, each package alone, so that no other
//! package's features help it.

use crate::{
    debian,
    fail::{Fail, Outcome},
    shell,
    workspace::Workspace,
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

pub(crate) const LINE: &str = "build core and a static backend for bare targets";
pub(crate) const HELP: &str = "\
Builds wharf-core, without features and with `alloc`, wharf-dma and wharf-layers for
thumbv7em-none-eabihf and riscv32imac-unknown-none-elf. The standard library's core is, in this order,
  - that of the rustup target, if it is installed (`rustup target add TARGET`)
  - built from Debian's source (packages rustc-web and rust-web-src) with Debian's compiler, if that is new enough
  - the same after installing the packages, if CI=true and the user is root
else the command says what is missing and fails; `ci` skips the step then.";

const TARGETS: [&str; 2] = ["thumbv7em-none-eabihf", "riscv32imac-unknown-none-elf"];
/// Packages, and with which arguments they are built.
const BUILDS: [(&str, &[&str]); 4] = [
    ("wharf-core", &["--no-default-features"]),
    ("wharf-core", &["--no-default-features", "--features", "alloc"]),
    ("wharf-dma", &["--no-default-features"]),
    ("wharf-layers", &["--no-default-features"]),
];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/core/Cargo.toml";
const DEBIAN_PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// Where the core of a target comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Core {
    Installed,
    Built,
}

pub(crate) fn main(args: &[String]) -> Outcome {
    if let Some(arg) = args.first() {
        return Err(Fail::argument("embedded", arg));
    }
    let workspace = Workspace::read()?;
    if let Some(why) = unable(&workspace) {
        return Err(Fail::new(why));
    }
    for target in TARGETS {
        let core = core_of(&workspace, target).ok_or_else(|| Fail::new(missing(target)))?;
        for (package, features) in BUILDS {
            if !workspace.has(package) {
                println!("{package} left out: not in the workspace");
                continue;
            }
            shell::run(build(&workspace.root, target, core).args(["--package", package]).args(features))?;
        }
    }
    Ok(())
}

/// What is missing here, after it was installed where that is allowed.
pub(crate) fn unable(workspace: &Workspace) -> Option<String> {
    let lacks = || TARGETS.into_iter().find(|target| core_of(workspace, target).is_none());
    if lacks().is_some() && debian::may_install() {
        // A failure shows in what is then still missing.
        let _ = debian::install(&DEBIAN_PACKAGES);
    }
    lacks().map(missing)
}

fn missing(target: &str) -> String {
    let packages = DEBIAN_PACKAGES.join(" ");
    format!(
        "no core for {target}: `rustup target add {target}`, or on Debian \
         `apt-get update && apt-get install --no-install-recommends {packages}`"
    )
}

fn build(root: &Path, target: &str, core: Core) -> Command {
    let mut command = shell::cargo(root);
    command.args(["build", "--quiet", "--target", target]);
    if core == Core::Built {
        // Debian's compiler fits Debian's source; building core is not stable, hence the switch.
        command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=core,alloc");
    }
    command
}

fn core_of(workspace: &Workspace, target: &str) -> Option<Core> {
    if sysroot(&workspace.root)
        .is_some_and(|sysroot| sysroot.join("lib/rustlib").join(target).join("lib").is_dir())
    {
        return Some(Core::Installed);
    }
    let needed = workspace.members.iter().filter_map(|member| minor(member.rust_version.as_deref()?)).max();
    let there = Path::new(DEBIAN_SOURCE).is_file() && debian_minor() >= needed;
    there.then_some(Core::Built)
}

/// The release of Debian's compiler, if it is installed.
fn debian_minor() -> Option<u32> {
    Path::new(DEBIAN_RUSTC).is_file().then_some(())?;
    let said = shell::output(Command::new(DEBIAN_RUSTC).arg("--version")).ok()?;
    minor(said.split_whitespace().nth(1)?)
}

/// 95 of `1.95` and of `1.95.2`.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

/// Where the compiler keeps its targets.
fn sysroot(root: &Path) -> Option<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = shell::output(Command::new(rustc).current_dir(root).args(["--print", "sysroot"])).ok()?;
    Some(PathBuf::from(said.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(minor("1.95"), Some(95));
        assert_eq!(minor("1.100.0"), Some(100));
        assert!(minor("1.100.0") > minor("1.95"));
        assert!(minor("unknown") < minor("1.95"));
    }
}
