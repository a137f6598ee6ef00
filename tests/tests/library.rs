//! The library over the plugins that are built: queues, events, buffers, programs, batches, with and without a pump
//! thread.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use wharf::{
    Args, Device, ErrorKind, Io, ListArgs, LoadOptions, Memory, MemoryType, Mode, Order, Parameters,
    PoolLimits, QueueOptions, Runtime, Slot, Span, SymbolKind,
};
use wharf_tests::{fixture, host_plugin, kernels, test_plugin};

fn host(pump: bool) -> (Runtime, Device) {
    let builder = Runtime::builder().only_named().plugin_file(host_plugin());
    let runtime = if pump { builder.open() } else { builder.without_pump().open() };
    let device = runtime.device("host:0").unwrap();
    (runtime, device)
}

#[test]
fn bytes_go_there_and_back_between_every_kind_of_memory() {
    for pump in [true, false] {
        let (_runtime, device) = host(pump);
        let queue = device.queue().unwrap();
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i * 31) as u8).collect();
        for memory in [Memory::Device, Memory::Host, Memory::Managed] {
            let a = device.allocate_in(memory, bytes.len() as u64, 256).unwrap();
            assert!(a.address().unwrap().is_multiple_of(256));
            let b = device.allocate(bytes.len() as u64).unwrap();
            queue.write(&a, &bytes).unwrap();
            queue.prefetch(&a, false).unwrap();
            queue.copy(&a, &b).unwrap();
            queue.fill(&b.slice(10, 30).unwrap(), &[1, 2, 3]).unwrap();
            let mut back = vec![0; bytes.len()];
            queue.read(&b, &mut back).unwrap();
            let mut right = bytes.clone();
            (0..30).for_each(|i| right[10 + i] = [1, 2, 3][i % 3]);
            assert!(back == right, "{memory:?}");
        }
        assert!(queue.is_idle().unwrap());
    }
}

#[test]
fn a_queue_held_shut_by_a_host_call_runs_nothing_after_it_and_others_go_on() {
    for pump in [true, false] {
        let (_runtime, device) = host(pump);
        let (queue, other) = (device.queue().unwrap(), device.queue().unwrap());
        let (open, order) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(vec![])));
        let (gate, first, second) = (open.clone(), order.clone(), order.clone());
        queue
            .host_call(move || {
                while !gate.load(SeqCst) {
                    std::thread::yield_now();
                }
                first.lock().unwrap().push(1);
            })
            .unwrap();
        let buffer = device.allocate(16).unwrap();
        let filled = queue.fill(&buffer, &[7]).unwrap();
        let last = queue.host_call(move || second.lock().unwrap().push(2)).unwrap().event().unwrap();
        let waits = device.queue().unwrap();
        let after = waits.wait_for(&[&last]).unwrap();
        let mut bytes = [0; 16];
        let free = device.allocate(16).unwrap();
        other.write(&free, &[3; 16]).unwrap();
        other.read(&free, &mut bytes).unwrap();
        assert_eq!(bytes, [3; 16], "another queue works");
        assert!(!filled.is_complete().unwrap() && !after.is_complete().unwrap() && !queue.is_idle().unwrap());
        assert_eq!(
            filled.wait_timeout(Duration::from_millis(5)).unwrap_err().fault().unwrap().kind.status(),
            4
        );
        assert!(order.lock().unwrap().is_empty());
        open.store(true, SeqCst);
        after.wait().unwrap();
        assert_eq!(*order.lock().unwrap(), [1, 2]);
        queue.read(&buffer, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 16]);
    }
}

#[test]
fn sixteen_queues_chained_by_events_run_in_order() {
    for pump in [true, false] {
        let (_runtime, device) = host(pump);
        let order = Arc::new(Mutex::new(vec![]));
        let queues: Vec<_> = (0..16).map(|_| device.queue().unwrap()).collect();
        let gate = Arc::new(AtomicBool::new(false));
        let opened = gate.clone();
        let wait = move || {
            while !opened.load(SeqCst) {
                std::thread::yield_now();
            }
        };
        let mut last = device.queue().unwrap().host_call(wait).unwrap().event().unwrap();
        for (i, queue) in queues.iter().enumerate() {
            queue.wait_for(&[&last]).unwrap();
            let order = order.clone();
            last = queue.host_call(move || order.lock().unwrap().push(i)).unwrap().event().unwrap();
        }
        gate.store(true, SeqCst);
        last.wait().unwrap();
        assert_eq!(*order.lock().unwrap(), (0..16).collect::<Vec<_>>());
    }
}

