//! Empty kernels: submitted and waited for one by one, and a thousand at a time; through the plugin, linked in behind
//! the same tables, and over core's runtime alone, which the loader does not tell what the caller does next and these
//! forms do; against a channel to a thread, and a direct call.

use std::{
    hint::black_box,
    process::ExitCode,
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::Duration,
};
use wharf::{Device, Kernel, Queue, os::Os};
use wharf_bench::{
    args::{self, Args as Wanted, Fail},
    devices,
    row::{Goal, Row},
    time::{Effort, Times, clocked, in_turn},
};
use wharf_core::{
    device::{Device as CoreDevice, Hint, Programs},
    fault::Fault,
    runtime::{Around, LaunchArgs, QueueOptions, Runtime},
};
use wharf_host::HostDevice;

/// Launches that are queued before a wait.
const BATCH: u64 = 1000;

fn main() -> ExitCode {
    args::main(run)
}

/// What launches the empty kernel so many times: each waited for, or all at the end.
struct Form {
    name: &'static str,
    one: Box<dyn FnMut()>,
    batch: Box<dyn FnMut()>,
    /// The form that users get has the goals.
    goals: bool,
}

fn run(args: &Wanted, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
    let effort = Effort { rounds: args.pick(31, 3), round: Duration::from_millis(args.pick(10, 1)) };
    let channel = Channel::new();
    let mut forms = [
        loaded("plugin", &devices::plugin()?, true)?,
        loaded("linked in", &devices::linked()?, false)?,
        burst("plugin, in a burst", &devices::plugin()?)?,
        core("core over tables", devices::tables()?)?,
        core("core alone", HostDevice::new())?,
    ];
    let one = |name: &str| format!("empty kernel, submit and wait, {name}");
    for form in forms.iter_mut().filter(|form| args.wants(&one(form.name))) {
        let goal = if form.goals { Goal::Most(50.0) } else { Goal::None };
        let times = in_turn(effort, |count| repeat(count, &mut form.one), |count| channel.one(count));
        give(row(one(form.name), times, "channel to a thread and back", goal));
    }
    let many = |name: &str| format!("empty kernel, 1,000 queued, {name}");
    for form in forms.iter_mut().filter(|form| args.wants(&many(form.name))) {
        let goal = if form.goals { Goal::Most(15.0) } else { Goal::None };
        let times = in_turn(
            effort,
            |count| repeat(count.div_ceil(BATCH), &mut form.batch) * count as u32 / whole(count),
            |count| channel.batch(count.div_ceil(BATCH)) * count as u32 / whole(count),
        );
        give(row(many(form.name), times, "channel send, 1,000 then wait", goal));
    }
    let again = "empty kernel, submit and wait, plugin (again)";
    if args.wants(again) {
        let times = in_turn(effort, |count| repeat(count, &mut forms[0].one), direct);
        give(row(again.into(), times, "direct call", Goal::None));
    }
    Ok(())
}

/// What was really run for `count`: whole batches.
fn whole(count: u64) -> u32 {
    (count.div_ceil(BATCH) * BATCH) as u32
}

fn row(name: String, times: (Times, Times), baseline: &'static str, goal: Goal) -> Row {
    Row { name, value: times.0.into(), unit: "ns", baseline, baseline_value: times.1.into(), goal }
}

fn repeat(count: u64, run: &mut dyn FnMut()) -> Duration {
    clocked(|| (0..count).for_each(|_| run()))
}

fn direct(count: u64) -> Duration {
    #[inline(never)]
    fn empty() {
        black_box(());
    }
    let call: fn() = black_box(empty);
    clocked(|| (0..count).for_each(|_| call()))
}

