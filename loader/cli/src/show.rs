//! `wharf show`.

use crate::{
    cli::ShowArgs,
    list::{hex, shape_text, tensor_json},
    out::{Failure, Out, safe},
    progress::Progress,
    select::full_name,
    typed::{Typed, typed},
    values::{Reader, Scalar, Summary},
};
use serde_json::{Value, json};
use wharf::{Content, Error, ErrorKind, Parameters, Tensor, TensorPlace, archive::Dtype, near};

pub(crate) fn run(args: &ShowArgs, out: &mut Out) -> Result<(), Failure> {
    let parameters = Parameters::open(&args.file)?;
    let tensor = parameters.find(&args.name)?;
    let typed = match &args.dtype {
        None => typed(&parameters, &tensor),
        Some(name) => given(name, &tensor)?,
    };
    let content = parameters.content(&tensor)?;
    let big = parameters.files().any(|(_, file)| file.path() == tensor.file && file.index().big_endian());
    let reader = typed.dtype.and_then(|dtype| Reader::new(dtype, big));
    let shown = Shown { args, parameters: &parameters, tensor: &tensor, typed: &typed, content: &content };
    let values = match reader {
        Some(reader) => Some(shown.values(reader)?),
        None => None,
    };
    if out.json() { out.value(shown.json(values.as_ref())?) } else { shown.text(values.as_ref(), out) }
}

/// The type of `--as`, with as many elements as the bytes make.
fn given(name: &str, tensor: &Tensor<'_>) -> Result<Typed, Error> {
    let upper = name.to_uppercase();
    let Some(dtype) = Dtype::from_name(&upper) else {
        let known = near::there_are(name, "types", Dtype::all().map(Dtype::name));
        return Err(Error::new(ErrorKind::Usage, format!("--as {}: no such type{known}", safe(name))));
    };
    let elements = dtype.block_bytes().map(|bytes| tensor.bytes / bytes * dtype.block_elements());
    let fits = elements.filter(|elements| dtype.bytes(&[*elements]) == Ok(tensor.bytes));
    let Some(elements) = fits else {
        let message = format!("--as {upper}: {} bytes are no whole number of such elements", tensor.bytes);
        return Err(Error::new(ErrorKind::Usage, message));
    };
    let shape = if tensor.dtype.is_some() { tensor.shape.map(<[u64]>::to_vec) } else { None };
    Ok(Typed { dtype: Some(dtype.name()), shape: shape.or(Some(vec![elements])) })
}

/// What is shown.
struct Shown<'a> {
    args: &'a ShowArgs,
    parameters: &'a Parameters,
    tensor: &'a Tensor<'a>,
    typed: &'a Typed,
    content: &'a Content<'a>,
}

/// The first values, and what all come to.
struct Values {
    first: Vec<Scalar>,
    summary: Summary,
}

impl Shown<'_> {
    fn values(&self, reader: Reader) -> Result<Values, Error> {
        let head = self.content.head(self.args.head.saturating_mul(reader.size as u64))?;
        let progress = Progress::new(self.content.len());
        let summary = reader.sum_up(self.content, |bytes| progress.more(bytes))?;
        Ok(Values { first: reader.scalars(&head).collect(), summary })
    }

    fn metadata(&self) -> Option<String> {
        let bytes = self.parameters.metadata(self.tensor);
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
    }

    fn json(&self, values: Option<&Values>) -> Result<Value, Error> {
        let mut value = tensor_json(self.tensor, self.typed);
        value["file"] = json!(self.tensor.file.display().to_string());
        value["hex"] = json!(hex(&self.content.head(self.args.head)?));
        value["metadata"] = json!(self.metadata());
        value["values"] = json!(null);
        if let Some(Values { first, summary }) = values {
            let first: Vec<Value> = first.iter().map(|value| value.json()).collect();
            value["values"] = json!({
                "first": first, "min": summary.least.map(Scalar::json), "max": summary.greatest.map(Scalar::json),
                "mean": summary.mean(), "nan": summary.nan, "infinite": summary.infinite,
            });
        }
        Ok(value)
    }

    fn text(&self, values: Option<&Values>, out: &mut Out) -> Result<(), Failure> {
        let Shown { tensor, typed, .. } = self;
        let place = match &tensor.place {
            TensorPlace::Offset(offset) if offset % 64 == 0 => format!("at {offset}"),
            TensorPlace::Offset(offset) => {
                format!("at {offset}, a multiple of {} only", 1_u64 << offset.trailing_zeros().min(63))
            }
            TensorPlace::Splat(pattern) => format!("nowhere: a splat of {}", hex(pattern)),
            TensorPlace::External(path, offset) => {
                format!("at {offset} in {}", safe(&path.display().to_string()))
            }
        };
        let mut facts = vec![
            ("file", safe(&tensor.file.display().to_string())),
            ("type", typed.dtype.unwrap_or("none: the archive names no type (--as reads it as one)").into()),
            ("shape", shape_text(typed.shape.as_deref())),
            ("bytes", out.size(tensor.bytes)),
            ("stored", place),
        ];
        facts.extend(self.metadata().map(|text| ("metadata", safe(&text))));
        facts.push(("hex", spaced(&self.content.head(self.args.head)?)));
        match values {
            Some(Values { first, summary }) => {
                let or_dash = |value: Option<Scalar>| value.map_or_else(|| "-".into(), |v| v.to_string());
                let first: Vec<String> = first.iter().map(ToString::to_string).collect();
                facts.push(("values", first.join(" ")));
                facts.push(("min", or_dash(summary.least)));
                facts.push(("max", or_dash(summary.greatest)));
                facts.push(("mean", or_dash(summary.mean().map(Scalar::Float))));
                facts.push(("no numbers", format!("{} nan, {} infinite", summary.nan, summary.infinite)));
            }
            None if typed.dtype.is_some() => {
                facts.push(("values", "not shown: elements of this type are packed".into()));
            }
            None => {}
        }
        out.line(&full_name(tensor))?;
        facts.iter().try_for_each(|(name, value)| out.line(format!("  {name:<12} {value}").trim_end()))
    }
}

fn spaced(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.chunks(4).map(hex).collect();
    pairs.join(" ")
}
