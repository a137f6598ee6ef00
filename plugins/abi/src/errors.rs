//! The plugin's store of error texts, and the two functions by which the host reads it. In a program with several
//! backends linked in they share one store; keys tell them apart.
//!
//! # Safety
//! `error_text` writes through the caller's pointers, by the promise of its place in the descriptor table.
#![allow(unsafe_code)]

use crate::{code, guard, tables::Status};
use std::string::String;
use wharf_core::{
    fault::{Fault, Kind, Site, Why},
    texts::Texts,
};

static ERRORS: Texts = Texts::new();

/// Where a backend keeps its own words for faults, by [`Fault::text`].
pub type TextSource = fn(u32) -> Option<String>;

/// A fault as a status, with its words and the backend's own.
#[cold]
pub(crate) fn status(fault: &Fault, source: TextSource) -> Status {
    let own = if fault.text == 0 { None } else { source(fault.text) };
    let text = match own {
        Some(own) => format!("{fault}: {own}"),
        None => fault.to_string(),
    };
    with_text(fault, text)
}

/// A fault as a status with these words.
pub(crate) fn with_text(fault: &Fault, text: String) -> Status {
    Status { code: code::code(fault.kind, fault.blame), native: fault.native as u32, err: keep(text) }
}

/// Keeps a text and answers its key.
pub(crate) fn keep(text: String) -> u64 {
    u64::from(ERRORS.keep(text))
}

/// No texts beside the faults.
pub fn no_source(_: u32) -> Option<String> {
    None
}

/// [`PluginV1::error_text`](crate::tables::PluginV1).
pub(crate) unsafe extern "C" fn error_text(err: u64, buf: *mut u8, cap: u64, len: *mut u64) -> Status {
    guard::cold(None, || {
        if len.is_null() || (buf.is_null() && cap != 0) {
            let fault = Fault::caller(
                Kind::InvalidArgument,
                Site::Plugin,
                Why::Zero,
                [if len.is_null() { 3 } else { 1 }, 0],
            );
            return status(&fault, no_source);
        }
        let found = ERRORS.read(u32::try_from(err).unwrap_or(0), |text| {
            let n = text.len().min(usize::try_from(cap).unwrap_or(usize::MAX));
            if n > 0 {
                // SAFETY: the caller gave `cap >= n` bytes at `buf`, which is not null, and they are its own.
                unsafe { core::ptr::copy_nonoverlapping(text.as_ptr(), buf, n) };
            }
            // SAFETY: the caller's place for the length, not null.
            unsafe { len.write(text.len() as u64) };
        });
        if found.is_some() { Status::OK } else { code::plain(Kind::NotFound) }
    })
}

/// [`PluginV1::error_drop`](crate::tables::PluginV1).
pub(crate) unsafe extern "C" fn error_drop(err: u64) {
    let _ = guard::cold(None, || {
        ERRORS.drop(u32::try_from(err).unwrap_or(0));
        Status::OK
    });
}
