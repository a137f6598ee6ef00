//! `wharf verify`.

use crate::{
    cli::{Global, VerifyArgs},
    hash::digests,
    out::{Failure, Out, safe},
    select::full_name,
};
use serde_json::{Value, json};
use std::{collections::HashMap, fs, path::Path};
use wharf::{ArchiveFile, Error, ErrorKind, Parameters, Tensor, TensorPlace, is_index};

/// Longest file of hashes that is read.
const HASHES_BYTES_MAX: u64 = 1 << 30;

/// Something that is wrong.
struct Problem {
    kind: &'static str,
    message: String,
    /// The byte of the file where it was found.
    offset: Option<u64>,
}

/// What was found in one file.
struct Report {
    file: String,
    tensors: usize,
    problems: Vec<Problem>,
    warnings: Vec<String>,
}

pub(crate) fn run(global: &Global, args: &VerifyArgs, out: &mut Out) -> Result<(), Failure> {
    let hashes = args.hashes.as_deref().map(Hashes::read).transpose()?;
    let mut reports = vec![];
    for path in &args.files {
        reports.extend(examine(path)?);
    }
    if let Some(mut hashes) = hashes {
        for path in &args.files {
            hashes.compare(path, &mut reports)?;
        }
        hashes.unseen(&mut reports);
    }
    let bad = |report: &Report| !report.problems.is_empty() || (args.strict && !report.warnings.is_empty());
    let good = !reports.iter().any(bad);
    if out.json() {
        let files: Vec<Value> = reports.iter().map(|report| json(report, !bad(report))).collect();
        out.value(json!({"ok": good, "files": files}))?;
    } else {
        for report in &reports {
            text(global, report, bad(report), out)?;
        }
    }
    if good { Ok(()) } else { Err(Failure::Wanting) }
}

fn json(report: &Report, good: bool) -> Value {
    let problem = |problem: &Problem| json!({"kind": problem.kind, "message": problem.message, "offset": problem.offset});
    json!({
        "file": report.file, "ok": good, "tensors": report.tensors,
        "problems": report.problems.iter().map(problem).collect::<Vec<_>>(), "warnings": report.warnings,
    })
}

fn text(global: &Global, report: &Report, bad: bool, out: &mut Out) -> Result<(), Failure> {
    let file = safe(&report.file);
    if global.quiet {
        return if bad { out.line(&file) } else { Ok(()) };
    }
    let summary = match (report.problems.len(), bad) {
        (0, false) => format!("ok, {} tensors", report.tensors),
        (0, true) => "warnings".into(),
        (1, _) => "1 problem".into(),
        (count, _) => format!("{count} problems"),
    };
    out.line(&format!("{file}: {summary}"))?;
    report.problems.iter().try_for_each(|problem| out.line(&format!("  {}", problem.message)))?;
    report.warnings.iter().try_for_each(|warning| out.line(&format!("  warning: {warning}")))
}

/// An error of the library as a problem; one that is about no archive stays an error.
fn problem(error: Error) -> Result<Problem, Error> {
    match error.kind() {
        ErrorKind::Archive(class) => {
            Ok(Problem { kind: class.name(), message: error.to_string(), offset: None })
        }
        _ => Err(error),
    }
}

/// Looks a file through, or all files of a set.
fn examine(path: &Path) -> Result<Vec<Report>, Error> {
    let file = path.display().to_string();
    if !is_index(path) {
        return examine_file(path).map(|report| vec![report]);
    }
    match Parameters::open(path) {
        Ok(set) => {
            let warnings = set.files().flat_map(|(_, file)| prefixed(file)).collect();
            Ok(vec![Report { file, tensors: set.len(), problems: vec![], warnings }])
        }
        Err(error) => {
            let about = error.file().filter(|file| *file != path).map(Path::to_owned);
            let problems = vec![problem(error)?];
            let mut reports = vec![Report { file, tensors: 0, problems, warnings: vec![] }];
            // A shard with more problems than the one that ended it.
            reports.extend(about.map(|shard| examine_file(&shard)).transpose()?);
            Ok(reports)
        }
    }
}

fn prefixed(file: &ArchiveFile) -> Vec<String> {
    let name = file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    file.index().warnings().iter().map(|warning| format!("{}: {warning}", safe(&name))).collect()
}

fn examine_file(path: &Path) -> Result<Report, Error> {
    let found = ArchiveFile::examine(path)?;
    let mut problems: Vec<Problem> = found
        .into_iter()
        .map(|error| Problem {
            kind: error.class().name(),
            message: error.to_string(),
            offset: Some(error.offset()),
        })
        .collect();
    let mut report =
        Report { file: path.display().to_string(), tensors: 0, problems: vec![], warnings: vec![] };
    if problems.is_empty() {
        match Parameters::open(path) {
            Err(error) => problems.push(problem(error)?),
            Ok(parameters) => {
                report.tensors = parameters.len();
                for tensor in parameters.tensors().filter(|t| matches!(t.place, TensorPlace::External(..))) {
                    if let Err(error) = parameters.content(&tensor) {
                        problems.push(problem(error)?);
                    }
                }
                report.warnings = warnings(&parameters);
            }
        }
    }
    report.problems = problems;
    Ok(report)
}

