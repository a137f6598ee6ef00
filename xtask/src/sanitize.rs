//! `sanitize`: tests under the compiler's sanitizers.

use crate::{
    fail::{Fail, Outcome},
    shell,
    workspace::Workspace,
};

pub(crate) const LINE: &str = "run tests under the address or the thread sanitizer";
pub(crate) const HELP: &str = "\
Builds tests with a sanitizer and runs them. x86_64 Linux only.

  address               accesses outside of memory, or after its end: core, the host device, the loader. Leaks are not
                        looked for, since tests leak stores
  thread                accesses of threads that nothing orders: core and the loader. Std is not built anew, so what it
                        orders is not seen: xtask/sanitize/thread.supp says what is left out, and the host device,
                        whose pool of threads stands on std's mutex and condition, is not run

Without one, both.";

/// A sanitizer: its name, the compiler's further flags, and what its runtime is told.
struct Sanitizer {
    name: &'static str,
    flags: &'static str,
    variable: &'static str,
    options: &'static str,
    tested: &'static [&'static [&'static str]],
}

const SANITIZERS: &[Sanitizer] = &[
    Sanitizer {
        name: "address",
        flags: "-Zsanitizer=address",
        variable: "ASAN_OPTIONS",
        options: "detect_leaks=0",
        tested: &[CORE, HOST, LOADER, WHOLE],
    },
    Sanitizer {
        name: "thread",
        flags: "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer",
        variable: "TSAN_OPTIONS",
        options: "history_size=4:suppressions=",
        tested: &[CORE, LOADER],
    },
];

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Tests of core where threads meet. Those of archives have none, and some of them are timed.
const CORE: &[&str] = &[
    "test",
    "--package=wharf-core",
    "--features=alloc",
    "--test=batch",
    "--test=handles",
    "--test=inside",
    "--test=lists",
    "--test=memory",
    "--test=races",
    "--test=ranges_stress",
    "--test=timelines",
];
const LOADER: &[&str] = &["test", "--package=wharf", "--lib"];
const HOST: &[&str] = &["test", "--package=wharf-host", "--tests"];
/// Of the tests of the whole, those that start no other program.
const WHOLE: &[&str] = &["test", "--package=wharf-tests", "--test=endings"];

pub(crate) fn main(args: &[String]) -> Outcome {
    let chosen: Vec<&Sanitizer> = match args {
        [] => SANITIZERS.iter().collect(),
        [name] => SANITIZERS.iter().filter(|sanitizer| sanitizer.name == name).collect(),
        [_, more, ..] => return Err(Fail::argument("sanitize", more)),
    };
    if chosen.is_empty() {
        return Err(Fail::argument("sanitize", &args[0]));
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Fail::new("the sanitizers are those of x86_64 Linux"));
    }
    let workspace = Workspace::read()?;
    chosen.into_iter().try_for_each(|sanitizer| run(&workspace, sanitizer))
}

fn run(workspace: &Workspace, sanitizer: &Sanitizer) -> Outcome {
    let mut options = sanitizer.options.to_owned();
    if options.ends_with('=') {
        options.push_str(&workspace.root.join("xtask/sanitize/thread.supp").display().to_string());
    }
    for tested in sanitizer.tested {
        let mut command = shell::cargo(&workspace.root);
        command.args(*tested).args(["--quiet", "--no-fail-fast", "--target", TARGET]);
        command.arg("--target-dir").arg(workspace.target.join(format!("sanitize-{}", sanitizer.name)));
        // The flags are of the compiler's next edition; the compiler is the same.
        command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", sanitizer.flags);
        shell::run(command.env(sanitizer.variable, &options))?;
    }
    Ok(())
}
