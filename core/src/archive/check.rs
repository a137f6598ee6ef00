//! The rules that concern more than one entry: no name twice, no shared bytes, no holes. One sort answers each, in
//! room that the caller gives, so they cost n log n with and without a heap, also against names made to collide.

use super::entry::{Data, Entry, Text};
use super::error::{Class, Error};
use super::input::{Input, Stop};

/// Room for one entry or pair of metadata during [`Archive::check`](super::Archive::check).
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    /// Hash of a name, or first byte of a range.
    key: u64,
    /// Place of a name, or end of a range.
    value: u64,
    /// Stored length of a name.
    len: u32,
    /// Number of the entry.
    index: u32,
}

/// Takes what it needs of `marks`.
fn fill<T>(
    marks: &mut [Mark],
    items: impl Iterator<Item = Result<T, Stop>>,
    mark: impl Fn(T) -> Mark,
) -> Result<&mut [Mark], Stop> {
    let mut used = 0;
    for item in items {
        let item = item?;
        let Some(slot) = marks.get_mut(used) else {
            let detail = "{a} marks are too few to check the file";
            return Err(Error::new(Class::LimitExceeded, 0, detail).values(marks.len() as u64, 0).into());
        };
        // Entries are limited to fewer than 2^32.
        *slot = Mark { index: used as u32, ..mark(item) };
        used += 1;
    }
    Ok(&mut marks[..used])
}

/// Refuses a name that occurs twice. `json` says how names are stored.
pub(super) fn names<'a>(
    input: Input<'a>,
    json: bool,
    names: impl Iterator<Item = Result<Text<'a>, Stop>>,
    marks: &mut [Mark],
    class: Class,
) -> Result<(), Stop> {
    let mark =
        |name: Text<'_>| Mark { key: name.hash(), value: name.at(), len: name.raw().len() as u32, index: 0 };
    let marks = fill(marks, names, mark)?;
    let text = |mark: &Mark| {
        let bytes = input.slice(mark.value, u64::from(mark.len)).unwrap_or_default();
        let raw = core::str::from_utf8(bytes).unwrap_or_default();
        if json { Text::json(raw, mark.value, raw.contains('\\')) } else { Text::plain(raw, mark.value) }
    };
    marks.sort_unstable_by(|a, b| {
        a.key.cmp(&b.key).then_with(|| text(a).cmp(&text(b))).then_with(|| a.index.cmp(&b.index))
    });
    for pair in marks.windows(2) {
        if pair[0].key == pair[1].key && text(&pair[0]) == text(&pair[1]) {
            let detail = "{name} occurs twice, as number {a} and number {b}";
            let (a, b) = (u64::from(pair[0].index), u64::from(pair[1].index));
            return Err(Error::new(class, pair[1].value, detail).name(text(&pair[1])).values(a, b).into());
        }
    }
    Ok(())
}

/// Refuses entries of this file that share bytes and, where the format forbids them, bytes from `begin` to `end` that
/// belong to no entry.
pub(super) fn ranges<'a, I>(entries: I, marks: &mut [Mark], dense: Option<(u64, u64)>) -> Result<(), Stop>
where
    I: Iterator<Item = Result<Entry<'a>, Stop>> + Clone,
{
    let mark = |entry: Entry<'_>| match entry.data {
        Data::Range { offset, len } => Mark { key: offset, value: offset + len, ..Mark::default() },
        _ => Mark::default(),
    };
    let marks = fill(marks, entries.clone(), mark)?;
    marks.sort_unstable_by_key(|mark| (mark.key, mark.value, mark.index));
    let name = |mark: &Mark| match entries.clone().nth(mark.index as usize) {
        Some(Ok(entry)) => entry.name,
        _ => Text::plain("", 0),
    };
    let mut last: Option<Mark> = None;
    let mut end = dense.map_or(0, |(begin, _)| begin);
    for mark in marks.iter() {
        // An empty tensor shares no bytes; but where bytes may not be left out it has its place too.
        if mark.key < end && (mark.value > mark.key || dense.is_some()) {
            let other = last.map_or(Text::plain("the header", 0), |last| name(&last));
            let detail = "{name} begins at {a}, before `{word}` ends at {b}";
            let error = Error::new(Class::Overlap, mark.key, detail).values(mark.key, end);
            return Err(error.name(name(mark)).word(other.bytes()).into());
        }
        if dense.is_some() && mark.key > end {
            let detail = "{a-b} bytes before {name}, which begins at {a}, belong to no tensor";
            return Err(Error::new(Class::Hole, end, detail).values(mark.key, end).name(name(mark)).into());
        }
        if mark.value > mark.key {
            end = mark.value;
            last = Some(*mark);
        }
    }
    match dense {
        Some((_, stop)) if stop > end => {
            let detail = "{a-b} bytes after the last tensor, which ends at {b}, belong to no tensor";
            Err(Error::new(Class::Hole, end, detail).values(stop, end).into())
        }
        _ => Ok(()),
    }
}
