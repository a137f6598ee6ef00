//! A plugin as it is shipped: built, stripped, checked, with a manifest that pins its bytes, packed.

use crate::{
    demo,
    fail::{During, Fail, Outcome},
    shell,
    workspace::Workspace,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

pub(crate) const LINE: &str = "build, strip, check and pack a plugin";
pub(crate) const HELP: &str = "\
cargo xtask dist PLUGIN [--out DIR]

PLUGIN is a plugin of this workspace by the name of its package, a folder with a Cargo.toml or a Makefile that builds one
(as `new-plugin` makes them), or a plugin file. It is built, stripped of what is not needed to run, and checked as
`wharf plugins check` does, its exported symbols too. DIR (target/dist) gets a folder of the plugin's id, version and
machine, with the library and a manifest that pins its bytes, and both packed: unpack them into a folder of plugins.";

pub(crate) fn main(args: &[String]) -> Outcome {
    let (plugin, out) = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [plugin] if !plugin.starts_with('-') => ((*plugin).to_owned(), None),
        [plugin, "--out", out] | ["--out", out, plugin] => ((*plugin).to_owned(), Some(PathBuf::from(out))),
        _ => return Err(Fail::usage(HELP)),
    };
    let workspace = Workspace::read()?;
    let wharf = demo::build_command(&workspace)?;
    let built = build(&workspace, &plugin)?;
    let facts = said(&wharf, "inspect", &built)?["plugin"].clone();
    let word = |key: &str| facts[key].as_str().unwrap_or_default().to_owned();
    let (id, version) = (word("id"), word("version"));
    let name = format!("{id}-{version}-{}-{}", env::consts::ARCH, env::consts::OS);
    let out = out.unwrap_or_else(|| workspace.target.join("dist"));
    let folder = out.join(&name);
    fs::create_dir_all(&folder).during(folder.display())?;
    let library = folder.join(format!("{id}.{}", env::consts::DLL_EXTENSION));
    fs::copy(&built, &library).during(library.display())?;
    strip(&library)?;
    said(&wharf, "check", &library)?;
    let hash = pin(&library)?;
    let manifest = json!({
        "file_format_version": "1.0",
        "plugin": {
            "id": id, "path": format!("{id}.{}", env::consts::DLL_EXTENSION),
            "abi": format!("{}.{}", facts["abi"]["major"], facts["abi"]["minor"]),
            "sha256": hash, "description": format!("{} by {}", word("id"), word("vendor")),
        },
    });
    let text = serde_json::to_string_pretty(&manifest).map_err(Fail::new)? + "\n";
    let file = folder.join(format!("{id}.json"));
    fs::write(&file, text).during(file.display())?;
    let pack = out.join(format!("{name}.tar.gz"));
    let files = [&file, &library].map(|file| file.file_name().unwrap_or_default());
    shell::run(Command::new("tar").arg("-czf").arg(&pack).arg("-C").arg(&folder).args(files))?;
    println!("{}", pack.display());
    Ok(())
}

/// The plugin's file, built now unless it is one.
fn build(workspace: &Workspace, plugin: &str) -> Result<PathBuf, Fail> {
    let path = Path::new(plugin);
    if path.is_file() {
        return Ok(path.to_owned());
    }
    if path.join("Makefile").is_file() {
        shell::run(Command::new("make").current_dir(path))?;
        let entries = fs::read_dir(path).during(path.display())?;
        let mut libraries: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|file| file.extension().is_some_and(|end| end == env::consts::DLL_EXTENSION))
            .collect();
        libraries.sort();
        let [library] = libraries.as_slice() else {
            let count = libraries.len();
            return Err(Fail::new(format!(
                "{}: {count} libraries where one was to be built",
                path.display()
            )));
        };
        return Ok(library.clone());
    }
    let mut cargo = if path.join("Cargo.toml").is_file() {
        shell::cargo(path)
    } else if workspace.has(plugin) {
        let mut cargo = shell::cargo(&workspace.root);
        cargo.args(["build", "--package", plugin]);
        cargo
    } else {
        return Err(Fail::new(format!("`{plugin}` is no package here, no folder that builds, and no file")));
    };
    if cargo.get_args().next().is_none() {
        cargo.arg("build");
    }
    cargo.args(["--release", "--message-format", "json-render-diagnostics"]);
    let messages = shell::output(&mut cargo)?;
    let library =
        messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(cdylib);
    library.ok_or_else(|| {
        Fail::new(format!("`{plugin}` builds no shared library (`crate-type = [\"cdylib\"]`)"))
    })
}

/// The file of a shared library, if this message of cargo's is of one.
fn cdylib(message: Value) -> Option<PathBuf> {
    let kinds = message["target"]["crate_types"].as_array()?;
    let is = message["reason"] == "compiler-artifact" && kinds.iter().any(|kind| kind == "cdylib");
    message["filenames"].as_array().filter(|_| is)?.first()?.as_str().map(PathBuf::from)
}

/// What `wharf plugins WORD FILE` says.
fn said(wharf: &Path, word: &str, file: &Path) -> Result<Value, Fail> {
    let mut command = Command::new(wharf);
    command.args(["plugins", word]).arg(file).arg("--json");
    let output = command.output().during(wharf.display())?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(Fail::new(format!(
            "`wharf plugins {word}` finds {} wanting: {}",
            file.display(),
            text.trim()
        )));
    }
    serde_json::from_str(&text).during(file.display())
}

fn strip(library: &Path) -> Outcome {
    if shell::which("strip").is_none() {
        println!("not stripped: no `strip` is installed");
        return Ok(());
    }
    shell::run(Command::new("strip").arg("--strip-unneeded").arg(library))
}

fn pin(library: &Path) -> Result<String, Fail> {
    let bytes = fs::read(library).during(library.display())?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
