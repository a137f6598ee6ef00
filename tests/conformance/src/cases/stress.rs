//! Threads that allocate, fill, copy, launch, wait and free in no particular order, from seeds; every byte is known.

use super::{args::Args, cases};
use crate::{
    case::{Fail, Outcome, same},
    ctx::{Ctx, around, at, span, want},
    ensure,
    need::Need::*,
    rig::{List, Queue},
};
use std::{
    sync::{Mutex, PoisonError},
    thread,
};
use wharf_core::{
    fault::Kind,
    handle::Handle,
    record::Record,
    runtime::{Around, Command, KernelRecord, LaunchArgs, Ref},
    timeline::{Point, Timeline},
};

cases! {
    "stress.twenty_threads_on_one_queue", [], "20 threads of mixed work on one queue: every byte is right, nothing is left (liboffload issue: 20 threads of mixed calls)" => |ctx| run(ctx, true);
    "stress.twenty_threads_on_their_queues", [Lanes(20)], "20 threads of mixed work, a queue each, waiting for one another's events (liboffload issue: 20 threads of mixed calls)" => |ctx| run(ctx, false);
}

const THREADS: u64 = 20;
const TURNS: u64 = 60;
/// Bytes of each thread's blocks: 64 words, which is what the kernel writes.
const LEN: usize = 256;

/// Numbers from a seed (Marsaglia's xorshift with shifts 13, 7, 17).
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// What all threads share.
struct Scene<'a> {
    ctx: &'a Ctx,
    kernel: Option<Handle<KernelRecord>>,
    list: List,
    /// The last event of each thread.
    events: Vec<Mutex<Option<Point>>>,
}

/// A block and what must be in it.
type Block = (Handle<Record>, Vec<u8>);

struct Worker<'a> {
    scene: &'a Scene<'a>,
    rng: Rng,
    queue: Queue,
    number: usize,
    done: Handle<Timeline>,
    count: u64,
    blocks: Vec<Block>,
}

fn run(ctx: &Ctx, shared: bool) -> Outcome {
    let has = ctx.facts().sample.is_some_and(|sample| sample.kernels.contains(&"foo"));
    let kernel = (has && ctx.facts().programs).then(|| ctx.sample_kernel("foo")).transpose()?;
    let half = LEN as u64 / 2;
    let part = |offset| Ref::Bound { slot: 0, offset, len: half };
    let list = ctx.list_of(
        1,
        &[
            Command::Fill { to: part(0), pattern: &[0xA5, 1] },
            Command::Copy { from: part(0), to: part(half) },
        ],
    )?;
    let scene = Scene { ctx, kernel, list, events: (0..THREADS).map(|_| Mutex::default()).collect() };
    let one = shared.then(|| ctx.in_order()).transpose()?;
    thread::scope(|scope| -> Outcome {
        let mut all = Vec::new();
        for number in 0..THREADS {
            let queue = one.map_or_else(|| ctx.in_order(), Ok)?;
            let mut worker = Worker {
                scene: &scene,
                rng: Rng(0x9E37_79B9_7F4A_7C15 ^ (number + 1) << 7),
                queue,
                number: number as usize,
                done: ctx.new_timeline(0)?,
                count: 0,
                blocks: Vec::new(),
            };
            all.push(scope.spawn(move || worker.work()));
        }
        all.into_iter().enumerate().try_for_each(|(n, thread)| {
            let answer = thread.join().map_err(|_| Fail::new(format!("thread {n} panicked")))?;
            answer.map_err(|fail| Fail { message: format!("thread {n}: {}", fail.message), ..fail })
        })
    })?;
    drop(scene);
    ctx.until("the last frees", || ctx.live().is_empty())
}

