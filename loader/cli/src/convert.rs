//! `wharf convert`.

use crate::{
    cli::{ConvertArgs, Global},
    hash::SPLAT_BYTES_MAX,
    literal::Element,
    out::{Failure, Out, human, note, safe},
    progress::Progress,
    select::{Include, full_name, meant, name_of, no_such, open},
    typed::{metadata, typed},
};
use serde_json::json;
use std::{collections::HashMap, path::Path};
use wharf::{
    Content, Error, ErrorKind, NewArchive, NewTensor, Parameters, Tensor, TensorPlace, Written,
    archive::{Archive, Class, Format, Input},
};

pub(crate) fn run(global: &Global, args: &ConvertArgs, out: &mut Out) -> Result<(), Failure> {
    let format = output_format(&args.output)?;
    let include = Include::new(&args.files.include)?;
    if format != Format::Irpa && (args.strip || !args.splat.is_empty() || args.types) {
        let message = "--strip, --splat and --types need an .irpa file: no other format has splats";
        return Err(Error::new(ErrorKind::Usage, message).into());
    }
    let parameters = open(&args.files)?;
    parameters.whole_sets()?;
    let all: Vec<Tensor<'_>> = parameters.tensors().collect();
    let plan = Plan::new(args, &all)?;
    let kept = |(number, tensor): &(usize, &Tensor<'_>)| {
        include.takes(tensor.name) && !plan.excluded.contains(number)
    };
    let kept: Vec<(usize, &Tensor<'_>)> = all.iter().enumerate().filter(kept).collect();
    if kept.is_empty() && !all.is_empty() {
        let globs = args.files.include.join(", ");
        let error = match globs.is_empty() {
            true => Error::new(ErrorKind::Usage, "every tensor is excluded: nothing would be left"),
            false => no_such("--include", &globs, all.iter().map(|tensor| tensor.name)),
        };
        return Err(error.into());
    }
    order(&parameters, &kept, format)?;
    let tensors = kept.into_iter().map(|(number, tensor)| plan.tensor(&parameters, number, tensor, format));
    let archive = NewArchive {
        format,
        alignment: args.align.unwrap_or_else(|| wharf::alignment(format)),
        metadata: pairs(&parameters, format),
        tensors: tensors.collect::<Result<_, _>>()?,
    };
    let progress = Progress::new(archive.copied());
    let written = archive.write(&args.output, &parameters, |bytes| progress.more(bytes))?;
    drop(progress);
    wrote(global, &args.output, format, &written, out)
}

/// The format that a file's name asks for.
pub(crate) fn output_format(path: &Path) -> Result<Format, Error> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("irpa") => Ok(Format::Irpa),
        Some("safetensors") => Ok(Format::Safetensors),
        other => {
            let what =
                if other == Some("gguf") { "GGUF is read, not written" } else { "its name says no format" };
            let message = format!("{}: {what}", path.display());
            Err(Error::new(ErrorKind::Usage, message)
                .in_file(path)
                .next("name it OUT.irpa or OUT.safetensors"))
        }
    }
}

pub(crate) fn wrote(
    global: &Global,
    path: &Path,
    format: Format,
    written: &Written,
    out: &mut Out,
) -> Result<(), Failure> {
    let Written { tensors, bytes, file_bytes } = *written;
    if out.json() {
        return out.value(json!({
            "file": path.display().to_string(), "format": format.name(), "tensors": tensors, "bytes": bytes,
            "file_bytes": file_bytes,
        }));
    }
    if global.quiet {
        return Ok(());
    }
    let (bytes, file_bytes) = (out.size(bytes), out.size(file_bytes));
    out.line(&format!("{}: {tensors} tensors, {bytes}; file {file_bytes}", safe(&path.display().to_string())))
}

/// Data of big-endian files is not swapped, so it must not go where its order is fixed.
fn order(parameters: &Parameters, kept: &[(usize, &Tensor<'_>)], format: Format) -> Result<(), Error> {
    for (_, file) in parameters.files().filter(|(_, file)| file.index().big_endian()) {
        let Some((_, tensor)) = kept.iter().find(|(_, tensor)| tensor.file == file.path()) else { continue };
        let path = file.path();
        if format == Format::Irpa {
            note(&format!(
                "note: {} is big-endian; its data is copied as it is",
                safe(&path.display().to_string())
            ));
            continue;
        }
        let message = format!(
            "{}: unsupported_endianness: the data of `{}` is big-endian, {} is little-endian",
            path.display(),
            full_name(tensor),
            format.name()
        );
        let error = Error::new(ErrorKind::Archive(Class::UnsupportedEndianness), message).in_file(path);
        return Err(error.next("an .irpa file takes it as it is"));
    }
    Ok(())
}

/// Metadata of the inputs that the output can keep; says what it cannot.
fn pairs(parameters: &Parameters, format: Format) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = vec![];
    for (_, file) in parameters.files() {
        let count = file.index().metadata().len();
        let path = safe(&file.path().display().to_string());
        match Archive::open(Input::whole(file.bytes())) {
            Ok(Archive::Safetensors(own)) if format == Format::Safetensors => {
                for (key, value) in own.metadata().filter_map(Result::ok) {
                    let (key, value): (String, String) = (key.chars().collect(), value.chars().collect());
                    match pairs.iter().find(|(known, _)| *known == key) {
                        None => pairs.push((key, value)),
                        Some((_, known)) if *known == value => {}
                        Some(_) => {
                            note(&format!("note: metadata `{}` of {path} differs from the first", safe(&key)))
                        }
                    }
                }
            }
            _ if count > 0 => {
                note(&format!("note: {count} entries of metadata of {path} are not carried over"));
            }
            _ => {}
        }
    }
    pairs
}

/// What the options mean for these tensors.
struct Plan<'a> {
    args: &'a ConvertArgs,
    excluded: Vec<usize>,
    names: HashMap<usize, String>,
    splats: HashMap<usize, Vec<u8>>,
}

