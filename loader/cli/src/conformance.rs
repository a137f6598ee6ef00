//! `wharf conformance`: the suite for backends on a plugin, with kernel images inside this program.

use crate::{
    cli::ConformanceArgs,
    out::{Failure, Out, safe},
};
use serde_json::{Value, json};
use wharf::{Error, ErrorKind};
use wharf_conformance::{Line, Mode, Options, Report, Result as Ended, Target, cases, run as run_suite};

pub(crate) fn run(args: &ConformanceArgs, out: &mut Out) -> Result<(), Failure> {
    if args.list {
        return list(out);
    }
    let usage = |message: &str| Failure::Error(Error::new(ErrorKind::Usage, message.to_owned()));
    let file = args.file.as_deref().ok_or_else(|| usage("a plugin file is needed"))?;
    let modes = args.modes()?;
    let name = file.to_str().ok_or_else(|| usage("the file's name is no text"))?;
    // A bare name would be one of the backends of this tree; a plugin is a file.
    let name = if name.contains('/') { name.to_owned() } else { format!("./{name}") };
    let tell = if out.json() { |_: &Line| () } else { print };
    let options = Options { filter: args.filter.as_deref(), modes: &modes, tell };
    let report = run_suite(&Target::from_name(&name), &options)
        .map_err(|why| Failure::Error(Error::new(ErrorKind::Plugin, format!("{}: {why}", safe(&name)))))?;
    if let Some(junit) = &args.junit {
        let failed = |error| {
            Error::new(
                ErrorKind::Io,
                format!("{}: cannot be written: {error}", safe(&junit.display().to_string())),
            )
        };
        std::fs::write(junit, report.junit()).map_err(failed)?;
    }
    if out.json() {
        out.value(value(&report))?;
    } else {
        out.line(&report.summary().to_string())?;
    }
    if report.failed() == 0 { Ok(()) } else { Err(Failure::Wanting) }
}

fn list(out: &mut Out) -> Result<(), Failure> {
    if out.json() {
        let all: Vec<Value> =
            cases::all().map(|case| json!({"case": case.name, "rule": case.rule})).collect();
        return out.value(json!({"cases": all}));
    }
    cases::all().try_for_each(|case| out.line(&format!("{}: {}", case.name, case.rule)))
}

/// A line as it comes: a suite takes a while. Whoever closed the pipe has seen enough.
fn print(line: &Line) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{}", safe(&line.to_string()));
}

fn value(report: &Report) -> Value {
    let line = |line: &Line| {
        let (state, reason) = match &line.result {
            Ended::Passed => ("passed", None),
            Ended::Failed(why) => ("failed", Some(why)),
            Ended::Known(why, _) => ("known", Some(why)),
            Ended::Skipped(why) => ("skipped", Some(why)),
        };
        let ms = line.took.as_secs_f64() * 1e3;
        json!({"case": line.case, "mode": line.mode, "state": state, "reason": reason, "ms": ms})
    };
    json!({
        "target": report.target, "passed": report.passed(), "failed": report.failed(), "skipped": report.skipped(),
        "cases": report.lines.iter().map(line).collect::<Vec<_>>(),
    })
}

impl ConformanceArgs {
    fn modes(&self) -> Result<Vec<Mode>, Failure> {
        if self.mode.is_empty() {
            return Ok(Mode::ALL.to_vec());
        }
        let named = |name: &String| {
            let known: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
            let message = format!("no mode `{name}`: {}", known.join(", "));
            Mode::from_name(name).ok_or_else(|| Failure::Error(Error::new(ErrorKind::Usage, message)))
        };
        self.mode.iter().map(named).collect()
    }
}
