//! Launches: values, arguments, grids, shared memory, refusals.

use super::{args::Args, cases};
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, around, at, point},
    ensure, ensure_eq,
    need::Need::*,
    rig::Queue,
};
use wharf_core::{
    fault::{Fault, Kind},
    handle::Handle,
    record::Record,
    runtime::{Around, KernelRecord, LaunchArgs},
    timeline::Point,
};

cases! {
    "kernel.idle", [Programs], "the simplest kernel of the image runs (liboffload NoArgs)" => idle;
    "kernel.in_order_with_transfers", [Programs], "a launch runs after what is before it and before what is behind (liboffload olLaunchKernel)" => in_order;
    "kernel.foo", [Kernel("foo")], "out[i] = i for a group of 64 (liboffload foo)" => |ctx| foo(ctx, [1, 1, 1], [64, 1, 1]);
    "kernel.foo_grid", [Kernel("foo")], "every item of a three-dimensional grid and group runs (liboffload foo)" => |ctx| foo(ctx, [3, 5, 7], [4, 2, 3]);
    "kernel.foo_large", [Kernel("foo")], "1,000 groups of 64 (liboffload foo)" => |ctx| foo(ctx, [1000, 1, 1], [64, 1, 1]);
    "kernel.each_group_once", [Kernel("mark")], "each group of odd grids runs once, with its own id (design 4)" => groups;
    "kernel.multiargs", [Kernel("multiargs")], "arguments with holes between them (liboffload multiargs)" => multiargs;
    "kernel.composite", [Kernel("composite")], "a structure by value (liboffload composite)" => composite;
    "kernel.byte", [Kernel("byte")], "a single byte as an argument (liboffload byte)" => byte;
    "kernel.localmem", [Kernel("localmem")], "dynamic shared memory of a group is its own (liboffload localmem)" => |ctx| localmem(ctx, "localmem", 256);
    "kernel.localmem_static", [Kernel("localmem_static")], "static shared memory of a group is its own (liboffload localmem_static)" => |ctx| localmem(ctx, "localmem_static", 0);
    "kernel.localmem_reduction", [Kernel("localmem_reduction")], "a sum through shared memory (liboffload localmem_reduction)" => reduction;
    "kernel.sequence", [Kernel("sequence")], "40 launches in a row, each on the values of those before (liboffload sequence)" => sequence;
    "kernel.sequence_on_queues", [Kernel("sequence"), Lanes(16)], "the same over 16 queues chained by waits (liboffload olWaitEvents)" => sequence_queues;
    "kernel.global_write_and_read", [Kernel("write"), Kernel("read")], "a kernel writes a global, another reads it (liboffload Global write/read)" => global;
    "kernel.arguments_are_captured", [Kernel("byte")], "arguments may change after the call, also of held launches (liboffload 4 row 53)" => captured;
    "kernel.many", [Programs], "1,000 launches in a row (design 6)" => many;
    "kernel.threads", [Programs], "20 threads launch on one queue (liboffload Threaded)" => threads;
    "kernel.waits_and_signals", [Programs], "a launch waits and signals like any operation (iree 1.4)" => waits;
    "kernel.zero_groups_or_size", [Programs], "a zero in groups or size is InvalidArgument (decisions, launch with a zero)" => zero;
    "kernel.group_too_large", [Programs], "more items than the kernel or device takes are InvalidArgument (liboffload 4 row 53)" => too_large;
    "kernel.too_many_groups", [Programs], "more than 2^32-1 groups are InvalidArgument (core launch)" => too_many;
    "kernel.too_much_shared_memory", [Programs], "more shared memory than there is, InvalidArgument (liboffload 4 row 53)" => shared;
    "kernel.short_and_long_arguments", [Programs], "blocks that are not the kernel's size are InvalidArgument (liboffload 4 row 53)" => wrong_args;
    "kernel.refused_launch_fails_its_signals", [Programs], "a refused launch fails its signals, the queue goes on (decisions, validation error)" => refused_signals;
    "kernel.of_another_device", [Programs, TwoDevices], "a kernel of another device is InvalidDevice (liboffload 4 row 52)" => other_device;
    "kernel.stale", [Programs], "a launch of a kernel whose program is unloaded is InvalidHandle (liboffload 4 row 48)" => stale;
    "kernel.unload_waits_for_launches", [Programs], "a program unloaded with launches under way goes when they have ended (liboffload 4 row 48)" => unload_waits;
}