#[test]
fn twenty_threads_submit_to_one_queue() {
    let (_runtime, device) = host(true);
    let program = device.program(&fs::read(kernels()).unwrap()).unwrap();
    let (queue, kernel) = (device.queue().unwrap(), program.kernel("foo").unwrap());
    let buffers: Vec<_> = (0..20).map(|_| device.allocate(64 * 4).unwrap()).collect();
    std::thread::scope(|scope| {
        for buffer in &buffers {
            let (queue, kernel) = (&queue, &kernel);
            scope.spawn(move || {
                for _ in 0..100 {
                    queue.fill(buffer, &[0xFF]).unwrap();
                    let args = Args::new().buffer(buffer).unwrap();
                    queue.launch(kernel, [4, 1, 1], [16, 1, 1], &args).unwrap().wait().unwrap();
                    let mut bytes = vec![0; 256];
                    queue.read(buffer, &mut bytes).unwrap();
                    let numbers: Vec<u32> =
                        bytes.as_chunks().0.iter().map(|b| u32::from_ne_bytes(*b)).collect();
                    assert_eq!(
                        numbers,
                        (0..64).collect::<Vec<_>>(),
                        "kernel `foo` writes each item's number"
                    );
                }
            });
        }
    });
}

#[test]
fn a_launch_is_checked_at_the_call_and_the_queue_stays_usable() {
    let (_runtime, device) = host(true);
    let program = device.program(&fs::read(kernels()).unwrap()).unwrap();
    let (queue, kernel) = (device.queue().unwrap(), program.kernel("foo").unwrap());
    let buffer = device.allocate(256).unwrap();
    let args = Args::new().buffer(&buffer).unwrap();
    let one = [1, 1, 1];
    for axis in 0..3 {
        let mut zero = one;
        zero[axis] = 0;
        assert!(queue.launch(&kernel, zero, one, &args).is_err(), "no groups");
        assert!(queue.launch(&kernel, one, zero, &args).is_err(), "no items");
    }
    assert!(queue.launch(&kernel, [65536; 3], one, &args).is_err(), "2^48 groups");
    assert!(queue.launch(&kernel, one, [u32::MAX, 1, 1], &args).is_err(), "group above the limit");
    let short = Args::new().bytes(&args.as_bytes()[..7], 1);
    let error = queue.launch(&kernel, one, one, &short).unwrap_err();
    assert!(error.to_string().contains("7 given, 8 needed") && error.to_string().contains("foo"), "{error}");
    assert!(queue.launch(&kernel, one, one, &Args::new()).is_err(), "no arguments");
    queue.launch(&kernel, one, one, &args).unwrap().wait().unwrap();
    assert_eq!(program.kernel("fooo").unwrap_err().kind(), ErrorKind::NoSuchKernel);
    assert!(program.kernel("fooo").unwrap_err().to_string().contains("`foo`"), "the nearest name");
    assert!(program.kernel("global").unwrap_err().to_string().contains("not a kernel"));
    assert!(program.symbols(SymbolKind::Global).unwrap().contains(&"global".into()));
    assert_eq!(program.global("global").unwrap().len, 256);
}

#[test]
fn events_tell_times_only_when_they_were_asked_for() {
    let (_runtime, device) = host(true);
    let plain = device.queue().unwrap();
    let event = plain.record().unwrap();
    event.wait().unwrap();
    assert!(event.times().is_err());
    let queue = device.queue_with(QueueOptions { order: Order::InOrder, profile: true }).unwrap();
    let buffer = device.allocate(8 << 20).unwrap();
    let begin = queue.record().unwrap();
    let end = queue.fill(&buffer, &[1]).unwrap().event().unwrap();
    assert!(end.wait().is_ok());
    let times = end.times().unwrap();
    assert!(times.end_ns > times.begin_ns, "8 MiB are not filled in no time");
    assert!(begin.elapsed_ns(&end).unwrap() >= times.end_ns - times.begin_ns);
    for _ in 0..10 {
        end.wait().unwrap();
    }
    drop(queue);
    assert!(end.is_complete().unwrap(), "an event outlives its queue");
}

