//! What is asserted of any input: [`archive`] of bytes that may be an archive, [`shards`] of bytes that may be an index
//! of shards, [`plan`] of bytes that choose the entries of a batch. A panic is a finding.
//!
//! The scanner of JSON has no target of its own: it is not public, and every byte of an index, and of a safetensors
//! header, goes through it.

mod archive;
mod batch;
mod choose;

pub use archive::{archive, shards};
pub use batch::plan;
