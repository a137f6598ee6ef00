//! Failures that are known, by backend and case. One that passes fails the run, so that the table stays true.

use crate::{
    mode::Mode,
    need::{Facts, Form},
};

/// A failure that is known.
pub struct Known {
    /// Name of the case.
    pub case: &'static str,
    /// Backends that it fails on; empty: all.
    pub backends: &'static [&'static str],
    /// Modes that it fails in; empty: all.
    pub modes: &'static [&'static str],
    /// Forms that it fails in; empty: all.
    pub forms: &'static [Form],
    /// It depends on timing: a pass is not held against it.
    pub sometimes: bool,
    /// Why, and whose it is.
    pub reason: &'static str,
}

/// A pump thread of core sleeps although there is work: work given to a device that only moves when polled, and what it
/// found locked by another pump. Every case may hang beside one, so until that is mended the runner rings it now and
/// then, except in the cases of this table.
pub const PUMP_NEEDS_NUDGES: bool = true;

const MEET: &str = "who finds the pump locked sleeps, and who holds it (a poll, a close, a wait that is over) leaves without another look";

const MORE: &str =
    "the pump hands an operation over as if more followed, although what follows is held: nobody starts it";

/// All of them.
pub const KNOWN: &[Known] = &[
    Known {
        case: "wait.pump_thread_polls_a_polled_device",
        backends: &["null"],
        modes: &["pump", "no-native-wait"],
        forms: &[],
        sometimes: false,
        reason: "a submit to a device that must be polled does not ring the pump thread, and its waiter sleeps elsewhere",
    },
    Known {
        case: "wait.before_signal",
        backends: &["host"],
        modes: &["pump", "no-pump", "no-native-wait"],
        forms: &[],
        sometimes: false,
        reason: MORE,
    },
    Known {
        case: "wait.pumps_that_meet_forget_nothing",
        backends: &[],
        modes: &["pump", "no-native-wait"],
        forms: &[],
        sometimes: true,
        reason: MEET,
    },
    Known {
        case: "order.across_devices",
        backends: &["host"],
        modes: &["pump", "no-pump", "no-native-wait"],
        forms: &[],
        sometimes: false,
        reason: MORE,
    },
    Known {
        case: "order.cross_waits",
        backends: &["host"],
        modes: &["no-native-wait"],
        forms: &[],
        sometimes: false,
        reason: MORE,
    },
    Known {
        case: "order.more_hints_are_not_forgotten",
        backends: &["dma", "null"],
        modes: &[],
        forms: &[],
        sometimes: true,
        reason: "work handed over with `More` ends untold; who waits for it, or for room behind it, sleeps on",
    },
    Known {
        case: "queue.threads_open_and_close",
        backends: &[],
        modes: &[],
        forms: &[],
        sometimes: true,
        reason: MEET,
    },
    Known {
        case: "memory.threads_allocate_and_free",
        backends: &[],
        modes: &[],
        forms: &[],
        sometimes: true,
        reason: "a range met while it leaves is judged by the record that has its slot by now: taken for an overlap",
    },
    Known {
        case: "batch.waits_first",
        backends: &["null"],
        modes: &["no-pump", "depth-1"],
        forms: &[],
        sometimes: true,
        reason: "what a batch submits in a pass of the pump comes after the look at the lanes: the device is not polled",
    },
    Known {
        case: "order.abandoned_wait_is_cancelled",
        backends: &[],
        modes: &[],
        forms: &[],
        sometimes: false,
        reason: "a held operation is an owner of what it waits for, so the timeline never ends and it is held for ever",
    },
    Known {
        case: "lifetime.later_work_does_not_hold_a_free",
        backends: &[],
        modes: &[],
        forms: &[],
        sometimes: false,
        reason: "a late free waits for the queue's tail, which counts held operations, not for what was handed over",
    },
    Known {
        case: "transfer.second_device",
        backends: &["host", "null", "dma"],
        modes: &[],
        forms: &[Form::Dynamic],
        sometimes: false,
        reason: "core numbers the devices of a copy over all plugins, the tables' import over its own",
    },
    Known {
        case: "fill.pattern_17",
        backends: &["dma"],
        modes: &[],
        forms: &[],
        sometimes: false,
        reason: "the engine refuses patterns above 16 bytes, caps do not say so and core does not do it otherwise",
    },
    Known {
        case: "fill.pattern_1000",
        backends: &["dma"],
        modes: &[],
        forms: &[],
        sometimes: false,
        reason: "the engine refuses patterns above 16 bytes, caps do not say so and core does not do it otherwise",
    },
    Known {
        case: "transfer.update_64k",
        backends: &["dma"],
        modes: &[],
        forms: &[],
        sometimes: false,
        reason: "the engine refuses updates above 64 bytes, caps do not say so and core does not split them",
    },
];

/// The entry for a case, if it is to fail.
pub fn known(case: &str, facts: &Facts, mode: Mode) -> Option<&'static Known> {
    let of = |names: &[&str], name: &str| names.is_empty() || names.contains(&name);
    KNOWN.iter().find(|known| {
        known.case == case
            && of(known.backends, facts.backend)
            && of(known.modes, mode.name())
            && (known.forms.is_empty() || known.forms.contains(&facts.form))
    })
}
