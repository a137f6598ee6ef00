//! The words of `wharf bench`.

use super::{FilesArgs, Io, bytes};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

pub(crate) const BENCH_HELP: &str = "\
With --json one line: `op` has the seconds of each repetition, from the call until all has ended; `n` and `bytes` say how
much one did, `parse` how long the archives took to open. The first repetition mostly measures fresh memory.

Examples:
  wharf bench load model.gguf --op gather --json
  wharf bench copy --size 64MiB --kind fill
  wharf bench alloc --size 4096 --count 1000
  wharf bench launch --kernels host.so --kernel noargs";

/// What is measured.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Archives onto a device: all tensors at once, into new buffers or into one
    Load(BenchLoadArgs),
    /// Bytes within a device, or between it and the host
    Copy(BenchCopyArgs),
    /// Memory of the device, allocated and freed
    Alloc(BenchAllocArgs),
    /// A kernel without arguments
    Launch(BenchLaunchArgs),
}

/// How often, and on which device.
#[derive(Args)]
pub(crate) struct Repeat {
    /// Repetitions
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) reps: u32,
    /// The device, by id or stable id; `auto` takes the first and says so
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: String,
}

/// How a load goes.
#[derive(Args)]
pub(crate) struct BenchLoadArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    #[command(flatten)]
    pub(crate) repeat: Repeat,
    /// Into new buffers, or into one that is allocated before the first repetition
    #[arg(long, value_name = "OP", default_value = "load")]
    pub(crate) op: LoadOp,
    /// Timelines to spread the load over
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) timelines: u8,
    /// How files are read
    #[arg(long, value_name = "WAY", default_value = "auto")]
    pub(crate) io: Io,
    /// Use mapped tensors where they are (load only)
    #[arg(long)]
    pub(crate) import: bool,
    /// Host memory between files and a device that does not share it, at most
    #[arg(long, value_name = "BYTES", default_value = "32MiB", value_parser = bytes)]
    pub(crate) staging: u64,
}

/// Where a load goes.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadOp {
    /// A new buffer for each tensor
    Load,
    /// One buffer
    Gather,
}

/// What moves.
#[derive(Args)]
pub(crate) struct BenchCopyArgs {
    #[command(flatten)]
    pub(crate) repeat: Repeat,
    /// Bytes of a repetition
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = bytes)]
    pub(crate) size: u64,
    /// What is done with them
    #[arg(long, value_name = "KIND", default_value = "copy")]
    pub(crate) kind: CopyKind,
}

/// Ways of bytes.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CopyKind {
    /// From one buffer of the device to another
    Copy,
    /// A pattern of four bytes, again and again
    Fill,
    /// From the host to the device
    Write,
    /// From the device to the host
    Read,
}

/// What is allocated.
#[derive(Args)]
pub(crate) struct BenchAllocArgs {
    #[command(flatten)]
    pub(crate) repeat: Repeat,
    /// Bytes of an allocation
    #[arg(long, value_name = "BYTES", default_value = "4KiB", value_parser = bytes)]
    pub(crate) size: u64,
    /// Allocations of a repetition, all live at once, then freed
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
}

/// What is launched.
#[derive(Args)]
pub(crate) struct BenchLaunchArgs {
    #[command(flatten)]
    pub(crate) repeat: Repeat,
    /// Image with the kernel for the device
    #[arg(long, value_name = "FILE")]
    pub(crate) kernels: PathBuf,
    /// A kernel without arguments
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: String,
    /// Launches of a repetition, then one wait
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) count: u32,
    /// Wait after each launch
    #[arg(long)]
    pub(crate) each: bool,
}
