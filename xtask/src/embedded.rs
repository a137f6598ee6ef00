//! `embedded`: what must also build for targets without an operating system, each package alone, so that no other
//! package's features help it; and the firmware of `tests/embedded`, built and run under an emulator.

use crate::{
    debian,
    elf::{self, Memory},
    fail::{During, Fail, Outcome},
    shell,
    workspace::Workspace,
};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

pub(crate) const LINE: &str = "build core and a static backend for bare targets, and run firmware";
pub(crate) const HELP: &str = "\
Builds wharf-core, without features and with `alloc`, wharf-dma and wharf-layers for thumbv7em-none-eabihf and
riscv32imac-unknown-none-elf, then the firmware of tests/embedded for both, and runs it under QEMU: on a Cortex-M4
(mps2-an386) and a RISC-V core (virt). What the firmware proved is a line each; its exit code counts.

The standard library's core is, in this order,
  - that of the rustup target, if it is installed (`rustup target add TARGET`)
  - built from Debian's source (packages rustc-web and rust-web-src) with Debian's compiler, if that is new enough
  - the same after installing the packages, if CI=true and the user is root
The emulators are Debian's packages qemu-system-arm and qemu-system-misc, installed likewise. If anything is missing the
command says what, and fails; `ci` skips the step then.

  --sizes               print flash and static memory of each firmware beside its budget, tests/embedded/budget.txt, and
                        fail if one is above; `least` is core and the static backend alone";

/// A target, and the emulator that runs its firmware: program, arguments, Debian's package.
struct Board {
    target: &'static str,
    emulator: &'static str,
    machine: &'static [&'static str],
    package: &'static str,
}

const BOARDS: [Board; 2] = [
    Board {
        target: "thumbv7em-none-eabihf",
        emulator: "qemu-system-arm",
        machine: &["-machine", "mps2-an386", "-cpu", "cortex-m4"],
        package: "qemu-system-arm",
    },
    Board {
        target: "riscv32imac-unknown-none-elf",
        emulator: "qemu-system-riscv32",
        machine: &["-machine", "virt", "-bios", "none"],
        package: "qemu-system-misc",
    },
];
/// The folder of the firmware, and its programs with the arguments that build them.
const FIRMWARE: &str = "tests/embedded";
const PROGRAMS: [(&str, &[&str]); 4] =
    [("least", &[]), ("digits", &[]), ("limits", &[]), ("heap", &["--features", "heap"])];
/// The one that says how it went by its exit code alone.
const SILENT: &str = "least";
/// Longer than any firmware takes, in seconds.
const SECONDS_MAX: u64 = 60;
/// Linkers that take GNU arguments, the first there is: Debian's compiler has none of its own.
const LINKERS: [&str; 2] = ["ld.lld", "ld.lld-14"];
/// Packages, and with which arguments they are built.
const BUILDS: [(&str, &[&str]); 4] = [
    ("wharf-core", &["--no-default-features"]),
    ("wharf-core", &["--no-default-features", "--features", "alloc"]),
    ("wharf-dma", &["--no-default-features"]),
    ("wharf-layers", &["--no-default-features"]),
];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/core/Cargo.toml";
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "rust-web-src", "lld-14"];

/// Where the core of a target comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Core {
    Installed,
    Built,
}

pub(crate) fn main(args: &[String]) -> Outcome {
    let only_sizes = match args {
        [] => false,
        [arg] if arg == "--sizes" => true,
        [arg, ..] => return Err(Fail::argument("embedded", arg)),
    };
    let workspace = Workspace::read()?;
    if let Some(why) = unable(&workspace) {
        return Err(Fail::new(why));
    }
    if only_sizes {
        return sizes(&workspace);
    }
    for Board { target, .. } in BOARDS {
        let core = core_of(&workspace, target).ok_or_else(|| Fail::new(missing(target)))?;
        for (package, features) in BUILDS {
            if !workspace.has(package) {
                println!("{package} left out: not in the workspace");
                continue;
            }
            shell::run(build(&workspace, target, core).args(["--package", package]).args(features))?;
        }
    }
    BOARDS.iter().try_for_each(|board| run(&workspace, board))?;
    sizes(&workspace)
}

