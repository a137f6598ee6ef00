//! `wharf list`.

use crate::{
    cli::{FilesArgs, Global},
    out::{Failure, Out, note, safe},
};
use serde_json::{Value, json};
use std::path::Path;
use wharf::{ArchiveFile, Error, ErrorKind, Mode, Parameters, Tensor, TensorPlace};

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

pub(crate) fn run(global: &Global, args: &FilesArgs, out: &mut Out) -> Result<(), Failure> {
    let parameters = open(args)?;
    let include = Include::new(&args.include)?;
    let tensors: Vec<Tensor<'_>> = parameters.tensors().filter(|tensor| include.takes(tensor.name)).collect();
    if out.json() {
        let files: Vec<Value> =
            parameters.files().map(|(scope, file)| file_json(scope, file, &tensors)).collect();
        return out.value(json!({"files": files}));
    }
    for (_, file) in parameters.files() {
        if let Some(part) = file.index().part() {
            note(&format!(
                "note: {} is part {} of {}",
                safe(&file.path().display().to_string()),
                part.number,
                part.count
            ));
        }
    }
    if global.quiet {
        return tensors.iter().try_for_each(|tensor| out.line(&full_name(tensor)));
    }
    let rows: Vec<Vec<String>> = tensors.iter().map(|tensor| row(tensor, out)).collect();
    out.table(&["NAME", "TYPE", "SHAPE", "BYTES", "OFFSET"], &rows, &[3, 4])
}

fn file_json(scope: &str, file: &ArchiveFile, tensors: &[Tensor<'_>]) -> Value {
    let own = tensors.iter().filter(|tensor| tensor.file == file.path() && tensor.scope == scope);
    let own: Vec<Value> = own.map(tensor_json).collect();
    let mut value = json!({
        "file": file.path().display().to_string(), "format": file.index().format().name(), "tensors": own,
    });
    if !scope.is_empty() {
        value["scope"] = json!(scope);
    }
    if let Some(part) = file.index().part() {
        value["part"] = json!({"number": part.number, "count": part.count});
    }
    value
}

/// Scope and name, safe to print.
pub(crate) fn full_name(tensor: &Tensor<'_>) -> String {
    if tensor.scope.is_empty() {
        safe(tensor.name)
    } else {
        format!("{}::{}", safe(tensor.scope), safe(tensor.name))
    }
}

fn row(tensor: &Tensor<'_>, out: &Out) -> Vec<String> {
    let shape = tensor.shape.map_or_else(|| "-".into(), |shape| format!("{shape:?}").replace(' ', ""));
    let place = match &tensor.place {
        TensorPlace::Offset(offset) => offset.to_string(),
        TensorPlace::Splat(pattern) => format!("splat {}", hex(pattern)),
        TensorPlace::External(path, offset) => format!("{offset} in {}", safe(&path.display().to_string())),
    };
    vec![full_name(tensor), tensor.dtype.unwrap_or("-").into(), shape, out.size(tensor.bytes), place]
}

fn tensor_json(tensor: &Tensor<'_>) -> Value {
    let mut value = json!({
        "name": tensor.name, "dtype": tensor.dtype, "shape": tensor.shape, "bytes": tensor.bytes,
    });
    match &tensor.place {
        TensorPlace::Offset(offset) => value["offset"] = json!(offset),
        TensorPlace::Splat(pattern) => value["splat"] = json!(hex(pattern)),
        TensorPlace::External(path, offset) => {
            value["external"] = json!(path.display().to_string());
            value["offset"] = json!(offset);
        }
    }
    value
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
