//! A backend that does what the test has told it to: takes so many steps, panics in this call, fails in that one.

use std::{
    string::String,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering::*},
    },
};
use wharf_core::{
    device::{
        Block, Caps, Device, Gauge, Hint, Kernel, Lane, Op, Pace, Param, Programs, Step, SymbolKind, Times,
        Want,
    },
    env::Deadline,
    fault::{Blame, Fault, Kind, Site, Why},
    tick::Tick,
};

/// What the next calls do.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Name of the call that panics.
    pub panic_in: &'static str,
    /// Name of the call that fails.
    pub fail_in: &'static str,
    /// Steps that `submit` takes.
    pub take: usize,
    /// No driver.
    pub no_driver: bool,
}

static ORDERS: Mutex<Orders> =
    Mutex::new(Orders { panic_in: "", fail_in: "", take: usize::MAX, no_driver: false });
static TURN: Mutex<()> = Mutex::new(());
/// Lanes alive.
pub static LANES: AtomicUsize = AtomicUsize::new(0);
/// Devices alive.
pub static DEVICES: AtomicUsize = AtomicUsize::new(0);
/// What `submit` was given: kinds, and the length of the arrays.
pub static SEEN: Mutex<Vec<(u32, usize)>> = Mutex::new(Vec::new());

/// One test at a time, since the toy is one.
pub fn turn() -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    order(|orders| *orders = Orders { take: usize::MAX, ..Orders::default() });
    SEEN.lock().unwrap().clear();
    turn
}

pub fn order(change: impl FnOnce(&mut Orders)) {
    change(&mut ORDERS.lock().unwrap_or_else(PoisonError::into_inner));
}

/// The words of the toy's faults.
pub fn text(key: u32) -> Option<String> {
    (key == 5).then(|| "the toy is broken".into())
}

fn obey(call: &'static str) -> Result<Orders, Fault> {
    let orders = ORDERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_ne!(orders.panic_in, call, "the toy was told to");
    if orders.fail_in == call {
        let mut fault =
            Fault::new(Kind::DeviceLost, Blame::Driver, Site::Device, Why::Native, [0; 2]).with_native(-7);
        fault.text = 5;
        return Err(fault);
    }
    Ok(orders)
}

pub struct Toy;
pub struct ToyLane(Tick, Arc<AtomicU32>);
#[derive(Clone)]
pub struct ToyGauge(Tick);

pub fn devices() -> Result<Vec<Toy>, Fault> {
    let orders = obey("devices")?;
    if orders.no_driver {
        let mut fault = Fault::backend(Kind::Unavailable, Site::Device, Why::Unknown, [0; 2]);
        fault.text = 5;
        return Err(fault);
    }
    DEVICES.fetch_add(2, AcqRel);
    Ok(vec![Toy, Toy])
}

impl Drop for Toy {
    fn drop(&mut self) {
        DEVICES.fetch_sub(1, AcqRel);
    }
}

impl Device for Toy {
    type Lane = ToyLane;
    type Gauge = ToyGauge;
    fn caps(&self) -> Caps {
        let _ = obey("caps");
        Caps {
            ops: u64::MAX,
            backend: 0,
            space: 3,
            native_wait: true,
            depth: 9,
            pace: Pace::OnRequest,
            lanes: 2000,
            align: 256,
            args_max: 4096,
            group_max: 1024,
            shared_max: 48 << 10,
            pattern_max: u32::MAX,
            pattern_pow2: false,
            update_max: u32::MAX,
            alloc_max: u64::MAX,
            mappable: false,
            coherent: true,
            host_copies: false,
        }
    }
    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        obey("allocate")?;
        Ok(Block { base: 0x1000, len: want.len, native: want.align })
    }
    fn free(&self, _: &Block) -> Result<(), Fault> {
        obey("free").map(drop)
    }
    fn lane(&self, tick: Tick) -> Result<(ToyLane, ToyGauge, usize), Fault> {
        obey("lane")?;
        let name = LANES.fetch_add(1, AcqRel);
        Ok((ToyLane(tick, Arc::default()), ToyGauge(tick), name))
    }
}

impl Drop for ToyLane {
    fn drop(&mut self) {
        LANES.fetch_sub(1, AcqRel);
        let _ = obey("destroy");
    }
}

impl Lane for ToyLane {
    fn submit(&mut self, steps: &[Step<'_>], _: Hint) -> Result<usize, (usize, Fault)> {
        let orders = obey("submit").map_err(|fault| (0, fault))?;
        let mut seen = SEEN.lock().unwrap();
        for (n, step) in steps.iter().enumerate() {
            if self.1.load(Acquire) as usize >= orders.take {
                return Ok(n);
            }
            let len = match step.op {
                Op::Fill { pattern, .. } => pattern.len(),
                Op::Update { bytes, .. } => bytes.len(),
                Op::Launch { args, .. } => args.len(),
                Op::After { lane, .. } => lane,
                Op::Copy { peers, .. } => usize::from(peers[0]) << 16 | usize::from(peers[1]),
                _ => 0,
            };
            seen.push((step.op.kind(), len));
            self.1.fetch_add(1, AcqRel);
            if step.tell { self.0.advance(step.done) } else { self.0.advance_quietly(step.done) }
        }
        Ok(steps.len())
    }
}

impl Gauge for ToyGauge {
    fn poll(&self) {
        if let Err(fault) = obey("poll") {
            self.0.fail(&fault);
        }
    }
    fn wait(&self, _: u64, until: Deadline) -> bool {
        let _ = obey("wait");
        until == Some(77)
    }
    fn times(&self, value: u64) -> Option<Times> {
        let _ = obey("times");
        (value == 4).then_some(Times { begin_ns: 10, end_ns: 12 })
    }
}

impl Programs for Toy {
    fn accepts(&self, image: &[u8]) -> bool {
        let _ = obey("accepts");
        image == b"toy"
    }
    fn load(&self, _: &[u8]) -> Result<u64, Fault> {
        obey("load").map(|_| 1)
    }
    fn unload(&self, _: u64) -> Result<(), Fault> {
        obey("unload").map(drop)
    }
    fn kernel(&self, _: u64, _: &[u8], layout: &[Param]) -> Result<Kernel, Fault> {
        obey("kernel")?;
        let params = layout.len() as u32;
        Ok(Kernel { native: 6, args_len: 8, params, group_max: 32, shared_static: 1 })
    }
    fn global(&self, _: u64, _: &[u8]) -> Result<Block, Fault> {
        obey("global").map(|_| Block { base: 8, len: 8, native: 0 })
    }
    fn symbol(&self, _: u64, _: u32, _: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault> {
        obey("symbol").map(|_| None)
    }
    fn params(&self, _: u64, _: &mut [Param]) -> Result<usize, Fault> {
        obey("params").map(|_| 0)
    }
    fn occupancy(&self, _: u64, shared: u64) -> Result<u32, Fault> {
        obey("occupancy").map(|_| shared as u32)
    }
}

wharf_abi::plugin! {
    /// The toy behind tables.
    pub struct ToyPlugin,
    backend: Toy,
    id: "toy", vendor: "Wharf", version: "0.1",
    devices: devices,
    roles: [programs],
    text: text,
    build: "test",
}
