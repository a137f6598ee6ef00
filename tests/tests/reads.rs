//! How often a file is asked for bytes. The only test of its process, since it counts all that the process reads.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::{fs, io::Write};
use wharf::{Io, LoadOptions, Parameters, Runtime};
use wharf_tests::host_plugin;

/// Calls that read, of all threads of this process.
fn reads() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap().parse().unwrap()
}

/// On a file system where each call costs milliseconds only their number counts.
#[test]
fn files_are_read_in_large_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.safetensors");
    let (mib, tensors) = (96u64, 12u64);
    let each = (mib << 20) / tensors;
    let entries: Vec<String> = (0..tensors)
        .map(|n| {
            format!(
                r#""t{n}":{{"dtype":"U8","shape":[{each}],"data_offsets":[{},{}]}}"#,
                n * each,
                (n + 1) * each
            )
        })
        .collect();
    let header = format!("{{{}}}", entries.join(","));
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(8 + header.len() as u64 + (mib << 20)).unwrap();
    let runtime = Runtime::builder().only_named().plugin_file(host_plugin()).open();
    let device = runtime.device("host:0").unwrap();
    let names: Vec<String> = (0..tensors).map(|n| format!("t{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let parameters = Parameters::open(&path).unwrap();
    let before = reads();
    let options = LoadOptions { io: Io::Read, ..LoadOptions::default() };
    device.load(&parameters, &names, options).unwrap().wait().unwrap();
    let made = reads() - before;
    assert!(made > 0 && made <= mib + tensors + 10, "{made} reads for {mib} MiB in {tensors} tensors");
}
