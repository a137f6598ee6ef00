//! Blocks of a device: those that live, and the last that were freed.

use alloc::{
    collections::{BTreeMap, VecDeque},
    format,
    string::String,
    vec::Vec,
};
use wharf_core::device::Block;

/// Freed blocks that are remembered, to name what a late use meant.
const FREED_KEPT: usize = 1024;

/// Which call made something.
#[derive(Clone, Copy)]
pub(super) struct Made {
    pub(super) call: u64,
    pub(super) what: &'static str,
}

struct Live {
    block: Block,
    made: Made,
    /// The program whose global it is.
    program: Option<u64>,
    /// Mappings that were not ended.
    mappings: u32,
    /// Mapped, and neither flushed nor ended since.
    unseen: bool,
}

#[derive(Default)]
pub(super) struct Memory {
    /// By first address, then by the backend's word: a registration may lie where an allocation does.
    blocks: BTreeMap<(u64, u64), Live>,
    /// Handed to the device's `free`, which has not answered.
    freeing: Vec<Live>,
    freed: VecDeque<(Block, u64)>,
    len_max: u64,
}

/// What an address range lies in.
pub(super) enum Place {
    Live,
    /// Freed by the call of this number.
    Freed(Block, u64),
    /// Begins in this block and ends past it.
    PastEnd(Block),
    Unknown,
}

fn holds(block: &Block, at: u64, len: u64) -> bool {
    at >= block.base && at.checked_add(len).is_some_and(|end| end <= block.base.saturating_add(block.len))
}

fn touches(block: &Block, at: u64, len: u64) -> bool {
    at < block.base.saturating_add(block.len) && block.base < at.saturating_add(len)
}

impl Memory {
    pub(super) fn live(&mut self, block: &Block, made: Made) {
        self.insert(block, made, None);
    }

    pub(super) fn global(&mut self, block: &Block, made: Made, program: u64) {
        if !matches!(self.place(block.base, block.len), Place::Live) {
            self.insert(block, made, Some(program));
        }
    }

    fn insert(&mut self, block: &Block, made: Made, program: Option<u64>) {
        self.len_max = self.len_max.max(block.len);
        self.freed.retain(|(freed, _)| !touches(freed, block.base, block.len));
        let live = Live { block: *block, made, program, mappings: 0, unseen: false };
        self.blocks.insert((block.base, block.native), live);
    }

    /// The block is being given back: from here on the device may give its addresses to somebody else.
    pub(super) fn freeing(&mut self, block: &Block, call: u64) {
        if let Some(live) = self.blocks.remove(&(block.base, block.native)) {
            self.freeing.push(live);
            self.freed.truncate(FREED_KEPT - 1);
            self.freed.push_front((*block, call));
        }
    }

    /// The device has taken it, or has refused to and it is as before.
    pub(super) fn freed(&mut self, block: &Block, taken: bool) {
        let Some(at) = self.freeing.iter().position(|live| live.block == *block) else { return };
        let live = self.freeing.swap_remove(at);
        if !taken {
            self.freed.retain(|(freed, _)| freed != block);
            self.blocks.insert((block.base, block.native), live);
        }
    }

    pub(super) fn forget_globals(&mut self, program: u64) {
        self.blocks.retain(|_, live| live.program != Some(program));
    }

    /// Live blocks that begin where one that reaches `at` could begin.
    fn near(&self, at: u64, len: u64) -> impl Iterator<Item = &Live> {
        let from = at.saturating_sub(self.len_max);
        self.blocks.range((from, 0)..(at.saturating_add(len.max(1)), 0)).map(|(_, live)| live)
    }

    /// A live block that shares bytes with this one, other than what shows host memory or a program's globals.
    pub(super) fn overlap(&self, block: &Block) -> Option<String> {
        let own = |live: &&Live| live.made.what == "allocate";
        let other = self.near(block.base, block.len).filter(own);
        let other = other.into_iter().find(|live| touches(&live.block, block.base, block.len))?;
        Some(format!("{} bytes at {:#x}", other.block.len, other.block.base))
    }

    pub(super) fn place(&self, at: u64, len: u64) -> Place {
        let mut begins = None;
        for live in self.near(at, len) {
            if holds(&live.block, at, len) {
                return Place::Live;
            }
            if holds(&live.block, at, 1) {
                begins = Some(live.block);
            }
        }
        if let Some(block) = begins {
            return Place::PastEnd(block);
        }
        match self.freed.iter().find(|(block, _)| touches(block, at, len)) {
            Some((block, call)) => Place::Freed(*block, *call),
            None => Place::Unknown,
        }
    }

    /// Why a block that is handed in is not one that lives.
    pub(super) fn not_live(&self, block: &Block) -> Option<String> {
        if let Some(live) = self.blocks.get(&(block.base, block.native)) {
            let same = live.block == *block;
            let other = || {
                format!("{} bytes at {:#x}, which is a block of {}", block.len, block.base, live.block.len)
            };
            return (!same).then(other);
        }
        let text = format!("{} bytes at {:#x}", block.len, block.base);
        let freed = self.freed.iter().find(|(freed, _)| freed == block);
        Some(match freed {
            Some((_, call)) => format!("{text}, freed before by call {call}"),
            None => format!("{text}, which the device did not give out"),
        })
    }

    pub(super) fn mapped(&mut self, block: &Block) {
        if let Some(live) = self.blocks.get_mut(&(block.base, block.native)) {
            live.mappings += 1;
            live.unseen = true;
        }
    }

    pub(super) fn unmapped(&mut self, block: &Block) {
        if let Some(live) = self.blocks.get_mut(&(block.base, block.native)) {
            live.mappings = live.mappings.saturating_sub(1);
            live.unseen &= live.mappings > 0;
        }
    }

    pub(super) fn synced(&mut self, block: &Block) {
        if let Some(live) = self.blocks.get_mut(&(block.base, block.native)) {
            live.unseen = false;
        }
    }

    /// A block at the address that is mapped and not flushed since; told once a mapping.
    pub(super) fn unseen(&mut self, at: u64, len: u64) -> Option<Block> {
        let found = self.near(at, len).find(|live| live.unseen && touches(&live.block, at, len))?.block;
        self.synced(&found);
        Some(found)
    }

    pub(super) fn left(&self) -> impl Iterator<Item = String> {
        let mut left: Vec<&Live> = self.blocks.values().filter(|live| live.program.is_none()).collect();
        left.sort_by_key(|live| live.made.call);
        left.into_iter().map(|live| {
            let (block, made) = (live.block, live.made);
            format!(
                "{} bytes at {:#x} were not given back, made by call {} ({})",
                block.len, block.base, made.call, made.what
            )
        })
    }
}
