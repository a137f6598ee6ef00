//! Queues as a caller sees them: open, close, ask.

use super::{Order, Queue, Runtime, lane::LaneState, node::NodeList, pump};
use crate::{
    device::{Device, Gauge, Times},
    env::Env,
    fault::{Fault, Kind, Site, Why},
    handle::Handle,
    tick::Tick,
    timeline::{Failure, Point, Timeline, failed, told},
};
use core::{ptr, sync::atomic::Ordering::*};

/// How a queue is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// How its operations follow each other.
    pub order: Order,
    /// Keep when each operation began and ended, for [`Runtime::times`].
    pub profile: bool,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions { order: Order::InOrder, profile: false }
    }
}

impl<D: Device, E: Env> Runtime<D, E> {
    /// A queue on a device. When lanes are short, queues that were closed are let go of first.
    ///
    /// # Errors
    /// `InvalidDevice`; `ResourceExhausted` when the device has no lane or the store no slot left; what the backend says.
    pub fn queue(&self, device: usize, options: QueueOptions) -> Result<Handle<Queue<D, E>>, Fault> {
        match self.try_queue(device, options) {
            Err(fault) if fault.kind == Kind::ResourceExhausted => {
                self.pass_now();
                self.try_queue(device, options)
            }
            other => other,
        }
    }

    fn try_queue(&self, device: usize, options: QueueOptions) -> Result<Handle<Queue<D, E>>, Fault> {
        let owner = self.device(device, Site::Queue)?;
        let caps = owner.caps();
        let timeline = self.timeline(0).map_err(|f| f.at(Site::Queue))?;
        let time = self.time(timeline, Site::Queue)?;
        let opened = self.open_lane(owner, device, caps, timeline, time, options);
        if opened.is_err() {
            time.lane.store(0, Relaxed);
            self.release_timeline(timeline);
        }
        opened
    }

    fn open_lane(
        &self,
        owner: &'static D,
        device: usize,
        caps: crate::device::Caps,
        timeline: Handle<Timeline>,
        time: &'static Timeline,
        options: QueueOptions,
    ) -> Result<Handle<Queue<D, E>>, Fault> {
        let (lane, gauge, native) = owner.lane(tick_of::<E>(time))?;
        time.native.store(native, Relaxed);
        time.backend.store(if caps.native_wait { caps.backend as u32 + 1 } else { 0 }, Relaxed);
        time.polled.store(pump::poll_ns(caps.pace).is_some().into(), Relaxed);
        let state = LaneState {
            lane,
            gauge,
            caps,
            device: device as u16,
            order: options.order,
            stamp: options.profile,
            timeline,
            time,
            tail: 0,
            accepted: 0,
            held: NodeList::NEW,
            signals: NodeList::NEW,
            poison: None,
            closing: false,
        };
        let queue = self.lanes.insert::<E>(|queue, handle| {
            time.lane.store(handle.slot() + 1, Release);
            queue.cell.with(|cell| cell.put(state));
        });
        queue.ok_or(Fault::full(Site::Queue, self.lanes.used() as u64))
    }

    /// The queue's handle is stale at once. What was submitted still runs, and points that somebody retained stay good.
    ///
    /// # Errors
    /// `InvalidHandle`.
    pub fn close(&self, queue: Handle<Queue<D, E>>) -> Result<(), Fault> {
        self.inside(queue, Site::Close, |lane| {
            if !self.lanes.end(queue) {
                return Err(Fault::stale(Site::Close, queue.raw()));
            }
            lane.closing = true;
            Ok(())
        })?;
        self.bell.interest.fetch_add(1, SeqCst);
        self.bell.ring::<E>();
        self.poll();
        Ok(())
    }

    /// The point that everything submitted so far ends at. Only queues in order have one.
    ///
    /// # Errors
    /// `InvalidHandle`; `FailedPrecondition` for a queue of free order, whose ends have none.
    pub fn tail(&self, queue: Handle<Queue<D, E>>) -> Result<Point, Fault> {
        self.inside(queue, Site::Query, |lane| match lane.order {
            Order::InOrder => Ok(Point { timeline: lane.timeline, value: lane.tail }),
            Order::Free => Err(Fault::caller(Kind::FailedPrecondition, Site::Query, Why::State, [1, 0])),
        })
    }

    /// Whether everything submitted has ended; exact.
    ///
    /// # Errors
    /// The queue's failure, if it failed; `InvalidHandle`.
    pub fn is_idle(&self, queue: Handle<Queue<D, E>>) -> Result<bool, Fault> {
        self.poll();
        self.inside(queue, Site::Query, |lane| {
            lane.gauge.poll();
            if let Some(fault) = self.queue_failure(lane) {
                return Err(fault);
            }
            Ok(lane.drained())
        })
    }

    /// Sees to it that what was submitted with [`Hint::More`](crate::device::Hint::More) runs.
    ///
    /// # Errors
    /// `InvalidHandle`.
    pub fn send_off(&self, queue: Handle<Queue<D, E>>) -> Result<(), Fault> {
        self.inside(queue, Site::Submit, |lane| {
            lane.gauge.poll();
            Ok(())
        })
    }

    /// The number of the queue's device.
    ///
    /// # Errors
    /// `InvalidHandle`.
    pub fn queue_device(&self, queue: Handle<Queue<D, E>>) -> Result<usize, Fault> {
        self.inside(queue, Site::Query, |lane| Ok(lane.device as usize))
    }

    /// When the operation that ended at `point` of a profiled queue began and ended, on the device's clock.
    ///
    /// # Errors
    /// `InvalidArgument` if the queue keeps no times or this one is too old; `FailedPrecondition` if the operation has
    /// not ended; `InvalidHandle`.
    pub fn times(&self, queue: Handle<Queue<D, E>>, point: Point) -> Result<Times, Fault> {
        self.inside(queue, Site::Event, |lane| {
            if lane.timeline != point.timeline || !lane.stamp {
                return Err(Fault::caller(Kind::InvalidArgument, Site::Event, Why::Unknown, [0; 2]));
            }
            if !lane.time.reached(point.value) {
                return Err(Fault::caller(
                    Kind::FailedPrecondition,
                    Site::Event,
                    Why::Past,
                    [point.value, lane.time.value.get()],
                ));
            }
            let missing = Fault::caller(Kind::InvalidArgument, Site::Event, Why::Unknown, [point.value, 0]);
            lane.gauge.times(point.value).ok_or(missing)
        })
    }

    /// Why the queue takes nothing more, if it does not.
    pub(crate) fn queue_failure(&self, lane: &LaneState<D>) -> Option<Fault> {
        if let Some((_, failure)) = lane.poison {
            return Some(self.failures.read(failure));
        }
        match lane.time.failed.load(Acquire) {
            0 => None,
            code => Some(self.failures.read(Failure(code))),
        }
    }
}

/// The backend's end of a timeline in a table.
#[allow(unsafe_code)]
fn tick_of<E: Env>(time: &'static Timeline) -> Tick {
    // SAFETY: the cookie is a timeline in a table that is never given back, which is what `told` and `failed` take.
    unsafe { Tick::from_parts(&time.value, ptr::from_ref(time).cast(), told::<E>, failed::<E>) }
}
