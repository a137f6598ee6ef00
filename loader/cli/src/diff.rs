//! `wharf diff`.

use crate::{
    cli::{DiffArgs, Global},
    list::shape_text,
    out::{Failure, Out, safe},
    progress::Progress,
    select::{Include, name_of},
    typed::typed,
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    path::Path,
};
use wharf::{Error, Parameters, Tensor};

/// What differs in a tensor that both have, as text.
struct Changed {
    name: String,
    what: Vec<(&'static str, String)>,
}

pub(crate) fn run(global: &Global, args: &DiffArgs, out: &mut Out) -> Result<(), Failure> {
    let include = Include::new(&args.include)?;
    let (a, b) = (Parameters::open(&args.a)?, Parameters::open(&args.b)?);
    let in_a: Vec<Tensor<'_>> = a.tensors().filter(|tensor| include.takes(tensor.name)).collect();
    let in_b: Vec<Tensor<'_>> = b.tensors().filter(|tensor| include.takes(tensor.name)).collect();
    let by_name: HashMap<&str, &Tensor<'_>> = in_b.iter().map(|tensor| (tensor.name, tensor)).collect();
    let names_a: HashSet<&str> = in_a.iter().map(|tensor| tensor.name).collect();
    let gone: Vec<String> = in_a.iter().filter(|t| !by_name.contains_key(t.name)).map(name_of).collect();
    let new: Vec<String> = in_b.iter().filter(|t| !names_a.contains(t.name)).map(name_of).collect();
    let pairs: Vec<_> = in_a.iter().filter_map(|tensor| Some((tensor, *by_name.get(tensor.name)?))).collect();
    let changed = changed(&a, &b, &pairs)?;
    let equal = gone.is_empty() && new.is_empty() && changed.is_empty();
    let same = pairs.len() - changed.len();
    if out.json() {
        let changed: Vec<Value> = changed
            .iter()
            .map(|tensor| {
                let what: Vec<&str> = tensor.what.iter().map(|(what, _)| *what).collect();
                json!({"name": tensor.name, "differs": what})
            })
            .collect();
        out.value(json!({"equal": equal, "same": same, "removed": gone, "added": new, "changed": changed}))?;
    } else {
        text(global, args, (&gone, &new, &changed), same, out)?;
    }
    if equal { Ok(()) } else { Err(Failure::Wanting) }
}

fn text(
    global: &Global,
    args: &DiffArgs,
    (gone, new, changed): (&[String], &[String], &[Changed]),
    same: usize,
    out: &mut Out,
) -> Result<(), Failure> {
    if global.quiet {
        let names = gone.iter().chain(new).chain(changed.iter().map(|tensor| &tensor.name));
        return names.into_iter().try_for_each(|name| out.line(&safe(name)));
    }
    let file = |path: &Path| safe(&path.display().to_string());
    gone.iter().try_for_each(|name| out.line(&format!("- {}", safe(name))))?;
    new.iter().try_for_each(|name| out.line(&format!("+ {}", safe(name))))?;
    for tensor in changed {
        let what: Vec<&str> = tensor.what.iter().map(|(_, text)| text.as_str()).collect();
        out.line(&format!("~ {}: {}", safe(&tensor.name), what.join("; ")))?;
    }
    out.line(&format!(
        "{same} the same, {} differ, {} only in {}, {} only in {}",
        changed.len(),
        gone.len(),
        file(&args.a),
        new.len(),
        file(&args.b)
    ))
}

fn changed(
    a: &Parameters,
    b: &Parameters,
    pairs: &[(&Tensor<'_>, &Tensor<'_>)],
) -> Result<Vec<Changed>, Error> {
    let total = pairs.iter().fold(0_u64, |sum, (tensor, _)| sum.saturating_add(tensor.bytes));
    let progress = Progress::new(total);
    let mut changed = vec![];
    for (one, two) in pairs {
        let (typed_one, typed_two) = (typed(a, one), typed(b, two));
        let mut what = vec![];
        // A format without types says nothing about them.
        if let (Some(from), Some(to)) = (typed_one.dtype, typed_two.dtype) {
            if from != to {
                what.push(("dtype", format!("type {from} -> {to}")));
            }
            if typed_one.shape != typed_two.shape {
                let shape = |shape: &Option<Vec<u64>>| shape_text(shape.as_deref());
                let (from, to) = (shape(&typed_one.shape), shape(&typed_two.shape));
                what.push(("shape", format!("shape {from} -> {to}")));
            }
        }
        if one.bytes != two.bytes {
            what.push(("bytes", format!("{} -> {} bytes", one.bytes, two.bytes)));
        } else if !a.content(one)?.same(&b.content(two)?, |bytes| progress.more(bytes))? {
            what.push(("content", "content differs".into()));
        }
        if !what.is_empty() {
            changed.push(Changed { name: name_of(one), what });
        }
    }
    Ok(changed)
}
