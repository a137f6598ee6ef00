//! `ci`: the one list of checks, cheapest first, for a laptop and for the CI machine.
//!
//! A step whose packages or tools are not there is skipped and says why. A step that others build on stops the list when
//! it fails; any other failure is kept for the table.

use crate::{
    bench, conformance, demo, embedded,
    fail::{Fail, Outcome},
    freestanding, fuzz, models, opencl, shell, test, tidy,
    workspace::Workspace,
};
use std::time::{Duration, Instant};

pub(crate) const LINE: &str = "run the whole list of checks";
pub(crate) const HELP: &str = "\
Runs fmt, tidy, core, clippy, test, conformance, opencl, docs, freestanding, embedded, demo, deny and prints how long each took and how it ended.

  STEP...               only these steps
  --full                the tests in release, the models of threads, the benchmarks and fuzz targets in short and
                        independent readers too; a skipped step counts as a failure";

/// A step: its name, whether the list stops when it fails, what keeps it from running here, and what it does.
struct Step {
    name: &'static str,
    stops: bool,
    unable: fn(&Workspace) -> Option<String>,
    run: fn(&Workspace) -> Outcome,
}

/// How a step ended.
enum End {
    Passed,
    Skipped(String),
    Failed,
    NotRun,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", stops: false, unable: able, run: fmt },
    Step { name: "tidy", stops: false, unable: able, run: |_| tidy::main(&[]) },
    Step { name: "abi", stops: false, unable: able, run: |w| crate::abi::check(&w.root, false) },
    Step { name: "core", stops: true, unable: |w| without(w, "wharf-core"), run: core },
    Step { name: "clippy", stops: false, unable: able, run: clippy },
    Step { name: "test", stops: false, unable: able, run: |_| test::main(&[]) },
    Step {
        name: "conformance",
        stops: false,
        unable: |w| without(w, "wharf-conformance"),
        run: |_| conformance::main(&[]),
    },
    Step { name: "opencl", stops: false, unable: opencl::unable, run: opencl::run },
    Step { name: "docs", stops: false, unable: able, run: docs },
    Step {
        name: "freestanding",
        stops: false,
        unable: |w| freestanding::unable(&w.root),
        run: |_| freestanding::main(&[]),
    },
    Step { name: "embedded", stops: false, unable: embedded::unable, run: |_| embedded::main(&[]) },
    Step { name: "demo", stops: false, unable: |w| without(w, demo::CLI), run: demos },
    Step {
        name: "deny",
        stops: false,
        unable: no_deny,
        run: |w| cargo(w, &["deny", "check", "licenses", "bans", "sources"]),
    },
];

/// What `--full` adds.
const FULL: &[Step] = &[
    Step { name: "test-release", stops: false, unable: able, run: |_| test::main(&["--release".to_owned()]) },
    Step { name: "models", stops: false, unable: |w| without(w, "wharf-core"), run: models::run },
    Step { name: "bench", stops: false, unable: |w| without(w, "wharf-bench"), run: |_| bench::quick() },
    Step { name: "fuzz", stops: false, unable: |_| fuzz::unable(), run: |_| fuzz::briefly() },
    Step { name: "peers", stops: false, unable: |w| without(w, "wharf-tests"), run: test::peers },
];

pub(crate) fn main(args: &[String]) -> Outcome {
    let full = args.iter().any(|arg| arg == "--full");
    let named: Vec<&String> = args.iter().filter(|arg| *arg != "--full").collect();
    if let Some(unknown) = named.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        return Err(Fail::argument("ci", unknown));
    }
    let workspace = Workspace::read()?;
    let mut steps: Vec<&Step> = STEPS.iter().collect();
    steps.retain(|step| named.is_empty() || named.iter().any(|name| *name == step.name));
    steps.extend(FULL.iter().filter(|_| full));

    let mut ends = Vec::new();
    let mut stopped = false;
    for step in steps {
        let began = Instant::now();
        let end = if stopped { End::NotRun } else { run(step, &workspace) };
        stopped |= step.stops && matches!(end, End::Failed);
        ends.push((step.name, began.elapsed(), end));
    }
    print!("{}", table(&ends));
    let bad = ends.iter().filter(|(_, _, end)| match end {
        End::Passed => false,
        End::Skipped(_) => full,
        End::Failed | End::NotRun => true,
    });
    match bad.count() {
        0 => Ok(()),
        count => Err(Fail::new(format!("{count} of {} steps did not pass", ends.len()))),
    }
}

