//! `conformance`: the suite that every backend has to pass, on a plugin or on a backend of this tree.

use crate::{
    fail::{During, Fail, Outcome},
    plugins::{self, Built},
    shell,
    workspace::Workspace,
};
use std::{
    fmt,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub(crate) const LINE: &str = "run the suite of behaviour on a plugin or a backend";
pub(crate) const HELP: &str = "\
Builds wharf-conformance and the plugins in release, then prints one line a case and closes with
`N passed, M failed, K skipped`. Ends with the suite's code: 1 if a case failed.

  PLUGIN                a plugin file, or a backend of this tree: host, null, dma; without it the host, linked in and as
                        its plugin
  --list                the cases and their rules, without running any
  --filter TEXT         only cases whose name holds this
  --junit FILE          also as JUnit's XML; of a second target FILE-2.xml
  --mode MODE           pump, no-pump, depth-1, no-native-wait, layers, reordered; all if none is given; may be repeated";

/// The package of the suite, and its command.
const SUITE: &str = "wharf-conformance";

#[derive(Debug, Default, PartialEq, Eq)]
struct Args {
    targets: Vec<String>,
    junit: Option<PathBuf>,
    /// What the suite gets as it is.
    rest: Vec<String>,
    list: bool,
}

pub(crate) fn main(args: &[String]) -> Outcome {
    let mut args = parse(args)?;
    let workspace = Workspace::read()?;
    if !workspace.has(SUITE) {
        return Err(Fail::new(format!("the workspace has no package {SUITE}")));
    }
    let mut build = shell::cargo(&workspace.root);
    build.args(["build", "--release", "--quiet", "--package", SUITE]);
    if shell::status(&mut build)? != 0 {
        return Err(Fail::new(format!("{SUITE} does not build")));
    }
    let program = workspace.target.join("release").join(format!("{SUITE}{}", std::env::consts::EXE_SUFFIX));
    if args.list {
        return ended(shell::status(Command::new(program).arg("--list"))?);
    }
    let built = plugins::build(&workspace, true)?;
    if args.targets.is_empty() {
        let plugin = built.plugins.join(format!("wharf_host_plugin.{}", std::env::consts::DLL_EXTENSION));
        args.targets = vec!["host".to_owned(), plugin.to_string_lossy().into_owned()];
    }
    all(&program, &args, &built)
}

fn parse(args: &[String]) -> Result<Args, Fail> {
    let mut parsed = Args::default();
    let mut given = args.iter();
    while let Some(arg) = given.next() {
        let mut value = || given.next().cloned().ok_or_else(|| Fail::usage(format!("{arg} needs a value")));
        match arg.as_str() {
            "--list" => parsed.list = true,
            "--junit" => parsed.junit = Some(value()?.into()),
            "--filter" | "--mode" => parsed.rest.extend([arg.clone(), value()?]),
            flag if flag.starts_with('-') => return Err(Fail::argument("conformance", flag)),
            _ if !parsed.targets.is_empty() => return Err(Fail::usage("more than one plugin")),
            target => parsed.targets.push(target.to_owned()),
        }
    }
    Ok(parsed)
}

/// Runs every target, says what all came to, and ends with the first code that is not 0.
fn all(program: &Path, args: &Args, built: &Built) -> Outcome {
    let (mut sum, mut outcome) = (Sum::default(), Ok(()));
    for (number, target) in args.targets.iter().enumerate() {
        if args.targets.len() > 1 {
            println!("== {target}");
        }
        let mut suite = Command::new(program);
        suite.arg(target).args(&args.rest);
        if let Some(junit) = &args.junit {
            suite.arg("--junit").arg(numbered(junit, number + 1));
        }
        suite
            .env(
                "WHARF_HOST_KERNELS",
                built.kernels.join(format!("host.{}", std::env::consts::DLL_EXTENSION)),
            )
            .env("WHARF_TEST_PRODUCT_PLUGINS", &built.plugins)
            .env("WHARF_TEST_PLUGINS", &built.test_plugins);
        let (code, counted) = watched(&mut suite)?;
        sum.add(counted.unwrap_or_default());
        outcome = outcome.and(ended(code));
    }
    if args.targets.len() > 1 {
        println!("== all\n{sum}");
    }
    outcome
}

fn ended(code: i32) -> Outcome {
    if code == 0 {
        return Ok(());
    }
    Err(Fail { code: u8::try_from(code).unwrap_or(1), message: String::new() })
}

/// `report.xml`, `report-2.xml`, and so on.
fn numbered(file: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return file.to_owned();
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ending = file.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
    file.with_file_name(format!("{stem}-{number}{ending}"))
}

/// Runs the suite, passes its lines on, and answers its code and its last count.
fn watched(suite: &mut Command) -> Result<(i32, Option<Sum>), Fail> {
    let what = suite.get_program().to_string_lossy().into_owned();
    let mut child = suite.stdout(Stdio::piped()).spawn().during(format!("cannot start `{what}`"))?;
    let mut counted = None;
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
        let line = line.during(&what)?;
        println!("{line}");
        counted = Sum::read(&line).or(counted);
    }
    let status = child.wait().during(&what)?;
    Ok((status.code().unwrap_or(1), counted))
}

