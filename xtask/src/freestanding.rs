//! `freestanding`: core in a program without std, libc and heap, built, looked at and run.

use crate::{
    elf,
    fail::{During, Fail, Outcome},
    shell,
    workspace::Workspace,
};
use std::{fs, path::Path, process::Command};

pub(crate) const LINE: &str = "build and run core in a program without std, libc and heap";
pub(crate) const HELP: &str = "\
Builds tests/freestanding in release, checks that the program needs no interpreter and no library, prints its size and
runs it. x86_64 Linux only.

  --build               print where the program is instead of running it";

/// The folder of the program and its name.
pub(crate) const FOLDER: &str = "tests/freestanding";
const PROGRAM: &str = "wharf-freestanding";

pub(crate) fn main(args: &[String]) -> Outcome {
    let only_build = match args {
        [] => false,
        [arg] if arg == "--build" => true,
        [arg, ..] => return Err(Fail::argument("freestanding", arg)),
    };
    let workspace = Workspace::read()?;
    if let Some(why) = unable(&workspace.root) {
        return Err(Fail::new(why));
    }
    let target = workspace.target.join("outside");
    let mut build = shell::cargo(&workspace.root);
    build.args(["build", "--release", "--quiet", "--locked", "--manifest-path"]);
    build.arg(workspace.root.join(FOLDER).join("Cargo.toml")).arg("--target-dir").arg(&target);
    shell::run(&mut build)?;
    let program = target.join("release").join(PROGRAM);
    let file = fs::read(&program).during(program.display())?;
    let needs = elf::needs(&file)?;
    if needs != elf::Needs::default() {
        return Err(Fail::new(format!("{PROGRAM} does not stand alone: {needs:?}")));
    }
    if only_build {
        println!("{}", program.display());
        return Ok(());
    }
    println!("{PROGRAM}: {} bytes, no interpreter, no library", file.len());
    shell::run(&mut Command::new(program))
}

/// Why the program can't be built here, if so.
pub(crate) fn unable(root: &Path) -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some("the program makes system calls of x86_64 Linux".to_owned());
    }
    (!root.join(FOLDER).is_dir()).then(|| format!("there is no {FOLDER}"))
}
