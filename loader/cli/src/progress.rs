//! How long work shows that it goes on, and how it is interrupted: a bar on a terminal, nothing on a pipe.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{self, IsTerminal},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use wharf::{Error, ErrorKind};

/// Times a second at which a bar is drawn, at most.
const DRAWN: u8 = 10;

/// Set by an interrupt.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt only sets a flag.
pub(crate) fn catch_interrupts() {
    static CAUGHT: OnceLock<bool> = OnceLock::new();
    CAUGHT.get_or_init(|| ctrlc::set_handler(|| INTERRUPTED.store(true, Relaxed)).is_ok());
}

/// Whether there was an interrupt.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Relaxed)
}

/// A bar of bytes.
pub(crate) fn bar(total: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(DRAWN));
    let look = "{bar:30} {bytes} / {total_bytes}  {bytes_per_sec}  {eta}";
    if let Ok(style) = ProgressStyle::with_template(look) {
        bar.set_style(style);
    }
    bar
}

/// Work over bytes that can be interrupted. The bar goes when this does.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(total: u64) -> Self {
        catch_interrupts();
        Progress(bar(total))
    }

    /// So many bytes more are done; an error once there was an interrupt.
    pub(crate) fn more(&self, bytes: u64) -> Result<(), Error> {
        self.0.inc(bytes);
        if interrupted() {
            return Err(Error::new(ErrorKind::Interrupted, "interrupted; nothing was kept"));
        }
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
