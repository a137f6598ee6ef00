//! Reports of users of other systems, replayed: memory, loading, devices that say odd things about themselves. Each
//! test says what must be right instead; `tests/RULES.md` names the reports.
//!
//! # Safety
//! The unsafe calls wait for a child of this test and read what the system said of it.
#![allow(clippy::unwrap_used, unsafe_code)]

use std::{
    any::Any,
    fs,
    io::{Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use wharf::{Device, ErrorKind, Io, LoadOptions, Parameters, Runtime, Span, TensorPlace, property};
use wharf_core::{
    device::{Block, Caps, Describe, HostAccess, Want},
    fault::{Fault, Kind, Site, Why},
    tick::Tick,
};
use wharf_null::{Null, NullGauge, NullLane};
use wharf_tests::{Ran, fixture, host_plugin, test_plugin, wharf, wharf_with_plugins};

/// A null device with a stable id of its own and facts about its memory that cannot be.
struct Odd(Null, &'static str);

/// What the device says of its free memory: 0: more than there is; 1: nothing, since the query fails.
static FREE: AtomicUsize = AtomicUsize::new(0);
/// Whether the devices are listed the other way round.
static REVERSED: AtomicBool = AtomicBool::new(false);
/// The odd plugin is opened once at a time in a process, so its tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl wharf_core::device::Device for Odd {
    type Lane = NullLane;
    type Gauge = NullGauge;
    fn caps(&self) -> Caps {
        self.0.caps()
    }
    fn allocate(&self, want: &Want) -> Result<Block, Fault> {
        self.0.allocate(want)
    }
    fn free(&self, block: &Block) -> Result<(), Fault> {
        self.0.free(block)
    }
    fn lane(&self, tick: Tick) -> Result<(NullLane, NullGauge, usize), Fault> {
        self.0.lane(tick)
    }
}

impl HostAccess for Odd {
    fn map(&self, block: &Block, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        self.0.map(block, offset, len)
    }
    fn unmap(&self, block: &Block, offset: u64, len: u64) -> Result<(), Fault> {
        self.0.unmap(block, offset, len)
    }
    fn sync(&self, block: &Block, offset: u64, len: u64, to_device: bool) -> Result<(), Fault> {
        self.0.sync(block, offset, len, to_device)
    }
    fn register(&self, _: *mut u8, _: u64, _: u32) -> Result<Block, Fault> {
        Err(Fault::backend(Kind::Unsupported, Site::Register, Why::Native, [0; 2]).with_native(801))
    }
    fn unregister(&self, block: &Block) -> Result<(), Fault> {
        self.0.unregister(block)
    }
}

impl Describe for Odd {
    fn property(&self, id: u32, out: &mut [u8]) -> Result<Option<usize>, Fault> {
        let say = |bytes: &[u8], out: &mut [u8]| {
            let fits = bytes.len().min(out.len());
            out[..fits].copy_from_slice(&bytes[..fits]);
            Ok(Some(bytes.len()))
        };
        match id {
            property::UID => say(self.1.as_bytes(), out),
            property::MEMORY_FREE if FREE.load(SeqCst) == 0 => say(&(1u64 << 50).to_le_bytes(), out),
            property::MEMORY_FREE => {
                Err(Fault::backend(Kind::BackendFailure, Site::Query, Why::Native, [0; 2]).with_native(999))
            }
            _ => self.0.property(id, out),
        }
    }
}

fn odd_devices() -> Result<Vec<Odd>, Fault> {
    let mut all = vec![Odd(Null::default(), "GPU-aaaa-1111"), Odd(Null::default(), "GPU-aaaa-2222")];
    if REVERSED.load(SeqCst) {
        all.reverse();
    }
    Ok(all)
}

wharf_abi::plugin! {
    /// The odd devices.
    struct OddTables,
    backend: Odd,
    id: "odd", vendor: "Wharf", version: "1",
    devices: odd_devices,
    roles: [host_access, properties],
}

fn odd() -> Runtime {
    Runtime::builder().only_named().linked_in(wharf_abi::export::entry::<OddTables>).open()
}

fn host() -> (Runtime, Device) {
    let runtime = Runtime::builder().only_named().plugin_file(host_plugin()).open();
    let device = runtime.device("host:0").unwrap();
    (runtime, device)
}

#[test]
fn free_memory_is_never_above_the_total_and_a_failed_query_fails_nothing_else() {
    let _turn = turn();
    for says in [0, 1] {
        FREE.store(says, SeqCst);
        let runtime = odd();
        assert_eq!(runtime.devices().len(), 2);
        for device in runtime.devices() {
            let (total, free) = (device.memory_total().unwrap(), device.memory_free());
            assert_eq!(free, (says == 0).then_some(total));
            assert_eq!(device.memory_kind(), "dedicated");
            device.allocate(64).unwrap();
        }
    }
}

#[test]
fn a_device_keeps_its_stable_id_whatever_its_number() {
    let _turn = turn();
    for reversed in [false, true] {
        REVERSED.store(reversed, SeqCst);
        let runtime = odd();
        for (number, uid) in [(0, "GPU-aaaa-1111"), (1, "GPU-aaaa-2222")] {
            let device = runtime.device(uid).unwrap();
            assert_eq!(device.stable_id().unwrap(), uid);
            let expected = if reversed { 1 - number } else { number };
            assert_eq!(device.id(), format!("odd:{expected}"));
            assert!(runtime.device(&uid[..10]).unwrap().same(&device), "the beginning will do");
        }
        let both = runtime.device("GPU-aaaa").unwrap_err();
        assert_eq!(both.kind(), ErrorKind::NoSuchDevice);
        let words = both.to_string();
        assert!(words.contains("GPU-aaaa-1111") && words.contains("GPU-aaaa-2222"), "{words}");
        for name in ["", "G", "GPU", "GPU-b", "GPU-aaaa-11112"] {
            assert_eq!(runtime.device(name).unwrap_err().kind(), ErrorKind::NoSuchDevice, "{name}");
        }
    }
    REVERSED.store(false, SeqCst);
}

#[test]
fn a_load_goes_on_where_host_memory_cannot_be_registered() {
    let _turn = turn();
    let runtime = odd();
    let device = runtime.device("odd:0").unwrap();
    let parameters = Parameters::open(fixture("digits/digits.safetensors")).unwrap();
    for io in [Io::Map, Io::Read] {
        let options = LoadOptions { io, import: true, ..LoadOptions::default() };
        let all = device.load(&parameters, &["labels", "images"], options).unwrap().wait().unwrap();
        assert_eq!(bytes_of(&device, &all[0]), stored(&parameters, "labels"));
        device.queue().unwrap().sync().unwrap();
    }
}

fn bytes_of(device: &Device, buffer: &wharf::Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len() as usize];
    device.queue().unwrap().read(buffer, &mut bytes).unwrap();
    bytes
}

/// The bytes of a tensor, from its file.
fn stored(parameters: &Parameters, name: &str) -> Vec<u8> {
    let tensor = parameters.find(name).unwrap();
    let TensorPlace::Offset(at) = tensor.place else { panic!("{name} is not in the file") };
    let whole = fs::read(tensor.file).unwrap();
    whole[at as usize..][..tensor.bytes as usize].to_vec()
}

/// All orders of four things.
fn orders() -> Vec<[usize; 4]> {
    let mut all = Vec::new();
    for a in 0..4 {
        for b in (0..4).filter(|b| *b != a) {
            for c in (0..4).filter(|c| ![a, b].contains(c)) {
                all.push([a, b, c, 6 - a - b - c]);
            }
        }
    }
    all
}

#[test]
fn devices_and_buffers_go_in_any_order_on_any_thread() {
    let two = || -> Runtime {
        let builder = Runtime::builder().only_named().plugin_file(host_plugin());
        builder.plugin_file(test_plugin("wharf_null_plugin")).open()
    };
    assert_eq!(orders().len(), 24);
    for (round, order) in orders().into_iter().enumerate() {
        let runtime = two();
        let first = runtime.devices().remove(0);
        let buffer = first.allocate(300).unwrap();
        first.queue().unwrap().write(&buffer, &[7; 300]).unwrap();
        // Another device comes to life, is used, and the first one's memory is as it was.
        let second = runtime.devices().remove(1);
        let other = second.allocate(300).unwrap();
        second.queue().unwrap().write(&other, &[8; 300]).unwrap();
        assert_eq!(bytes_of(&first, &buffer), [7; 300]);
        assert_eq!(bytes_of(&second, &other), [8; 300]);
        let kept = (round % 2 == 0).then(|| runtime.devices());
        drop(runtime);
        let mut things: [Option<Box<dyn Any + Send>>; 4] =
            [Some(Box::new(first)), Some(Box::new(second)), Some(Box::new(buffer)), Some(Box::new(other))];
        let mut end = move || order.into_iter().for_each(|which| drop(things[which].take()));
        if round % 3 == 0 {
            std::thread::spawn(end).join().unwrap()
        } else {
            end()
        }
        for device in kept.into_iter().flatten() {
            let now = device.statistics().unwrap();
            assert_eq!(now.device.live + now.host.live, 0, "{order:?}: {}", device.id());
        }
    }
}

#[test]
fn empty_tensors_are_loaded_beside_others_and_freed_in_any_order() {
    let path = fixture("archives/safetensors/shapes.safetensors");
    let parameters = Parameters::open(&path).unwrap();
    let names: Vec<String> = parameters.tensors().map(|tensor| tensor.name.to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(parameters.tensors().any(|tensor| tensor.bytes == 0), "the file has a tensor without bytes");
    let (_runtime, device) = host();
    for round in 0..6 {
        let mut all = device.load(&parameters, &names, LoadOptions::default()).unwrap().wait().unwrap();
        for (name, buffer) in names.iter().zip(&all) {
            assert_eq!(bytes_of(&device, buffer), stored(&parameters, name), "{name}");
        }
        if round % 2 == 0 {
            all.reverse();
        }
        while !all.is_empty() {
            let which = (round * 7) % all.len();
            drop(all.swap_remove(which));
        }
        assert_eq!(device.statistics().unwrap().device.live, 0);
    }
}

#[test]
fn unaligned_tensors_lie_aligned_on_the_device_with_their_own_bytes() {
    for file in ["unaligned", "unaligned_inside"] {
        let path = fixture(&format!("archives/safetensors/{file}.safetensors"));
        let parameters = Parameters::open(&path).unwrap();
        let names: Vec<String> = parameters.tensors().map(|tensor| tensor.name.to_owned()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let builder = Runtime::builder().only_named().plugin_file(host_plugin());
        let runtime = builder.plugin_file(test_plugin("wharf_null_plugin")).open();
        for device in runtime.devices() {
            for import in [false, true] {
                let options = LoadOptions { import, ..LoadOptions::default() };
                let all = device.load(&parameters, &names, options).unwrap().wait().unwrap();
                for (name, buffer) in names.iter().zip(&all) {
                    assert_eq!(
                        bytes_of(&device, buffer),
                        stored(&parameters, name),
                        "{name} on {}",
                        device.id()
                    );
                    if !buffer.is_empty() {
                        let align = u64::from(device.caps().align);
                        assert!(buffer.address().unwrap().is_multiple_of(align), "{name} on {}", device.id());
                    }
                }
            }
        }
        let info = Ran::of(wharf().args(["info", "--json"]).arg(&path)).json();
        assert!(info["files"][0]["unaligned"].as_u64().unwrap() > 0, "{info}");
    }
}

#[test]
fn every_type_that_a_format_knows_is_loaded_raw() {
    let (_runtime, device) = host();
    for file in ["safetensors/all_dtypes.safetensors", "gguf/all_types.gguf", "gguf/types_q8_1_q2_0.gguf"] {
        let parameters = Parameters::open(fixture(&format!("archives/{file}"))).unwrap();
        let names: Vec<String> = parameters.tensors().map(|tensor| tensor.name.to_owned()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = device.load(&parameters, &names, LoadOptions::default()).unwrap().wait().unwrap();
        for (name, buffer) in names.iter().zip(&all) {
            assert_eq!(bytes_of(&device, buffer), stored(&parameters, name), "{name} of {file}");
        }
    }
    let path = fixture("archives/malformed/safetensors/s_dtype_unknown.safetensors");
    let words = Parameters::open(&path).err().unwrap().to_string();
    assert!(words.contains('`') && words.contains("dtype"), "tensor and type are named: {words}");
}

/// A safetensors file with one tensor of so many bytes, which are a hole but for these.
fn sparse(folder: &Path, len: u64, parts: &[(u64, &[u8])]) -> PathBuf {
    let mut header = format!(r#"{{"big":{{"dtype":"U8","shape":[{len}],"data_offsets":[0,{len}]}}}}"#);
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let path = folder.join("sparse.safetensors");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    let data = file.stream_position().unwrap();
    file.set_len(data + len).unwrap();
    parts.iter().for_each(|(at, bytes)| file.write_all_at(bytes, data + at).unwrap());
    file.seek(SeekFrom::End(0)).unwrap();
    path
}

#[test]
fn offsets_above_4_gib_are_read_and_written_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let len = (4u64 << 30) + 64;
    let (head, edge, tail) = ([1u8; 64], [2u8; 64], [3u8; 32]);
    let parts: [(u64, &[u8]); 3] = [(0, &head), ((4 << 30) - 32, &edge), (len - 32, &tail)];
    let path = sparse(folder.path(), len, &parts);
    let mut parameters = Parameters::default();
    parameters.add("", &path, wharf::Mode::Write).unwrap();
    let builder = Runtime::builder().only_named().plugin_file(host_plugin());
    let runtime = builder.plugin_file(test_plugin("wharf_null_plugin")).open();
    let spans = [
        Span { name: "big", parameter_offset: 0, buffer_offset: 0, len: Some(64) },
        Span { name: "big", parameter_offset: (4 << 30) - 32, buffer_offset: 64, len: Some(96) },
    ];
    let expected = [&head[..], &edge, &tail].concat();
    for device in runtime.devices() {
        for io in [Io::Map, Io::Read] {
            let buffer = device.allocate(160).unwrap();
            let options = LoadOptions { io, ..LoadOptions::default() };
            device.gather(&parameters, &spans, &buffer, options).unwrap().wait().unwrap();
            assert_eq!(bytes_of(&device, &buffer), expected, "{} by {io:?}", device.id());
        }
        let buffer = device.allocate(160).unwrap();
        device.queue().unwrap().write(&buffer, &[9; 160]).unwrap();
        let last = [Span { name: "big", parameter_offset: len - 8, buffer_offset: 5, len: Some(8) }];
        device.scatter(&parameters, &last, &buffer, LoadOptions::default()).unwrap().wait().unwrap();
        let file = fs::File::open(&path).unwrap();
        let mut end = [0; 32];
        file.read_exact_at(&mut end, file.metadata().unwrap().len() - 32).unwrap();
        assert_eq!(end, [&[3; 24][..], &[9; 8]].concat()[..]);
        let again = fs::OpenOptions::new().write(true).open(&path).unwrap();
        again.write_all_at(&[3; 8], file.metadata().unwrap().len() - 8).unwrap();
    }
    let past = [Span { name: "big", parameter_offset: len - 7, buffer_offset: 0, len: Some(8) }];
    let buffer = runtime.devices()[0].allocate(160).unwrap();
    assert!(runtime.devices()[0].gather(&parameters, &past, &buffer, LoadOptions::default()).is_err());
}

/// Runs a command to its end: its exit code, and the most memory that it held, in KiB.
fn peak(command: &mut Command) -> (Option<i32>, u64) {
    #[expect(clippy::zombie_processes, reason = "wait4 waits for it, which tells its memory too")]
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the child is waited for here alone, and both places are of the right type.
    let pid = unsafe { libc::wait4(child.id() as libc::pid_t, &raw mut status, 0, usage.as_mut_ptr()) };
    assert_eq!(pid, child.id() as libc::pid_t);
    // SAFETY: zeroes are a value of it, and the system filled it in.
    let usage = unsafe { usage.assume_init() };
    (libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)), usage.ru_maxrss as u64)
}

#[test]
fn memory_is_bounded_whatever_the_size_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let len_kib = 160u64 << 10;
    let path = sparse(folder.path(), len_kib << 10, &[(0, &[1; 64])]);
    let mut load = wharf_with_plugins();
    load.args(["load", "--device", "host:0", "--io", "read", "--staging", "4MiB"]).arg(&path);
    let (code, held) = peak(&mut load);
    assert_eq!(code, Some(0));
    // The destination is of this size; twice of it would be the mistake.
    assert!(held > len_kib && held < len_kib + (64 << 10), "{held} KiB for {len_kib}");
    for args in [vec!["hash"], vec!["verify"], vec!["convert", "-o", "out.irpa"]] {
        let mut command = wharf();
        command.current_dir(folder.path()).args(args.clone()).arg(&path);
        let (code, held) = peak(&mut command);
        assert_eq!(code, Some(0), "{args:?}");
        assert!(held < 64 << 10, "{args:?}: {held} KiB");
    }
}

#[test]
fn a_table_is_read_without_touching_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = sparse(folder.path(), 64 << 30, &[]);
    for verb in ["list", "info"] {
        let mut command = wharf();
        let begin = Instant::now();
        let (code, held) = peak(command.arg(verb).arg(&path));
        assert_eq!(code, Some(0), "{verb}");
        assert!(held < 64 << 10, "{verb}: {held} KiB of 64 GiB");
        assert!(begin.elapsed() < Duration::from_secs(5), "{verb}: {:?}", begin.elapsed());
    }
}

