//! A plugin in a process of its own, for so long at most.

use crate::out::Failure;
use serde_json::Value;
use std::{
    env,
    io::Read,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};
use wharf::{Error, ErrorKind};

/// Most bytes that are kept of what a child writes.
const BYTES_MAX: u64 = 1 << 20;

/// How a child ended.
pub(super) enum Ended {
    /// With a report.
    Told(Value),
    /// Without one.
    Silent(String),
    /// Not in time; it was ended.
    Late,
}

/// Tries a plugin in a child.
pub(super) fn start(plugin: &Path, limit: Duration) -> Result<Ended, Failure> {
    let failed = |what: &str, error: &std::io::Error| {
        Failure::Error(Error::new(ErrorKind::Io, format!("a process to try plugins in: {what}: {error}")))
    };
    let program = env::current_exe().map_err(|error| failed("this program", &error))?;
    let mut child = Command::new(program)
        .args(["--json", "doctor", "--probe"])
        .arg(plugin)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed("cannot be started", &error))?;
    // Read beside it, or a child that writes much would wait for us.
    let output = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut bytes = vec![];
        output.map(|output| output.take(BYTES_MAX).read_to_end(&mut bytes));
        bytes
    });
    let Some(status) = ended(&mut child, limit).map_err(|error| failed("cannot be watched", &error))? else {
        // Whatever it left running has its own process group's fate; the pipe may stay open with it.
        let _ = child.kill();
        let _ = child.wait();
        return Ok(Ended::Late);
    };
    let bytes = reader.join().unwrap_or_default();
    Ok(report(&bytes).map_or_else(|| Ended::Silent(said(status)), Ended::Told))
}

fn ended(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let until = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The report is the last line that is one: a plugin may have written before it.
fn report(bytes: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(bytes);
    let value = |line: &str| serde_json::from_str::<Value>(&line[line.find("{\"")?..]).ok();
    text.lines().rev().filter_map(value).find(|value| value["state"].is_string())
}

#[cfg(unix)]
fn said(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    let name = |signal| match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        8 => " (arithmetic)",
        9 => " (killed)",
        11 => " (segmentation fault)",
        _ => "",
    };
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("ended its process by signal {signal}{}", name(signal)),
        (_, Some(code)) => format!("ended its process with exit code {code}"),
        _ => "ended its process".into(),
    }
}

#[cfg(not(unix))]
fn said(status: ExitStatus) -> String {
    format!("ended its process: {status}")
}
