//! Command lists: operations that are recorded once, checked once and submitted many times.

use crate::{
    args::Args,
    buffer::Buffer,
    device::Device,
    engine::EngineHome,
    error::{Error, ErrorKind, Result},
    program::Kernel,
};
use std::fmt;
use wharf_core::{
    bits::Access,
    buffer::WHOLE,
    runtime::{self, ArgRef, Command, LaunchArgs, ListRoom, Ref},
};

type Core = runtime::CommandList<'static, EngineHome>;

/// A place in a list for a buffer that each submit brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    /// `len` bytes at `offset` of what is bound.
    pub const fn part(self, offset: u64, len: u64) -> Operand {
        Operand(Ref::Bound { slot: self.0, offset, len })
    }
    /// What is bound from `offset` on.
    pub const fn from(self, offset: u64) -> Operand {
        self.part(offset, WHOLE)
    }
}

/// Memory that a recorded operation works on: a buffer, kept by the list, or a slot.
#[derive(Clone, Copy, Debug)]
pub struct Operand(Ref);

impl From<&Buffer> for Operand {
    fn from(buffer: &Buffer) -> Self {
        Operand(Ref::Direct(buffer.span()))
    }
}

impl From<Slot> for Operand {
    fn from(slot: Slot) -> Self {
        Operand(Ref::slot(slot.0))
    }
}

/// Arguments of a recorded launch: values, and addresses of buffers and slots.
#[derive(Clone, Debug, Default)]
pub struct ListArgs {
    args: Args,
    refs: Vec<ArgRef>,
}

impl ListArgs {
    /// No arguments.
    pub fn new() -> Self {
        ListArgs::default()
    }
    /// The address of memory that the kernel reads and writes.
    #[must_use]
    pub fn buffer(self, of: impl Into<Operand>) -> Self {
        self.address(of.into(), Access::READ | Access::WRITE)
    }
    /// The address of memory that the kernel only reads.
    #[must_use]
    pub fn input(self, of: impl Into<Operand>) -> Self {
        self.address(of.into(), Access::READ)
    }
    /// Values, as [`Args`] packs them.
    #[must_use]
    pub fn with(mut self, values: impl FnOnce(Args) -> Args) -> Self {
        self.args = values(self.args);
        self
    }

    fn address(mut self, of: Operand, access: Access) -> Self {
        self.args = self.args.u64(0);
        let at = (self.args.end() - size_of::<u64>()) as u32;
        self.refs.push(ArgRef { at, of: of.0, access });
        self
    }
}

impl From<&Args> for ListArgs {
    fn from(args: &Args) -> Self {
        ListArgs { args: args.clone(), refs: Vec::new() }
    }
}

/// A list that is being recorded. Bytes are captured at each call; a call that is refused leaves the list as it was.
pub struct Recording {
    list: Core,
    device: Device,
    kernels: Vec<Kernel>,
}

impl Recording {
    pub(crate) fn begin(device: Device, slots: u32) -> Result<Recording> {
        let mut list = Core::new(EngineHome(device.engine.clone()), ListRoom::growing());
        list.begin(device.index, slots)?;
        Ok(Recording { list, device, kernels: Vec::new() })
    }

    fn record(&mut self, command: &Command<'_>) -> Result<()> {
        Ok(self.device.core()?.record(&mut self.list, command)?)
    }

    /// Bytes from one place to another.
    ///
    /// # Errors
    /// Lengths that differ, ranges that overlap or do not lie inside, a slot the list does not have.
    pub fn copy(&mut self, from: impl Into<Operand>, to: impl Into<Operand>) -> Result<()> {
        self.record(&Command::Copy { from: from.into().0, to: to.into().0 })
    }

    /// A pattern again and again.
    ///
    /// # Errors
    /// An empty pattern, a length that is no multiple; as [`Recording::copy`].
    pub fn fill(&mut self, to: impl Into<Operand>, pattern: &[u8]) -> Result<()> {
        self.record(&Command::Fill { to: to.into().0, pattern })
    }

    /// At most 65,536 bytes.
    ///
    /// # Errors
    /// More bytes, or a length that is not that of the target; as [`Recording::copy`].
    pub fn update(&mut self, to: impl Into<Operand>, bytes: &[u8]) -> Result<()> {
        self.record(&Command::Update { to: to.into().0, bytes })
    }

    /// A kernel over `groups` work-groups of `size` work-items. The list keeps its program loaded.
    ///
    /// # Errors
    /// Sizes or arguments that are not the kernel's; a kernel of another device.
    pub fn launch(
        &mut self,
        kernel: &Kernel,
        groups: [u32; 3],
        size: [u32; 3],
        args: &ListArgs,
    ) -> Result<()> {
        self.launch_shared(kernel, groups, size, 0, args)
    }

    /// The same with dynamic shared memory for each group.
    ///
    /// # Errors
    /// As [`Recording::launch`].
    pub fn launch_shared(
        &mut self,
        kernel: &Kernel,
        groups: [u32; 3],
        size: [u32; 3],
        shared: u32,
        args: &ListArgs,
    ) -> Result<()> {
        let launch = LaunchArgs { groups, size, shared, args: args.args.as_bytes() };
        let command = Command::Launch { kernel: kernel.handle(), launch, refs: &args.refs };
        self.record(&command).map_err(|error| error.about(&format!("kernel `{}`", kernel.name())))?;
        if !self.kernels.iter().any(|known| known.handle() == kernel.handle()) {
            self.kernels.push(kernel.clone());
        }
        Ok(())
    }

    /// Nothing: the operations of a list run one after the other. For recordings made elsewhere.
    ///
    /// # Errors
    /// None today.
    pub fn barrier(&mut self) -> Result<()> {
        self.record(&Command::Barrier)
    }

    /// The list, ready to be submitted.
    ///
    /// # Errors
    /// None today.
    pub fn end(mut self) -> Result<CommandList> {
        self.list.end()?;
        let Recording { list, device, kernels } = self;
        Ok(CommandList { list, device, _kernels: kernels })
    }
}

/// A recorded sequence of operations, submitted by [`Queue::execute`](crate::Queue::execute).
pub struct CommandList {
    list: Core,
    device: Device,
    // Kernels keep their programs, which go after the list.
    _kernels: Vec<Kernel>,
}

impl CommandList {
    pub(crate) fn core(&self) -> &Core {
        &self.list
    }
    /// Operations that a submit hands over.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// How many buffers a submit must bring.
    pub fn bindings(&self) -> u32 {
        self.list.bindings()
    }
    /// The device it was recorded for.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// Fails for a queue of another runtime, whose device may have the same number.
    pub(crate) fn check(&self, device: &Device) -> Result<()> {
        if self.device.same(device) {
            return Ok(());
        }
        let message = format!("a list of {} on a queue of {}", self.device.id(), device.id());
        Err(Error::new(ErrorKind::Usage, message))
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recording({} operations for {})", self.list.len(), self.device.id())
    }
}

impl fmt::Debug for CommandList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandList({} operations for {})", self.len(), self.device.id())
    }
}
