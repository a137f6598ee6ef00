//! `test`: everything that the tests load is built first, then all tests run.

use crate::{
    demo,
    fail::{Fail, Outcome},
    plugins::{self, Built},
    shell,
    workspace::Workspace,
};
use std::process::Command;

pub(crate) const LINE: &str = "build the plugins, then run all tests";
pub(crate) const HELP: &str = "\
Builds the plugins and the command, then runs the tests of the workspace, with `cargo nextest` if it is installed, else
with `cargo test`. Doc tests run first, so that the last lines are the runner's summary.

Arguments go to the runner: `cargo xtask test -p wharf-core timelines`. With arguments, doc tests are left out.

Tests find what was built by the environment, in absolute paths:
  WHARF_TEST_PRODUCT_PLUGINS  folder of the plugins that users get
  WHARF_TEST_PLUGINS          folder of the plugins for tests
  WHARF_TEST_KERNELS          kernel image of the host device
  WHARF_BIN                   the command `wharf`, in release";

pub(crate) fn main(args: &[String]) -> Outcome {
    let workspace = Workspace::read()?;
    plugins::build(&workspace, true)?;
    if workspace.has(demo::CLI) {
        demo::build_command(&workspace)?;
    }
    let mut failed = Vec::new();
    if args.is_empty() && shell::run(doc_tests(&workspace).args(workspace.features())).is_err() {
        failed.push("doc tests");
    }
    let nextest = shell::which("cargo-nextest").is_some();
    let mut tests =
        runner(&workspace, if nextest { &["nextest", "run"] } else { &["test", "--all-targets"] });
    if !args.iter().any(|arg| ["-p", "--package", "--workspace"].contains(&arg.as_str())) {
        tests.arg("--workspace").args(workspace.features());
    } else if args.iter().any(|arg| arg == "wharf-core") {
        tests.args(workspace.features());
    }
    if shell::run(tests.args(args)).is_err() {
        failed.push("tests");
    }
    if failed.is_empty() { Ok(()) } else { Err(Fail::new(format!("{} failed", failed.join(" and ")))) }
}

/// What the command writes, read by independent readers, which are installed for it.
pub(crate) fn peers(workspace: &Workspace) -> Outcome {
    let mut command = runner(workspace, &["test", "--package", "wharf-tests", "--test", "peers"]);
    shell::run(command.args(["--", "--nocapture"]).env("WHARF_PEERS", "1"))
}

fn doc_tests(workspace: &Workspace) -> Command {
    runner(workspace, &["test", "--workspace", "--doc", "--quiet"])
}

/// Cargo with what tests read from the environment.
fn runner(workspace: &Workspace, args: &[&str]) -> Command {
    let built = Built::of(workspace);
    let mut command = shell::cargo(&workspace.root);
    command
        .args(args)
        .env("WHARF_TEST_PRODUCT_PLUGINS", built.plugins)
        .env("WHARF_TEST_PLUGINS", built.test_plugins)
        .env("WHARF_TEST_KERNELS", built.kernels.join(format!("host.{}", std::env::consts::DLL_EXTENSION)))
        .env(
            "WHARF_BIN",
            workspace.target.join("release").join(format!("wharf{}", std::env::consts::EXE_SUFFIX)),
        );
    command
}
