//! Heads of files that are no plugins. Whole plugins are looked at in the tests of the whole.

use super::*;

fn class(bytes: &[u8]) -> (&'static str, String) {
    match read(bytes).unwrap_err() {
        Fate::Rejected { class, reason } => (class, reason),
        other => panic!("{other}"),
    }
}

/// Head of a 64-bit ELF file, little-endian, of this type and machine. Offsets as in the ELF-64 specification.
fn elf64(kind: u8, machine: u8) -> Vec<u8> {
    let mut head = vec![0; 64];
    head[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    (head[16], head[18], head[20]) = (kind, machine, 1);
    (head[52], head[54], head[58]) = (64, 56, 64);
    head
}

const SHARED: u8 = 3;
const X86_64: u8 = 62;
const AARCH64: u8 = 183;

fn own_machine() -> u8 {
    if cfg!(target_arch = "aarch64") { AARCH64 } else { X86_64 }
}

#[test]
fn an_empty_file_is_empty() {
    assert_eq!(class(b"").0, "empty");
}

#[test]
fn every_cut_of_the_elf_header_is_truncated() {
    let head = elf64(SHARED, own_machine());
    for len in 1..head.len() {
        let (class, reason) = class(&head[..len]);
        assert_eq!(class, "truncated", "{len}: {reason}");
    }
}

#[test]
fn a_cut_head_says_how_much_of_it_is_there() {
    assert!(class(&elf64(SHARED, own_machine())[..20]).1.contains("20 bytes of the 64"));
}

#[test]
fn a_whole_head_with_nothing_behind_it_is_no_plugin() {
    assert_eq!(class(&elf64(SHARED, own_machine())).0, "no_entry");
}

#[test]
fn tables_behind_the_end_of_the_file_are_truncated() {
    let mut head = elf64(SHARED, own_machine());
    head[32] = 64; // e_phoff
    head[56] = 1; // e_phnum
    assert_eq!(class(&head).0, "truncated");
    let mut head = elf64(SHARED, own_machine());
    head[40] = 64; // e_shoff
    head[60] = 1; // e_shnum
    assert_eq!(class(&head).0, "truncated");
}

#[test]
fn another_machine_is_named() {
    let other = if own_machine() == X86_64 { AARCH64 } else { X86_64 };
    let (class, reason) = class(&elf64(SHARED, other));
    assert_eq!(class, "wrong_architecture");
    assert!(reason.contains(if other == AARCH64 { "Aarch64" } else { "X86_64" }), "{reason}");
}

#[test]
fn a_machine_that_nobody_knows_is_wrong() {
    assert_eq!(class(&elf64(SHARED, 250)).0, "wrong_architecture");
}

#[test]
fn a_library_of_32_bits_is_named() {
    let mut head = elf64(SHARED, 3);
    head[4] = 1;
    (head[40], head[42], head[46]) = (52, 32, 40); // e_ehsize, e_phentsize, e_shentsize of ELF-32
    (head[52], head[54], head[58]) = (0, 0, 0);
    let (class, reason) = class(&head);
    assert_eq!(class, "wrong_architecture");
    assert!(reason.contains("32 bits"), "{reason}");
}

#[test]
fn the_other_byte_order_is_wrong() {
    let mut head = elf64(SHARED, 0);
    head[5] = 2;
    (head[17], head[19], head[16]) = (SHARED, own_machine(), 0);
    (head[53], head[55], head[59]) = (64, 56, 64);
    (head[52], head[54], head[58]) = (0, 0, 0);
    assert_eq!(class(&head).0, "wrong_architecture");
}

#[test]
fn a_class_that_is_none_is_damaged() {
    let mut head = elf64(SHARED, own_machine());
    head[4] = 9;
    assert_eq!(class(&head).0, "truncated");
}

#[test]
fn a_program_is_no_library() {
    const PROGRAM: u8 = 2;
    assert_eq!(class(&elf64(PROGRAM, own_machine())).0, "not_a_library");
}

#[test]
fn an_object_file_is_no_library() {
    const OBJECT: u8 = 1;
    assert_eq!(class(&elf64(OBJECT, own_machine())).0, "not_a_library");
}

#[test]
fn a_core_dump_is_no_library() {
    const CORE: u8 = 4;
    assert_eq!(class(&elf64(CORE, own_machine())).0, "not_a_library");
}

#[test]
fn a_text_is_named_so() {
    assert_eq!(class(b"#!/bin/sh\nexit 0\n"), ("not_a_library", "a text file, not a shared library".into()));
}

#[test]
fn a_text_that_is_cut_within_a_letter_is_still_a_text() {
    let mut text = "ä".repeat(400).into_bytes();
    text.truncate(511);
    assert!(class(&text).1.contains("text"));
}

#[test]
fn bytes_of_no_kind_are_no_library() {
    assert_eq!(class(&[0xde, 0xad, 0, 0xbe, 0xef, 0, 1, 2]).0, "not_a_library");
}

#[test]
#[cfg(not(windows))]
fn a_library_of_windows_is_named() {
    let mut file = vec![0; 256];
    file[..2].copy_from_slice(b"MZ");
    file[60] = 128; // e_lfanew
    file[128..132].copy_from_slice(b"PE\0\0");
    (file[132], file[133]) = (0x64, 0x86); // IMAGE_FILE_MACHINE_AMD64
    (file[152], file[153]) = (0x0b, 0x02); // PE32+
    let (class, reason) = class(&file);
    assert_eq!(class, "not_a_library");
    assert!(reason.contains("Windows"), "{reason}");
}

#[test]
#[cfg(not(target_vendor = "apple"))]
fn a_library_of_macos_is_named() {
    let mut file = vec![0; 64];
    file[..4].copy_from_slice(&0xfeed_facf_u32.to_le_bytes()); // MH_MAGIC_64
    let (class, reason) = class(&file);
    assert_eq!(class, "not_a_library");
    assert!(reason.contains("macOS"), "{reason}");
}

#[test]
fn a_static_library_is_named() {
    let (class, reason) = class(b"!<arch>\nlibx.o/         0           ");
    assert_eq!(class, "not_a_library");
    assert!(reason.contains("static"), "{reason}");
}

#[test]
fn every_reason_is_one_line() {
    for bytes in [&b""[..], b"x", b"\x7fELF", &elf64(1, 1), &elf64(SHARED, own_machine())] {
        assert!(!class(bytes).1.contains('\n'));
    }
}
