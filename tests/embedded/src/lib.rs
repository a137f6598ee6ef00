//! What the firmware here is made of: a board, an environment without threads, and a device that is a DMA engine or the
//! processor itself.
//!
//! On a target without an operating system the programs are firmware; on any other they are ordinary programs that play
//! the same scenes, with a board that is simulated: for a debugger, and for the checks that need no emulator.
#![no_std]

#[cfg(not(target_os = "none"))]
extern crate std;

#[cfg(target_os = "none")]
#[path = "board/bare.rs"]
mod bare;
#[cfg_attr(all(target_os = "none", target_arch = "arm"), path = "board/cortex_m.rs")]
#[cfg_attr(all(target_os = "none", not(target_arch = "arm")), path = "board/riscv.rs")]
#[cfg_attr(not(target_os = "none"), path = "board/simulated.rs")]
pub mod board;
pub mod broken;
pub mod cpu;
pub mod env;
#[cfg(feature = "heap")]
pub mod heap;
pub mod kernels;
pub mod part;
pub mod place;
pub mod words;

use broken::Broken;
use core::fmt::{self, Write};

/// Plays a scene: one line about it, and the exit code.
pub fn run<T: fmt::Display>(name: &str, play: impl FnOnce() -> Result<T, Broken>) -> i32 {
    let mut line = words::Line::new();
    let (written, code) = match play() {
        Ok(done) => (writeln!(line, "{name}: ok: {done}"), 0),
        Err(broken) => (writeln!(line, "{name}: failed: {broken}"), 1),
    };
    board::print(line.text());
    if written.is_ok() { code } else { 1 }
}

/// The program around a scene.
#[macro_export]
macro_rules! firmware {
    ($name:literal, $play:path) => {
        /// Called after reset, with memory as the program wants it.
        #[cfg(target_os = "none")]
        #[allow(unsafe_code)]
        #[unsafe(no_mangle)]
        extern "C" fn firmware() -> ! {
            $crate::board::exit($crate::run($name, $play))
        }
        #[cfg(target_os = "none")]
        #[panic_handler]
        fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
            $crate::board::panicked(info)
        }
        #[cfg(not(target_os = "none"))]
        fn main() {
            $crate::board::exit($crate::run($name, $play))
        }
    };
}
