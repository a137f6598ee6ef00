//! The words of the command line.

mod archive;
mod bench;

pub(crate) use archive::*;
pub(crate) use bench::*;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Moves model parameters and work to devices, through plugins that are found at run time.
#[derive(Parser)]
#[command(name = "wharf", version, arg_required_else_help = true, propagate_version = true)]
#[command(after_help = "Examples:
  wharf devices
  wharf list model.safetensors
  wharf convert model.safetensors -o model.irpa
  wharf load model.gguf --device host:0
  wharf --plugin-path target/plugins devices --json
  wharf --layer trace:load.json load model.gguf --device host:0

Layers (--layer, WHARF_LAYERS=name[:options],...; WHARF_LAYERS_DISABLE=GLOB,... switches them off):
  validation   rules of devices, checked at each call, and what is left over; findings on stderr; `:abort` stops there
  trace:FILE   calls and operations of all queues over time, for ui.perfetto.dev (wharf-trace.json without FILE)
  capture:FILE all calls with their bytes, for `wharf replay` (wharf-capture.bin without FILE)
  faults:PLAN  fail=KIND:K (the K-th allocate, copy, launch, ... is refused), break=KIND:K (its queue fails),
               delay=KIND:10ms, reorder[=2ms], lose=after:K, seed=N, with + between them

Exit codes: 0 done, 1 looked at and found wanting, 2 usage, 3 no such file, device, tensor or kernel, 4 bad file,
5 not supported, 6 device or plugin, 7 out of memory or over a limit, 130 interrupted.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every verb takes.
#[derive(Args, Clone)]
pub(crate) struct Global {
    /// One JSON value on stdout instead of text, also for a failure
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Names only, or as little
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Exact sizes in bytes instead of rounded ones
    #[arg(long, global = true)]
    pub(crate) bytes: bool,
    /// A plugin file to use, before any folder (may be given again)
    #[arg(long = "plugin", value_name = "FILE", global = true)]
    pub(crate) plugin_files: Vec<PathBuf>,
    /// A folder of plugins, before WHARF_PLUGIN_PATH (may be given again)
    #[arg(long = "plugin-path", value_name = "DIR", global = true)]
    pub(crate) plugin_paths: Vec<PathBuf>,
    /// A layer over all devices: validation[:abort], trace[:FILE] (Chrome's format, for Perfetto), capture[:FILE] (for
    /// `wharf replay`), faults:PLAN (may be given again; the first is the outermost, those of WHARF_LAYERS follow)
    #[arg(long = "layer", value_name = "NAME[:OPTIONS]", global = true)]
    pub(crate) layers: Vec<String>,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub(crate) color: Color,
}

