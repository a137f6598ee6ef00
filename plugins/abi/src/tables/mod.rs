//! The plugin ABI, major 1: plain C tables. `wharf.h` says the same in C; static asserts keep the two together.
//!
//! Rules. `struct_size` stands first in every table and argument struct; a reader takes the smaller of the two sizes
//! and treats the rest as zero, so tables only grow at the end and a missing function is NULL. Nothing becomes
//! mandatory within a major. Arguments are borrowed for the call. Handles are 64-bit words that the plugin makes and
//! only core holds; 0 is none. Numbers of codes, kinds and flags are open sets. Every function may be called from any
//! thread, except: `submit` from one thread per queue; `destroy` and `unload` when nothing of the object is pending
//! or inside; `close` when nothing of the plugin is.
//!
//! Types that may grow are *prefix* types to abi_stable, which lets fields be added behind `last_prefix_field`; they
//! cross calls as [`To`], because a pointer to a type that grows must not fix its size. Types without `struct_size`
//! never change.
//!
//! # Safety
//! The hand-written `StableAbi` impls describe a type by another of exactly its memory layout.
#![allow(unsafe_code)]

mod device;
mod memory;
mod plugin;
mod program;
mod queue;
mod root;
mod value;

pub use device::{Caps, CapsFields, CapsRef, DeviceV1, DeviceV1Fields, DeviceV1Ref, caps_flag, pace};
pub use memory::{
    Alloc, AllocFields, AllocRef, Foreign, ForeignFields, ForeignRef, MemoryV1, MemoryV1Fields, MemoryV1Ref,
};
pub use plugin::{
    EntryFn, HostV1, HostV1Fields, HostV1Ref, MAGIC, Names, PluginV1, PluginV1Fields, PluginV1Ref,
    plugin_flag,
};
pub use program::{Kernel, KernelFields, KernelRef, ProgramV1, ProgramV1Fields, ProgramV1Ref, symbol};
pub use queue::{
    AfterArgs, CallArgs, CopyArgs, FileArgs, FillArgs, LaunchArgs, Op, OpArgs, OpFields, OpRef, PrefetchArgs,
    QueueArgs, QueueArgsFields, QueueArgsRef, QueueV1, QueueV1Fields, QueueV1Ref, SubmitFn, UpdateArgs, hint,
    op_flag,
};
pub use root::{
    Arguments, ArgumentsFields, ArgumentsRef, Base, BaseFields, BaseRef, Root, RootFields, RootRef, Tables,
    TablesFields, TablesRef,
};
pub use value::{Block, Ext, Head, Param, Status, Str, ext_flag};

use abi_stable::{StableAbi, abi_stability::GetStaticEquivalent_, type_layout::TypeLayout};
use core::ffi::c_void;

/// Major version of the ABI: another one is another ABI.
pub const MAJOR: u16 = 1;
/// Minor version: only grows, by additions at the end of tables.
pub const MINOR: u16 = 0;
/// Number of the draft of this major; hosts and plugins of different drafts refuse each other. 0 once it is final.
pub const DRAFT: u16 = 2;

/// Names of the tables of [`PluginV1::query`].
pub mod id {
    /// [`DeviceV1`](super::DeviceV1), mandatory.
    pub const DEVICE: &str = "wharf.device";
    /// [`MemoryV1`](super::MemoryV1), mandatory.
    pub const MEMORY: &str = "wharf.memory";
    /// [`QueueV1`](super::QueueV1), mandatory.
    pub const QUEUE: &str = "wharf.queue";
    /// [`ProgramV1`](super::ProgramV1), of devices that run kernels.
    pub const PROGRAM: &str = "wharf.program";
}

/// A pointer to a type that may grow: a plain C pointer, whose target the type check does not follow. The root module
/// lists those types, so that they are checked all the same.
#[repr(transparent)]
#[derive(Debug)]
pub struct To<T>(pub *const T);

impl<T> Clone for To<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for To<T> {}

impl<T> To<T> {
    /// No target.
    pub const NULL: Self = To(core::ptr::null());
    /// For the callee to write to.
    pub const fn to_mut(target: *mut T) -> Self {
        To(target)
    }
    /// Where to write.
    pub const fn as_mut(self) -> *mut T {
        self.0.cast_mut()
    }
}

// SAFETY: `To` is transparent over a pointer, and is described as the pointer that it is.
unsafe impl<T> GetStaticEquivalent_ for To<T> {
    type StaticEquivalent = *const c_void;
}
// SAFETY: as above: size, alignment and meaning of `*const c_void`.
unsafe impl<T> StableAbi for To<T> {
    type IsNonZeroType = <*const c_void as StableAbi>::IsNonZeroType;
    const LAYOUT: &'static TypeLayout = <*const c_void as StableAbi>::LAYOUT;
}

/// A struct of the ABI that begins with its own size and only grows.
///
/// # Safety
/// The type is `repr(C)`, begins with a `u32` that holds its size, and all bytes zero are a value of it.
pub unsafe trait Sized32: Copy {
    /// Bytes that every version has.
    const FIRST: usize;

    /// All zero but the size.
    fn empty() -> Self {
        let mut one = core::mem::MaybeUninit::<Self>::zeroed();
        // SAFETY: by the trait's promise a `u32` is at the beginning, and the rest may be zero.
        unsafe { one.as_mut_ptr().cast::<u32>().write(size_of::<Self>() as u32) };
        // SAFETY: by the trait's promise zero bytes are a value, and the size was written.
        unsafe { one.assume_init() }
    }
}

macro_rules! sized32 {
    ($($type:ty = $first:expr;)*) => { $(
        // SAFETY: `repr(C)`, `struct_size` (alone or in `Head`) is the first field of every listed type ; integers, nullable pointers and functions may be zero.
        unsafe impl Sized32 for $type { const FIRST: usize = $first; }
    )* };
}
sized32! {
    HostV1 = 8;
    DeviceV1 = 8;
    MemoryV1 = 8;
    QueueV1 = 8;
    ProgramV1 = 8;
    Caps = 72;
    Alloc = 40;
    Foreign = 48;
    QueueArgs = 40;
    Kernel = 32;
}

const _: () = {
    assert!(size_of::<HostV1>() == 40 && size_of::<DeviceV1>() == 56 && size_of::<MemoryV1>() == 88);
    assert!(size_of::<QueueV1>() == 64 && size_of::<ProgramV1>() == 72 && size_of::<PluginV1>() == 136);
    assert!(size_of::<Op>() == 104 && core::mem::offset_of!(Op, args) == 24);
    assert!(size_of::<Caps>() == 72 && size_of::<Alloc>() == 40 && size_of::<Foreign>() == 48);
    assert!(size_of::<QueueArgs>() == 40 && size_of::<Kernel>() == 32);
    assert!(size_of::<Status>() == 16 && size_of::<Str>() == 16 && size_of::<Ext>() == 24);
    assert!(size_of::<Block>() == 24 && size_of::<Param>() == 16 && size_of::<Head>() == 8);
    assert!(size_of::<To<Op>>() == 8 && size_of::<OpArgs>() == 80);
};
