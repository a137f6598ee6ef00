//! What both boards have in common: semihosting's calls, a panic's end, and the timer's count.
//!
//! # Safety
//! Semihosting takes a number and an address of what that call wants; the text ends with a NUL, the block of the exit has
//! two words.
#![allow(unsafe_code)]

use crate::board::{TICK_NS, semihost};
use core::{
    ffi::CStr,
    fmt::Write,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering::*},
};

const SYS_WRITE0: usize = 0x04;
const SYS_EXIT_EXTENDED: usize = 0x20;
/// `ADP_Stopped_ApplicationExit`
const APPLICATION_EXIT: usize = 0x20026;

static TICKS: AtomicU32 = AtomicU32::new(0);
static HOOK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

pub(crate) fn print(text: &CStr) {
    // SAFETY: the text ends with a NUL.
    unsafe { semihost(SYS_WRITE0, text.as_ptr().addr()) };
}

pub(crate) fn exit(code: i32) -> ! {
    let block = [APPLICATION_EXIT, code as usize];
    loop {
        // SAFETY: the block has the two words that the call takes.
        unsafe { semihost(SYS_EXIT_EXTENDED, block.as_ptr().expose_provenance()) };
    }
}

pub(crate) fn now_ns() -> u64 {
    u64::from(TICKS.load(Relaxed)) * TICK_NS
}

/// What the timer's interrupt does from now on.
pub(crate) fn hook(tick: fn()) {
    HOOK.store(tick as *mut (), Release);
}

/// The timer's interrupt.
pub(crate) fn ticked() {
    TICKS.store(TICKS.load(Relaxed) + 1, Relaxed);
    let hook = HOOK.load(Acquire);
    if !hook.is_null() {
        // SAFETY: only `hook` stores here, a function of this type.
        let tick = unsafe { core::mem::transmute::<*mut (), fn()>(hook) };
        tick();
    }
}

/// Says what a panic says, and ends the program.
pub(crate) fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    let mut line = crate::words::Line::new();
    // What does not fit is left out.
    let _ = writeln!(line, "{info}");
    print(line.text());
    print(c"\n");
    exit(101)
}
