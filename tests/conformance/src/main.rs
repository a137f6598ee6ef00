//! `wharf-conformance`: runs the suite on a plugin file or on a backend of this tree.
#![deny(unsafe_code)]

use std::process::ExitCode;
use wharf_conformance::{Mode, Options, Target, cases, run};

const USAGE: &str = "usage: wharf-conformance [--list] [--filter TEXT] [--junit FILE] [--mode MODE]... TARGET
TARGET: a plugin file, or one of host, null, dma
MODE: pump, no-pump, depth-1, no-native-wait, layers, reordered; all of them if none is given";

#[derive(Default)]
struct Args {
    list: bool,
    filter: Option<String>,
    junit: Option<String>,
    modes: Vec<Mode>,
    target: Option<String>,
}

fn parse(mut given: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args::default();
    while let Some(arg) = given.next() {
        let mut value = |name: &str| given.next().ok_or(format!("{name} needs a value"));
        match arg.as_str() {
            "--list" => args.list = true,
            "--filter" => args.filter = Some(value("--filter")?),
            "--junit" => args.junit = Some(value("--junit")?),
            "--mode" => {
                let name = value("--mode")?;
                args.modes.push(Mode::from_name(&name).ok_or(format!("no mode `{name}`"))?);
            }
            flag if flag.starts_with('-') => return Err(format!("no option `{flag}`")),
            _ if args.target.is_some() => return Err("more than one target".into()),
            _ => args.target = Some(arg),
        }
    }
    Ok(args)
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) if args.list || args.target.is_some() => args,
        Ok(_) => return usage("a target is needed"),
        Err(why) => return usage(&why),
    };
    if args.list {
        for case in cases::all() {
            println!("{}: {}", case.name, case.rule);
        }
        return ExitCode::SUCCESS;
    }
    let modes = if args.modes.is_empty() { Mode::ALL.to_vec() } else { args.modes };
    let options = Options { filter: args.filter.as_deref(), modes: &modes, tell: |line| println!("{line}") };
    let report = match run(&Target::from_name(&args.target.unwrap_or_default()), &options) {
        Ok(report) => report,
        Err(why) => {
            eprintln!("wharf-conformance: {why}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}", report.summary());
    if let Some(file) = args.junit
        && let Err(error) = std::fs::write(&file, report.junit())
    {
        eprintln!("wharf-conformance: {file}: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::from(u8::from(report.failed() > 0))
}

fn usage(why: &str) -> ExitCode {
    eprintln!("wharf-conformance: {why}\n{USAGE}");
    ExitCode::from(2)
}
