//! What the command says: text or one JSON value on stdout, errors and notes on stderr, exit codes.

use crate::cli::{Color, Global};
use serde_json::{Value, json};
use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};
use wharf::{Error, ErrorKind, near};

/// The version of every JSON value.
pub(crate) const SCHEMA: u32 = 1;

/// What the command exits with when it looked at something and found it wanting.
const WANTING: u8 = 1;

/// Why the command did not do what it was asked.
pub(crate) enum Failure {
    /// An error of the library or of the command.
    Error(Error),
    /// Looked at and found wanting, as the result says.
    Wanting,
    /// Stdout is closed: whoever reads has seen enough.
    Closed,
    /// Stdout cannot be written.
    Stdout(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

/// Where results go.
pub(crate) struct Out {
    stdout: io::BufWriter<io::Stdout>,
    json: bool,
    bold: bool,
    exact: bool,
}

impl Out {
    pub(crate) fn new(global: &Global) -> Self {
        let on_terminal =
            io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let bold = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => on_terminal,
        };
        Out {
            stdout: io::BufWriter::new(io::stdout()),
            json: global.json,
            bold: bold && !global.json,
            exact: global.bytes,
        }
    }

    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Text as it is.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.stdout.write_all(text.as_bytes()).map_err(closed)
    }

    /// A line.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.stdout, "{line}").map_err(closed)
    }

    /// The one JSON value of the command; `schema_version` is added.
    pub(crate) fn value(&mut self, mut value: Value) -> Result<(), Failure> {
        value["schema_version"] = json!(SCHEMA);
        serde_json::to_writer(&mut self.stdout, &value).map_err(|error| closed(error.into()))?;
        self.line("")
    }

    /// Rows under a heading, columns as wide as they must be; the last is not padded. `right`: columns of numbers.
    pub(crate) fn table(
        &mut self,
        heading: &[&str],
        rows: &[Vec<String>],
        right: &[usize],
    ) -> Result<(), Failure> {
        let mut widths: Vec<usize> = heading.iter().map(|title| title.len()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let titles: Vec<String> = heading.iter().map(|title| (*title).to_owned()).collect();
        let line = row_of(&titles, &widths, right);
        self.line(&if self.bold { format!("\x1b[1m{line}\x1b[0m") } else { line })?;
        rows.iter().try_for_each(|row| self.line(&row_of(row, &widths, right)))
    }

    /// Bytes as people read them, or exact.
    pub(crate) fn size(&self, bytes: u64) -> String {
        if self.exact { bytes.to_string() } else { human(bytes) }
    }

    /// Everything is written; now it must have arrived.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.stdout.flush().map_err(closed)
    }

    /// Says why, and answers the exit code.
    pub(crate) fn fail(&mut self, failure: &Failure) -> ExitCode {
        let error = match failure {
            Failure::Closed => return ExitCode::SUCCESS,
            Failure::Wanting => {
                return match self.finish() {
                    Err(failure @ Failure::Stdout(_)) => self.fail(&failure),
                    _ => ExitCode::from(WANTING),
                };
            }
            Failure::Stdout(error) => {
                note(&format!("error: stdout cannot be written: {error}"));
                return ExitCode::from(ErrorKind::Io.exit_code());
            }
            Failure::Error(error) => error,
        };
        if self.json {
            let file = error.file().map(|file| file.display().to_string());
            let body = json!({"kind": error.kind().name(), "message": error.to_string(), "file": file, "next": error.advice()});
            let _ = self.value(json!({"error": body})).and_then(|()| self.finish());
        } else {
            let _ = self.finish();
            note(&format!("error: {error}"));
            if let Some(advice) = error.advice() {
                note(&format!("  next: {advice}"));
            }
        }
        ExitCode::from(error.kind().exit_code())
    }
}

fn closed(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe { Failure::Closed } else { Failure::Stdout(error) }
}

fn row_of(cells: &[String], widths: &[usize], right: &[usize]) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
        match (right.contains(&column), column + 1 == cells.len()) {
            (true, _) => line.extend([pad.as_str(), cell]),
            (false, true) => line.push_str(cell),
            (false, false) => line.extend([cell.as_str(), &pad]),
        }
        if column + 1 < cells.len() {
            line.push_str("  ");
        }
    }
    line
}

/// A line on stderr; a closed stderr is nobody's concern.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A command line that cannot be understood (or a call for help, which is none).
pub(crate) fn usage(error: &clap::Error, as_json: bool) -> ExitCode {
    if as_json && error.use_stderr() {
        let text = error.to_string();
        let message = text.trim().trim_start_matches("error: ");
        let body =
            json!({"schema_version": SCHEMA, "error": {"kind": "usage", "message": message, "file": null}});
        let _ = writeln!(io::stdout(), "{body}");
    } else {
        let _ = error.print();
    }
    ExitCode::from(if error.use_stderr() { ErrorKind::Usage.exit_code() } else { 0 })
}

/// Bytes with a unit, three digits.
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A name without anything that a terminal would obey.
pub(crate) fn safe(name: &str) -> String {
    near::escaped(name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_rounded_by_powers_of_1024() {
        for (bytes, text) in
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (u64::MAX, "16.0 EiB")]
        {
            assert_eq!(super::human(bytes), text);
        }
    }
}
