//! Strict readers of parameter archives over bytes: GGUF, safetensors, IRPA; and writers of the last two.
//!
//! - [`Input`]: the bytes of a file that are in memory, and its length; [`Stop`] says which more are needed.
//! - [`Format`], [`Stranger`]: what a file is, by its content.
//! - [`Archive`]: a file of any format, read through; [`Entry`], [`Data`], [`Dtype`], [`Text`]: what is in it.
//! - `Index` (feature `alloc`): the table of a file that outlives its bytes; `Shards`: the index of a sharded checkpoint.
//! - `examine` (feature `alloc`): all that is wrong with a file.
//! - [`mod@write`]: the layout of a file that is to be written, and its head.
//! - [`json`]: the scanner below safetensors, for other small JSON files too.
//! - [`limits`]: every limit.
//!
//! What all of them keep true: arithmetic on numbers of a file is checked; recursion is bounded; nothing is reserved by
//! a number of a file; an entry is listed only once every entry was proven to be inside the file; no byte of tensor data
//! is touched. Without a heap, [`Archive::open`] and [`Archive::entries`] read as often as needed from the bytes, and
//! [`Archive::check`] works in room that the caller gives.
//!
//! Files, shards and other archives' bytes are opened by the loader, never here.

mod any;
mod check;
mod dtype;
mod entry;
mod error;
#[cfg(feature = "alloc")]
mod examine;
pub mod gguf;
#[cfg(feature = "alloc")]
mod index;
mod input;
pub mod irpa;
pub mod json;
pub mod limits;
mod path;
pub mod safetensors;
#[cfg(feature = "alloc")]
mod shards;
mod sniff;
pub mod write;

pub use any::{Archive, Entries};
pub use check::Mark;
pub use dtype::{Dtype, Unsized, elements};
pub use entry::{Chars, Data, Entry, Shape, Text};
pub use error::{Class, Error, Escaped};
#[cfg(feature = "alloc")]
pub use examine::examine;
#[cfg(feature = "alloc")]
pub use index::{Index, Item, Pair, Place, Value, Warning};
pub use input::{Input, Stop};
#[cfg(feature = "alloc")]
pub use shards::Shards;
pub use sniff::{Format, Stranger};
