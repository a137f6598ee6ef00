//! Records against what the macro promises, and every way to cut or bend one.

extern crate std;
use super::*;
use std::vec::Vec;

fn sample() -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [24 + 2 * 16 + 8, 1 | 2 << 16, 16, 64, 128, 5, 0, 8, 8, 0, 8, 4, 4, 0] {
        bytes.extend_from_slice(&u32::to_ne_bytes(word));
    }
    bytes.extend_from_slice(b"scale\0\0\0");
    bytes
}

#[test]
fn a_record_is_read_field_by_field() {
    let bytes = sample();
    let entry = entries(&bytes).next().unwrap().unwrap();
    assert_eq!((entry.name, entry.args_len, entry.group_max, entry.shared), ("scale", 16, 64, 128));
    let params: Vec<_> = entry.params().collect();
    assert_eq!(params[1], Param { offset: 8, size: 4, align: 4, flags: 0 });
    assert_eq!(params.len(), 2);
}

#[test]
fn the_static_and_the_parser_agree() {
    let param = Param { offset: 0, size: 8, align: 8, flags: 0 };
    let record = Record::<1, 8>::new("foo", 8, 7, 9, [param]);
    assert_eq!((record.size, record.version, record.count), (48, VERSION, 1));
    assert_eq!((record.args_len, record.group_max, record.shared, record.name_len), (8, 7, 9, 3));
    assert_eq!((record.params, &record.name), ([param], b"foo\0\0\0\0\0"));
    assert_eq!(size_of_val(&record), 48);
}

#[test]
fn padding_between_records_is_skipped() {
    let mut bytes = sample();
    bytes.extend_from_slice(&[0; 24]);
    bytes.extend_from_slice(&sample());
    bytes.extend_from_slice(&[0; 8]);
    assert_eq!(entries(&bytes).filter(|e| e.is_ok()).count(), 2);
    assert!(entries(&bytes).all(|e| e.is_ok()));
}

#[test]
fn every_cut_is_an_error_and_ends_the_list() {
    let bytes = sample();
    for len in 1..bytes.len() {
        let found: Vec<_> = entries(&bytes[..len]).collect();
        assert_eq!(found.len(), 1, "{len}");
        assert!(found[0].is_err(), "{len}");
    }
}

#[test]
fn bent_fields_are_refused() {
    // Byte to change, its new value.
    for (at, value) in [
        (0, 0xFF),
        (0, 0x44),
        (4, 0),
        (6, 9),
        (20, 0),
        (20, 99),
        (24, 1),
        (32, 3),
        (40, 4),
        (44, 99),
        (57, 0),
    ] {
        let mut bytes = sample();
        bytes[at] = value;
        assert!(entries(&bytes).next().unwrap().is_err(), "{at} {value}");
    }
}

#[test]
fn no_byte_makes_it_panic() {
    for at in 0..sample().len() {
        for value in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut bytes = sample();
            bytes[at] = value;
            for entry in entries(&bytes).flatten() {
                assert!(entry.params().len() <= PARAMS_MAX);
            }
        }
    }
}
