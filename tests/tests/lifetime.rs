//! The life of plugins in a process: opened once and never closed, ended by whoever drops last, and gone after a fork.
//!
//! # Safety
//! Forks: a child does what its test says and ends at once, without destructors.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    process::{self, Command},
    thread,
    time::Duration,
};
use wharf::{
    Buffer, Device, LoadOptions, Parameters, Queue, Runtime,
    plugin::{Candidate, Fate},
};
use wharf_tests::{fixture, host_plugin, kernels, test_plugin};

fn host() -> Runtime {
    Runtime::builder().only_named().plugin_file(host_plugin()).open()
}

/// A device with a queue that has work behind it, and a buffer.
fn used(runtime: &Runtime) -> (Device, Queue, Buffer) {
    let device = runtime.device("host:0").unwrap();
    let (queue, buffer) = (device.queue().unwrap(), device.allocate(4096).unwrap());
    queue.fill(&buffer, &[7]).unwrap().wait().unwrap();
    (device, queue, buffer)
}

/// Lines of this process' mappings that come from a file of this name.
fn mapped(name: &str) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains(name)).count()
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_plugin_stays_mapped_after_the_last_runtime_has_ended() {
    drop(used(&host()));
    assert!(mapped("wharf_host_plugin") > 0);
}

#[test]
fn a_plugin_without_devices_stays_mapped_too() {
    let runtime = Runtime::builder().only_named().plugin_file(test_plugin("wharf_panics_plugin")).open();
    assert!(runtime.devices().is_empty());
    drop(runtime);
    assert!(mapped("wharf_panics_plugin") > 0);
}

#[test]
fn two_runtimes_share_one_copy_of_a_plugin() {
    let first = host();
    let lines = mapped("wharf_host_plugin");
    let second = host();
    assert_eq!(mapped("wharf_host_plugin"), lines);
    assert_eq!((first.devices().len(), second.devices().len()), (1, 1));
}

