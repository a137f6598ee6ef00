//! Which of our crates may name which: one direction, from the commands down to core. A new edge is a change to
//! ARCHITECTURE.md first, and then to [`MAY_NAME`].

use super::Finding;
use crate::workspace::{Dependency, DependencyKind, Package};

/// What a package is, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Core,
    Abi,
    /// What kernels of the host device are written with.
    Kernel,
    /// A kernel image.
    Kernels,
    /// Bindings to a vendor's library.
    Sys,
    /// A backend as a library.
    Backend,
    /// The shared library that exports a backend.
    Plugin,
    /// Devices over devices.
    Layers,
    Loader,
    /// What stands on the loader: the command, the C library.
    Front,
    /// The suite for backends, which the command carries so that vendors can run it anywhere.
    Suite,
    /// Only for tests.
    Test,
    Xtask,
    /// In no known place.
    Stranger,
}

use Part::*;

/// Whom each part may name; who is not here may name anybody.
const MAY_NAME: &[(Part, &[Part])] = &[
    (Core, &[]),
    (Abi, &[Core]),
    (Kernel, &[]),
    (Kernels, &[Kernel]),
    (Sys, &[]),
    (Backend, &[Core, Kernel, Sys]),
    (Plugin, &[Backend, Abi]),
    (Layers, &[Core]),
    (Loader, &[Core, Abi, Layers]),
    (Front, &[Loader, Suite]),
];

/// All that core needs from others.
/// loom only where core is built for it, to try all orders of its atomics.
const CORE_NEEDS: &[&str] = &["bitflags", "hashbrown", "heapless", "loom", "spin"];

const WHY_EDGE: &str =
    "arrows point down, from the commands to core (the table is in xtask/src/tidy/edges.rs)";
const WHY_CORE: &str = "core stays small enough for firmware";
const WHY_ABI_STABLE: &str = "only plugins/abi names it, so that replacing it touches one crate";
const WHY_LIBLOADING: &str = "only the loader and the plugins open libraries";

/// Checks all packages.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut found = Vec::new();
    for package in packages {
        let path = format!("{}/Cargo.toml", package.dir);
        let from = part(package);
        if from == Stranger {
            let what = format!("{} is in no known place", package.name);
            found.push(Finding::new(&path, 1, what, "its place says whom it may name"));
        }
        for dependency in &package.dependencies {
            let named = &dependency.name;
            if let Some(why) = refused(package, from, dependency, packages) {
                found.push(Finding::new(&path, 1, format!("{} depends on {named}", package.name), why));
            }
        }
    }
    found
}

/// Why a package may not depend so.
fn refused(
    package: &Package,
    from: Part,
    dependency: &Dependency,
    packages: &[Package],
) -> Option<&'static str> {
    let named = dependency.name.as_str();
    let dev = dependency.kind == DependencyKind::Dev;
    if let Some(ours) = packages.iter().find(|other| other.name == named) {
        let to = part(ours);
        let listed = MAY_NAME.iter().find(|(part, _)| *part == from).is_none_or(|(_, may)| may.contains(&to));
        // Tests of a crate may use what is only for tests. Core's may not: its tests need nobody.
        let in_tests = dev && from != Core && (to == Test || top(&ours.dir) == "tests");
        return (!listed && !in_tests).then_some(WHY_EDGE);
    }
    match named {
        _ if from == Core && !dev && !CORE_NEEDS.contains(&named) => Some(WHY_CORE),
        "abi_stable" if from != Abi => Some(WHY_ABI_STABLE),
        "libloading"
            if !matches!(top(&package.dir), "loader" | "host-plugin" | "plugins")
                && package.dir != "tests/conformance" =>
        {
            Some(WHY_LIBLOADING)
        }
        _ => None,
    }
}

fn top(dir: &str) -> &str {
    dir.split('/').next().unwrap_or_default()
}

fn part(package: &Package) -> Part {
    let steps: Vec<&str> = package.dir.split('/').collect();
    match steps.as_slice() {
        ["core"] => Core,
        ["plugins", "abi"] => Abi,
        ["host-plugin", "kernel"] => Kernel,
        // Makes the sample kernels for tests.
        ["host-plugin", "image"] => Test,
        ["host-plugin" | "plugins", ..] if package.name.ends_with("-kernels") => Kernels,
        ["host-plugin" | "plugins", ..] if package.is_cdylib => Plugin,
        ["plugins", name] if name.ends_with("-sys") => Sys,
        ["host-plugin"] | ["plugins", _] | ["tests", "backends", _] => Backend,
        ["loader"] => Loader,
        ["loader", "layers"] => Layers,
        ["loader", _] => Front,
        ["tests", "conformance"] => Suite,
        ["tests", ..] => Test,
        ["xtask"] => Xtask,
        _ => Stranger,
    }
}

