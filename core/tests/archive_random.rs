//! Random bytes behind each format's beginning, and random damage to good files: no panic, and what is listed is inside
//! the file (`read` asserts it).
#![cfg(feature = "alloc")]
// A test that cannot go on has failed.
#![allow(clippy::unwrap_used)]

mod archive_common;

use archive_common::{fixture, read, safetensors_raw};
use proptest::prelude::*;
use wharf_core::archive::{Dtype, Format, Shards, Stranger, Unsized};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_behind_a_magic(kind in 0_u8..3, mut tail in prop::collection::vec(any::<u8>(), 0..600)) {
        let (format, bytes) = match kind {
            0 => (Format::Gguf, [b"GGUF\x03\0\0\0".as_slice(), &tail].concat()),
            1 => (Format::Irpa, [b"IRPA\0\0\0\0".as_slice(), &tail].concat()),
            _ => {
                tail.insert(0, b'{');
                (Format::Safetensors, safetensors_raw(&tail, 7))
            }
        };
        let _ = read(format, &bytes);
    }

    #[test]
    fn json_like_text(text in r#"\{("(a|__metadata__|\\u0061)":[\{\[]?"?(dtype|F32|0|1|,|:|\}|\]|\\|"){0,12}[\}\]]?,?){0,4}\}"#) {
        let _ = read(Format::Safetensors, &safetensors_raw(text.as_bytes(), 4));
        let _ = Shards::parse(text.as_bytes());
        let _ = Stranger::detect(text.as_bytes());
    }

    #[test]
    fn damaged_files(which in 0_usize..6, damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let (path, format) = [
            ("gguf/all_kv_types.gguf", Format::Gguf),
            ("gguf/names.gguf", Format::Gguf),
            ("gguf/nested_array.gguf", Format::Gguf),
            ("safetensors/escapes.safetensors", Format::Safetensors),
            ("safetensors/all_dtypes.safetensors", Format::Safetensors),
            ("irpa/external/external.irpa", Format::Irpa),
        ][which];
        let mut bytes = fixture(path);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(format, &bytes);
    }

    /// Against the same sum in numbers that cannot overflow.
    #[test]
    fn sizes_are_exact(shape in prop::collection::vec(prop_oneof![0_u64..300, any::<u64>()], 0..4), pick in any::<prop::sample::Index>()) {
        let types: Vec<Dtype> = Dtype::all().collect();
        let dtype = types[pick.index(types.len())];
        let elements = if shape.contains(&0) { Some(0) } else {
            shape.iter().try_fold(1_u128, |n, &dim| n.checked_mul(u128::from(dim)))
        };
        let inner = shape.last().copied().unwrap_or(1);
        let want = match elements.filter(|&n| n <= u128::from(u64::MAX)) {
            None => Err(Unsized::Overflow),
            Some(_) if inner % dtype.block_elements() != 0 => Err(Unsized::Ragged),
            Some(n) => {
                let bits = n / u128::from(dtype.block_elements()) * u128::from(dtype.block_bits());
                if bits % 8 != 0 { Err(Unsized::Ragged) } else { u64::try_from(bits / 8).map_err(|_| Unsized::Overflow) }
            }
        };
        prop_assert_eq!(dtype.bytes(&shape), want);
    }
}

/// Sizes, counts and places of eight bytes, each at its limits: those of IRPA lie at multiples of four, those of GGUF
/// anywhere.
#[test]
fn every_field_at_its_limits() {
    let values = (0..64).map(|bit| 1 << bit).chain([0, 1, 8, 63, 64, 255, 600].map(|below| u64::MAX - below));
    for (path, format, step) in [
        ("irpa/not_page_padded.irpa", Format::Irpa, 4),
        ("irpa/external/external.irpa", Format::Irpa, 4),
        ("gguf/align_32.gguf", Format::Gguf, 1),
        ("gguf/nested_array.gguf", Format::Gguf, 1),
    ] {
        let good = fixture(path);
        for at in (0..=good.len().min(1024) - 8).step_by(step) {
            for value in values.clone() {
                let mut bytes = good.clone();
                bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
                let _ = read(format, &bytes);
            }
        }
    }
}

/// Inputs that fuzzing found and that ended a reader once.
#[test]
fn what_ended_a_reader_once() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus");
    for (folder, format) in [("irpa", Format::Irpa)] {
        for file in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let _ = read(format, &std::fs::read(file.unwrap().path()).unwrap());
        }
    }
}