impl<'a> Plan<'a> {
    fn new(args: &'a ConvertArgs, all: &[Tensor<'_>]) -> Result<Self, Error> {
        let mut plan = Plan { args, excluded: vec![], names: HashMap::new(), splats: HashMap::new() };
        for name in &args.exclude {
            plan.excluded.extend(meant("--exclude", name, all)?);
        }
        for text in &args.rename {
            let (number, new) = rename(text, all)?;
            if plan.names.insert(number, new).is_some() {
                let message = format!("--rename {}: this tensor is renamed twice", safe(text));
                return Err(Error::new(ErrorKind::Usage, message));
            }
        }
        for text in &args.splat {
            let (number, pattern) = splat(text, all)?;
            if plan.splats.insert(number, pattern).is_some() {
                let message = format!("--splat {}: this tensor is given twice", safe(text));
                return Err(Error::new(ErrorKind::Usage, message));
            }
        }
        Ok(plan)
    }

    fn tensor<'p>(
        &self,
        parameters: &'p Parameters,
        number: usize,
        tensor: &Tensor<'p>,
        format: Format,
    ) -> Result<NewTensor<'p>, Error> {
        let typed = typed(parameters, tensor);
        let zero = self.args.strip.then_some(&[0_u8][..]);
        let content = match self.splats.get(&number).map(Vec::as_slice).or(zero) {
            None => parameters.content(tensor)?,
            Some(pattern) => Content::splat(pattern, tensor.bytes).ok_or_else(|| {
                let (name, len) = (full_name(tensor), pattern.len());
                let message = format!(
                    "--splat {name}: its {} bytes are no multiple of the value's {len}",
                    tensor.bytes
                );
                Error::new(ErrorKind::Usage, message)
            })?,
        };
        let expanded = format != Format::Irpa && matches!(tensor.place, TensorPlace::Splat(_));
        if expanded && tensor.bytes > SPLAT_BYTES_MAX {
            let size = human(tensor.bytes);
            let message = format!("`{}` is a splat of {size}: too long to be stored", full_name(tensor));
            return Err(Error::new(ErrorKind::OutOfMemory, message).next("--exclude leaves it out"));
        }
        let mut own = parameters.metadata(tensor).to_vec();
        if own.is_empty() && self.args.types {
            own = metadata(&typed).unwrap_or_default();
        }
        Ok(NewTensor {
            name: self.names.get(&number).cloned().unwrap_or_else(|| tensor.name.to_owned()),
            dtype: typed.dtype,
            shape: typed.shape.unwrap_or_default(),
            metadata: own,
            content,
            stored: false,
        })
    }
}

/// The one tensor that a name means.
fn one(option: &str, name: &str, all: &[Tensor<'_>]) -> Option<Result<usize, Error>> {
    let found: Vec<usize> =
        (0..all.len()).filter(|at| name_of(&all[*at]) == name || all[*at].name == name).collect();
    match found.as_slice() {
        [] => None,
        [one] => Some(Ok(*one)),
        [first, ..] => {
            let message = format!("{option} {}: {} tensors have this name", safe(name), found.len());
            let advice = format!("name its scope: `{}`", full_name(&all[*first]));
            Some(Err(Error::new(ErrorKind::Usage, message).next(advice)))
        }
    }
}

/// The places where a text can be parted at `=`: names may hold one too.
fn parted(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]))
}

fn rename(text: &str, all: &[Tensor<'_>]) -> Result<(usize, String), Error> {
    let option = "--rename";
    let bad = |why: &str| Error::new(ErrorKind::Usage, format!("{option} {}: {why}", safe(text)));
    for (old, new) in parted(text) {
        if let Some(number) = one(option, old, all) {
            if new.is_empty() {
                return Err(bad("the new name is empty"));
            }
            return Ok((number?, new.to_owned()));
        }
    }
    match text.split_once('=') {
        Some((old, _)) => Err(no_such(option, old, all.iter().map(|tensor| tensor.name))),
        None => Err(bad("it is not OLD=NEW")),
    }
}

fn splat(text: &str, all: &[Tensor<'_>]) -> Result<(usize, Vec<u8>), Error> {
    let option = "--splat";
    let bad = |why: String| Error::new(ErrorKind::Usage, format!("{option} {}: {why}", safe(text)));
    if let Some(number) = one(option, text, all) {
        return Ok((number?, vec![0]));
    }
    for (name, value) in parted(text) {
        let Some(number) = one(option, name, all) else { continue };
        let (kind, value) = value.split_once('=').ok_or_else(|| bad("it is not NAME=TYPE=VALUE".into()))?;
        let pattern = Element::new(kind).and_then(|element| element.encode(value)).map_err(bad)?;
        return Ok((number?, pattern));
    }
    let name = text.split('=').next().unwrap_or_default();
    Err(no_such(option, name, all.iter().map(|tensor| tensor.name)))
}
