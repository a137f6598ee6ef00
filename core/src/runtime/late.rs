//! What must outlive the work that may use it: freed memory, unloaded programs. Submitted work counts no references;
//! instead a late item waits for what every lane had been given when the item came to look at it, one lane after the
//! other: constant memory, it ends, and a submit pays nothing.

use super::Runtime;
use crate::{
    device::Device,
    env::{Env, Lock, Mutex},
    handle::{Handle, Pins},
    timeline::{Look, Point},
    word::Word64,
};
use core::sync::atomic::{AtomicU32, Ordering::*};

/// The part of a record that makes it an item of the late list. Used under the pump's lock, but for `next`.
pub(crate) struct LateLink {
    next: AtomicU32,
    /// The lane it looks at.
    lane: AtomicU32,
    /// What it waits for there: an accepted operation's number, then a value; 0: not yet looked.
    order: Word64,
    until: Word64,
    /// A point that must be reached first; 0: none.
    timeline: Word64,
    value: Word64,
}

impl LateLink {
    pub(crate) const NEW: Self = LateLink {
        next: AtomicU32::new(0),
        lane: AtomicU32::new(0),
        order: Word64::new(0),
        until: Word64::new(0),
        timeline: Word64::new(0),
        value: Word64::new(0),
    };

    pub(crate) fn begin(&self) {
        self.lane.store(0, Relaxed);
        self.order.set(0);
        self.until.set(0);
        self.timeline.set(0);
        self.value.set(0);
    }

    /// The item after this one in a list that it is in.
    pub(super) fn next(&self) -> u32 {
        self.next.load(Relaxed)
    }
    pub(super) fn set_next(&self, next: u32) {
        self.next.store(next, Relaxed);
    }

    /// As [`LateLink::begin`], after a point, whose timeline the caller watches.
    pub(crate) fn begin_after(&self, point: Point) {
        self.begin();
        self.value.set(point.value);
        self.timeline.set(point.timeline.raw());
    }
}

/// A record or program by slot; the top bit says which.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LateItem {
    Record(u32),
    Program(u32),
}

const PROGRAM: u32 = 1 << 31;

impl LateItem {
    fn number(self) -> u32 {
        match self {
            LateItem::Record(slot) => slot + 1,
            LateItem::Program(slot) => (slot + 1) | PROGRAM,
        }
    }
    fn from_number(number: u32) -> Option<LateItem> {
        match number {
            0 => None,
            n if n & PROGRAM != 0 => Some(LateItem::Program((n & !PROGRAM) - 1)),
            n => Some(LateItem::Record(n - 1)),
        }
    }
}

/// Items that wait, last come first.
pub(crate) struct LateList<L> {
    head: Mutex<L, u32>,
    count: AtomicU32,
}

impl<L: Lock> LateList<L> {
    pub(crate) const NEW: Self = LateList { head: Mutex::new(0), count: AtomicU32::new(0) };

    pub(crate) fn count(&self) -> u32 {
        self.count.load(Acquire)
    }
}

impl<D: Device, E: Env> Runtime<D, E> {
    fn late_link(&self, item: LateItem) -> Option<(&'static LateLink, &'static Pins)> {
        match item {
            LateItem::Record(slot) => self.records.body(slot).map(|r| (&r.late, &r.pins)),
            LateItem::Program(slot) => self.programs.body(slot).map(|p| (&p.late, &p.pins)),
        }
    }

    /// Puts an item on the list; its link was `begin`ned.
    pub(crate) fn be_late(&self, item: LateItem) {
        let Some((link, _)) = self.late_link(item) else { return };
        self.late.count.fetch_add(1, SeqCst);
        self.bell.interest.fetch_add(1, SeqCst);
        self.late.head.with(|head| {
            link.set_next(*head);
            *head = item.number();
        });
        self.bell.ring::<E>();
    }

    /// Whether no lane can still use what was freed before `link.begin`.
    pub(crate) fn late_over(&self, link: &LateLink) -> bool {
        loop {
            let lane = link.lane.load(Relaxed);
            if lane >= self.lanes.used() {
                return true;
            }
            if self.late_waits(link, lane) {
                return false;
            }
            link.lane.store(lane + 1, Relaxed);
            link.order.set(0);
            link.until.set(0);
        }
    }

    /// Whether the point that an item waits for is reached (`true`) or never will be (`false`); `None`: it is ahead.
    fn late_point(&self, link: &LateLink) -> Option<bool> {
        let timeline = Handle::from_raw(link.timeline.get());
        if timeline == Handle::NULL {
            return Some(true);
        }
        let ended = match self.look(Point { timeline, value: link.value.get() }) {
            Ok(Look::Ahead) => return None,
            Ok(Look::Reached) => true,
            Ok(Look::Failed(_)) | Err(_) => false,
        };
        link.timeline.set(0);
        self.unwatch(timeline);
        Some(ended)
    }

    /// Whether the item still waits for this lane. First for all that was accepted to be handed over, then for what had
    /// been handed over to end.
    fn late_waits(&self, link: &LateLink, lane: u32) -> bool {
        let Some(queue) = self.lanes.body(lane) else { return false };
        queue.cell.with(|cell| {
            let Some(state) = cell.get() else { return false };
            if state.held.is_empty() && state.idle() {
                return false;
            }
            if link.until.get() == 0 {
                if link.order.get() == 0 {
                    link.order.set(state.accepted);
                }
                if state.held.first().is_some_and(|node| node.order() <= link.order.get()) {
                    return true;
                }
                link.until.set(state.time.handed.get().max(1));
            }
            !(state.time.reached(link.until.get()) || state.idle())
        })
    }

    /// Gives back whatever is over. Under the pump's lock. How many are left.
    pub(crate) fn run_late(&self) -> u32 {
        if self.late.count.load(Acquire) == 0 {
            return 0;
        }
        let mut at = self.late.head.with(core::mem::take);
        while let Some(item) = LateItem::from_number(at) {
            let Some((link, pins)) = self.late_link(item) else { break };
            at = link.next();
            let ready = self.late_point(link);
            if ready == Some(true) {
                self.close_now(item); // Before the lanes are looked at: what comes later must not use it.
            }
            if ready == Some(false) {
                self.late.count.fetch_sub(1, AcqRel);
                self.bell.interest.fetch_sub(1, Relaxed);
                self.keep_open(item);
            } else if ready == Some(true) && self.late_over(link) && pins.end_if_free() {
                self.late.count.fetch_sub(1, AcqRel);
                self.bell.interest.fetch_sub(1, Relaxed);
                match item {
                    LateItem::Record(slot) => self.give_back(slot),
                    LateItem::Program(slot) => self.unload_now(slot),
                }
            } else {
                self.late.head.with(|head| {
                    link.set_next(*head);
                    *head = item.number();
                });
            }
        }
        self.late.count.load(Acquire)
    }
}
