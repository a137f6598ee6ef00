//! The worker threads of a device. They take tracks from one queue and help with large steps ([`Spread`]); they start
//! when there is work for them.
//!
//! The rule that keeps every lane going: while work waits, either a thread has been woken for it or as many threads as
//! the pool is wide are at work. A thread inside a host call does not count, so a call that blocks for ever costs one
//! thread and no progress. When it comes back there is one thread too many; that one ends when it has been idle for a
//! while.

use crate::{drive, limits, spread::Spread, track::Track};
use std::{
    collections::{HashMap, VecDeque},
    hint,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::*},
    },
    thread::{self, JoinHandle, ThreadId},
    time::Duration,
};

#[derive(Default)]
struct Inner {
    queue: VecDeque<Arc<Track>>,
    spreads: Vec<Arc<Spread>>,
    handles: HashMap<ThreadId, JoinHandle<()>>,
    /// Threads that have ended by themselves and are to be joined.
    ended: Vec<JoinHandle<()>>,
    /// Threads inside host calls.
    blocked: Vec<ThreadId>,
    live: usize,
    /// Asleep and not woken.
    sleeping: usize,
    /// Woken, and not there yet. Any thread that is about to sleep may answer for one.
    coming: usize,
    /// Started, and not there yet.
    starting: usize,
    /// One thread looks for work without sleeping.
    scouting: bool,
    stop: bool,
}

/// The workers of a device.
pub(crate) struct Pool {
    inner: Mutex<Inner>,
    bell: Condvar,
    /// Tracks and spreads that wait, for the scout to look at without the lock.
    waiting: AtomicUsize,
    width: usize,
}

enum Job {
    Run(Arc<Track>),
    Help(Arc<Spread>),
}

impl Pool {
    /// A pool of `width` threads, none of which is started yet.
    pub(crate) fn new(width: usize) -> Arc<Pool> {
        Arc::new(Pool {
            inner: Mutex::default(),
            bell: Condvar::new(),
            waiting: AtomicUsize::new(0),
            width: width.clamp(1, limits::WORKERS_MAX),
        })
    }

    /// Threads at work at once.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Threads that live now, those inside host calls and those that were one too many included.
    pub(crate) fn threads(&self) -> usize {
        self.lock().live
    }

