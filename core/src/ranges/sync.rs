//! The atomics of the growing form: those of the hardware, or loom's, which try every order that the memory model
//! permits.

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};

pub(super) use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// A constructor that is `const`, except under loom, whose atomics know which run they belong to.
macro_rules! constructor {
    ($(#[$doc:meta])* $seen:vis fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$doc])*
        $seen const fn $($rest)*
        #[cfg(loom)]
        $(#[$doc])*
        $seen fn $($rest)*
    };
}
pub(super) use constructor;
