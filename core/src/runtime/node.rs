//! Nodes: what core keeps of an operation that it holds, or of signals that are due when one ends. A node is one block
//! of memory: the fixed part, then wait points, signal points and captured bytes. Blocks come from what the store was
//! declared with, then from [`Env::grow`] in doubling sizes; they are never given back, only used again.
//!
//! # Safety
//! A block is owned by exactly one [`Node`] at a time or lies on a free list; its size is that of its class; the parts
//! behind the fixed part lie where `waits`, `signals` and `bytes` say, and were written whole by `Nodes::make`.
#![allow(unsafe_code)]

use crate::{
    device::{HostCall, Op},
    env::{Env, Lock, Mutex},
    timeline::{Failure, Point},
};
use core::{alloc::Layout, cell::UnsafeCell, mem::MaybeUninit, ptr::NonNull, slice};

/// Bytes of the smallest block: an operation with two waits and 64 bytes of arguments fits.
pub const BLOCK: usize = 256;
/// Sizes of block: `BLOCK << class`. The largest holds 4 MiB, the limit of what one held operation captures.
const CLASSES: usize = 15;
/// Most wait or signal points of one operation.
pub const POINTS_MAX: usize = 1024;

/// A block of a store.
#[repr(C, align(16))]
pub struct NodeBlock(UnsafeCell<MaybeUninit<[u8; BLOCK]>>);

// SAFETY: a block is reached only through the one node that owns it, or under the lock of the free lists.
unsafe impl Sync for NodeBlock {}

impl NodeBlock {
    /// A block not yet used.
    pub const NEW: Self = NodeBlock(UnsafeCell::new(MaybeUninit::uninit()));
}

/// An operation without its borrowed parts.
#[derive(Clone, Copy)]
enum Kept {
    Barrier,
    Copy { from: u64, to: u64, len: u64, peers: [u16; 2] },
    Fill { to: u64, len: u64 },
    Update { to: u64 },
    Launch { kernel: u64, groups: [u32; 3], size: [u32; 3], shared: u32 },
    Call(HostCall),
    Read { file: u64, at: u64, to: u64, len: u64 },
    Write { file: u64, at: u64, from: u64, len: u64 },
    Prefetch { at: u64, len: u64, to_host: bool },
}

impl Kept {
    /// The fixed part and the bytes to capture; a wait for another lane is made anew when it is needed.
    fn of<'a>(op: &Op<'a>) -> (Kept, &'a [u8]) {
        match *op {
            Op::Barrier | Op::After { .. } => (Kept::Barrier, &[]),
            Op::Copy { from, to, len, peers } => (Kept::Copy { from, to, len, peers }, &[]),
            Op::Fill { to, len, pattern } => (Kept::Fill { to, len }, pattern),
            Op::Update { to, bytes } => (Kept::Update { to }, bytes),
            Op::Launch { kernel, groups, size, shared, args } => {
                (Kept::Launch { kernel, groups, size, shared }, args)
            }
            Op::Call(call) => (Kept::Call(call), &[]),
            Op::Read { file, at, to, len } => (Kept::Read { file, at, to, len }, &[]),
            Op::Write { file, at, from, len } => (Kept::Write { file, at, from, len }, &[]),
            Op::Prefetch { at, len, to_host } => (Kept::Prefetch { at, len, to_host }, &[]),
        }
    }
    fn op<'a>(&self, bytes: &'a [u8]) -> Op<'a> {
        match *self {
            Kept::Barrier => Op::Barrier,
            Kept::Copy { from, to, len, peers } => Op::Copy { from, to, len, peers },
            Kept::Fill { to, len } => Op::Fill { to, len, pattern: bytes },
            Kept::Update { to } => Op::Update { to, bytes },
            Kept::Launch { kernel, groups, size, shared } => {
                Op::Launch { kernel, groups, size, shared, args: bytes }
            }
            Kept::Call(call) => Op::Call(call),
            Kept::Read { file, at, to, len } => Op::Read { file, at, to, len },
            Kept::Write { file, at, from, len } => Op::Write { file, at, from, len },
            Kept::Prefetch { at, len, to_host } => Op::Prefetch { at, len, to_host },
        }
    }
}

