//! A bounded store of texts: the newest few hundred, by the key that a fault carries in [`Fault::text`]. Backends keep
//! their own words for faults in one, and both ends of the plugin ABI theirs.

use crate::fault::Fault;
use alloc::{collections::VecDeque, string::String};
use spin::Mutex;

/// Texts kept at once; older ones are pushed out.
pub const TEXTS_MAX: usize = 256;
/// Bytes of one text; the rest is cut off at a character's end.
pub const TEXT_LEN_MAX: usize = 4096;

/// The store. Its lock spins: it is held for a moment, and only where something has failed.
pub struct Texts(Mutex<Inner>);

struct Inner {
    last: u32,
    texts: VecDeque<(u32, String)>,
}

impl Default for Texts {
    fn default() -> Self {
        Self::new()
    }
}

impl Texts {
    /// An empty store.
    pub const fn new() -> Self {
        Texts(Mutex::new(Inner { last: 0, texts: VecDeque::new() }))
    }

    /// Keeps a text; its key is never 0.
    pub fn keep(&self, mut text: String) -> u32 {
        text.truncate(text.floor_char_boundary(TEXT_LEN_MAX));
        let mut inner = self.0.lock();
        if inner.texts.len() == TEXTS_MAX {
            inner.texts.pop_front();
        }
        inner.last = inner.last.checked_add(1).unwrap_or(1);
        let key = inner.last;
        inner.texts.push_back((key, text));
        key
    }

    /// The fault with these words of its backend's.
    pub fn with(&self, fault: Fault, text: String) -> Fault {
        Fault { text: self.keep(text), ..fault }
    }

    /// The text of a key, while it is kept.
    pub fn read<R>(&self, key: u32, read: impl FnOnce(&str) -> R) -> Option<R> {
        let inner = self.0.lock();
        inner.texts.iter().rev().find(|(k, _)| *k == key).map(|(_, text)| read(text))
    }

    /// Gives a text up.
    pub fn drop(&self, key: u32) {
        let mut inner = self.0.lock();
        if let Some(at) = inner.texts.iter().position(|(k, _)| *k == key) {
            inner.texts.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{borrow::ToOwned, string::ToString, vec::Vec};

    #[test]
    fn the_newest_texts_are_kept_and_the_rest_pushed_out() {
        let store = Texts::new();
        let keys: Vec<u32> = (0..=TEXTS_MAX).map(|n| store.keep(n.to_string())).collect();
        assert_eq!(store.read(keys[0], str::to_owned), None);
        assert_eq!(store.read(keys[1], str::to_owned).as_deref(), Some("1"));
        store.drop(keys[1]);
        assert_eq!(store.read(keys[1], str::to_owned), None);
        assert_eq!(store.read(0, str::to_owned), None);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let store = Texts::new();
        let key = store.keep("a".repeat(TEXT_LEN_MAX - 1) + "ä");
        assert_eq!(store.read(key, str::len), Some(TEXT_LEN_MAX - 1));
    }
}
