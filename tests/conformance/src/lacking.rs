//! A device without programs, in the shape of one that has them: whoever asks is told that there are none. The suite
//! looks at what a target has before it runs a case, so only a mistake in a case's needs ever asks.

use wharf_core::{
    device::{Block, Caps, Describe, Device, HostAccess, Kernel, Param, Programs, SymbolKind, Want},
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// The device below.
pub struct Lacking<D>(pub D);

fn none<T>(site: Site) -> Result<T, Fault> {
    Err(Fault::backend(Kind::Unsupported, site, Why::Unknown, [0; 2]))
}

impl<D: Device> Device for Lacking<D> {
    type Lane = D::Lane;
    type Gauge = D::Gauge;

    fn caps(&self) -> Caps {
        self.0.caps()
    }
    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        self.0.allocate(want)
    }
    fn free(&self, block: &Block) -> Result<(), Fault> {
        self.0.free(block)
    }
    fn lane(&self, tick: Tick) -> Result<(D::Lane, D::Gauge, usize), Fault> {
        self.0.lane(tick)
    }
}

impl<D: Device> Programs for Lacking<D> {
    fn accepts(&self, _: &[u8]) -> bool {
        false
    }
    fn load(&self, _: &[u8]) -> Result<u64, Fault> {
        none(Site::Load)
    }
    fn unload(&self, _: u64) -> Result<(), Fault> {
        none(Site::Unload)
    }
    fn kernel(&self, _: u64, _: &[u8], _: &[Param]) -> Result<Kernel, Fault> {
        none(Site::Kernel)
    }
    fn global(&self, _: u64, _: &[u8]) -> Result<Block, Fault> {
        none(Site::Global)
    }
    fn symbol(&self, _: u64, _: u32, _: &mut [u8]) -> Result<Option<(usize, SymbolKind)>, Fault> {
        none(Site::Symbols)
    }
    fn params(&self, _: u64, _: &mut [Param]) -> Result<usize, Fault> {
        none(Site::Kernel)
    }
    fn occupancy(&self, _: u64, _: u64) -> Result<u32, Fault> {
        none(Site::Occupancy)
    }
}

impl<D: HostAccess> HostAccess for Lacking<D> {
    fn map(&self, block: &Block, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        self.0.map(block, offset, len)
    }
    fn unmap(&self, block: &Block, offset: u64, len: u64) -> Result<(), Fault> {
        self.0.unmap(block, offset, len)
    }
    fn sync(&self, block: &Block, offset: u64, len: u64, to_device: bool) -> Result<(), Fault> {
        self.0.sync(block, offset, len, to_device)
    }
    fn register(&self, host: *mut u8, len: u64, access: u32) -> Result<Block, Fault> {
        self.0.register(host, len, access)
    }
    fn unregister(&self, block: &Block) -> Result<(), Fault> {
        self.0.unregister(block)
    }
}

impl<D: Describe> Describe for Lacking<D> {
    fn property(&self, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault> {
        self.0.property(id, out)
    }
}
