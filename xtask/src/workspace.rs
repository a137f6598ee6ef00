//! What is in the repository, as `cargo metadata` tells it: the members of the workspace and the packages that are
//! workspaces of their own (kernel images, programs without std: what needs a profile of its own).

use crate::{
    fail::{During, Fail},
    shell,
};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The repository.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Where cargo builds, as the environment says.
    pub(crate) target: PathBuf,
    pub(crate) members: Vec<Package>,
}

/// A package.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder, from the root, with `/`.
    pub(crate) dir: String,
    pub(crate) license: Option<String>,
    /// The oldest compiler that it takes.
    pub(crate) rust_version: Option<String>,
    /// It makes a shared library.
    pub(crate) is_cdylib: bool,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency as a manifest names it.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
}

/// When a dependency is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Build,
    Dev,
}

/// What a shared library of ours is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    /// A plugin that users get.
    Product,
    /// A plugin for tests.
    Test,
    /// A kernel image of the backend with this name.
    Kernels(String),
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn read() -> Result<Workspace, Fail> {
        let here = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
        let said = metadata(&here, None)?;
        let root = path_of(&said, "workspace_root")?;
        let target = path_of(&said, "target_directory")?;
        let members = packages(&said, &root);
        Ok(Workspace { root, target, members })
    }

    /// The packages that are workspaces of their own.
    pub(crate) fn outside(&self) -> Result<Vec<Package>, Fail> {
        let mut found = Vec::new();
        for manifest in self.outside_manifests()? {
            found.extend(packages(&metadata(&self.root, Some(&manifest))?, &self.root));
        }
        Ok(found)
    }

    /// Shared libraries among the packages outside; the others are not asked about, which takes time.
    pub(crate) fn outside_libraries(&self) -> Result<Vec<Package>, Fail> {
        let mut found = Vec::new();
        for manifest in self.outside_manifests()? {
            let text = fs::read_to_string(&manifest).during(manifest.display())?;
            if text.contains("cdylib") {
                found.extend(packages(&metadata(&self.root, Some(&manifest))?, &self.root));
            }
        }
        found.retain(|package| package.is_cdylib);
        Ok(found)
    }

    fn outside_manifests(&self) -> Result<Vec<PathBuf>, Fail> {
        let mut all = Vec::new();
        manifests(&self.root, &mut all)?;
        all.retain(|path| {
            let own = || {
                fs::read_to_string(path)
                    .is_ok_and(|text| text.lines().any(|line| line.starts_with("[workspace]")))
            };
            *path != self.root.join("Cargo.toml")
                && !self.members.iter().any(|m| self.manifest(m) == *path)
                && own()
        });
        all.sort();
        Ok(all)
    }

    /// The manifest of a package.
    pub(crate) fn manifest(&self, package: &Package) -> PathBuf {
        self.root.join(&package.dir).join("Cargo.toml")
    }

    /// Whether there is a member of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }

    /// The features that all commands over the whole workspace ask for, so that nothing is built twice.
    pub(crate) fn features(&self) -> &'static [&'static str] {
        if self.has("wharf-core") { &["--features", "wharf-core/alloc"] } else { &[] }
    }
}

impl Package {
    /// What its shared library is for, if it makes one.
    pub(crate) fn library(&self) -> Option<Library> {
        if !self.is_cdylib {
            return None;
        }
        if let Some(backend) = self.name.strip_prefix("wharf-").and_then(|name| name.strip_suffix("-kernels"))
        {
            return Some(Library::Kernels(backend.to_owned()));
        }
        match self.dir.split('/').next() {
            Some("host-plugin" | "plugins") => Some(Library::Product),
            Some("tests") => Some(Library::Test),
            _ => None,
        }
    }
}

fn metadata(here: &Path, manifest: Option<&Path>) -> Result<Value, Fail> {
    let mut command = shell::cargo(here);
    command.args(["metadata", "--format-version=1", "--no-deps"]);
    if let Some(manifest) = manifest {
        command.arg("--manifest-path").arg(manifest);
    }
    serde_json::from_str(&shell::output(&mut command)?).during("cargo metadata")
}

fn path_of(said: &Value, field: &str) -> Result<PathBuf, Fail> {
    let path = said[field].as_str().ok_or_else(|| Fail::new(format!("cargo metadata has no `{field}`")))?;
    Ok(PathBuf::from(path))
}

fn packages(said: &Value, root: &Path) -> Vec<Package> {
    said["packages"].as_array().into_iter().flatten().map(|package| package_of(package, root)).collect()
}

fn package_of(said: &Value, root: &Path) -> Package {
    let text = |field: &str| said[field].as_str().unwrap_or_default();
    let dir = Path::new(text("manifest_path")).parent().and_then(|dir| dir.strip_prefix(root).ok());
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let makes = |target: &Value| list(&target["crate_types"]).iter().any(|kind| kind == "cdylib");
    Package {
        name: text("name").to_owned(),
        dir: dir.map_or(String::new(), |dir| dir.to_string_lossy().replace('\\', "/")),
        license: said["license"].as_str().or(said["license_file"].as_str()).map(str::to_owned),
        rust_version: said["rust_version"].as_str().map(str::to_owned),
        is_cdylib: list(&said["targets"]).iter().any(makes),
        dependencies: list(&said["dependencies"]).iter().map(dependency_of).collect(),
    }
}

fn dependency_of(said: &Value) -> Dependency {
    let kind = match said["kind"].as_str() {
        Some("dev") => DependencyKind::Dev,
        Some("build") => DependencyKind::Build,
        _ => DependencyKind::Normal,
    };
    Dependency { name: said["name"].as_str().unwrap_or_default().to_owned(), kind }
}

/// All manifests below a folder, except in what was built and what is hidden.
fn manifests(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Fail> {
    for entry in fs::read_dir(folder).during(folder.display())? {
        let entry = entry.during(folder.display())?;
        let name = entry.file_name();
        let kind = entry.file_type().during(entry.path().display())?;
        if kind.is_dir() && name != "target" && name != "fixtures" && !name.to_string_lossy().starts_with('.')
        {
            manifests(&entry.path(), found)?;
        } else if name == "Cargo.toml" {
            found.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, dir: &str) -> Option<Library> {
        Package { name: name.into(), dir: dir.into(), is_cdylib: true, ..Package::default() }.library()
    }

    #[test]
    fn a_shared_library_is_what_its_place_says() {
        assert_eq!(library("wharf-host-plugin", "host-plugin/plugin"), Some(Library::Product));
        assert_eq!(library("wharf-cuda-plugin", "plugins/cuda/plugin"), Some(Library::Product));
        assert_eq!(library("wharf-null-plugin", "tests/backends/null/plugin"), Some(Library::Test));
        assert_eq!(
            library("wharf-host-kernels", "host-plugin/sample-kernels"),
            Some(Library::Kernels("host".into()))
        );
        assert_eq!(library("wharf-c", "loader/c-api"), None);
    }
}