/// When to use colour.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Devices, one a line, and why others are not available
    Devices(DevicesArgs),
    /// Plugins that were found, what became of each, and where they were looked for
    Plugins,
    /// Tensors of archives: name, type, shape, bytes, offset
    #[command(after_help = LIST_HELP)]
    List(ListArgs),
    /// What an archive is: format, version, types, metadata, warnings
    Info(FilesArgs),
    /// Metadata of an archive: key, type, value
    #[command(
        after_help = "Examples:\n  wharf meta model.gguf\n  wharf meta model.gguf general.name -q\n  wharf meta model.gguf 'tokenizer.*' --full --json"
    )]
    Meta(MetaArgs),
    /// One tensor: facts, first bytes, first values, least, greatest, mean
    #[command(
        after_help = "Examples:\n  wharf show model.gguf blk.0.attn_q.weight\n  wharf show model.irpa key0 --as F32 --head 64"
    )]
    Show(ShowArgs),
    /// Checks archives through and through and names all that is wrong; exit code 1 if anything is
    #[command(
        after_help = "Examples:\n  wharf verify model.safetensors.index.json\n  wharf hash a.gguf > a.sha256; wharf verify a.gguf --hashes a.sha256"
    )]
    Verify(VerifyArgs),
    /// SHA-256 of each tensor's bytes
    #[command(
        after_help = "Examples:\n  wharf hash model.gguf > model.sha256\n  wharf hash a.safetensors --include '*.bias' --json"
    )]
    Hash(HashArgs),
    /// Compares two archives of any formats by names and bytes; exit code 1 if they differ
    #[command(after_help = "Example:\n  wharf diff model.safetensors model.irpa")]
    Diff(DiffArgs),
    /// Writes the tensors of archives into a new one
    #[command(after_help = CONVERT_HELP)]
    Convert(ConvertArgs),
    /// Writes an archive of tensors that are given here
    #[command(after_help = CREATE_HELP)]
    Create(CreateArgs),
    /// Places the tensors of archives on a device
    #[command(
        after_help = "Examples:\n  wharf load model.safetensors --device host:0\n  wharf load model.gguf --include 'blk.0.*' --timelines 4\n  wharf load model.irpa --dry-run"
    )]
    Load(LoadArgs),
    /// Times what the library does on a device: loads, copies, allocations, launches
    #[command(after_help = BENCH_HELP)]
    Bench {
        /// What to time
        #[command(subcommand)]
        bench: Bench,
    },
    /// Puts a small model on a device and checks what it computes
    #[command(
        after_help = "Example:\n  wharf demo --archive digits.safetensors --kernels host.so --expect expected.json"
    )]
    Demo(DemoArgs),
    /// Runs a captured run again on a device and compares what the host read; exit code 1 if anything differs
    #[command(
        after_help = "Example:\n  wharf --layer capture:run.bin load model.gguf --device host:0\n  wharf replay run.bin --device host:0"
    )]
    Replay(ReplayArgs),
    /// A completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The manual, as a man page
    #[command(
        after_help = "Examples:\n  wharf man | man -l -\n  wharf man convert > wharf-convert.1\n  wharf man --dir man1"
    )]
    Man {
        /// The page of one verb
        #[arg(value_name = "VERB", conflicts_with = "dir")]
        verb: Option<String>,
        /// Write all pages into this folder
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// An alignment that archives can have.
fn alignment(text: &str) -> Result<u64, String> {
    let most = wharf::archive::limits::ALIGNMENT;
    match text.parse::<u64>() {
        Ok(number) if number.is_power_of_two() && number <= most => Ok(number),
        _ => Err(format!("an alignment is a power of two from 1 to {most}")),
    }
}

/// Which devices.
#[derive(Args)]
pub(crate) struct DevicesArgs {
    /// Only those of this backend; exit code 6 if it has none
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// All that is known of each
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// What to load, and where.
#[derive(Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// The device, by id or stable id; `auto` takes the first and says so
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: String,
    /// Timelines to spread the load over
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) timelines: u8,
    /// How files are read: `auto` maps them, and reads them where the file system is reached over a network
    #[arg(long, value_name = "WAY", default_value = "auto")]
    pub(crate) io: Io,
    /// Use mapped tensors where they are instead of copying them, where the device allows it
    #[arg(long)]
    pub(crate) import: bool,
    /// Host memory between files and a device that does not share it, at most
    #[arg(long, value_name = "BYTES", default_value = "32MiB", value_parser = bytes)]
    pub(crate) staging: u64,
    /// Check everything and say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What the demo needs.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Archive with the model and the images
    #[arg(long, value_name = "FILE")]
    pub(crate) archive: PathBuf,
    /// Image with the kernels for the device
    #[arg(long, value_name = "FILE")]
    pub(crate) kernels: PathBuf,
    /// Reference answers
    #[arg(long, value_name = "FILE")]
    pub(crate) expect: Option<PathBuf>,
    /// The device
    #[arg(long, value_name = "DEVICE", default_value = "host:0")]
    pub(crate) device: String,
}

/// What to run again.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// A file of the layer `capture`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The device, by id or stable id; `auto` takes the first and says so
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: String,
}

/// How files are read.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Io {
    /// Mapped, or read over a network
    Auto,
    /// Mapped into memory
    Mmap,
    /// Read in large pieces
    Read,
    /// Read past the system's cache, for files that are not in it
    Direct,
}

impl From<Io> for wharf::Io {
    fn from(io: Io) -> Self {
        match io {
            Io::Auto => wharf::Io::Auto,
            Io::Mmap => wharf::Io::Map,
            Io::Read => wharf::Io::Read,
            Io::Direct => wharf::Io::Direct,
        }
    }
}

/// Bytes with a unit: `4096`, `64KiB`, `32MiB`, `1GB`.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| "a number of bytes, as in 64MiB".to_owned())?;
    let unit: u64 = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        unit => return Err(format!("unit `{unit}` is not one of B, KiB, MiB, GiB, kB, MB, GB")),
    };
    number.checked_mul(unit).ok_or_else(|| "more bytes than fit 64 bits".to_owned())
}
