//! Which archives and which tensors a command line means.

use crate::{
    cli::FilesArgs,
    out::{Failure, safe},
};
use std::path::Path;
use wharf::{Error, ErrorKind, Mode, Parameters, Tensor, near};

/// The archives that the arguments name.
pub(crate) fn open(args: &FilesArgs) -> Result<Parameters, Failure> {
    let mut parameters = Parameters::default();
    for given in &args.files {
        let (scope, file) = scoped(given);
        parameters.add(scope, file, Mode::Read)?;
    }
    Ok(parameters)
}

/// `scope=FILE`, unless a file of the whole name is there.
fn scoped(given: &str) -> (&str, &str) {
    match given.split_once('=') {
        Some((scope, file)) if !Path::new(given).exists() && !scope.contains(['/', '\\']) => (scope, file),
        _ => ("", given),
    }
}

/// Which names `--include` lets through.
pub(crate) struct Include(Vec<glob::Pattern>);

impl Include {
    pub(crate) fn new(globs: &[String]) -> Result<Self, Failure> {
        let pattern = |glob: &String| {
            let bad = |error| Error::new(ErrorKind::Usage, format!("--include {}: {error}", safe(glob)));
            glob::Pattern::new(glob).map_err(bad)
        };
        Ok(Include(globs.iter().map(pattern).collect::<Result<_, _>>()?))
    }
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| pattern.matches(name))
    }
}

/// A tensor's name as the library takes it.
pub(crate) fn name_of(tensor: &Tensor<'_>) -> String {
    if tensor.scope.is_empty() {
        tensor.name.to_owned()
    } else {
        format!("{}::{}", tensor.scope, tensor.name)
    }
}

/// Scope and name, safe to print.
pub(crate) fn full_name(tensor: &Tensor<'_>) -> String {
    safe(&name_of(tensor))
}

/// The tensors that a word of the command line means: those of that very name, with or without scope, else those that
/// it matches as a glob. None is an error with near names.
pub(crate) fn meant(option: &str, word: &str, tensors: &[Tensor<'_>]) -> Result<Vec<usize>, Error> {
    let all = |takes: &dyn Fn(&Tensor<'_>) -> bool| -> Vec<usize> {
        tensors.iter().enumerate().filter(|(_, tensor)| takes(tensor)).map(|(number, _)| number).collect()
    };
    let exact = all(&|tensor| tensor.name == word || name_of(tensor) == word);
    if !exact.is_empty() {
        return Ok(exact);
    }
    let globbed = match glob::Pattern::new(word) {
        Ok(pattern) => all(&|tensor| pattern.matches(tensor.name)),
        Err(_) => vec![],
    };
    if globbed.is_empty() {
        return Err(no_such(option, word, tensors.iter().map(|tensor| tensor.name)));
    }
    Ok(globbed)
}

/// The error about a name that an option gives.
pub(crate) fn no_such<'a>(option: &str, name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    let there = near::there_are(name, "tensors", names);
    let message = format!("{option} {}: no such tensor{there}", safe(name));
    Error::new(ErrorKind::NoSuchTensor, message).next("`wharf list FILE` lists them all")
}
