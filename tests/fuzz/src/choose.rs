//! Numbers out of an input, until it is used up; then zeros.

/// What is left of an input.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        u64::from(self.byte()) % end
    }
    pub(crate) fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }
    /// A length: nothing, a few bytes, about a chunk or a page, or some mebibytes.
    pub(crate) fn len(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => self.below(64),
            2 => 4096 * self.below(64),
            3 => (self.word() & 0xf_ffff) + 1,
            4 => (64 << 10) - 128 + self.below(256),
            _ => self.word() & 0x3f_ffff,
        }
    }
}
