//! The archive readers agree with themselves: the table of a file with its parts, a file whose beginning is in memory
//! with the whole one, the survey of problems with the reader.

use wharf_core::archive::{Archive, Data, Format, Index, Input, Shards, Stop, examine};

/// A file so long that a short input can pass for its header.
const LONG: u64 = 1 << 40;

/// Reads bytes as a file of this format, whole and in part.
///
/// # Panics
/// If two ways to read the same bytes differ, or something is listed that is not inside the file.
pub fn archive(format: Format, bytes: &[u8]) {
    let len = bytes.len() as u64;
    let whole = Index::read_as(format, Input::whole(bytes));
    match &whole {
        Ok(index) => listed(index, format, bytes, len),
        Err(Stop::Need(need)) => panic!("a whole file of {len} bytes asks for {need}"),
        Err(Stop::Bad(error)) => drop(error.to_string()),
    }
    match examine(Some(format), Input::whole(bytes)) {
        Ok(problems) => {
            assert_eq!(problems.is_empty(), whole.is_ok(), "reader: {whole:?}, problems: {problems:?}");
            problems.iter().for_each(|problem| drop(problem.to_string()));
        }
        Err(stop) => panic!("a whole file: {stop}"),
    }
    for part in [bytes.len() / 2, bytes.len().saturating_sub(1), 64.min(bytes.len())] {
        beginning(format, &bytes[..part], len, &whole);
    }
    match Index::read_as(format, Input::prefix(bytes, LONG)) {
        Ok(index) => listed(&index, format, bytes, LONG),
        Err(Stop::Need(need)) => assert!(need > len && need <= LONG, "{need} of {len}"),
        Err(Stop::Bad(_)) => {}
    }
    if let Ok(index) = Index::read(Input::whole(bytes)) {
        assert!(Index::read_as(index.format(), Input::whole(bytes)).is_ok(), "the content shows its format");
    }
}

/// A file of which only the beginning is in memory is read as the whole one is, or asks for more.
fn beginning(format: Format, part: &[u8], len: u64, whole: &Result<Index, Stop>) {
    match (Index::read_as(format, Input::prefix(part, len)), whole) {
        (Ok(part), Ok(whole)) => {
            let facts = |index: &Index| -> Vec<String> {
                index
                    .entries()
                    .map(|item| format!("{:?} {:?} {:?}", item.name, item.shape, item.data))
                    .collect()
            };
            assert_eq!(facts(&part), facts(whole));
        }
        (Err(Stop::Need(need)), _) => assert!(need > part.len() as u64 && need <= len, "{need} of {len}"),
        (Err(Stop::Bad(_)), Err(Stop::Bad(_))) => {}
        (part, whole) => panic!("the beginning is {part:?}, the whole {whole:?}"),
    }
}

/// Everything listed is inside the file, has a name of its own, and is the same by the reader without a heap.
fn listed(index: &Index, format: Format, bytes: &[u8], len: u64) {
    assert_eq!(index.file_len(), len);
    assert_eq!(index.format(), format);
    for (number, item) in index.entries().enumerate() {
        assert_eq!(index.find(item.name), Some(number), "{:?}", item.name);
        if let Data::Range { offset, len: size } = item.data {
            assert!(offset.checked_add(size).is_some_and(|end| end <= len), "{item:?} of {len}");
        }
        if let Data::Splat { pattern_len, len, .. } = item.data {
            assert!(pattern_len > 0 && len % u64::from(pattern_len) == 0, "{item:?}");
        }
    }
    let archive = Archive::open_as(format, Input::prefix(bytes, len)).expect("it was opened before");
    assert_eq!(archive.count(), index.len() as u64);
    let mut entries = archive.entries();
    for item in index.entries() {
        let entry = entries.next().expect("as many").expect("none is at fault");
        assert!(entry.name == *item.name, "{:?} is {:?}", entry.name, item.name);
        assert_eq!(entry.shape.dims(), item.shape);
        assert_eq!(entry.data.len(), item.data.len());
    }
    assert!(entries.next().is_none());
}

/// Reads bytes as the index of a sharded set.
///
/// # Panics
/// If a tensor is assigned to a file that is not listed, or a file is no plain name.
pub fn shards(bytes: &[u8]) {
    let shards = match Shards::parse(bytes) {
        Ok(shards) => shards,
        Err(error) => return drop(error.to_string()),
    };
    let mut used = vec![false; shards.files().len()];
    let mut names = std::collections::HashSet::new();
    for (name, file) in shards.tensors() {
        used[file] = true;
        assert!(names.insert(name), "{name:?} twice");
    }
    assert!(used.iter().all(|used| *used), "a file without tensors");
    for file in shards.files() {
        assert!(!file.starts_with('/') && !file.split('/').any(|step| step == ".."), "{file:?} leads away");
    }
    let _ = shards.total_size();
}