fn one<'a>(args: &'a [u8]) -> LaunchArgs<'a> {
    LaunchArgs { groups: [1; 3], size: [1; 3], shared: 0, args }
}

fn address(ctx: &Ctx, root: Handle<Record>) -> Outcome<u64> {
    Ok(ctx.allocation(root)?.base)
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// The idle kernel and its arguments.
fn idle_kernel(ctx: &Ctx) -> Outcome<(Handle<KernelRecord>, Vec<u8>)> {
    let (program, sample) = (ctx.program()?, ctx.sample()?);
    let kernel = ctx.kernel(program, sample.idle, &[])?;
    Ok((kernel, ctx.idle_args(program)?))
}

fn launch(ctx: &Ctx, queue: Queue, kernel: Handle<KernelRecord>, args: &LaunchArgs<'_>) -> Outcome<Point> {
    point(ctx.launch(queue, kernel, args, &Around::NONE)?)
}

fn idle(ctx: &Ctx) -> Outcome {
    let ((kernel, args), queue) = (idle_kernel(ctx)?, ctx.in_order()?);
    ctx.reach(launch(ctx, queue, kernel, &one(&args))?)
}

fn in_order(ctx: &Ctx) -> Outcome {
    let ((kernel, args), queue, root) = (idle_kernel(ctx)?, ctx.in_order()?, ctx.memory(16)?);
    ctx.fill(queue, &ctx.whole(root)?, &[1], &Around::NONE)?;
    let end = launch(ctx, queue, kernel, &one(&args))?;
    ctx.fill(queue, &ctx.whole(root)?, &[2], &Around::NONE)?;
    same(&ctx.read_all(queue, root)?, &[2; 16])?;
    ctx.reach(end)
}

fn foo(ctx: &Ctx, groups: [u32; 3], size: [u32; 3]) -> Outcome {
    let (kernel, queue) = (ctx.sample_kernel("foo")?, ctx.in_order()?);
    let items = groups.iter().chain(&size).product::<u32>();
    let root = ctx.memory(u64::from(items) * 4 + 8)?;
    ctx.fill(queue, &ctx.whole(root)?, &[0xEE], &Around::NONE)?;
    let args = Args::default().u64(address(ctx, root)?).end(8);
    launch(ctx, queue, kernel, &LaunchArgs { groups, size, shared: 0, args: &args })?;
    let bytes = ctx.read_all(queue, root)?;
    let (out, guard) = bytes.split_at(items as usize * 4);
    ensure_eq!(words(out), (0..items).collect::<Vec<_>>());
    same(guard, &[0xEE; 8])
}

fn groups(ctx: &Ctx) -> Outcome {
    let (kernel, queue) = (ctx.sample_kernel("mark")?, ctx.in_order()?);
    for groups in [[1, 1, 1], [7, 1, 1], [1, 13, 1], [1, 1, 5], [17, 3, 31], [64, 9, 2]] {
        let total = groups.iter().product::<u32>();
        let (hits, ids) = (ctx.memory(u64::from(total) * 4)?, ctx.memory(u64::from(total) * 8)?);
        ctx.fill(queue, &ctx.whole(hits)?, &[0], &Around::NONE)?;
        let args = Args::default().u64(address(ctx, hits)?).u64(address(ctx, ids)?).end(8);
        launch(ctx, queue, kernel, &LaunchArgs { groups, size: [3, 2, 1], shared: 0, args: &args })?;
        ensure_eq!(words(&ctx.read_all(queue, hits)?), vec![1; total as usize], "{groups:?}");
        let [nx, ny, _] = groups.map(u64::from);
        for (i, id) in (0..).zip(ctx.read_all(queue, ids)?.chunks_exact(8)) {
            let id = id.iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
            let expected: u64 = (i % nx) | ((i / nx % ny) << 20) | ((i / nx / ny) << 40);
            ensure_eq!(id, expected, "group {i} of {groups:?}");
        }
    }
    Ok(())
}

fn multiargs(ctx: &Ctx) -> Outcome {
    let (kernel, queue, root) = (ctx.sample_kernel("multiargs")?, ctx.in_order()?, ctx.memory(4)?);
    let args = Args::default().with(&[0xFE]).u64(address(ctx, root)?).with(&(-300i16).to_ne_bytes());
    let len = ctx.kernel_info(kernel)?.kernel.args_len as usize;
    let mut args = args.0;
    args.resize(len, 0);
    launch(ctx, queue, kernel, &one(&args))?;
    same(&ctx.read_all(queue, root)?, &(-302i32).to_ne_bytes())
}

fn composite(ctx: &Ctx) -> Outcome {
    let (kernel, queue, root) = (ctx.sample_kernel("composite")?, ctx.in_order()?, ctx.memory(4)?);
    let args = Args::default().with(&[5]).u32(7).u32(1000).u64(address(ctx, root)?).end(8);
    launch(ctx, queue, kernel, &one(&args))?;
    ensure_eq!(words(&ctx.read_all(queue, root)?), [1012]);
    Ok(())
}

fn byte(ctx: &Ctx) -> Outcome {
    let (kernel, queue, root) = (ctx.sample_kernel("byte")?, ctx.in_order()?, ctx.memory(1)?);
    let args = Args::default().with(&[42]).u64(address(ctx, root)?).end(8);
    launch(ctx, queue, kernel, &one(&args))?;
    same(&ctx.read_all(queue, root)?, &[42])
}

fn localmem(ctx: &Ctx, name: &str, shared: u32) -> Outcome {
    let (kernel, queue, root) = (ctx.sample_kernel(name)?, ctx.in_order()?, ctx.memory(4 * 64 * 4)?);
    let args = Args::default().u64(address(ctx, root)?).end(8);
    launch(ctx, queue, kernel, &LaunchArgs { groups: [4, 1, 1], size: [64, 1, 1], shared, args: &args })?;
    let expected: Vec<u32> = (0..256).map(|i| i % 64 * 2).collect();
    ensure_eq!(words(&ctx.read_all(queue, root)?), expected);
    Ok(())
}

fn reduction(ctx: &Ctx) -> Outcome {
    let (kernel, queue, root) = (ctx.sample_kernel("localmem_reduction")?, ctx.in_order()?, ctx.memory(16)?);
    let args = Args::default().u64(address(ctx, root)?).end(8);
    launch(
        ctx,
        queue,
        kernel,
        &LaunchArgs { groups: [4, 1, 1], size: [32, 2, 2], shared: 512, args: &args },
    )?;
    ensure_eq!(words(&ctx.read_all(queue, root)?), [127 * 128 / 2; 4]);
    Ok(())
}

fn fibonacci(len: usize) -> Vec<u32> {
    let mut all = vec![0u32, 1];
    while all.len() < len {
        all.push(all[all.len() - 1].wrapping_add(all[all.len() - 2]));
    }
    all
}

fn sequence(ctx: &Ctx) -> Outcome {
    let (kernel, queue, root) = (ctx.sample_kernel("sequence")?, ctx.in_order()?, ctx.memory(160)?);
    for n in 0..40 {
        let args = Args::default().u32(n).u64(address(ctx, root)?).end(8);
        launch(ctx, queue, kernel, &one(&args))?;
    }
    ensure_eq!(words(&ctx.read_all(queue, root)?), fibonacci(40));
    Ok(())
}

fn sequence_queues(ctx: &Ctx) -> Outcome {
    let (kernel, root) = (ctx.sample_kernel("sequence")?, ctx.memory(16 * 4)?);
    let queues: Vec<_> = (0..16).map(|_| ctx.in_order()).collect::<Outcome<_>>()?;
    let mut last: Option<Point> = None;
    for (n, queue) in (0..).zip(&queues) {
        let args = Args::default().u32(n).u64(address(ctx, root)?).end(8);
        let waits: Vec<Point> = last.into_iter().collect();
        last = ctx.launch(*queue, kernel, &one(&args), &around(&waits, &[]))?;
    }
    ctx.reach(point(last)?)?;
    ensure_eq!(words(&ctx.read_all(queues[0], root)?), fibonacci(16));
    Ok(())
}

fn global(ctx: &Ctx) -> Outcome {
    let (program, queue, root) = (ctx.program()?, ctx.in_order()?, ctx.memory(256)?);
    let group = |args| LaunchArgs { groups: [1; 3], size: [64, 1, 1], shared: 0, args };
    launch(ctx, queue, ctx.kernel(program, "write", &[])?, &group(&[]))?;
    let args = Args::default().u64(address(ctx, root)?).end(8);
    launch(ctx, queue, ctx.kernel(program, "read", &[])?, &group(&args))?;
    let expected: Vec<u32> = (0..64).map(|i| 2 * i).collect();
    ensure_eq!(words(&ctx.read_all(queue, root)?), expected);
    Ok(())
}

fn captured(ctx: &Ctx) -> Outcome {
    let (kernel, queue, root) = (ctx.sample_kernel("byte")?, ctx.in_order()?, ctx.memory(40)?);
    let (base, gate) = (address(ctx, root)?, ctx.new_timeline(0)?);
    let waits = [at(gate, 1)];
    for n in 0..40u8 {
        let mut args = Args::default().with(&[n + 1]).u64(base + u64::from(n)).end(8);
        let around = if n == 20 { around(&waits, &[]) } else { Around::NONE };
        ctx.launch(queue, kernel, &one(&args), &around)?;
        args.fill(0xEE);
    }
    ctx.signal(gate, 1)?;
    same(&ctx.read_all(queue, root)?, &(1..=40).collect::<Vec<u8>>())
}

fn many(ctx: &Ctx) -> Outcome {
    let ((kernel, args), queue) = (idle_kernel(ctx)?, ctx.in_order()?);
    for _ in 0..1000 {
        launch(ctx, queue, kernel, &one(&args))?;
    }
    ctx.finish(queue)
}

fn threads(ctx: &Ctx) -> Outcome {
    let ((kernel, args), queue) = (idle_kernel(ctx)?, ctx.in_order()?);
    let body = || -> Outcome {
        for _ in 0..10 {
            ctx.reach(launch(ctx, queue, kernel, &one(&args))?)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..20).map(|_| scope.spawn(body)).collect();
        all.into_iter().try_for_each(|t| t.join().map_err(|_| crate::Fail::new("a thread panicked"))?)
    })?;
    ensure_eq!(ctx.tail(queue)?.value, 200);
    ctx.finish(queue)
}

