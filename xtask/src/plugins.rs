//! `plugins`: builds what is loaded at run time, and puts it where the loader and the tests look.

use crate::{
    fail::{During, Fail, Outcome},
    shell,
    workspace::{Library, Package, Workspace},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

pub(crate) const LINE: &str = "build all plugins and kernel images into target/";
pub(crate) const HELP: &str = "\
Builds, in release, every shared library below host-plugin/, plugins/ and tests/:
  target/plugins/       plugins that users get
  target/test-plugins/  plugins for tests
  target/kernels/       kernel images, one for each backend: host.so, and what is taken as it is from
                        plugins/BACKEND/kernels/sample.*: opencl.cl

A file that has not changed keeps its time; what is built no more is taken away.

  --quiet               say nothing of what was built";

/// Where the built things are.
pub(crate) struct Built {
    pub(crate) plugins: PathBuf,
    pub(crate) test_plugins: PathBuf,
    pub(crate) kernels: PathBuf,
}

impl Built {
    pub(crate) fn of(workspace: &Workspace) -> Built {
        let target = &workspace.target;
        Built {
            plugins: target.join("plugins"),
            test_plugins: target.join("test-plugins"),
            kernels: target.join("kernels"),
        }
    }

    /// The kernel image of a backend.
    pub(crate) fn image(&self, backend: &str) -> Result<PathBuf, Fail> {
        let all = fs::read_dir(&self.kernels).during(self.kernels.display())?;
        let mut files = all.filter_map(|entry| Some(entry.ok()?.path()));
        let found = files.find(|file| file.file_stem().is_some_and(|stem| stem == backend));
        found.ok_or_else(|| {
            Fail::new(format!("no kernel image for backend `{backend}` in {}", self.kernels.display()))
        })
    }
}

pub(crate) fn main(args: &[String]) -> Outcome {
    let mut quiet = false;
    for arg in args {
        match arg.as_str() {
            "--quiet" | "-q" => quiet = true,
            other => return Err(Fail::argument("plugins", other)),
        }
    }
    let workspace = Workspace::read()?;
    build(&workspace, quiet).map(drop)
}

/// Builds all of them.
pub(crate) fn build(workspace: &Workspace, quiet: bool) -> Result<Built, Fail> {
    let built = Built::of(workspace);
    let outside = workspace.outside_libraries()?;
    let members: Vec<&Package> =
        workspace.members.iter().filter(|package| package.library().is_some()).collect();
    let mut files = compile(workspace, &members)?;
    for package in &outside {
        files.extend(compile_outside(workspace, package)?);
    }

    let mut wanted: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for package in members.into_iter().chain(&outside) {
        let Some(library) = package.library() else { continue };
        let file = files
            .get(&package.name)
            .ok_or_else(|| Fail::new(format!("cargo built no shared library of {}", package.name)))?;
        wanted.insert(place(&built, &library, file), file.clone());
    }
    wanted.extend(as_they_are(workspace, &built.kernels)?);
    for folder in [&built.plugins, &built.test_plugins, &built.kernels] {
        fs::create_dir_all(folder).during(folder.display())?;
        sweep(folder, &wanted)?;
    }
    for (to, from) in &wanted {
        let word = if install(from, to)? { "new      " } else { "unchanged" };
        if !quiet {
            println!("{word} {}", to.display());
        }
    }
    if !quiet && wanted.is_empty() {
        println!("no plugin and no kernel image to build");
    }
    Ok(built)
}

/// `libwharf_x.so` becomes `wharf_x.so`; a kernel image has its backend's name.
fn place(built: &Built, library: &Library, file: &Path) -> PathBuf {
    let extension = std::env::consts::DLL_EXTENSION;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let stem = stem.strip_prefix(std::env::consts::DLL_PREFIX).unwrap_or(&stem);
    match library {
        Library::Product => built.plugins.join(format!("{stem}.{extension}")),
        Library::Test => built.test_plugins.join(format!("{stem}.{extension}")),
        Library::Kernels(backend) => built.kernels.join(format!("{backend}.{extension}")),
    }
}

/// Kernel images that need no building: `sample.*` in a backend's folder `kernels`, by place and origin.
fn as_they_are(workspace: &Workspace, kernels: &Path) -> Result<Vec<(PathBuf, PathBuf)>, Fail> {
    let mut found = Vec::new();
    for member in &workspace.members {
        let folder = workspace.root.join(&member.dir).join("kernels");
        let Some(backend) = member.dir.strip_prefix("plugins/").filter(|_| folder.is_dir()) else { continue };
        for entry in fs::read_dir(&folder).during(folder.display())? {
            let file = entry.during(folder.display())?.path();
            if file.file_stem().is_some_and(|stem| stem == "sample") {
                let mut to = kernels.join(backend.replace('-', "_"));
                to.set_extension(file.extension().unwrap_or_default());
                found.push((to, file));
            }
        }
    }
    Ok(found)
}

/// One call of cargo for all members, so that their dependencies are built once.
fn compile(workspace: &Workspace, members: &[&Package]) -> Result<BTreeMap<String, PathBuf>, Fail> {
    if members.is_empty() {
        return Ok(BTreeMap::new());
    }
    let packages = members.iter().flat_map(|package| ["--package".into(), package.name.clone().into()]);
    cargo_build(workspace, packages.collect())
}

fn compile_outside(workspace: &Workspace, package: &Package) -> Result<BTreeMap<String, PathBuf>, Fail> {
    let manifest = workspace.manifest(package);
    let target = workspace.target.join("outside");
    cargo_build(
        workspace,
        vec!["--manifest-path".into(), manifest.into(), "--target-dir".into(), target.into(), "--lib".into()],
    )
}

/// Builds in release and answers the shared library of each package, by cargo's own account.
fn cargo_build(workspace: &Workspace, args: Vec<OsString>) -> Result<BTreeMap<String, PathBuf>, Fail> {
    let mut command = shell::cargo(&workspace.root);
    command.args(["build", "--release", "--quiet", "--message-format=json-render-diagnostics"]).args(args);
    let said = shell::output(command.stdin(Stdio::null()))?;
    let mut files = BTreeMap::new();
    for line in said.lines() {
        let message: Value = serde_json::from_str(line).during("a message of cargo build")?;
        let Some(name) = message["manifest_path"].as_str().and_then(|path| package_name(Path::new(path)))
        else {
            continue;
        };
        let all = message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let library = all
            .map(PathBuf::from)
            .find(|file| file.extension().is_some_and(|e| e == std::env::consts::DLL_EXTENSION));
        if let Some(library) = library {
            files.insert(name, library);
        }
    }
    Ok(files)
}

/// The name in a manifest; the messages of a build carry ids whose form depends on where the package came from.
fn package_name(manifest: &Path) -> Option<String> {
    let text = fs::read_to_string(manifest).ok()?;
    let package = text.split("[package]").nth(1)?;
    let line = package.lines().find(|line| line.trim_start().starts_with("name"))?;
    line.split('"').nth(1).map(str::to_owned)
}

/// Takes away the libraries of a folder that nobody wants any more.
fn sweep(folder: &Path, wanted: &BTreeMap<PathBuf, PathBuf>) -> Outcome {
    for entry in fs::read_dir(folder).during(folder.display())? {
        let path = entry.during(folder.display())?.path();
        if path.extension().is_some_and(|e| e == std::env::consts::DLL_EXTENSION)
            && !wanted.contains_key(&path)
        {
            fs::remove_file(&path).during(path.display())?;
        }
    }
    Ok(())
}

/// Copies a file if it differs. It is moved into place, never written over: a process may have it mapped.
fn install(from: &Path, to: &Path) -> Result<bool, Fail> {
    let bytes = fs::read(from).during(from.display())?;
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(false);
    }
    let fresh = to.with_extension("new");
    fs::write(&fresh, bytes).during(fresh.display())?;
    fs::rename(&fresh, to).during(to.display())?;
    Ok(true)
}