/// Names from outside that only some files may use. Manifests are judged by [`check`], code by this.
pub(super) fn may_name(path: &str, word: &str) -> Result<(), &'static str> {
    let steps: Vec<&str> = path.split('/').collect();
    let allowed = match word {
        "abi_stable" => matches!(steps.as_slice(), ["plugins", "abi", ..]),
        "libloading" => {
            matches!(
                steps.as_slice(),
                ["loader" | "host-plugin", ..]
                    | ["plugins", _, "src", "ffi.rs"]
                    | ["plugins", _, "tests", ..]
                    | ["tests", "conformance", ..]
            )
        }
        _ => true,
    };
    match (allowed, word) {
        (true, _) => Ok(()),
        (false, "abi_stable") => Err(WHY_ABI_STABLE),
        (false, _) => Err(WHY_LIBLOADING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dir: &str, is_cdylib: bool, names: &[(&str, DependencyKind)]) -> Package {
        let dependencies =
            names.iter().map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: *kind }).collect();
        Package { name: name.into(), dir: dir.into(), is_cdylib, dependencies, ..Package::default() }
    }

    /// What is found when `package` stands among the others.
    fn found(changed: Package) -> Vec<String> {
        use DependencyKind::Normal;
        let mut all = vec![
            package("wharf-core", "core", false, &[("spin", Normal), ("proptest", DependencyKind::Dev)]),
            package("wharf-abi", "plugins/abi", false, &[("wharf-core", Normal), ("abi_stable", Normal)]),
            package("wharf-host", "host-plugin", false, &[("wharf-core", Normal), ("libloading", Normal)]),
            package(
                "wharf-host-plugin",
                "host-plugin/plugin",
                true,
                &[("wharf-host", Normal), ("wharf-abi", Normal)],
            ),
            package(
                "wharf",
                "loader",
                false,
                &[("wharf-core", Normal), ("wharf-abi", Normal), ("libloading", Normal)],
            ),
            package("wharf-cli", "loader/cli", false, &[("wharf", Normal)]),
            package("wharf-null", "tests/backends/null", false, &[("wharf-core", Normal)]),
            package("wharf-tests", "tests", false, &[("wharf", Normal), ("wharf-host", Normal)]),
        ];
        all.retain(|package| package.name != changed.name);
        all.push(changed);
        check(&all).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn arrows_that_point_down_pass() {
        assert_eq!(
            found(package("xtask", "xtask", false, &[("serde_json", DependencyKind::Normal)])),
            [""; 0]
        );
    }

    #[test]
    fn arrows_that_point_up_or_aside_are_found() {
        use DependencyKind::*;
        let up = package("wharf-core", "core", false, &[("wharf-abi", Normal)]);
        assert_eq!(found(up), ["wharf-core depends on wharf-abi"]);
        let dev = package("wharf-core", "core", false, &[("wharf-null", Dev)]);
        assert_eq!(found(dev), ["wharf-core depends on wharf-null"]);
        let backend = package("wharf", "loader", false, &[("wharf-host", Normal)]);
        assert_eq!(found(backend), ["wharf depends on wharf-host"]);
        let abi = package("wharf-null", "tests/backends/null", false, &[("wharf-abi", Normal)]);
        assert_eq!(found(abi), ["wharf-null depends on wharf-abi"]);
        let thin = package("wharf-host-plugin", "host-plugin/plugin", true, &[("wharf-core", Normal)]);
        assert_eq!(found(thin), ["wharf-host-plugin depends on wharf-core"]);
        let past = package("wharf-cli", "loader/cli", false, &[("wharf-core", Normal)]);
        assert_eq!(found(past), ["wharf-cli depends on wharf-core"]);
    }

    #[test]
    fn what_is_below_tests_is_free_and_serves_tests_only() {
        use DependencyKind::*;
        let plugin =
            package("wharf-null-plugin", "tests/backends/null/plugin", true, &[("wharf-core", Normal)]);
        assert_eq!(found(plugin), [""; 0]);
        let abi = |kind| package("wharf-abi", "plugins/abi", false, &[("wharf-null", kind)]);
        assert_eq!(found(abi(Dev)), [""; 0]);
        assert_eq!(found(abi(Normal)), ["wharf-abi depends on wharf-null"]);
    }

    #[test]
    fn names_from_outside_have_one_place() {
        use DependencyKind::*;
        let core = package("wharf-core", "core", false, &[("libc", Normal)]);
        assert_eq!(found(core), ["wharf-core depends on libc"]);
        let host = package("wharf-host", "host-plugin", false, &[("abi_stable", Normal)]);
        assert_eq!(found(host), ["wharf-host depends on abi_stable"]);
        let tests = package("wharf-tests", "tests", false, &[("libloading", Dev)]);
        assert_eq!(found(tests), ["wharf-tests depends on libloading"]);
        assert_eq!(may_name("plugins/abi/src/lib.rs", "abi_stable"), Ok(()));
        assert_eq!(may_name("loader/src/open.rs", "abi_stable"), Err(WHY_ABI_STABLE));
        assert_eq!(may_name("plugins/cuda/src/ffi.rs", "libloading"), Ok(()));
        assert_eq!(may_name("plugins/cuda/src/lane.rs", "libloading"), Err(WHY_LIBLOADING));
    }

    #[test]
    fn a_package_in_no_known_place_is_found() {
        assert_eq!(found(package("x", "tools/x", false, &[])), ["x is in no known place"]);
    }
}
