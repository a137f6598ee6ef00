//! `wharf hash`.

use crate::{
    cli::{Global, HashArgs},
    out::{Failure, Out, note},
    progress::Progress,
    select::{Include, full_name, open},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};
use wharf::{Error, Parameters, Tensor, TensorPlace};

/// Most tensors that are read at once unless more are asked for.
const JOBS_MAX: usize = 8;
/// Longest splat whose bytes are made to be hashed; a longer one has no hash here.
pub(crate) const SPLAT_BYTES_MAX: u64 = 16 << 30;

pub(crate) fn run(global: &Global, args: &HashArgs, out: &mut Out) -> Result<(), Failure> {
    let include = Include::new(&args.files.include)?;
    let parameters = open(&args.files)?;
    let tensors: Vec<Tensor<'_>> = parameters.tensors().filter(|t| include.takes(t.name)).collect();
    let digests = digests(&parameters, &tensors, args.jobs.map(usize::from))?;
    if out.json() {
        let files: Vec<Value> = parameters
            .files()
            .map(|(scope, file)| {
                let own = tensors.iter().zip(&digests);
                let own = own.filter(|(tensor, _)| tensor.file == file.path() && tensor.scope == scope);
                let own: Vec<Value> = own
                    .map(|(tensor, digest)| {
                        json!({"name": tensor.name, "bytes": tensor.bytes, "sha256": digest})
                    })
                    .collect();
                let mut value = json!({"file": file.path().display().to_string(), "tensors": own});
                if !scope.is_empty() {
                    value["scope"] = json!(scope);
                }
                value
            })
            .collect();
        return out.value(json!({"files": files}));
    }
    for (tensor, digest) in tensors.iter().zip(&digests) {
        match digest {
            Some(digest) if global.quiet => out.line(digest)?,
            Some(digest) => out.line(&format!("{digest}  {}", full_name(tensor)))?,
            None => note(&format!(
                "note: `{}` is a splat of {}, longer than is hashed",
                full_name(tensor),
                crate::out::human(tensor.bytes)
            )),
        }
    }
    Ok(())
}

/// The hash of each tensor, in hex; none for a splat that is too long to have its bytes made.
pub(crate) fn digests(
    parameters: &Parameters,
    tensors: &[Tensor<'_>],
    jobs: Option<usize>,
) -> Result<Vec<Option<String>>, Error> {
    let jobs = jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from).min(JOBS_MAX));
    let hashed = |tensor: &&Tensor<'_>| !endless(tensor);
    let total = tensors.iter().filter(hashed).fold(0_u64, |sum, tensor| sum.saturating_add(tensor.bytes));
    let progress = Progress::new(total);
    let next = AtomicUsize::new(0);
    let done = Mutex::new((vec![None; tensors.len()], None));
    let work = || {
        while let Some((number, tensor)) = take(&next, tensors) {
            let digest = digest(parameters, tensor, &progress);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            match digest {
                Ok(digest) => done.0[number] = digest,
                Err(error) => {
                    done.1.get_or_insert(error);
                    next.store(tensors.len(), Relaxed);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs.min(tensors.len()) {
            scope.spawn(work);
        }
        work();
    });
    let (digests, error) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(digests), Err)
}

fn take<'t, 'a>(next: &AtomicUsize, tensors: &'t [Tensor<'a>]) -> Option<(usize, &'t Tensor<'a>)> {
    let number = next.fetch_add(1, Relaxed);
    Some((number, tensors.get(number)?))
}

/// Whether a tensor is a splat that is too long to have its bytes made.
fn endless(tensor: &Tensor<'_>) -> bool {
    matches!(tensor.place, TensorPlace::Splat(_)) && tensor.bytes > SPLAT_BYTES_MAX
}

fn digest(
    parameters: &Parameters,
    tensor: &Tensor<'_>,
    progress: &Progress,
) -> Result<Option<String>, Error> {
    if endless(tensor) {
        return Ok(None);
    }
    let mut hash = Sha256::new();
    parameters.content(tensor)?.read(|piece| {
        hash.update(piece);
        progress.more(piece.len() as u64)
    })?;
    Ok(Some(crate::list::hex(&hash.finalize())))
}
