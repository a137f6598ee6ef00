//! What a call costs through the tables of the plugin: the cheapest call that a device has (does it take an image of no
//! bytes?), against the same on the backend itself.

use std::{hint::black_box, process::ExitCode, time::Duration};
use wharf_bench::{
    args, devices,
    row::{Goal, Row},
    time::{Effort, Times, clocked, in_turn},
};
use wharf_core::device::Programs;
use wharf_host::HostDevice;

fn main() -> ExitCode {
    args::main(|args, give| {
        let effort = Effort { rounds: args.pick(41, 3), round: Duration::from_millis(args.pick(4, 1)) };
        let (far, near) = (devices::tables()?, HostDevice::new());
        let (value, baseline_value): (Times, Times) = in_turn(effort, asked(&far), asked(&near));
        let added = value.quartile() - baseline_value.quartile();
        give(Row {
            name: "call through the tables, in all".into(),
            value: value.into(),
            unit: "ns",
            baseline: "the same call on the backend",
            baseline_value: baseline_value.clone().into(),
            goal: Goal::None,
        });
        give(Row {
            name: "call through the tables, what they add".into(),
            value: added.into(),
            unit: "ns",
            baseline: "the same call on the backend",
            baseline_value: baseline_value.into(),
            goal: Goal::Most(2.5),
        });
        Ok(())
    })
}

fn asked<D: Programs>(device: &D) -> impl FnMut(u64) -> Duration {
    move |count| clocked(|| (0..count).for_each(|_| _ = black_box(device.accepts(black_box(&[])))))
}
