//! What a call costs through the tables of the plugin against the same on the backend itself: a call of the hot path (the
//! times of a step that keeps none), and one that answers by a status (does it take an image of no bytes?). And what a
//! submit of no steps pays for the place where layers go, when there are none.
//!
//! # Safety
//! The lane's far end is leaked, so its tick can be used for ever.
#![allow(unsafe_code)]

use std::{hint::black_box, process::ExitCode, ptr, time::Duration};
use wharf::os::OsLock;
use wharf_abi::DynDevice;
use wharf_bench::{
    args::{self, Fail},
    devices,
    row::{Goal, Row},
    time::{Effort, Times, clocked, in_turn},
};
use wharf_core::{
    device::{Device, Gauge, Hint, Lane, Programs},
    fault::Fault,
    tick::Tick,
    word::Word64,
};
use wharf_host::HostDevice;
use wharf_layers::Layered;

fn main() -> ExitCode {
    args::main(|args, give| {
        let effort = Effort { rounds: args.pick(41, 3), round: Duration::from_millis(args.pick(4, 1)) };
        let (far, near) = (devices::plugin_tables()?, HostDevice::new());
        let mut both = |what: &str, times: (Times, Times), goal| {
            let added = times.0.quartile() - times.1.quartile();
            let mut row = |name: String, value, goal| {
                let (baseline, baseline_value) = ("the same on the backend", times.1.clone().into());
                give(Row { name, value, unit: "ns", baseline, baseline_value, goal });
            };
            row(format!("{what}, through the tables"), times.0.into(), Goal::None);
            row(format!("{what}, what the tables add"), added.into(), goal);
        };
        let (far_lane, near_lane) = (Line::new(&far)?, Line::new(&near)?);
        let times = in_turn(effort, far_lane.asked(), near_lane.asked());
        both("call of a lane", times, Goal::Most(2.5));
        both("call of a device", in_turn(effort, accepts(&far), accepts(&near)), Goal::None);
        let far: &'static DynDevice = Box::leak(Box::new(far));
        let bare: Layered<DynDevice, OsLock> = Layered::bare(far);
        let (mut under, mut straight) = (Line::new(&bare)?, Line::new(far)?);
        let (under, straight) = in_turn(effort, under.submitted(), straight.submitted());
        let value = (under.quartile() - straight.quartile()).into();
        let name = "submit through the tables, what layers add when there are none".to_owned();
        let (baseline, goal) = ("the same without their place", Goal::Most(1.0));
        give(Row { name, value, unit: "ns", baseline, baseline_value: straight.into(), goal });
        Ok(())
    })
}

fn accepts<D: Programs>(device: &D) -> impl FnMut(u64) -> Duration {
    move |count| clocked(|| (0..count).for_each(|_| _ = black_box(device.accepts(black_box(&[])))))
}

/// A lane that nothing is submitted to.
struct Line<D: Device> {
    gauge: D::Gauge,
    lane: D::Lane,
}

unsafe extern "C" fn tell(_: *const ()) {}
unsafe extern "C" fn fail(_: *const (), _: *const Fault) {}

impl<D: Device> Line<D> {
    fn new(device: &D) -> Result<Self, Fail> {
        let word: &'static Word64 = Box::leak(Box::new(Word64::new(0)));
        // SAFETY: the word is never freed, and neither function looks at the cookie.
        let tick = unsafe { Tick::from_parts(word, ptr::null(), tell, fail) };
        let (lane, gauge, _) = device.lane(tick).map_err(|fault| format!("{fault:?}"))?;
        Ok(Line { gauge, lane })
    }
    fn submitted(&mut self) -> impl FnMut(u64) -> Duration {
        |count| {
            clocked(|| {
                (0..count).for_each(|_| _ = black_box(self.lane.submit(black_box(&[]), Hint::More).is_ok()))
            })
        }
    }
    fn asked(&self) -> impl FnMut(u64) -> Duration {
        |count| clocked(|| (0..count).for_each(|_| _ = black_box(self.gauge.times(black_box(1)))))
    }
}
