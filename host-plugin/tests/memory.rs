//! Copies and fills byte by byte, and what is given out and taken back.
#![allow(clippy::unwrap_used)] // Helpers are tests too.

mod common;

use common::*;
use wharf_core::{device::*, fault::Kind};
use wharf_host::{HostDevice, limits};

#[test]
fn fills_of_every_pattern_length_touch_exactly_their_bytes() {
    let device = HostDevice::with_workers(2);
    let mut line = Line::new(&device);
    let mut memory = vec![0_u8; 40_000];
    let base = address(&mut memory);
    for size in 1..=33 {
        let pattern: Vec<u8> = (0..size).map(|i| 0x40 + i as u8).collect();
        for (offset, times) in [(1, 1), (3, 2), (7, 130), (64, 33), (13, 1000), (0, 0)] {
            memory.fill(0xEE);
            let len = size * times;
            line.put(Op::Fill { to: base + offset as u64, len: len as u64, pattern: &pattern });
            line.finish();
            let (before, rest) = memory.split_at(offset);
            let (filled, after) = rest.split_at(len);
            assert!(before.iter().chain(after).all(|byte| *byte == 0xEE), "{size} {offset} {times}");
            assert!(
                filled.iter().enumerate().all(|(i, byte)| *byte == pattern[i % size]),
                "{size} {offset} {times}"
            );
        }
    }
}

/// Above [`limits`]' 16 MiB the stores go past the caches, which takes 16 bytes at a time from an aligned address on.
#[test]
fn fills_above_the_caches_touch_exactly_their_bytes() {
    let mut memory = vec![0xEE_u8; (17 << 20) + 64];
    let base = address(&mut memory);
    for workers in [1, 3] {
        let device = HostDevice::with_workers(workers);
        let mut line = Line::new(&device);
        for (size, offset) in
            [(1, 1), (2, 0), (3, 5), (4, 16), (12, 15), (16, 9), (17, 3), (100, 1), (5000, 2)]
        {
            let len = (17_usize << 20) / size * size;
            let pattern: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            memory.fill(0xEE);
            line.put(Op::Fill { to: base + offset as u64, len: len as u64, pattern: &pattern });
            line.finish();
            let (before, rest) = memory.split_at(offset);
            let (filled, after) = rest.split_at(len);
            assert!(before.iter().chain(after).all(|byte| *byte == 0xEE), "{size} {offset}");
            assert!(filled.chunks_exact(size).all(|part| part == pattern), "{size} {offset}");
        }
    }
}

#[test]
fn large_fills_and_copies_are_whole() {
    for workers in [1, 3] {
        let device = HostDevice::with_workers(workers);
        let mut line = Line::new(&device);
        for size in [1, 3, 16, 17, 4096, 5000] {
            let len = (9_usize << 20) / size * size;
            let pattern: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let (mut from, mut to) = (vec![0xEE_u8; len + 2], vec![0xEE_u8; len + 2]);
            let (a, b) = (address(&mut from) + 1, address(&mut to) + 1);
            line.put(Op::Fill { to: a, len: len as u64, pattern: &pattern });
            line.put(Op::Copy { from: a, to: b, len: len as u64, peers: [PEER_HOST; 2] });
            line.finish();
            assert_eq!((to[0], to[len + 1], from[0], from[len + 1]), (0xEE, 0xEE, 0xEE, 0xEE));
            assert!(to[1..=len].chunks_exact(size).all(|part| part == pattern), "{size}");
        }
    }
}

#[test]
fn an_overlapping_copy_is_a_memmove() {
    let device = HostDevice::with_workers(2);
    let mut line = Line::new(&device);
    for len in [100_usize, 5 << 20] {
        for (from, to) in [(0, 17), (17, 0)] {
            let mut memory: Vec<u8> = (0..len + 17).map(|i| (i % 251) as u8).collect();
            let mut expected = memory.clone();
            expected.copy_within(from..from + len, to);
            let base = address(&mut memory);
            let (from, to) = (base + from as u64, base + to as u64);
            line.put(Op::Copy { from, to, len: len as u64, peers: [PEER_HOST; 2] });
            line.finish();
            assert!(memory == expected);
        }
    }
}

