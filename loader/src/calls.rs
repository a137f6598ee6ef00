//! Host calls: closures waiting to be run by a backend, by number, so that each runs once or is dropped once.
//!
//! # Safety
//! The pointer that a backend hands back is only a number here, never followed.
#![allow(unsafe_code)]

use std::{
    cell::Cell,
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};
use wharf_core::device::HostCall;

type Closure = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Waiting {
    next: usize,
    /// The runtime it belongs to, and the closure.
    calls: HashMap<usize, (usize, Closure)>,
}

fn waiting() -> MutexGuard<'static, Waiting> {
    static WAITING: OnceLock<Mutex<Waiting>> = OnceLock::new();
    WAITING.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a closure until a backend calls.
pub(crate) fn keep(runtime: usize, closure: Closure) -> HostCall {
    let mut waiting = waiting();
    waiting.next += 1;
    let number = waiting.next;
    waiting.calls.insert(number, (runtime, closure));
    HostCall { call: run, user: number as *mut () }
}

/// Drops a closure that will not be called.
pub(crate) fn cancel(call: &HostCall) {
    let dropped = waiting().calls.remove(&(call.user as usize));
    drop(dropped);
}

/// Drops what a runtime that has ended left.
pub(crate) fn forget(runtime: usize) {
    let mut waiting = waiting();
    let left: Vec<usize> =
        waiting.calls.iter().filter(|(_, (of, _))| *of == runtime).map(|(n, _)| *n).collect();
    let dropped: Vec<_> = left.iter().filter_map(|n| waiting.calls.remove(n)).collect();
    std::mem::drop(waiting);
    drop(dropped);
}

thread_local! {
    /// Closures that run on this thread, one inside the other.
    static RUNNING: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is inside a host call: its lane cannot end before the call has returned.
pub(crate) fn inside() -> bool {
    RUNNING.try_with(Cell::get).is_ok_and(|running| running != 0)
}

unsafe extern "C" fn run(user: *mut ()) {
    let closure = waiting().calls.remove(&(user as usize));
    if let Some((_, closure)) = closure {
        let _ = RUNNING.try_with(|running| running.set(running.get() + 1));
        // A panic must not unwind into the backend. The panic hook has told of it.
        let _ = catch_unwind(AssertUnwindSafe(closure));
        let _ = RUNNING.try_with(|running| running.set(running.get() - 1));
    }
}
