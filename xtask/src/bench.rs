//! `bench`: the benchmarks, each against a baseline measured in the same run.

mod peers;

use crate::{
    demo,
    fail::{During, Fail, Outcome},
    plugins, shell, words,
    workspace::Workspace,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub(crate) const LINE: &str = "run the benchmarks, each against a baseline in the same run";
pub(crate) const HELP: &str = "\
Builds the benchmarks, the plugins and the command in release, runs them one after the other and prints one table. Figures
are lower quartiles of rounds that alternate with the baseline's; a ratio above 1 means that ours is better. The rows
go to target/bench/results.json too. A goal that is missed is no failure.

  NAME...               only these: ranges, load, list, launch, signal, copy, call, open
  --only TEXT           only rows whose name holds this
  --mib N               MiB of the large archive of `load`; 512 unless given
  --quick               a few short rounds, to see that everything runs; the figures mean nothing
  --peers               also other programs (IREE, safetensors) on the archives of `load`; pip installs them into a
                        virtual environment under target/peers. A row says so where they cannot be had

A quiet machine matters more than any option: the load average before and after is printed under the table.";

const PACKAGE: &str = "wharf-bench";
/// In the order of the table.
const NAMES: &[&str] = &["ranges", "load", "list", "launch", "signal", "copy", "call", "open"];

#[derive(Debug, Default, PartialEq, Eq)]
struct Args {
    names: Vec<String>,
    rest: Vec<String>,
    only: Option<String>,
    peers: bool,
}

pub(crate) fn main(args: &[String]) -> Outcome {
    let args = parse(args)?;
    let workspace = Workspace::read()?;
    let bench = Bench::build(&workspace)?;
    let before = load_average();
    println!("{}", heading());
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for name in &args.names {
        match bench.run(name, &args) {
            Ok(found) => {
                found.iter().for_each(|row| println!("{}", line(row)));
                rows.extend(found);
            }
            Err(fail) => {
                eprintln!("{name}: {fail}");
                failed.push(name.as_str());
            }
        }
    }
    if args.peers {
        let short = args.rest.iter().any(|arg| arg == "--short");
        let found = peers::rows(&workspace, &bench, short);
        found.iter().for_each(|row| println!("{}", line(row)));
        rows.extend(found);
    }
    let count = |met: bool| rows.iter().filter(|row| row["met"] == met).count();
    println!("\n{} of {} goals reached", count(true), count(true) + count(false));
    let after = load_average();
    println!("{} cores, load average {before} before and {after} after", cores());
    let file = bench.folder.join("results.json");
    let about = json!({ "cores": cores(), "load_before": before, "load_after": after, "rows": rows });
    let text = serde_json::to_string_pretty(&about).during("the results")?;
    fs::write(&file, text + "\n").during(file.display())?;
    println!("written to {}", file.display());
    if failed.is_empty() { Ok(()) } else { Err(Fail::new(format!("did not run: {}", failed.join(", ")))) }
}

/// Everything once, shortly.
pub(crate) fn quick() -> Outcome {
    main(&["--quick".to_owned()])
}

fn parse(args: &[String]) -> Result<Args, Fail> {
    let mut parsed = Args::default();
    let mut given = args.iter();
    while let Some(arg) = given.next() {
        let mut value = || given.next().cloned().ok_or_else(|| Fail::usage(format!("{arg} needs a value")));
        match arg.as_str() {
            "--quick" => parsed.rest.push("--short".to_owned()),
            "--only" => parsed.only = Some(value()?),
            "--mib" => parsed.rest.extend([arg.clone(), value()?]),
            "--peers" => parsed.peers = true,
            flag if flag.starts_with('-') => return Err(Fail::argument("bench", flag)),
            name if NAMES.contains(&name) => parsed.names.push(name.to_owned()),
            other => {
                let near = words::nearest(other, NAMES.iter().copied());
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                return Err(Fail::usage(format!(
                    "no benchmark `{other}`{hint} There are {}",
                    NAMES.join(", ")
                )));
            }
        }
    }
    if parsed.names.is_empty() {
        parsed.names = NAMES.iter().map(|name| (*name).to_owned()).collect();
    }
    Ok(parsed)
}

/// What was built for a run.
struct Bench {
    programs: PathBuf,
    folder: PathBuf,
    command: PathBuf,
    plugins: PathBuf,
    test_plugins: PathBuf,
    kernels: PathBuf,
}

impl Bench {
    fn build(workspace: &Workspace) -> Result<Bench, Fail> {
        let built = plugins::build(workspace, true)?;
        let command = demo::build_command(workspace)?;
        let mut build = shell::cargo(&workspace.root);
        build.args(["build", "--release", "--quiet", "--package", PACKAGE, "--bins"]);
        if shell::status(&mut build)? != 0 {
            return Err(Fail::new(format!("{PACKAGE} does not build")));
        }
        let folder = workspace.target.join("bench");
        fs::create_dir_all(&folder).during(folder.display())?;
        let kernels = built.kernels.join(format!("host.{}", std::env::consts::DLL_EXTENSION));
        Ok(Bench {
            programs: workspace.target.join("release"),
            folder,
            command,
            plugins: built.plugins,
            test_plugins: built.test_plugins,
            kernels,
        })
    }

    /// The rows of one benchmark.
    fn run(&self, name: &str, args: &Args) -> Result<Vec<Value>, Fail> {
        let rows = self.folder.join(format!("{name}.json"));
        // Those of an earlier run are not this one's.
        let _ = fs::remove_file(&rows);
        let mut command = Command::new(self.programs.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)));
        command.arg("--json").arg(&rows).args(&args.rest);
        if let Some(only) = &args.only {
            command.args(["--only", only]);
        }
        command
            .env("WHARF_TEST_PRODUCT_PLUGINS", &self.plugins)
            .env("WHARF_TEST_PLUGINS", &self.test_plugins)
            .env("WHARF_TEST_KERNELS", &self.kernels)
            .env("WHARF_BIN", &self.command)
            .env("WHARF_BENCH_DATA", self.folder.join("data"))
            .stdout(Stdio::null());
        let code = shell::status(&mut command)?;
        if code != 0 {
            return Err(Fail::new(format!("ended with {code}")));
        }
        let mut found = read(&rows)?;
        for row in &mut found {
            row["name"] = format!("{name}: {}", row["name"].as_str().unwrap_or_default()).into();
        }
        Ok(found)
    }
}

