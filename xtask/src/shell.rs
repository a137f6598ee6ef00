//! Running other programs: what is run is shown, how it ended is told.

use crate::fail::{During, Fail, Outcome};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Cargo as this program was started by it, in the folder `root`.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Shows the command line and runs it.
pub(crate) fn run(command: &mut Command) -> Outcome {
    eprintln!("$ {}", line(command));
    let code = status(command)?;
    if code == 0 { Ok(()) } else { Err(Fail::new(format!("`{}` ended with {code}", line(command)))) }
}

/// Runs a command and answers its exit code; 128 and the signal's number if a signal ended it.
pub(crate) fn status(command: &mut Command) -> Result<i32, Fail> {
    let status = command.status().during(format!("cannot start `{}`", line(command)))?;
    Ok(code(status))
}

/// What a command writes to its standard output; its errors go where ours go.
pub(crate) fn output(command: &mut Command) -> Result<String, Fail> {
    let output =
        command.stderr(Stdio::inherit()).output().during(format!("cannot start `{}`", line(command)))?;
    if !output.status.success() {
        return Err(Fail::new(format!("`{}` ended with {}", line(command), code(output.status))));
    }
    String::from_utf8(output.stdout).during(format!("`{}` writes no UTF-8", line(command)))
}

/// Where a program is in `PATH`.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// A command as a shell would take it, the program by its name alone.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
