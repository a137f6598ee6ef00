//! Freed memory that a device keeps for the next allocation of the same kind: memory that was touched once costs no
//! page faults, and a driver's own allocate is slow. Off until limits are set.
//!
//! A block goes into the pool when it would have gone back to the backend, that is after its last use. It keeps the slot
//! of its record, so the pool needs no memory of its own; its handle is stale and its range has left the map.
//! An allocation takes a block of exactly its length, type, access and usage that is aligned enough, the last freed
//! first. Beyond the limits the block that lay longest goes. A backend that is out of memory gets everything back before
//! it is asked again.

use super::Runtime;
use crate::{
    device::{Block, Device, Want},
    env::{Env, Mutex},
    fault::{Fault, Site},
    handle::Body,
    record::{Origin, Record, state},
};
use core::sync::atomic::Ordering::*;

/// How much a device's pool keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolLimits {
    /// Bytes in all; 0: no pool.
    pub bytes: u64,
    /// Blocks in all.
    pub blocks: u32,
    /// Bytes of a block; larger ones go straight back.
    pub largest: u64,
}

/// What a device's pool holds and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Bytes that it keeps.
    pub bytes: u64,
    /// Blocks that it keeps.
    pub blocks: u32,
    /// Allocations that it served.
    pub hits: u64,
    /// Allocations that it could not serve.
    pub misses: u64,
    /// Blocks that went back to the backend: beyond the limits, or trimmed.
    pub evicted: u64,
}

/// A device's pool; the slot's number is the device's.
pub(crate) struct PoolSlot<E: Env>(Mutex<E::Lock, Pool>);

struct Pool {
    limits: PoolLimits,
    statistics: PoolStatistics,
    /// Slot + 1 of the block that was freed last; each block's link is the one before.
    head: u32,
}

impl<E: Env> Body for PoolSlot<E> {
    const NEW: Self = PoolSlot(Mutex::new(Pool {
        limits: PoolLimits { bytes: 0, blocks: 0, largest: 0 },
        statistics: PoolStatistics { bytes: 0, blocks: 0, hits: 0, misses: 0, evicted: 0 },
        head: 0,
    }));
    const KIND: u8 = 9;
}

impl<D: Device, E: Env> Runtime<D, E> {
    /// Sets how much freed memory a device keeps; what is more goes back now.
    ///
    /// # Errors
    /// `InvalidDevice`; `ResourceExhausted` if the store counts fewer devices; what the backend says of a free, and then
    /// the block stays in the pool.
    pub fn set_pool(&self, device: usize, limits: PoolLimits) -> Result<(), Fault> {
        self.device(device, Site::Device)?;
        let slot = self.pool(device).ok_or(Fault::full(Site::Device, self.pools.used().into()))?;
        slot.0.with(|pool| pool.limits = limits);
        self.shrink(slot, limits.bytes, limits.blocks)
    }

    /// Gives everything that a device's pool keeps back to the backend. How many bytes that were.
    ///
    /// # Errors
    /// `InvalidDevice`; what the backend says of a free, and then the rest stays in the pool.
    pub fn trim(&self, device: usize) -> Result<u64, Fault> {
        self.device(device, Site::Device)?;
        let Some(slot) = self.pools.body(device as u32) else { return Ok(0) };
        let before = slot.0.with(|pool| pool.statistics.bytes);
        self.shrink(slot, 0, 0)?;
        Ok(before)
    }

    /// What a device's pool holds and did.
    ///
    /// # Errors
    /// `InvalidDevice`.
    pub fn pool_statistics(&self, device: usize) -> Result<PoolStatistics, Fault> {
        self.device(device, Site::Device)?;
        let slot = self.pools.body(device as u32);
        Ok(slot.map(|slot| slot.0.with(|pool| pool.statistics)).unwrap_or_default())
    }