#[test]
fn progress_only_grows_and_ends_at_the_total() {
    let folder = tempfile::tempdir().unwrap();
    let len = 24u64 << 20;
    let path = sparse(folder.path(), len, &[]);
    let (_runtime, device) = host();
    let parameters = Parameters::open(&path).unwrap();
    let load = device.load(&parameters, &["big"], LoadOptions::default()).unwrap();
    let mut last = 0;
    while !load.is_over() {
        let (now, total) = load.progress();
        assert!(now >= last && now <= total && total == len, "{last}, then {now} of {total}");
        last = now;
    }
    assert_eq!(load.progress(), (len, len));
    load.wait().unwrap();
    let ran = Ran::of(wharf_with_plugins().args(["load", "--device", "host:0"]).arg(&path));
    assert_eq!(ran.code, Some(0));
    let quiet = ran.stderr.lines().count() <= 1 && !ran.stderr.contains(['\r', '\u{1b}']);
    assert!(quiet, "no bar on a pipe: {:?}", ran.stderr);
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

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

#[test]
fn a_load_cancelled_at_any_of_200_moments_leaves_no_allocation_and_no_thread() {
    let folder = tempfile::tempdir().unwrap();
    let len = 4u64 << 20;
    let path = sparse(folder.path(), len, &[(len - 1, &[5])]);
    let (_runtime, device) = host();
    let parameters = Parameters::open(&path).unwrap();
    let options = LoadOptions::default();
    device.load(&parameters, &["big"], options).unwrap().wait().unwrap();
    let (before, mut rng, mut cancelled) = (threads(), Rng(0x9E37_79B9_7F4A_7C15), 0);
    for round in 0..200 {
        let load = device.load(&parameters, &["big"], options).unwrap();
        match round {
            0 => {} // Before the first operation, as far as it can be told.
            199 => while !load.is_over() {},
            _ => (0..rng.below(40_000)).for_each(|_| std::hint::spin_loop()),
        }
        load.cancel();
        let begin = Instant::now();
        match load.wait() {
            Ok(buffers) => assert_eq!(buffers[0].len(), len),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Interrupted);
                cancelled += 1;
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(2), "round {round}: {:?}", begin.elapsed());
        // What a lane may still use is given back by the pump thread, once it is over.
        while device.statistics().unwrap().device.live != 0 {
            assert!(begin.elapsed() < Duration::from_secs(2), "round {round}: memory is left");
            std::thread::yield_now();
        }
    }
    assert!(cancelled > 0, "no load was slow enough");
    assert!(threads() <= before, "{} threads, {before} before", threads());
    let all = device.load(&parameters, &["big"], options).unwrap().wait().unwrap();
    assert_eq!(bytes_of(&device, &all[0]).last(), Some(&5));
}

