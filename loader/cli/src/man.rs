//! `wharf man`: the manual from the words of the command line.

use crate::{
    cli::Cli,
    out::{Failure, Out, note, safe},
};
use clap::CommandFactory;
use std::{fs, io, path::Path};
use wharf::{Error, ErrorKind, near};

pub(crate) fn run(verb: Option<&str>, dir: Option<&Path>, out: &mut Out) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    if let Some(dir) = dir {
        let pages = command.get_subcommands().filter(|verb| verb.get_name() != "help").cloned();
        let pages: Vec<clap::Command> = pages.collect();
        for page in std::iter::once(command).chain(pages) {
            let name = page.get_display_name().unwrap_or_else(|| page.get_name()).replace(' ', "-");
            let path = dir.join(format!("{name}.1"));
            let text = render(page).map_err(|error| failed(&path, &error))?;
            fs::write(&path, text).map_err(|error| failed(&path, &error))?;
            note(&format!("wrote {}", path.display()));
        }
        return Ok(());
    }
    let page = match verb {
        None => command,
        Some(verb) => match command.find_subcommand(verb) {
            Some(page) => page.clone(),
            None => {
                let known =
                    near::there_are(verb, "verbs", command.get_subcommands().map(clap::Command::get_name));
                return Err(Error::new(ErrorKind::Usage, format!("no verb `{}`{known}", safe(verb))).into());
            }
        },
    };
    let text = render(page).map_err(|error| failed(Path::new("the manual"), &error))?;
    out.text(&String::from_utf8_lossy(&text))
}

fn render(page: clap::Command) -> io::Result<Vec<u8>> {
    let mut text = vec![];
    clap_mangen::Man::new(page).render(&mut text)?;
    Ok(text)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let kind = if error.kind() == io::ErrorKind::NotFound { ErrorKind::NoSuchFile } else { ErrorKind::Io };
    Error::new(kind, format!("{}: cannot be written: {error}", path.display())).in_file(path)
}
