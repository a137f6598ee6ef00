//! Other programs on the same files in the same run: IREE's parameter load and gather, safetensors' load_file, each a
//! process of its own, in turn with `wharf bench load`. They come from a virtual environment under `target/peers`; where
//! that cannot be had, a row says why it was skipped.

use super::Bench;
use crate::{
    fail::{During, Fail},
    workspace::Workspace,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What pip is asked for.
const PACKAGES: [&str; 3] = ["numpy", "safetensors", "iree-base-runtime"];
/// Processes of each side, and repetitions in each; the first of those measures fresh memory.
const ROUNDS: usize = 5;
const REPETITIONS: usize = 4;

/// What is timed beside what.
struct Case {
    script: &'static str,
    peer: &'static str,
    op: &'static str,
    /// More words for ours.
    more: &'static [&'static str],
    /// How much faster ours should be.
    goal: Option<f64>,
}

const IREE: Case =
    Case { script: "iree_load.py", peer: "IREE local-task, mapped", op: "gather", more: &[], goal: None };
const CASES: [Case; 3] = [
    IREE,
    // IREE's load uses mapped tensors where they are, if they are aligned for it.
    Case { op: "load", more: &["--import"], ..IREE },
    Case {
        script: "safetensors_load.py",
        peer: "safetensors load_file",
        op: "load",
        more: &[],
        goal: Some(5.0),
    },
];

/// All rows, those that were skipped among them.
pub(super) fn rows(workspace: &Workspace, bench: &Bench, short: bool) -> Vec<Value> {
    let files = match files(&bench.folder.join("data")) {
        Ok(files) => files,
        Err(why) => return vec![skipped("peers: all", &why)],
    };
    let python = environment(&workspace.target.join("peers"));
    let mut rows = vec![];
    for Case { script, peer, op, more, goal } in CASES {
        for file in &files {
            let what = file.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("peers: {}, {what}", [&[op], more].concat().join(" "));
            let row = python.as_ref().map_err(Clone::clone).and_then(|python| {
                let script = workspace.root.join("tests/bench/peers").join(script);
                case(bench, [python, &script, file], op, more, if short { 1 } else { ROUNDS })
            });
            rows.push(match row {
                Ok(sides) => row_of(&name, peer, goal, sides),
                Err(why) => skipped(&name, &format!("{peer}: {why}")),
            });
        }
    }
    rows
}

fn skipped(name: &str, why: &str) -> Value {
    json!({"name": name, "skipped": why})
}

/// The archives that `load` has made.
fn files(data: &Path) -> Result<Vec<PathBuf>, String> {
    let found = fs::read_dir(data).map_err(|error| format!("{}: {error}", data.display()))?;
    let mut files: Vec<PathBuf> = found.flatten().map(|file| file.path()).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name == "small.safetensors" || name == "large-512.safetensors"
    });
    files.sort();
    if files.is_empty() {
        Err("there are no archives: run `cargo xtask bench load` first".into())
    } else {
        Ok(files)
    }
}

/// The interpreter of an environment with the packages, made once.
fn environment(folder: &Path) -> Result<PathBuf, String> {
    let python = folder.join("python/bin/python");
    let run = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let words = String::from_utf8_lossy(&output.stderr);
            Err(words.trim().lines().last().unwrap_or("no word why").to_owned())
        }
        Err(error) => Err(error.to_string()),
    };
    let has_all = |python: &Path| {
        run(Command::new(python).args(["-c", "import numpy, safetensors, iree.runtime"])).is_ok()
    };
    if has_all(&python) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(folder.join("python")))
        .map_err(|why| format!("no virtual environment: {why}"))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES))
        .map_err(|why| format!("pip: {why}"))?;
    if has_all(&python) { Ok(python) } else { Err("the packages cannot be imported".into()) }
}

/// Seconds of the repetitions after the first, ours and the peer's, in turn.
fn case(
    bench: &Bench,
    [python, script, file]: [&Path; 3],
    op: &str,
    more: &[&str],
    rounds: usize,
) -> Result<[Vec<f64>; 2], String> {
    let mut sides = [vec![], vec![]];
    for _ in 0..rounds {
        let mut ours = Command::new(&bench.command);
        ours.arg("--plugin-path").arg(&bench.plugins).args(["bench", "load"]).arg(file);
        ours.args(["--op", op, "--device", "host:0", "--json", "--reps"])
            .arg(REPETITIONS.to_string())
            .args(more);
        let mut theirs = Command::new(python);
        theirs.arg(script).arg(file).arg(op).arg(REPETITIONS.to_string());
        for (side, command) in sides.iter_mut().zip([&mut ours, &mut theirs]) {
            side.extend(seconds(command).map_err(|fail| fail.to_string())?);
        }
    }
    Ok(sides)
}

fn seconds(command: &mut Command) -> Result<Vec<f64>, Fail> {
    let output = command.output().during(command.get_program().to_string_lossy())?;
    let words = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Fail::new(words.trim().lines().last().unwrap_or("it failed").to_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let value: Value =
        serde_json::from_str(text.trim().lines().last().unwrap_or_default()).during("its line")?;
    let op = value["op"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(op.iter().skip(1).filter_map(Value::as_f64).collect())
}

fn row_of(name: &str, peer: &str, goal: Option<f64>, sides: [Vec<f64>; 2]) -> Value {
    let [ours, theirs] = sides.map(|mut side| {
        side.sort_by(f64::total_cmp);
        side.iter_mut().for_each(|seconds| *seconds *= 1e3);
        side
    });
    let quartile = |side: &[f64]| side.get(side.len() / 4).copied().unwrap_or(f64::NAN);
    let spread = |side: &[f64]| [side.first(), side.get(side.len() / 2), side.last()].map(|at| at.copied());
    let ratio = quartile(&theirs) / quartile(&ours);
    json!({
        "name": name, "value": quartile(&ours), "unit": "ms", "baseline": peer, "baseline_value": quartile(&theirs),
        "ratio": ratio, "goal": goal, "goal_of": goal.map(|_| "ratio"), "met": goal.map(|goal| ratio >= goal),
        "spread": spread(&ours), "baseline_spread": spread(&theirs),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_peers_compares_lower_quartiles() {
        let row = row_of("peers: load, x", "y", Some(5.0), [vec![0.004, 0.002, 0.001, 0.003], vec![0.02; 4]]);
        assert_eq!((row["value"].as_f64(), row["ratio"].as_f64()), (Some(2.0), Some(10.0)));
        assert_eq!(row["met"], true);
        assert!(files(Path::new("/nowhere")).is_err_and(|why| why.contains("/nowhere")));
    }
}
