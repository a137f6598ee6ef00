//! Opening a plugin that is in the page cache, each time in a fresh process: by its C entry, by abi_stable's root with
//! the comparison of types, and by the loader as a whole; against opening the library alone.
//!
//! # Safety
//! The file is a plugin of this tree, which stays loaded.
#![allow(unsafe_code)]

use std::{
    env,
    ffi::c_void,
    process::{Command, ExitCode},
    time::Duration,
};
use wharf_abi::{
    handshake::{ENTRY_SYMBOL, ROOT_SYMBOL, check_root},
    negotiate,
    tables::EntryFn,
};
use wharf_bench::{
    args::{self, Args, Fail},
    devices,
    row::{Goal, Row},
    sys,
    time::{one_by_one, timed},
};

/// Names the way in that a child is to time.
const CHILD: &str = "WHARF_BENCH_OPEN";

fn main() -> ExitCode {
    let Ok(way) = env::var(CHILD) else { return args::main(run) };
    match child(&way) {
        Ok(took) => {
            println!("{}", took.as_nanos());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{way}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
    for (name, way, goal) in [
        ("open a plugin, C entry", "c", Goal::Most(100.0)),
        ("open a plugin, abi_stable with both checks", "root", Goal::Most(500.0)),
        ("open a plugin, the loader in all", "loader", Goal::None),
    ] {
        started(way)?;
        let time = |way| started(way).unwrap_or_else(|why| panic!("it went well before: {why}"));
        let times = one_by_one(args.pick(41, 3), || time(way), || time("library"));
        let (value, baseline_value) = (times.0.per(1e3).into(), times.1.per(1e3).into());
        give(Row {
            name: name.into(),
            value,
            unit: "us",
            baseline: "opening the library alone",
            baseline_value,
            goal,
        });
    }
    Ok(())
}

/// A child's own time for one way in.
fn started(way: &str) -> Result<Duration, Fail> {
    let output = Command::new(env::current_exe()?).env(CHILD, way).output()?;
    let said = String::from_utf8(output.stdout)?;
    let nanoseconds = said.trim().parse();
    Ok(Duration::from_nanos(nanoseconds.map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?))
}

fn child(way: &str) -> Result<Duration, Fail> {
    let file = devices::plugin_file()?;
    let (took, ()) = match way {
        "library" => timed(|| sys::open(&file).map(drop))?,
        "c" => timed(|| {
            let symbol = sys::open(&file)?.symbol(ENTRY_SYMBOL)?;
            // SAFETY: the symbol of this name is of this type in every plugin.
            let entry = unsafe { std::mem::transmute::<*mut c_void, EntryFn>(symbol) };
            negotiated(entry)
        })?,
        "root" => timed(|| {
            let header = sys::open(&file)?.symbol(ROOT_SYMBOL)?;
            // SAFETY: the root symbol of a plugin that stays loaded.
            let entry = unsafe { check_root(header) };
            negotiated(entry.map_err(|refusal| refusal.to_string())?)
        })?,
        "loader" => timed(|| devices::plugin().map(drop))?,
        other => return Err(format!("no way in `{other}`").into()),
    };
    Ok(took)
}

fn negotiated(entry: EntryFn) -> Result<(), Fail> {
    // SAFETY: the entry of a plugin that stays loaded.
    let opened = unsafe { negotiate(entry) }.map_err(|refusal| refusal.to_string())?;
    if opened.id == "host" { Ok(()) } else { Err(format!("it is `{}`", opened.id).into()) }
}