#[test]
fn a_plugin_works_again_after_its_runtime_has_ended() {
    for _ in 0..3 {
        let runtime = host();
        let (_, queue, buffer) = used(&runtime);
        let mut bytes = vec![0; 4096];
        queue.read(&buffer, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
}

#[test]
fn opening_again_and_again_takes_no_more_files_and_mappings() {
    drop(used(&host()));
    let before = (open_files(), mapped("wharf_host_plugin"));
    for _ in 0..20 {
        drop(used(&host()));
    }
    assert_eq!((open_files(), mapped("wharf_host_plugin")), before);
}

#[test]
fn a_look_at_bad_plugins_leaves_no_file_open_and_nothing_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let host = fs::read(host_plugin()).unwrap();
    fs::write(folder.path().join("cut_here.so"), &host[..host.len() / 2]).unwrap();
    fs::write(folder.path().join("text_here.so"), b"text").unwrap();
    let open = || Runtime::builder().only_named().plugin_path(folder.path()).open();
    drop(open());
    let before = open_files();
    for _ in 0..10 {
        assert_eq!(open().report().candidates.len(), 2);
    }
    assert_eq!((open_files(), mapped("_here.so")), (before, 0));
}

#[test]
fn a_look_leaves_nothing_mapped_of_a_plugin_that_is_not_wanted() {
    let runtime = Runtime::builder().only_named().plugin_file(host_plugin()).disable(["host"]).open();
    assert!(matches!(runtime.report().candidates[0].fate, Fate::Rejected { class: "disabled", .. }));
    assert_eq!(mapped("wharf_host_plugin"), 0);
}

#[test]
fn a_failed_plugin_says_the_same_the_second_time() {
    let open = || Runtime::builder().only_named().plugin_file(test_plugin("wharf_panics_plugin")).open();
    let fate = |runtime: &Runtime| runtime.report().candidates[0].fate.clone();
    let (first, second) = (open(), open());
    assert!(matches!(fate(&first), Fate::Rejected { class: "panicked", .. }), "{}", fate(&first));
    assert_eq!(fate(&first), fate(&second));
}

#[test]
fn a_failed_plugin_leaves_nothing_registered() {
    let runtime = Runtime::builder()
        .only_named()
        .plugin_file(test_plugin("wharf_panics_plugin"))
        .plugin_file(host_plugin())
        .open();
    assert_eq!(runtime.devices().len(), 1);
    assert!(runtime.device("panics:0").is_err());
}

#[test]
fn the_builder_requires_and_the_runtime_tells() {
    let runtime = Runtime::builder().only_named().plugin_file(host_plugin()).require(["cuda"]).open();
    assert!(runtime.devices().is_empty(), "nothing runs elsewhere");
    let (usable, device) = (runtime.usable().unwrap_err(), runtime.device("host:0").unwrap_err());
    assert!(usable.to_string().contains("`cuda`"), "{usable}");
    assert_eq!(usable.to_string(), device.to_string());
}

/// What is dropped, in every order.
fn dropped_in_order(order: [usize; 4]) {
    let runtime = host();
    let (device, queue, buffer) = used(&runtime);
    let mut all: [Option<Box<dyn std::any::Any>>; 4] =
        [Some(Box::new(runtime)), Some(Box::new(device)), Some(Box::new(queue)), Some(Box::new(buffer))];
    order.iter().for_each(|index| drop(all[*index].take()));
}

#[test]
fn runtime_device_queue_and_buffer_may_be_dropped_in_any_order() {
    for a in 0..4 {
        for b in 0..4 {
            for c in 0..4 {
                let d = 6_usize.wrapping_sub(a + b + c);
                let order = [a, b, c, d];
                if d < 4 && (0..4).all(|n| order.contains(&n)) {
                    dropped_in_order(order);
                }
            }
        }
    }
}

#[test]
fn a_buffer_outlives_its_runtime_and_is_used() {
    let runtime = host();
    let (device, queue, buffer) = used(&runtime);
    drop((runtime, device));
    queue.fill(&buffer, &[9]).unwrap().wait().unwrap();
}

#[test]
fn an_event_outlives_its_queue_and_its_runtime() {
    let runtime = host();
    let (device, queue, _buffer) = used(&runtime);
    let event = queue.record().unwrap();
    drop((runtime, device, queue));
    event.wait().unwrap();
}

#[test]
fn a_kernel_outlives_its_program_and_its_runtime() {
    let runtime = host();
    let device = runtime.device("host:0").unwrap();
    let program = device.program(&fs::read(kernels()).unwrap()).unwrap();
    let kernel = program.kernel("dense_u8").unwrap();
    drop((runtime, device, program));
    assert_eq!(kernel.name(), "dense_u8");
}

#[test]
fn threads_open_and_end_runtimes_side_by_side() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5).for_each(|_| drop(used(&host()))));
        }
    });
    assert_eq!(host().devices().len(), 1);
}

/// This test program once more, in which only this test runs and knows its part.
fn again(test: &str, part: &str) -> process::ExitStatus {
    let program = env::current_exe().unwrap();
    Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env("WHARF_TEST_PART", part)
        .status()
        .unwrap()
}

fn part() -> Option<String> {
    env::var("WHARF_TEST_PART").ok()
}

#[test]
fn a_program_may_end_in_any_thread_while_plugins_work() {
    if part().is_none() {
        let status = again("a_program_may_end_in_any_thread_while_plugins_work", "exit");
        return assert_eq!(status.code(), Some(7), "{status}");
    }
    let runtime = host();
    let (_device, queue, buffer) = used(&runtime);
    thread::spawn(|| {
        thread::sleep(Duration::from_millis(20));
        process::exit(7);
    });
    loop {
        queue.fill(&buffer, &[1]).unwrap();
    }
}

#[test]
fn a_program_may_end_with_everything_still_open() {
    if part().is_none() {
        let status = again("a_program_may_end_with_everything_still_open", "exit");
        return assert_eq!(status.code(), Some(7), "{status}");
    }
    let runtime = Box::leak(Box::new(host()));
    std::mem::forget(used(runtime));
    process::exit(7);
}

/// Runs this in a child; false if anything in it failed or it did not end in ten seconds.
fn in_child(what: impl FnOnce()) -> bool {
    // SAFETY: the child uses no lock that another thread may hold but those that the tests are about.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let ended = catch_unwind(AssertUnwindSafe(what));
        // SAFETY: ends the child without destructors.
        unsafe { libc::_exit(i32::from(ended.is_err())) };
    }
    for _ in 0..1000 {
        let mut status = 0;
        // SAFETY: the child is this test's.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        thread::sleep(Duration::from_millis(10));
    }
    // SAFETY: as above; it hangs.
    unsafe { libc::kill(child, libc::SIGKILL) };
    false
}

