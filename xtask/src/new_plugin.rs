//! A plugin outside this workspace, made of the templates.

use crate::{
    fail::{During, Fail, Outcome},
    workspace::Workspace,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

pub(crate) const LINE: &str = "make a plugin of your own, in Rust or C";
pub(crate) const HELP: &str = "\
cargo xtask new-plugin NAME [--lang rust|c] [--path DIR] [--vendor TEXT]

Makes the folder DIR/NAME (DIR: the current folder) with a memory-only device that builds, passes the conformance suite
and can be shipped: a place to begin. NAME is the plugin's id too: lower-case letters, digits, `_` and `-`.";

/// Name in the new folder, and the template.
type Files = &'static [(&'static str, &'static str)];

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("../../plugins/template/", $name))
    };
}

const RUST: Files = &[
    ("Cargo.toml", template!("rust/Cargo.toml.in")),
    ("src/lib.rs", template!("rust/lib.rs.in")),
    ("plugin/Cargo.toml", template!("rust/plugin.toml.in")),
    ("plugin/src/lib.rs", template!("rust/plugin.rs.in")),
    ("README.md", template!("rust/README.md.in")),
    (".gitignore", "target/\n"),
];
const C: Files = &[
    ("plugin.c", template!("c/plugin.c.in")),
    ("Makefile", template!("c/Makefile.in")),
    ("README.md", template!("c/README.md.in")),
    ("wharf_plugin.h", include_str!("../../plugins/abi/include/wharf_plugin.h")),
    (".gitignore", "*.so\n"),
];

struct Args {
    name: String,
    files: Files,
    folder: PathBuf,
    vendor: String,
}

pub(crate) fn main(args: &[String]) -> Outcome {
    let args = parse(args)?;
    let folder = args.folder.join(&args.name);
    if folder.exists() {
        return Err(Fail::new(format!("{} is there already", folder.display())));
    }
    let root = Workspace::read()?.root;
    for (file, template) in args.files {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap_or(&folder)).during(folder.display())?;
        fs::write(&path, filled(template, &args, &root)).during(path.display())?;
    }
    println!("{}: see its README.md", folder.display());
    Ok(())
}

fn parse(args: &[String]) -> Result<Args, Fail> {
    let mut found = Args { name: String::new(), files: RUST, folder: ".".into(), vendor: "Me".into() };
    let mut given = args.iter();
    while let Some(arg) = given.next() {
        let mut value = || given.next().ok_or_else(|| Fail::usage(format!("{arg} needs a value")));
        match arg.as_str() {
            "--lang" => {
                found.files = match value()?.as_str() {
                    "rust" => RUST,
                    "c" => C,
                    other => return Err(Fail::usage(format!("no template in `{other}`: rust or c"))),
                }
            }
            "--path" => found.folder = value()?.into(),
            "--vendor" => found.vendor.clone_from(value()?),
            flag if flag.starts_with('-') => return Err(Fail::argument("new-plugin", flag)),
            name if found.name.is_empty() => found.name = name.into(),
            _ => return Err(Fail::usage("more than one name")),
        }
    }
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let is_name = found.name.starts_with(|c: char| c.is_ascii_lowercase()) && found.name.chars().all(letter);
    if !is_name || found.name.len() > 64 {
        let rule = "a letter, then lower-case letters, digits, `_` and `-`, 64 at most";
        return Err(Fail::usage(format!("`{}` is no name for a plugin: {rule}", found.name)));
    }
    if found.vendor.contains(['"', '\\', '\n']) || found.vendor.len() > 256 {
        return Err(Fail::usage("a vendor is one line without quotes, 256 bytes at most"));
    }
    Ok(found)
}

fn filled(template: &str, args: &Args, root: &Path) -> String {
    let path = |crate_path: &str| format!("path = {:?}", root.join(crate_path));
    template
        .replace("@NAME@", &args.name)
        .replace("@CRATE@", &args.name.replace('-', "_"))
        .replace("@VENDOR@", &args.vendor)
        .replace("@FILE@", &format!("lib{}.so", args.name))
        .replace("@INCLUDE@", ".")
        .replace("@CORE@", &path("core"))
        .replace("@ABI@", &path("plugins/abi"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_ids_are_refused() {
        let name = |name: &str| parse(&[name.to_owned()]).is_ok();
        assert!(name("npu") && name("my-npu_2"));
        assert!(!name("") && !name("Npu") && !name("2npu") && !name("a b") && !name("../x") && !name("ä"));
    }

    #[test]
    fn nothing_of_a_template_is_left_unfilled() {
        let args = parse(&["npu-x".to_owned()]).expect("a name");
        for (file, template) in RUST.iter().chain(C) {
            let text = filled(template, &args, Path::new("/somewhere"));
            let left: Vec<_> = text.match_indices('@').collect();
            assert!(*file == "Makefile" || left.is_empty(), "{file}: {left:?}");
        }
    }
}
