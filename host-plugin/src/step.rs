//! A step as a lane keeps it: what was borrowed is captured, names are resolved.

use crate::{bytes::Bytes, launch::Launch, limits, registry::Registry, track::Track};
use std::sync::Arc;
use wharf_core::{
    device::{HostCall, Op, Step},
    fault::{Fault, Kind, Site, Why},
};

/// What to do.
pub(crate) enum Work {
    Nothing,
    Copy { from: u64, to: u64, len: u64 },
    Fill { to: u64, len: u64, pattern: Bytes },
    Update { to: u64, bytes: Bytes },
    Launch(Launch, Bytes),
    After { track: Arc<Track>, value: u64 },
    Call(HostCall),
    Prefetch { at: u64, len: u64 },
}

/// One step in the ring of a lane.
#[repr(align(64))]
pub(crate) struct Cell {
    pub(crate) done: u64,
    pub(crate) tell: bool,
    pub(crate) stamp: bool,
    pub(crate) work: Work,
}

// Three cache lines, of which a launch with few arguments touches two.
const _: () = assert!(size_of::<Cell>() == 192);

impl Cell {
    /// Captures a step of the lane `own`.
    #[inline]
    pub(crate) fn capture(step: &Step<'_>, own: &Arc<Track>, lanes: &Registry) -> Result<Cell, Fault> {
        let work = match step.op {
            Op::Launch { kernel, groups, size, shared, args } => {
                let launch = Launch::new(kernel, groups, size, shared)?;
                Work::Launch(launch, capture(Site::Launch, args)?)
            }
            _ => rare(&step.op, own, lanes)?,
        };
        Ok(Cell { done: step.done, tell: step.tell, stamp: step.stamp, work })
    }
}

fn rare(op: &Op<'_>, own: &Arc<Track>, lanes: &Registry) -> Result<Work, Fault> {
    Ok(match *op {
        Op::Copy { from, to, len, .. } => Work::Copy { from, to, len },
        Op::Fill { to, len, pattern } => {
            if pattern.is_empty() {
                return Err(Fault::caller(Kind::InvalidArgument, Site::Fill, Why::Zero, [2, 0]));
            }
            Work::Fill { to, len, pattern: capture(Site::Fill, pattern)? }
        }
        Op::Update { to, bytes } => Work::Update { to, bytes: capture(Site::Update, bytes)? },
        Op::After { lane, value } => match lanes.find(lane) {
            // A lane that is gone had ended, and our own earlier steps have ended by order.
            None => Work::Nothing,
            Some(track) if Arc::ptr_eq(&track, own) => Work::Nothing,
            Some(track) => Work::After { track, value },
        },
        Op::Call(call) => Work::Call(call),
        Op::Prefetch { at, len, .. } => Work::Prefetch { at, len },
        Op::Read { .. } | Op::Write { .. } => {
            let number = [op.kind().into(), 0];
            return Err(Fault::caller(Kind::Unsupported, Site::Submit, Why::Missing, number));
        }
        Op::Barrier | Op::Launch { .. } => Work::Nothing,
    })
}

#[inline]
fn capture(site: Site, bytes: &[u8]) -> Result<Bytes, Fault> {
    if site as u16 == Site::Launch as u16 && bytes.len() > limits::ARGS_MAX as usize {
        let values = [bytes.len() as u64, limits::ARGS_MAX.into()];
        return Err(Fault::caller(Kind::InvalidArgument, site, Why::Limit, values));
    }
    Bytes::capture(bytes).ok_or_else(|| Fault::full(site, bytes.len() as u64))
}
