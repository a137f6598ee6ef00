//! Layers through the loader and the command: chosen, named, switched off; quiet where nothing is wrong; faults that arrive
//! as failures of a device do.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path, process::Command};
use wharf::{ErrorKind, LoadOptions, Parameters, Runtime};
use wharf_tests::{Ran, fixture, host_plugin, kernels, plugins, test_plugin, wharf_with_plugins};

/// The main job, under layers.
fn demo(layers: &[&str]) -> Command {
    let mut command = wharf_with_plugins();
    command.arg("demo").arg("--archive").arg(fixture("digits/digits.safetensors"));
    command.arg("--kernels").arg(kernels()).arg("--expect").arg(fixture("digits/expected.json"));
    for layer in layers {
        command.arg("--layer").arg(layer);
    }
    command
}

fn runtime(layers: &[&str]) -> Runtime {
    let builder = Runtime::builder().only_named().plugin_file(host_plugin());
    layers.iter().fold(builder, |builder, layer| builder.layer(*layer)).open()
}

#[test]
fn the_main_job_is_silent_under_validation() {
    let ran = Ran::of(&mut demo(&["validation:abort"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.contains("1797 of 1797 predictions match"), "{}", ran.stdout);
}

#[test]
fn a_trace_of_the_main_job_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    let ran = Ran::of(&mut demo(&[&format!("trace:{}", file.display())]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    whole(
        &file,
        &["allocate", "open queue", "submit", "launch", "load program", "kernel", "free", "close queue"],
    );
}

/// The trace is JSON, its arrows all arrive, and it has slices of these names.
fn whole(file: &Path, names: &[&str]) {
    let events: Vec<Value> = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let ids = |phase: &str| {
        let of = events.iter().filter(|event| event["ph"] == phase);
        of.map(|event| event["id"].as_u64().unwrap()).collect::<BTreeSet<_>>()
    };
    assert!(!ids("s").is_empty());
    assert_eq!(ids("s"), ids("f"));
    for name in names {
        assert!(events.iter().any(|event| event["ph"] == "X" && event["name"] == *name), "{name}");
    }
    let processes = events.iter().filter(|event| event["name"] == "process_name");
    assert!(processes.into_iter().any(|event| event["args"]["name"] == "host:0"));
}

#[test]
fn the_chain_is_shown_and_can_be_switched_off() {
    let shown = |command: &mut Command| Ran::of(command.arg("plugins")).stdout;
    let mut chosen = wharf_with_plugins();
    chosen.args(["--layer", "faults:reorder"]).env("WHARF_LAYERS", "validation,faults");
    let line = "layers, the outermost first: faults:reorder (the program) -> validation (WHARF_LAYERS)\n";
    assert!(shown(&mut chosen).ends_with(line));
    let mut off = wharf_with_plugins();
    off.env("WHARF_LAYERS", "validation,faults:lose=after:0").env("WHARF_LAYERS_DISABLE", "f*");
    assert!(shown(&mut off).contains("faults:lose=after:0 (WHARF_LAYERS, switched off)"));
    assert!(!shown(&mut wharf_with_plugins()).contains("layers"));
    let json = Ran::of(off.arg("--json")).json();
    assert_eq!(
        (&json["layers"][0]["off"], &json["layers"][1]["off"]),
        (&Value::Bool(false), &Value::Bool(true))
    );
    // Switched off, it loses nothing.
    let mut lost = demo(&["faults:lose=after:0"]);
    assert_eq!(Ran::of(&mut lost).code, Some(6));
    assert_eq!(Ran::of(lost.env("WHARF_LAYERS_DISABLE", "faults")).code, Some(0));
}

#[test]
fn a_layer_that_is_not_there_is_an_error_with_near_names() {
    let mut option = wharf_with_plugins();
    option.args(["devices", "--layer", "valdation"]);
    let mut variable = wharf_with_plugins();
    variable.arg("devices").env("WHARF_LAYERS", "trce");
    let mut plan = wharf_with_plugins();
    plan.args(["devices", "--layer", "faults:fail=cpy:1"]);
    let mut word = wharf_with_plugins();
    word.args(["devices", "--layer", "validation:abrt"]);
    let mut file = wharf_with_plugins();
    file.args(["devices", "--layer", "trace:/proc/none/t.json"]);
    for (mut command, code, says) in [
        (option, 2, "no layer `valdation`; known layers: `validation`"),
        (variable, 2, "no layer `trce`; known layers: `trace`"),
        (plan, 2, "no kind `cpy`"),
        (word, 2, "known options: `abort`"),
        (file, 4, "/proc/none/t.json: cannot be written"),
    ] {
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
}

#[test]
fn a_load_whose_allocation_fails_gives_all_back() {
    let device = runtime(&["validation", "faults:fail=allocate:2+fail=allocate:3+fail=allocate:4"]);
    let error = load(&device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    clean(&device);
}

#[test]
fn a_load_whose_copy_fails_fails_whole_and_gives_all_back() {
    let mut failed = 0;
    let plans =
        ["fail=copy:1", "fail=update:1", "fail=read:1", "break=copy:2", "break=update:2", "break=read:1"];
    for plan in plans {
        let device = runtime(&["validation", &format!("faults:{plan}")]);
        if let Err(error) = load(&device) {
            failed += 1;
            assert!(error.to_string().contains("backend failure"), "{error}");
        }
        clean(&device);
    }
    assert!(failed > 0);
}

fn load(runtime: &Runtime) -> wharf::Result<Vec<wharf::Buffer>> {
    let names = ["layer1.weight", "layer1.bias", "layer2.weight", "images"];
    let parameters = Parameters::open(fixture("digits/digits.safetensors"))?;
    runtime.device("host:0")?.load(&parameters, &names, LoadOptions::default())?.wait()
}

/// Nothing is live and nothing was found.
fn clean(runtime: &Runtime) {
    runtime.trim().unwrap();
    let mut tries = 0;
    while !runtime.live_memory().is_empty() && tries < 1000 {
        runtime.poll();
        std::thread::yield_now();
        tries += 1;
    }
    assert!(runtime.live_memory().is_empty(), "{:?}", runtime.live_memory());
    assert_eq!(runtime.findings(), []);
}

#[test]
fn a_queue_whose_operation_failed_stays_failed_and_others_go_on() {
    let runtime = runtime(&["validation", "faults:break=fill:2"]);
    let device = runtime.device("host:0").unwrap();
    let (one, two) = (device.queue().unwrap(), device.queue().unwrap());
    let buffer = device.allocate(64).unwrap();
    one.fill(&buffer, &[1]).unwrap();
    one.sync().unwrap();
    let failed = one.fill(&buffer, &[2]).and_then(|_| one.sync()).unwrap_err();
    assert!(failed.to_string().contains("backend failure"), "{failed}");
    assert!(one.fill(&buffer, &[3]).and_then(|_| one.sync()).is_err());
    two.fill(&buffer, &[4]).unwrap();
    let mut bytes = [0u8; 64];
    two.read(&buffer, &mut bytes).unwrap();
    assert_eq!(bytes, [4; 64]);
    assert_eq!(runtime.findings(), []);
}

#[test]
fn a_lost_device_says_so_for_ever() {
    let runtime = runtime(&["validation", "faults:lose=after:1"]);
    let device = runtime.device("host:0").unwrap();
    let queue = device.queue().unwrap();
    let buffer = device.allocate(64).unwrap();
    queue.fill(&buffer, &[1]).unwrap();
    let lost = queue.fill(&buffer, &[2]).and_then(|_| queue.sync()).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::DeviceLost, "{lost}");
    assert_eq!(device.allocate(64).unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(device.queue().unwrap_err().kind(), ErrorKind::DeviceLost);
    drop((buffer, queue));
    assert_eq!(runtime.findings(), []);
}

#[test]
fn the_main_job_computes_the_same_with_late_ends_in_another_order() {
    for plan in ["faults:reorder=300us+seed=3", "faults:delay=copy:1ms+delay=launch:1ms"] {
        let ran = Ran::of(&mut demo(&[plan, "validation:abort"]));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains("1797 of 1797 predictions match"), "{}", ran.stdout);
    }
}

/// A capture of the main job in a file.
fn captured(folder: &Path) -> std::path::PathBuf {
    let file = folder.join("run.bin");
    let ran = Ran::of(&mut demo(&[&format!("capture:{}", file.display()), "validation:abort"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    file
}

#[test]
fn a_captured_run_reads_the_same_when_it_is_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = captured(folder.path());
    let mut replay = wharf_with_plugins();
    replay.arg("replay").arg(&file).args(["--device", "host:0", "--layer", "validation:abort"]);
    let ran = Ran::of(&mut replay);
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("2 of 2 reads are those of the captured run"), "{}", ran.stdout);
    let json = Ran::of(replay.arg("--json")).json();
    assert_eq!((&json["reads"], &json["different"]), (&Value::from(2), &Value::Array(vec![])));
}

#[test]
fn a_capture_whose_bytes_were_changed_reads_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let file = captured(folder.path());
    let mut bytes = fs::read(&file).unwrap();
    // The pictures: 64 pixels each, from 0 to 16, the greatest tensor of the archive.
    let pictures = fs::read(fixture("digits/digits.safetensors")).unwrap();
    let part = pictures
        .windows(64)
        .rev()
        .find(|part| part.iter().filter(|pixel| **pixel == 16).count() > 8)
        .unwrap();
    let at = bytes.windows(64).position(|some| some == part).unwrap();
    bytes[at..at + 64].fill(3);
    fs::write(&file, &bytes).unwrap();
    let ran = Ran::of(wharf_with_plugins().arg("replay").arg(&file));
    assert_eq!(ran.code, Some(1), "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("read other bytes"), "{}", ran.stdout);
}

#[test]
fn what_is_no_capture_is_refused() {
    let ran = Ran::of(wharf_with_plugins().arg("replay").arg(fixture("digits/digits.gguf")));
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("not a capture"), "{}", ran.stderr);
}

#[test]
fn transfers_captured_on_one_device_read_the_same_on_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.bin");
    {
        let runtime = runtime(&[&format!("capture:{}", file.display())]);
        let device = runtime.device("host:0").unwrap();
        let queue = device.queue().unwrap();
        let (one, two) = (device.allocate(1000).unwrap(), device.allocate(1000).unwrap());
        let bytes: Vec<u8> = (0..1000u32).map(|n| (n * 7) as u8).collect();
        queue.write(&one, &bytes).unwrap();
        queue.fill(&one.slice(10, 30).unwrap(), &[1, 2, 3]).unwrap();
        queue.update(&one.slice(900, 50).unwrap(), &bytes[..50]).unwrap();
        queue.copy(&one, &two).unwrap();
        let mut back = vec![0; 1000];
        queue.read(&two, &mut back).unwrap();
    }
    for name in ["wharf_null_plugin", "wharf_dma_plugin"] {
        let plugin = test_plugin(name);
        let runtime = Runtime::builder().only_named().plugin_file(&plugin).open();
        let device = &runtime.devices()[0];
        let done = device.replay(&fs::read(&file).unwrap()).unwrap();
        assert_eq!((done.operations, done.reads, done.different), (5, 1, vec![]), "{name}");
    }
}

#[test]
fn a_plugin_without_a_role_has_none_under_layers() {
    let mut command = wharf_with_plugins();
    command
        .args(["devices", "--json", "--layer", "validation", "--plugin"])
        .arg(test_plugin("wharf_dma_plugin"));
    command.arg("--plugin").arg(host_plugin());
    let json = Ran::of(&mut command).json();
    assert!(json["devices"].as_array().unwrap().len() >= 2, "{json}");
    assert!(plugins().exists());
}
