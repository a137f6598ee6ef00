//! Layouts against positions that IREE's own tools give, and against the readers here.

use super::super::error::Class;
use super::super::{Archive, Data, Dtype, Error, Input, Mark};
use super::{Draft, DraftData, Full, Room, Sink, irpa, safetensors, zeros};

fn stored(name: &'static str, len: u64) -> Draft<'static> {
    Draft { name, dtype: None, shape: &[], metadata: b"", data: DraftData::Stored(len) }
}

fn splat(name: &'static str, pattern: &[u8], len: u64) -> Draft<'static> {
    let mut room = [0; 16];
    room[..pattern.len()].copy_from_slice(pattern);
    let data = DraftData::Splat { pattern: room, pattern_len: pattern.len() as u8, len };
    Draft { data, ..stored(name, 0) }
}

fn typed(name: &'static str, dtype: &str, shape: &'static [u64], len: u64) -> Draft<'static> {
    Draft { dtype: Dtype::from_name(dtype), shape, ..stored(name, len) }
}

/// A head with zeros behind it.
fn irpa_file(drafts: &[Draft<'_>], alignment: u64, room: &mut [u8]) -> usize {
    let layout = irpa::Layout::of(drafts.iter().copied(), alignment).unwrap();
    let mut sink = Room::new(room);
    layout.head(drafts.iter().copied(), &mut sink).unwrap();
    assert_eq!(sink.filled().len() as u64, layout.head_len());
    zeros(&mut sink, layout.file_len() - layout.head_len()).unwrap();
    sink.filled().len()
}

fn offsets<const N: usize>(drafts: &[Draft<'_>]) -> [Option<u64>; N] {
    let layout = irpa::Layout::of(drafts.iter().copied(), irpa::ALIGNMENT).unwrap();
    let mut found = [None; N];
    found.iter_mut().zip(layout.offsets(drafts.iter().copied())).for_each(|(slot, at)| *slot = at);
    found
}

/// IREE's `runtime/src/iree/io/formats/irpa/testdata`: single, multiple, mixed.
#[test]
fn irpa_places_entries_where_ireees_files_have_them() {
    assert_eq!(offsets([stored("key0", 16)].as_slice()), [Some(192)]);
    assert_eq!(offsets([stored("key0", 16), stored("key1", 5)].as_slice()), [Some(320), Some(384)]);
    let mixed = [
        splat("splat0", &[102], 1),
        splat("splat1", &i64::MAX.to_le_bytes(), 33_554_432),
        stored("key0", 16),
        stored("key1", 5),
    ];
    assert_eq!(offsets(mixed.as_slice()), [None, None, Some(512), Some(576)]);
}

/// The fields that IREE's own tool writes for a splat and two entries.
#[test]
fn irpa_segments_are_those_of_irees_tool() {
    let drafts = [splat("s", &7_i64.to_le_bytes(), 64), stored("key0", 16), stored("key1", 5)];
    let mut room = [1; 4096];
    assert_eq!(irpa_file(&drafts, 64, &mut room), 4096);
    let field = |at: usize| u64::from_le_bytes(room[at..at + 8].try_into().unwrap());
    assert_eq!(&room[..8], b"IRPA\0\0\0\0");
    assert_eq!([8, 16, 24, 32].map(field), [88, 0, 0, 3]);
    assert_eq!([40, 48].map(field), [96, 252]);
    assert_eq!([56, 64].map(field), [348, 9]);
    assert_eq!([72, 80].map(field), [384, 69]);
    assert_eq!(&room[348..357], b"skey0key1");
    // Minimum alignments: 0 of the splat, 64 of the data; entries at 96, 192, 272.
    assert_eq!([96 + 52, 192 + 52, 272 + 52].map(field), [0, 64, 64]);
}

#[test]
fn an_empty_irpa_is_a_header_in_a_page() {
    let mut room = [1; 4096];
    assert_eq!(irpa_file(&[], 64, &mut room), 4096);
    assert_eq!(&room[..16], b"IRPA\0\0\0\0\x58\0\0\0\0\0\0\0");
    assert!(room[16..].iter().all(|&byte| byte == 0));
}

#[test]
fn what_is_written_is_read() {
    let mut room = [0; 3 * 4096];
    for alignment in [1, 16, 64, 4096] {
        let drafts = [
            Draft { metadata: b"about a", ..stored("a", 3) },
            splat("b", b"0123456789abcdef", 32),
            stored("c", 0),
            stored("d", 4096),
        ];
        let len = irpa_file(&drafts, alignment, &mut room);
        let archive = Archive::open(Input::whole(&room[..len])).unwrap();
        archive.check(&mut [Mark::default(); 4]).unwrap();
        let layout = irpa::Layout::of(drafts.iter().copied(), alignment).unwrap();
        let places = layout.offsets(drafts.iter().copied());
        for ((draft, entry), place) in drafts.iter().zip(archive.entries()).zip(places) {
            let entry = entry.unwrap();
            assert_eq!(entry.name, *draft.name);
            assert_eq!(entry.metadata.map_or(&b""[..], |(bytes, _)| bytes), draft.metadata);
            match (entry.data, draft.data) {
                (Data::Range { offset, len }, DraftData::Stored(wanted)) => {
                    assert_eq!((Some(offset), len), (place, wanted));
                    assert!(len == 0 || offset.is_multiple_of(alignment));
                }
                (Data::Splat { pattern, .. }, DraftData::Splat { pattern: wanted, .. }) => {
                    assert_eq!(pattern, wanted);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_safetensors_header_is_padded_and_read_again() {
    const NAME: &str = "line\nquote\" back\\ bell\u{7} caf\u{e9}";
    let drafts = [typed("x", "F64", &[2], 16), typed(NAME, "F4", &[3, 2], 3), typed("none", "I8", &[0], 0)];
    let pairs = [("format", "pt"), ("note", "tab\t")];
    let mut room = [0; 1024];
    for alignment in [1, 8, 64, 512] {
        let layout = safetensors::Layout::of(drafts.iter().copied(), pairs.into_iter(), alignment).unwrap();
        let mut sink = Room::new(&mut room);
        layout.head(drafts.iter().copied(), pairs.into_iter(), &mut sink).unwrap();
        assert_eq!(sink.filled().len() as u64, layout.head_len());
        assert!(layout.head_len().is_multiple_of(alignment));
        zeros(&mut sink, layout.file_len() - layout.head_len()).unwrap();
        let archive = Archive::open(Input::whole(sink.filled())).unwrap();
        archive.check(&mut [Mark::default(); 3]).unwrap();
        for ((draft, entry), at) in
            drafts.iter().zip(archive.entries()).zip(layout.offsets(drafts.iter().copied()))
        {
            let entry = entry.unwrap();
            assert_eq!(entry.name, *draft.name);
            assert_eq!((entry.dtype, entry.shape.dims()), (draft.dtype, draft.shape));
            assert!(matches!(entry.data, Data::Range { offset, .. } if offset == at));
        }
        let Archive::Safetensors(file) = archive else { panic!("{archive:?}") };
        for (pair, wanted) in file.metadata().zip(pairs) {
            let (key, value) = pair.unwrap();
            assert!(key == *wanted.0 && value == *wanted.1);
        }
    }
}

fn class_of<T: core::fmt::Debug>(result: Result<T, Error>) -> Class {
    result.unwrap_err().class()
}

#[test]
fn what_no_reader_takes_is_not_written() {
    let irpa = |draft, alignment| class_of(irpa::Layout::of([draft].into_iter(), alignment));
    for alignment in [0, 3, 65] {
        assert_eq!(irpa(stored("a", 1), alignment), Class::InvalidValue);
    }
    assert_eq!(irpa(stored("a", 1), 1 << 31), Class::LimitExceeded);
    assert_eq!(irpa(splat("a", b"abc", 9), 64), Class::InvalidValue);
    assert_eq!(irpa(splat("a", b"abcd", 9), 64), Class::InvalidValue);
    assert_eq!(irpa(stored("a", u64::MAX), 64), Class::Overflow);
    let safe = |draft| class_of(safetensors::Layout::of([draft].into_iter(), core::iter::empty(), 8));
    assert_eq!(safe(stored("a", 1)), Class::UnsupportedDtype);
    assert_eq!(safe(typed("a", "Q4_0", &[32], 18)), Class::UnsupportedDtype);
    assert_eq!(safe(typed("a", "F32", &[2], 4)), Class::SizeMismatch);
    assert_eq!(safe(typed("a", "F4", &[3], 2)), Class::SizeMismatch);
    assert_eq!(safe(typed("a", "F64", &[1 << 62], 8)), Class::Overflow);
    assert_eq!(safe(typed("__metadata__", "I8", &[1], 1)), Class::InvalidValue);
    let draft = Draft { dtype: Dtype::from_name("I8"), ..splat("a", b"a", 1) };
    assert_eq!(safe(draft), Class::UnsupportedEntry);
}

#[test]
fn a_room_says_how_much_it_lacks() {
    let mut bytes = [0; 4];
    let mut room = Room::new(&mut bytes);
    assert_eq!(room.put(b"abc"), Ok(()));
    assert_eq!(room.put(b"def"), Err(Full(2)));
    assert_eq!(room.filled(), b"abc");
}
