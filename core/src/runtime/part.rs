//! Parts of an allocation that are allocations themselves: what an allocator of the caller's, who took one large piece
//! from the device, gives out. A part has its own handle, life and release callback; the whole lives as long as any part.
//! The map knows the whole only.

use super::{ReleaseFn, Runtime, Span, memory::NewRecord};
use crate::{
    bits::{Access, Usage},
    fault::Site,
};
use crate::{
    device::{Block, Device},
    env::Env,
    fault::Fault,
    handle::Handle,
    record::{Origin, Record},
};

impl<D: Device, E: Env> Runtime<D, E> {
    /// A part of live memory as memory of its own. `release` is called exactly once, when nothing can use the part any
    /// more and the place may be given out again; never inside an interrupt, and never if this call fails.
    ///
    /// # Errors
    /// `OutOfRange`, `InvalidHandle` for the span; `ResourceExhausted`.
    pub fn part(&self, span: &Span, release: Option<(ReleaseFn, *mut ())>) -> Result<Handle<Record>, Fault> {
        let whole = self.usable(span, Access::empty(), Usage::empty(), Site::Subspan)?;
        self.retain(span.root)?;
        let made = self.enter_record(NewRecord {
            device: whole.device,
            block: Block { base: whole.base + span.offset, len: span.len, native: whole.native },
            len: span.len,
            kind: whole.kind.bits(),
            access: whole.access.bits(),
            usage: whole.usage.bits(),
            origin: Origin::Part,
            user: 0,
            release,
            undo: |_, record| {
                if let Some(release) = record.take_release() {
                    release.0(release.1);
                }
                Ok(())
            },
        });
        let Some(record) = made.as_ref().ok().and_then(|part| self.records.get(*part)) else {
            let _ = self.release(span.root);
            return made;
        };
        record.whole.set(span.root.raw());
        made
    }

    /// The block that a backend gave out for a piece of memory, and where that begins in it.
    pub(super) fn block_of(&self, record: Handle<Record>) -> Result<(Block, u64), Fault> {
        let part = self.allocation(record)?;
        let mut whole = part;
        while let Some(body) = self.records.get(whole.record) {
            let of = Handle::from_raw(body.whole.get());
            if of == Handle::NULL {
                break;
            }
            whole = self.allocation(of)?;
        }
        Ok((Block { base: whole.base, len: whole.len, native: whole.native }, part.base - whole.base))
    }
}
