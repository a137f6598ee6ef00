//! What is done to this repository, one file a command: build, run, test, check.
//!
//! What there is to build is read from `cargo metadata`, never listed here; the rules that `tidy` holds are tables in
//! `tidy/`.
#![deny(unsafe_code)]

mod abi;
mod bench;
mod ci;
mod conformance;
mod debian;
mod demo;
mod dist;
mod elf;
mod embedded;
mod fail;
mod freestanding;
mod fuzz;
mod models;
mod new_plugin;
mod opencl;
mod plugins;
mod sanitize;
mod shell;
mod test;
mod tidy;
mod words;
mod workspace;

use fail::{Fail, Outcome};
use std::process::ExitCode;

/// A command: its name, what `--help` says in one line and in full, and what it does with its arguments.
struct Command {
    name: &'static str,
    line: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Outcome,
}

const COMMANDS: &[Command] = &[
    Command { name: "plugins", line: plugins::LINE, help: plugins::HELP, run: plugins::main },
    Command { name: "demo", line: demo::LINE, help: demo::HELP, run: demo::main },
    Command { name: "test", line: test::LINE, help: test::HELP, run: test::main },
    Command { name: "conformance", line: conformance::LINE, help: conformance::HELP, run: conformance::main },
    Command { name: "abi", line: abi::LINE, help: abi::HELP, run: abi::main },
    Command { name: "new-plugin", line: new_plugin::LINE, help: new_plugin::HELP, run: new_plugin::main },
    Command { name: "dist", line: dist::LINE, help: dist::HELP, run: dist::main },
    Command { name: "bench", line: bench::LINE, help: bench::HELP, run: bench::main },
    Command { name: "fuzz", line: fuzz::LINE, help: fuzz::HELP, run: fuzz::main },
    Command { name: "models", line: models::LINE, help: models::HELP, run: models::main },
    Command { name: "sanitize", line: sanitize::LINE, help: sanitize::HELP, run: sanitize::main },
    Command { name: "tidy", line: tidy::LINE, help: tidy::HELP, run: tidy::main },
    Command { name: "ci", line: ci::LINE, help: ci::HELP, run: ci::main },
    Command {
        name: "freestanding",
        line: freestanding::LINE,
        help: freestanding::HELP,
        run: freestanding::main,
    },
    Command { name: "embedded", line: embedded::LINE, help: embedded::HELP, run: embedded::main },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => {
            if !fail.message.is_empty() {
                eprintln!("xtask: {}", fail.message);
            }
            ExitCode::from(fail.code)
        }
    }
}

fn dispatch(args: &[String]) -> Outcome {
    let Some((name, rest)) = args.split_first() else { return Err(Fail::usage(overview())) };
    if ["help", "--help", "-h"].contains(&name.as_str()) {
        println!("{}", overview());
        return Ok(());
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let near = words::nearest(name, COMMANDS.iter().map(|command| command.name));
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return Err(Fail::usage(format!("no command `{name}`{hint}\n\n{}", overview())));
    };
    // What follows `--` belongs to the program that the command starts.
    if rest.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--help" || arg == "-h") {
        println!("cargo xtask {}\n\n{}", command.name, command.help);
        return Ok(());
    }
    (command.run)(rest)
}

fn overview() -> String {
    let mut text = String::from("cargo xtask COMMAND [ARGUMENTS]; each command takes --help\n");
    for command in COMMANDS {
        text.push_str(&format!("\n  {:13}{}", command.name, command.line));
    }
    text
}
