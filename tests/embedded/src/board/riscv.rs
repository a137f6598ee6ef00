//! A RISC-V core with a CLINT, as QEMU's machine `virt` has it: its reset, its trap, its timer. Registers are those of
//! the privileged specification; the timer counts at 10 MHz.
//!
//! # Safety
//! `reset` sets up memory before any Rust runs; the trap keeps every register that its callee may change; the timer's
//! registers are written by this file alone.
#![allow(unsafe_code)]

use core::{
    arch::{asm, global_asm},
    ffi::CStr,
    ptr::with_exposed_provenance_mut,
};

const MTIMECMP: usize = 0x0200_4000;
const MTIME: usize = 0x0200_BFF8;
const CLOCK_HZ: u64 = 10_000_000;
/// Between two interrupts of the timer.
pub(crate) const TICK_NS: u64 = 100_000;
const TICK_COUNT: u64 = TICK_NS * CLOCK_HZ / 1_000_000_000;
/// `mcause` of the machine timer's interrupt.
const TIMER: usize = 1 << 31 | 7;

global_asm!(
    ".section .head, \"ax\"",
    ".global reset",
    "reset:",
    "la sp, __stack_top",
    "la t0, __bss_start",
    "la t1, __bss_end",
    "1: bgeu t0, t1, 2f",
    "sw zero, 0(t0)",
    "addi t0, t0, 4",
    "j 1b",
    "2: la t0, __data_start",
    "la t1, __data_end",
    "la t2, __data_load",
    "3: bgeu t0, t1, 4f",
    "lw t3, 0(t2)",
    "sw t3, 0(t0)",
    "addi t0, t0, 4",
    "addi t2, t2, 4",
    "j 3b",
    "4: la t0, trap",
    "csrw mtvec, t0",
    "call firmware",
    "unimp",
    ".balign 4",
    "trap:",
    "addi sp, sp, -64",
    "sw ra, 0(sp)",
    "sw t0, 4(sp)",
    "sw t1, 8(sp)",
    "sw t2, 12(sp)",
    "sw t3, 16(sp)",
    "sw t4, 20(sp)",
    "sw t5, 24(sp)",
    "sw t6, 28(sp)",
    "sw a0, 32(sp)",
    "sw a1, 36(sp)",
    "sw a2, 40(sp)",
    "sw a3, 44(sp)",
    "sw a4, 48(sp)",
    "sw a5, 52(sp)",
    "sw a6, 56(sp)",
    "sw a7, 60(sp)",
    "csrr a0, mcause",
    "call trapped",
    "lw ra, 0(sp)",
    "lw t0, 4(sp)",
    "lw t1, 8(sp)",
    "lw t2, 12(sp)",
    "lw t3, 16(sp)",
    "lw t4, 20(sp)",
    "lw t5, 24(sp)",
    "lw t6, 28(sp)",
    "lw a0, 32(sp)",
    "lw a1, 36(sp)",
    "lw a2, 40(sp)",
    "lw a3, 44(sp)",
    "lw a4, 48(sp)",
    "lw a5, 52(sp)",
    "lw a6, 56(sp)",
    "lw a7, 60(sp)",
    "addi sp, sp, 64",
    "mret",
);

#[unsafe(no_mangle)]
extern "C" fn trapped(cause: usize) {
    if cause != TIMER {
        print(c"a trap of the processor\n");
        exit(102)
    }
    next_tick();
    crate::bare::ticked();
}

/// Has the timer interrupt one tick from now.
fn next_tick() {
    let at = time() + TICK_COUNT;
    // The high word first at its most, so that no moment between the writes lies in the past.
    for (register, value) in
        [(MTIMECMP + 4, u32::MAX), (MTIMECMP, at as u32), (MTIMECMP + 4, (at >> 32) as u32)]
    {
        // SAFETY: the timer's compare register, which this file alone writes.
        unsafe { with_exposed_provenance_mut::<u32>(register).write_volatile(value) };
    }
}

/// The timer's count; the high word is read again, since the low one may have begun anew meanwhile.
fn time() -> u64 {
    // SAFETY: a word of the timer, which can always be read.
    let word = |at| u64::from(unsafe { with_exposed_provenance_mut::<u32>(at).read_volatile() });
    loop {
        let (high, low) = (word(MTIME + 4), word(MTIME));
        if word(MTIME + 4) == high {
            return high << 32 | low;
        }
    }
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
    next_tick();
    // SAFETY: `trap` takes the interrupt that is let in here (mie.MTIE, then mstatus.MIE).
    unsafe { asm!("csrs mie, {timer}", "csrsi mstatus, 8", timer = in(reg) 1 << 7, options(nostack)) };
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
    // SAFETY: the caller's; the three instructions, none of them compressed and all in one page, are the call.
    unsafe {
        asm!(
            ".balign 16", ".option push", ".option norvc", "slli x0, x0, 0x1f", "ebreak", "srai x0, x0, 7", ".option pop",
            inout("a0") number => _, in("a1") block, options(nostack)
        );
    }
}