/// How many cases ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    passed: u64,
    /// Among those that passed.
    known: u64,
    failed: u64,
    skipped: u64,
}

impl Sum {
    /// The suite's closing line: `N passed (K of them fail as is known), M failed, K skipped`.
    fn read(line: &str) -> Option<Sum> {
        let [passed, failed, skipped] = line.split(", ").collect::<Vec<_>>().try_into().ok()?;
        let (passed, known) = passed.split_once(" passed")?;
        let known =
            known.strip_prefix(" (").and_then(|known| known.strip_suffix(" of them fail as is known)"));
        Some(Sum {
            passed: passed.parse().ok()?,
            known: known.map_or(Some(0), |known| known.parse().ok())?,
            failed: failed.strip_suffix(" failed")?.parse().ok()?,
            skipped: skipped.strip_suffix(" skipped")?.parse().ok()?,
        })
    }
    fn add(&mut self, other: Sum) {
        self.passed += other.passed;
        self.known += other.known;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match self.known {
            0 => String::new(),
            known => format!(" ({known} of them fail as is known)"),
        };
        write!(f, "{} passed{known}, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_is_read_and_no_other() {
        for (known, line) in [
            (0, "12 passed, 0 failed, 3 skipped"),
            (2, "12 passed (2 of them fail as is known), 0 failed, 3 skipped"),
        ] {
            let sum = Sum { passed: 12, known, failed: 0, skipped: 3 };
            assert_eq!(Sum::read(line), Some(sum));
            assert_eq!(sum.to_string(), line);
        }
        assert_eq!(Sum::read("passed queue.order (pump)"), None);
        assert_eq!(Sum::read("12 passed, 0 failed, 3 skipped, 1 lost"), None);
    }

    #[test]
    fn each_target_has_a_report_of_its_own() {
        assert_eq!(numbered(Path::new("a/r.xml"), 1), Path::new("a/r.xml"));
        assert_eq!(numbered(Path::new("a/r.xml"), 2), Path::new("a/r-2.xml"));
    }

    #[test]
    fn options_go_on_to_the_suite() {
        let args = ["--filter", "copy", "--mode", "pump", "null"].map(str::to_owned);
        let parsed = parse(&args).ok();
        let rest = args[..4].to_vec();
        assert_eq!(parsed, Some(Args { targets: vec!["null".into()], rest, ..Args::default() }));
        assert!(parse(&["--fliter".to_owned()]).is_err());
        assert!(parse(&["host".to_owned(), "null".to_owned()]).is_err());
    }
}