fn read(file: &Path) -> Result<Vec<Value>, Fail> {
    let text = fs::read_to_string(file).during(file.display())?;
    serde_json::from_str(&text).during(file.display())
}

fn heading() -> String {
    format!(
        "{:60} {:>10} {:>10} {:5} {:>7} {:>10} {:4} baseline is",
        "what", "ours", "baseline", "unit", "ratio", "goal", "met"
    )
}

fn line(row: &Value) -> String {
    let text = |field: &str| row[field].as_str().unwrap_or_default();
    let number = |field: &str| row[field].as_f64().unwrap_or(f64::NAN);
    if row["skipped"].is_string() {
        return format!("{:60} skipped: {}", text("name"), text("skipped"));
    }
    let goal = match text("goal_of") {
        "ratio" => format!(">= {:.2}", number("goal")),
        "value" => format!("<= {} {}", number("goal"), text("unit")),
        _ => "-".to_owned(),
    };
    let met = row["met"].as_bool().map_or("-", |met| if met { "yes" } else { "no" });
    format!(
        "{:60} {:>10.1} {:>10.1} {:5} {:>7.2} {goal:>10} {met:4} {}",
        text("name"),
        number("value"),
        number("baseline_value"),
        text("unit"),
        number("ratio"),
        text("baseline")
    )
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Of the last minute, where the system tells.
fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_options_are_told_apart() {
        let parse = |args: &[&str]| parse(&args.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>());
        let parsed = parse(&["load", "--mib", "64", "--quick", "--only", "gather"]).ok();
        let rest = ["--mib", "64", "--short"].map(str::to_owned).to_vec();
        assert_eq!(
            parsed,
            Some(Args { names: vec!["load".into()], rest, only: Some("gather".into()), peers: false })
        );
        assert_eq!(parse(&[]).map(|args| args.names.len()).ok(), Some(NAMES.len()));
        assert!(parse(&["lunch"]).is_err_and(|fail| fail.message.contains("`launch`")));
        assert!(parse(&["--peers"]).is_ok_and(|args| args.peers));
    }

    #[test]
    fn a_row_has_its_columns() {
        let row = json!({"name": "load: x", "value": 2.0, "unit": "ms", "baseline": "memcpy", "baseline_value": 1.0,
            "ratio": 0.5, "goal": 0.77, "goal_of": "ratio", "met": false});
        let words: Vec<_> = line(&row).split_whitespace().map(str::to_owned).collect();
        let none = json!({"name": "peers: load", "skipped": "no pip"});
        assert!(line(&none).ends_with(" skipped: no pip"));
        assert_eq!(words, ["load:", "x", "2.0", "1.0", "ms", "0.50", ">=", "0.77", "no", "memcpy"]);
    }
}
