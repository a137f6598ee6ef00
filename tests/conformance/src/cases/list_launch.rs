//! Command lists with launches.

use super::{args::Args, cases};
use crate::{
    case::{Outcome, refused, same},
    ctx::{Ctx, around, at, point, span, want},
    ensure_eq,
    need::Need::*,
    rig::List,
};
use wharf_core::{
    bits::{Access, Usage},
    device::Want,
    fault::Kind,
    handle::Handle,
    record::Record,
    runtime::{ArgRef, Around, BOUND_ARGS_MAX, Command, KernelRecord, LaunchArgs, Ref},
};

cases! {
    "list.launch", [Programs], "a launch on bound memory runs once for each submit (iree DispatchAbs)" => launch;
    "list.launch_different_bindings", [Programs], "each submit launches on its own bindings (iree ResubmitWithDifferentBindings)" => different;
    "list.launch_mixed_references", [Programs], "named and bound memory in one list (iree MixedDirectAndIndirectBindings)" => mixed;
    "list.launch_keeps_bindings", [Programs], "a held launch uses the bindings of its submit (iree DeferredExecuteRetainsDispatchBindingTable)" => keeps;
    "list.launch_many", [Programs], "100 launches in one list, each once and in order (iree MultipleDispatchesInSingleCommandBuffer)" => many;
    "list.launch_many_resubmitted", [Programs], "a list of launches submitted 40 times (iree MultiDispatchMultiResubmit)" => resubmitted;
    "list.launch_cycle", [Programs], "allocate, submit, free, again and again, without a wait between (iree PipelinedAllocaExecuteDealloca)" => cycle;
    "list.launch_scale", [Kernel("saxpy")], "constants and two bindings (iree ScaleAndOffset)" => scale;
    "list.launch_chain", [Kernel("sequence")], "each launch works on what those before it wrote (iree ChainedDispatches)" => chain;
    "list.launch_pipeline", [Kernel("saxpy")], "fill, update, launch, launch, copy in one list, with different inputs (iree pipeline)" => pipeline;
    "list.launch_large_grid", [Kernel("foo")], "1,000 groups from a list (iree LargeWorkgroupCount)" => large_grid;
    "list.launch_is_checked", [Programs], "zero sizes, wrong arguments, bad places of addresses are refused when recorded (decisions, launch with a zero)" => checked;
    "list.launch_access_is_checked", [Programs], "memory without the access or dispatch usage is PermissionDenied (iree 1.5)" => access;
    "list.launch_of_unloaded", [Programs], "a list whose program was unloaded is InvalidHandle when submitted (liboffload 4 row 48)" => unloaded;
    "list.launch_of_another_device", [Programs, TwoDevices], "a kernel of another device is InvalidDevice when recorded (liboffload 4 row 52)" => other_device;
}

/// A kernel that adds 1 to the first byte of what it is given.
struct Bump {
    kernel: Handle<KernelRecord>,
    args: Vec<u8>,
    /// Where the address lies in the arguments.
    at: u32,
}

fn bump(ctx: &Ctx) -> Outcome<Bump> {
    if ctx.sample()?.kernels.contains(&"spin") {
        let args = Args::default().u64(0).u64(0).end(8);
        return Ok(Bump { kernel: ctx.sample_kernel("spin")?, args, at: 8 });
    }
    let args = Args::default().u64(0).u64(1).with(&[1]).0;
    Ok(Bump { kernel: ctx.sample_kernel("add")?, args, at: 0 })
}

impl Bump {
    fn once(&self) -> LaunchArgs<'_> {
        LaunchArgs { groups: [1; 3], size: [1; 3], shared: 0, args: &self.args }
    }
    fn refs(&self, of: Ref) -> [ArgRef; 1] {
        [ArgRef { at: self.at, of, access: Access::READ | Access::WRITE }]
    }
    fn record(&self, ctx: &Ctx, list: &mut List, of: Ref) -> Outcome {
        let refs = self.refs(of);
        Ok(ctx.record(list, &Command::Launch { kernel: self.kernel, launch: self.once(), refs: &refs })?)
    }
}

fn slot(slot: u32, offset: u64) -> Ref {
    Ref::Bound { slot, offset, len: 4 }
}

/// Zeros.
fn zeros(ctx: &Ctx, len: u64) -> Outcome<Handle<Record>> {
    let (root, queue) = (ctx.memory(len)?, ctx.in_order()?);
    ctx.fill(queue, &ctx.whole(root)?, &[0], &Around::NONE)?;
    ctx.finish(queue)?;
    ctx.close(queue)?;
    Ok(root)
}