fn run(step: &Step, workspace: &Workspace) -> End {
    // With what cargo and the test runner say.
    eprintln!("\n== {}", step.name);
    if let Some(why) = (step.unable)(workspace) {
        eprintln!("skipped: {why}");
        return End::Skipped(why);
    }
    match (step.run)(workspace) {
        Ok(()) => End::Passed,
        Err(fail) => {
            eprintln!("{}: {fail}", step.name);
            End::Failed
        }
    }
}

fn table(ends: &[(&str, Duration, End)]) -> String {
    let mut text = format!("\n{:14} {:>7}  {}\n", "step", "seconds", "result");
    for (name, took, end) in ends {
        let end = match end {
            End::Passed => "passed".to_owned(),
            End::Skipped(why) => format!("skipped: {why}"),
            End::Failed => "FAILED".to_owned(),
            End::NotRun => "not run".to_owned(),
        };
        text.push_str(&format!("{name:14} {:7.1}  {end}\n", took.as_secs_f64()));
    }
    let all: Duration = ends.iter().map(|(_, took, _)| *took).sum();
    text + &format!("{:14} {:7.1}\n", "all", all.as_secs_f64())
}

fn able(_: &Workspace) -> Option<String> {
    None
}

fn without(workspace: &Workspace, package: &str) -> Option<String> {
    (!workspace.has(package)).then(|| format!("the workspace has no package {package}"))
}

fn no_deny(_: &Workspace) -> Option<String> {
    shell::which("cargo-deny")
        .is_none()
        .then(|| "cargo-deny is not installed (`cargo install cargo-deny`)".to_owned())
}

fn cargo(workspace: &Workspace, args: &[&str]) -> Outcome {
    shell::run(shell::cargo(&workspace.root).args(args))
}

/// Alone, so that no other package's features help it; a dev build, which the other steps use again.
fn core(workspace: &Workspace) -> Outcome {
    let alone = ["build", "--quiet", "--package", "wharf-core", "--no-default-features"];
    cargo(workspace, &alone)?;
    cargo(workspace, &[&alone[..], &["--features", "alloc"]].concat())
}

/// Names the files only: `cargo fmt --all` says the rest.
fn fmt(workspace: &Workspace) -> Outcome {
    let members = cargo(workspace, &["fmt", "--all", "--check", "--", "-l"]);
    let mut outside = Ok(());
    for package in workspace.outside()? {
        let mut command = shell::cargo(&workspace.root.join(&package.dir));
        outside = outside.and(shell::run(command.args(["fmt", "--check", "--", "-l"])));
    }
    members.and(outside)
}

fn clippy(workspace: &Workspace) -> Outcome {
    let every = ["clippy", "--quiet", "--workspace", "--all-targets"];
    let members = cargo(workspace, &[&every[..], workspace.features(), &["--", "-D", "warnings"]].concat());
    let mut outside = Ok(());
    // A fuzzer's package needs a compiler of its own.
    for package in workspace.outside()?.iter().filter(|package| !package.dir.ends_with("fuzz")) {
        let mut command = shell::cargo(&workspace.root.join(&package.dir));
        command
            .args(["clippy", "--quiet", "--release", "--all-features", "--target-dir"])
            .arg(workspace.target.join("outside"));
        outside = outside.and(shell::run(command.args(["--", "-D", "warnings"])));
    }
    members.and(outside)
}

fn docs(workspace: &Workspace) -> Outcome {
    let mut command = shell::cargo(&workspace.root);
    command.args(["doc", "--quiet", "--no-deps", "--workspace"]).args(workspace.features());
    shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn demos(_: &Workspace) -> Outcome {
    for format in demo::FORMATS {
        eprintln!("-- {format}");
        demo::main(&["--archive".to_owned(), format.to_owned()])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_step_and_the_sum() {
        let ends = [
            ("fmt", Duration::from_millis(1500), End::Passed),
            ("deny", Duration::ZERO, End::Skipped("no tool".to_owned())),
            ("test", Duration::from_secs(61), End::Failed),
        ];
        let expected = "\nstep           seconds  result\nfmt                1.5  passed\ndeny               0.0  skipped: no tool\ntest              61.0  FAILED\nall               62.5\n";
        assert_eq!(table(&ends), expected);
    }
}
