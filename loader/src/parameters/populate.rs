//! Pages of a mapped file that are brought in before they are touched: a file that another process has cut is an error
//! then, where a touch would end the process. The window between this and the touch is left.

use memmap2::{Mmap, MmapMut};
use std::{fs::File, io};
use wharf_core::fault::{Blame, Fault, Kind, Site, Why};

#[cfg(target_os = "linux")]
pub(super) fn read(map: &Mmap, at: u64, len: u64) -> io::Result<()> {
    known(map.advise_range(memmap2::Advice::PopulateRead, at as usize, len as usize))
}

#[cfg(target_os = "linux")]
pub(super) fn write(map: &MmapMut, at: u64, len: u64, write: bool) -> io::Result<()> {
    let advice = if write { memmap2::Advice::PopulateWrite } else { memmap2::Advice::PopulateRead };
    known(map.advise_range(advice, at as usize, len as usize))
}

/// Kernels before 5.14 do not know the advice: there the length of the file is all that can be looked at.
#[cfg(target_os = "linux")]
fn known(advised: io::Result<()>) -> io::Result<()> {
    match advised {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        other => other,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn read(_: &Mmap, _: u64, _: u64) -> io::Result<()> {
    Ok(())
}
#[cfg(not(target_os = "linux"))]
pub(super) fn write(_: &MmapMut, _: u64, _: u64, _: bool) -> io::Result<()> {
    Ok(())
}

/// Why bytes up to `end` of a file are not there.
pub(super) fn fault(error: &io::Error, file: &File, end: u64) -> Fault {
    let now = file.metadata().map_or(end, |metadata| metadata.len());
    if now < end {
        return Fault::new(Kind::DataLoss, Blame::Caller, Site::Read, Why::PastEnd, [end, now]);
    }
    let native = error.raw_os_error().unwrap_or_default();
    Fault::new(Kind::Io, Blame::Driver, Site::Read, Why::Native, [end, now]).with_native(native)
}