/// The fixed part of a node.
#[repr(C, align(16))]
struct Head {
    next: Option<Node>,
    /// The value on the lane's timeline, once known.
    value: u64,
    /// Order in which the lane accepted it.
    order: u64,
    kept: Kept,
    bytes: u32,
    waits: u16,
    signals: u16,
    class: u8,
    stamp: bool,
    place: Place,
    /// What its signals fail with when its value is reached; 0: they are signalled.
    failure: u32,
}

/// Where an operation stands among those of its command list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is none of a list.
    Alone,
    /// The next node is of the same list, and comes after it.
    Before,
    /// The last of its list.
    Last,
}

const HEAD: usize = size_of::<Head>();
const _: () = assert!(HEAD + 2 * size_of::<Point>() + 64 <= BLOCK && HEAD.is_multiple_of(16));

/// The owner of a block. Given back to [`Nodes::give`], not dropped.
pub(crate) struct Node(NonNull<Head>);

// SAFETY: a node owns its block alone; the user pointer of a host call is only handed to its function.
unsafe impl Send for Node {}

impl Node {
    fn head(&self) -> &Head {
        // SAFETY: the block was written by `Nodes::make` and is owned by this node.
        unsafe { self.0.as_ref() }
    }
    fn head_mut(&mut self) -> &mut Head {
        // SAFETY: as in `head`, and `self` is borrowed alone.
        unsafe { self.0.as_mut() }
    }
    fn tail<T>(&self, offset: usize, count: usize) -> &[T] {
        // SAFETY: the block is larger than its head.
        let start = unsafe { self.0.as_ptr().cast::<u8>().add(HEAD + offset) };
        // SAFETY: `make` wrote `count` aligned values there, and the node owns them.
        unsafe { slice::from_raw_parts(start.cast::<T>(), count) }
    }
    pub(crate) fn waits(&self) -> &[Point] {
        self.tail(0, self.head().waits as usize)
    }
    pub(crate) fn signals(&self) -> &[Point] {
        let head = self.head();
        self.tail(head.waits as usize * size_of::<Point>(), head.signals as usize)
    }
    pub(crate) fn op(&self) -> Op<'_> {
        let head = self.head();
        let points = (head.waits as usize + head.signals as usize) * size_of::<Point>();
        head.kept.op(self.tail(points, head.bytes as usize))
    }
    pub(crate) fn stamp(&self) -> bool {
        self.head().stamp
    }
    pub(crate) fn value(&self) -> u64 {
        self.head().value
    }
    pub(crate) fn set_value(&mut self, value: u64) {
        self.head_mut().value = value;
    }
    pub(crate) fn order(&self) -> u64 {
        self.head().order
    }
    pub(crate) fn place(&self) -> Place {
        self.head().place
    }
    /// What its signals are to fail with; the node owns it.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let code = self.head().failure;
        (code != 0).then_some(Failure(code))
    }
    pub(crate) fn set_failure(&mut self, failure: Failure) {
        self.head_mut().failure = failure.0;
    }
}

/// What a node is made of.
pub(crate) struct Parts<'a> {
    pub(crate) op: Op<'a>,
    pub(crate) waits: &'a [Point],
    pub(crate) signals: &'a [Point],
    pub(crate) value: u64,
    pub(crate) order: u64,
    pub(crate) stamp: bool,
    pub(crate) place: Place,
}

struct Lists {
    free: [Option<Node>; CLASSES],
    fresh: usize,
}

/// Where blocks come from.
pub(crate) struct Nodes<L> {
    first: &'static [NodeBlock],
    lists: Mutex<L, Lists>,
}

impl<L: Lock> Nodes<L> {
    pub(crate) const fn new(first: &'static [NodeBlock]) -> Self {
        Nodes { first, lists: Mutex::new(Lists { free: [const { None }; CLASSES], fresh: 0 }) }
    }

