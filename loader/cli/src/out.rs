//! What the command says: text or one JSON value on stdout, errors and notes on stderr, exit codes.

mod table;

pub(crate) use table::{Table, push};

use crate::cli::{Color, Global};
use serde_json::{Value, json};
use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};
use table::row_of;
use wharf::{Error, ErrorKind, near};

/// The version of every JSON value.
pub(crate) const SCHEMA: u32 = 1;

/// Bytes that are written to stdout at once: a list of thousands of tensors in few calls.
const BUFFER: usize = 64 << 10;

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
            stdout: io::BufWriter::with_capacity(BUFFER, io::stdout()),
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
        self.stdout.write_all(line.as_bytes()).and_then(|()| self.stdout.write_all(b"\n")).map_err(closed)
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
        let mut table = Table::new(heading);
        rows.iter().flatten().for_each(|cell| table.cell(|text| text.push_str(cell)));
        self.rows(&table, right)
    }

    /// The same of a table that was filled cell by cell.
    pub(crate) fn rows(&mut self, table: &Table, right: &[usize]) -> Result<(), Failure> {
        let widths = table.widths();
        let mut line = String::new();
        for (number, row) in table.rows().enumerate() {
            line.clear();
            row_of(&mut line, row, &widths, right);
            if number == 0 && self.bold {
                line = format!("\x1b[1m{line}\x1b[0m");
            }
            self.line(&line)?;
        }
        Ok(())
    }

    /// Bytes as people read them, or exact.
    pub(crate) fn size(&self, bytes: u64) -> String {
        let mut text = String::new();
        self.size_into(&mut text, bytes);
        text
    }

    /// The same at the end of a text.
    pub(crate) fn size_into(&self, text: &mut String, bytes: u64) {
        if self.exact { push(text, bytes) } else { human_into(text, bytes) }
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
    let mut text = String::new();
    human_into(&mut text, bytes);
    text
}

fn human_into(text: &mut String, bytes: u64) {
    const UNITS: [&str; 7] = [" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"];
    let unit = bytes.checked_ilog2().unwrap_or(0) / 10;
    let (one, bytes) = (1_u128 << (10 * unit), u128::from(bytes));
    if unit == 0 {
        push(text, bytes as u64);
    } else {
        // To the nearest tenth, and from the middle to the even one.
        let (tenths, rest) = (bytes * 10 / one, bytes * 10 % one);
        let up = rest * 2 > one || (rest * 2 == one && tenths % 2 == 1);
        let tenths = tenths as u64 + u64::from(up);
        push(text, tenths / 10);
        text.push('.');
        push(text, tenths % 10);
    }
    text.push_str(UNITS[unit as usize]);
}

/// A name without anything that a terminal would obey.
pub(crate) fn safe(name: &str) -> String {
    near::escaped(name)
}

/// The same at the end of a text.
pub(crate) fn safe_into(text: &mut String, name: &str) {
    if near::is_plain(name) { text.push_str(name) } else { text.push_str(&safe(name)) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_rounded_by_powers_of_1024() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1280, "1.2 KiB"),
            (1 << 20, "1.0 MiB"),
            ((1 << 20) - 1, "1024.0 KiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(super::human(bytes), text);
        }
    }
}
