//! `wharf list`.

use crate::{
    cli::{Global, ListArgs},
    filter::{Filter, sort},
    out::{Failure, Out, Table, note, push, safe, safe_into},
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
    let mut table = Table::new(&["NAME", "TYPE", "SHAPE", "BYTES", "OFFSET"]);
    tensors.iter().for_each(|tensor| row(&mut table, tensor, &parameters, out));
    out.rows(&table, &[3, 4])
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

fn row(table: &mut Table, tensor: &Tensor<'_>, parameters: &Parameters, out: &Out) {
    match tensor.scope {
        "" => table.cell(|text| safe_into(text, tensor.name)),
        _ => table.cell(|text| text.push_str(&full_name(tensor))),
    }
    // Where the format has types there is nothing to look for, nor to copy.
    let described = if tensor.dtype.is_none() { typed(parameters, tensor) } else { Typed::default() };
    table.cell(|text| text.push_str(tensor.dtype.or(described.dtype).unwrap_or("-")));
    table.cell(|text| shape_into(text, tensor.shape.or(described.shape.as_deref())));
    table.cell(|text| out.size_into(text, tensor.bytes));
    table.cell(|text| match &tensor.place {
        TensorPlace::Offset(offset) => push(text, *offset),
        TensorPlace::Splat(pattern) => {
            text.push_str("splat ");
            text.push_str(&hex(pattern));
        }
        TensorPlace::External(path, offset) => {
            push(text, *offset);
            text.push_str(" in ");
            text.push_str(&safe(&path.display().to_string()));
        }
    });
}

/// A shape without blanks.
pub(crate) fn shape_text(shape: Option<&[u64]>) -> String {
    let mut text = String::new();
    shape_into(&mut text, shape);
    text
}

fn shape_into(text: &mut String, shape: Option<&[u64]>) {
    let Some(shape) = shape else { return text.push('-') };
    text.push('[');
    for (number, dim) in shape.iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        push(text, *dim);
    }
    text.push(']');
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
