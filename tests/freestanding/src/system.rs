//! All that this program asks of its machine: where it starts, a line to write, an end, and the four functions over bytes
//! that the compiler may call.
//!
//! # Safety
//! System calls are made as x86_64 Linux takes them, with pointers to live bytes; `rep` instructions touch exactly the
//! bytes that the callers of C's functions of these names promise.
#![allow(unsafe_code)]

use core::arch::{asm, global_asm};

const WRITE: usize = 1;
const EXIT: usize = 60;
const STDOUT: usize = 1;

// The kernel starts a program with the stack aligned; a function expects it as after a call.
global_asm!(".globl _start", "_start:", "xor ebp, ebp", "call {begin}", "ud2", begin = sym begin);

extern "C" fn begin() -> ! {
    exit(crate::run())
}

/// One system call of up to three arguments.
fn call(number: usize, a: usize, b: usize, c: usize) -> usize {
    let result;
    // SAFETY: only `write` and `exit` are called, with the bytes of a live slice; the kernel changes rcx and r11.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c,
             out("rcx") _, out("r11") _, options(nostack));
    }
    result
}

/// Writes to the standard output; what does not fit is lost.
pub(crate) fn print(bytes: &[u8]) {
    call(WRITE, STDOUT, bytes.as_ptr().addr(), bytes.len());
}

/// Ends the program.
pub(crate) fn exit(code: i32) -> ! {
    loop {
        call(EXIT, code as usize, 0, 0);
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    print(b"freestanding: a panic\n");
    exit(101)
}

/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller promises `len` bytes on both sides; the direction flag is clear by the ABI.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack))
    };
    to
}

/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if to.addr().wrapping_sub(from.addr()) >= len {
        // SAFETY: as the caller promised; copied upwards, nothing is written before it was read.
        return unsafe { memcpy(to, from, len) };
    }
    // Downwards from the last byte; `len` is above 0 here.
    let (to_last, from_last) = (to.wrapping_add(len - 1), from.wrapping_add(len - 1));
    // SAFETY: the caller promises `len` bytes on both sides; the direction flag is clear again afterwards.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") len => _, inout("rdi") to_last => _, inout("rsi") from_last => _,
             options(nostack));
    }
    to
}

/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    // SAFETY: the caller promises `len` bytes; the direction flag is clear by the ABI.
    unsafe {
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte as u8, options(nostack))
    };
    to
}

/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    for at in 0..len {
        // SAFETY: the caller promises `len` bytes.
        let x = unsafe { a.wrapping_add(at).read() };
        // SAFETY: as above.
        let y = unsafe { b.wrapping_add(at).read() };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
    }
    0
}

/// As BSD's, which the compiler calls where only equality is asked.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: the caller promises what `memcmp` asks.
    unsafe { memcmp(a, b, len) }
}

/// Named by the compiled core, whose landing pads a build without optimisation links; nothing unwinds here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// As above.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    exit(101)
}