/// A form through the loader.
fn loaded(name: &'static str, device: &Device, goals: bool) -> Result<Form, Fail> {
    let kernel = device.program(&devices::image()?)?.kernel("noargs")?;
    let (queue, again) = (device.queue()?, kernel.clone());
    let (other, args) = (device.queue()?, wharf::Args::new());
    let launch = |queue: &Queue, kernel: &Kernel, args: &wharf::Args| {
        let launched = queue.launch(kernel, [1; 3], [1; 3], args);
        drop(launched.unwrap_or_else(|why| panic!("an empty kernel: {why}")));
    };
    let sync = |queue: &Queue| queue.sync().unwrap_or_else(|why| panic!("an empty kernel: {why}"));
    let none = wharf::Args::new();
    let one = Box::new(move || {
        launch(&queue, &kernel, &args);
        sync(&queue);
    });
    let batch = Box::new(move || {
        (0..BATCH).for_each(|_| launch(&other, &again, &none));
        sync(&other);
    });
    Ok(Form { name, one, batch, goals })
}

/// The same in bursts, which tell the runtime that more comes, or a wait.
fn burst(name: &'static str, device: &Device) -> Result<Form, Fail> {
    let kernel = device.program(&devices::image()?)?.kernel("noargs")?;
    let queue = Arc::new(device.queue()?);
    let (other, again) = (queue.clone(), kernel.clone());
    let (args, none) = (wharf::Args::new(), wharf::Args::new());
    let ended = |result: wharf::Result<()>| result.unwrap_or_else(|why| panic!("an empty kernel: {why}"));
    let one = Box::new(move || {
        let _burst = queue.burst();
        ended(queue.launch(&kernel, [1; 3], [1; 3], &args).and_then(|launched| launched.wait()));
    });
    let batch = Box::new(move || {
        let _burst = other.burst();
        (1..BATCH).for_each(|_| ended(other.launch(&again, [1; 3], [1; 3], &none).map(drop)));
        ended(other.launch(&again, [1; 3], [1; 3], &none).and_then(|launched| launched.wait()));
    });
    Ok(Form { name, one, batch, goals: false })
}

/// A form straight on core's runtime, which is told what the caller does next.
fn core<D: CoreDevice + Programs + Send>(name: &'static str, device: D) -> Result<Form, Fail> {
    let words = |fault: Fault| format!("{fault:?}");
    let core: &'static Runtime<D, Os> = devices::core(device);
    let program = core.load(0, &devices::image()?).map_err(words)?;
    let kernel = core.kernel(program, b"noargs", &[]).map_err(words)?;
    let queue = core.queue(0, QueueOptions::default()).map_err(words)?;
    let launch = move |hint| {
        let launch = LaunchArgs { groups: [1; 3], size: [1; 3], shared: 0, args: &[] };
        let around = Around { waits: &[], signals: &[], hint };
        match core.launch(queue, kernel, &launch, &around) {
            Ok(Some(point)) => point,
            other => panic!("an empty kernel: {other:?}"),
        }
    };
    let wait = move |point| core.wait(point, None).unwrap_or_else(|why| panic!("an empty kernel: {why:?}"));
    let one = Box::new(move || wait(launch(Hint::Waiting)));
    let batch = Box::new(move || {
        (1..BATCH).for_each(|_| _ = launch(Hint::More));
        wait(launch(Hint::Waiting));
    });
    Ok(Form { name, one, batch, goals: false })
}

/// A thread that takes words from a channel and answers the last of each batch.
struct Channel {
    to: SyncSender<bool>,
    back: Receiver<()>,
}

impl Channel {
    fn new() -> Channel {
        let (to, from) = mpsc::sync_channel::<bool>(BATCH as usize);
        let (answer, back) = mpsc::sync_channel(1);
        // It ends with the channel.
        thread::spawn(move || {
            while let Ok(last) = from.recv() {
                if last && answer.send(()).is_err() {
                    break;
                }
            }
        });
        Channel { to, back }
    }
    fn send(&self, last: bool) {
        self.to.send(last).expect("the thread ends after this side");
        if last {
            self.back.recv().expect("the thread ends after this side");
        }
    }
    fn one(&self, count: u64) -> Duration {
        clocked(|| (0..count).for_each(|_| self.send(true)))
    }
    fn batch(&self, count: u64) -> Duration {
        clocked(|| (0..count * BATCH).for_each(|i| self.send(i % BATCH == BATCH - 1)))
    }
}
