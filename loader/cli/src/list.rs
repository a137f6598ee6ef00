//! `wharf list`.

use crate::{
    cli::{Global, ListArgs},
    filter::{Filter, sort},
    out::{Failure, Out, note, safe},
    select::{Include, full_name, open},
    typed::{Typed, typed},
};
use serde_json::{Value, json};
use wharf::{ArchiveFile, Parameters, Tensor, TensorPlace};

pub(crate) fn run(global: &Global, args: &ListArgs, out: &mut Out) -> Result<(), Failure> {
    let (include, filter) = (Include::new(&args.files.include)?, Filter::new(&args.filter)?);
    let parameters = open(&args.files)?;
    let takes = |tensor: &Tensor<'_>| {
        include.takes(tensor.name)
            && (args.filter.is_empty() || filter.takes(tensor, &typed(&parameters, tensor)))
    };
    let mut tensors: Vec<Tensor<'_>> = parameters.tensors().filter(takes).collect();
    if let Some(by) = args.sort {
        sort(&mut tensors, by);
    }
    if out.json() {
        let files: Vec<Value> =
            parameters.files().map(|(scope, file)| file_json(scope, file, &parameters, &tensors)).collect();
        return out.value(json!({"files": files}));
    }
    for (_, file) in parameters.files() {
        if let Some(part) = file.index().part() {
            let file = safe(&file.path().display().to_string());
            note(&format!("note: {file} is part {} of {}", part.number, part.count));
        }
    }
    if args.iree {
        return iree(&tensors, out);
    }
    if global.quiet {
        return tensors.iter().try_for_each(|tensor| out.line(&full_name(tensor)));
    }
    let rows: Vec<Vec<String>> =
        tensors.iter().map(|tensor| row(tensor, &typed(&parameters, tensor), out)).collect();
    out.table(&["NAME", "TYPE", "SHAPE", "BYTES", "OFFSET"], &rows, &[3, 4])
}

/// The text of IREE's tools, a block for each scope, to the letter; but names are escaped.
fn iree(tensors: &[Tensor<'_>], out: &mut Out) -> Result<(), Failure> {
    let mut scopes: Vec<&str> = vec![];
    for tensor in tensors {
        if !scopes.contains(&tensor.scope) {
            scopes.push(tensor.scope);
        }
    }
    for scope in scopes {
        let own = || tensors.iter().filter(|tensor| tensor.scope == scope);
        let name = if scope.is_empty() { "<global>".to_owned() } else { format!("`{}`", safe(scope)) };
        let bytes = own().fold(0_u64, |sum, tensor| sum.saturating_add(tensor.bytes));
        let (rule, dashes) = ("-".repeat(110), "-".repeat(12));
        let (column, last) = ("-".repeat(18), "-".repeat(59));
        out.line(&format!("//==={rule}===//"))?;
        out.line(&format!("// Parameter scope {name} ({} entries, {bytes} total bytes)", own().count()))?;
        out.line(&format!("//==={dashes}+{column}+{column}+{last}===//"))?;
        out.line("//         Start |              End |           Length | Key")?;
        out.line(&format!("//---{dashes}+{column}+{column}+{last}---//"))?;
        for tensor in own() {
            let (begin, end) = match tensor.place {
                TensorPlace::Offset(at) | TensorPlace::External(_, at) => {
                    (at.to_string(), at.saturating_add(tensor.bytes).to_string())
                }
                TensorPlace::Splat(_) => ("-".into(), "-".into()),
            };
            out.line(&format!("{begin:>16} | {end:>16} | {:>16} | `{}`", tensor.bytes, safe(tensor.name)))?;
        }
        out.line("")?;
    }
    Ok(())
}

fn file_json(scope: &str, file: &ArchiveFile, parameters: &Parameters, tensors: &[Tensor<'_>]) -> Value {
    let own = tensors.iter().filter(|tensor| tensor.file == file.path() && tensor.scope == scope);
    let own: Vec<Value> = own.map(|tensor| tensor_json(tensor, &typed(parameters, tensor))).collect();
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

fn row(tensor: &Tensor<'_>, typed: &Typed, out: &Out) -> Vec<String> {
    let shape = shape_text(typed.shape.as_deref());
    let place = match &tensor.place {
        TensorPlace::Offset(offset) => offset.to_string(),
        TensorPlace::Splat(pattern) => format!("splat {}", hex(pattern)),
        TensorPlace::External(path, offset) => format!("{offset} in {}", safe(&path.display().to_string())),
    };
    vec![full_name(tensor), typed.dtype.unwrap_or("-").into(), shape, out.size(tensor.bytes), place]
}

/// A shape without blanks.
pub(crate) fn shape_text(shape: Option<&[u64]>) -> String {
    shape.map_or_else(|| "-".into(), |shape| format!("{shape:?}").replace(' ', ""))
}

pub(crate) fn tensor_json(tensor: &Tensor<'_>, typed: &Typed) -> Value {
    let mut value = json!({
        "name": tensor.name, "dtype": typed.dtype, "shape": typed.shape, "bytes": tensor.bytes,
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
