//! Whether a file is reached over a network.
//!
//! # Safety
//! The one system call writes into a place made for its answer.
#![allow(unsafe_code)]

use std::path::Path;

/// Magic numbers of file systems (`linux/magic.h`, and Lustre's own): NFS, CIFS, SMB2, SMB, 9P, FUSE, Ceph, AFS, Lustre.
#[cfg(target_os = "linux")]
const REMOTE: [u32; 9] = [
    0x6969,
    0xFF53_4D42,
    0xFE53_4D42,
    0x517B,
    0x0102_1997,
    0x6573_5546,
    0x00C3_6400,
    0x5346_414F,
    0x0BD0_0BD0,
];

#[cfg(target_os = "linux")]
pub(super) fn is_remote(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(name) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut facts = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: a name that ends with 0, and a place for the answer.
    if unsafe { libc::statfs(name.as_ptr(), facts.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call succeeded, so it wrote the answer.
    let facts = unsafe { facts.assume_init() };
    REMOTE.contains(&(facts.f_type as u32))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_remote(_: &Path) -> bool {
    false
}
