//! Reading and writing structs whose two sides may be of different age: by the smaller size, the rest zero.
//!
//! # Safety
//! The functions are unsafe: their callers pass on the promise of the ABI that a struct lies where a pointer says,
//! at least as long as its `struct_size`. Null and misaligned pointers and short sizes are found here.
#![allow(unsafe_code)]

use crate::tables::{Ext, Sized32, To, ext_flag};
use wharf_core::fault::{Fault, Kind, Site, Why};

/// Why a struct was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    Null,
    Misaligned,
    Short { size: u32, least: u32 },
    Long { size: u32 },
}

/// No struct of the ABI is longer; a greater size is garbage.
pub(crate) const STRUCT_LEN_MAX: u32 = 4096;

impl Bad {
    pub(crate) fn fault(self, site: Site) -> Fault {
        let (why, values) = match self {
            Bad::Null => (Why::Zero, [1, 0]),
            Bad::Misaligned => (Why::Multiple, [1, 8]),
            Bad::Short { size, least } => (Why::Mismatch, [size.into(), least.into()]),
            Bad::Long { size } => (Why::Limit, [size.into(), STRUCT_LEN_MAX.into()]),
        };
        Fault::caller(Kind::InvalidArgument, site, why, values)
    }
}

/// The size a struct says it has, if that can be.
///
/// # Safety
/// Null, or the struct lies there.
pub(crate) unsafe fn size<T: Sized32>(from: To<T>) -> Result<u32, Bad> {
    if from.0.is_null() {
        return Err(Bad::Null);
    }
    if !from.0.is_aligned() {
        return Err(Bad::Misaligned);
    }
    // SAFETY: not null, aligned, and by the caller's promise a struct that begins with its size.
    let size = unsafe { from.0.cast::<u32>().read() };
    match size {
        size if (size as usize) < T::FIRST => Err(Bad::Short { size, least: T::FIRST as u32 }),
        size if size > STRUCT_LEN_MAX => Err(Bad::Long { size }),
        size => Ok(size),
    }
}

/// No field of a table crosses a word, so a size that is cut down to words cuts no pointer in half.
pub(crate) const fn whole_words(len: usize) -> usize {
    len & !7
}

/// A copy in our own version; what the other side does not know is zero. `struct_size` keeps the other side's size.
///
/// # Safety
/// Null, or the struct lies there with the size that it says.
pub(crate) unsafe fn read<T: Sized32>(from: To<T>) -> Result<T, Bad> {
    // SAFETY: the caller's promise is ours.
    let size = unsafe { size(from) }?;
    let mut own = T::empty();
    let len = whole_words(size_of::<T>().min(size as usize));
    // SAFETY: `len` bytes lie there by the caller's promise and fit `own`; its bytes come from a `T` of some age,
    // whose later fields are integers and nullable pointers, so any prefix of it over zeroes is a `T`.
    unsafe { core::ptr::copy_nonoverlapping(from.0.cast::<u8>(), (&raw mut own).cast::<u8>(), len) };
    Ok(own)
}

/// Writes as much as the other side knows; its `struct_size` stays.
///
/// # Safety
/// Null, or a struct of the size that it says lies there and is the caller's to be written.
pub(crate) unsafe fn write<T: Sized32>(to: To<T>, value: &T) -> Result<(), Bad> {
    // SAFETY: the caller's promise is ours.
    let size = unsafe { size(to) }?;
    let len = size_of::<T>().min(size as usize);
    // SAFETY: 4 is below `T::FIRST`, so inside both.
    let from = unsafe { core::ptr::from_ref(value).cast::<u8>().add(4) };
    // SAFETY: as above.
    let target = unsafe { to.as_mut().cast::<u8>().add(4) };
    // SAFETY: `len` is at most either size; `value` is a reference of ours, so the two do not overlap.
    unsafe { core::ptr::copy_nonoverlapping(from, target, len - 4) };
    Ok(())
}

/// Links of a chain that are looked at; a longer one is garbage or a ring.
pub(crate) const CHAIN_LEN_MAX: usize = 64;

/// Walks an extension chain: an unknown link that is required is `Unsupported`. No kind is known yet.
///
/// # Safety
/// Null, or a chain of links of which each lies where its predecessor says.
pub(crate) unsafe fn chain(first: *const Ext, site: Site) -> Result<(), Fault> {
    let mut next = first;
    for _ in 0..CHAIN_LEN_MAX {
        if next.is_null() {
            return Ok(());
        }
        if !next.is_aligned() {
            return Err(Bad::Misaligned.fault(site));
        }
        // SAFETY: not null, aligned, and a link by the caller's promise.
        let link = unsafe { next.read() };
        if link.flags & ext_flag::REQUIRED != 0 {
            return Err(Fault::backend(Kind::Unsupported, site, Why::Missing, [link.kind.into(), 0]));
        }
        next = link.next.cast();
    }
    Err(Fault::caller(
        Kind::InvalidArgument,
        site,
        Why::Limit,
        [CHAIN_LEN_MAX as u64 + 1, CHAIN_LEN_MAX as u64],
    ))
}

/// Borrowed values.
///
/// # Safety
/// `count` values lie at `ptr`, unless it is null, and stay for `'a`.
pub(crate) unsafe fn list<'a, T>(ptr: *const T, count: u64, site: Site) -> Result<&'a [T], Fault> {
    if count == 0 {
        return Ok(&[]);
    }
    if ptr.is_null() || !ptr.is_aligned() {
        return Err(Bad::Null.fault(site));
    }
    let most = isize::MAX as u64 / size_of::<T>() as u64;
    if count > most {
        return Err(Fault::caller(Kind::InvalidArgument, site, Why::Limit, [count, most]));
    }
    // SAFETY: not null, aligned, a length that a slice may have, and values by the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(ptr, count as usize) })
}

/// A place for `count` values; none if `count` is 0.
///
/// # Safety
/// `count` values lie at `ptr`, unless it is null, are initialised, nobody else's, and stay for `'a`.
pub(crate) unsafe fn space<'a, T>(ptr: *mut T, count: u64, site: Site) -> Result<&'a mut [T], Fault> {
    if count == 0 {
        return Ok(&mut []);
    }
    if ptr.is_null() || !ptr.is_aligned() {
        return Err(Bad::Null.fault(site));
    }
    let most = isize::MAX as u64 / size_of::<T>() as u64;
    if count > most {
        return Err(Fault::caller(Kind::InvalidArgument, site, Why::Limit, [count, most]));
    }
    // SAFETY: not null, aligned, a length that a slice may have, and the caller's own by its promise.
    Ok(unsafe { core::slice::from_raw_parts_mut(ptr, count as usize) })
}

/// Writes an answer.
///
/// # Safety
/// Null, or the caller's own place for a `T`.
pub(crate) unsafe fn put<T>(to: *mut T, value: T, site: Site) -> Result<(), Fault> {
    if to.is_null() || !to.is_aligned() {
        return Err(Bad::Null.fault(site));
    }
    // SAFETY: not null, aligned, and the caller's own by its promise.
    unsafe { to.write(value) };
    Ok(())
}
