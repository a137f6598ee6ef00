//! Mapped files, memory by address, libraries: what a baseline needs and safe Rust lacks.
//!
//! # Safety
//! Files that are mapped were made by the benchmark, which does not change them. Libraries are plugins of this tree and
//! stay loaded.
#![allow(unsafe_code)]

use crate::args::Fail;
use std::{
    ffi::{CStr, CString, c_void},
    fs::File,
    path::Path,
};
use wharf::Buffer;

/// A fresh map of a file.
///
/// # Errors
/// The system's.
pub fn map(file: &File) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: as this file's `# Safety` says.
    unsafe { memmap2::Mmap::map(file) }
}

/// The bytes of a buffer of the host device, where they are.
///
/// # Errors
/// If the memory was freed.
///
/// # Safety
/// The buffer is of a device that works in process memory, outlives the slice, and nothing else uses its bytes meanwhile.
#[allow(clippy::mut_from_ref)] // The bytes are not in `buffer`, which is only their name.
pub unsafe fn bytes_of(buffer: &Buffer) -> wharf::Result<&mut [u8]> {
    let at = std::ptr::with_exposed_provenance_mut(buffer.address()? as usize);
    // SAFETY: the caller's promise: so many bytes are there, and ours alone.
    Ok(unsafe { std::slice::from_raw_parts_mut(at, buffer.len() as usize) })
}

/// Has the allocator give back what it keeps of freed memory, so that the next block is fresh; where it can be told to.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: frees nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Opens a library at once, with nothing shared, for ever.
///
/// # Errors
/// The linker's words.
pub fn open(path: &Path) -> Result<Opened, Fail> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: as this file's `# Safety` says.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(words()) } else { Ok(Opened(handle)) }
}

fn words() -> Fail {
    // SAFETY: no argument; the words stay until this thread's next call.
    let words = unsafe { libc::dlerror() };
    if words.is_null() {
        return "the linker gives no reason".into();
    }
    // SAFETY: the linker's words, not null, end with a NUL.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned().into()
}

/// A library that is open.
pub struct Opened(*mut c_void);

impl Opened {
    /// The address of a symbol.
    ///
    /// # Errors
    /// The linker's words.
    pub fn symbol(&self, name: &str) -> Result<*mut c_void, Fail> {
        let name = CString::new(name)?;
        // SAFETY: an open library and a name that ends with a NUL.
        let at = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if at.is_null() { Err(words()) } else { Ok(at) }
    }
}
