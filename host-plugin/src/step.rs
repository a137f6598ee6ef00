//! A step as a lane keeps it: what was borrowed is captured, names are resolved.

use crate::{bytes::Bytes, launch::Launch, registry::Registry, track::Track};
use std::{mem::MaybeUninit, sync::Arc};
use wharf_core::{
    device::{HostCall, Op, Step},
    fault::{Fault, Kind, Site, Why},
};

/// What to do; a pattern, an update or arguments lie in the cell's bytes.
pub(crate) enum Work {
    Nothing,
    Copy { from: u64, to: u64, len: u64 },
    Fill { to: u64, len: u64 },
    Update { to: u64 },
    Launch(Launch),
    After { track: Arc<Track>, value: u64 },
    Call(HostCall),
    Prefetch { at: u64, len: u64 },
}

/// One step in the ring of a lane.
#[repr(C, align(64))]
pub(crate) struct Cell {
    pub(crate) done: u64,
    pub(crate) tell: bool,
    pub(crate) stamp: bool,
    pub(crate) work: Work,
    pub(crate) bytes: Bytes,
}

// Three cache lines. A launch with few arguments touches two, a step without bytes one and the length.
const _: () = assert!(size_of::<Cell>() == 192 && std::mem::offset_of!(Cell, bytes) == 64);

impl Cell {
    /// Captures a step of the lane `own` into a place of its ring; on error nothing is there.
    #[inline]
    pub(crate) fn capture(
        place: &mut MaybeUninit<Cell>,
        step: &Step<'_>,
        own: &Arc<Track>,
        lanes: &Registry,
    ) -> Result<(), Fault> {
        let (work, bytes) = match step.op {
            Op::Launch { kernel, groups, size, shared, args } => {
                (Work::Launch(Launch::new(kernel, groups, size, shared, args)?), args)
            }
            _ => rare(&step.op, own, lanes)?,
        };
        // Written in place: a cell is long, and moving it costs more than running it.
        let cell = place.write(Cell {
            done: step.done,
            tell: step.tell,
            stamp: step.stamp,
            work,
            bytes: Bytes::none(),
        });
        if cell.bytes.capture(bytes) {
            return Ok(());
        }
        cell.work = Work::Nothing;
        Err(Fault::full(Site::Submit, bytes.len() as u64))
    }
}

fn rare<'a>(op: &Op<'a>, own: &Arc<Track>, lanes: &Registry) -> Result<(Work, &'a [u8]), Fault> {
    let work = match *op {
        Op::Fill { pattern: [], .. } => {
            return Err(Fault::caller(Kind::InvalidArgument, Site::Fill, Why::Zero, [2, 0]));
        }
        Op::Fill { to, len, pattern } => return Ok((Work::Fill { to, len }, pattern)),
        Op::Update { to, bytes } => return Ok((Work::Update { to }, bytes)),
        Op::Copy { from, to, len, .. } => Work::Copy { from, to, len },
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
    };
    Ok((work, &[]))
}
