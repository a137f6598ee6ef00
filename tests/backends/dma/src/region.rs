//! First fit in a region, with a fixed number of blocks: the used ranges in the order of their addresses.

use wharf_core::fault::{Fault, Kind, Site, Why};

pub(crate) struct Region<const BLOCKS: usize> {
    base: u64,
    len: u64,
    used: [(u64, u64); BLOCKS],
    count: usize,
}

impl<const BLOCKS: usize> Region<BLOCKS> {
    pub(crate) const NEW: Self = Region { base: 0, len: 0, used: [(0, 0); BLOCKS], count: 0 };

    pub(crate) fn give(&mut self, base: u64, len: u64) {
        *self = Region { base, len, ..Self::NEW };
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn allocate(&mut self, len: u64, align: u64) -> Result<u64, Fault> {
        if self.count == BLOCKS {
            let values = [BLOCKS as u64, 0];
            return Err(Fault::backend(Kind::ResourceExhausted, Site::Allocate, Why::Full, values));
        }
        let region_end = self.base + self.len;
        let mut from = self.base;
        for n in 0..=self.count {
            let (next, next_end) = if n < self.count { self.used[n] } else { (region_end, region_end) };
            let start = from.checked_next_multiple_of(align);
            let end = start.and_then(|start| start.checked_add(len));
            if let (Some(start), Some(end)) = (start, end)
                && end <= next
            {
                self.used.copy_within(n..self.count, n + 1);
                self.used[n] = (start, end);
                self.count += 1;
                return Ok(start);
            }
            from = next_end;
        }
        Err(Fault::backend(Kind::ResourceExhausted, Site::Allocate, Why::Limit, [len, self.len]))
    }

    pub(crate) fn free(&mut self, base: u64) -> Result<(), Fault> {
        let found = self.used[..self.count].iter().position(|(start, _)| *start == base);
        let n = found.ok_or(Fault::caller(Kind::NotFound, Site::Free, Why::Address, [base, 0]))?;
        self.used.copy_within(n + 1..self.count, n);
        self.count -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_hole_that_fits_is_taken_up_to_the_last_byte_and_block() {
        let mut region = Region::<3>::NEW;
        region.give(0x1008, 0x58);
        assert_eq!(region.allocate(16, 16).unwrap(), 0x1010);
        assert_eq!(region.allocate(16, 16).unwrap(), 0x1020);
        assert_eq!(region.allocate(0x31, 16).unwrap_err().kind, Kind::ResourceExhausted);
        assert_eq!(region.allocate(0x30, 16).unwrap(), 0x1030);
        assert_eq!(region.allocate(1, 16).unwrap_err().why, Why::Full);
        region.free(0x1020).unwrap();
        assert_eq!(region.free(0x1020).unwrap_err().kind, Kind::NotFound);
        assert_eq!(region.allocate(17, 16).unwrap_err().why, Why::Limit);
        assert_eq!(region.allocate(u64::MAX, 16).unwrap_err().why, Why::Limit);
        assert_eq!(region.allocate(16, 16).unwrap(), 0x1020);
    }
}
