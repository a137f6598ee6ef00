//! `fuzz`: the fuzz targets, each for a while.

use crate::{
    fail::{During, Fail, Outcome},
    shell, words,
    workspace::Workspace,
};
use std::{
    collections::VecDeque,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub(crate) const LINE: &str = "run the fuzz targets, each for a minute";
pub(crate) const HELP: &str = "\
Builds the targets below tests/fuzz, runs each for a while, and prints how many inputs it ran and how much code they
reached. A crash ends the command with 1, after the other targets have run, and says how to replay it.

  TARGET...             only these targets
  --seconds N           seconds for each target; 60 unless given
  --input FILE          run this one input instead (one TARGET must be given)
  --list                print the targets

New inputs are kept in target/fuzz/corpus/; the search begins with those, the fixtures and tests/fuzz/corpus/.
Needs cargo-fuzz (`cargo install cargo-fuzz --locked`, about a minute); the stable compiler will do.";

const FOLDER: &str = "tests/fuzz";
/// Longest input. Headers are far shorter; long inputs are slow to change.
const INPUT_BYTES: usize = 16 << 10;
/// One allocation, and all memory with the sanitizer's own: nothing may be reserved by a number of a file.
const MEMORY_MB: [usize; 2] = [64, 2048];
/// Lines of a crash that are shown.
const SHOWN: usize = 30;

struct Args {
    seconds: u64,
    input: Option<PathBuf>,
    targets: Vec<String>,
}

/// What a run came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    executions: u64,
    edges: u64,
    /// The file that libFuzzer wrote the input to.
    crash: Option<String>,
}

pub(crate) fn main(args: &[String]) -> Outcome {
    let workspace = Workspace::read()?;
    let known = targets(&workspace.root)?;
    if args.iter().any(|arg| arg == "--list") {
        known.iter().for_each(|target| println!("{target}"));
        return Ok(());
    }
    let args = parse(args, &known)?;
    if let Some(why) = unable() {
        return Err(Fail::new(why));
    }
    if let Some(input) = &args.input {
        let mut replay = fuzz(&workspace, &["run"]);
        return shell::run(replay.arg(&args.targets[0]).arg(input).arg("--").args(limits()));
    }
    shell::run(&mut fuzz(&workspace, &["build"]))?;
    let mut crashes = 0;
    for target in &args.targets {
        let run = search(&workspace, target, args.seconds)?;
        let Run { executions, edges, .. } = run;
        println!("{target:12} {executions:>12} executions in {} s, {edges} edges", args.seconds);
        if let Some(crash) = run.crash {
            println!("{target:12} CRASHED: `cargo xtask fuzz {target} --input {crash}` replays it");
            crashes += 1;
        }
    }
    match crashes {
        0 => Ok(()),
        _ => Err(Fail::new(format!("{crashes} of {} targets crashed", args.targets.len()))),
    }
}

/// Every target for a moment: what it has found before would be found again.
pub(crate) fn briefly() -> Outcome {
    main(&["--seconds".to_owned(), "10".to_owned()])
}

/// Why nothing can be fuzzed here, if so.
pub(crate) fn unable() -> Option<String> {
    shell::which("cargo-fuzz").is_none().then(|| {
        "cargo-fuzz is not installed: `cargo install cargo-fuzz --locked` takes about a minute".to_owned()
    })
}

fn parse(args: &[String], known: &[String]) -> Result<Args, Fail> {
    let mut parsed = Args { seconds: 60, input: None, targets: Vec::new() };
    let mut given = args.iter();
    while let Some(arg) = given.next() {
        let mut value = || given.next().ok_or_else(|| Fail::usage(format!("{arg} needs a value")));
        match arg.as_str() {
            "--seconds" => {
                let text = value()?;
                let seconds = text.parse().ok().filter(|seconds| *seconds > 0);
                parsed.seconds =
                    seconds.ok_or_else(|| Fail::usage(format!("`{text}` is no number of seconds")))?;
            }
            "--input" => parsed.input = Some(value()?.into()),
            flag if flag.starts_with('-') => return Err(Fail::argument("fuzz", flag)),
            target if known.iter().any(|known| known == target) => parsed.targets.push(target.to_owned()),
            other => {
                let near = words::nearest(other, known.iter().map(String::as_str));
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                let all = known.join(", ");
                return Err(Fail::usage(format!("no target `{other}`{hint} There are {all}")));
            }
        }
    }
    if parsed.input.is_some() && parsed.targets.len() != 1 {
        return Err(Fail::usage("--input needs one target: whose input is it?"));
    }
    if parsed.targets.is_empty() {
        parsed.targets = known.to_vec();
    }
    Ok(parsed)
}