fn waits(ctx: &Ctx) -> Outcome {
    let ((kernel, args), queue) = (idle_kernel(ctx)?, ctx.in_order()?);
    let (gate, done) = (ctx.new_timeline(0)?, ctx.new_timeline(0)?);
    ctx.launch(queue, kernel, &one(&args), &around(&[at(gate, 1)], &[at(done, 1)]))?;
    ctx.ahead(at(done, 1))?;
    ctx.signal(gate, 1)?;
    ctx.reach(at(done, 1))
}

fn launched(
    ctx: &Ctx,
    args: &LaunchArgs<'_>,
    kernel: Handle<KernelRecord>,
) -> Outcome<Result<Option<Point>, Fault>> {
    let queue = ctx.in_order()?;
    let answer = ctx.launch(queue, kernel, args, &Around::NONE);
    ctx.finish(queue)?;
    ctx.close(queue)?;
    ctx.until("room for a queue", || ctx.poll() == wharf_core::runtime::Next::Idle)?;
    Ok(answer)
}

fn zero(ctx: &Ctx) -> Outcome {
    let (kernel, args) = idle_kernel(ctx)?;
    for axis in 0..3 {
        let (mut groups, mut size) = (one(&args), one(&args));
        (groups.groups[axis], size.size[axis]) = (0, 0);
        refused(launched(ctx, &groups, kernel)?, Kind::InvalidArgument)?;
        refused(launched(ctx, &size, kernel)?, Kind::InvalidArgument)?;
    }
    Ok(())
}

