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

/// Has the system forget the pages of a file that nobody maps.
///
/// # Errors
/// The system's.
pub fn drop_cached(file: &File) -> std::io::Result<()> {
    file.sync_all()?;
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        // SAFETY: an open file; the call changes no contents.
        let code = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if code != 0 {
            return Err(std::io::Error::from_raw_os_error(code));
        }
    }
    Ok(())
}

/// A file to be read past the cache.
///
/// # Errors
/// The system's; `Unsupported` where there is no such thing.
pub fn open_direct(path: &Path) -> std::io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        File::options().read(true).custom_flags(libc::O_DIRECT).open(path)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Reads at an offset.
///
/// # Errors
/// The system's.
pub fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, bytes, at);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, bytes, at);
}

/// Memory that begins at a page.
pub struct Aligned {
    room: Vec<u8>,
    begin: usize,
    len: usize,
}

impl Aligned {
    /// So many bytes, touched.
    pub fn new(len: usize) -> Aligned {
        let room = vec![1; len + 4096];
        let begin = room.as_ptr().align_offset(4096);
        Aligned { room, begin, len }
    }
    /// The bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.room[self.begin..self.begin + self.len]
    }
}

/// Begins to measure the most memory that this process has at once; what it has now, where the system tells.
pub fn peak_from_now() -> Option<u64> {
    // proc(5): 5 resets the peak.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

/// The most memory since then, in bytes.
pub fn peak() -> Option<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
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
