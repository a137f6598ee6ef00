//! The host's texts: what plugins said about their errors, by the key in [`Fault::text`].

use std::string::String;
use wharf_core::{fault::Fault, texts::Texts};

static TEXTS: Texts = Texts::new();

/// Keeps a text among the newest few hundred and answers its key, never 0.
pub fn keep(text: String) -> u32 {
    TEXTS.keep(text)
}

/// The text of a key, while it is kept.
pub fn get(key: u32) -> Option<String> {
    TEXTS.read(key, str::to_owned)
}

/// A fault in words: the plugin's own if it left some, else the fault's.
pub fn of(fault: &Fault) -> String {
    match get(fault.text) {
        Some(text) => format!("{}: {}: {text}", fault.site.name(), fault.kind.name()),
        None => fault.to_string(),
    }
}
