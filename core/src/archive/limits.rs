//! Every limit of the archive readers, in one place. A file above one of them is refused as `limit_exceeded` (nesting in
//! JSON as `invalid_json`); none of them is a size that gets reserved.

/// Longest header of a safetensors file; the reference reader has the same limit.
pub const JSON_HEADER_BYTES: u64 = 100_000_000;
/// Longest shard index.
pub const SHARD_INDEX_BYTES: u64 = 100_000_000;
/// Deepest nesting of JSON in fields that are not ours to read.
pub const JSON_DEPTH: u32 = 16;
/// Longest name of an entry, key of metadata or path, in stored bytes.
pub const NAME_BYTES: u64 = 65_536;
/// Most dimensions of a tensor.
pub const DIMENSIONS: usize = 16;
/// Most dimensions of a GGUF tensor: what ggml can hold.
pub const GGUF_DIMENSIONS: u64 = 4;
/// Deepest nesting of GGUF arrays; an array of numbers has depth 1.
pub const GGUF_DEPTH: u32 = 4;
/// Longest name that the GGUF specification allows; a longer one is read with a warning.
pub const GGUF_NAME_BYTES: usize = 64;
/// Most entries of a file.
pub const ENTRIES: u64 = 1 << 24;
/// Most pairs of metadata of a file.
pub const PAIRS: u64 = 1 << 24;
/// Most linked headers of an IRPA file.
pub const HEADERS: u64 = 4096;
/// Largest alignment that a file may ask for.
pub const ALIGNMENT: u64 = 1 << 30;
/// Beyond this no file reaches: a range that ends after it is a wrong number (`out_of_range` of data, `limit_exceeded` of
/// a header), not a broken download.
pub const FILE_BYTES: u64 = 1 << 60;
/// Longest text of metadata that an index copies; of a longer one it keeps the place.
pub const COPIED_TEXT_BYTES: usize = 4096;
/// Most warnings that an index keeps.
pub const WARNINGS: usize = 64;
/// Most problems of a file that are named.
pub const PROBLEMS: usize = 1000;
