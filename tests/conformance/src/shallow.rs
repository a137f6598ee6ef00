//! A device over a device that takes fewer steps or waits less than the one below: so that core's own holding and
//! waiting are run on every backend.

use wharf_core::{
    device::{
        Block, Caps, Describe, Device, Hint, HostAccess, Kernel, Lane, Param, Programs, Step, SymbolKind,
        Want,
    },
    fault::Fault,
    tick::Tick,
    word::Word64,
};

/// The device below and what is taken from it.
pub struct Shallow<D: Device> {
    below: &'static D,
    one_step: bool,
}

impl<D: Device> Shallow<D> {
    /// The device with lanes that take one unfinished step at a time.
    pub fn one_step(below: &'static D) -> Self {
        Shallow { below, one_step: true }
    }

    /// The device with lanes that do not wait for one another.
    pub fn no_native_wait(below: &'static D) -> Self {
        Shallow { below, one_step: false }
    }
}

impl<D: Device> Device for Shallow<D> {
    type Lane = ShallowLane<D::Lane>;
    type Gauge = D::Gauge;

    fn caps(&self) -> Caps {
        let caps = self.below.caps();
        if self.one_step { Caps { depth: 1, ..caps } } else { Caps { native_wait: false, ..caps } }
    }
    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        self.below.allocate(want)
    }
    fn free(&self, block: &Block) -> Result<(), Fault> {
        self.below.free(block)
    }
    fn lane(&self, tick: Tick) -> Result<(Self::Lane, Self::Gauge, usize), Fault> {
        let word = self.one_step.then(|| tick.parts().0);
        let (below, gauge, name) = self.below.lane(tick)?;
        Ok((ShallowLane { below, word, last: 0 }, gauge, name))
    }
}

/// A lane that refuses the next step until the one before it has ended.
pub struct ShallowLane<L> {
    below: L,
    /// Where the end of a step shows, if the lane takes one at a time.
    word: Option<&'static Word64>,
    last: u64,
}

impl<L: Lane> Lane for ShallowLane<L> {
    fn submit(&mut self, steps: &[Step<'_>], hint: Hint) -> Result<usize, (usize, Fault)> {
        let Some(word) = self.word else { return self.below.submit(steps, hint) };
        if word.get() < self.last {
            return Ok(0);
        }
        // A step without a value of its own (a wait for another lane) rides in front of the one that has one.
        let end = steps.iter().position(|step| step.done != 0).map_or(steps.len(), |at| at + 1);
        // Nothing more follows until this one has ended, so it must run now whatever the caller goes on to do.
        let hint = if hint == Hint::More { Hint::None } else { hint };
        let taken = self.below.submit(&steps[..end], hint)?;
        if let Some(done) = steps[..taken].iter().rev().find(|step| step.done != 0).map(|step| step.done) {
            self.last = done;
        }
        Ok(taken)
    }
}

impl<D: Programs> Programs for Shallow<D> {
    fn accepts(&self, image: &[u8]) -> bool {
        self.below.accepts(image)
    }
    fn load(&self, image: &[u8]) -> Result<u64, Fault> {
        self.below.load(image)
    }
    fn unload(&self, program: u64) -> Result<(), Fault> {
        self.below.unload(program)
    }
    fn kernel(&self, program: u64, name: &[u8], layout: &[Param]) -> Result<Kernel, Fault> {
        self.below.kernel(program, name, layout)
    }
    fn global(&self, program: u64, name: &[u8]) -> Result<Block, Fault> {
        self.below.global(program, name)
    }
    fn symbol(&self, program: u64, index: u32, out: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault> {
        self.below.symbol(program, index, out)
    }
    fn params(&self, kernel: u64, out: &mut [Param]) -> Result<usize, Fault> {
        self.below.params(kernel, out)
    }
    fn occupancy(&self, kernel: u64, shared: u64) -> Result<u32, Fault> {
        self.below.occupancy(kernel, shared)
    }
}

impl<D: HostAccess> HostAccess for Shallow<D> {
    fn map(&self, block: &Block, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        self.below.map(block, offset, len)
    }
    fn unmap(&self, block: &Block, offset: u64, len: u64) -> Result<(), Fault> {
        self.below.unmap(block, offset, len)
    }
    fn sync(&self, block: &Block, offset: u64, len: u64, to_device: bool) -> Result<(), Fault> {
        self.below.sync(block, offset, len, to_device)
    }
    fn register(&self, host: *mut u8, len: u64, access: u32) -> Result<Block, Fault> {
        self.below.register(host, len, access)
    }
    fn unregister(&self, block: &Block) -> Result<(), Fault> {
        self.below.unregister(block)
    }
}

impl<D: Describe> Describe for Shallow<D> {
    fn property(&self, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault> {
        self.below.property(id, out)
    }
}
