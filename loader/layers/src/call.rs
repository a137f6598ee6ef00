//! What a layer sees: calls, their answers, the progress of lanes.

use alloc::string::String;
use wharf_core::{
    device::{Block, Caps, Hint, Kernel, Param, Step, Times, Want},
    fault::{Fault, Site},
};

/// A device as layers know it.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its number in core, the one in the `peers` of a copy.
    pub number: u16,
    /// Its name for people, as `host:0`.
    pub name: String,
    /// What the device itself said of itself.
    pub caps: Caps,
}

/// Where and when a call was made.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The device.
    pub device: &'a Facts,
    /// Number of the lane, from 1, of all lanes of the chain; 0 for calls of the device.
    pub lane: u32,
    /// Number of the calling thread.
    pub thread: u64,
    /// When the call began.
    pub begin_ns: u64,
    /// When it ended; before it has, when it began.
    pub end_ns: u64,
}

/// A call of the roles.
#[derive(Clone, Copy)]
pub enum Call<'a> {
    /// `Device::allocate`.
    Allocate(&'a Want),
    /// `Device::free`.
    Free(&'a Block),
    /// `Device::lane`; [`At::lane`] is the number that the lane will have.
    Open,
    /// The lane is dropped.
    Close,
    /// `Lane::submit`.
    Submit(&'a [Step<'a>], Hint),
    /// `Programs::load`.
    Load(&'a [u8]),
    /// `Programs::unload`.
    Unload(u64),
    /// `Programs::kernel`.
    Kernel {
        /// The program.
        program: u64,
        /// The kernel's name.
        name: &'a [u8],
        /// The caller's idea of its parameters.
        layout: &'a [Param],
    },
    /// `Programs::global`.
    Global {
        /// The program.
        program: u64,
        /// The global's name.
        name: &'a [u8],
    },
    /// `HostAccess::map`: block, offset, length.
    Map(&'a Block, u64, u64),
    /// `HostAccess::unmap`: block, offset, length.
    Unmap(&'a Block, u64, u64),
    /// `HostAccess::sync`: block, offset, length, towards the device.
    Sync(&'a Block, u64, u64, bool),
    /// `HostAccess::register`: address, length, access.
    Register(u64, u64, u32),
    /// `HostAccess::unregister`.
    Unregister(&'a Block),
    /// A question that changes nothing: properties, symbols, parameters, occupancy, whether an image is taken.
    Ask(Site),
}

impl Call<'_> {
    /// The site that a fault of the call names.
    pub const fn site(&self) -> Site {
        match self {
            Call::Allocate(_) => Site::Allocate,
            Call::Free(_) => Site::Free,
            Call::Open => Site::Queue,
            Call::Close => Site::Close,
            Call::Submit(..) => Site::Submit,
            Call::Load(_) => Site::Load,
            Call::Unload(_) => Site::Unload,
            Call::Kernel { .. } => Site::Kernel,
            Call::Global { .. } => Site::Global,
            Call::Map(..) => Site::Map,
            Call::Unmap(..) | Call::Unregister(_) => Site::Unmap,
            Call::Sync(..) => Site::Flush,
            Call::Register(..) => Site::Register,
            Call::Ask(site) => *site,
        }
    }
}

/// What a call that went well answered.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// Nothing more.
    Done,
    /// Memory, of `allocate`, `register` and `global`.
    Block(Block),
    /// Steps taken, of `submit`.
    Taken(usize),
    /// A program.
    Program(u64),
    /// A kernel.
    Kernel(Kernel),
    /// A host address, of `map`.
    Address(u64),
}

/// How a call ended. With a fault comes how many steps were taken before it, 0 for anything but `submit`.
pub type Outcome<T = Answer> = Result<T, (usize, Fault)>;

/// A step that has ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The value that its lane's timeline shows since.
    pub value: u64,
    /// When that was seen.
    pub seen_ns: u64,
    /// When it began and ended on the device's clock, if the backend keeps that.
    pub times: Option<Times>,
}

/// One layer. Calls come from any thread, several at once.
pub trait Layer: Send + Sync {
    /// Its name, as people choose it.
    fn name(&self) -> &'static str;
    /// What core is told of a device. Always the same answer.
    fn caps(&self, caps: Caps) -> Caps {
        caps
    }
    /// Whether steps are to be stamped, so that [`End::times`] is there where the backend can.
    fn wants_times(&self) -> bool {
        false
    }
    /// Before the device sees the call.
    ///
    /// # Errors
    /// The answer of the call: neither the layers below nor the device see it. Of a submit, `(n, fault)` lets
    /// `steps[..n]` through and refuses `steps[n]`.
    fn before(&self, at: &At<'_>, call: &Call<'_>) -> Outcome<()> {
        let _ = (at, call);
        Ok(())
    }
    /// After the call: also for one that a layer below refused, not for one that this layer did. Steps of a submit may
    /// end before this is called.
    fn after(&self, at: &At<'_>, call: &Call<'_>, outcome: &Outcome) {
        let _ = (at, call, outcome);
    }
    /// The device's lane has reached `value`: how much of it may show now. Asked again with each look at the lane, under
    /// the lane's lock, so it calls nothing that waits.
    ///
    /// # Errors
    /// The lane is over as soon as nothing of it is under way.
    fn reach(&self, at: &At<'_>, value: u64) -> Result<u64, Fault> {
        let _ = at;
        Ok(value)
    }
    /// A step has ended; told some time after it showed.
    fn ended(&self, at: &At<'_>, end: &End) {
        let _ = (at, end);
    }
    /// The lane is over, and nothing of it is under way: what has not shown will not. Under the lane's lock, as `reach`.
    fn failed(&self, at: &At<'_>, fault: &Fault) {
        let _ = (at, fault);
    }
    /// The device is given up.
    fn close(&self, device: &Facts) {
        let _ = device;
    }
}
