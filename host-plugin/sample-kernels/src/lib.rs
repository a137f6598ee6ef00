//! The kernels that tests of every backend know, as one image for the host device.
//!
//! Built by `cargo build --release --manifest-path host-plugin/sample-kernels/Cargo.toml`; tests get the path of the
//! built image from `wharf-host-image`. It needs no library: std would only make it large.
//!
//! # Safety
//! Every kernel trusts its launch: pointers lead to as many values as the grid and the other arguments ask for, and
//! groups of one launch write to different places.
#![no_std]
#![allow(unsafe_code)]

mod globals;
mod net;
mod shared;
mod simple;

/// A kernel that panics ends the process: nothing can unwind through the device's C frames.
#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: traps, which is all that is wanted.
    unsafe {
        core::arch::asm!("ud2", options(noreturn))
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: traps, which is all that is wanted.
    unsafe {
        core::arch::asm!("brk #1", options(noreturn))
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    loop {}
}

/// The prebuilt core library names this for its landing pads. Nothing unwinds, so nothing calls it.
#[cfg(not(test))]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