#[test]
fn gather_and_scatter_move_exactly_the_spans() {
    for plugin in [host_plugin(), test_plugin("wharf_null_plugin")] {
        let runtime = Runtime::builder().only_named().plugin_file(&plugin).open();
        let device = runtime.devices().remove(0);
        let queue = device.queue().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("digits.safetensors");
        fs::copy(fixture("digits/digits.safetensors"), &path).unwrap();
        let before = fs::read(&path).unwrap();
        let mut parameters = Parameters::default();
        parameters.add("", &path, Mode::Write).unwrap();
        let at = |name: &str| match parameters.find(name).unwrap().place {
            wharf::TensorPlace::Offset(at) => at as usize,
            _ => panic!("not stored"),
        };
        let buffer = device.allocate(1000).unwrap();
        queue.fill(&buffer, &[0xEE]).unwrap().wait().unwrap();
        let spans = [
            Span { name: "labels", parameter_offset: 5, buffer_offset: 100, len: Some(50) },
            Span { name: "layer2.bias", parameter_offset: 0, buffer_offset: 7, len: None },
        ];
        let options = LoadOptions { timelines: 3, ..LoadOptions::default() };
        // Again and again: the pump thread and this one meet at every step of it, on a backend that must be polled too.
        for _ in 0..50 {
            device.gather(&parameters, &spans, &buffer, options).unwrap().wait().unwrap();
        }
        let mut bytes = vec![0; 1000];
        queue.read(&buffer, &mut bytes).unwrap();
        let mut right = vec![0xEE; 1000];
        right[100..150].copy_from_slice(&before[at("labels") + 5..][..50]);
        right[7..47].copy_from_slice(&before[at("layer2.bias")..][..40]);
        assert!(bytes == right, "{}", device.id());
        queue.fill(&buffer, &[0x55]).unwrap().wait().unwrap();
        device.scatter(&parameters, &spans[..1], &buffer, options).unwrap().wait().unwrap();
        let mut right = before.clone();
        right[at("labels") + 5..][..50].fill(0x55);
        assert!(fs::read(&path).unwrap() == right, "{}: scatter", device.id());
        let read_only = Parameters::open(&path).unwrap();
        assert!(device.scatter(&read_only, &spans, &buffer, options).is_err(), "opened to be read");
    }
}

#[test]
fn a_load_whose_last_name_is_missing_allocates_and_writes_nothing() {
    let (_runtime, device) = host(true);
    let parameters = Parameters::open(fixture("digits/digits.gguf")).unwrap();
    let free = device.memory_free();
    let error =
        device.load(&parameters, &["images", "labels", "lables"], LoadOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NoSuchTensor);
    assert!(error.to_string().contains("`labels`"), "{error}");
    let buffer = device.allocate(200_000).unwrap();
    let spans = [Span::whole("images", 0), Span::whole("nothing", 150_000)];
    let queue = device.queue().unwrap();
    queue.fill(&buffer, &[9]).unwrap().wait().unwrap();
    assert!(device.gather(&parameters, &spans, &buffer, LoadOptions::default()).is_err());
    let mut bytes = vec![0; 200_000];
    queue.read(&buffer, &mut bytes).unwrap();
    assert!(bytes.iter().all(|b| *b == 9), "nothing was written into the target");
    assert!(free.is_some());
}

#[test]
fn a_load_is_cancelled_at_any_moment_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.safetensors");
    let len = 64u64 << 20;
    let header = format!(r#"{{"big":{{"dtype":"U8","shape":[{len}],"data_offsets":[0,{len}]}}}}"#);
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + len as usize, 1);
    fs::write(&path, &bytes).unwrap();
    let (_runtime, device) = host(true);
    let parameters = Parameters::open(&path).unwrap();
    let mut cancelled = 0;
    for round in 0..40u32 {
        let load = device.load(&parameters, &["big"], LoadOptions::default()).unwrap();
        for _ in 0..round * 200 {
            std::hint::spin_loop();
        }
        load.cancel();
        match load.wait() {
            Ok(buffers) => assert_eq!(buffers[0].len(), len),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Interrupted);
                cancelled += 1;
            }
        }
    }
    assert!(cancelled > 0);
    let all = device.load(&parameters, &["big"], LoadOptions::default()).unwrap().wait().unwrap();
    assert_eq!(all[0].len(), len, "the device works afterwards");
}

#[test]
fn runtimes_come_and_go_and_share_their_plugins() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    for round in 1..=20 {
        let (first, second) = (host(true), host(false));
        for (_, device) in [&first, &second] {
            let queue = device.queue().unwrap();
            queue
                .host_call(|| {
                    CALLS.fetch_add(1, SeqCst);
                })
                .unwrap();
            queue.sync().unwrap();
        }
        assert_eq!(CALLS.load(SeqCst), round * 2);
        assert!(!first.1.same(&second.1));
    }
}