fn is_forked<T>(result: wharf::Result<T>) {
    let error = result.err().expect("an error in the child");
    assert!(error.to_string().contains("forked"), "{error}");
}

#[test]
fn after_a_fork_every_call_on_a_queue_is_an_error() {
    let runtime = host();
    let (_device, queue, buffer) = used(&runtime);
    assert!(in_child(|| {
        is_forked(queue.fill(&buffer, &[1]));
        is_forked(queue.update(&buffer, &[1]));
        is_forked(queue.copy(&buffer, &buffer));
        is_forked(queue.write(&buffer, &[0; 4096]));
        is_forked(queue.read(&buffer, &mut [0; 4096]));
        is_forked(queue.record());
        is_forked(queue.sync());
        is_forked(queue.is_idle());
        is_forked(queue.host_call(|| {}));
    }));
    queue.fill(&buffer, &[2]).unwrap().wait().unwrap();
}

#[test]
fn after_a_fork_every_call_on_a_device_is_an_error() {
    let runtime = host();
    let (device, ..) = used(&runtime);
    let image = fs::read(kernels()).unwrap();
    let parameters = Parameters::open(fixture("digits/digits.gguf")).unwrap();
    assert!(in_child(|| {
        is_forked(device.queue());
        is_forked(device.allocate(64));
        is_forked(device.program(&image));
        is_forked(device.statistics());
        is_forked(device.trim());
        is_forked(device.load(&parameters, &[], LoadOptions::default()));
    }));
    assert!(device.allocate(64).is_ok());
}

#[test]
fn after_a_fork_a_runtime_has_no_devices_and_says_why() {
    let runtime = host();
    assert!(in_child(|| {
        assert!(runtime.devices().is_empty());
        is_forked(runtime.device("host:0"));
        is_forked(runtime.usable());
        is_forked(runtime.trim());
        assert!(runtime.live_memory().is_empty());
        runtime.poll();
    }));
    assert_eq!(runtime.devices().len(), 1);
}

#[test]
fn after_a_fork_waiting_for_an_event_of_before_is_an_error_and_no_hang() {
    let runtime = host();
    let (_device, queue, _buffer) = used(&runtime);
    let event = queue.record().unwrap();
    assert!(in_child(|| {
        is_forked(event.wait());
        is_forked(event.wait_timeout(Duration::from_secs(1)));
        is_forked(event.is_complete());
        is_forked(event.times());
    }));
    event.wait().unwrap();
}

#[test]
fn after_a_fork_programs_and_kernels_are_errors() {
    let runtime = host();
    let (device, ..) = used(&runtime);
    let program = device.program(&fs::read(kernels()).unwrap()).unwrap();
    let kernel = program.kernel("dense_u8").unwrap();
    assert!(in_child(|| {
        is_forked(program.kernel("dense_u8"));
        is_forked(program.global("x"));
        is_forked(kernel.params());
        is_forked(kernel.best_group(0));
    }));
}

#[test]
fn after_a_fork_everything_can_be_dropped() {
    let runtime = host();
    let (device, queue, buffer) = used(&runtime);
    let event = queue.record().unwrap();
    let mut all = Some((event, buffer, queue, device, runtime));
    assert!(in_child(|| drop(all.take())));
    let (event, buffer, queue, ..) = all.unwrap();
    event.wait().unwrap();
    queue.fill(&buffer, &[2]).unwrap().wait().unwrap();
}

#[test]
fn after_a_fork_a_plugin_that_the_parent_uses_cannot_be_opened_and_says_so() {
    let runtime = host();
    used(&runtime);
    assert!(in_child(|| {
        let own = host();
        let forked = |c: &Candidate| matches!(c.fate, Fate::Rejected { class: "forked", .. });
        assert!(own.report().candidates.iter().all(forked));
        assert!(own.devices().is_empty());
    }));
}

#[test]
fn after_a_fork_a_plugin_that_nobody_used_just_then_works_in_the_child() {
    drop(used(&host()));
    assert!(in_child(|| drop(used(&host()))));
    drop(used(&host()));
}

#[test]
fn a_fork_before_the_first_runtime_changes_nothing() {
    assert!(in_child(|| drop(used(&host()))));
    drop(used(&host()));
}
