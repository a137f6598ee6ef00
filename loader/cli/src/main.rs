//! The command `wharf`: result on stdout, all else on stderr; with `--json` the same facts as one JSON value, also for a
//! failure; exit codes by kind of error.
#![deny(unsafe_code)]

mod bench;
mod cli;
mod conformance;
mod convert;
mod create;
mod demo;
mod devices;
mod diff;
mod doctor;
mod filter;
mod hash;
mod info;
mod list;
mod literal;
mod load;
mod man;
mod meta;
mod out;
mod plugins;
mod progress;
mod replay;
mod select;
mod show;
mod typed;
mod values;
mod verify;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use out::{Failure, Out};
use std::process::ExitCode;

fn main() -> ExitCode {
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return out::usage(&error, wants_json),
    };
    let mut out = Out::new(&cli.global);
    let done = run(&cli, &mut out).and_then(|()| out.finish());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => out.fail(&failure),
    }
}

fn run(cli: &Cli, out: &mut Out) -> Result<(), Failure> {
    match &cli.command {
        Command::Devices(args) => devices::run(&cli.global, args, out),
        Command::Plugins { look } => plugins::run(&cli.global, look.as_ref(), out),
        Command::List(args) => list::run(&cli.global, args, out),
        Command::Info(args) => info::run(args, out),
        Command::Meta(args) => meta::run(&cli.global, args, out),
        Command::Show(args) => show::run(args, out),
        Command::Verify(args) => verify::run(&cli.global, args, out),
        Command::Hash(args) => hash::run(&cli.global, args, out),
        Command::Diff(args) => diff::run(&cli.global, args, out),
        Command::Convert(args) => convert::run(&cli.global, args, out),
        Command::Create(args) => create::run(&cli.global, args, out),
        Command::Doctor(args) => doctor::run(&cli.global, args, out),
        Command::Conformance(args) => conformance::run(args, out),
        Command::Man { verb, dir } => man::run(verb.as_deref(), dir.as_deref(), out),
        Command::Load(args) => load::run(&cli.global, args, out),
        Command::Bench { bench } => bench::run(&cli.global, bench, out),
        Command::Replay(args) => replay::run(&cli.global, args, out),
        Command::Demo(args) => demo::run(&cli.global, args, out),
        Command::Completions { shell } => {
            let mut script = vec![];
            clap_complete::generate(*shell, &mut Cli::command(), "wharf", &mut script);
            out.text(&String::from_utf8_lossy(&script))
        }
    }
}