/// The targets are the files of a folder.
fn targets(root: &Path) -> Result<Vec<String>, Fail> {
    let folder = root.join(FOLDER).join("fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).during(folder.display())? {
        let path = entry.during(folder.display())?.path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// cargo-fuzz needs compiler flags that stable refuses without the variable.
fn fuzz(workspace: &Workspace, verb: &[&str]) -> Command {
    let mut command = shell::cargo(&workspace.root);
    command.env("RUSTC_BOOTSTRAP", "1").arg("fuzz").args(verb).args(["--fuzz-dir", FOLDER, "--target-dir"]);
    command.arg(workspace.target.join("fuzz"));
    command
}

/// Folders with inputs to begin with.
fn seeds(root: &Path, target: &str) -> Vec<PathBuf> {
    let archives = root.join("tests/fixtures/archives");
    let fixtures = match target {
        "shards" => vec![archives.join("safetensors/sharded"), archives.join("malformed/index")],
        "planner" => vec![],
        format => vec![archives.join(format), archives.join("malformed").join(format)],
    };
    let kept = root.join(FOLDER).join("corpus").join(target);
    fixtures.into_iter().chain([kept]).filter(|folder| folder.is_dir()).collect()
}

/// What an input may take before it counts as a crash; the same when it is replayed.
fn limits() -> [String; 3] {
    let [malloc, all] = MEMORY_MB;
    [format!("-malloc_limit_mb={malloc}"), format!("-rss_limit_mb={all}"), "-timeout=10".to_owned()]
}

fn search(workspace: &Workspace, target: &str, seconds: u64) -> Result<Run, Fail> {
    let here = workspace.target.join("fuzz");
    let (corpus, artifacts) = (here.join("corpus").join(target), here.join("artifacts").join(target));
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).during(folder.display())?;
    }
    let mut command = fuzz(workspace, &["run"]);
    command.arg(target).arg(corpus).args(seeds(&workspace.root, target)).args([
        "--".to_owned(),
        format!("-max_total_time={seconds}"),
        format!("-max_len={INPUT_BYTES}"),
        "-print_final_stats=1".to_owned(),
        format!("-artifact_prefix={}/", artifacts.display()),
    ]);
    command.args(limits());
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().during("cargo fuzz")?;
    let (mut run, mut last) = (Run::default(), VecDeque::new());
    for line in child.stderr.take().map(BufReader::new).into_iter().flat_map(|said| said.split(b'\n')) {
        let line = String::from_utf8_lossy(&line.during(target)?).into_owned();
        run.read(&line);
        last.push_back(line);
        if last.len() > SHOWN {
            last.pop_front();
        }
    }
    if !child.wait().during(target)?.success() {
        last.iter().for_each(|line| eprintln!("{line}"));
        run.crash.get_or_insert_with(|| "FILE".to_owned());
    }
    Ok(run)
}

impl Run {
    /// Takes what a line of libFuzzer tells.
    fn read(&mut self, line: &str) {
        if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.executions = count.trim().parse().unwrap_or(0);
        } else if let Some((_, rest)) = line.split_once("Test unit written to ") {
            self.crash = Some(rest.trim().to_owned());
        } else if let Some((_, rest)) = line.split_once(" cov: ") {
            let count = rest.split(' ').next().and_then(|count| count.parse().ok());
            self.edges = count.unwrap_or(self.edges);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as libFuzzer prints them.
    #[test]
    fn the_engine_s_lines_are_read() {
        let mut run = Run::default();
        run.read("#2097152\tpulse  cov: 812 ft: 2290 corp: 301/14Kb lim: 4096 exec/s: 190650 rss: 97Mb");
        run.read("stat::number_of_executed_units: 2307481");
        assert_eq!(run, Run { executions: 2_307_481, edges: 812, crash: None });
        run.read("artifact_prefix='x/'; Test unit written to x/crash-da39a3");
        assert_eq!(run.crash.as_deref(), Some("x/crash-da39a3"));
    }

    #[test]
    fn an_input_belongs_to_one_target() {
        let known = ["gguf", "irpa"].map(str::to_owned);
        let parse = |args: &[&str]| parse(&args.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>(), &known);
        assert!(parse(&["--input", "x"]).is_err());
        assert!(parse(&["--input", "x", "gguf"]).is_ok());
        assert!(parse(&["--seconds", "0"]).is_err());
        assert!(parse(&["ggfu"]).is_err_and(|fail| fail.message.contains("did you mean `gguf`")));
        assert_eq!(parse(&[]).map(|args| args.targets).ok(), Some(known.to_vec()));
    }
}
