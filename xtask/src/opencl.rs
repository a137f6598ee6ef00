//! The step `opencl` of `ci`: the suite and the demo on the first OpenCL device of this machine. PoCL, which makes one of
//! the processor, is installed for it where that is allowed.

use crate::{conformance, debian, demo, fail::Outcome, plugins::Built, workspace::Workspace};
use std::{fs, path::Path};

/// The backend's plugin.
const PLUGIN: &str = "wharf-opencl-plugin";
/// PoCL and the loader that finds it.
const DEBIAN_PACKAGES: &[&str] = &["pocl-opencl-icd", "ocl-icd-libopencl1"];
/// Where drivers say that they are there.
const VENDORS: &str = "/etc/OpenCL/vendors";

/// What is missing here, after it was installed where that is allowed.
pub(crate) fn unable(workspace: &Workspace) -> Option<String> {
    if !workspace.has(PLUGIN) {
        return Some(format!("the workspace has no package {PLUGIN}"));
    }
    if !has_driver(Path::new(VENDORS)) && debian::may_install() {
        // A failure shows in what is then still missing.
        let _ = debian::install(DEBIAN_PACKAGES);
    }
    let packages = DEBIAN_PACKAGES.join(" ");
    (!has_driver(Path::new(VENDORS)))
        .then(|| format!("no OpenCL driver in {VENDORS}: on Debian `apt-get install {packages}`"))
}

fn has_driver(vendors: &Path) -> bool {
    let files = fs::read_dir(vendors).into_iter().flatten().flatten();
    files.into_iter().any(|file| file.path().extension().is_some_and(|ending| ending == "icd"))
}

/// The suite on the plugin, then the demo.
pub(crate) fn run(workspace: &Workspace) -> Outcome {
    let file = format!("wharf_opencl_plugin.{}", std::env::consts::DLL_EXTENSION);
    let plugin = Built::of(workspace).plugins.join(file);
    conformance::main(&[plugin.to_string_lossy().into_owned()])?;
    demo::main(&["--device".to_owned(), "opencl:0".to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_drivers_has_none() {
        assert!(!has_driver(Path::new("no/such/folder")));
        assert!(!has_driver(Path::new(env!("CARGO_MANIFEST_DIR"))));
    }
}
