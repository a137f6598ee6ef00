//! `models`: what threads do with core's atomics, tried in every order that the memory model permits.

use crate::{
    fail::{Fail, Outcome},
    shell,
    workspace::Workspace,
};

pub(crate) const LINE: &str = "try every order of core's atomics with loom";
pub(crate) const HELP: &str = "\
Builds core with loom's atomics and runs the models in core/tests/*_loom.rs: the map of ranges, words, sleepers, handles
and pins, the loader's lock.";

const MODELS: &[&str] = &["lock_loom", "threads_loom", "ranges_loom"];

pub(crate) fn main(args: &[String]) -> Outcome {
    match args {
        [] => run(&Workspace::read()?),
        [arg, ..] => Err(Fail::argument("models", arg)),
    }
}

pub(crate) fn run(workspace: &Workspace) -> Outcome {
    let mut command = shell::cargo(&workspace.root);
    command.args(["test", "--quiet", "--release", "--package", "wharf-core", "--features", "alloc"]);
    command.args(MODELS.iter().flat_map(|model| ["--test", model]));
    command.arg("--target-dir").arg(workspace.target.join("loom"));
    shell::run(command.env("RUSTFLAGS", "--cfg loom"))
}
