//! The words of the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Moves model parameters and work to devices, through plugins that are found at run time.
#[derive(Parser)]
#[command(name = "wharf", version, arg_required_else_help = true, propagate_version = true)]
#[command(after_help = "Examples:
  wharf devices
  wharf list model.safetensors
  wharf load model.gguf --device host:0
  wharf --plugin-path target/plugins devices --json

Exit codes: 0 done, 2 usage, 3 no such file, device, tensor or kernel, 4 bad file, 5 not supported,
6 device or plugin, 7 out of memory or over a limit, 130 interrupted.")]
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
    /// Names only
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
    #[command(
        after_help = "Examples:\n  wharf list model.gguf\n  wharf list model.safetensors.index.json --json\n  wharf list base=a.irpa extra=b.irpa -q"
    )]
    List(FilesArgs),
    /// What an archive is: format, version, types, metadata, warnings
    Info(FilesArgs),
    /// Places the tensors of archives on a device
    #[command(
        after_help = "Examples:\n  wharf load model.safetensors --device host:0\n  wharf load model.gguf --include 'blk.0.*' --timelines 4\n  wharf load model.irpa --dry-run"
    )]
    Load(LoadArgs),
    /// Puts a small model on a device and checks what it computes
    #[command(
        after_help = "Example:\n  wharf demo --archive digits.safetensors --kernels host.so --expect expected.json"
    )]
    Demo(DemoArgs),
    /// A completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
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

/// Which archives.
#[derive(Args)]
pub(crate) struct FilesArgs {
    /// Archives (IRPA, GGUF, safetensors, or the index of a sharded set), each with a scope if wanted
    #[arg(value_name = "[SCOPE=]FILE", required = true)]
    pub(crate) files: Vec<String>,
    /// Only tensors whose names match this glob (may be given again)
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
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

/// How files are read.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Io {
    /// Mapped, or read over a network
    Auto,
    /// Mapped into memory
    Mmap,
    /// Read in large pieces
    Read,
}

impl From<Io> for wharf::Io {
    fn from(io: Io) -> Self {
        match io {
            Io::Auto => wharf::Io::Auto,
            Io::Mmap => wharf::Io::Map,
            Io::Read => wharf::Io::Read,
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
