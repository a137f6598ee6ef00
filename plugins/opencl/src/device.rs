//! Devices: which there are, what each is and takes, and facts about it.

use crate::{
    ffi::{self, Api, Context, Id, number, words},
    memory::Memory,
    program::Shelf,
    queue::{self, OpenclGauge, OpenclLane},
    text::with_text,
};
use opencl_sys as cl;
use std::sync::{Arc, OnceLock, atomic::AtomicU64};
use wharf_core::{
    device::{Block, Caps, Describe, Device, Pace, Want, op, property as p},
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};

/// Unfinished steps of a queue.
pub(crate) const DEPTH: u16 = 1024;
/// Queues of a device at once.
pub(crate) const LANES_MAX: u16 = 256;
/// Alignment of allocations.
pub(crate) const ALIGN: u32 = 64;
/// Longest pattern of `clEnqueueFillBuffer` and `clEnqueueSVMMemFill`.
const PATTERN_MAX: u32 = 128;
/// Longest update: its bytes are kept until it has ended.
const UPDATE_MAX: u32 = 1 << 20;
/// First address space of devices without shared virtual memory; each has its own.
const SPACE: u16 = 1;
/// Set to `0`, shared virtual memory is left alone: for drivers whose own does not work.
const SVM_SWITCH: &str = "WHARF_OPENCL_SVM";

/// What a device's lanes, memory and programs share.
pub(crate) struct Card {
    pub(crate) api: &'static Api,
    pub(crate) id: Id,
    platform: Id,
    /// Which of the devices with the same names it is.
    twin: usize,
    context: OnceLock<Result<Context, Fault>>,
    pub(crate) memory: Memory,
}

impl Card {
    /// The context, made at first need.
    pub(crate) fn context(&self, site: Site) -> Result<&Context, Fault> {
        let make = || self.api.context(self.id).map_err(|refusal| refusal.fault(Site::Start));
        self.context.get_or_init(make).as_ref().map_err(|fault| fault.at(site))
    }

    /// A number about the device; 0 where the driver does not tell.
    pub(crate) fn number(&self, what: u32) -> u64 {
        self.api.device_info(self.id, what).map_or(0, |bytes| number(&bytes))
    }

    fn words(&self, what: u32) -> String {
        self.api.device_info(self.id, what).map_or_else(|_| String::new(), |bytes| words(&bytes))
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        if let Some(Ok(context)) = self.context.get() {
            self.memory.clear(context);
        }
    }
}

/// A device of a platform.
pub struct OpenclDevice {
    pub(crate) card: Arc<Card>,
    /// How many are open.
    lanes: Arc<AtomicU64>,
    pub(crate) shelf: Shelf,
    caps: Caps,
}

/// All devices of all platforms: platforms by name and vendor, devices as their platform lists them.
///
/// # Errors
/// `Unavailable`, with what was tried, if there is no loader, no platform or no device.
pub fn devices() -> Result<Vec<OpenclDevice>, Fault> {
    let unavailable =
        |why: String| with_text(Fault::backend(Kind::Unavailable, Site::Device, Why::Unknown, [0; 2]), why);
    let api = ffi::api().map_err(|why| unavailable(why.to_owned()))?;
    let mut platforms = match api.platforms() {
        Ok(found) if !found.is_empty() => found,
        Err(refusal) if refusal.code != ffi::PLATFORM_NOT_FOUND => return Err(refusal.fault(Site::Device)),
        _ => {
            return Err(unavailable(
                "the OpenCL loader knows no platform: no driver is installed".to_owned(),
            ));
        }
    };
    let about = |platform: Id, what| api.platform_info(platform, what).map_or(String::new(), |b| words(&b));
    platforms.sort_by_cached_key(|platform| {
        [cl::CL_PLATFORM_NAME, cl::CL_PLATFORM_VENDOR, cl::CL_PLATFORM_VERSION]
            .map(|what| about(*platform, what))
    });
    let svm = std::env::var_os(SVM_SWITCH).is_none_or(|value| value != "0");
    let (mut found, mut looked): (Vec<OpenclDevice>, Vec<String>) = (Vec::new(), Vec::new());
    for platform in platforms {
        let ids = api.devices(platform);
        looked.push(match &ids {
            Ok(ids) => format!("{} has {} devices", about(platform, cl::CL_PLATFORM_NAME), ids.len()),
            Err(refusal) => format!(
                "{}: {} answered {}",
                about(platform, cl::CL_PLATFORM_NAME),
                refusal.call,
                refusal.code
            ),
        });
        for id in ids.unwrap_or_default() {
            found.extend(OpenclDevice::of(api, platform, id, svm, &found));
        }
    }
    if found.is_empty() {
        return Err(unavailable(format!("no OpenCL device can be used: {}", looked.join(", "))));
    }
    Ok(found)
}

