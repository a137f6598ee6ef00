//! Events: points on a timeline that outlive whatever made them.

use crate::{
    engine::{Core, Engine},
    error::Result,
    os::deadline,
};
use std::{fmt, sync::Arc, time::Duration};
use wharf_core::{
    device::Times,
    handle::Handle,
    runtime::Queue as CoreQueue,
    timeline::{Look, Point},
};

pub(crate) type QueueHandle = Handle<CoreQueue<crate::layers::Own, crate::os::Os>>;

/// A moment in the life of a queue, a batch or a timeline.
pub struct Event {
    engine: Arc<Engine>,
    point: Point,
    queue: QueueHandle,
}

impl Event {
    /// An event at a point of a timeline that is alive.
    pub(crate) fn at(engine: &Arc<Engine>, point: Point, queue: QueueHandle) -> Result<Event> {
        engine.core()?.retain_timeline(point.timeline)?;
        Ok(Event::owning(engine, point, queue))
    }

    /// An event at a point of a timeline, whose one owner it takes over.
    pub(crate) fn owning(engine: &Arc<Engine>, point: Point, queue: QueueHandle) -> Event {
        Event { engine: engine.clone(), point, queue }
    }

    pub(crate) fn point(&self) -> Point {
        self.point
    }

    /// Returns once it has happened.
    ///
    /// # Errors
    /// Why it never will.
    pub fn wait(&self) -> Result<()> {
        Ok(self.engine.core()?.wait(self.point, None)?)
    }

    /// The same, for so long at most.
    ///
    /// # Errors
    /// As [`Event::wait`]; a deadline that passed first.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<()> {
        Ok(self.engine.core()?.wait(self.point, deadline(timeout))?)
    }

    /// Whether it has happened.
    ///
    /// # Errors
    /// Why it never will.
    pub fn is_complete(&self) -> Result<bool> {
        is_complete(self.engine.core()?, self.point)
    }

    /// When the work before it began and ended, on the device's clock.
    ///
    /// # Errors
    /// If its queue keeps no times (they must be asked for) or is closed, or the work has not ended.
    pub fn times(&self) -> Result<Times> {
        Ok(self.engine.core()?.times(self.queue, self.point)?)
    }

    /// Nanoseconds from the end of this event's work to the end of a later one's; 0 if it was not later.
    ///
    /// # Errors
    /// As [`Event::times`].
    pub fn elapsed_ns(&self, later: &Event) -> Result<u64> {
        Ok(later.times()?.end_ns.saturating_sub(self.times()?.end_ns))
    }
}

pub(crate) fn is_complete(core: &Core, point: Point) -> Result<bool> {
    core.poll();
    match core.look(point)? {
        Look::Reached => Ok(true),
        Look::Ahead => Ok(false),
        Look::Failed(fault) => Err(fault.into()),
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(core) = self.engine.core() {
            core.release_timeline(self.point.timeline);
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({:?} at {})", self.point.timeline, self.point.value)
    }
}
