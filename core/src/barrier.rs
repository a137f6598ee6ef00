//! A full barrier: what this thread stored before it is seen by others before anything is loaded after it. Every sleeper
//! and every ringer has one between its store and its look at the other side.
//!
//! # Safety
//! One instruction that changes nothing.
#![allow(unsafe_code)]

use core::sync::atomic::Ordering;

/// A fence. The strongest is, on x86-64, a locked instruction on the top of the stack, which orders like `mfence` for
/// ordinary memory (Intel SDM volume 3, 9.2; AMD64 APM volume 2, 7.4.2) and takes about a tenth of its time.
#[inline(always)]
pub fn fence(order: Ordering) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if order == Ordering::SeqCst {
        // SAFETY: sets no bit of a word of this thread's own stack.
        unsafe {
            core::arch::asm!("lock or dword ptr [rsp], 0");
        }
        return;
    }
    core::sync::atomic::fence(order);
}