    /// How many operations the store was declared to hold.
    pub(crate) fn capacity(&self) -> u64 {
        self.first.len() as u64
    }

    /// A node with everything captured; `None` when no block is left or the parts are too large.
    pub(crate) fn make<E: Env>(&self, parts: &Parts<'_>) -> Option<Node> {
        let (kept, bytes) = Kept::of(&parts.op);
        if parts.waits.len() > POINTS_MAX || parts.signals.len() > POINTS_MAX {
            return None;
        }
        let points = (parts.waits.len() + parts.signals.len()) * size_of::<Point>();
        let len = HEAD.checked_add(points)?.checked_add(bytes.len())?;
        let class = len.div_ceil(BLOCK).next_power_of_two().trailing_zeros() as usize;
        let block = self.take::<E>(class)?;
        let head = Head {
            next: None,
            value: parts.value,
            order: parts.order,
            kept,
            bytes: bytes.len() as u32,
            waits: parts.waits.len() as u16,
            signals: parts.signals.len() as u16,
            class: class as u8,
            stamp: parts.stamp,
            place: parts.place,
            failure: 0,
        };
        // SAFETY: the block is at least `len` bytes, aligned to 16, and owned here.
        unsafe { block.write(head) };
        let mut at = HEAD;
        at = write_at(block, at, parts.waits);
        at = write_at(block, at, parts.signals);
        write_at(block, at, bytes);
        Some(Node(block))
    }

    fn take<E: Env>(&self, class: usize) -> Option<NonNull<Head>> {
        if class >= CLASSES {
            return None;
        }
        let reused = self.lists.with(|lists| {
            if let Some(mut node) = lists.free[class].take() {
                lists.free[class] = node.head_mut().next.take();
                return Some(node.0);
            }
            let block = if class == 0 { self.first.get(lists.fresh) } else { None }?;
            lists.fresh += 1;
            NonNull::new(block.0.get().cast::<Head>())
        });
        reused.or_else(|| E::grow(Layout::from_size_align(BLOCK << class, 16).ok()?).map(NonNull::cast))
    }

    /// Puts the block on its free list.
    pub(crate) fn give(&self, mut node: Node) {
        let class = node.head().class as usize;
        self.lists.with(|lists| {
            node.head_mut().next = lists.free[class].take();
            lists.free[class] = Some(node);
        });
    }
}

/// Copies `values` to `offset` of the block and says where the next part begins.
fn write_at<T: Copy>(block: NonNull<Head>, offset: usize, values: &[T]) -> usize {
    // SAFETY: `make` took a block that holds all parts, each at its offset.
    let to = unsafe { block.as_ptr().cast::<u8>().add(offset) };
    // SAFETY: points lie at multiples of 16 behind the head; the block is nobody else's.
    unsafe { to.cast::<T>().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    offset + size_of_val(values)
}

/// Nodes in order.
pub(crate) struct NodeList {
    first: Option<Node>,
    last: Option<NonNull<Head>>,
}

// SAFETY: `last` is the address of a node that the list owns.
unsafe impl Send for NodeList {}

impl NodeList {
    pub(crate) const NEW: Self = NodeList { first: None, last: None };

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }
    pub(crate) fn first(&self) -> Option<&Node> {
        self.first.as_ref()
    }
    pub(crate) fn push(&mut self, node: Node) {
        let at = node.0;
        match self.last.replace(at) {
            None => self.first = Some(node),
            // SAFETY: `last` is the last node of this list, which is borrowed alone.
            Some(mut last) => unsafe { last.as_mut() }.next = Some(node),
        }
    }
    pub(crate) fn push_front(&mut self, mut node: Node) {
        node.head_mut().next = self.first.take();
        if self.last.is_none() {
            self.last = Some(node.0);
        }
        self.first = Some(node);
    }
    pub(crate) fn pop(&mut self) -> Option<Node> {
        let mut node = self.first.take()?;
        self.first = node.head_mut().next.take();
        if self.first.is_none() {
            self.last = None;
        }
        Some(node)
    }
}
