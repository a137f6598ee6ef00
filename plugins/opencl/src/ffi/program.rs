//! Programs and kernels.
//!
//! # Safety
//! As [`ffi`](super): handles are owned, lists and values are borrowed for the call; whoever sets arguments has the kernel
//! for himself.
#![allow(unsafe_code)]

use super::{Answer, Id, Kernel, Mem, Program, Refusal, check, number, query, words};
use opencl_sys::{cl_mem, cl_uint};
use std::{
    ffi::{CStr, c_void},
    ptr,
};

impl Program {
    /// Compiles and links; on error the driver's log is with it.
    pub(crate) fn build(&self, device: Id, options: &CStr) -> Result<(), (Refusal, String)> {
        let (call, options) = (self.api.clBuildProgram, options.as_ptr());
        // SAFETY: a list of one device; without a callback the call returns when it is done.
        let code = unsafe { call(self.raw, 1, &device.0, options, None, ptr::null_mut()) };
        check("clBuildProgram", code).map_err(|refusal| {
            let log = query("clGetProgramBuildInfo", |len, to, need| {
                let what = opencl_sys::CL_PROGRAM_BUILD_LOG;
                // SAFETY: a live program, its device, and `len` bytes (`query`).
                unsafe { (self.api.clGetProgramBuildInfo)(self.raw, device.0, what, len, to, need) }
            });
            (refusal, words(&log.unwrap_or_default()))
        })
    }

    /// The names of its kernels.
    pub(crate) fn kernel_names(&self) -> Answer<Vec<String>> {
        let names = query("clGetProgramInfo", |len, to, need| {
            let what = opencl_sys::CL_PROGRAM_KERNEL_NAMES;
            // SAFETY: a live program; `to` has `len` bytes (`query`).
            unsafe { (self.api.clGetProgramInfo)(self.raw, what, len, to, need) }
        })?;
        Ok(words(&names).split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// A kernel by name.
    pub(crate) fn kernel(&self, name: &CStr) -> Answer<Kernel> {
        let mut code = 0;
        // SAFETY: a live program and a text with an end.
        let raw = unsafe { (self.api.clCreateKernel)(self.raw, name.as_ptr(), &mut code) };
        Kernel::made(self.api, raw, "clCreateKernel", code)
    }
}

impl Kernel {
    /// A number about the kernel.
    pub(crate) fn info(&self, what: cl_uint) -> Answer<u64> {
        let bytes = query("clGetKernelInfo", |len, to, need| {
            // SAFETY: a live kernel; `to` has `len` bytes (`query`).
            unsafe { (self.api.clGetKernelInfo)(self.raw, what, len, to, need) }
        })?;
        Ok(number(&bytes))
    }

    /// A fact about an argument.
    pub(crate) fn arg_info(&self, index: u32, what: cl_uint) -> Answer<Vec<u8>> {
        query("clGetKernelArgInfo", |len, to, need| {
            // SAFETY: a live kernel; `to` has `len` bytes (`query`).
            unsafe { (self.api.clGetKernelArgInfo)(self.raw, index, what, len, to, need) }
        })
    }

    /// Numbers about the kernel on a device.
    pub(crate) fn work_group_info(&self, device: Id, what: cl_uint) -> Answer<Vec<u8>> {
        query("clGetKernelWorkGroupInfo", |len, to, need| {
            // SAFETY: a live kernel and the device it was built for; `to` has `len` bytes (`query`).
            unsafe { (self.api.clGetKernelWorkGroupInfo)(self.raw, device.0, what, len, to, need) }
        })
    }

    /// An argument by value; the driver copies it, and knows its size.
    pub(crate) fn set(&mut self, index: u32, value: &[u8]) -> Answer {
        let (call, bytes) = (self.api.clSetKernelArg, value.as_ptr().cast());
        // SAFETY: a live kernel, which `&mut` keeps to this thread, and the value's bytes.
        check("clSetKernelArg", unsafe { call(self.raw, index, value.len(), bytes) })
    }

    /// So many bytes of local memory; of an address the length is 8, and it is null.
    pub(crate) fn set_local(&mut self, index: u32, len: usize) -> Answer {
        // SAFETY: as for `set`; local memory has a length and no value.
        let code = unsafe { (self.api.clSetKernelArg)(self.raw, index, len, ptr::null()) };
        check("clSetKernelArg", code)
    }

    /// A buffer, or null.
    pub(crate) fn set_mem(&mut self, index: u32, mem: Option<&Mem>) -> Answer {
        let raw: cl_mem = mem.map_or(ptr::null_mut(), |mem| mem.raw);
        let (call, len) = (self.api.clSetKernelArg, size_of::<cl_mem>());
        // SAFETY: as for `set`; the value is a live buffer's name or null.
        check("clSetKernelArg", unsafe { call(self.raw, index, len, (&raw const raw).cast()) })
    }

    /// An address of shared virtual memory, or null.
    pub(crate) fn set_svm(&mut self, index: u32, address: *const c_void) -> Answer {
        let call = self.api.clSetKernelArgSVMPointer.ok_or(Refusal::missing("clSetKernelArgSVMPointer"))?;
        // SAFETY: as for `set`; the address is not looked at before a launch.
        check("clSetKernelArgSVMPointer", unsafe { call(self.raw, index, address) })
    }
}