fn too_large(ctx: &Ctx) -> Outcome {
    let (kernel, args) = idle_kernel(ctx)?;
    let most = ctx.kernel_info(kernel)?.kernel.group_max.min(ctx.caps(0).group_max);
    for size in [[most + 1, 1, 1], [most, 2, 1], [u32::MAX; 3]] {
        refused(launched(ctx, &LaunchArgs { size, ..one(&args) }, kernel)?, Kind::InvalidArgument)?;
    }
    launched(ctx, &LaunchArgs { size: [most, 1, 1], ..one(&args) }, kernel)??;
    Ok(())
}

fn too_many(ctx: &Ctx) -> Outcome {
    let (kernel, args) = idle_kernel(ctx)?;
    for groups in [[u32::MAX, 2, 1], [1 << 16, 1 << 16, 1], [u32::MAX; 3]] {
        refused(launched(ctx, &LaunchArgs { groups, ..one(&args) }, kernel)?, Kind::InvalidArgument)?;
    }
    Ok(())
}

fn shared(ctx: &Ctx) -> Outcome {
    let (kernel, args) = idle_kernel(ctx)?;
    let fixed = ctx.kernel_info(kernel)?.kernel.shared_static;
    for shared in [ctx.caps(0).shared_max - fixed + 1, u32::MAX] {
        refused(launched(ctx, &LaunchArgs { shared, ..one(&args) }, kernel)?, Kind::InvalidArgument)?;
    }
    Ok(())
}

