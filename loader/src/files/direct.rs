//! Reads past the page cache (`O_DIRECT`): whole blocks at aligned offsets into aligned memory. What is aligned goes
//! straight to its target; the ragged rest, and all where file and target are not aligned alike, goes through a block of
//! memory of the reader's own. Linux only.
//!
//! # Safety
//! The system calls get a name that ends with 0, and places for their answers. A target was checked by core and is nobody
//! else's while it is read to.
#![allow(unsafe_code)]

use std::{fs::File, io};

/// Alignment where the file system does not tell one: that of a page, which every disk's blocks divide.
const ALIGN: u64 = 4096;
/// Bytes that are read at once into memory of the reader's own.
const BOUNCE: u64 = 1 << 20;

/// A file that is open for direct reads.
pub(super) struct Direct {
    file: File,
    /// Of offsets and lengths, a power of two.
    block: u64,
    /// Of memory, a power of two.
    memory: u64,
}

/// Memory of one reader.
#[derive(Default)]
pub(super) struct Bounce {
    room: Vec<u8>,
}

impl Bounce {
    /// So many aligned bytes.
    fn bytes(&mut self, align: u64) -> &mut [u8] {
        let (align, len) = (align as usize, BOUNCE as usize);
        self.room.resize(len + align, 0);
        let begin = self.room.as_ptr().align_offset(align);
        self.room.get_mut(begin..begin + len).unwrap_or_default()
    }
}

impl Direct {
    /// Opens the same file once more, to be read directly.
    ///
    /// # Errors
    /// `Unsupported` from a file system, or a system, that has no direct reads; what the system says.
    #[cfg(target_os = "linux")]
    pub(super) fn open(file: &File) -> io::Result<Direct> {
        use std::os::{fd::AsRawFd, unix::fs::OpenOptionsExt};
        // By its descriptor: its name may lead to another file by now.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let opened = File::options().read(true).custom_flags(libc::O_DIRECT).open(path);
        let direct = opened.map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => io::Error::new(io::ErrorKind::Unsupported, error),
            _ => error,
        })?;
        let (block, memory) = alignment(&direct)?;
        Ok(Direct { file: direct, block, memory })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn open(_: &File) -> io::Result<Direct> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Reads at most `len` bytes at `at` to `address`; how many, 0 at the end of the file.
    pub(super) fn read(&self, bounce: &mut Bounce, at: u64, address: u64, len: u64) -> io::Result<usize> {
        let begin = at / self.block * self.block;
        let skipped = at - begin;
        let blocks = skipped.saturating_add(len).checked_next_multiple_of(self.block).unwrap_or(u64::MAX);
        let straight = skipped == 0 && address.is_multiple_of(self.memory);
        // Short and ragged: one read of all blocks and a copy cost less than a read for each ragged end.
        if straight && (blocks == len || blocks > BOUNCE) {
            let whole = len / self.block * self.block;
            let len = usize::try_from(whole).unwrap_or(usize::MAX).min(1 << 30);
            // SAFETY: as this file's `# Safety` says.
            let target = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, len) };
            return read_at(&self.file, target, at);
        }
        // What can go straight from the next block on does not go through the bounce.
        let alike = skipped > 0 && (address + self.block - skipped).is_multiple_of(self.memory);
        let blocks = if alike && blocks > BOUNCE { self.block } else { blocks.min(BOUNCE) };
        let room = &mut bounce.bytes(self.memory.max(self.block))[..blocks as usize];
        let read = read_at(&self.file, room, begin)? as u64;
        let take = read.saturating_sub(skipped).min(len) as usize;
        // SAFETY: as this file's `# Safety` says.
        let target = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, take) };
        target.copy_from_slice(&room[skipped as usize..][..take]);
        Ok(take)
    }
}

/// Of offsets and of memory, as the file system tells (`statx(2)`, `STATX_DIOALIGN`).
#[cfg(target_os = "linux")]
fn alignment(file: &File) -> io::Result<(u64, u64)> {
    use std::{mem::MaybeUninit, os::fd::AsRawFd};
    let mut facts = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: an empty name that ends with 0, for the file itself, and a place for the answer.
    let told = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            facts.as_mut_ptr(),
        )
    };
    // SAFETY: zeroes are facts too.
    let facts = unsafe { facts.assume_init() };
    if told != 0 || facts.stx_mask & libc::STATX_DIOALIGN == 0 {
        return Ok((ALIGN, ALIGN));
    }
    let (block, memory) = (u64::from(facts.stx_dio_offset_align), u64::from(facts.stx_dio_mem_align));
    // 0: this file cannot be read directly, though it could be opened (encrypted, compressed).
    let fits = |align: u64| align.is_power_of_two() && align <= BOUNCE;
    if fits(block) && fits(memory) { Ok((block, memory)) } else { Err(io::ErrorKind::Unsupported.into()) }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, at)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;

    /// Every offset, target and length around blocks gives the file's own bytes, also past the last whole block.
    #[test]
    fn ragged_heads_and_tails_are_those_of_the_file() {
        let len = (BOUNCE * 2 + ALIGN + 77) as usize;
        let bytes: Vec<u8> = (0..len).map(|i| (i * 31 + i / 251) as u8).collect();
        // Where the target folder is: temporary folders may have no direct reads.
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(&bytes).unwrap();
        let direct = match Direct::open(&file) {
            Ok(direct) => direct,
            Err(error) => return eprintln!("skipped: no direct reads here: {error}"),
        };
        let (mut bounce, mut room) = (Bounce::default(), vec![0u8; len + 3 * ALIGN as usize]);
        let base = (room.as_mut_ptr() as u64).next_multiple_of(ALIGN);
        for at in [0, 1, 511, 512, 4095, 4096, 4100, BOUNCE - 1, BOUNCE + 13] {
            for shift in [0, 1, 8, at % ALIGN, 4000] {
                for want in [1, 100, 512, 4096, 5000, BOUNCE + 4097, len as u64 - at] {
                    let want = want.min(len as u64 - at);
                    let mut moved = 0;
                    while moved < want {
                        let read = direct.read(&mut bounce, at + moved, base + shift + moved, want - moved);
                        let read = read.unwrap() as u64;
                        assert!(read > 0, "nothing at {at} + {moved}");
                        moved += read;
                    }
                    let begin = (base + shift - room.as_ptr() as u64) as usize;
                    let same = room[begin..][..want as usize] == bytes[at as usize..][..want as usize];
                    assert!(same, "{want} bytes at {at} to {shift}");
                }
            }
        }
        assert_eq!(direct.read(&mut bounce, len as u64, base, 10).unwrap(), 0, "the end");
    }

    #[test]
    fn a_file_system_without_direct_reads_says_so() {
        // procfs has none.
        let file = File::open("/proc/version").unwrap();
        assert_eq!(Direct::open(&file).err().unwrap().kind(), io::ErrorKind::Unsupported);
    }
}
