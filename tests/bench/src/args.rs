//! What every program takes, and how it ends: `[--json FILE] [--short] [--only TEXT] [--mib N]`.

use crate::row::{self, Row};
use std::{path::PathBuf, process::ExitCode};

/// The arguments of a program.
#[derive(Clone, Debug, Default)]
pub struct Args {
    /// Where the rows go as JSON.
    pub json: Option<PathBuf>,
    /// Fewer and shorter rounds over less: to see that it runs.
    pub short: bool,
    /// Only what has this in its name.
    pub only: String,
    /// MiB of the large archive.
    pub mib: Option<u64>,
}

impl Args {
    fn read(mut rest: impl Iterator<Item = String>) -> Result<Args, String> {
        let mut args = Args::default();
        while let Some(arg) = rest.next() {
            let mut value = || rest.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--json" => args.json = Some(value()?.into()),
                "--short" => args.short = true,
                "--only" => args.only = value()?,
                "--mib" => {
                    let text = value()?;
                    args.mib = Some(text.parse().map_err(|_| format!("`{text}` is no number of MiB"))?);
                }
                other => return Err(format!("unknown argument `{other}`")),
            }
        }
        Ok(args)
    }

    /// Whether a case is wanted.
    pub fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }

    /// The longer or the shorter of two.
    pub fn pick<T>(&self, long: T, short: T) -> T {
        if self.short { short } else { long }
    }
}

/// Why a benchmark cannot go on.
pub type Fail = Box<dyn std::error::Error>;

/// Runs a benchmark: reads the arguments, prints each row as it comes, writes all of them.
pub fn main(run: impl FnOnce(&Args, &mut dyn FnMut(Row)) -> Result<(), Fail>) -> ExitCode {
    let args = match Args::read(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    println!("{}", row::HEAD);
    let mut rows = Vec::new();
    let ended = run(&args, &mut |row| {
        if args.wants(&row.name) {
            println!("{row}");
            rows.push(row);
        }
    });
    let written = match &args.json {
        Some(file) => {
            std::fs::write(file, row::json(&rows)).map_err(|e| format!("{}: {e}", file.display()).into())
        }
        None => Ok(()),
    };
    match ended.and(written) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
