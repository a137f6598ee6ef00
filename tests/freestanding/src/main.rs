//! Core alone: a program for x86_64 Linux without std, libc and heap, in which core reads an archive, orders queues, moves
//! a batch and looks up memory over a device of static memory. It writes one line and exits with 0, or with 1.
//!
//! `cargo xtask freestanding` builds it, checks that it stands alone, and runs it.
#![no_std]
#![no_main]

mod bare;
mod region;
mod scene;
mod system;
mod words;

use core::fmt::Write;

/// The program: its exit code.
fn run() -> i32 {
    let mut line = words::Line::new();
    let (written, code) = match scene::play() {
        Ok(done) => (writeln!(line, "freestanding: ok: {done}"), 0),
        Err(broken) => (writeln!(line, "freestanding: failed: {broken}"), 1),
    };
    system::print(line.bytes());
    if written.is_ok() { code } else { 1 }
}
