//! `demo`: the whole way on a device, from an archive through kernels to checked results.

use crate::{
    fail::{Fail, Outcome},
    plugins, shell,
    workspace::Workspace,
};
use std::{path::PathBuf, process::Command};

pub(crate) const LINE: &str = "run the digits model through the command on a device";
pub(crate) const HELP: &str = "\
Builds the plugins and the command in release, then runs `wharf demo` over the digits model and ends with its code.

  --archive FORMAT      safetensors (the default), gguf or irpa
  --device DEVICE       host:0 unless given; the kernels are those of its backend";

/// The formats that the model of the demo is stored in.
pub(crate) const FORMATS: [&str; 3] = ["safetensors", "gguf", "irpa"];
/// The package of the command.
pub(crate) const CLI: &str = "wharf-cli";

pub(crate) fn main(args: &[String]) -> Outcome {
    let (mut format, mut device) = (FORMATS[0].to_owned(), "host:0".to_owned());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let value = match arg.as_str() {
            "--archive" => &mut format,
            "--device" => &mut device,
            other => return Err(Fail::argument("demo", other)),
        };
        *value = args.next().ok_or_else(|| Fail::usage(format!("{arg} needs a value")))?.clone();
    }
    if !FORMATS.contains(&format.as_str()) {
        return Err(Fail::usage(format!("no archive in `{format}`; there is {}", FORMATS.join(", "))));
    }
    let workspace = Workspace::read()?;
    let built = plugins::build(&workspace, true)?;
    let image = built.image(device.split(':').next().unwrap_or_default())?;
    let mut demo = Command::new(build_command(&workspace)?);
    let digits = PathBuf::from("tests/fixtures/digits");
    demo.current_dir(&workspace.root)
        .arg("--plugin-path")
        .arg(&built.plugins)
        .arg("demo")
        .arg("--archive")
        .arg(digits.join(format!("digits.{format}")))
        .arg("--kernels")
        .arg(image)
        .arg("--expect")
        .arg(digits.join("expected.json"))
        .args(["--device", &device]);
    match shell::status(&mut demo)? {
        0 => Ok(()),
        code => Err(Fail { code: u8::try_from(code).unwrap_or(1), message: String::new() }),
    }
}

/// Builds the command in release and answers where it is.
pub(crate) fn build_command(workspace: &Workspace) -> Result<PathBuf, Fail> {
    if !workspace.has(CLI) {
        return Err(Fail::new(format!("the workspace has no package {CLI}")));
    }
    let mut build = shell::cargo(&workspace.root);
    build.args(["build", "--release", "--quiet", "--package", CLI]);
    match shell::status(&mut build)? {
        0 => Ok(workspace.target.join("release").join(format!("wharf{}", std::env::consts::EXE_SUFFIX))),
        _ => Err(Fail::new(format!("{CLI} does not build"))),
    }
}
