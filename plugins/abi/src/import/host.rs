//! The table that this host hands to plugins.
//!
//! # Safety
//! A cookie is the address of a [`Cell`], which is never freed; the rest is borrowed text for the call.
#![allow(unsafe_code)]

use super::cell::Cell;
use crate::{
    code,
    negotiate::host_table,
    tables::{HostV1, Status, Str},
};
use core::ffi::c_void;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    string::String,
    sync::OnceLock,
};
use wharf_core::fault::Kind;

pub(super) static TABLE: HostV1 = host_table(tell, fail, log, query);

/// Takes a plugin's log lines: level (1 error to 5 trace), target, text.
pub type LogSink = fn(i32, &str, &str);

static SINK: OnceLock<LogSink> = OnceLock::new();

/// Where log lines of plugins go; without one they go nowhere. The first call counts.
pub fn set_log_sink(sink: LogSink) {
    let _ = SINK.set(sink);
}

unsafe extern "C" fn tell(cookie: *mut c_void) {
    // SAFETY: null, or a cell of ours: the plugin hands back what it was given.
    if let Some(cell) = unsafe { cookie.cast::<Cell>().as_ref() } {
        cell.tell();
    }
}

unsafe extern "C" fn fail(cookie: *mut c_void, why: Status) {
    // SAFETY: as in `tell`.
    if let Some(cell) = unsafe { cookie.cast::<Cell>().as_ref() } {
        cell.failed(why);
    }
}

unsafe extern "C" fn log(level: i32, target: Str, text: Str) {
    let Some(sink) = SINK.get() else { return };
    let (target, text) = (words(target), words(text));
    let _ = catch_unwind(AssertUnwindSafe(|| sink(level, &target, &text)));
}

/// Bytes of one log text at most.
const LOG_LEN_MAX: u64 = 4096;

fn words(from: Str) -> String {
    if from.ptr.is_null() || from.len == 0 {
        return String::new();
    }
    // SAFETY: not null, and borrowed bytes for the call by the table's rules; no more of them than are there.
    let bytes = unsafe { core::slice::from_raw_parts(from.ptr, from.len.min(LOG_LEN_MAX) as usize) };
    String::from_utf8_lossy(bytes).into_owned()
}

unsafe extern "C" fn query(_: Str, _: u32, table: *mut *const c_void) -> Status {
    if !table.is_null() {
        // SAFETY: the plugin's own place, not null.
        unsafe { table.write(core::ptr::null()) };
    }
    code::plain(Kind::NotFound)
}
