//! All cases, by group. Each file is one group; each case says its rule and where the rule comes from: `design` and
//! `decisions` are this project's, `iree` and `liboffload` the systems it follows, with section or file.

mod alloca;
mod args;
mod batch;
mod buffer;
mod device;
mod event;
mod fill;
mod hostcall;
mod kernel;
mod lifetime;
mod list;
mod list_launch;
mod memory;
mod order;
mod pipeline;
mod program;
mod queue;
mod stress;
mod submission;
mod timeline;
mod transfer;
mod view;
mod wait;

use crate::case::Case;

/// All cases in the order of their groups.
pub fn all() -> impl Iterator<Item = Case> {
    [
        memory::CASES,
        alloca::CASES,
        buffer::CASES,
        transfer::CASES,
        fill::CASES,
        pipeline::CASES,
        queue::CASES,
        event::CASES,
        timeline::CASES,
        wait::CASES,
        order::CASES,
        submission::CASES,
        hostcall::CASES,
        program::CASES,
        kernel::CASES,
        device::CASES,
        view::CASES,
        batch::CASES,
        list::CASES,
        list_launch::CASES,
        lifetime::CASES,
        stress::CASES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// A case in a table.
macro_rules! cases {
    ($($name:literal, [$($need:expr),*], $rule:literal => $check:expr;)*) => {
        /// The cases of this group.
        pub(super) const CASES: &[$crate::Case] =
            &[$($crate::Case { name: $name, rule: $rule, needs: &[$($need),*], check: $check }),*];
    };
}
pub(crate) use cases;
