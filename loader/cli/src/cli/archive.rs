//! The words of the verbs over archives.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

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

/// What a list is sorted by.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// By name
    Name,
    /// Largest first
    Size,
    /// As they lie in the file; splats last
    Offset,
}

pub(crate) const LIST_HELP: &str = "Examples:
  wharf list model.gguf
  wharf list model.safetensors.index.json --json
  wharf list base=a.irpa extra=b.irpa -q
  wharf list model.gguf --sort size --filter 'dtype=Q4_K,Q6_K size>1MB'
  wharf list model.safetensors --filter 'shape=[_,768] name=*.weight'

A filter is conditions with blanks between, all of which must hold:
  name=GLOB              != for those that do not match
  dtype=F16[,BF16...]    any of these types, in any case; `none` for tensors without one
  size>1MB               also >= < <= = !=; kB MB GB TB count in thousands, KiB MiB GiB TiB in 1024
  offset>=4096, rank=2   likewise; splats have no offset
  shape=[3,_,64]         `_` is any dimension, `..` at the end any that follow
  place=stored           or splat, external
--filter may be given again: a tensor is listed if one of them holds.";

/// Which tensors to list, and how.
#[derive(Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// In another order than the files'
    #[arg(long, value_name = "KEY")]
    pub(crate) sort: Option<Sort>,
    /// Only tensors for which these conditions hold (may be given again; see below)
    #[arg(long, value_name = "CONDITIONS")]
    pub(crate) filter: Vec<String>,
    /// Text as `iree-dump-parameters` prints it
    #[arg(long, conflicts_with_all = ["json", "quiet", "sort"])]
    pub(crate) iree: bool,
}

/// Which metadata.
#[derive(Args)]
pub(crate) struct MetaArgs {
    /// The archive
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// One key, or a glob
    #[arg(value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Long arrays and texts as a whole
    #[arg(long)]
    pub(crate) full: bool,
}

/// Which tensor.
#[derive(Args)]
pub(crate) struct ShowArgs {
    /// The archive
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The tensor
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Values to show, and bytes in hex
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(0..=65_536))]
    pub(crate) head: u64,
    /// Read the bytes as this type, where the archive names none
    #[arg(long = "as", value_name = "TYPE")]
    pub(crate) dtype: Option<String>,
}

/// What to verify.
#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// Archives, or indexes of sharded sets
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Compare the bytes of each tensor with what `wharf hash` wrote (text or JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) hashes: Option<PathBuf>,
    /// Warnings count as problems
    #[arg(long)]
    pub(crate) strict: bool,
}

/// What to hash.
#[derive(Args)]
pub(crate) struct HashArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// Tensors that are read at once; as many as there are processors, up to 8, unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: Option<u16>,
}

/// What to compare.
#[derive(Args)]
pub(crate) struct DiffArgs {
    /// The one archive
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The other
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Only tensors whose names match this glob (may be given again)
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
}

pub(crate) const CONVERT_HELP: &str = "Examples:
  wharf convert model.safetensors -o model.irpa
  wharf convert part-00001-of-00002.gguf part-00002-of-00002.gguf -o model.irpa
  wharf convert model.irpa -o small.irpa --exclude 'lm_head.*' --rename old=new
  wharf convert model.safetensors -o shape.irpa --strip
  wharf convert model.irpa -o test.irpa --splat bias=f32=1.5

Scopes keep inputs apart on the command line; names in OUT have none. Tensors of types that IRPA does not know are kept
as their bytes. OUT is replaced if it is there, in one step once all is written; never if it is one of the inputs.";

/// What to convert, and how.
#[derive(Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// The archive to make: OUT.irpa or OUT.safetensors
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Leave out the tensor of this name, or those that match this glob (may be given again)
    #[arg(long, value_name = "NAME")]
    pub(crate) exclude: Vec<String>,
    /// Give a tensor another name (may be given again)
    #[arg(long, value_name = "OLD=NEW")]
    pub(crate) rename: Vec<String>,
    /// Every tensor becomes a splat of zeros
    #[arg(long)]
    pub(crate) strip: bool,
    /// This tensor becomes a splat of zeros, or of a value (may be given again)
    #[arg(long, value_name = "NAME[=TYPE=VALUE]")]
    pub(crate) splat: Vec<String>,
    /// Alignment of stored tensors, a power of two; 64 unless given
    #[arg(long, visible_alias = "alignment", value_name = "N", value_parser = super::alignment)]
    pub(crate) align: Option<u64>,
    /// Keep type and shape in IRPA, as metadata that IREE's Python tools read
    #[arg(long)]
    pub(crate) types: bool,
}

pub(crate) const CREATE_HELP: &str = "Examples:
  wharf create -o test.irpa --data=key0=4xf32 --data=key1=5xi8=101 --splat=s=8xi64=7
  wharf create -o test.irpa --data='table=2x2xi32=1,2,3,4' --alignment=4096

A tensor is NAME=SHAPExTYPE[=VALUE]: dimensions with `x` between, then the type: i1 i8 i16 i32 i64, s or u in front for
signed or unsigned, f16 bf16 f32 f64. VALUE is one number for all elements, or one for each with commas between; zero
unless given. Splats come first, then data, each in the order given.";

/// What to create.
#[derive(Args)]
pub(crate) struct CreateArgs {
    /// The archive to make: OUT.irpa
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// A tensor whose bytes are stored (may be given again)
    #[arg(long, value_name = "NAME=SHAPExTYPE[=VALUE]")]
    pub(crate) data: Vec<String>,
    /// A tensor of one value, of which only the value is stored (may be given again)
    #[arg(long, value_name = "NAME=SHAPExTYPE[=VALUE]")]
    pub(crate) splat: Vec<String>,
    /// Alignment of stored tensors, a power of two
    #[arg(long, visible_alias = "align", value_name = "N", default_value_t = 64, value_parser = super::alignment)]
    pub(crate) alignment: u64,
}
