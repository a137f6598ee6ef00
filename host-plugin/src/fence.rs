//! A pair of fences of which only the rare side pays: whoever runs a lane raises the timeline and looks for waiters
//! with [`light`] in between, once a step; whoever goes to sleep registers and looks at the timeline with [`heavy`] in
//! between. At least one of the two sees the other. Linux' `membarrier` makes every thread of the process pass a
//! full barrier; where it is missing, both sides are full fences.
//!
//! # Safety
//! Only system calls without pointers.
#![allow(unsafe_code)]

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering::*, compiler_fence, fence},
};

/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED` and the command that registers for it, of Linux' `membarrier.h`.
const EXPEDITED: libc::c_long = 1 << 3;
const REGISTER_EXPEDITED: libc::c_long = 1 << 4;

static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

fn membarrier(command: libc::c_long) -> bool {
    let flags: libc::c_long = 0;
    // SAFETY: the call takes three numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, flags, flags) == 0 }
}

/// Finds out once which kind the process has. Before that both sides are full fences.
pub(crate) fn set_up() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| ASYMMETRIC.store(membarrier(REGISTER_EXPEDITED), Release));
}

/// The frequent side.
#[inline(always)]
pub(crate) fn light() {
    if ASYMMETRIC.load(Relaxed) { compiler_fence(SeqCst) } else { fence(SeqCst) }
}

/// The rare side.
pub(crate) fn heavy() {
    fence(SeqCst);
    if ASYMMETRIC.load(Acquire) {
        // Cannot fail once the process has registered for it.
        membarrier(EXPEDITED);
    }
    fence(SeqCst);
}
