//! What a kernel for the host device is written with: the [`WorkGroup`] it is given, the [`kernel!`] macro that
//! makes an entry point of a function, and the records ([`record`]) that tell the device about it.
//!
//! A kernel is `extern "C" fn(args: *const u8, group: *const WorkGroup)`, run once per work-group: it loops over the
//! group's items itself. `args` is the packed block of arguments in C layout, aligned to 16 bytes. An image is an
//! ELF shared object that exports its kernels; the device finds the records in the section `.wharf.kernels`
//! without running the image. A kernel without a record can be launched too, with unchecked arguments.
//!
//! # Safety
//! The macro's output and [`WorkGroup::shared`] rest on the device: it hands over a block of arguments as long as
//! the record says, and a work-group that lives for the call.
#![no_std]
#![allow(unsafe_code)]

mod macros;
pub mod record;

/// A kernel's entry point.
pub type KernelFn = unsafe extern "C" fn(args: *const u8, group: *const WorkGroup);

/// The work-group that a kernel runs for. Fields are only ever added at the end; `struct_size` tells how many are
/// there.
#[derive(Debug)]
#[repr(C)]
pub struct WorkGroup {
    /// Bytes of this structure as the device knows it.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Which group this is, in x, y, z.
    pub id: [u32; 3],
    /// Groups of the launch in x, y, z.
    pub count: [u32; 3],
    /// Work-items of a group in x, y, z.
    pub size: [u32; 3],
    /// Bytes behind `shared`.
    pub shared_len: u32,
    /// The group's dynamic shared memory, aligned to 64 bytes. What it holds when the group begins is not defined.
    pub shared: *mut u8,
    /// The group's static shared memory, as many bytes as the record asks for, aligned to 64 bytes; contents not
    /// defined.
    pub fixed: *mut u8,
    /// Bytes behind `fixed`.
    pub fixed_len: u64,
    /// Calls the host by number; null where the device has no such way. The first argument is `rpc_context`.
    pub rpc: Option<RpcFn>,
    /// For `rpc` alone.
    pub rpc_context: *const (),
}

/// A call of the host from a kernel: context, opcode, and a block of bytes that is read and answered in place.
/// Answers 0 when a handler took it.
pub type RpcFn = unsafe extern "C" fn(context: *const (), opcode: u32, block: *mut u8, len: u64) -> i32;

impl WorkGroup {
    /// Work-items in a group.
    pub const fn items(&self) -> u32 {
        self.size[0] * self.size[1] * self.size[2]
    }
    /// This group's number, x fastest.
    pub const fn index(&self) -> u64 {
        let [x, y, z] = self.id;
        (z as u64 * self.count[1] as u64 + y as u64) * self.count[0] as u64 + x as u64
    }
    /// The number, over all groups in x, of this group's first item; with `size[0]` items following each other.
    pub const fn first_x(&self) -> u64 {
        self.id[0] as u64 * self.size[0] as u64
    }
    /// The dynamic shared memory as `len` values.
    ///
    /// # Safety
    /// Every bit pattern is a `T`; no other reference into the shared memory lives; `len` values fit (checked: a
    /// shorter slice is answered otherwise).
    #[allow(clippy::mut_from_ref)] // The memory belongs to the group; the caller promises that no reference overlaps.
    pub unsafe fn shared<T: Copy>(&self, len: usize) -> &mut [T] {
        let len = len.min(self.shared_len as usize / size_of::<T>().max(1));
        // SAFETY: the device gave `shared_len` bytes, aligned to 64, to this group alone; the caller promised the rest.
        unsafe { core::slice::from_raw_parts_mut(self.shared.cast(), len) }
    }
    /// The static shared memory as `len` values.
    ///
    /// # Safety
    /// As for [`WorkGroup::shared`].
    #[allow(clippy::mut_from_ref)] // As in `shared`.
    pub unsafe fn fixed<T: Copy>(&self, len: usize) -> &mut [T] {
        let len = len.min(self.fixed_len as usize / size_of::<T>().max(1));
        // SAFETY: the device gave `fixed_len` bytes, aligned to 64, to this group alone; the caller promised the rest.
        unsafe { core::slice::from_raw_parts_mut(self.fixed.cast(), len) }
    }
}

/// A global that kernels share and that the host reads and writes by address. Plain loads and stores: kernels that
/// write one element from two groups need atomics of their own.
#[repr(transparent)]
pub struct Global<T>(core::cell::UnsafeCell<T>);

// SAFETY: the value is only reached through the raw pointer of `as_ptr`, whose users promise to keep apart.
unsafe impl<T: Send> Sync for Global<T> {}

impl<T> Global<T> {
    /// A global that begins as `value`.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }
    /// Its address.
    pub const fn as_ptr(&self) -> *mut T {
        self.0.get()
    }
}
