//! Every limit of the host device, in one place.

/// Lanes at once.
pub const LANES_MAX: u16 = 4096;
/// Unfinished steps that a lane takes.
pub const DEPTH: u16 = 4096;
/// Least alignment of an allocation: a cache line.
pub const ALIGN: u32 = 64;
/// Largest alignment of an allocation.
pub const ALIGN_MAX: u64 = 1 << 30;
/// Most bytes of kernel arguments.
pub const ARGS_MAX: u32 = 64 << 10;
/// Most work-items in a group.
pub const GROUP_MAX: u32 = 1024;
/// Most bytes of dynamic shared memory of a group, and most of static shared memory.
pub const SHARED_MAX: u32 = 1 << 20;
/// Most worker threads that are not inside a host call.
pub const WORKERS_MAX: usize = 1024;
/// Stamped steps whose times a lane keeps.
pub const TIMES_MAX: usize = 4096;
/// Largest image.
pub const IMAGE_MAX: usize = 1 << 30;
/// Symbols of an image.
pub const SYMBOLS_MAX: usize = 1 << 16;
/// Captured bytes that a step holds without an allocation.
pub(crate) const INLINE: usize = 96;
/// Steps of one lane that a worker runs before other lanes get their turn.
pub(crate) const TURN: u32 = 1024;
/// Copies and fills from this length on are shared among workers, in pieces of this length.
pub(crate) const PIECE: u64 = 1 << 20;
/// Fills from this length on go past the caches.
pub(crate) const STREAM: u64 = 16 << 20;
/// A wait with a deadline runs copies and fills up to this length itself.
pub(crate) const BRIEF: u64 = 64 << 10;
/// Turns of the loop in which one idle worker looks for work before it sleeps.
pub(crate) const SCOUT_SPINS: u32 = 2_000;
/// Looks of a waiter at its lane before it sleeps.
pub(crate) const WAIT_LOOKS: u32 = 100;
/// How long a worker that is one too many stays for the next host call, in milliseconds.
pub(crate) const SURPLUS_MS: u64 = 100;
/// A launch of several groups that has run this long is shared among workers, in nanoseconds.
pub(crate) const ALONE_NS: u64 = 5_000;
/// Looks of a worker at a lane that has just become idle, and turns of a spin loop before each.
pub(crate) const LINGER_LOOKS: u32 = 64;
pub(crate) const LINGER_PAUSE: u32 = 64;