    /// Pools are made in the order of the devices, so that a slot's number is its device's.
    fn pool(&self, device: usize) -> Option<&'static PoolSlot<E>> {
        while self.pools.used() as usize <= device {
            self.pools.insert::<E>(|_, _| ())?;
        }
        self.pools.body(device as u32)
    }

    /// A block of the device's pool that is what is wanted.
    pub(super) fn recycled(&self, device: usize, want: &Want) -> Option<Block> {
        let slot = self.pools.body(device as u32)?;
        let found = slot.0.with(|pool| {
            if pool.limits.bytes == 0 {
                return None;
            }
            let (mut before, mut at): (Option<&Record>, u32) = (None, pool.head);
            while let Some(record) = at.checked_sub(1).and_then(|slot| self.records.body(slot)) {
                let next = record.late.next();
                if fits(record, want) {
                    match before {
                        None => pool.head = next,
                        Some(before) => before.late.set_next(next),
                    }
                    pool.statistics.hits += 1;
                    pool.statistics.bytes -= record.len.get();
                    pool.statistics.blocks -= 1;
                    return Some((at - 1, record.block()));
                }
                (before, at) = (Some(record), next);
            }
            pool.statistics.misses += 1;
            None
        });
        let (record, block) = found?;
        self.end_record(record);
        Some(block)
    }

    /// Keeps memory that is to go back to the backend, if the pool takes it. It has left the map and the statistics.
    pub(super) fn keep(&self, slot: u32, record: &'static Record) -> bool {
        let own = record.origin.load(Relaxed) == Origin::Own as u32;
        let (device, len) = (record.device.load(Relaxed), record.len.get());
        let Some(pools) = self.pools.body(device).filter(|_| own && len > 0) else { return false };
        let kept = pools.0.with(|pool| {
            let limits = pool.limits;
            if len > limits.largest.min(limits.bytes) || limits.blocks == 0 {
                return None;
            }
            self.leave_map(slot, record);
            record.state.store(state::POOLED, Release);
            record.late.set_next(pool.head);
            pool.head = slot + 1;
            pool.statistics.bytes += len;
            pool.statistics.blocks += 1;
            Some(limits)
        });
        // A refusal leaves the block where it is, and is counted.
        if let Some(limits) = kept
            && self.shrink(pools, limits.bytes, limits.blocks).is_err()
        {
            self.refused.fetch_add(1, Relaxed);
        }
        kept.is_some()
    }

    /// Gives the blocks that lay longest back, until the pool is within these limits. Backends are called outside the
    /// lock.
    fn shrink(&self, slot: &PoolSlot<E>, bytes: u64, blocks: u32) -> Result<(), Fault> {
        loop {
            let oldest = slot.0.with(|pool| {
                if pool.statistics.bytes <= bytes && pool.statistics.blocks <= blocks {
                    return None;
                }
                self.take_oldest(pool)
            });
            let Some((number, record)) = oldest else { return Ok(()) };
            if let Err(fault) = self.undo(record) {
                slot.0.with(|pool| {
                    record.late.set_next(pool.head);
                    pool.head = number + 1;
                    pool.statistics.bytes += record.len.get();
                    pool.statistics.blocks += 1;
                });
                return Err(fault);
            }
            slot.0.with(|pool| pool.statistics.evicted += 1);
            self.end_record(number);
        }
    }

    fn take_oldest(&self, pool: &mut Pool) -> Option<(u32, &'static Record)> {
        let (mut before, mut at): (Option<&Record>, u32) = (None, pool.head);
        loop {
            let record = at.checked_sub(1).and_then(|slot| self.records.body(slot))?;
            let next = record.late.next();
            if next == 0 {
                match before {
                    None => pool.head = 0,
                    Some(before) => before.late.set_next(0),
                }
                pool.statistics.bytes -= record.len.get();
                pool.statistics.blocks -= 1;
                return Some((at - 1, record));
            }
            (before, at) = (Some(record), next);
        }
    }

    /// Everything that pools keep goes back. What a backend refuses is counted and stays.
    pub(super) fn trim_all(&self) {
        for device in 0..self.pools.used() as usize {
            if self.trim(device).is_err() {
                self.refused.fetch_add(1, Relaxed);
            }
        }
    }
}

fn fits(record: &Record, want: &Want) -> bool {
    record.len.get() == want.len
        && record.kind.load(Relaxed) == want.kind
        && record.access.load(Relaxed) == want.access
        && record.usage.load(Relaxed) == want.usage
        && record.base.get().is_multiple_of(want.align.max(1))
}