impl Worker<'_> {
    fn work(&mut self) -> Outcome {
        for _ in 0..TURNS {
            self.turn()?;
        }
        while !self.blocks.is_empty() {
            self.check_and_free(0)?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Outcome {
        if self.blocks.len() < 2 {
            return self.allocate();
        }
        let which = self.rng.below(self.blocks.len() as u64) as usize;
        match self.rng.below(8) {
            0 if self.blocks.len() < 5 => self.allocate(),
            1 => self.fill(which),
            2 => self.update(which),
            3 => self.copy(which),
            4 => self.execute(which),
            5 => self.launch(which),
            6 => self.wait(),
            _ => self.check_and_free(which),
        }
    }

    /// Waits for an event of another thread half of the time; signals always.
    fn with(&mut self, submit: impl Fn(&Ctx, Queue, &Around<'_>) -> crate::rig::Submitted) -> Outcome {
        let ctx = self.scene.ctx;
        let other = self.rng.below(THREADS * 2) as usize;
        let seen = self
            .scene
            .events
            .get(other)
            .and_then(|event| *event.lock().unwrap_or_else(PoisonError::into_inner));
        let waits: Vec<Point> = seen.into_iter().collect();
        self.count += 1;
        let own = at(self.done, self.count);
        submit(ctx, self.queue, &around(&waits, &[own]))?;
        *self.scene.events[self.number].lock().unwrap_or_else(PoisonError::into_inner) = Some(own);
        Ok(())
    }

    fn allocate(&mut self) -> Outcome {
        let ctx = self.scene.ctx;
        match (**ctx).allocate(0, &want(LEN as u64)) {
            Ok(root) => {
                let byte = self.rng.below(256) as u8;
                self.blocks.push((ctx.note(root), vec![byte; LEN]));
                self.with(|ctx, queue, around| ctx.fill(queue, &span(root, 0, LEN as u64), &[byte], around))
            }
            // A small device shared by twenty: whoever has something gives it back.
            Err(fault) if fault.kind == Kind::ResourceExhausted => {
                if !self.blocks.is_empty() {
                    return self.check_and_free(0);
                }
                thread::yield_now();
                Ok(())
            }
            Err(fault) => Err(fault.into()),
        }
    }

    fn part(&mut self, len_max: u64) -> (u64, u64) {
        let len = 1 + self.rng.below(len_max);
        (self.rng.below(LEN as u64 - len + 1), len)
    }

    fn fill(&mut self, which: usize) -> Outcome {
        let step = 1 + self.rng.below(4);
        let (offset, _) = self.part(32 * 4);
        let len = step * (1 + self.rng.below(32)).min((LEN as u64 - offset) / step);
        let pattern: Vec<u8> = (0..step).map(|_| self.rng.below(256) as u8).collect();
        let (root, known) = &mut self.blocks[which];
        let at = offset as usize;
        known[at..at + len as usize].copy_from_slice(&pattern.repeat((len / step) as usize));
        let to = span(*root, offset, len);
        self.with(|ctx, queue, around| ctx.fill(queue, &to, &pattern, around))
    }

    fn update(&mut self, which: usize) -> Outcome {
        let (offset, len) = self.part(64);
        let bytes: Vec<u8> = (0..len).map(|_| self.rng.below(256) as u8).collect();
        let (root, known) = &mut self.blocks[which];
        known[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
        let to = span(*root, offset, len);
        self.with(|ctx, queue, around| ctx.update(queue, &to, &bytes, around))
    }

    fn copy(&mut self, which: usize) -> Outcome {
        let other = (which + 1) % self.blocks.len();
        let (from, len) = self.part(200);
        let to = self.rng.below(LEN as u64 - len + 1);
        let bytes = self.blocks[which].1[from as usize..][..len as usize].to_vec();
        self.blocks[other].1[to as usize..][..len as usize].copy_from_slice(&bytes);
        let spans = (span(self.blocks[which].0, from, len), span(self.blocks[other].0, to, len));
        self.with(|ctx, queue, around| ctx.copy(queue, &spans.0, &spans.1, around))
    }

    fn execute(&mut self, which: usize) -> Outcome {
        let (root, known) = &mut self.blocks[which];
        *known = [0xA5, 1].repeat(LEN / 2);
        let bound = [span(*root, 0, LEN as u64)];
        let list = &self.scene.list;
        self.with(|ctx, queue, around| ctx.execute(queue, list, &bound, around))
    }

    fn launch(&mut self, which: usize) -> Outcome {
        let Some(kernel) = self.scene.kernel else { return self.execute(which) };
        let (root, known) = &mut self.blocks[which];
        *known = (0..64u32).flat_map(u32::to_ne_bytes).collect();
        let base = self.scene.ctx.allocation(*root)?.base;
        let args = Args::default().u64(base).end(8);
        let launch = LaunchArgs { groups: [4, 1, 1], size: [16, 1, 1], shared: 0, args: &args };
        self.with(|ctx, queue, around| ctx.launch(queue, kernel, &launch, around))
    }

    fn wait(&mut self) -> Outcome {
        let ctx = self.scene.ctx;
        let value = self.rng.below(self.count + 1);
        ctx.reach(at(self.done, value))?;
        let other = self.rng.below(THREADS) as usize;
        let event = *self.scene.events[other].lock().unwrap_or_else(PoisonError::into_inner);
        event.map_or(Ok(()), |event| ctx.reach(event))
    }

    /// Frees a block with a copy of it under way, and then looks at what the copy brought.
    fn check_and_free(&mut self, which: usize) -> Outcome {
        let ctx = self.scene.ctx;
        let (root, known) = self.blocks.swap_remove(which);
        let out = ctx.host(LEN);
        self.with(|ctx, queue, around| ctx.copy_to(queue, &span(root, 0, LEN as u64), out, around))?;
        let end = at(self.done, self.count);
        ctx.free(root)?;
        ensure!(ctx.allocation(root).is_err(), "freed memory is still live");
        ctx.reach(end)?;
        same(&out.bytes(), &known)
    }
}
