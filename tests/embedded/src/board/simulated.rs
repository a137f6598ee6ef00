//! No board: an ordinary program, in which the timer ticks whenever the main loop sleeps.

use core::ffi::CStr;
use std::{sync::Mutex, time::Duration};

/// Between two ticks, in the program's own time.
const TICK: Duration = Duration::from_micros(100);

/// What a tick does, and how many there were.
struct Timer(Option<fn()>, u32);

static TIMER: Mutex<Timer> = Mutex::new(Timer(None, 0));

/// Writes a line.
pub fn print(text: &CStr) {
    std::print!("{}", text.to_string_lossy());
}

/// Ends the program.
pub fn exit(code: i32) -> ! {
    std::process::exit(code)
}

/// Time since the timer was started.
pub fn now_ns() -> u64 {
    let ticks = TIMER.lock().map_or(0, |timer| timer.1);
    u64::from(ticks) * TICK.as_nanos() as u64
}

/// Starts the timer, which calls `tick` from now on.
pub fn start(tick: fn()) {
    if let Ok(mut timer) = TIMER.lock() {
        *timer = Timer(Some(tick), 0);
    }
}

/// The next tick.
pub fn sleep() {
    let tick = TIMER.lock().ok().and_then(|mut timer| {
        timer.1 += 1;
        timer.0
    });
    if let Some(tick) = tick {
        tick();
    }
}
