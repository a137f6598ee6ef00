//! What the benchmarks share. Each is a program of its own that prints rows: a figure, the same of a named baseline
//! measured in turn with it in the same run, their ratio, and the goal.
//!
//! - [`row`]: a row, as text and as JSON; [`time`]: measuring in turn; [`args`]: what every program takes.
//! - [`archives`]: archives that are made for the run; [`sys`]: mapped memory, libraries, what safe Rust lacks.
//! - [`devices`]: the host device, through its plugin and linked in.

pub mod archives;
pub mod args;
pub mod devices;
pub mod row;
pub mod sys;
pub mod time;
