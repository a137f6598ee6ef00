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
pub const KNOWN: &[Known] = &[];

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
