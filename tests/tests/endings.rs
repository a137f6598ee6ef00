//! A runtime ends with the last of what was made on it, wherever that is let go of: on a thread of a backend, inside a
//! host call; on its own pump thread, by a batch that is over. It ends soon then, and leaves nothing.
#![allow(clippy::unwrap_used, unreachable_pub)] // The macro of a plugin makes public things.

use std::{
    sync::{
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};
use wharf::{LoadOptions, Runtime};
use wharf_abi::export;
use wharf_core::{
    device::{Block, Caps, Device, Hint, Lane, Op, Step, Want},
    fault::Fault,
    tick::Tick,
};
use wharf_host::{HostDevice, HostGauge, HostLane};

/// Devices that were made and not yet let go of.
static DEVICES: AtomicU32 = AtomicU32::new(0);
/// Lanes take no copies: they are full.
static FULL: AtomicBool = AtomicBool::new(false);

/// The host device, counted.
pub struct Counted(HostDevice);
/// Its lane.
pub struct CountedLane(HostLane);

impl Counted {
    fn all() -> Result<Vec<Counted>, Fault> {
        DEVICES.fetch_add(1, SeqCst);
        Ok(vec![Counted(HostDevice::new())])
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        DEVICES.fetch_sub(1, SeqCst);
    }
}

impl Device for Counted {
    type Lane = CountedLane;
    type Gauge = HostGauge;
    fn caps(&self) -> Caps {
        self.0.caps()
    }
    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        self.0.allocate(want)
    }
    fn free(&self, block: &Block) -> Result<(), Fault> {
        self.0.free(block)
    }
    fn lane(&self, tick: Tick) -> Result<(CountedLane, HostGauge, usize), Fault> {
        self.0.lane(tick).map(|(lane, gauge, name)| (CountedLane(lane), gauge, name))
    }
}

impl Lane for CountedLane {
    fn submit(&mut self, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)> {
        let copies = steps.iter().any(|step| matches!(step.op, Op::Copy { .. }));
        if copies && FULL.load(SeqCst) { Ok(0) } else { self.0.submit(steps, hint) }
    }
}

macro_rules! counted {
    ($name:ident, $id:literal) => {
        wharf_abi::plugin! {
            /// The counted device.
            pub struct $name,
            backend: Counted,
            id: $id, vendor: "Wharf", version: "1",
            devices: || Counted::all(),
            roles: [],
            text: wharf_host::text,
        }
    };
}
counted!(Calls, "calls");
counted!(CallsAlone, "calls-alone");
counted!(Panics, "panics");
counted!(Copies, "copies");

/// One at a time, since they count the same.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Soon also where many tests run at once, and sooner than the five seconds after which a runtime gives up.
fn ends_soon() {
    let begun = Instant::now();
    while DEVICES.load(SeqCst) != 0 {
        assert!(begun.elapsed() < Duration::from_secs(4), "the runtime is still there");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Gives all that there is to a host call and lets it go on only then.
fn let_go_inside_a_host_call(runtime: Runtime, id: &str, end: fn()) {
    let device = runtime.device(id).unwrap();
    let queue = device.queue().unwrap();
    let (send, receive) = mpsc::channel();
    drop(queue.host_call(move || {
        let all: Option<(Runtime, wharf::Device, wharf::Queue, wharf::Buffer)> = receive.recv().ok();
        assert!(all.is_some());
        end();
    }));
    let buffer = device.allocate(64).unwrap();
    assert_eq!(DEVICES.load(SeqCst), 1);
    send.send((runtime, device, queue, buffer)).unwrap();
    ends_soon();
}

#[test]
fn a_runtime_whose_last_owner_goes_inside_a_host_call_ends_soon() {
    let _alone = alone();
    let open = || Runtime::builder().only_named();
    let_go_inside_a_host_call(open().linked_in(export::entry::<Calls>).open(), "calls:0", || ());
    let alone = open().linked_in(export::entry::<CallsAlone>).without_pump().open();
    let_go_inside_a_host_call(alone, "calls-alone:0", || ());
    let panics = open().linked_in(export::entry::<Panics>).open();
    let_go_inside_a_host_call(panics, "panics:0", || panic!("what a host call says is its own affair"));
}

#[test]
fn a_runtime_whose_pump_lets_go_of_it_last_ends_soon() {
    let _alone = alone();
    let runtime = Runtime::builder().only_named().linked_in(export::entry::<Copies>).open();
    let device = runtime.device("copies:0").unwrap();
    let [from, to] = [0; 2].map(|_| device.allocate(4096).unwrap());
    FULL.store(true, SeqCst);
    let load = device.copy_from(&from, &to, LoadOptions::default()).unwrap();
    drop((load, from, to, device, runtime));
    assert_eq!(DEVICES.load(SeqCst), 1, "the batch keeps it");
    FULL.store(false, SeqCst); // The pump, which asks again, is now the only one who knows of the batch.
    ends_soon();
}