#[test]
fn zero_lengths_do_nothing() {
    let device = HostDevice::with_workers(1);
    let mut line = Line::new(&device);
    line.put(Op::Copy { from: 8, to: 8, len: 0, peers: [PEER_HOST; 2] });
    line.put(Op::Fill { to: 8, len: 0, pattern: &[1, 2, 3] });
    line.put(Op::Update { to: 8, bytes: &[] });
    line.put(Op::Prefetch { at: 0, len: 0, to_host: false });
    line.put(Op::Prefetch { at: u64::MAX, len: u64::MAX, to_host: true });
    line.finish();
    let empty = Step { op: Op::Fill { to: 8, len: 0, pattern: &[] }, done: 9, tell: true, stamp: false };
    assert_eq!(line.lane.submit(&[empty], Hint::None).unwrap_err().1.kind, Kind::InvalidArgument);
    let read = Op::Read { file: 0, at: 0, to: 0, len: 0 };
    let read = Step { op: read, done: 9, tell: true, stamp: false };
    assert_eq!(line.lane.submit(&[read], Hint::None).unwrap_err().1.kind, Kind::Unsupported);
    assert!(
        !device.caps().takes(op::READ)
            && device.caps().takes(op::PREFETCH)
            && device.caps().takes(op::BARRIER)
    );
}

fn want(len: u64, align: u64) -> Want {
    Want { len, align, kind: 0, access: 0, usage: 0 }
}

#[test]
fn memory_is_aligned_apart_and_freed_once() {
    let device = HostDevice::with_workers(1);
    let mut blocks = Vec::new();
    for i in 1..=999_u64 {
        let align = 1 << (i % 22);
        let block = device.allocate(&want(1024 * i, align)).unwrap();
        assert!(block.base.is_multiple_of(align.max(64)) && block.len == 1024 * i);
        blocks.push(block);
    }
    blocks.sort_by_key(|block| block.base);
    assert!(blocks.windows(2).all(|pair| pair[0].base + pair[0].len <= pair[1].base));
    for block in &blocks {
        let mapped = device.map(block, 5, block.len - 5).unwrap();
        assert_eq!(mapped.addr() as u64, block.base + 5);
        assert_eq!(device.map(block, 5, block.len).unwrap_err().kind, Kind::OutOfRange);
        assert_eq!(device.map(block, u64::MAX, 2).unwrap_err().kind, Kind::OutOfRange);
        device.sync(block, 0, 1, true).unwrap();
        device.unmap(block, 5, block.len - 5).unwrap();
        device.free(block).unwrap();
        assert_eq!(device.free(block).unwrap_err().kind, Kind::InvalidArgument);
    }
    let inner = Block { base: blocks[0].base + 8, ..blocks[0] };
    assert_eq!(device.free(&inner).unwrap_err().kind, Kind::InvalidArgument);
}

#[test]
fn what_cannot_be_had_is_an_error() {
    let device = HostDevice::with_workers(1);
    for (len, align) in
        [(1 << 60, 0), (u64::MAX, 0), (i64::MAX as u64, 1 << 20), (64, limits::ALIGN_MAX * 2), (1 << 46, 64)]
    {
        assert_eq!(
            device.allocate(&want(len, align)).unwrap_err().kind,
            Kind::ResourceExhausted,
            "{len} {align}"
        );
    }
    for (len, align) in [(0, 0), (64, 3), (64, 1 << 63 | 1)] {
        assert_eq!(
            device.allocate(&want(len, align)).unwrap_err().kind,
            Kind::InvalidArgument,
            "{len} {align}"
        );
    }
    let most = device.allocate(&want(1, limits::ALIGN_MAX)).unwrap();
    assert!(most.base.is_multiple_of(limits::ALIGN_MAX));
    device.free(&most).unwrap();
}

#[test]
fn host_memory_is_registered_as_it_lies() {
    let device = HostDevice::with_workers(1);
    let mut own = [0_u8; 100];
    let block = device.register(own.as_mut_ptr(), 100, 3).unwrap();
    assert_eq!((block.base, block.len), (own.as_ptr().addr() as u64, 100));
    device.unregister(&block).unwrap();
    assert!(device.register(std::ptr::null_mut(), 1, 3).is_err());
    assert!(device.register(own.as_mut_ptr(), 0, 3).is_err());
    assert!(device.register(own.as_mut_ptr(), u64::MAX, 3).is_err());
}