/// Compares what each firmware takes with its budget.
fn sizes(workspace: &Workspace) -> Outcome {
    let path = workspace.root.join(FIRMWARE).join("budget.txt");
    let budget = fs::read_to_string(&path).during(path.display())?;
    println!(
        "{:28} {:8} {:>8} {:>8} {:>8} {:>8}",
        "target", "firmware", "flash", "budget", "memory", "budget"
    );
    let mut above = 0;
    for Board { target, .. } in BOARDS {
        let core = core_of(workspace, target).ok_or_else(|| Fail::new(missing(target)))?;
        for (program, features) in PROGRAMS {
            let file = firmware(workspace, target, core, program, features)?;
            let Memory { flash, ram } = elf::memory(&fs::read(&file).during(file.display())?)?;
            let most = allowed(&budget, target, program)
                .ok_or_else(|| Fail::new(format!("{}: no line for {target} {program}", path.display())))?;
            println!("{target:28} {program:8} {flash:8} {:8} {ram:8} {:8}", most.flash, most.ram);
            above += usize::from(flash > most.flash || ram > most.ram);
        }
    }
    if above == 0 {
        Ok(())
    } else {
        Err(Fail::new(format!("{above} above the budget in {}", path.display())))
    }
}

/// The budget of a firmware: lines of target, program, flash and memory in bytes.
fn allowed(budget: &str, target: &str, program: &str) -> Option<Memory> {
    budget.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        if (words.next()?, words.next()?) != (target, program) {
            return None;
        }
        Some(Memory { flash: words.next()?.parse().ok()?, ram: words.next()?.parse().ok()? })
    })
}

/// Builds the firmware of a board and runs it.
fn run(workspace: &Workspace, board: &Board) -> Outcome {
    let core = core_of(workspace, board.target).ok_or_else(|| Fail::new(missing(board.target)))?;
    for (program, features) in PROGRAMS {
        let file = firmware(workspace, board.target, core, program, features)?;
        let mut emulator = Command::new(board.emulator);
        emulator.args(board.machine).args(["-display", "none", "-monitor", "none", "-serial", "none"]);
        emulator.args(["-chardev", "stdio,id=out", "-semihosting-config"]);
        emulator.args(["enable=on,target=native,chardev=out", "-kernel"]).arg(file);
        print!("{}: ", board.emulator);
        within(&mut emulator, Duration::from_secs(SECONDS_MAX))?;
        if program == SILENT {
            println!("{program}: ok");
        }
    }
    Ok(())
}

/// Builds a program of the firmware: where it is.
fn firmware(
    workspace: &Workspace,
    target: &str,
    core: Core,
    program: &str,
    features: &[&str],
) -> Result<PathBuf, Fail> {
    let folder = workspace.target.join("embedded");
    let mut command = build(workspace, target, core);
    command.args(["--release", "--locked", "--bin", program, "--manifest-path"]);
    command.arg(workspace.root.join(FIRMWARE).join("Cargo.toml")).arg("--target-dir").arg(&folder);
    shell::run(command.args(features))?;
    Ok(folder.join(target).join("release").join(program))
}

