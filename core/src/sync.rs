//! The atomics that threads meet through: those of the hardware, or loom's, which try every order that the memory model
//! permits. Loom's cannot be made in a constant, as core's tables are; so each is made when it is first touched, and a
//! model touches all it needs before it starts threads.

#[cfg(not(loom))]
pub(crate) use crate::barrier::fence;
#[cfg(all(not(loom), target_has_atomic = "64"))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

#[cfg(loom)]
pub use model::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};

#[cfg(loom)]
mod model {
    extern crate std;

    use core::{ops::Deref, ptr};
    use loom::sync::atomic;
    pub use loom::sync::atomic::fence;
    use std::sync::OnceLock;

    /// One of loom's atomics, made when it is first touched.
    #[derive(Debug)]
    pub struct Lazy<V, A> {
        initial: V,
        make: fn(V) -> A,
        made: OnceLock<A>,
    }

    impl<V: Copy, A> Deref for Lazy<V, A> {
        type Target = A;
        fn deref(&self) -> &A {
            self.made.get_or_init(|| (self.make)(self.initial))
        }
    }

    /// 32 bits.
    pub type AtomicU32 = Lazy<u32, atomic::AtomicU32>;
    /// 64 bits.
    pub type AtomicU64 = Lazy<u64, atomic::AtomicU64>;
    /// An address as a number.
    pub type AtomicUsize = Lazy<usize, atomic::AtomicUsize>;
    /// An address.
    pub type AtomicPtr<T> = Lazy<(), atomic::AtomicPtr<T>>;

    macro_rules! constructors {
        ($($value:ty, $atomic:ident;)*) => {$(
            impl Lazy<$value, atomic::$atomic> {
                /// As the hardware's.
                pub const fn new(initial: $value) -> Self {
                    Lazy { initial, make: atomic::$atomic::new, made: OnceLock::new() }
                }
            }
        )*};
    }
    constructors! { u32, AtomicU32; u64, AtomicU64; usize, AtomicUsize; }

    impl<T> Lazy<(), atomic::AtomicPtr<T>> {
        /// As the hardware's, but null whatever is asked for: core begins with nothing else.
        pub const fn new(_: *mut T) -> Self {
            Lazy { initial: (), make: |()| atomic::AtomicPtr::new(ptr::null_mut()), made: OnceLock::new() }
        }
    }

    // For the address of a word, which no model hands out.
    impl<V, A> Lazy<V, A> {
        /// An address that nobody may write to.
        pub fn as_ptr(&self) -> *mut V {
            ptr::from_ref(&self.initial).cast_mut()
        }
    }
}
