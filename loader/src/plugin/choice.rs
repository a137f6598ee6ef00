//! Which plugins are wanted: patterns over ids that select and disable, and ids that are required. What the program or
//! an option says replaces what the environment says.

use super::{
    Candidate, Fate, Search,
    surroundings::{DISABLE, REQUIRE, SELECT, Surroundings},
};
use crate::{
    error::{Error, ErrorKind},
    near,
};
use std::ffi::OsStr;

/// Candidates without an id that an error tells of at most.
const UNKNOWN_SHOWN: usize = 3;

/// What is wanted, and what each pattern fits so far.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    select: Vec<Pattern>,
    disable: Vec<Pattern>,
    require: Vec<String>,
}

#[derive(Debug)]
struct Pattern {
    text: String,
    fitted: bool,
}

impl Choice {
    /// What the program says, or else the environment.
    pub(crate) fn of(search: &Search, surroundings: &Surroundings) -> Self {
        let words = |said: &Option<Vec<String>>, variable: &str| match said {
            Some(words) => words.iter().flat_map(|words| split(words)).collect(),
            None if search.only_named => vec![],
            None => split(&surroundings.variable(variable).unwrap_or(OsStr::new("")).to_string_lossy()),
        };
        let patterns =
            |words: Vec<String>| words.into_iter().map(|text| Pattern { text, fitted: false }).collect();
        Choice {
            select: patterns(words(&search.select, SELECT)),
            disable: patterns(words(&search.disable, DISABLE)),
            require: words(&search.require, REQUIRE),
        }
    }

    /// Why a plugin of this id is not to be used; nothing if it is.
    pub(crate) fn refuses(&mut self, id: &str) -> Option<Fate> {
        let disabled = fits(&mut self.disable, id);
        let selected = fits(&mut self.select, id);
        if let Some(pattern) = disabled {
            return Some(Fate::rejected("disabled", format!("`{pattern}` disables it")));
        }
        if self.select.is_empty() || selected.is_some() {
            return None;
        }
        let patterns: Vec<&str> = self.select.iter().map(|pattern| &*pattern.text).collect();
        Some(Fate::rejected("not_selected", format!("only `{}` is selected", patterns.join(","))))
    }

    /// What of all this cannot be had: a pattern that fits nothing, a required plugin that is not in use.
    pub(crate) fn unmet(&self, candidates: &[Candidate]) -> Option<Error> {
        let ids = || candidates.iter().filter_map(|candidate| candidate.id.as_deref());
        for (what, patterns) in [("select", &self.select), ("disable", &self.disable)] {
            if let Some(pattern) = patterns.iter().find(|pattern| !pattern.fitted) {
                let (text, mut known) = (&pattern.text, ids().collect::<Vec<_>>());
                known.sort_unstable();
                known.dedup();
                let known = near::there_are(text, "plugins", known.into_iter());
                let message = format!("{what}: no plugin fits `{}`{known}", near::escaped(text));
                return Some(Error::new(ErrorKind::NoSuchPlugin, message).next(ADVICE));
            }
        }
        let used = |id: &str| {
            let of_id = |c: &&Candidate| c.id.as_deref() == Some(id);
            candidates.iter().filter(of_id).any(|c| matches!(c.fate, Fate::Loaded { devices: 1.., .. }))
        };
        let id = self.require.iter().find(|id| !used(id))?;
        Some(missing(id, candidates))
    }
}

const ADVICE: &str = "`wharf plugins` says what was found and where it was looked for";

/// Why a required plugin is not there: what became of those of its id, else of those whose id nobody knows.
fn missing(id: &str, candidates: &[Candidate]) -> Error {
    let fate = |candidate: &Candidate| format!("{}: {}", candidate.name(), candidate.fate);
    let of_id: Vec<String> = candidates.iter().filter(|c| c.id.as_deref() == Some(id)).map(fate).collect();
    let unknown: Vec<String> =
        candidates.iter().filter(|c| c.id.is_none()).take(UNKNOWN_SHOWN).map(fate).collect();
    let name = near::escaped(id);
    let (kind, why) = match (of_id.is_empty(), unknown.is_empty()) {
        (false, _) => (ErrorKind::Plugin, of_id.join("; ")),
        (true, false) => (ErrorKind::Plugin, format!("no plugin of that id; {}", unknown.join("; "))),
        (true, true) => {
            let known = near::there_are(id, "plugins", candidates.iter().filter_map(|c| c.id.as_deref()));
            (ErrorKind::NoSuchPlugin, format!("no plugin of that id{known}"))
        }
    };
    Error::new(kind, format!("plugin `{name}` is required and cannot be used: {why}")).next(ADVICE)
}

/// The first pattern that fits; all that do are remembered.
fn fits(patterns: &mut [Pattern], id: &str) -> Option<String> {
    let mut first = None;
    for pattern in patterns.iter_mut().filter(|pattern| glob(pattern.text.as_bytes(), id.as_bytes())) {
        pattern.fitted = true;
        first.get_or_insert_with(|| pattern.text.clone());
    }
    first
}

fn split(words: &str) -> Vec<String> {
    words.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether text fits a pattern: `*` is any text, `?` any one byte (ids are ASCII).
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where the last `*` is, and the text that it begins to stand for: the only place to come back to.
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                (p, t) = (at + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests;
