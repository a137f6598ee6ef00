//! `wharf info`.

use crate::{
    cli::FilesArgs,
    out::{Failure, Out, safe},
    select::{Include, open},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wharf::{ArchiveFile, Tensor, TensorPlace};

/// Tensors and bytes of one type.
#[derive(Default)]
struct Sum {
    tensors: u64,
    bytes: u64,
}

pub(crate) fn run(args: &FilesArgs, out: &mut Out) -> Result<(), Failure> {
    let parameters = open(args)?;
    let include = Include::new(&args.include)?;
    let mut values = vec![];
    for (scope, file) in parameters.files() {
        let tensors: Vec<Tensor<'_>> = parameters
            .tensors()
            .filter(|t| t.file == file.path() && t.scope == scope && include.takes(t.name))
            .collect();
        let sums = by_type(&tensors);
        if out.json() {
            values.push(file_json(file, &tensors, &sums));
        } else {
            file_text(file, &tensors, &sums, out)?;
        }
    }
    if out.json() { out.value(json!({"files": values})) } else { Ok(()) }
}

fn by_type(tensors: &[Tensor<'_>]) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for tensor in tensors {
        let kind = match (&tensor.place, tensor.dtype) {
            (TensorPlace::Splat(_), _) => "splat",
            (_, Some(dtype)) => dtype,
            (_, None) => "untyped",
        };
        let sum = sums.entry(kind.into()).or_default();
        sum.tensors += 1;
        sum.bytes = sum.bytes.saturating_add(tensor.bytes);
    }
    sums
}

fn total(tensors: &[Tensor<'_>]) -> u64 {
    tensors.iter().fold(0, |sum, tensor| sum.saturating_add(tensor.bytes))
}

/// Tensors whose offset is not a multiple of 64, which a device may have to copy where it could import.
fn unaligned(tensors: &[Tensor<'_>]) -> usize {
    tensors.iter().filter(|t| matches!(t.place, TensorPlace::Offset(at) if at % 64 != 0)).count()
}

fn version(file: &ArchiveFile) -> String {
    let (major, minor) = file.index().version();
    match file.index().format().name() {
        "irpa" => format!("{major}.{minor}"),
        "safetensors" => "-".into(),
        _ => major.to_string(),
    }
}

fn file_text(
    file: &ArchiveFile,
    tensors: &[Tensor<'_>],
    sums: &BTreeMap<String, Sum>,
    out: &mut Out,
) -> Result<(), Failure> {
    let index = file.index();
    out.line(&safe(&file.path().display().to_string()))?;
    let mut facts = vec![
        ("format", format!("{} {}", index.format().name(), version(file))),
        (
            "byte order",
            if index.big_endian() {
                "big-endian (data is loaded as it is)".into()
            } else {
                "little-endian".into()
            },
        ),
        ("file", out.size(index.file_len())),
        ("tensors", format!("{} in {}", tensors.len(), out.size(total(tensors)))),
        ("alignment", index.alignment().to_string()),
        ("data at", index.data_at().to_string()),
        ("metadata", format!("{} entries", index.metadata().len())),
    ];
    if let Some(part) = index.part() {
        facts.push(("part", format!("{} of {}", part.number, part.count)));
    }
    if unaligned(tensors) > 0 {
        facts.push(("unaligned", format!("{} tensors do not begin at a multiple of 64", unaligned(tensors))));
    }
    facts.iter().try_for_each(|(name, value)| out.line(&format!("  {name:<12} {value}")))?;
    for (name, sum) in sums {
        let size = out.size(sum.bytes);
        out.line(&format!("    {name:<10} {:>7} tensors  {size}", sum.tensors))?;
    }
    index.warnings().iter().try_for_each(|warning| out.line(&format!("  warning: {warning}")))
}

fn file_json(file: &ArchiveFile, tensors: &[Tensor<'_>], sums: &BTreeMap<String, Sum>) -> Value {
    let index = file.index();
    let types: Value = sums
        .iter()
        .map(|(name, sum)| (name.clone(), json!({"tensors": sum.tensors, "bytes": sum.bytes})))
        .collect();
    let warnings: Vec<String> = index.warnings().iter().map(ToString::to_string).collect();
    json!({
        "file": file.path().display().to_string(), "format": index.format().name(), "version": version(file),
        "big_endian": index.big_endian(), "file_bytes": index.file_len(), "tensors": tensors.len(),
        "bytes": total(tensors), "alignment": index.alignment(), "data_offset": index.data_at(),
        "metadata": index.metadata().len(), "types": types, "unaligned": unaligned(tensors), "warnings": warnings,
        "part": index.part().map(|part| json!({"number": part.number, "count": part.count})),
    })
}