#[test]
fn a_wrong_scope_is_answered_with_those_that_there_are() {
    let mut parameters = Parameters::default();
    parameters.add("model", fixture("digits/digits.safetensors"), wharf::Mode::Read).unwrap();
    assert_eq!(parameters.find("model::labels").unwrap().scope, "model");
    assert!(parameters.has_scope("model") && !parameters.has_scope("modell") && !parameters.has_scope(""));
    for wrong in ["modell::labels", "model::lables", "labels"] {
        let error = parameters.find(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSuchTensor);
        let words = error.to_string();
        assert!(words.contains(wrong) && words.contains("`model::labels`"), "{words}");
    }
}

/// Mixed work through the library, from seeds: each thread uses a queue of its own and one that all share.
#[test]
fn twenty_threads_of_mixed_work_share_a_device_and_a_queue() {
    let (_runtime, device) = host();
    let shared = device.queue().unwrap();
    let digits = Parameters::open(fixture("digits/digits.safetensors")).unwrap();
    let labels = stored(&digits, "labels");
    std::thread::scope(|scope| {
        for seed in 1..=20u64 {
            let (device, shared, digits, labels) = (&device, &shared, &digits, &labels);
            scope.spawn(move || {
                let mut rng = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                let own = device.queue().unwrap();
                for turn in 0..30u8 {
                    let len = 1 + rng.below(5000);
                    let (a, b) = (device.allocate(len).unwrap(), device.allocate(len).unwrap());
                    let queue = if rng.below(2) == 0 { shared } else { &own };
                    let filled = queue.fill(&a, &[turn]).unwrap().event().unwrap();
                    own.wait_for(&[&filled]).unwrap();
                    let copied = own.copy(&a, &b).unwrap();
                    let called = own.host_call(std::thread::yield_now).unwrap();
                    drop(a);
                    if rng.below(4) == 0 {
                        let options = LoadOptions { timelines: 1, ..LoadOptions::default() };
                        let loaded = device.load(digits, &["labels"], options).unwrap().wait().unwrap();
                        assert_eq!(bytes_of(device, &loaded[0]), *labels);
                    }
                    let mut bytes = vec![0; len as usize];
                    if rng.below(2) == 0 {
                        copied.wait().unwrap();
                        shared.read(&b, &mut bytes).unwrap();
                    } else {
                        own.read(&b, &mut bytes).unwrap();
                    }
                    assert!(bytes.iter().all(|byte| *byte == turn), "thread {seed}, turn {turn}");
                    called.wait().unwrap();
                }
            });
        }
    });
    shared.sync().unwrap();
    // What was freed goes once every queue has ended what it had, which the pump sees to.
    let late = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while device.statistics().unwrap().device.live != 0 {
        assert!(std::time::Instant::now() < late, "memory that nobody uses is not given back");
        std::thread::yield_now();
    }
}
