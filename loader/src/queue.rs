//! Queues: operations in order on one device.
//!
//! # Safety
//! Bytes of the caller that a backend reads or writes outlive the operation: the blocking calls wait for its end before
//! they return, whatever happens.
#![allow(unsafe_code)]

use crate::{
    args::Args,
    buffer::Buffer,
    calls,
    device::Device,
    engine::Core,
    engine::Engine,
    error::{Error, ErrorKind, Result},
    event::{Event, QueueHandle},
    list::CommandList,
    program::Kernel,
    submitted::Submitted,
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use wharf_core::{
    device::Hint,
    fault::Fault,
    runtime::{Around, LaunchArgs, Order, QueueOptions, Span},
    timeline::{Look, Point},
};

/// Operations on a device, one after the other (or each for itself, as chosen). Any number of threads may use one.
pub struct Queue {
    device: Device,
    handle: QueueHandle,
    order: Order,
    bursts: AtomicU32,
}

impl Queue {
    pub(crate) fn open(device: Device, options: QueueOptions) -> Result<Queue> {
        let handle = device.core()?.queue(device.index, options)?;
        Ok(Queue { device, handle, order: options.order, bursts: AtomicU32::new(0) })
    }

    fn core(&self) -> std::result::Result<&'static Core, Fault> {
        self.device.core()
    }

    pub(crate) fn handle(&self) -> QueueHandle {
        self.handle
    }

    /// The device it belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.device.engine
    }

    /// While what it answers lives, operations of this queue wake nobody: they run when it is dropped, or when somebody
    /// waits for them, on the waiting thread where the device can do that. For many small operations in a row.
    pub fn burst(&self) -> Burst<'_> {
        self.bursts.fetch_add(1, Relaxed);
        Burst(self)
    }

    fn hint(&self) -> Hint {
        if self.bursts.load(Relaxed) == 0 { Hint::None } else { Hint::More }
    }

    /// Submits an operation and answers its end; starts the pump if something is held.
    fn submit(
        &self,
        waits: &[Point],
        submit: impl FnOnce(&Around<'_>) -> std::result::Result<Option<Point>, Fault>,
    ) -> Result<Submitted<'_>> {
        if self.order == Order::InOrder {
            let submitted = submit(&Around { waits, signals: &[], hint: self.hint() });
            self.device.engine.kick();
            return Ok(Submitted::in_order(self, submitted?.ok_or_else(ended_nowhere)?));
        }
        // The ends on a queue of free order have no order, so each has a timeline of its own.
        let end = Point { timeline: self.core()?.timeline(0)?, value: 1 };
        let event = Event::owning(&self.device.engine, end, self.handle);
        let submitted = submit(&Around { waits, signals: &[end], hint: self.hint() });
        self.device.engine.kick();
        submitted?;
        Ok(Submitted::own(self, event))
    }

    /// A kernel over `groups` work-groups of `size` work-items, in x, y, z. Arguments are captured now.
    ///
    /// # Errors
    /// Sizes or arguments that are not the kernel's; a kernel of another device; the queue's failure.
    pub fn launch(
        &self,
        kernel: &Kernel,
        groups: [u32; 3],
        size: [u32; 3],
        args: &Args,
    ) -> Result<Submitted<'_>> {
        self.launch_shared(kernel, groups, size, 0, args)
    }

    /// The same with dynamic shared memory for each group.
    ///
    /// # Errors
    /// As [`Queue::launch`].
    pub fn launch_shared(
        &self,
        kernel: &Kernel,
        groups: [u32; 3],
        size: [u32; 3],
        shared: u32,
        args: &Args,
    ) -> Result<Submitted<'_>> {
        let launch = LaunchArgs { groups, size, shared, args: args.as_bytes() };
        let submitted =
            self.submit(&[], |around| self.core()?.launch(self.handle, kernel.handle(), &launch, around));
        submitted.map_err(|error| error.about(&format!("kernel `{}`", kernel.name())))
    }

    /// Bytes from buffer to buffer.
    ///
    /// # Errors
    /// Lengths that differ, ranges that overlap, a device that does not reach the other side; the queue's failure.
    pub fn copy(&self, from: &Buffer, to: &Buffer) -> Result<Submitted<'_>> {
        self.submit(&[], |around| self.core()?.copy(self.handle, &from.span(), &to.span(), around))
    }

    /// A pattern again and again over a buffer whose length is a multiple of the pattern's.
    ///
    /// # Errors
    /// An empty pattern, a length that is no multiple; the queue's failure.
    pub fn fill(&self, to: &Buffer, pattern: &[u8]) -> Result<Submitted<'_>> {
        self.submit(&[], |around| self.core()?.fill(self.handle, &to.span(), pattern, around))
    }

    /// Bytes that are captured now and written in order: for small things.
    ///
    /// # Errors
    /// A length that is not the buffer's; the queue's failure.
    pub fn update(&self, to: &Buffer, bytes: &[u8]) -> Result<Submitted<'_>> {
        self.submit(&[], |around| self.core()?.update(self.handle, &to.span(), bytes, around))
    }

    /// Writes bytes in order, and returns when they are there.
    ///
    /// # Errors
    /// A length that is not the buffer's; the queue's failure.
    pub fn write(&self, to: &Buffer, bytes: &[u8]) -> Result<()> {
        let span = same_len(to.span(), bytes.len())?;
        let write = |core: &'static Core, around: &Around<'_>| {
            // SAFETY: `bytes` outlives `finish`, which returns when the operation has ended.
            unsafe { core.copy_in(self.handle, bytes.as_ptr(), &span, around) }
        };
        self.finish(|around| self.core().and_then(|core| write(core, around)))
    }

    /// Reads bytes in order, and returns when they are here.
    ///
    /// # Errors
    /// A length that is not the buffer's; the queue's failure.
    pub fn read(&self, from: &Buffer, bytes: &mut [u8]) -> Result<()> {
        let span = same_len(from.span(), bytes.len())?;
        let bytes = bytes.as_mut_ptr();
        let read = |core: &'static Core, around: &Around<'_>| {
            // SAFETY: the caller's bytes outlive `finish`, which returns when the operation has ended, and are borrowed
            // alone.
            unsafe { core.copy_out(self.handle, &span, bytes, around) }
        };
        self.finish(|around| self.core().and_then(|core| read(core, around)))
    }

    /// All operations of a list, one after the other; slot `n` of it is `bindings[n]`. Any number of submits may be under
    /// way at once, and the list may be dropped at once.
    ///
    /// # Errors
    /// A list of another device; too few or too short bindings, or such that may not be used so; the queue's failure.
    pub fn execute(&self, list: &CommandList, bindings: &[&Buffer]) -> Result<Submitted<'_>> {
        list.check(&self.device)?;
        let bindings: Vec<Span> = bindings.iter().map(|buffer| buffer.span()).collect();
        self.submit(&[], |around| self.core()?.execute(self.handle, list.core(), &bindings, around))
    }

    /// A function of the caller's, in order, on a thread of the backend. It may block: this queue waits, others do not.
    /// If the queue fails first it is dropped without a call.
    ///
    /// # Errors
    /// A device that runs no host calls; the queue's failure.
    pub fn host_call(&self, call: impl FnOnce() + Send + 'static) -> Result<Submitted<'_>> {
        let call = calls::keep(self.engine().number(), Box::new(call));
        self.submit(&[], |around| {
            let host_call = |core: &'static Core| {
                // SAFETY: `call` is a function over a number that it looks up; any thread may call it at any time.
                unsafe { core.host_call(self.handle, call, around) }
            };
            let submitted = self.core().and_then(host_call);
            submitted.inspect_err(|_| calls::cancel(&call))
        })
    }

    /// Moves managed memory towards the device, or towards the host: a hint, in order.
    ///
    /// # Errors
    /// The queue's failure.
    pub fn prefetch(&self, buffer: &Buffer, to_host: bool) -> Result<Submitted<'_>> {
        self.submit(&[], |around| self.core()?.prefetch(self.handle, &buffer.span(), to_host, around))
    }

    /// What follows waits for these events, of any queue, device or batch of this runtime.
    ///
    /// # Errors
    /// The queue's failure.
    pub fn wait_for(&self, events: &[&Event]) -> Result<Submitted<'_>> {
        let waits: Vec<Point> = events.iter().map(|event| event.point()).collect();
        self.submit(&waits, |around| self.core()?.barrier(self.handle, around))
    }

    /// The moment when everything submitted so far has ended.
    ///
    /// # Errors
    /// The queue's failure.
    pub fn record(&self) -> Result<Event> {
        self.submit(&[], |around| self.core()?.barrier(self.handle, around))?.event()
    }

    /// Returns once everything submitted so far has ended.
    ///
    /// # Errors
    /// The first failure among it.
    pub fn sync(&self) -> Result<()> {
        Ok(self.core()?.sync(self.handle, None)?)
    }

    /// Whether everything submitted has ended.
    ///
    /// # Errors
    /// The queue's failure.
    pub fn is_idle(&self) -> Result<bool> {
        Ok(self.core()?.is_idle(self.handle)?)
    }

    /// Submits an operation that uses the caller's bytes and waits until it has ended, not only until it failed.
    fn finish(
        &self,
        submit: impl FnOnce(&Around<'_>) -> std::result::Result<Option<Point>, Fault>,
    ) -> Result<()> {
        if self.order == Order::Free {
            return self.submit(&[], submit)?.wait();
        }
        let submitted = submit(&Around { waits: &[], signals: &[], hint: Hint::Waiting });
        self.device.engine.kick();
        let point = submitted?.ok_or_else(ended_nowhere)?;
        match self.core()?.wait(point, None) {
            Ok(()) => Ok(()),
            Err(fault) => match self.core()?.look(point) {
                Ok(Look::Reached) => Ok(()),
                _ => Err(fault.into()),
            },
        }
    }
}

/// Operations of the queue wake nobody while this lives.
#[must_use = "a burst ends when it is dropped"]
#[derive(Debug)]
pub struct Burst<'q>(&'q Queue);

impl Drop for Burst<'_> {
    fn drop(&mut self) {
        self.0.bursts.fetch_sub(1, Relaxed);
        // The queue is there as long as this; if it has failed there is nothing to send off.
        let _ = self.0.core().and_then(|core| core.send_off(self.0.handle));
    }
}

fn ended_nowhere() -> Error {
    Error::new(ErrorKind::Internal, "an operation in order ended nowhere")
}

fn same_len(span: Span, len: usize) -> Result<Span> {
    if span.len == len as u64 {
        return Ok(span);
    }
    let message = format!("{len} bytes for a buffer of {}: take a slice of the longer one", span.len);
    Err(Error::new(ErrorKind::Usage, message))
}

impl Drop for Queue {
    fn drop(&mut self) {
        // What was submitted still runs; only the handle ends. A queue that failed closes just as well.
        let _ = self.core().and_then(|core| core.close(self.handle));
        self.device.engine.kick();
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({:?} on {})", self.handle, self.device.id())
    }
}
