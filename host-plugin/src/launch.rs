//! Running a kernel over its grid of groups.
//!
//! # Safety
//! The kernel's word is the address of an [`Entry`] of a program that is loaded: core hands over only words it got
//! from this device, and unloads a program when nothing that uses it can still run. What the kernel does with its
//! arguments is the caller's promise.
#![allow(unsafe_code)]

use crate::{
    limits::{ALONE_NS, ARGS_MAX, SHARED_MAX},
    pool::Pool,
    scratch, spread, times,
};
use std::{ptr, sync::Arc};
use wharf_core::{
    device::Param,
    fault::{Fault, Kind, Site, Why},
};
use wharf_kernel::{KernelFn, WorkGroup};

/// A kernel of a loaded program; its address is the kernel's word.
pub(crate) struct Entry {
    pub(crate) name: Box<str>,
    pub(crate) call: KernelFn,
    pub(crate) args_len: u32,
    /// Bytes that the kernel reads: where the last parameter ends; 0 if that is not known.
    pub(crate) needs: u32,
    /// Most work-items in a group.
    pub(crate) group_max: u32,
    /// Bytes of static shared memory.
    pub(crate) fixed: u32,
    pub(crate) params: Box<[Param]>,
}

/// A launch without its arguments.
#[derive(Clone, Copy)]
pub(crate) struct Launch {
    call: KernelFn,
    groups: [u32; 3],
    size: [u32; 3],
    shared: u32,
    fixed: u32,
}

impl Launch {
    /// Resolves the kernel; refuses what would not run.
    #[inline]
    pub(crate) fn new(
        kernel: u64,
        groups: [u32; 3],
        size: [u32; 3],
        shared: u32,
        args: &[u8],
    ) -> Result<Launch, Fault> {
        let items = size.iter().try_fold(1_u32, |n, x| n.checked_mul(*x)).unwrap_or(u32::MAX);
        let total = groups.iter().try_fold(1_u64, |n, x| n.checked_mul(u64::from(*x))).unwrap_or(u64::MAX);
        let refuse = |why, values| Err(Fault::caller(Kind::InvalidArgument, Site::Launch, why, values));
        if kernel == 0 || items == 0 || total == 0 {
            return refuse(Why::Zero, [if kernel == 0 { 0 } else { 1 }, 0]);
        }
        if total > u64::MAX / 2 {
            return refuse(Why::Overflow, [groups[0].into(), groups[1].into()]);
        }
        // SAFETY: the word is the address of an entry of a loaded program (module rule).
        let entry = unsafe { &*(ptr::with_exposed_provenance::<Entry>(kernel as usize)) };
        if items > entry.group_max {
            return refuse(Why::Limit, [items.into(), entry.group_max.into()]);
        }
        if args.len() < entry.needs as usize {
            return refuse(Why::Mismatch, [args.len() as u64, entry.args_len.into()]);
        }
        if args.len() > ARGS_MAX as usize {
            return refuse(Why::Limit, [args.len() as u64, ARGS_MAX.into()]);
        }
        if shared > SHARED_MAX {
            return refuse(Why::Limit, [shared.into(), SHARED_MAX.into()]);
        }
        Ok(Launch { call: entry.call, groups, size, shared, fixed: entry.fixed })
    }

    fn total(&self) -> u64 {
        self.groups.iter().map(|n| u64::from(*n)).product()
    }

    /// Runs a launch of one group without shared memory. `false`: it is not one.
    #[inline(always)]
    pub(crate) fn small(&self, args: *const u8) -> bool {
        let small = self.groups == [1; 3] && self.shared | self.fixed == 0;
        if small {
            let none = scratch::EMPTY.as_ptr();
            let group = self.group([0; 3], none, none);
            // SAFETY: the entry's function is a kernel of a program that stays loaded (module rule); `args` are the
            // captured arguments, `group` lives for the call.
            unsafe { (self.call)(args, &raw const group) };
        }
        small
    }

    /// Runs all groups; returns when all have ended.
    pub(crate) fn run(&self, args: *const u8, pool: &Arc<Pool>) -> Result<(), Fault> {
        if self.groups == [1; 3] { self.span(args, 0, 1) } else { self.grid(args, pool) }
    }

    /// Begins alone, since most grids are small; when that takes long, shares what is left.
    fn grid(&self, args: *const u8, pool: &Arc<Pool>) -> Result<(), Fault> {
        let total = self.total();
        if pool.width() == 1 {
            return self.span(args, 0, total);
        }
        let begin = times::now();
        let (mut done, mut step) = (0, 1);
        while done < total {
            let end = (done + step).min(total);
            self.span(args, done, end)?;
            done = end;
            step *= 2;
            if times::now() - begin > ALONE_NS {
                break;
            }
        }
        let left = total - done;
        if left == 0 {
            return Ok(());
        }
        // Four pieces a worker even out what takes different time; fewer share memory pages better.
        let size = left.div_ceil(4 * pool.width() as u64);
        let args = Args(args);
        let failed = std::sync::OnceLock::new();
        spread::share(pool, 0, left.div_ceil(size), &|piece| {
            let first = done + piece * size;
            if let Err(fault) = self.span(args.get(), first, (first + size).min(total)) {
                let _ = failed.set(fault);
            }
        });
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// Runs the groups from number `first` to `end` on this thread, x fastest.
    fn span(&self, args: *const u8, first: u64, end: u64) -> Result<(), Fault> {
        if self.shared | self.fixed == 0 {
            let none = scratch::EMPTY.as_ptr();
            self.groups_with(args, first, end, none, none);
            return Ok(());
        }
        let fixed = self.fixed.next_multiple_of(64) as usize;
        scratch::with(fixed + self.shared as usize, |base| {
            self.groups_with(args, first, end, base, base.wrapping_add(fixed));
        })
    }

    #[inline(always)]
    fn group(&self, id: [u32; 3], fixed: *mut u8, shared: *mut u8) -> WorkGroup {
        WorkGroup {
            struct_size: size_of::<WorkGroup>() as u32,
            flags: 0,
            id,
            count: self.groups,
            size: self.size,
            shared_len: self.shared,
            shared,
            fixed,
            fixed_len: self.fixed.into(),
            rpc: None,
            rpc_context: ptr::null(),
        }
    }

    fn groups_with(&self, args: *const u8, first: u64, end: u64, fixed: *mut u8, shared: *mut u8) {
        let [nx, ny, _] = self.groups.map(u64::from);
        let id = [(first % nx) as u32, (first / nx % ny) as u32, (first / nx / ny) as u32];
        let mut group = self.group(id, fixed, shared);
        for _ in first..end {
            // SAFETY: as in `small`.
            unsafe { (self.call)(args, &raw const group) };
            group.id[0] += 1;
            if group.id[0] == self.groups[0] {
                group.id[0] = 0;
                group.id[1] += 1;
                if group.id[1] == self.groups[1] {
                    group.id[1] = 0;
                    group.id[2] += 1;
                }
            }
        }
    }
}

/// The captured arguments, as several workers see them.
struct Args(*const u8);

// SAFETY: kernels only read the block (contract of a kernel), and it outlives the spread.
unsafe impl Sync for Args {}

impl Args {
    fn get(&self) -> *const u8 {
        self.0
    }
}