fn launch(ctx: &Ctx) -> Outcome {
    let (bump, root) = (bump(ctx)?, zeros(ctx, 12)?);
    let mut list = ctx.list(1)?;
    bump.record(ctx, &mut list, slot(0, 4))?;
    list.end()?;
    let queue = ctx.in_order()?;
    for n in 1..=5 {
        ctx.reach(point(ctx.execute(queue, &list, &[span(root, 0, 12)], &Around::NONE)?)?)?;
        same(&ctx.read_all(queue, root)?, &[0, 0, 0, 0, n, 0, 0, 0, 0, 0, 0, 0])?;
    }
    Ok(())
}

fn different(ctx: &Ctx) -> Outcome {
    let (bump, root) = (bump(ctx)?, zeros(ctx, 16)?);
    let mut list = ctx.list(2)?;
    bump.record(ctx, &mut list, slot(0, 0))?;
    bump.record(ctx, &mut list, slot(1, 0))?;
    list.end()?;
    let (queue, part) = (ctx.in_order()?, |n: u64| span(root, n * 4, 4));
    for (a, b) in [(0, 1), (0, 2), (3, 0), (2, 2)] {
        ctx.execute(queue, &list, &[part(a), part(b)], &Around::NONE)?;
    }
    same(&ctx.read_all(queue, root)?, &[3, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0])
}

fn mixed(ctx: &Ctx) -> Outcome {
    let (bump, a, b) = (bump(ctx)?, zeros(ctx, 4)?, zeros(ctx, 4)?);
    let mut list = ctx.list(1)?;
    bump.record(ctx, &mut list, Ref::Direct(span(a, 0, 4)))?;
    bump.record(ctx, &mut list, slot(0, 0))?;
    bump.record(ctx, &mut list, Ref::Direct(span(a, 0, 4)))?;
    list.end()?;
    let queue = ctx.in_order()?;
    ctx.execute(queue, &list, &[span(b, 0, 4)], &Around::NONE)?;
    ctx.execute(queue, &list, &[span(a, 0, 4)], &Around::NONE)?;
    same(&ctx.read_all(queue, a)?, &[5, 0, 0, 0])?;
    same(&ctx.read_all(queue, b)?, &[1, 0, 0, 0])
}

fn keeps(ctx: &Ctx) -> Outcome {
    let (bump, root, gate) = (bump(ctx)?, zeros(ctx, 8)?, ctx.new_timeline(0)?);
    let mut list = ctx.list(1)?;
    for _ in 0..3 {
        bump.record(ctx, &mut list, slot(0, 0))?;
    }
    list.end()?;
    let queue = ctx.in_order()?;
    let mut table = [span(root, 0, 4)];
    let end = point(ctx.execute(queue, &list, &table, &around(&[at(gate, 1)], &[]))?)?;
    table[0] = span(root, 4, 4);
    ctx.execute(queue, &list, &table, &Around::NONE)?;
    drop(list);
    ctx.ahead(end)?;
    ctx.signal(gate, 1)?;
    same(&ctx.read_all(queue, root)?, &[3, 0, 0, 0, 3, 0, 0, 0])
}

fn many(ctx: &Ctx) -> Outcome {
    let (bump, root, queue) = (bump(ctx)?, zeros(ctx, 8)?, ctx.in_order()?);
    let mut list = ctx.list(1)?;
    for _ in 0..100 {
        bump.record(ctx, &mut list, slot(0, 0))?;
        let (from, to) = (slot(0, 0), Ref::Direct(span(root, 4, 4)));
        ctx.record(&mut list, &Command::Copy { from, to })?;
    }
    list.end()?;
    ensure_eq!(list.len(), 200);
    ctx.execute(queue, &list, &[span(root, 0, 4)], &Around::NONE)?;
    same(&ctx.read_all(queue, root)?, &[100, 0, 0, 0, 100, 0, 0, 0])
}

fn resubmitted(ctx: &Ctx) -> Outcome {
    let (bump, root, queue) = (bump(ctx)?, zeros(ctx, 4)?, ctx.in_order()?);
    let mut list = ctx.list(1)?;
    for _ in 0..5 {
        bump.record(ctx, &mut list, slot(0, 0))?;
    }
    list.end()?;
    for _ in 0..40 {
        ctx.execute(queue, &list, &[span(root, 0, 4)], &Around::NONE)?;
    }
    same(&ctx.read_all(queue, root)?, &[200, 0, 0, 0])
}

