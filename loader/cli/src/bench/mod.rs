//! `wharf bench`: how long this machine takes for what the library does, so that other programs can be timed beside it.

mod alloc;
mod copy;
mod launch;
mod load;

use crate::{
    cli::{Bench, Global},
    out::{Failure, Out, human},
};
use serde_json::{Value, json};
use std::time::Instant;
use wharf::{Device, Error};

pub(crate) fn run(global: &Global, bench: &Bench, out: &mut Out) -> Result<(), Failure> {
    match bench {
        Bench::Load(args) => load::run(global, args, out),
        Bench::Copy(args) => copy::run(global, args, out),
        Bench::Alloc(args) => alloc::run(global, args, out),
        Bench::Launch(args) => launch::run(global, args, out),
    }
}

/// What came out.
struct Report<'a> {
    device: &'a Device,
    /// What one of `n` is called.
    unit: &'static str,
    n: u64,
    /// Bytes that a repetition moved; 0 where none are what it is about.
    bytes: u64,
    /// Seconds to open archives, where there are some.
    parse: Option<f64>,
    /// Seconds of each repetition.
    op: Vec<f64>,
}

/// Seconds of each repetition.
fn repeat(reps: u32, mut once: impl FnMut() -> Result<(), Error>) -> Result<Vec<f64>, Error> {
    let mut op = vec![];
    for _ in 0..reps {
        let begin = Instant::now();
        once()?;
        op.push(begin.elapsed().as_secs_f64());
    }
    Ok(op)
}

impl Report<'_> {
    fn print(self, out: &mut Out) -> Result<(), Failure> {
        let Report { device, unit, n, bytes, parse, mut op } = self;
        if out.json() {
            let mut value = json!({"device": device.id(), "n": n, "bytes": bytes, "op": op});
            if let Some(parse) = parse {
                value["parse"] = Value::from(parse);
            }
            return out.value(value);
        }
        if let Some(parse) = parse {
            out.line(&format!("opened in {}", time(parse)))?;
        }
        op.sort_by(f64::total_cmp);
        let [least, middle, most] = [0, op.len() / 2, op.len() - 1].map(|at| op[at]);
        let rate = if bytes > 0 {
            format!(", {}/s", human((bytes as f64 / middle.max(1e-9)) as u64))
        } else {
            String::new()
        };
        let each = time(middle / n.max(1) as f64);
        let what = format!("{n} {unit} on {}", device.id());
        out.line(&format!(
            "{what}: {} least, {} median, {} most of {} ({each} each{rate})",
            time(least),
            time(middle),
            time(most),
            op.len()
        ))
    }
}

/// Seconds with a unit.
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.2} us", s * 1e6),
        s => format!("{:.1} ns", s * 1e9),
    }
}
