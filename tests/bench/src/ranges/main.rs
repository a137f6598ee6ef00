//! The interval map against LLVM's structure rebuilt in Rust ([`llvm`]), in one run, round by round.
//!
//! `ranges [--json FILE] [--short]` prints a table, and writes the rows as JSON. Every figure is nanoseconds or bytes;
//! the ratio says how many times better ours is, the goal what it should be.

mod bytes;
mod cases;
mod llvm;
mod plan;
mod row;
mod time;

use row::Row;
use std::{path::PathBuf, process::ExitCode, sync::Mutex};
use wharf_core::{
    env::Lock,
    ranges::{Indexed, Range, Ranges, Tree},
};

/// A set of allocations; lookups answer where the allocation ends, or 0.
trait Map: Sync {
    fn new() -> Self;
    fn insert(&self, range: Range);
    fn remove(&self, range: Range);
    fn find(&self, address: u64) -> u64;
    fn find_base(&self, address: u64) -> u64;
}

/// The lock of writers.
struct StdLock(Mutex<()>);

#[allow(unsafe_code)]
// SAFETY: a std mutex lets one closure run at a time and never nests.
unsafe impl Lock for StdLock {
    const NEW: Self = StdLock(Mutex::new(()));
    #[inline]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _inside = self.0.lock().expect("nobody panics inside");
        f()
    }
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let _inside = self.0.try_lock().ok()?;
        Some(f())
    }
}

impl Map for Tree<StdLock> {
    fn new() -> Self {
        Tree::new()
    }
    fn insert(&self, range: Range) {
        let entered = Tree::insert(self, range);
        assert!(entered.is_ok(), "planned allocations do not overlap");
    }
    fn remove(&self, range: Range) {
        assert!(Tree::remove(self, range), "it is there");
    }
    #[inline]
    fn find(&self, address: u64) -> u64 {
        Tree::find(self, address).map_or(0, |range| range.end)
    }
    fn find_base(&self, address: u64) -> u64 {
        Map::find(self, address)
    }
}

impl Map for Indexed<StdLock> {
    fn new() -> Self {
        Ranges::NEW
    }
    fn insert(&self, range: Range) {
        let entered = Ranges::insert(self, range);
        assert!(entered.is_ok(), "planned allocations do not overlap");
    }
    fn remove(&self, range: Range) {
        assert!(Ranges::remove(self, range), "it is there");
    }
    fn find(&self, address: u64) -> u64 {
        Ranges::find(self, address).map_or(0, |range| range.end)
    }
    #[inline]
    fn find_base(&self, address: u64) -> u64 {
        Indexed::find_base(self, address).map_or(0, |range| range.end)
    }
}

struct Args {
    json: Option<PathBuf>,
    /// Fewer and shorter rounds, and no million.
    short: bool,
    /// Only the cases whose name holds this.
    only: String,
}

fn args() -> Result<Args, String> {
    let mut args = Args { json: None, short: false, only: String::new() };
    let mut rest = std::env::args().skip(1);
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--json" => args.json = Some(rest.next().ok_or("--json wants a file")?.into()),
            "--short" => args.short = true,
            "--only" => args.only = rest.next().ok_or("--only wants a part of a name")?,
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(args)
}

fn main() -> ExitCode {
    let args = match args() {
        Ok(args) => args,
        Err(why) => {
            eprintln!("ranges: {why}");
            return ExitCode::from(2);
        }
    };
    let sizes: &[usize] = if args.short { &[10, 1_000, 100_000] } else { &[10, 1_000, 100_000, 1_000_000] };
    let mut rows = Vec::new();
    println!("{}", row::HEAD);
    for live in sizes {
        cases::all(*live, &args, &mut |row: Row| {
            println!("{row}");
            rows.push(row);
        });
    }
    match args.json.map(|path| std::fs::write(path, row::json(&rows))) {
        Some(Err(why)) => {
            eprintln!("ranges: {why}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