impl OpenclDevice {
    /// The device, if it has what all of this needs: addresses of 64 bits in the host's byte order, and a compiler.
    fn of(
        api: &'static Api,
        platform: Id,
        id: Id,
        svm: bool,
        before: &[OpenclDevice],
    ) -> Option<OpenclDevice> {
        let ask = |what| api.device_info(id, what).map_or(0, |bytes| number(&bytes));
        let good = ask(cl::CL_DEVICE_ADDRESS_BITS) == 64
            && ask(cl::CL_DEVICE_ENDIAN_LITTLE) == u64::from(cfg!(target_endian = "little"))
            && ask(cl::CL_DEVICE_AVAILABLE) != 0
            && ask(cl::CL_DEVICE_COMPILER_AVAILABLE) != 0;
        if !good {
            return None;
        }
        let svm = if svm && api.has_svm() { ask(cl::CL_DEVICE_SVM_CAPABILITIES) } else { 0 };
        let coarse = svm & (cl::CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | cl::CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
        let fine = svm & cl::CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0;
        let memory = if coarse { Memory::shared(fine) } else { Memory::buffers() };
        let name = |platform: Id, id| {
            (platform.name(api), api.device_info(id, cl::CL_DEVICE_NAME).map(|bytes| words(&bytes)))
        };
        let own = name(platform, id);
        let twin = before.iter().filter(|other| name(other.card.platform, other.card.id) == own).count();
        let card = Card { api, id, platform, twin, context: OnceLock::new(), memory };
        let space = if coarse { 0 } else { SPACE + before.len() as u16 };
        let caps = caps(&card, space, fine);
        let card = Arc::new(card);
        Some(OpenclDevice { card, lanes: Arc::default(), shelf: Shelf::default(), caps })
    }
}

impl Id {
    fn name(self, api: &Api) -> String {
        api.platform_info(self, cl::CL_PLATFORM_NAME).map_or(String::new(), |bytes| words(&bytes))
    }
}

fn caps(card: &Card, space: u16, fine: bool) -> Caps {
    let small = |what| u32::try_from(card.number(what)).unwrap_or(u32::MAX);
    Caps {
        ops: 1 << op::BARRIER | 1 << op::COPY | 1 << op::FILL | 1 << op::UPDATE | 1 << op::LAUNCH,
        backend: 0,
        space,
        // A barrier of PoCL 3.1 on another queue's event was seen to let the first command behind it pass.
        native_wait: false,
        depth: DEPTH,
        pace: Pace::OnRequest,
        lanes: LANES_MAX,
        align: ALIGN,
        args_max: small(cl::CL_DEVICE_MAX_PARAMETER_SIZE),
        group_max: small(cl::CL_DEVICE_MAX_WORK_GROUP_SIZE),
        shared_max: small(cl::CL_DEVICE_LOCAL_MEM_SIZE),
        pattern_max: PATTERN_MAX,
        pattern_pow2: true,
        update_max: UPDATE_MAX,
        alloc_max: card.number(cl::CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        // Only a fine-grained allocation can be touched by the host without a command of a queue.
        mappable: fine,
        coherent: fine,
        host_copies: true,
    }
}

impl Device for OpenclDevice {
    type Lane = OpenclLane;
    type Gauge = OpenclGauge;

    fn caps(&self) -> Caps {
        self.caps
    }

    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        self.card.memory.allocate(&self.card, want)
    }

    fn free(&self, block: &Block) -> Result<(), Fault> {
        self.card.memory.free(&self.card, block)
    }

    fn lane(&self, tick: Tick) -> Result<(OpenclLane, OpenclGauge, usize), Fault> {
        let (lane, gauge) = queue::open(&self.card, &self.lanes, tick)?;
        Ok((lane, gauge, 0))
    }
}

enum Value {
    Text(String),
    Byte(bool),
    Word(u32),
    Wide(u64),
    Dims([u32; 3]),
}

impl Describe for OpenclDevice {
    fn property(&self, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault> {
        let Some(value) = value(&self.card, id) else { return Ok(None) };
        let bytes = match value {
            Value::Text(text) => text.into_bytes(),
            Value::Byte(bit) => vec![bit.into()],
            Value::Word(word) => word.to_le_bytes().to_vec(),
            Value::Wide(wide) => wide.to_le_bytes().to_vec(),
            Value::Dims(dims) => dims.iter().flat_map(|n| n.to_le_bytes()).collect(),
        };
        let fits = bytes.len().min(out.len());
        out[..fits].copy_from_slice(&bytes[..fits]);
        Ok(Some(bytes.len()))
    }
}

fn value(card: &Card, id: u32) -> Option<Value> {
    let word = |what| Some(Value::Word(u32::try_from(card.number(what)).unwrap_or(u32::MAX)));
    let wide = |what| Some(Value::Wide(card.number(what)));
    let floats = |what| floats(card.number(what));
    match id {
        p::TYPE => Some(Value::Word(kind(card))),
        // A handle of the layer above in liboffload; a device has no such fact.
        p::PLATFORM => None,
        p::NAME | p::PRODUCT_NAME => Some(Value::Text(card.words(cl::CL_DEVICE_NAME))),
        p::UID => Some(Value::Text(uid(card))),
        p::VENDOR => Some(Value::Text(card.words(cl::CL_DEVICE_VENDOR))),
        p::DRIVER_VERSION => Some(Value::Text(card.words(cl::CL_DRIVER_VERSION))),
        p::MAX_WORK_GROUP_SIZE => word(cl::CL_DEVICE_MAX_WORK_GROUP_SIZE),
        p::MAX_WORK_GROUP_SIZE_PER_DIMENSION => Some(Value::Dims(group_dimensions(card))),
        p::MAX_WORK_SIZE => Some(Value::Word(u32::MAX)),
        p::MAX_WORK_SIZE_PER_DIMENSION => Some(Value::Dims([u32::MAX; 3])),
        p::VENDOR_ID => word(cl::CL_DEVICE_VENDOR_ID),
        p::NUM_COMPUTE_UNITS => word(cl::CL_DEVICE_MAX_COMPUTE_UNITS),
        p::MAX_CLOCK_FREQUENCY => word(cl::CL_DEVICE_MAX_CLOCK_FREQUENCY),
        p::ADDRESS_BITS => word(cl::CL_DEVICE_ADDRESS_BITS),
        p::MAX_MEM_ALLOC_SIZE => wide(cl::CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        p::GLOBAL_MEM_SIZE => wide(cl::CL_DEVICE_GLOBAL_MEM_SIZE),
        p::WORK_GROUP_LOCAL_MEM_SIZE => wide(cl::CL_DEVICE_LOCAL_MEM_SIZE),
        p::SINGLE_FP_CONFIG => Some(Value::Word(floats(cl::CL_DEVICE_SINGLE_FP_CONFIG))),
        p::DOUBLE_FP_CONFIG => Some(Value::Word(floats(cl::CL_DEVICE_DOUBLE_FP_CONFIG))),
        p::HALF_FP_CONFIG => Some(Value::Word(floats(cl::CL_DEVICE_HALF_FP_CONFIG))),
        p::NATIVE_VECTOR_WIDTH_CHAR => word(cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR),
        p::NATIVE_VECTOR_WIDTH_SHORT => word(cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT),
        p::NATIVE_VECTOR_WIDTH_INT => word(cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_INT),
        p::NATIVE_VECTOR_WIDTH_LONG => word(cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG),
        p::NATIVE_VECTOR_WIDTH_FLOAT => word(cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT),
        p::NATIVE_VECTOR_WIDTH_DOUBLE => word(cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE),
        p::NATIVE_VECTOR_WIDTH_HALF => word(cl::CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF),
        p::SINGLE_FP_SUPPORT => Some(Value::Byte(floats(cl::CL_DEVICE_SINGLE_FP_CONFIG) != 0)),
        p::DOUBLE_FP_SUPPORT => Some(Value::Byte(floats(cl::CL_DEVICE_DOUBLE_FP_CONFIG) != 0)),
        p::HALF_FP_SUPPORT => Some(Value::Byte(floats(cl::CL_DEVICE_HALF_FP_CONFIG) != 0)),
        p::MEMORY_FREE => {
            let total = card.number(cl::CL_DEVICE_GLOBAL_MEM_SIZE);
            Some(Value::Wide(total.saturating_sub(card.memory.live())))
        }
        p::MEMORY_NOTE => {
            Some(Value::Text("total less what was allocated here; OpenCL does not tell more".into()))
        }
        p::MEMORY_KIND => Some(Value::Text(if unified(card) { "unified" } else { "dedicated" }.into())),
        _ => None,
    }
}

/// Whether the device works in the host's memory.
fn unified(card: &Card) -> bool {
    card.number(cl::CL_DEVICE_HOST_UNIFIED_MEMORY) != 0
}

/// `OL_DEVICE_TYPE_GPU`, `_CPU`, or 0, the default, for what is neither.
fn kind(card: &Card) -> u32 {
    match card.number(cl::CL_DEVICE_TYPE) {
        bits if bits & cl::CL_DEVICE_TYPE_GPU != 0 => 2,
        bits if bits & cl::CL_DEVICE_TYPE_CPU != 0 => 3,
        _ => 0,
    }
}

/// The same after a restart, and whatever other platforms come and go.
fn uid(card: &Card) -> String {
    let platform = card.platform.name(card.api);
    format!("{platform}/{}/{}", card.words(cl::CL_DEVICE_NAME), card.twin)
}

fn group_dimensions(card: &Card) -> [u32; 3] {
    let sizes = card.api.device_info(card.id, cl::CL_DEVICE_MAX_WORK_ITEM_SIZES).unwrap_or_default();
    let mut dims = [1; 3];
    for (dim, bytes) in dims.iter_mut().zip(sizes.chunks(size_of::<usize>())) {
        *dim = u32::try_from(number(bytes)).unwrap_or(u32::MAX);
    }
    dims
}

/// OpenCL's bits (1 denormal numbers, 2 infinities and NaN, 4 to nearest, 8 to zero, 16 to infinity, 32 fused, 128 correct
/// division and root) as liboffload's (1 division and root, 2 to nearest, 4 to zero, 8 to infinity, 16 infinities and NaN,
/// 32 denormal numbers, 64 fused).
fn floats(bits: u64) -> u32 {
    [(128, 1), (4, 2), (8, 4), (16, 8), (2, 16), (1, 32), (32, 64)]
        .iter()
        .filter(|(theirs, _)| bits & theirs != 0)
        .fold(0, |all, (_, ours)| all | ours)
}
