//! An ELF image in the process, loaded from memory by the system's linker.
//!
//! The bytes go into an anonymous file, and its path in `/proc` is opened. glibc takes an object that is already
//! loaded under the same path for the one that is asked for, whatever lies there now, so every path is spelled in a
//! way that no other is: the bits of a counter as `//` or `/./` before the number.
//!
//! # Safety
//! A handle is closed once, by the owner. Loading runs the constructors of the image: an image is code that the
//! caller trusts as its own.
#![allow(unsafe_code)]

use crate::text::with_text;
use std::{
    ffi::{CStr, CString},
    fs::File,
    io::{self, Write},
    os::fd::{AsRawFd, FromRawFd},
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering::*},
};
use wharf_core::fault::{Blame, Fault, Kind, Site, Why};

/// A loaded image.
pub(crate) struct Object(NonNull<libc::c_void>);

// SAFETY: the linker's calls on a handle are safe from any thread.
unsafe impl Send for Object {}
// SAFETY: as for `Send`.
unsafe impl Sync for Object {}

impl Object {
    /// Loads an image that was checked.
    pub(crate) fn load(image: &[u8]) -> Result<Object, Fault> {
        let file = anonymous(image).map_err(|error| {
            let fault = Fault::new(Kind::BackendFailure, Blame::Driver, Site::Load, Why::Native, [0; 2]);
            with_text(fault.with_native(error.raw_os_error().unwrap_or(0)), format!("memfd: {error}"))
        })?;
        let path = path(file.as_raw_fd());
        // SAFETY: the path ends in a NUL; the caller trusts the image, whose constructors run now.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(Object).ok_or_else(|| {
            // The structure was checked, so this is about what it needs: a library or symbol that is not there.
            let fault = Fault::new(Kind::InvalidImage, Blame::Caller, Site::Load, Why::Native, [0; 2]);
            with_text(fault, format!("dlopen: {}", error()))
        })
    }

    /// The address of an exported symbol; `None` also where it is 0.
    pub(crate) fn symbol(&self, name: &str) -> Option<NonNull<libc::c_void>> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is open, the name ends in a NUL.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the handle is open and closed only here. Destructors of the image run now.
        unsafe { libc::dlclose(self.0.as_ptr()) };
    }
}

/// The bytes in a file without a name, which goes with its last descriptor and mapping.
fn anonymous(image: &[u8]) -> io::Result<File> {
    // SAFETY: the name ends in a NUL.
    let raw = unsafe { libc::memfd_create(c"wharf-image".as_ptr(), libc::MFD_CLOEXEC) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that nobody else has.
    let mut file = unsafe { File::from_raw_fd(raw) };
    file.write_all(image)?;
    Ok(file)
}

/// A path of the descriptor that no earlier call has answered.
fn path(descriptor: i32) -> CString {
    static TURN: AtomicU64 = AtomicU64::new(1);
    let mut turn = TURN.fetch_add(1, Relaxed);
    let mut path = String::from("/proc/self/fd");
    while turn != 0 {
        path.push_str(if turn & 1 == 0 { "/" } else { "/." });
        turn >>= 1;
    }
    path.push('/');
    path.push_str(&descriptor.to_string());
    CString::new(path).unwrap_or_default()
}

/// The linker's words about this thread's last call.
fn error() -> String {
    // SAFETY: answers null or a text that lives until this thread's next call of the linker.
    let words = unsafe { libc::dlerror() };
    if words.is_null() {
        return "no reason given".into();
    }
    // SAFETY: as above; the text ends in a NUL.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}
