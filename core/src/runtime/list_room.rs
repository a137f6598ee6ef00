//! Where the parts of a command list are kept: arrays of the caller's or, with a heap, vectors that grow.

use super::list::{BYTES_MAX, COMMANDS_MAX, Patch, Saved, Use};
use crate::fault::{Fault, Site};

/// The arrays of a list on a machine without a heap: so many commands, bytes of patterns, updates and arguments,
/// references in arguments, and different roots and kernels.
pub struct ListStorage<const COMMANDS: usize, const BYTES: usize, const REFS: usize, const USES: usize> {
    commands: [Saved; COMMANDS],
    bytes: [u8; BYTES],
    patches: [Patch; REFS],
    uses: [Use; USES],
}

impl<const C: usize, const B: usize, const R: usize, const U: usize> ListStorage<C, B, R, U> {
    /// Arrays without contents.
    #[allow(clippy::new_without_default)] // `Default` is not const, and storage is a static.
    pub const fn new() -> Self {
        ListStorage {
            commands: [const { Saved::NONE }; C],
            bytes: [0; B],
            patches: [const { Patch::NONE }; R],
            uses: [const { Use::NONE }; U],
        }
    }

    /// Room for one list.
    pub fn room(&mut self) -> ListRoom<'_> {
        ListRoom {
            commands: Shelf::given(&mut self.commands, COMMANDS_MAX),
            bytes: Shelf::given(&mut self.bytes, BYTES_MAX),
            patches: Shelf::given(&mut self.patches, COMMANDS_MAX),
            uses: Shelf::given(&mut self.uses, COMMANDS_MAX),
        }
    }
}

/// Room for what one list records.
pub struct ListRoom<'s> {
    pub(super) commands: Shelf<'s, Saved>,
    pub(super) bytes: Shelf<'s, u8>,
    pub(super) patches: Shelf<'s, Patch>,
    pub(super) uses: Shelf<'s, Use>,
}

impl ListRoom<'static> {
    /// Room that grows.
    #[cfg(feature = "alloc")]
    pub const fn growing() -> Self {
        ListRoom {
            commands: Shelf::grown(COMMANDS_MAX),
            bytes: Shelf::grown(BYTES_MAX),
            patches: Shelf::grown(COMMANDS_MAX),
            uses: Shelf::grown(COMMANDS_MAX),
        }
    }
}

impl ListRoom<'_> {
    pub(super) fn clear(&mut self) {
        self.rewind([0; 3]);
        self.uses.truncate(0);
    }
    /// How much was recorded, for [`ListRoom::rewind`].
    pub(super) fn mark(&self) -> [usize; 3] {
        [self.commands.as_slice().len(), self.bytes.as_slice().len(), self.patches.as_slice().len()]
    }
    /// Forgets what was recorded since the mark; what is kept alive stays so.
    pub(super) fn rewind(&mut self, [commands, bytes, patches]: [usize; 3]) {
        self.commands.truncate(commands);
        self.bytes.truncate(bytes);
        self.patches.truncate(patches);
    }
}

/// A row of things.
pub(super) struct Shelf<'s, T> {
    place: Place<'s, T>,
    limit: usize,
}

enum Place<'s, T> {
    Given(&'s mut [T], usize),
    #[cfg(feature = "alloc")]
    Grown(alloc::vec::Vec<T>),
}

impl<'s, T: Copy> Shelf<'s, T> {
    fn given(items: &'s mut [T], limit: usize) -> Self {
        let limit = limit.min(items.len());
        Shelf { place: Place::Given(items, 0), limit }
    }
    #[cfg(feature = "alloc")]
    const fn grown(limit: usize) -> Self {
        Shelf { place: Place::Grown(alloc::vec::Vec::new()), limit }
    }

    /// Puts things behind the last.
    pub(super) fn extend(&mut self, new: &[T], site: Site) -> Result<(), Fault> {
        let full = Fault::full(site, self.limit as u64);
        let len = self.as_slice().len();
        if new.len() > self.limit - len {
            return Err(full);
        }
        match &mut self.place {
            Place::Given(items, used) => {
                items[len..len + new.len()].copy_from_slice(new);
                *used += new.len();
            }
            #[cfg(feature = "alloc")]
            Place::Grown(items) => {
                items.try_reserve(new.len()).map_err(|_| full)?;
                items.extend_from_slice(new);
            }
        }
        Ok(())
    }

    fn truncate(&mut self, len: usize) {
        match &mut self.place {
            Place::Given(_, used) => *used = len.min(*used),
            #[cfg(feature = "alloc")]
            Place::Grown(items) => items.truncate(len),
        }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[T] {
        match &self.place {
            Place::Given(items, used) => &items[..*used],
            #[cfg(feature = "alloc")]
            Place::Grown(items) => items,
        }
    }
    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        match &mut self.place {
            Place::Given(items, used) => &mut items[..*used],
            #[cfg(feature = "alloc")]
            Place::Grown(items) => items,
        }
    }
}
