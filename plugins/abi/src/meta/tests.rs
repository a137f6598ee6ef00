//! Records that come back, and records that must not.

use super::*;

const META: Meta<'_> = Meta::new("null", "Wharf", "1.2.3", 0);
const RECORD: [u8; META.record_len()] = META.record();

#[test]
fn a_record_comes_back_also_with_padding() {
    assert_eq!(Meta::parse(&RECORD), Ok(META));
    let mut padded = RECORD.to_vec();
    padded.extend([0; 5]);
    assert_eq!(Meta::parse(&padded), Ok(META));
    padded.push(1);
    assert_eq!(Meta::parse(&padded), Err(MetaError::Trailing));
}

#[test]
fn every_cut_and_every_flipped_byte_is_an_error_or_another_value_never_a_panic() {
    for len in 0..RECORD.len() {
        assert!(Meta::parse(&RECORD[..len]).is_err(), "cut at {len}");
    }
    for at in 0..RECORD.len() {
        for bit in 0..8 {
            let mut bad = RECORD;
            bad[at] ^= 1 << bit;
            assert_ne!(Meta::parse(&bad), Ok(META), "byte {at} bit {bit}");
        }
    }
}

#[test]
fn an_unknown_field_behind_the_known_ones_is_skipped() {
    let mut longer = RECORD.to_vec();
    longer.extend([9, 0, 2, 0, 7, 7]);
    let len = longer.len() as u32;
    longer[8..12].copy_from_slice(&len.to_le_bytes());
    assert_eq!(Meta::parse(&longer), Ok(META));
}

const WHOLE: Meta<'_> =
    META.with_backend(Some("cuda")).with_cpu_features("avx2,fma").with_licence(Some("MIT OR Apache-2.0"));
const WHOLE_RECORD: [u8; WHOLE.record_len()] = WHOLE.record();

#[test]
fn the_optional_fields_come_back() {
    assert_eq!(Meta::parse(&WHOLE_RECORD), Ok(WHOLE));
}

#[test]
fn a_record_without_optional_fields_has_its_id_as_backend_and_asks_for_nothing() {
    let meta = Meta::parse(&RECORD).unwrap();
    assert_eq!((meta.backend, meta.cpu_features, meta.licence), ("null", "", None));
}

#[test]
fn an_optional_field_of_no_length_is_as_good_as_none() {
    let mut longer = RECORD.to_vec();
    longer.extend([6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0]);
    let len = longer.len() as u32;
    longer[8..12].copy_from_slice(&len.to_le_bytes());
    assert_eq!(Meta::parse(&longer), Ok(META));
}

#[test]
fn a_backend_that_is_no_id_is_refused() {
    let mut bad = WHOLE_RECORD;
    let at = bad.windows(4).position(|four| four == b"cuda").unwrap();
    bad[at] = b'C';
    assert_eq!(Meta::parse(&bad), Err(MetaError::Value { tag: BACKEND }));
}

#[test]
fn versions_are_judged_from_the_record_with_the_side_to_upgrade() {
    assert_eq!(META.judge(), Ok(()));
    for (meta, class, side) in [
        (Meta { major: MAJOR + 1, ..META }, "too_new", "upgrade the host"),
        (Meta { major: MAJOR - 1, ..META }, "too_old", "upgrade the plugin"),
        (Meta { min_host_minor: MINOR + 1, ..META }, "too_new", "upgrade the host"),
        (Meta { draft: DRAFT + 1, ..META }, "too_new", "upgrade the host"),
    ] {
        let refusal = meta.judge().unwrap_err();
        assert_eq!(refusal.class(), class, "{refusal}");
        assert!(refusal.to_string().contains(side), "{refusal}");
    }
}

#[test]
fn a_plugin_with_a_higher_minor_is_no_reason_to_refuse() {
    assert_eq!(Meta { minor: MINOR + 7, ..META }.judge(), Ok(()));
}
