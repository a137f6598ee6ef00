//! A bounded store of texts: the newest few hundred, by key. Both ends keep their errors' words in one.

use std::{
    collections::VecDeque,
    string::String,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Texts kept at once; older ones are pushed out.
pub(crate) const TEXTS_MAX: usize = 256;
/// Bytes of one text; the rest is cut off at a character's end.
pub(crate) const TEXT_LEN_MAX: usize = 4096;

/// The store.
pub(crate) struct Store(Mutex<Inner>);

struct Inner {
    last: u32,
    texts: VecDeque<(u32, String)>,
}

impl Store {
    /// An empty store.
    pub(crate) const fn new() -> Self {
        Store(Mutex::new(Inner { last: 0, texts: VecDeque::new() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a text; its key is never 0.
    pub(crate) fn keep(&self, mut text: String) -> u32 {
        text.truncate(text.floor_char_boundary(TEXT_LEN_MAX));
        let mut inner = self.inner();
        if inner.texts.len() == TEXTS_MAX {
            inner.texts.pop_front();
        }
        inner.last = inner.last.checked_add(1).unwrap_or(1);
        let key = inner.last;
        inner.texts.push_back((key, text));
        key
    }

    /// The text of a key, while it is kept.
    pub(crate) fn read<R>(&self, key: u32, read: impl FnOnce(&str) -> R) -> Option<R> {
        let inner = self.inner();
        inner.texts.iter().rev().find(|(k, _)| *k == key).map(|(_, text)| read(text))
    }

    /// Gives a text up.
    pub(crate) fn drop(&self, key: u32) {
        let mut inner = self.inner();
        if let Some(at) = inner.texts.iter().position(|(k, _)| *k == key) {
            inner.texts.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_texts_are_kept_and_the_rest_pushed_out() {
        let store = Store::new();
        let keys: Vec<u32> = (0..=TEXTS_MAX).map(|n| store.keep(n.to_string())).collect();
        assert_eq!(store.read(keys[0], str::to_owned), None);
        assert_eq!(store.read(keys[1], str::to_owned).as_deref(), Some("1"));
        store.drop(keys[1]);
        assert_eq!(store.read(keys[1], str::to_owned), None);
        assert_eq!(store.read(0, str::to_owned), None);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let store = Store::new();
        let key = store.keep("a".repeat(TEXT_LEN_MAX - 1) + "ä");
        assert_eq!(store.read(key, str::len), Some(TEXT_LEN_MAX - 1));
    }
}
