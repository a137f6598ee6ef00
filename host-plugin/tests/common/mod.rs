//! What the tests of the host device share: a lane driven by hand, as core would.
//!
//! # Safety
//! A `Probe` is leaked, so its tick can be used for ever.
#![allow(unsafe_code, dead_code, unreachable_pub, clippy::unwrap_used)] // Each test uses its part of this.

use std::{
    sync::{
        Condvar, Mutex,
        atomic::{AtomicU64, Ordering::*},
    },
    time::{Duration, Instant},
};
use wharf_core::{
    device::*,
    fault::{Fault, Kind},
    tick::Tick,
    word::Word64,
};
use wharf_host::{HostDevice, HostGauge, HostLane};

/// Core's end of a lane's timeline.
pub struct Probe {
    pub word: Word64,
    pub told: AtomicU64,
    pub failed: Mutex<Option<Fault>>,
}

unsafe extern "C" fn tell(cookie: *const ()) {
    // SAFETY: the cookie is a leaked probe.
    let probe = unsafe { &*cookie.cast::<Probe>() };
    // As dear as core's: a store and a full fence.
    probe.told.store(probe.word.get(), SeqCst);
}

unsafe extern "C" fn fail(cookie: *const (), why: *const Fault) {
    // SAFETY: the cookie is a leaked probe.
    let probe = unsafe { &*cookie.cast::<Probe>() };
    // SAFETY: the fault lives for the call.
    *probe.failed.lock().unwrap() = Some(unsafe { *why });
}

fn tick_of(probe: &'static Probe) -> Tick {
    let cookie = std::ptr::from_ref(probe).cast();
    // SAFETY: the probe is never freed.
    unsafe { Tick::from_parts(&probe.word, cookie, tell, fail) }
}

/// A lane and all that belongs to it.
pub struct Line {
    pub lane: HostLane,
    pub gauge: HostGauge,
    pub name: usize,
    pub probe: &'static Probe,
    pub last: u64,
    /// Values that a test has noted, in order.
    notes: Vec<u64>,
}

impl Line {
    pub fn new(device: &HostDevice) -> Line {
        let probe: &'static Probe = Box::leak(Box::new(Probe {
            word: Word64::new(0),
            told: AtomicU64::new(0),
            failed: Mutex::default(),
        }));
        let tick = tick_of(probe);
        let (lane, gauge, name) = device.lane(tick).unwrap();
        Line { lane, gauge, name, probe, last: 0, notes: Vec::new() }
    }

    pub fn tick(&self) -> Tick {
        tick_of(self.probe)
    }

    /// One step with the next value, which is answered.
    pub fn push(&mut self, op: Op<'_>, hint: Hint) -> u64 {
        self.last += 1;
        let step = Step { op, done: self.last, tell: true, stamp: false };
        if self.lane.submit(&[step], hint).unwrap() == 0 {
            let end = Instant::now() + Duration::from_secs(60);
            while self.lane.submit(&[step], hint).unwrap() == 0 {
                assert!(Instant::now() < end, "the lane stays full");
                std::thread::yield_now();
            }
        }
        self.last
    }

    /// Remembers a value; [`Line::written`] answers the last one noted up to a value, or 0.
    pub fn note(&mut self, value: u64) {
        self.notes.push(value);
    }

    pub fn written(&self, value: u64) -> u64 {
        self.notes[..self.notes.partition_point(|noted| *noted <= value)].last().copied().unwrap_or(0)
    }

    pub fn put(&mut self, op: Op<'_>) -> u64 {
        self.push(op, Hint::None)
    }

    pub fn reached(&self) -> u64 {
        self.probe.word.get()
    }

    /// Waits for the last step in the gauge.
    pub fn finish(&self) {
        assert!(self.gauge.wait(self.last, None));
        assert_eq!(self.reached(), self.last);
    }
}

/// Looks at `done` until it is true; never through a gauge, so that only workers can bring it about.
pub fn until(what: &str, done: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "{what} never came");
        std::thread::yield_now();
    }
}

/// A host call that blocks until it is let go.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    bell: Condvar,
    pub entered: AtomicU64,
}

impl Gate {
    pub fn leaked() -> &'static Gate {
        Box::leak(Box::default())
    }
    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.bell.notify_all();
    }
    pub fn call(&'static self) -> Op<'static> {
        unsafe extern "C" fn block(user: *mut ()) {
            // SAFETY: the user's word is a leaked gate.
            let gate = unsafe { &*user.cast::<Gate>() };
            gate.entered.fetch_add(1, SeqCst);
            let mut open = gate.open.lock().unwrap();
            while !*open {
                open = gate.bell.wait(open).unwrap();
            }
        }
        Op::Call(HostCall { call: block, user: std::ptr::from_ref(self).cast_mut().cast() })
    }
}

/// A host call that adds 1.
pub fn add_one(to: &'static AtomicU64) -> Op<'static> {
    unsafe extern "C" fn add(user: *mut ()) {
        // SAFETY: the user's word is a leaked counter.
        unsafe { &*user.cast::<AtomicU64>() }.fetch_add(1, SeqCst);
    }
    Op::Call(HostCall { call: add, user: std::ptr::from_ref(to).cast_mut().cast() })
}

pub fn counter() -> &'static AtomicU64 {
    Box::leak(Box::default())
}

/// The address of memory as an operation takes it.
pub fn address<T>(of: &mut [T]) -> u64 {
    of.as_mut_ptr().expose_provenance() as u64
}

/// A device with the sample kernels.
pub struct Sample {
    pub device: HostDevice,
    pub program: u64,
}

impl Sample {
    pub fn new(workers: usize) -> Sample {
        let device = HostDevice::with_workers(workers);
        let program = device.load(wharf_host_image::bytes()).unwrap();
        Sample { device, program }
    }
    pub fn kernel(&self, name: &str) -> Kernel {
        self.device.kernel(self.program, name.as_bytes(), &[]).unwrap()
    }
    pub fn line(&self) -> Line {
        Line::new(&self.device)
    }
}

/// A launch of one-dimensional groups.
pub fn launch(kernel: Kernel, groups: u32, size: u32, args: &[u8]) -> Op<'_> {
    Op::Launch { kernel: kernel.native, groups: [groups, 1, 1], size: [size, 1, 1], shared: 0, args }
}

/// Packed arguments, each aligned to its own size.
#[derive(Default)]
pub struct Args(pub Vec<u8>);

impl Args {
    pub fn with(mut self, bytes: &[u8]) -> Args {
        self.0.resize(self.0.len().next_multiple_of(bytes.len()), 0);
        self.0.extend_from_slice(bytes);
        self
    }
    pub fn address<T>(self, of: &mut [T]) -> Args {
        let address = address(of);
        self.with(&address.to_ne_bytes())
    }
}

/// The fault of an image that is refused before it is loaded.
pub fn refused_image(device: &HostDevice, image: &[u8]) -> Fault {
    assert!(!device.accepts(image));
    let fault = device.load(image).unwrap_err();
    assert_eq!(fault.kind, Kind::InvalidImage);
    assert!(wharf_host::text(fault.text).is_some());
    fault
}

/// Every occurrence of some bytes in an image changed to others.
pub fn replace(image: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut image = image.to_vec();
    let mut at = 0;
    while let Some(found) = image[at..].windows(from.len()).position(|bytes| bytes == from) {
        at += found;
        image[at..at + to.len()].copy_from_slice(to);
    }
    image
}