fn wrong_args(ctx: &Ctx) -> Outcome {
    let (program, sample, queue) = (ctx.program()?, ctx.sample()?, ctx.in_order()?);
    for name in sample.kernels {
        let kernel = ctx.kernel(program, name, &[])?;
        let len = ctx.kernel_info(kernel)?.kernel.args_len as usize;
        for wrong in [len.wrapping_sub(1), len + 1, len + 8] {
            if wrong < 1 << 16 {
                let args = vec![0; wrong];
                refused(ctx.launch(queue, kernel, &one(&args), &Around::NONE), Kind::InvalidArgument)?;
            }
        }
    }
    ctx.finish(queue)
}

fn refused_signals(ctx: &Ctx) -> Outcome {
    let ((kernel, args), queue, signal) = (idle_kernel(ctx)?, ctx.in_order()?, ctx.new_timeline(0)?);
    let bad = LaunchArgs { groups: [0, 1, 1], ..one(&args) };
    let fault =
        refused(ctx.launch(queue, kernel, &bad, &around(&[], &[at(signal, 1)])), Kind::InvalidArgument)?;
    ensure_eq!(ctx.query(signal), Err(fault));
    ctx.reach(launch(ctx, queue, kernel, &one(&args))?)
}

fn other_device(ctx: &Ctx) -> Outcome {
    let ((kernel, args), queue) = (idle_kernel(ctx)?, ctx.queue_on(1, Default::default())?);
    refused(ctx.launch(queue, kernel, &one(&args), &Around::NONE), Kind::InvalidDevice)?;
    ctx.finish(queue)
}

fn stale(ctx: &Ctx) -> Outcome {
    let (program, sample, queue) = (ctx.program()?, ctx.sample()?, ctx.in_order()?);
    let kernel = ctx.kernel(program, sample.idle, &[])?;
    let args = ctx.idle_args(program)?;
    ctx.unload(program)?;
    for kernel in [kernel, Handle::from_raw(0)] {
        refused(ctx.launch(queue, kernel, &one(&args), &Around::NONE), Kind::InvalidHandle)?;
    }
    ctx.finish(queue)
}

fn unload_waits(ctx: &Ctx) -> Outcome {
    let (program, sample, queue) = (ctx.program()?, ctx.sample()?, ctx.in_order()?);
    let kernel = ctx.kernel(program, sample.idle, &[])?;
    let args = ctx.idle_args(program)?;
    let gate = ctx.new_timeline(0)?;
    let end = point(ctx.launch(queue, kernel, &one(&args), &around(&[at(gate, 1)], &[]))?)?;
    ctx.unload(program)?;
    refused(ctx.kernel_info(kernel), Kind::InvalidHandle)?;
    ctx.ahead(end)?;
    ctx.signal(gate, 1)?;
    ctx.reach(end)?;
    ensure!(ctx.frees_refused() == 0, "the late unload was refused");
    Ok(())
}
