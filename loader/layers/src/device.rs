//! The device over a device.

use crate::{
    call::{Answer, At, Call, Facts, Outcome},
    chain::Chain,
    lane::{LayeredGauge, LayeredLane, Watch},
};
use alloc::{string::String, sync::Arc};
use wharf_core::{
    device::{Block, Caps, Describe, Device, HostAccess, Kernel, Param, Programs, SymbolKind, Want},
    env::Lock,
    fault::{Fault, Site},
    tick::Tick,
};

/// A device whose calls pass through a chain of layers, or, without one, go straight to the device below.
pub struct Layered<D: 'static, L: Lock> {
    below: &'static D,
    over: Option<Over<L>>,
}

struct Over<L: Lock> {
    chain: Arc<Chain<L>>,
    facts: Arc<Facts>,
}

impl<D: Device, L: Lock> Layered<D, L> {
    /// `below` without layers.
    pub const fn bare(below: &'static D) -> Self {
        Layered { below, over: None }
    }

    /// `below` under `chain`, as device `number` of its runtime and with a name for people.
    pub fn new(below: &'static D, chain: Arc<Chain<L>>, number: u16, name: impl Into<String>) -> Self {
        let facts = Arc::new(Facts { number, name: name.into(), caps: below.caps() });
        Layered { below, over: Some(Over { chain, facts }) }
    }

    /// The device below.
    pub fn below(&self) -> &'static D {
        self.below
    }

    #[inline]
    fn around<T>(
        &self,
        call: Call<'_>,
        answer: impl FnOnce(&T) -> Answer,
        run: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        match &self.over {
            None => run(),
            Some(over) => {
                let at = over.chain.at(&over.facts, 0);
                over.around(&at, &call, answer, run)
            }
        }
    }
}

impl<L: Lock> Over<L> {
    fn around<T>(
        &self,
        at: &At<'_>,
        call: &Call<'_>,
        answer: impl FnOnce(&T) -> Answer,
        run: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (asked, admitted) = self.chain.before(at, call);
        let result = admitted.map_err(|(_, fault)| fault).and_then(|()| run());
        let outcome: Outcome = match &result {
            Ok(value) => Ok(answer(value)),
            Err(fault) => Err((0, *fault)),
        };
        self.chain.after(asked, at, call, &outcome);
        result
    }
}

impl<D: 'static, L: Lock> Drop for Layered<D, L> {
    fn drop(&mut self) {
        if let Some(over) = &self.over {
            over.chain.each(|layer| layer.close(&over.facts));
        }
    }
}

fn done<T>(_: &T) -> Answer {
    Answer::Done
}

impl<D: Device, L: Lock> Device for Layered<D, L> {
    type Lane = LayeredLane<D, L>;
    type Gauge = LayeredGauge<D, L>;

    fn caps(&self) -> Caps {
        let caps = self.below.caps();
        self.over.as_ref().map_or(caps, |over| over.chain.caps(caps))
    }
    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        self.around(Call::Allocate(want), |block| Answer::Block(*block), || self.below.allocate(want))
    }
    fn free(&self, block: &Block) -> Result<(), Fault> {
        self.around(Call::Free(block), done, || self.below.free(block))
    }
    fn lane(&self, tick: Tick) -> Result<(Self::Lane, Self::Gauge, usize), Fault> {
        let Some(over) = &self.over else {
            let (lane, gauge, name) = self.below.lane(tick)?;
            return Ok((LayeredLane::bare(lane), LayeredGauge::bare(gauge), name));
        };
        let number = over.chain.next_lane();
        let at = over.chain.at(&over.facts, number);
        over.around(&at, &Call::Open, done, || {
            let watch = Watch::take(&over.chain, &over.facts, number, tick);
            match self.below.lane(watch.tick()) {
                Ok((lane, gauge, name)) => {
                    let (lane, gauge) = (LayeredLane::watched(lane, watch, gauge.clone()), gauge);
                    Ok((lane, LayeredGauge::watched(gauge, watch), name))
                }
                Err(fault) => {
                    watch.give_back();
                    Err(fault)
                }
            }
        })
    }
}

impl<D: Programs, L: Lock> Programs for Layered<D, L> {
    fn accepts(&self, image: &[u8]) -> bool {
        // Works before the device is started and fails nowhere: nothing for a layer to see.
        self.below.accepts(image)
    }
    fn load(&self, image: &[u8]) -> Result<u64, Fault> {
        self.around(Call::Load(image), |program| Answer::Program(*program), || self.below.load(image))
    }
    fn unload(&self, program: u64) -> Result<(), Fault> {
        self.around(Call::Unload(program), done, || self.below.unload(program))
    }
    fn kernel(&self, program: u64, name: &[u8], layout: &[Param]) -> Result<Kernel, Fault> {
        let call = Call::Kernel { program, name, layout };
        self.around(call, |kernel| Answer::Kernel(*kernel), || self.below.kernel(program, name, layout))
    }
    fn global(&self, program: u64, name: &[u8]) -> Result<Block, Fault> {
        let call = Call::Global { program, name };
        self.around(call, |block| Answer::Block(*block), || self.below.global(program, name))
    }
    fn symbol(&self, program: u64, index: u32, out: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault> {
        self.around(Call::Ask(Site::Symbols), done, || self.below.symbol(program, index, out))
    }
    fn params(&self, kernel: u64, out: &mut [Param]) -> Result<usize, Fault> {
        self.around(Call::Ask(Site::Kernel), done, || self.below.params(kernel, out))
    }
    fn occupancy(&self, kernel: u64, shared: u64) -> Result<u32, Fault> {
        self.around(Call::Ask(Site::Occupancy), done, || self.below.occupancy(kernel, shared))
    }
}

impl<D: HostAccess, L: Lock> HostAccess for Layered<D, L> {
    fn map(&self, block: &Block, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        let answer = |at: &*mut u8| Answer::Address(at.addr() as u64);
        self.around(Call::Map(block, offset, len), answer, || self.below.map(block, offset, len))
    }
    fn unmap(&self, block: &Block, offset: u64, len: u64) -> Result<(), Fault> {
        self.around(Call::Unmap(block, offset, len), done, || self.below.unmap(block, offset, len))
    }
    fn sync(&self, block: &Block, offset: u64, len: u64, to_device: bool) -> Result<(), Fault> {
        let call = Call::Sync(block, offset, len, to_device);
        self.around(call, done, || self.below.sync(block, offset, len, to_device))
    }
    fn register(&self, host: *mut u8, len: u64, access: u32) -> Result<Block, Fault> {
        let call = Call::Register(host.addr() as u64, len, access);
        self.around(call, |block| Answer::Block(*block), || self.below.register(host, len, access))
    }
    fn unregister(&self, block: &Block) -> Result<(), Fault> {
        self.around(Call::Unregister(block), done, || self.below.unregister(block))
    }
}

impl<D: Describe, L: Lock> Describe for Layered<D, L> {
    fn property(&self, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault> {
        self.around(Call::Ask(Site::Property), done, || self.below.property(id, out))
    }
}
