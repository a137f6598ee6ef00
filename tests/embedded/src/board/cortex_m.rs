//! A Cortex-M4: its vectors, its reset, its system timer. Register addresses and bits are those of the ARMv7-M
//! Architecture Reference Manual; the board (Arm MPS2 with image AN386) runs at 25 MHz.
//!
//! # Safety
//! The vectors lie at address 0 and name functions that the processor may call; `reset` sets up memory before any Rust
//! runs; registers are written while nobody else does.
#![allow(unsafe_code)]

pub(crate) use crate::bare::ticked;
use core::{
    arch::{asm, global_asm},
    ffi::CStr,
};

const SYST_CSR: usize = 0xE000_E010;
const SYST_RVR: usize = 0xE000_E014;
const SYST_CVR: usize = 0xE000_E018;
/// Counts the processor's clock, interrupts, runs.
const SYST_RUN: u32 = 7;
const CLOCK_HZ: u32 = 25_000_000;
/// Between two interrupts of the timer.
pub(crate) const TICK_NS: u64 = 100_000;
const TICK_CYCLES: u32 = (TICK_NS * CLOCK_HZ as u64 / 1_000_000_000) as u32;

global_asm!(
    ".section .head, \"a\"",
    ".word __stack_top",
    ".word reset",
    ".rept 13", // NMI, faults, reserved, SVCall, debug, reserved, PendSV
    ".word fault",
    ".endr",
    ".word systick",
    ".section .text.reset, \"ax\"",
    ".global reset",
    ".type reset, %function",
    ".thumb_func",
    "reset:",
    // Full access to the floating-point unit (CPACR).
    "ldr r0, =0xE000ED88",
    "ldr r1, [r0]",
    "orr r1, r1, #0xF00000",
    "str r1, [r0]",
    "dsb",
    "isb",
    "ldr r0, =__bss_start",
    "ldr r1, =__bss_end",
    "movs r2, #0",
    "1: cmp r0, r1",
    "bhs 2f",
    "str r2, [r0], #4",
    "b 1b",
    "2: ldr r0, =__data_start",
    "ldr r1, =__data_end",
    "ldr r2, =__data_load",
    "3: cmp r0, r1",
    "bhs 4f",
    "ldr r3, [r2], #4",
    "str r3, [r0], #4",
    "b 3b",
    "4: bl firmware",
    "udf #0",
    ".ltorg",
);

#[unsafe(no_mangle)]
extern "C" fn fault() -> ! {
    print(c"a fault of the processor\n");
    exit(102)
}

#[unsafe(no_mangle)]
extern "C" fn systick() {
    ticked();
}

/// Writes a line.
pub fn print(text: &CStr) {
    crate::bare::print(text);
}

/// Ends the program.
pub fn exit(code: i32) -> ! {
    crate::bare::exit(code)
}

/// Says what a panic says, and ends the program.
pub fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    crate::bare::panicked(info)
}

/// Time since the timer was started.
pub fn now_ns() -> u64 {
    crate::bare::now_ns()
}

/// Starts the timer, whose interrupt calls `tick` from now on.
pub fn start(tick: fn()) {
    crate::bare::hook(tick);
    for (register, value) in [(SYST_RVR, TICK_CYCLES - 1), (SYST_CVR, 0), (SYST_CSR, SYST_RUN)] {
        // SAFETY: a register of the system timer, which nobody else writes.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(register).write_volatile(value) };
    }
}

/// Waits for an interrupt.
pub fn sleep() {
    // SAFETY: the instruction waits and changes nothing.
    unsafe { asm!("wfi", options(nostack, preserves_flags)) };
}

/// A semihosting call.
///
/// # Safety
/// `block` is what call `number` takes.
pub(crate) unsafe fn semihost(number: usize, block: usize) {
    // SAFETY: the caller's; the debugger (or emulator) reads the block and answers in r0.
    unsafe { asm!("bkpt #0xAB", inout("r0") number => _, in("r1") block, options(nostack)) };
}
