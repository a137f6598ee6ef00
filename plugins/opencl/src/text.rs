//! Messages that do not fit a fault: the last few, under the key that the fault carries in `text`.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use wharf_core::fault::Fault;

/// Messages that are kept.
const TEXTS_MAX: usize = 256;

struct Texts {
    last: u32,
    kept: VecDeque<(u32, String)>,
}

static TEXTS: Mutex<Texts> = Mutex::new(Texts { last: 0, kept: VecDeque::new() });

fn texts() -> MutexGuard<'static, Texts> {
    TEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The message under the key in [`Fault::text`], if it is among the last few hundred.
pub fn text(key: u32) -> Option<String> {
    texts().kept.iter().find(|entry| entry.0 == key).map(|entry| entry.1.clone())
}

/// The fault with a message.
pub(crate) fn with_text(mut fault: Fault, message: String) -> Fault {
    let mut texts = texts();
    texts.last = texts.last.checked_add(1).unwrap_or(1);
    if texts.kept.len() == TEXTS_MAX {
        texts.kept.pop_front();
    }
    fault.text = texts.last;
    texts.kept.push_back((fault.text, message));
    fault
}