fn warnings(parameters: &Parameters) -> Vec<String> {
    let mut warnings: Vec<String> =
        parameters.files().flat_map(|(_, file)| file.index().warnings()).map(ToString::to_string).collect();
    for part in parameters.files().filter_map(|(_, file)| file.index().part()) {
        if part.count > 1 {
            warnings.push(format!("part {} of {}: the others were not looked at", part.number, part.count));
        }
    }
    let crooked = parameters.tensors().filter(misaligned).count();
    if crooked > 0 {
        warnings.push(format!("{crooked} tensors do not begin at a multiple of their elements' size"));
    }
    warnings
}

/// Whether a typed view of the bytes where they lie would be misaligned.
fn misaligned(tensor: &Tensor<'_>) -> bool {
    let bytes = tensor.dtype.and_then(wharf::archive::Dtype::from_name).and_then(|dtype| {
        match dtype.block_elements() {
            1 => dtype.block_bytes(),
            _ => None,
        }
    });
    matches!((&tensor.place, bytes), (TensorPlace::Offset(at), Some(size)) if !at.is_multiple_of(size))
}

/// Hashes by escaped name, and which of them were met.
struct Hashes {
    file: String,
    known: HashMap<String, (String, bool)>,
}

impl Hashes {
    fn read(path: &Path) -> Result<Hashes, Error> {
        let failed = |error: std::io::Error| {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let kind = if missing { ErrorKind::NoSuchFile } else { ErrorKind::Io };
            Error::new(kind, format!("{}: cannot be read: {error}", path.display())).in_file(path)
        };
        if fs::metadata(path).map_err(failed)?.len() > HASHES_BYTES_MAX {
            let message = format!("{}: too long for a file of hashes", path.display());
            return Err(Error::new(ErrorKind::Usage, message).in_file(path));
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let pairs = if text.trim_start().starts_with('{') { from_json(&text) } else { from_text(&text) };
        let pairs = pairs.filter(|pairs| !pairs.is_empty()).ok_or_else(|| {
            let message = format!("{}: this is not what `wharf hash` writes", path.display());
            Error::new(ErrorKind::Usage, message).in_file(path).next("`wharf hash FILE > F` makes one")
        })?;
        let known = pairs.into_iter().map(|(name, hash)| (name, (hash.to_lowercase(), false))).collect();
        Ok(Hashes { file: path.display().to_string(), known })
    }

    fn compare(&mut self, path: &Path, reports: &mut [Report]) -> Result<(), Error> {
        let name = path.display().to_string();
        let Some(report) = reports.iter_mut().find(|report| report.file == name) else { return Ok(()) };
        // What cannot be opened has its problems already.
        let Ok(parameters) = Parameters::open(path) else { return Ok(()) };
        let mut wanted: Vec<Tensor<'_>> = vec![];
        for tensor in parameters.tensors() {
            match self.known.get_mut(&full_name(&tensor)) {
                Some((_, seen)) => {
                    *seen = true;
                    wanted.push(tensor);
                }
                None => {
                    report.warnings.push(format!("`{}` has no hash in {}", full_name(&tensor), self.file))
                }
            }
        }
        for (tensor, digest) in wanted.iter().zip(digests(&parameters, &wanted, None)?) {
            let name = full_name(tensor);
            let (hash, _) = &self.known[&name];
            match digest {
                Some(digest) if digest == *hash => {}
                Some(digest) => report.problems.push(Problem {
                    kind: "hash_mismatch",
                    message: format!("hash_mismatch: the bytes of `{name}` have sha256 {digest}, not {hash}"),
                    offset: None,
                }),
                None => report.warnings.push(format!("`{name}` is too long a splat to be hashed")),
            }
        }
        Ok(())
    }

    /// Hashes of tensors that no file has.
    fn unseen(&self, reports: &mut [Report]) {
        let mut names: Vec<&String> =
            self.known.iter().filter(|(_, (_, seen))| !seen).map(|(name, _)| name).collect();
        names.sort_unstable();
        let Some(report) = reports.last_mut() else { return };
        report.problems.extend(names.into_iter().map(|name| Problem {
            kind: "not_found",
            message: format!("not_found: {} has a hash of `{name}`, which is in no file", self.file),
            offset: None,
        }));
    }
}

/// Lines of a hash, two blanks and a name.
fn from_text(text: &str) -> Option<Vec<(String, String)>> {
    let line = |line: &str| {
        let (hash, name) = line.split_once("  ")?;
        is_hash(hash).then(|| (name.to_owned(), hash.to_owned()))
    };
    text.lines().filter(|text| !text.is_empty()).map(line).collect()
}

fn from_json(text: &str) -> Option<Vec<(String, String)>> {
    let json: Value = serde_json::from_str(text).ok()?;
    let mut pairs = vec![];
    for file in json["files"].as_array()? {
        let scope = file["scope"].as_str().map_or(String::new(), |scope| format!("{scope}::"));
        for tensor in file["tensors"].as_array()? {
            let Some(hash) = tensor["sha256"].as_str() else { continue };
            is_hash(hash).then_some(())?;
            pairs.push((safe(&format!("{scope}{}", tensor["name"].as_str()?)), hash.to_owned()));
        }
    }
    Some(pairs)
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
