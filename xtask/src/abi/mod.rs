//! The plugin ABI as others see it: its dump, its C header, and the check that it only grows.

mod dump;
mod header;
mod layout;
mod offsets;
mod read;

use crate::{
    fail::{During, Fail, Outcome},
    shell,
    workspace::Workspace,
};
use std::{fs, path::Path, process::Command};

pub(crate) const LINE: &str = "check that the plugin ABI only grows; make its C header";
pub(crate) const HELP: &str = "\
cargo xtask abi check [--accept]

Reads the tables of plugins/abi and makes of them:
  plugins/abi/include/wharf_plugin.h   the ABI in C11 and C++17, with asserts on every offset
  plugins/abi/tests/offsets.rs         the same asserts in Rust
  plugins/abi/abi/1.json               the dump: every table, field, offset, size, signature and number

`check` fails if one of the committed files is not what the tables say, or if the tables do not keep what the dump has:
within a major, tables only grow at their ends, and numbers stay. While the ABI is a draft, a change that breaks needs a
new draft number. The header is compiled as C11 and as C++17, where compilers are installed.

  --accept   write the files anew; what breaks is refused all the same";

/// The three files, relative to the root.
const HEADER: &str = "plugins/abi/include/wharf_plugin.h";
const OFFSETS: &str = "plugins/abi/tests/offsets.rs";
const DUMP: &str = "plugins/abi/abi/1.json";

pub(crate) fn main(args: &[String]) -> Outcome {
    let accept = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["check"] => false,
        ["check", "--accept"] => true,
        _ => return Err(Fail::usage(HELP)),
    };
    let root = Workspace::read()?.root;
    check(&root, accept)
}

/// Everything that `cargo xtask abi check` checks.
pub(crate) fn check(root: &Path, accept: bool) -> Outcome {
    let abi = read::read(root)?;
    let new = dump::write(&abi)?;
    grown(root, &new)?;
    let text = serde_json::to_string_pretty(&new).map_err(|why| Fail::new(why.to_string()))? + "\n";
    let files = [(HEADER, header::write(&abi)?), (OFFSETS, offsets::write(&abi)?), (DUMP, text)];
    for (name, text) in files {
        let path = root.join(name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if !accept {
            let advice = "look at the change, then `cargo xtask abi check --accept`";
            return Err(Fail::new(format!("{name} is not what the tables say: {advice}")));
        }
        fs::create_dir_all(path.parent().unwrap_or(root)).during(name)?;
        fs::write(&path, text).during(name)?;
        println!("wrote {name}");
    }
    for (compiler, language, standard) in [("cc", "c", "c11"), ("c++", "c++", "c++17")] {
        compile(root, compiler, language, standard)?;
    }
    let (types, minor) =
        (new["types"].as_object().map_or(0, serde_json::Map::len), dump::number(&new, "MINOR")?);
    println!(
        "abi 1.{minor}, draft {}: {types} types, kept and grown only at their ends",
        dump::number(&new, "DRAFT")?
    );
    Ok(())
}

/// The tables keep what the committed dump has, unless both are drafts and the number has changed.
fn grown(root: &Path, new: &serde_json::Value) -> Outcome {
    let Ok(old) = fs::read_to_string(root.join(DUMP)) else { return Ok(()) };
    let old = serde_json::from_str(&old).map_err(|why| Fail::new(format!("{DUMP}: {why}")))?;
    let broken = dump::broken(&old, new);
    let (before, now) = (dump::number(&old, "DRAFT")?, dump::number(new, "DRAFT")?);
    if broken.is_empty() || (before != 0 && now > before) {
        return Ok(());
    }
    let advice = if before == 0 {
        "an ABI that was released only grows"
    } else {
        "a draft that breaks takes a new number"
    };
    Err(Fail::new(format!("the tables do not keep what {DUMP} has ({advice}):\n  {}", broken.join("\n  "))))
}

/// Compiles the header alone, so that its asserts are tried.
fn compile(root: &Path, compiler: &str, language: &str, standard: &str) -> Outcome {
    let mut command = Command::new(compiler);
    command
        .args(["-x", language, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic"])
        .arg(format!("-std={standard}"))
        // A header compiled alone has functions that nobody calls, and `#pragma once` is not what guards it.
        .args(["-Wno-unused-function", "-include"])
        .arg(root.join(HEADER))
        .arg("/dev/null");
    if shell::which(compiler).is_none() {
        println!("skipped: header as {standard}: no `{compiler}` is installed");
        return Ok(());
    }
    match shell::status(&mut command)? {
        0 => Ok(()),
        code => {
            Err(Fail::new(format!("{HEADER} does not compile as {standard} ({compiler} ended with {code})")))
        }
    }
}