fn cycle(ctx: &Ctx) -> Outcome {
    let (bump, out, queue) = (bump(ctx)?, zeros(ctx, 80)?, ctx.in_order()?);
    let mut list = ctx.list(2)?;
    ctx.record(&mut list, &Command::Fill { to: Ref::slot(0), pattern: &[0] })?;
    bump.record(ctx, &mut list, slot(0, 0))?;
    bump.record(ctx, &mut list, slot(0, 0))?;
    ctx.record(&mut list, &Command::Copy { from: Ref::slot(0), to: Ref::slot(1) })?;
    list.end()?;
    for n in 0..20 {
        let root = ctx.memory(4)?;
        ctx.execute(queue, &list, &[span(root, 0, 4), span(out, n * 4, 4)], &Around::NONE)?;
        ctx.free(root)?;
    }
    same(&ctx.read_all(queue, out)?, &[2, 0, 0, 0].repeat(20))
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// `y += a * x` over 4 values, of slots or other memory.
fn saxpy(ctx: &Ctx, list: &mut List, kernel: Handle<KernelRecord>, a: f32, x: Ref, y: Ref) -> Outcome {
    let args = Args::default().u32(4).with(&a.to_ne_bytes()).u64(0).u64(0).end(8);
    let launch = LaunchArgs { groups: [1; 3], size: [4, 1, 1], shared: 0, args: &args };
    let refs = [
        ArgRef { at: 8, of: x, access: Access::READ },
        ArgRef { at: 16, of: y, access: Access::READ | Access::WRITE },
    ];
    Ok(ctx.record(list, &Command::Launch { kernel, launch, refs: &refs })?)
}

fn scale(ctx: &Ctx) -> Outcome {
    let (kernel, queue) = (ctx.sample_kernel("saxpy")?, ctx.in_order()?);
    let (x, y) = (ctx.memory(16)?, ctx.memory(16)?);
    ctx.write(queue, x, 0, &floats(&[1.0, 2.0, 3.0, 4.0]))?;
    ctx.write(queue, y, 0, &floats(&[10.0; 4]))?;
    let mut list = ctx.list(2)?;
    saxpy(ctx, &mut list, kernel, 2.0, Ref::slot(0), Ref::slot(1))?;
    list.end()?;
    let all = [ctx.whole(x)?, ctx.whole(y)?];
    ctx.execute(queue, &list, &all, &Around::NONE)?;
    same(&ctx.read_all(queue, y)?, &floats(&[12.0, 14.0, 16.0, 18.0]))?;
    ctx.execute(queue, &list, &[all[1], all[0]], &Around::NONE)?;
    same(&ctx.read_all(queue, x)?, &floats(&[25.0, 30.0, 35.0, 40.0]))
}

fn chain(ctx: &Ctx) -> Outcome {
    let (kernel, root, queue) = (ctx.sample_kernel("sequence")?, ctx.memory(160)?, ctx.in_order()?);
    let mut list = ctx.list(1)?;
    for n in 0..40 {
        let args = Args::default().u32(n).u64(0).end(8);
        let launch = LaunchArgs { groups: [1; 3], size: [1; 3], shared: 0, args: &args };
        let refs = [ArgRef { at: 8, of: Ref::slot(0), access: Access::READ | Access::WRITE }];
        ctx.record(&mut list, &Command::Launch { kernel, launch, refs: &refs })?;
    }
    list.end()?;
    ctx.execute(queue, &list, &[ctx.whole(root)?], &Around::NONE)?;
    let last = ctx.read_all(queue, root)?[156..].to_vec();
    same(&last, &63_245_986u32.to_ne_bytes()) // Fibonacci's number 39.
}

fn pipeline(ctx: &Ctx) -> Outcome {
    let (kernel, queue, between) = (ctx.sample_kernel("saxpy")?, ctx.in_order()?, ctx.memory(16)?);
    let (input, out) = (ctx.memory(16)?, ctx.memory(16)?);
    let middle = Ref::Direct(ctx.whole(between)?);
    let mut list = ctx.list(2)?;
    ctx.record(&mut list, &Command::Fill { to: middle, pattern: &0.5f32.to_ne_bytes() })?;
    ctx.record(&mut list, &Command::Update { to: Ref::slot(1), bytes: &floats(&[0.0; 4]) })?;
    saxpy(ctx, &mut list, kernel, 2.0, Ref::slot(0), middle)?;
    ctx.record(&mut list, &Command::Barrier)?;
    saxpy(ctx, &mut list, kernel, 10.0, middle, Ref::slot(1))?;
    ctx.record(&mut list, &Command::Copy { from: Ref::slot(1), to: middle })?;
    list.end()?;
    for values in [[1.0f32, 2.0, 3.0, 4.0], [0.0, -1.0, 0.25, 8.0]] {
        ctx.write(queue, input, 0, &floats(&values))?;
        ctx.execute(queue, &list, &[ctx.whole(input)?, ctx.whole(out)?], &Around::NONE)?;
        let expected = floats(&values.map(|value| 10.0 * (0.5 + 2.0 * value)));
        same(&ctx.read_all(queue, out)?, &expected)?;
        same(&ctx.read_all(queue, between)?, &expected)?;
    }
    Ok(())
}

fn large_grid(ctx: &Ctx) -> Outcome {
    let (kernel, queue, root) = (ctx.sample_kernel("foo")?, ctx.in_order()?, ctx.memory(256_000)?);
    let mut list = ctx.list(1)?;
    let args = Args::default().u64(0).end(8);
    let launch = LaunchArgs { groups: [1000, 1, 1], size: [64, 1, 1], shared: 0, args: &args };
    let refs = [ArgRef { at: 0, of: Ref::slot(0), access: Access::WRITE }];
    ctx.record(&mut list, &Command::Launch { kernel, launch, refs: &refs })?;
    list.end()?;
    ctx.execute(queue, &list, &[ctx.whole(root)?], &Around::NONE)?;
    let expected: Vec<u8> = (0..64_000u32).flat_map(u32::to_ne_bytes).collect();
    same(&ctx.read_all(queue, root)?, &expected)
}

fn checked(ctx: &Ctx) -> Outcome {
    let bump = bump(ctx)?;
    let (kernel, once) = (bump.kernel, bump.once());
    let mut list = ctx.list(1)?;
    let mut with = |launch: LaunchArgs<'_>, at: u32, of: Ref, kind| {
        let refs = [ArgRef { at, of, access: Access::READ }];
        refused(ctx.record(&mut list, &Command::Launch { kernel, launch, refs: &refs }), kind).map(drop)
    };
    let (wrong, out, of) = (Kind::InvalidArgument, Kind::OutOfRange, slot(0, 0));
    with(LaunchArgs { groups: [0, 1, 1], ..once }, 0, of, wrong)?;
    with(LaunchArgs { size: [1, 0, 1], ..once }, 0, of, wrong)?;
    with(LaunchArgs { args: &bump.args[1..], ..once }, 0, of, wrong)?;
    with(LaunchArgs { args: &[], ..once }, 0, of, wrong)?;
    with(once, 4, of, wrong)?;
    with(once, bump.args.len() as u32 / 8 * 8, of, out)?;
    with(once, u32::MAX - 7, of, out)?;
    with(once, 0, slot(1, 0), out)?;
    ensure_eq!((list.len(), list.bindings()), (0, 0));
    ensure_eq!(BOUND_ARGS_MAX, 4096);
    Ok(())
}

