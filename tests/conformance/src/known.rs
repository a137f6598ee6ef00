//! Failures that are known, by backend and case. One that passes fails the run, so that the table stays true.

use crate::{
    mode::Mode,
    need::{Facts, Form},
};

/// A failure that is known.
pub struct Known {
    /// Name of the case.
    pub case: &'static str,
    /// Backends that it fails on; empty: all.
    pub backends: &'static [&'static str],
    /// Modes that it fails in; empty: all.
    pub modes: &'static [&'static str],
    /// Forms that it fails in; empty: all.
    pub forms: &'static [Form],
    /// Why, and whose it is.
    pub reason: &'static str,
}

/// All of them.
pub const KNOWN: &[Known] = &[
    Known {
        case: "fill.pattern_17",
        backends: &["dma"],
        modes: &[],
        forms: &[],
        reason: "the engine refuses patterns above 16 bytes, caps do not say so and core does not do it otherwise",
    },
    Known {
        case: "fill.pattern_1000",
        backends: &["dma"],
        modes: &[],
        forms: &[],
        reason: "the engine refuses patterns above 16 bytes, caps do not say so and core does not do it otherwise",
    },
    Known {
        case: "transfer.update_64k",
        backends: &["dma"],
        modes: &[],
        forms: &[],
        reason: "the engine refuses updates above 64 bytes, caps do not say so and core does not split them",
    },
    Known {
        case: "pipeline.update_above_64k",
        backends: &["dma"],
        modes: &[],
        forms: &[],
        reason: "the engine refuses updates above 64 bytes, caps do not say so and core does not split them",
    },
    Known {
        case: "list.update_64k",
        backends: &["dma"],
        modes: &[],
        forms: &[],
        reason: "the engine refuses updates above 64 bytes, caps do not say so and core does not split them",
    },
];

/// The entry for a case, if it is to fail.
pub fn known(case: &str, facts: &Facts, mode: Mode) -> Option<&'static Known> {
    let of = |names: &[&str], name: &str| names.is_empty() || names.contains(&name);
    KNOWN.iter().find(|known| {
        known.case == case
            && of(known.backends, facts.backend)
            && of(known.modes, mode.name())
            && (known.forms.is_empty() || known.forms.contains(&facts.form))
    })
}
