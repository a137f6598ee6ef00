//! Listing archives with large heads: the command as a user starts it against a command that does nothing, and the
//! reader alone against one pass over the bytes of the head.

use std::{
    env,
    fs::File,
    hint::black_box,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};
use wharf::Parameters;
use wharf_bench::{
    archives,
    args::{self, Args, Fail},
    row::{Goal, Row},
    sys,
    time::{Effort, clocked, in_turn, one_by_one},
};

fn main() -> ExitCode {
    args::main(run)
}

fn run(args: &Args, give: &mut dyn FnMut(Row)) -> Result<(), Fail> {
    let cases = [
        ("253 MB", archives::gguf("list-253.gguf", &archives::large(241), 32_000)?, 50.0),
        ("120,000 words", archives::gguf("list-words.gguf", &archives::large(64), 120_000)?, 20.0),
        ("20,000 tensors", archives::gguf("list-small.gguf", &archives::small(), 0)?, 15.0),
        (
            "20,000 tensors, safetensors",
            archives::safetensors("small.safetensors", &archives::small())?,
            15.0,
        ),
    ];
    for (name, (path, head), most) in &cases {
        if let Some(command) = env::var_os("WHARF_BIN").filter(|_| args.wants(&format!("wharf list, {name}")))
        {
            give(listed(args, name, path, &PathBuf::from(command), *most)?);
        }
        if args.wants(&format!("reader, {name}")) {
            give(read(args, name, path, *head as usize)?);
        }
    }
    Ok(())
}

fn listed(args: &Args, name: &str, path: &Path, command: &Path, most: f64) -> Result<Row, Fail> {
    let start = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).arg(path).stdout(Stdio::null());
        let mut status = None;
        let took = clocked(|| status = command.status().ok());
        assert!(status.is_some_and(|status| status.success()), "{} does not run", program.display());
        took
    };
    let (ours, peer) =
        one_by_one(args.pick(21, 3), || start(command, &["list"]), || start(Path::new("true"), &[]));
    Ok(Row {
        name: format!("wharf list, {name}"),
        value: ours.per(1e6).into(),
        unit: "ms",
        baseline: "a command that does nothing",
        baseline_value: peer.per(1e6).into(),
        goal: Goal::Most(most),
    })
}

fn read(args: &Args, name: &str, path: &Path, head: usize) -> Result<Row, Fail> {
    let effort = Effort { rounds: args.pick(15, 3), round: Duration::from_millis(50) };
    let file = File::open(path)?;
    Parameters::open(path)?;
    let (ours, peer) = in_turn(
        effort,
        |count| {
            clocked(|| {
                for _ in 0..count {
                    let parameters = Parameters::open(path).unwrap_or_else(|why| panic!("{why}"));
                    black_box(parameters.tensors().map(|tensor| tensor.bytes).sum::<u64>());
                }
            })
        },
        |count| {
            clocked(|| {
                for _ in 0..count {
                    let map = sys::map(&file).unwrap_or_else(|why| panic!("{why}"));
                    black_box(map[..head].iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
                }
            })
        },
    );
    Ok(Row {
        name: format!("reader, {name}"),
        value: ours.per(1e6).into(),
        unit: "ms",
        baseline: "one pass over the head's bytes",
        baseline_value: peer.per(1e6).into(),
        goal: Goal::None,
    })
}
