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
  validation    broken rules and what is left over, on stderr; `:abort` ends the process at the first
  trace:FILE    calls and operations over time, for ui.perfetto.dev (wharf-trace.json without FILE)
  capture:FILE  all calls with their bytes, for `wharf replay` (wharf-capture.bin without FILE)
  faults:PLAN   with + between: fail=KIND:K (the K-th allocate, copy, launch, ... is refused),
                break=KIND:K (its queue fails), delay=KIND:10ms, reorder[=2ms], lose=after:K, seed=N

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
    /// Only plugins whose ids fit, instead of WHARF_PLUGINS_SELECT
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',', global = true)]
    pub(crate) select: Vec<String>,
    /// No plugins whose ids fit, instead of WHARF_PLUGINS_DISABLE
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',', global = true)]
    pub(crate) disable: Vec<String>,
    /// Fail unless these plugins have devices, instead of WHARF_REQUIRE
    #[arg(long, value_name = "ID,...", value_delimiter = ',', global = true)]
    pub(crate) require: Vec<String>,
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
    #[command(
        after_help = "Examples:\n  wharf plugins\n  wharf plugins inspect wharf_host_plugin.so\n  wharf plugins check wharf_host_plugin.so --json"
    )]
    Plugins {
        /// Look at one file instead; nothing of it is run
        #[command(subcommand)]
        look: Option<Look>,
    },
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
    /// Tries each plugin in a process of its own, and looks at drivers and limits; exit code 1 if anything is wanting
    #[command(
        after_help = "Examples:\n  wharf doctor\n  wharf doctor --timeout 30 --json\n  wharf doctor --forgive"
    )]
    Doctor(DoctorArgs),
    /// Runs the suite of behaviour for backends on a plugin; exit code 1 if it fails anywhere
    #[command(
        after_help = "Examples:\n  wharf conformance ./libnpu.so\n  wharf conformance ./libnpu.so --filter memory. --mode no-pump\n  wharf conformance --list"
    )]
    Conformance(ConformanceArgs),
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

/// What to do with a plugin file.
#[derive(Subcommand)]
pub(crate) enum Look {
    /// What a plugin file says about itself and what it needs
    Inspect {
        /// The plugin
        file: PathBuf,
    },
    /// What speaks against a plugin file; exit code 1 if something does
    Check {
        /// The plugin
        file: PathBuf,
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

/// How to look for what is wrong.
#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// How long a plugin may take to start and to do a little work
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    /// Take all plugins off the list of those that are set aside
    #[arg(long)]
    pub(crate) forgive: bool,
    /// Try this plugin in this process: what the doctor starts
    #[arg(long, value_name = "PLUGIN", hide = true)]
    pub(crate) probe: Option<PathBuf>,
}

/// What of the suite to run, on what.
#[derive(Args)]
pub(crate) struct ConformanceArgs {
    /// The plugin
    #[arg(value_name = "PLUGIN", required_unless_present = "list")]
    pub(crate) file: Option<PathBuf>,
    /// The cases and the rules that they hold
    #[arg(long, conflicts_with_all = ["junit", "mode"])]
    pub(crate) list: bool,
    /// Only cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Also write the result as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// How the runtime is driven: pump, no-pump, depth-1, no-native-wait; all of them if none is given
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Vec<String>,
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
    /// How files are read: `auto` reads them into memory of this process, and maps them for other devices, unless the file
    /// system is reached over a network
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
