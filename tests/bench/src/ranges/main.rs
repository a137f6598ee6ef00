//! The interval map against LLVM's structure rebuilt in Rust ([`llvm`]), in one run, round by round.
//!
//! Every figure is nanoseconds or bytes; `--short` leaves the million out.

mod bytes;
mod cases;
mod llvm;
mod plan;

use std::{process::ExitCode, sync::Mutex};
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

fn main() -> ExitCode {
    wharf_bench::args::main(|args, give| {
        let sizes: &[usize] = args.pick(&[10, 1_000, 100_000, 1_000_000], &[10, 1_000, 100_000]);
        sizes.iter().for_each(|live| cases::all(*live, args, give));
        Ok(())
    })
}