/// Runs a command that must end in time; what it prints comes after what we print.
fn within(command: &mut Command, time: Duration) -> Outcome {
    std::io::stdout().flush().during("standard output")?;
    let name = command.get_program().to_string_lossy().into_owned();
    let begun = Instant::now();
    let mut child = command.stdin(Stdio::null()).spawn().during(&name)?;
    loop {
        match child.try_wait().during(&name)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(Fail::new(format!("{name}: the firmware ended with {status}"))),
            None if begun.elapsed() > time => {
                let ended = child.kill().and_then(|()| child.wait());
                ended.during(&name)?;
                return Err(Fail::new(format!("{name}: no end after {} s", time.as_secs())));
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// What is missing here, after it was installed where that is allowed.
pub(crate) fn unable(workspace: &Workspace) -> Option<String> {
    let lacks = || BOARDS.iter().find_map(|board| lack(workspace, board));
    if lacks().is_some() && debian::may_install() {
        // A failure shows in what is then still missing.
        let emulators = BOARDS.map(|board| board.package);
        let _ = debian::install(&[&DEBIAN_PACKAGES[..], &emulators].concat());
    }
    lacks()
}

/// What is missing for a board.
fn lack(workspace: &Workspace, board: &Board) -> Option<String> {
    let Board { target, emulator, package, .. } = board;
    match core_of(workspace, target) {
        None => Some(missing(target)),
        Some(Core::Built) if linker().is_none() => {
            Some(format!("no linker for {target}: on Debian `apt-get install lld-14`"))
        }
        Some(_) if shell::which(emulator).is_none() => {
            Some(format!("no {emulator}: on Debian `apt-get install --no-install-recommends {package}`"))
        }
        Some(_) => None,
    }
}

/// A linker for what Debian's compiler builds.
fn linker() -> Option<PathBuf> {
    LINKERS.iter().find_map(|name| shell::which(name))
}

fn missing(target: &str) -> String {
    let packages = DEBIAN_PACKAGES.join(" ");
    format!(
        "no core for {target}: `rustup target add {target}`, or on Debian \
         `apt-get update && apt-get install --no-install-recommends {packages}`"
    )
}

fn build(workspace: &Workspace, target: &str, core: Core) -> Command {
    let mut command = shell::cargo(&workspace.root);
    command.args(["build", "--quiet", "--target", target]);
    if core == Core::Built {
        // Debian's compiler fits Debian's source; building core is not stable, hence the switch.
        command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=core,alloc");
        if let Some(linker) = linker() {
            let target = target.to_uppercase().replace('-', "_");
            command.env(format!("CARGO_TARGET_{target}_LINKER"), linker);
        }
    }
    command
}

fn core_of(workspace: &Workspace, target: &str) -> Option<Core> {
    if sysroot(&workspace.root)
        .is_some_and(|sysroot| sysroot.join("lib/rustlib").join(target).join("lib").is_dir())
    {
        return Some(Core::Installed);
    }
    let needed = workspace.members.iter().filter_map(|member| minor(member.rust_version.as_deref()?)).max();
    let there = Path::new(DEBIAN_SOURCE).is_file() && debian_minor() >= needed;
    there.then_some(Core::Built)
}

/// The release of Debian's compiler, if it is installed.
fn debian_minor() -> Option<u32> {
    Path::new(DEBIAN_RUSTC).is_file().then_some(())?;
    let said = shell::output(Command::new(DEBIAN_RUSTC).arg("--version")).ok()?;
    minor(said.split_whitespace().nth(1)?)
}

/// 95 of `1.95` and of `1.95.2`.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

/// Where the compiler keeps its targets.
fn sysroot(root: &Path) -> Option<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = shell::output(Command::new(rustc).current_dir(root).args(["--print", "sysroot"])).ok()?;
    Some(PathBuf::from(said.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_found_by_target_and_program() {
        let budget = "# target firmware flash memory\nthumb least 10 20\nthumb digits 30 40\n";
        assert_eq!(allowed(budget, "thumb", "digits"), Some(Memory { flash: 30, ram: 40 }));
        assert_eq!(allowed(budget, "riscv", "digits"), None);
        assert_eq!(allowed("thumb least ten 20", "thumb", "least"), None);
    }

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(minor("1.95"), Some(95));
        assert_eq!(minor("1.100.0"), Some(100));
        assert!(minor("1.100.0") > minor("1.95"));
        assert!(minor("unknown") < minor("1.95"));
    }
}
