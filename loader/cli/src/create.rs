//! `wharf create`.

use crate::{
    cli::{CreateArgs, Global},
    convert::{output_format, wrote},
    literal::{Literal, Values},
    out::{Failure, Out, safe},
    progress::Progress,
};
use std::collections::HashSet;
use wharf::{Content, Error, ErrorKind, NewArchive, NewTensor, Parameters, archive::Format};

pub(crate) fn run(global: &Global, args: &CreateArgs, out: &mut Out) -> Result<(), Failure> {
    let format = output_format(&args.output)?;
    if format != Format::Irpa {
        let message = format!("{}: create writes .irpa files only", args.output.display());
        let error = Error::new(ErrorKind::Usage, message).in_file(&args.output);
        return Err(error.next("`wharf convert` makes others of it").into());
    }
    let splats = args.splat.iter().map(|text| tensor("--splat", text, false));
    let data = args.data.iter().map(|text| tensor("--data", text, true));
    let tensors: Vec<NewTensor<'static>> = splats.chain(data).collect::<Result<_, _>>()?;
    let mut names = HashSet::new();
    if let Some(twice) = tensors.iter().find(|tensor| !names.insert(tensor.name.as_str())) {
        let message = format!("the name `{}` is given twice", safe(&twice.name));
        return Err(Error::new(ErrorKind::Usage, message).into());
    }
    let archive = NewArchive { format, alignment: args.alignment, metadata: vec![], tensors };
    let progress = Progress::new(archive.copied());
    let written = archive.write(&args.output, &Parameters::default(), |bytes| progress.more(bytes))?;
    wrote(global, &args.output, format, &written, out)
}

fn tensor(option: &str, text: &str, stored: bool) -> Result<NewTensor<'static>, Error> {
    let bad = |why: String| {
        Error::new(ErrorKind::Usage, format!("{option} {}: {why}", safe(text)))
            .next("`wharf create --help` has examples")
    };
    let literal = Literal::new(text).map_err(bad)?;
    let content = match literal.values {
        Values::One(pattern) => Content::splat(&pattern, literal.len).ok_or_else(|| {
            bad(format!("{} bytes are no multiple of a value's {}", literal.len, pattern.len()))
        })?,
        Values::Each(bytes) if stored => Content::bytes(bytes),
        Values::Each(_) => return Err(bad("a splat has one value".into())),
    };
    Ok(NewTensor { name: literal.name, dtype: None, shape: literal.shape, metadata: vec![], content, stored })
}
