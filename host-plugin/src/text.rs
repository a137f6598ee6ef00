//! Messages that do not fit a fault, under the key that it carries.

use wharf_core::{fault::Fault, texts::Texts};

static TEXTS: Texts = Texts::new();

/// The message under the key in [`Fault::text`], if it is among the last few hundred.
pub fn text(key: u32) -> Option<String> {
    TEXTS.read(key, str::to_owned)
}

/// The fault with a message.
pub(crate) fn with_text(fault: Fault, message: String) -> Fault {
    TEXTS.with(fault, message)
}
