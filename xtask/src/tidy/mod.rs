//! `tidy`: what the house style asks for and no compiler checks.
//!
//! - [`edges`]: which of our crates may name which, and who may name what from outside.
//! - [`rust`]: rules on one Rust file.
//! - [`files`]: rules on any file, and on what has to be committed.
//! - [`source`]: a Rust file taken apart.

mod edges;
mod files;
mod rust;
mod source;

use crate::{
    fail::{During, Fail, Outcome},
    shell,
    workspace::Workspace,
};
use std::{fmt, fs, process::Command};

pub(crate) const LINE: &str = "check what the house style asks for";
pub(crate) const HELP: &str = "\
Checks, over the files that git knows or would take:
  - the dependencies between our crates, and who names abi_stable and libloading
  - the length of files (800 lines without tests) and functions (70 lines); files that are generated say so on line one
  - that modules open with `//!`, and with a `# Safety` section where they allow unsafe code
  - that nothing unfinished is left, no path of one machine, every package has a licence, Cargo.lock is committed

Each finding is one line: file, line, what is wrong, why it matters.";

/// One thing that is not as it must be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    what: String,
    why: &'static str,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>, why: &'static str) -> Self {
        Finding { path: path.to_owned(), line, what: what.into(), why }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.why)
    }
}

pub(crate) fn main(args: &[String]) -> Outcome {
    if let Some(arg) = args.first() {
        return Err(Fail::argument("tidy", arg));
    }
    let workspace = Workspace::read()?;
    let mut packages = workspace.members.clone();
    packages.extend(workspace.outside()?);
    let files = listed(&workspace)?;
    let mut found = edges::check(&packages);
    found.extend(files::licences(&packages));
    found.extend(files::locks(&workspace.outside()?, &files));
    for path in &files {
        // A file that git knows and that was removed, a link, or bytes that are no text.
        let Ok(text) = fs::read_to_string(workspace.root.join(path)) else { continue };
        found.extend(files::machine_paths(path, &text));
        if path.ends_with(".rs") {
            found.extend(rust::check(path, &text));
        }
    }
    found.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    for finding in &found {
        println!("{finding}");
    }
    match found.len() {
        0 => {
            println!("tidy: {} files, {} packages: nothing found", files.len(), packages.len());
            Ok(())
        }
        count => Err(Fail::new(format!("{count} to tidy up"))),
    }
}

/// The files that git knows, and those it would take.
fn listed(workspace: &Workspace) -> Result<Vec<String>, Fail> {
    let mut git = Command::new("git");
    git.current_dir(&workspace.root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = shell::output(&mut git).during("tidy looks at what git knows")?;
    Ok(list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}