#[test]
fn a_device_is_found_by_id_backend_and_stable_id() {
    let (runtime, device) = host(true);
    let stable = device.stable_id().unwrap();
    for name in ["host:0", "host", stable.as_str()] {
        assert!(runtime.device(name).unwrap().same(&device), "{name}");
    }
    assert_eq!(runtime.device("host:1").unwrap_err().kind(), ErrorKind::NoSuchDevice);
    assert_eq!(device.allocate(1 << 60).unwrap_err().kind(), ErrorKind::OutOfMemory);
}

/// The host (reads straight into its memory), a device with an address space of its own, and an engine of two lanes.
fn each_device() -> Vec<Device> {
    let plugins = [host_plugin(), test_plugin("wharf_null_plugin"), test_plugin("wharf_dma_plugin")];
    let runtime =
        plugins.iter().fold(Runtime::builder().only_named(), |b, plugin| b.plugin_file(plugin)).open();
    assert_eq!(runtime.devices().len(), 3, "{:?}", runtime.report());
    runtime.devices()
}

#[test]
fn files_that_are_read_give_the_bytes_of_files_that_are_mapped() {
    let file = fixture("digits/digits.safetensors");
    let names = ["images", "layer1.weight", "labels"];
    for device in each_device() {
        let queue = device.queue().unwrap();
        for (io, staging, timelines) in [
            (Io::Map, 1 << 20, 8),
            (Io::Read, 1 << 20, 8),
            (Io::Read, 64 << 10, 2),
            (Io::Direct, 64 << 10, 2),
        ] {
            let options = LoadOptions { timelines, io, staging, ..LoadOptions::default() };
            let parameters = Parameters::open(&file).unwrap();
            let loaded = match device.load(&parameters, &names, options) {
                Err(error) if io == Io::Direct && error.kind() == ErrorKind::Unsupported => {
                    eprintln!("skipped: {error}");
                    continue;
                }
                loaded => loaded.unwrap().wait().unwrap(),
            };
            let whole = fs::read(&file).unwrap();
            for (name, buffer) in names.iter().zip(&loaded) {
                let wharf::TensorPlace::Offset(at) = parameters.find(name).unwrap().place else {
                    panic!("{name}")
                };
                let mut bytes = vec![0; buffer.len() as usize];
                queue.read(buffer, &mut bytes).unwrap();
                assert!(bytes == whole[at as usize..][..bytes.len()], "{name} on {} by {io:?}", device.id());
            }
        }
    }
}

#[test]
fn a_file_that_was_cut_after_it_was_opened_is_an_error_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.safetensors");
    fs::copy(fixture("digits/digits.safetensors"), &path).unwrap();
    for device in each_device() {
        fs::copy(fixture("digits/digits.safetensors"), &path).unwrap();
        let parameters = Parameters::open(&path).unwrap();
        let options = LoadOptions { io: Io::Read, ..LoadOptions::default() };
        device.load(&parameters, &["labels"], options).unwrap().wait().unwrap();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(2000).unwrap();
        let error = device.load(&parameters, &["images"], options).unwrap().wait().unwrap_err();
        assert!(error.to_string().contains("past the length"), "{}: {error}", device.id());
        let buffer = device.allocate(64).unwrap();
        device.queue().unwrap().write(&buffer, &[1; 64]).unwrap();
        let direct = LoadOptions { io: Io::Direct, ..LoadOptions::default() };
        match device.load(&parameters, &["images"], direct) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
            Ok(load) => assert!(load.wait().unwrap_err().to_string().contains("past the length")),
        }
    }
}

/// A touch of a page that the file does not have any more would be a signal, which ends the process.
#[test]
fn a_mapped_file_that_was_cut_meanwhile_is_an_error_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.safetensors");
    for device in each_device() {
        fs::copy(fixture("digits/digits.safetensors"), &path).unwrap();
        let parameters = Parameters::open(&path).unwrap();
        let options = LoadOptions { io: Io::Map, ..LoadOptions::default() };
        device.load(&parameters, &["labels"], options).unwrap().wait().unwrap();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
        let error = device.load(&parameters, &["images"], options).unwrap().wait().unwrap_err();
        assert!(error.to_string().contains("past the length 4096"), "{}: {error}", device.id());
        let buffer = device.allocate(64).unwrap();
        device.queue().unwrap().write(&buffer, &[1; 64]).unwrap();
    }
}