    /// Whether something waits for a worker.
    #[inline]
    pub(crate) fn waiting(&self) -> bool {
        self.waiting.load(Relaxed) != 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a track whose `QUEUED` bit the caller has just set.
    pub(crate) fn push(self: &Arc<Self>, track: Arc<Track>) {
        let mut inner = self.lock();
        inner.queue.push_back(track);
        self.rouse(&mut inner);
    }

    /// Shows a spread to idle workers.
    pub(crate) fn offer(self: &Arc<Self>, spread: Arc<Spread>) {
        let mut inner = self.lock();
        inner.spreads.push(spread);
        self.rouse(&mut inner);
    }

    /// Takes a spread back: nobody joins it any more.
    pub(crate) fn withdraw(&self, spread: &Arc<Spread>) {
        let mut inner = self.lock();
        inner.spreads.retain(|other| !Arc::ptr_eq(other, spread));
        self.count(&inner);
    }

    /// This worker is about to be lost to a host call.
    pub(crate) fn enter_call(self: &Arc<Self>) {
        let mut inner = self.lock();
        inner.blocked.push(thread::current().id());
        self.rouse(&mut inner);
    }

    /// It came back.
    pub(crate) fn leave_call(&self) {
        let own = thread::current().id();
        self.lock().blocked.retain(|other| *other != own);
    }

    fn count(&self, inner: &Inner) -> usize {
        let room: usize = inner.spreads.iter().map(|spread| spread.room()).sum();
        let waiting = inner.queue.len() + room;
        self.waiting.store(waiting, Release);
        waiting
    }

    /// Wakes or starts as many threads as work waits for and the width allows.
    fn rouse(self: &Arc<Self>, inner: &mut Inner) {
        let mut unserved =
            self.count(inner).saturating_sub(inner.coming + inner.starting + usize::from(inner.scouting));
        while unserved > 0 && !inner.stop {
            if inner.sleeping > 0 {
                inner.sleeping -= 1;
                inner.coming += 1;
                self.bell.notify_one();
            } else if inner.live - inner.blocked.len() >= self.width || !self.start(inner) {
                return;
            }
            unserved -= 1;
        }
    }

    /// Starts a thread. Without one (the system has no more) the work waits for those there are, and for waiters.
    fn start(self: &Arc<Self>, inner: &mut Inner) -> bool {
        for ended in inner.ended.drain(..) {
            let _ = ended.join();
        }
        let pool = self.clone();
        let Ok(handle) = thread::Builder::new().name("wharf-host".into()).spawn(move || pool.work()) else {
            return false;
        };
        inner.handles.insert(handle.thread().id(), handle);
        inner.live += 1;
        inner.starting += 1;
        true
    }

    /// The life of a worker.
    fn work(self: Arc<Self>) {
        let mut inner = self.lock();
        inner.starting -= 1;
        loop {
            if let Some(job) = self.take(&mut inner) {
                self.rouse(&mut inner);
                drop(inner);
                match job {
                    Job::Help(spread) => spread.help(),
                    Job::Run(track) => {
                        if track.claim_queued() {
                            drive::run(&track);
                        }
                    }
                }
                inner = self.lock();
                continue;
            }
            if inner.stop {
                break;
            }
            if !inner.scouting && self.width > 1 {
                inner.scouting = true;
                drop(inner);
                self.scout();
                inner = self.lock();
                inner.scouting = false;
                if self.count(&inner) != 0 {
                    continue;
                }
            }
            let stays;
            (inner, stays) = self.sleep(inner);
            if !stays {
                break;
            }
        }
        inner.live -= 1;
        let own = inner.handles.remove(&thread::current().id());
        inner.ended.extend(own);
    }

    fn take(&self, inner: &mut Inner) -> Option<Job> {
        let helped = inner.spreads.iter().find(|spread| spread.join()).cloned();
        let job = match helped {
            Some(spread) => Some(Job::Help(spread)),
            None => inner.queue.pop_front().map(Job::Run),
        };
        self.count(inner);
        job
    }

    /// Looks for work for a moment without sleeping; one thread at a time.
    fn scout(&self) {
        for _ in 0..limits::SCOUT_SPINS {
            if self.waiting() {
                return;
            }
            hint::spin_loop();
        }
    }

    /// Sleeps until woken. `false`: the thread is one too many and ends.
    fn sleep<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> (MutexGuard<'a, Inner>, bool) {
        inner.sleeping += 1;
        loop {
            if inner.coming > 0 {
                // One was called, and any that sleeps may answer.
                inner.coming -= 1;
                return (inner, true);
            }
            if inner.stop {
                inner.sleeping -= 1;
                return (inner, true);
            }
            let surplus = inner.live - inner.blocked.len() > self.width;
            if !surplus {
                inner = self.bell.wait(inner).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let limit = Duration::from_millis(limits::SURPLUS_MS);
            let answer = self.bell.wait_timeout(inner, limit).unwrap_or_else(PoisonError::into_inner);
            inner = answer.0;
            if answer.1.timed_out() && inner.coming == 0 && inner.live - inner.blocked.len() > self.width {
                inner.sleeping -= 1;
                return (inner, false);
            }
        }
    }

    /// Ends all threads and waits for those that are not inside a host call; those end when they come back.
    pub(crate) fn stop(&self) {
        let mut inner = self.lock();
        inner.stop = true;
        self.bell.notify_all();
        loop {
            let blocked = inner.blocked.clone();
            let mut handles = std::mem::take(&mut inner.handles);
            let own = thread::current().id();
            let free: Vec<_> =
                handles.keys().filter(|id| !blocked.contains(id) && **id != own).copied().collect();
            let mut ended: Vec<_> = free.iter().filter_map(|id| handles.remove(id)).collect();
            inner.handles = handles;
            ended.append(&mut inner.ended);
            if ended.is_empty() {
                return;
            }
            drop(inner);
            for handle in ended {
                let _ = handle.join();
            }
            inner = self.lock();
        }
    }
}
