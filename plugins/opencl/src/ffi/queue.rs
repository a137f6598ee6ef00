//! Commands of a queue, and the events that they end with.
//!
//! # Safety
//! As [`ffi`](super): handles are owned, lists and values are borrowed for the call.
#![allow(unsafe_code)]

use super::{Answer, Api, Event, Kernel, Mem, Queue, Refusal, check};
use opencl_sys::{CL_COMPLETE, CL_FALSE, CL_SUCCESS, cl_event, cl_int, cl_uint};
use std::{ffi::c_void, ptr};

/// Where a command's event goes, if one is wanted.
struct Ended {
    raw: cl_event,
    wanted: bool,
}

impl Ended {
    fn new(wanted: bool) -> Ended {
        Ended { raw: ptr::null_mut(), wanted }
    }
    fn place(&mut self) -> *mut cl_event {
        if self.wanted { &mut self.raw } else { ptr::null_mut() }
    }
    fn event(self, api: &'static Api, call: &'static str, code: cl_int) -> Answer<Option<Event>> {
        if self.wanted {
            Event::made(api, self.raw, call, code).map(Some)
        } else {
            check(call, code).map(|()| None)
        }
    }
}

/// What an enqueued command answers: its event, if one was wanted.
pub(crate) type Enqueued = Answer<Option<Event>>;

impl Queue {
    /// Sends what was enqueued to the device.
    pub(crate) fn flush(&self) -> Answer {
        // SAFETY: the queue lives.
        check("clFlush", unsafe { (self.api.clFlush)(self.raw) })
    }

    /// An event for all that was enqueued.
    pub(crate) fn marker(&self) -> Answer<Event> {
        let mut raw = ptr::null_mut();
        // SAFETY: no list, and a place for the event.
        let code = unsafe { (self.api.clEnqueueMarkerWithWaitList)(self.raw, 0, ptr::null(), &mut raw) };
        Event::made(self.api, raw, "clEnqueueMarkerWithWaitList", code)
    }

    /// What comes next waits for this event of the same context.
    pub(crate) fn barrier(&self, after: &Event) -> Answer {
        let call = self.api.clEnqueueBarrierWithWaitList;
        // SAFETY: a list of one live event.
        check("clEnqueueBarrierWithWaitList", unsafe { call(self.raw, 1, &after.raw, ptr::null_mut()) })
    }

    /// Copies between shared virtual memory and memory of the process, in any direction.
    ///
    /// # Safety
    /// Both sides are good for `len` bytes until the command has ended, and do not overlap.
    pub(crate) unsafe fn svm_copy(
        &self,
        to: *mut c_void,
        from: *const c_void,
        len: usize,
        tell: bool,
    ) -> Enqueued {
        let call = self.api.clEnqueueSVMMemcpy.ok_or(Refusal::missing("clEnqueueSVMMemcpy"))?;
        let mut ended = Ended::new(tell);
        // SAFETY: the caller's promise; no list.
        let code = unsafe { call(self.raw, CL_FALSE, to, from, len, 0, ptr::null(), ended.place()) };
        ended.event(self.api, "clEnqueueSVMMemcpy", code)
    }

    /// Fills shared virtual memory; the pattern is copied before the call returns.
    ///
    /// # Safety
    /// `to` is good for `len` bytes until the command has ended.
    pub(crate) unsafe fn svm_fill(
        &self,
        to: *mut c_void,
        pattern: &[u8],
        len: usize,
        tell: bool,
    ) -> Enqueued {
        let call = self.api.clEnqueueSVMMemFill.ok_or(Refusal::missing("clEnqueueSVMMemFill"))?;
        let mut ended = Ended::new(tell);
        let (bytes, size) = (pattern.as_ptr().cast(), pattern.len());
        // SAFETY: the caller's promise; no list.
        let code = unsafe { call(self.raw, to, bytes, size, len, 0, ptr::null(), ended.place()) };
        ended.event(self.api, "clEnqueueSVMMemFill", code)
    }

    /// From a buffer into memory of the process.
    ///
    /// # Safety
    /// `to` is good for `len` bytes until the command has ended.
    pub(crate) unsafe fn read(
        &self,
        from: &Mem,
        at: usize,
        to: *mut c_void,
        len: usize,
        tell: bool,
    ) -> Enqueued {
        let (call, mut ended) = (self.api.clEnqueueReadBuffer, Ended::new(tell));
        // SAFETY: the caller's promise; no list.
        let code = unsafe { call(self.raw, from.raw, CL_FALSE, at, len, to, 0, ptr::null(), ended.place()) };
        ended.event(self.api, "clEnqueueReadBuffer", code)
    }

