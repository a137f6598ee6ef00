//! Calls of OpenCL, resolved when the first device is asked for: a library or an entry point that is missing is a reason
//! in words. Every call answers a [`Result`] with its name and the driver's own code; what a driver makes is owned and
//! given back when dropped.
//!
//! # Safety
//! - The library stays loaded for ever, so its functions are good for ever. The types of the table are those of the
//!   headers of OpenCL 3.0.
//! - An owned handle holds a reference of its own, so what it names lives as long as it does.
//! - Calls may come from any thread, but for `clSetKernelArg*` on one kernel (OpenCL 3.0 API, A.2): whoever sets
//!   arguments has the kernel for himself (`&mut`).
//! - Lists and values handed over by pointer are borrowed for the call; queries ask for the length first.
#![allow(unsafe_code)]
#![allow(non_snake_case)] // Entry points keep the driver's names.

mod program;
mod queue;

pub(crate) use queue::Enqueued;

use crate::text::with_text;
use opencl_sys::{
    CL_SUCCESS, cl_bool, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem,
    cl_platform_id, cl_program, cl_uint, cl_ulong,
};
use std::{
    ffi::{c_char, c_void},
    ptr,
    sync::OnceLock,
};
use wharf_core::fault::{Blame, Fault, Kind, Site, Why};

/// Names of the ICD loader, in the order in which they are tried.
const LIBRARIES: &[&str] = if cfg!(windows) {
    &["OpenCL.dll"]
} else if cfg!(target_vendor = "apple") {
    &["/System/Library/Frameworks/OpenCL.framework/OpenCL"]
} else {
    &["libOpenCL.so.1", "libOpenCL.so"]
};

/// Codes that the registry gives and `opencl-sys` has no name for, or that are read in several places.
pub(crate) const PLATFORM_NOT_FOUND: cl_int = -1001;
const NO_DEVICE: cl_int = -1;

type Notify = unsafe extern "system" fn(cl_event, cl_int, *mut c_void);
type Info = unsafe extern "system" fn(*mut c_void, cl_uint, usize, *mut c_void, *mut usize) -> cl_int;
type Release = unsafe extern "system" fn(*mut c_void) -> cl_int;

/// The list of entry points: those without which there is no device, and those of OpenCL 2.0 and later.
macro_rules! entry_points {
    (required { $($name:ident: $type:ty,)* } optional { $($may:ident: $mtype:ty,)* }) => {
        /// The entry points that were found.
        pub(crate) struct Api { $($name: $type,)* $($may: Option<$mtype>,)* }

        impl Api {
            fn resolve(library: &libloading::Library) -> Result<Api, &'static str> {
                Ok(Api {
                    $($name: {
                        // SAFETY: the type is that of the entry point of this name in the headers.
                        let found = unsafe { library.get::<$type>(concat!(stringify!($name), "\0").as_bytes()) };
                        *found.map_err(|_| stringify!($name))?
                    },)*
                    $($may: {
                        // SAFETY: as above.
                        let found = unsafe { library.get::<$mtype>(concat!(stringify!($may), "\0").as_bytes()) };
                        found.ok().map(|found| *found)
                    },)*
                })
            }
        }
    };
}

