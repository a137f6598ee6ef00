//! What a queue gives for a submitted operation: its end, borrowed from the queue. An [`Event`], which outlives the queue,
//! counts its owners; most launches need none.

use crate::{
    error::Result,
    event::{self, Event},
    os::deadline,
    queue::Queue,
};
use std::{fmt, time::Duration};
use wharf_core::{device::Times, timeline::Point};

/// The end of an operation, as long as its queue is there. Dropping it changes nothing: the operation runs all the same.
pub struct Submitted<'q> {
    queue: &'q Queue,
    end: End,
}

enum End {
    /// On the queue's own timeline, which the queue keeps.
    Queue(Point),
    /// On a timeline of its own, as on queues of free order.
    Own(Event),
}

impl<'q> Submitted<'q> {
    pub(crate) fn in_order(queue: &'q Queue, point: Point) -> Self {
        Submitted { queue, end: End::Queue(point) }
    }
    pub(crate) fn own(queue: &'q Queue, event: Event) -> Self {
        Submitted { queue, end: End::Own(event) }
    }

    fn point(&self) -> Point {
        match &self.end {
            End::Queue(point) => *point,
            End::Own(event) => event.point(),
        }
    }

    /// The same moment as an event, which may outlive the queue.
    ///
    /// # Errors
    /// Fails only when a timeline has too many owners.
    pub fn event(self) -> Result<Event> {
        match self.end {
            End::Queue(point) => Event::at(self.queue.engine(), point, self.queue.handle()),
            End::Own(event) => Ok(event),
        }
    }

    /// Returns once the operation has ended.
    ///
    /// # Errors
    /// Why it never will.
    pub fn wait(&self) -> Result<()> {
        Ok(self.queue.engine().core()?.wait(self.point(), None)?)
    }

    /// The same, for so long at most.
    ///
    /// # Errors
    /// As [`Submitted::wait`]; a deadline that passed first.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<()> {
        Ok(self.queue.engine().core()?.wait(self.point(), deadline(timeout))?)
    }

    /// Whether the operation has ended.
    ///
    /// # Errors
    /// Why it never will.
    pub fn is_complete(&self) -> Result<bool> {
        event::is_complete(self.queue.engine().core()?, self.point())
    }

    /// When the operation began and ended, on the device's clock.
    ///
    /// # Errors
    /// If the queue keeps no times (they must be asked for), or the operation has not ended.
    pub fn times(&self) -> Result<Times> {
        Ok(self.queue.engine().core()?.times(self.queue.handle(), self.point())?)
    }
}

impl fmt::Debug for Submitted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point { timeline, value } = self.point();
        write!(f, "Submitted({timeline:?} at {value})")
    }
}