    /// From memory of the process into a buffer.
    ///
    /// # Safety
    /// `from` is good for `len` bytes until the command has ended.
    pub(crate) unsafe fn write(
        &self,
        to: &Mem,
        at: usize,
        from: *const c_void,
        len: usize,
        tell: bool,
    ) -> Enqueued {
        let (call, mut ended) = (self.api.clEnqueueWriteBuffer, Ended::new(tell));
        // SAFETY: the caller's promise; no list.
        let code = unsafe { call(self.raw, to.raw, CL_FALSE, at, len, from, 0, ptr::null(), ended.place()) };
        ended.event(self.api, "clEnqueueWriteBuffer", code)
    }

    /// From buffer to buffer, or inside one without an overlap.
    pub(crate) fn copy(&self, from: (&Mem, usize), to: (&Mem, usize), len: usize, tell: bool) -> Enqueued {
        let (call, mut ended) = (self.api.clEnqueueCopyBuffer, Ended::new(tell));
        let ((from, from_at), (to, to_at)) = (from, to);
        // SAFETY: two live buffers, whose bounds the driver checks; no list.
        let code =
            unsafe { call(self.raw, from.raw, to.raw, from_at, to_at, len, 0, ptr::null(), ended.place()) };
        ended.event(self.api, "clEnqueueCopyBuffer", code)
    }

    /// Fills a part of a buffer; the pattern is copied before the call returns.
    pub(crate) fn fill(&self, to: &Mem, at: usize, pattern: &[u8], len: usize, tell: bool) -> Enqueued {
        let (call, mut ended) = (self.api.clEnqueueFillBuffer, Ended::new(tell));
        let (bytes, size) = (pattern.as_ptr().cast(), pattern.len());
        // SAFETY: a live buffer, whose bounds the driver checks; no list.
        let code = unsafe { call(self.raw, to.raw, bytes, size, at, len, 0, ptr::null(), ended.place()) };
        ended.event(self.api, "clEnqueueFillBuffer", code)
    }

    /// Launches a kernel with the arguments set last.
    ///
    /// # Safety
    /// What the arguments lead to is good until the command has ended.
    pub(crate) unsafe fn launch(
        &self,
        kernel: &mut Kernel,
        global: [usize; 3],
        local: [usize; 3],
        tell: bool,
    ) -> Enqueued {
        let (call, mut ended) = (self.api.clEnqueueNDRangeKernel, Ended::new(tell));
        let (global, local) = (global.as_ptr(), local.as_ptr());
        // SAFETY: three numbers each; no offset and no list; else the caller's promise.
        let code = unsafe {
            call(self.raw, kernel.raw, 3, ptr::null(), global, local, 0, ptr::null(), ended.place())
        };
        ended.event(self.api, "clEnqueueNDRangeKernel", code)
    }
}

impl Event {
    /// Sleeps in the driver until the command has ended; an error if it failed.
    pub(crate) fn wait(&self) -> Answer {
        // SAFETY: a list of one live event.
        let code = unsafe { (self.api.clWaitForEvents)(1, &self.raw) };
        check("clWaitForEvents", code)
    }

    /// `CL_COMPLETE`, a positive number for what has not ended, or the driver's code of what failed.
    pub(crate) fn status(&self) -> Answer<cl_int> {
        let what = opencl_sys::CL_EVENT_COMMAND_EXECUTION_STATUS;
        let mut status: cl_int = 0;
        let (to, len) = ((&raw mut status).cast(), size_of::<cl_int>());
        // SAFETY: a live event, and a place for the number that it has.
        let code = unsafe { (self.api.clGetEventInfo)(self.raw, what, len, to, ptr::null_mut()) };
        check("clGetEventInfo", code).map(|()| status)
    }

    /// A time of a command of a profiling queue that has ended, in nanoseconds.
    pub(crate) fn time(&self, what: cl_uint) -> Answer<u64> {
        let mut time: u64 = 0;
        let (to, len) = ((&raw mut time).cast(), size_of::<u64>());
        // SAFETY: a live event, and a place for the number that it has.
        let code = unsafe { (self.api.clGetEventProfilingInfo)(self.raw, what, len, to, ptr::null_mut()) };
        check("clGetEventProfilingInfo", code).map(|()| time)
    }

    /// Calls `told` with the status once the command has ended or failed: on a thread of the driver's, or here.
    pub(crate) fn on_end<F: FnOnce(cl_int) + Send + 'static>(&self, told: F) -> Answer {
        unsafe extern "system" fn notify<F: FnOnce(cl_int)>(_: cl_event, status: cl_int, user: *mut c_void) {
            // SAFETY: `on_end` leaked this box for this one call.
            let told = unsafe { Box::from_raw(user.cast::<F>()) };
            told(status);
        }
        let user = Box::into_raw(Box::new(told));
        let call = self.api.clSetEventCallback;
        // SAFETY: `notify` takes the box that it gets, which is called once, on any thread: `F` is `Send`.
        let code = unsafe { call(self.raw, CL_COMPLETE, Some(notify::<F>), user.cast()) };
        if code != CL_SUCCESS {
            // SAFETY: refused, so nobody else has the box.
            drop(unsafe { Box::from_raw(user) });
        }
        check("clSetEventCallback", code)
    }
}