#[test]
fn buffers_are_copied_between_any_two_devices() {
    let devices = each_device();
    let bytes: Vec<u8> = (0..300_001u32).map(|i| (i * 7 + i / 256) as u8).collect();
    for from in &devices {
        for to in &devices {
            let (a, b) = (from.allocate(300_001).unwrap(), to.allocate(400_000).unwrap());
            from.queue().unwrap().write(&a, &bytes).unwrap();
            let queue = to.queue().unwrap();
            queue.write(&b, &vec![0xEE; 400_000]).unwrap();
            let part = b.slice(1000, 300_001).unwrap();
            let options = LoadOptions { timelines: 2, staging: 256 << 10, ..LoadOptions::default() };
            to.copy_from(&a, &part, options).unwrap().wait().unwrap();
            let mut back = vec![0; 400_000];
            queue.read(&b, &mut back).unwrap();
            assert!(back[1000..301_001] == bytes[..], "{} to {}", from.id(), to.id());
            assert!(back[..1000].iter().chain(&back[301_001..]).all(|b| *b == 0xEE), "nothing beside it");
        }
    }
    let (a, b) = (devices[0].allocate(8).unwrap(), devices[1].allocate(9).unwrap());
    assert_eq!(devices[1].copy_from(&a, &b, LoadOptions::default()).err().unwrap().kind(), ErrorKind::Usage);
    let small = LoadOptions { staging: 100, ..LoadOptions::default() };
    let same = devices[1].allocate(8).unwrap();
    assert_eq!(devices[1].copy_from(&a, &same, small).err().unwrap().kind(), ErrorKind::Usage);
}

#[test]
fn an_imported_tensor_is_the_files_bytes_exactly_and_read_only() {
    for archive in ["digits/digits.irpa", "digits/digits.safetensors"] {
        for device in each_device() {
            import_from(&device, &fixture(archive));
            assert_eq!(device.statistics().unwrap().device.live, 0, "{archive} on {}", device.id());
        }
    }
}

fn import_from(device: &Device, path: &Path) {
    let whole = fs::read(path).unwrap();
    let queue = device.queue().unwrap();
    let parameters = Parameters::open(path).unwrap();
    let names = ["layer1.bias", "images"];
    let places = names.map(|name| parameters.find(name).unwrap().place);
    let options = LoadOptions { import: true, ..LoadOptions::default() };
    let loaded = device.load(&parameters, &names, options).unwrap().wait().unwrap();
    drop(parameters);
    let mut copied = 0;
    for (buffer, place) in loaded.iter().zip(places) {
        let wharf::TensorPlace::Offset(at) = place else { panic!("{place:?}") };
        let mut bytes = vec![0; buffer.len() as usize];
        queue.read(buffer, &mut bytes).unwrap();
        assert!(bytes == whole[at as usize..][..bytes.len()], "{} on {}", path.display(), device.id());
        // What is not aligned as the device asks, or lies where it does not reach, was copied, and can be written.
        let caps = device.caps();
        let imported = caps.space == 0 && at.is_multiple_of(caps.align.into());
        assert_eq!(queue.fill(buffer, &[1]).is_err(), imported, "{} on {}", path.display(), device.id());
        copied += u64::from(!imported);
    }
    assert_eq!(device.statistics().unwrap().device.live > 0, copied > 0, "{}", device.id());
    queue.sync().unwrap();
    assert!(fs::read(path).unwrap() == whole, "the file is as it was");
}

#[test]
fn a_queue_of_free_order_gives_events_of_their_own() {
    for pump in [true, false] {
        let (_runtime, device) = host(pump);
        let free = device.queue_with(QueueOptions { order: Order::Free, profile: false }).unwrap();
        let shut = device.queue().unwrap();
        let (open, ran) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let gate = open.clone();
        let opened = shut
            .host_call(move || {
                while !gate.load(SeqCst) {
                    std::thread::yield_now();
                }
            })
            .unwrap()
            .event()
            .unwrap();
        let held = free.wait_for(&[&opened]).unwrap();
        let buffer = device.allocate(16).unwrap();
        free.write(&buffer, &[5; 16]).unwrap();
        let mut bytes = [0; 16];
        free.read(&buffer, &mut bytes).unwrap();
        assert_eq!(bytes, [5; 16], "what is held holds nothing else");
        let count = ran.clone();
        free.host_call(move || assert_eq!(count.fetch_add(1, SeqCst), 0)).unwrap().wait().unwrap();
        assert_eq!(ran.load(SeqCst), 1);
        assert!(!held.is_complete().unwrap());
        open.store(true, SeqCst);
        held.wait().unwrap();
        free.sync().unwrap();
    }
}