fn access(ctx: &Ctx) -> Outcome {
    let (bump, queue) = (bump(ctx)?, ctx.in_order()?);
    let read_only = ctx.memory_as(0, &Want { access: Access::READ.bits(), ..want(16) })?;
    let transfer = ctx.memory_as(0, &Want { usage: Usage::TRANSFER.bits(), ..want(16) })?;
    let mut list = ctx.list(1)?;
    bump.record(ctx, &mut list, slot(0, 0))?;
    for root in [read_only, transfer] {
        let refs = bump.refs(Ref::Direct(span(root, 0, 4)));
        let command = Command::Launch { kernel: bump.kernel, launch: bump.once(), refs: &refs };
        refused(ctx.record(&mut list, &command), Kind::PermissionDenied)?;
    }
    list.end()?;
    for root in [read_only, transfer] {
        let bindings = [span(root, 0, 16)];
        refused(ctx.execute(queue, &list, &bindings, &Around::NONE), Kind::PermissionDenied)?;
    }
    Ok(())
}

fn unloaded(ctx: &Ctx) -> Outcome {
    let (program, sample, queue) = (ctx.program()?, ctx.sample()?, ctx.in_order()?);
    let kernel = ctx.kernel(program, sample.idle, &[])?;
    let args = ctx.idle_args(program)?;
    let launch = LaunchArgs { groups: [1; 3], size: [1; 3], shared: 0, args: &args };
    let list = ctx.list_of(0, &[Command::Launch { kernel, launch, refs: &[] }])?;
    ctx.execute(queue, &list, &[], &Around::NONE)?;
    ctx.unload(program)?;
    refused(ctx.execute(queue, &list, &[], &Around::NONE), Kind::InvalidHandle)?;
    ctx.finish(queue)
}

fn other_device(ctx: &Ctx) -> Outcome {
    let bump = bump(ctx)?;
    let mut list =
        wharf_core::runtime::CommandList::new(ctx.home(), wharf_core::runtime::ListRoom::growing());
    list.begin(1, 1)?;
    let refs = bump.refs(slot(0, 0));
    let command = Command::Launch { kernel: bump.kernel, launch: bump.once(), refs: &refs };
    refused(ctx.record(&mut list, &command), Kind::InvalidDevice)?;
    Ok(())
}