entry_points! {
    required {
        clGetPlatformIDs: unsafe extern "system" fn(cl_uint, *mut cl_platform_id, *mut cl_uint) -> cl_int,
        clGetPlatformInfo: Info,
        clGetDeviceIDs: unsafe extern "system" fn(cl_platform_id, cl_ulong, cl_uint, *mut cl_device_id, *mut cl_uint) -> cl_int,
        clGetDeviceInfo: Info,
        clCreateContext: unsafe extern "system" fn(*const isize, cl_uint, *const cl_device_id, Option<unsafe extern "system" fn(*const c_char, *const c_void, usize, *mut c_void)>, *mut c_void, *mut cl_int) -> cl_context,
        clRetainContext: Release,
        clReleaseContext: Release,
        clCreateCommandQueue: unsafe extern "system" fn(cl_context, cl_device_id, cl_ulong, *mut cl_int) -> cl_command_queue,
        clRetainCommandQueue: Release,
        clReleaseCommandQueue: Release,
        clFlush: Release,
        clRetainEvent: Release,
        clReleaseEvent: Release,
        clWaitForEvents: unsafe extern "system" fn(cl_uint, *const cl_event) -> cl_int,
        clGetEventInfo: Info,
        clGetEventProfilingInfo: Info,
        clSetEventCallback: unsafe extern "system" fn(cl_event, cl_int, Option<Notify>, *mut c_void) -> cl_int,
        clEnqueueMarkerWithWaitList: unsafe extern "system" fn(cl_command_queue, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        clEnqueueBarrierWithWaitList: unsafe extern "system" fn(cl_command_queue, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        clCreateBuffer: unsafe extern "system" fn(cl_context, cl_ulong, usize, *mut c_void, *mut cl_int) -> cl_mem,
        clCreateSubBuffer: unsafe extern "system" fn(cl_mem, cl_ulong, cl_uint, *const c_void, *mut cl_int) -> cl_mem,
        clRetainMemObject: Release,
        clReleaseMemObject: Release,
        clEnqueueReadBuffer: unsafe extern "system" fn(cl_command_queue, cl_mem, cl_bool, usize, usize, *mut c_void, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        clEnqueueWriteBuffer: unsafe extern "system" fn(cl_command_queue, cl_mem, cl_bool, usize, usize, *const c_void, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        clEnqueueCopyBuffer: unsafe extern "system" fn(cl_command_queue, cl_mem, cl_mem, usize, usize, usize, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        clEnqueueFillBuffer: unsafe extern "system" fn(cl_command_queue, cl_mem, *const c_void, usize, usize, usize, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        clCreateProgramWithSource: unsafe extern "system" fn(cl_context, cl_uint, *const *const c_char, *const usize, *mut cl_int) -> cl_program,
        clCreateProgramWithBinary: unsafe extern "system" fn(cl_context, cl_uint, *const cl_device_id, *const usize, *const *const u8, *mut cl_int, *mut cl_int) -> cl_program,
        clBuildProgram: unsafe extern "system" fn(cl_program, cl_uint, *const cl_device_id, *const c_char, Option<unsafe extern "system" fn(cl_program, *mut c_void)>, *mut c_void) -> cl_int,
        clRetainProgram: Release,
        clReleaseProgram: Release,
        clGetProgramInfo: Info,
        clGetProgramBuildInfo: unsafe extern "system" fn(cl_program, cl_device_id, cl_uint, usize, *mut c_void, *mut usize) -> cl_int,
        clCreateKernel: unsafe extern "system" fn(cl_program, *const c_char, *mut cl_int) -> cl_kernel,
        clRetainKernel: Release,
        clReleaseKernel: Release,
        clGetKernelInfo: Info,
        clGetKernelArgInfo: unsafe extern "system" fn(cl_kernel, cl_uint, cl_uint, usize, *mut c_void, *mut usize) -> cl_int,
        clGetKernelWorkGroupInfo: unsafe extern "system" fn(cl_kernel, cl_device_id, cl_uint, usize, *mut c_void, *mut usize) -> cl_int,
        clSetKernelArg: unsafe extern "system" fn(cl_kernel, cl_uint, usize, *const c_void) -> cl_int,
        clEnqueueNDRangeKernel: unsafe extern "system" fn(cl_command_queue, cl_kernel, cl_uint, *const usize, *const usize, *const usize, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
    }
    optional {
        clSVMAlloc: unsafe extern "system" fn(cl_context, cl_ulong, usize, cl_uint) -> *mut c_void,
        clSVMFree: unsafe extern "system" fn(cl_context, *mut c_void),
        clEnqueueSVMMemcpy: unsafe extern "system" fn(cl_command_queue, cl_bool, *mut c_void, *const c_void, usize, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        clEnqueueSVMMemFill: unsafe extern "system" fn(cl_command_queue, *mut c_void, *const c_void, usize, usize, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        clSetKernelArgSVMPointer: unsafe extern "system" fn(cl_kernel, cl_uint, *const c_void) -> cl_int,
        clCreateProgramWithIL: unsafe extern "system" fn(cl_context, *const c_void, usize, *mut cl_int) -> cl_program,
    }
}

/// A call that the driver refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The driver's name of the call.
    pub(crate) call: &'static str,
    /// The driver's code.
    pub(crate) code: cl_int,
}

/// What a call answers.
pub(crate) type Answer<T = ()> = Result<T, Refusal>;

impl Refusal {
    /// A call of a version that this driver does not have.
    const fn missing(call: &'static str) -> Refusal {
        Refusal { call, code: opencl_sys::CL_INVALID_OPERATION }
    }

    /// As a fault, with the call in its words.
    pub(crate) fn fault(self, site: Site) -> Fault {
        self.fault_with(site, String::new())
    }

    /// As a fault, with the call and more in its words.
    pub(crate) fn fault_with(self, site: Site, more: String) -> Fault {
        let Refusal { call, code } = self;
        let fault = Fault::new(kind(code), Blame::Driver, site, Why::Native, [0; 2]).with_native(code);
        let colon = if more.is_empty() { "" } else { ": " };
        with_text(fault, format!("{call} answered {code}{colon}{more}"))
    }
}

/// The few cases that a caller can act on.
fn kind(code: cl_int) -> Kind {
    use opencl_sys as cl;
    match code {
        NO_DEVICE | PLATFORM_NOT_FOUND => Kind::Unavailable,
        cl::CL_DEVICE_NOT_AVAILABLE => Kind::DeviceLost,
        cl::CL_MEM_OBJECT_ALLOCATION_FAILURE
        | cl::CL_OUT_OF_RESOURCES
        | cl::CL_OUT_OF_HOST_MEMORY
        | cl::CL_INVALID_BUFFER_SIZE => Kind::ResourceExhausted,
        cl::CL_BUILD_PROGRAM_FAILURE
        | cl::CL_COMPILE_PROGRAM_FAILURE
        | cl::CL_LINK_PROGRAM_FAILURE
        | cl::CL_INVALID_BINARY
        | cl::CL_INVALID_PROGRAM
        | cl::CL_INVALID_PROGRAM_EXECUTABLE => Kind::InvalidImage,
        cl::CL_INVALID_KERNEL_NAME => Kind::NotFound,
        // -60..=-48 are codes about kernels, their arguments and their grids.
        cl::CL_INVALID_VALUE | -60..=-48 => Kind::InvalidArgument,
        _ => Kind::BackendFailure,
    }
}

fn check(call: &'static str, code: cl_int) -> Answer {
    if code == CL_SUCCESS { Ok(()) } else { Err(Refusal { call, code }) }
}

/// The loader's entry points, found once a process.
///
/// # Errors
/// What was tried, and why it is not enough.
pub(crate) fn api() -> Result<&'static Api, &'static str> {
    static API: OnceLock<Result<Api, String>> = OnceLock::new();
    API.get_or_init(|| open(LIBRARIES)).as_ref().map_err(String::as_str)
}

fn open(names: &[&str]) -> Result<Api, String> {
    let mut library = None;
    for name in names {
        // SAFETY: the constructors of the ICD loader and of the drivers it knows run; that is what the user asks for by
        // using this backend.
        if let Ok(opened) = unsafe { libloading::Library::new(*name) } {
            library = Some((*name, opened));
            break;
        }
    }
    let Some((name, library)) = library else {
        return Err(format!("no OpenCL loader: tried {}", names.join(", ")));
    };
    let api =
        Api::resolve(&library).map_err(|entry| format!("{name} has no {entry}: it is older than OpenCL 1.2"));
    // Never closed: drivers leave threads behind, and what is owned points into it.
    std::mem::forget(library);
    api
}

/// A platform or a device: a name that is good for ever.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(*mut c_void);
// SAFETY: a name; calls take it on any thread.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

macro_rules! owned {
    ($($(#[$doc:meta])* $name:ident: $retain:ident, $release:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name { raw: *mut c_void, api: &'static Api }
        // SAFETY: calls about it may come from any thread (module rule).
        unsafe impl Send for $name {}
        // SAFETY: as above; what may not be called at once takes `&mut`.
        unsafe impl Sync for $name {}
        impl $name {
            /// Takes over the reference that a call made.
            fn made(api: &'static Api, raw: *mut c_void, call: &'static str, code: cl_int) -> Answer<Self> {
                check(call, code)?;
                // No driver answers null with success; one that did would be found here.
                if raw.is_null() { Err(Refusal { call, code }) } else { Ok($name { raw, api }) }
            }
        }
        impl Clone for $name {
            fn clone(&self) -> Self {
                // SAFETY: `raw` lives: `self` holds a reference. A live object can be retained.
                unsafe { (self.api.$retain)(self.raw) };
                $name { raw: self.raw, api: self.api }
            }
        }
        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the reference is `self`'s own, and this is its end.
                unsafe { (self.api.$release)(self.raw) };
            }
        }
    )*};
}

owned! {
    /// A context of one device.
    Context: clRetainContext, clReleaseContext;
    /// An in-order queue.
    Queue: clRetainCommandQueue, clReleaseCommandQueue;
    /// The end of a command.
    Event: clRetainEvent, clReleaseEvent;
    /// A buffer.
    Mem: clRetainMemObject, clReleaseMemObject;
    /// A built program.
    Program: clRetainProgram, clReleaseProgram;
    /// A kernel, with the arguments set last.
    Kernel: clRetainKernel, clReleaseKernel;
}

/// The length of an answer, then the answer.
fn query(call: &'static str, ask: impl Fn(usize, *mut c_void, *mut usize) -> cl_int) -> Answer<Vec<u8>> {
    let mut len = 0;
    check(call, ask(0, ptr::null_mut(), &mut len))?;
    let mut bytes = vec![0u8; len];
    if len > 0 {
        check(call, ask(len, bytes.as_mut_ptr().cast(), ptr::null_mut()))?;
    }
    Ok(bytes)
}

/// A number of whatever width the driver has; 0 where it answers nothing.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    let len = bytes.len().min(8);
    wide[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(wide)
}

/// A text without its end.
pub(crate) fn words(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

impl Api {
    /// All platforms, as the loader has them.
    pub(crate) fn platforms(&self) -> Answer<Vec<Id>> {
        let mut count = 0;
        // SAFETY: no list, and a place for its length.
        let code = unsafe { (self.clGetPlatformIDs)(0, ptr::null_mut(), &mut count) };
        check("clGetPlatformIDs", code)?;
        let mut all = vec![ptr::null_mut(); count as usize];
        // SAFETY: a list of `count` places.
        let code = unsafe { (self.clGetPlatformIDs)(count, all.as_mut_ptr(), &mut count) };
        check("clGetPlatformIDs", code)?;
        Ok(all.into_iter().take(count as usize).map(Id).collect())
    }

    /// All devices of a platform; none is no error.
    pub(crate) fn devices(&self, platform: Id) -> Answer<Vec<Id>> {
        let every = opencl_sys::CL_DEVICE_TYPE_ALL;
        let mut count = 0;
        // SAFETY: a platform's name, no list, and a place for its length.
        let code = unsafe { (self.clGetDeviceIDs)(platform.0, every, 0, ptr::null_mut(), &mut count) };
        if code == NO_DEVICE || (code == CL_SUCCESS && count == 0) {
            return Ok(Vec::new());
        }
        check("clGetDeviceIDs", code)?;
        let mut all = vec![ptr::null_mut(); count as usize];
        // SAFETY: a list of `count` places.
        let code = unsafe { (self.clGetDeviceIDs)(platform.0, every, count, all.as_mut_ptr(), &mut count) };
        check("clGetDeviceIDs", code)?;
        Ok(all.into_iter().take(count as usize).map(Id).collect())
    }

    /// A fact about a platform.
    pub(crate) fn platform_info(&self, platform: Id, what: cl_uint) -> Answer<Vec<u8>> {
        query("clGetPlatformInfo", |len, to, need| {
            // SAFETY: a platform's name; `to` has `len` bytes (`query`).
            unsafe { (self.clGetPlatformInfo)(platform.0, what, len, to, need) }
        })
    }

    /// A fact about a device.
    pub(crate) fn device_info(&self, device: Id, what: cl_uint) -> Answer<Vec<u8>> {
        query("clGetDeviceInfo", |len, to, need| {
            // SAFETY: a device's name; `to` has `len` bytes (`query`).
            unsafe { (self.clGetDeviceInfo)(device.0, what, len, to, need) }
        })
    }

    /// Whether all calls about shared virtual memory are there.
    pub(crate) fn has_svm(&self) -> bool {
        self.clSVMAlloc.is_some()
            && self.clSVMFree.is_some()
            && self.clEnqueueSVMMemcpy.is_some()
            && self.clEnqueueSVMMemFill.is_some()
            && self.clSetKernelArgSVMPointer.is_some()
    }

    /// A context of one device.
    pub(crate) fn context(&'static self, device: Id) -> Answer<Context> {
        let mut code = 0;
        // SAFETY: a list of one device, no properties, no callback.
        let raw =
            unsafe { (self.clCreateContext)(ptr::null(), 1, &device.0, None, ptr::null_mut(), &mut code) };
        Context::made(self, raw, "clCreateContext", code)
    }
}

impl Context {
    /// An in-order queue.
    pub(crate) fn queue(&self, device: Id, profiling: bool) -> Answer<Queue> {
        let bits = if profiling { opencl_sys::CL_QUEUE_PROFILING_ENABLE } else { 0 };
        let mut code = 0;
        // SAFETY: the context's own device, and bits that every driver has. The call of OpenCL 1.x is deprecated, and in
        // every loader.
        let raw = unsafe { (self.api.clCreateCommandQueue)(self.raw, device.0, bits, &mut code) };
        Queue::made(self.api, raw, "clCreateCommandQueue", code)
    }

    /// Shared virtual memory; null if there is none left. The driver gives no code.
    pub(crate) fn svm_alloc(&self, fine: bool, len: usize) -> *mut c_void {
        let fine = if fine { opencl_sys::CL_MEM_SVM_FINE_GRAIN_BUFFER } else { 0 };
        let Some(call) = self.api.clSVMAlloc else { return ptr::null_mut() };
        // SAFETY: the context lives, and an alignment of 0 is the driver's own.
        unsafe { call(self.raw, opencl_sys::CL_MEM_READ_WRITE | fine, len, 0) }
    }

    /// Gives shared virtual memory back.
    ///
    /// # Safety
    /// `base` came from [`Context::svm_alloc`] of this context, is given back once, and nothing uses it any more.
    pub(crate) unsafe fn svm_free(&self, base: *mut c_void) {
        if let Some(call) = self.api.clSVMFree {
            // SAFETY: the caller's promise.
            unsafe { call(self.raw, base) }
        }
    }

    /// A buffer.
    pub(crate) fn buffer(&self, len: usize) -> Answer<Mem> {
        let mut code = 0;
        let bits = opencl_sys::CL_MEM_READ_WRITE;
        // SAFETY: no host memory is handed over.
        let raw = unsafe { (self.api.clCreateBuffer)(self.raw, bits, len, ptr::null_mut(), &mut code) };
        Mem::made(self.api, raw, "clCreateBuffer", code)
    }

    /// A program from its source.
    pub(crate) fn program_of_source(&self, source: &[u8]) -> Answer<Program> {
        let (text, len, mut code) = (source.as_ptr().cast::<c_char>(), source.len(), 0);
        // SAFETY: one text and its length, which the driver copies.
        let raw = unsafe { (self.api.clCreateProgramWithSource)(self.raw, 1, &text, &len, &mut code) };
        Program::made(self.api, raw, "clCreateProgramWithSource", code)
    }

    /// A program from SPIR-V.
    pub(crate) fn program_of_il(&self, words: &[u8]) -> Answer<Program> {
        let call = self.api.clCreateProgramWithIL.ok_or(Refusal::missing("clCreateProgramWithIL"))?;
        let mut code = 0;
        // SAFETY: the bytes and their length, which the driver copies.
        let raw = unsafe { call(self.raw, words.as_ptr().cast(), words.len(), &mut code) };
        Program::made(self.api, raw, "clCreateProgramWithIL", code)
    }

    /// A program from what the device's own compiler made.
    pub(crate) fn program_of_binary(&self, device: Id, binary: &[u8]) -> Answer<Program> {
        let (bytes, len, mut of_binary, mut code) = (binary.as_ptr(), binary.len(), 0, 0);
        let create = self.api.clCreateProgramWithBinary;
        // SAFETY: lists of one device, one length, one binary and one status.
        let raw = unsafe { create(self.raw, 1, &device.0, &len, &bytes, &mut of_binary, &mut code) };
        let program = Program::made(self.api, raw, "clCreateProgramWithBinary", code)?;
        check("clCreateProgramWithBinary", of_binary).map(|()| program)
    }
}

impl Mem {
    /// A view of a part. `at` must be aligned as the device asks.
    pub(crate) fn part(&self, at: usize, len: usize) -> Answer<Mem> {
        let (region, mut code) = ([at, len], 0);
        let (bits, kind) = (opencl_sys::CL_MEM_READ_WRITE, opencl_sys::CL_BUFFER_CREATE_TYPE_REGION);
        let region = region.as_ptr().cast();
        // SAFETY: a live buffer and a region of two numbers.
        let raw = unsafe { (self.api.clCreateSubBuffer)(self.raw, bits, kind, region, &mut code) };
        Mem::made(self.api, raw, "clCreateSubBuffer", code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_names_what_was_tried() {
        let why = open(&["libnothing.so.1", "libnothing.so"]).err();
        assert_eq!(why.as_deref(), Some("no OpenCL loader: tried libnothing.so.1, libnothing.so"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_library_without_the_calls_names_the_first_one() {
        let why = open(&["libc.so.6"]).err();
        assert_eq!(why.as_deref(), Some("libc.so.6 has no clGetPlatformIDs: it is older than OpenCL 1.2"));
    }

    #[test]
    fn a_refusal_keeps_the_call_and_the_code() {
        let fault = Refusal { call: "clEnqueueX", code: -5 }.fault(Site::Copy);
        assert_eq!((fault.kind, fault.native), (Kind::ResourceExhausted, -5));
        assert_eq!(crate::text(fault.text).as_deref(), Some("clEnqueueX answered -5"));
        assert_eq!(kind(-9999), Kind::BackendFailure);
    }
}