#[test]
fn a_command_list_is_recorded_once_and_submitted_with_different_buffers() {
    for pump in [true, false] {
        let (_runtime, device) = host(pump);
        let program = device.program(&fs::read(kernels()).unwrap()).unwrap();
        let floats = |values: [f32; 4]| values.map(f32::to_ne_bytes).concat();
        let (x, base) = (Slot(0), device.allocate(16).unwrap());
        let mut recording = device.record_with(2).unwrap();
        recording.fill(&base, &0.5f32.to_ne_bytes()).unwrap();
        recording.copy(&base, Slot(1)).unwrap();
        let args = ListArgs::new().with(|args| args.u32(4).f32(2.0)).input(x).buffer(Slot(1).part(0, 16));
        recording.launch(&program.kernel("saxpy").unwrap(), [1; 3], [4, 1, 1], &args).unwrap();
        recording.barrier().unwrap();
        recording.update(Slot(1).from(12), &9f32.to_ne_bytes()).unwrap();
        let refused = recording.fill(Slot(2), &[1]).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Invalid(_)), "{refused}");
        let list = recording.end().unwrap();
        drop((program, base));
        assert_eq!((list.len(), list.bindings()), (4, 2));
        let queue = device.queue().unwrap();
        let (input, out) = (device.allocate(16).unwrap(), device.allocate(20).unwrap());
        let target = out.slice(4, 16).unwrap();
        for n in 1..=3u8 {
            let values = [1.0, 2.0, 3.0, 4.0].map(|value: f32| value * f32::from(n));
            queue.write(&input, &floats(values)).unwrap();
            queue.execute(&list, &[&input, &target]).unwrap().wait().unwrap();
            let mut bytes = [0; 16];
            queue.read(&target, &mut bytes).unwrap();
            let [a, b, c, _] = values.map(|value| 0.5 + 2.0 * value);
            assert_eq!(bytes[..], floats([a, b, c, 9.0])[..]);
        }
        let refused = queue.execute(&list, &[]).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Invalid(_)), "{refused}");
        let (_other, foreign) = host(pump);
        let refused = foreign.queue().unwrap().execute(&list, &[&input, &target]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage);
        let last = queue.execute(&list, &[&input, &target]).unwrap();
        drop((list, input, out, target));
        last.wait().unwrap();
    }
}

/// What a burst holds back runs when it is dropped, without a wait; and a wait inside it ends.
#[test]
fn a_burst_is_sent_off_when_it_ends_or_when_somebody_waits() {
    for pump in [true, false] {
        let (_runtime, device) = host(pump);
        let queue = device.queue().unwrap();
        let buffer = device.allocate(64).unwrap();
        let burst = queue.burst();
        queue.fill(&buffer, &[1]).unwrap();
        queue.fill(&buffer, &[2]).unwrap().wait().unwrap();
        let (told, heard) = std::sync::mpsc::channel();
        queue.host_call(move || told.send(()).unwrap()).unwrap();
        drop(burst);
        heard.recv_timeout(Duration::from_secs(20)).expect("the end of the burst sends it off");
        let mut bytes = [0; 64];
        queue.read(&buffer, &mut bytes).unwrap();
        assert_eq!(bytes, [2; 64]);
    }
}

#[test]
fn freed_memory_is_used_again_within_the_limits_of_a_pool() {
    let (runtime, device) = host(true);
    device.set_pool(PoolLimits { bytes: 1 << 20, blocks: 4, largest: 1 << 20 }).unwrap();
    for _ in 0..10 {
        let buffer = device.allocate(100_000).unwrap();
        device.queue().unwrap().fill(&buffer, &[1]).unwrap().wait().unwrap();
    }
    let live = device.allocate(64).unwrap();
    assert_eq!(
        runtime.live_memory().iter().map(|m| m.len).collect::<Vec<_>>(),
        [64],
        "what is kept is not live"
    );
    drop(live);
    let kept = device.pool_statistics().unwrap();
    assert!(kept.hits > 0 && kept.hits + kept.misses == 11, "{kept:?}");
    let left = kept.bytes;
    assert_eq!(runtime.trim().unwrap(), left);
    assert_eq!(device.trim().unwrap(), 0);
    assert_eq!(device.pool_statistics().unwrap().bytes, 0);
    assert!(device.heaps().unwrap()[0].kind.contains(MemoryType::DEVICE_LOCAL | MemoryType::HOST_VISIBLE));
}
