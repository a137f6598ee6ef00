//! Loads of a file that is not in memory, against eight threads that read it past the cache, 4 MiB at a time.

use super::Case;
use std::{io, time::Duration};
use wharf::Io;
use wharf_bench::{
    args::{Args, Fail},
    row::{Goal, Row},
    sys,
    time::{clocked, one_by_one},
};

/// What perf measurements of disks found to be the limit: so many readers with so much each.
const READERS: u64 = 8;
const PIECE: u64 = 4 << 20;

impl Case<'_> {
    /// A row of cold gathers; none, with a word on stderr, where files cannot be read past the cache.
    pub(super) fn cold(&self, args: &Args, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
        let what = "gather, cold, --io direct";
        if !args.wants(&format!("{what}, {}", self.name)) {
            return Ok(());
        }
        let direct = match sys::open_direct(&self.path) {
            Ok(direct) => direct,
            Err(why) => {
                eprintln!("no cold loads: {} cannot be read past the cache: {why}", self.path.display());
                return Ok(());
            }
        };
        let to = self.device.allocate(self.bytes as u64)?;
        let mut rooms: Vec<sys::Aligned> = (0..READERS).map(|_| sys::Aligned::new(PIECE as usize)).collect();
        self.gather(&to, Io::Read)?;
        let len = self.file.metadata()?.len();
        let drop_cached = || sys::drop_cached(&self.file).unwrap_or_else(|why| panic!("{why}"));
        let ours = || {
            drop_cached();
            self.gather(&to, Io::Direct).unwrap_or_else(|why| panic!("it went well before: {why}"))
        };
        let theirs = || {
            drop_cached();
            read_all(&direct, len, &mut rooms).unwrap_or_else(|why| panic!("{why}"))
        };
        let times = one_by_one(args.pick(5, 1), ours, theirs);
        give(self.row(what, times, "O_DIRECT, 8 readers of 4 MiB", Goal::Ratio(0.95)));
        Ok(())
    }
}

fn read_all(file: &std::fs::File, len: u64, rooms: &mut [sys::Aligned]) -> io::Result<Duration> {
    let mut ended = vec![];
    let took =
        clocked(|| {
            std::thread::scope(|scope| {
                let readers: Vec<_> = (0..)
                    .zip(rooms.iter_mut())
                    .map(|(first, room): (u64, _)| {
                        scope.spawn(move || {
                            (first * PIECE..len)
                                .step_by((READERS * PIECE) as usize)
                                .try_for_each(|at| sys::read_at(file, room.bytes(), at).map(drop))
                        })
                    })
                    .collect();
                ended.extend(readers.into_iter().map(|reader| {
                    reader.join().unwrap_or_else(|_| Err(io::Error::other("a reader panicked")))
                }));
            });
        });
    ended.into_iter().collect::<io::Result<Vec<()>>>().map(|_| took)
}
