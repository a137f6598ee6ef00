//! `wharf plugins`: all that were found, or a look at one file.

use crate::{
    cli::{Global, Look},
    devices::{layers_json, layers_line, runtime},
    out::{Failure, Out, note, safe},
};
use serde_json::{Value, json};
use std::path::Path;
use wharf::plugin::{self, Candidate, Fate, Inspection};

pub(crate) fn run(global: &Global, look: Option<&Look>, out: &mut Out) -> Result<(), Failure> {
    match look {
        None => list(global, out),
        Some(Look::Inspect { file }) => inspect(file, out),
        Some(Look::Check { file }) => check(file, out),
    }
}

/// What was asked for and is not there comes last, so that the list that explains it is seen.
fn list(global: &Global, out: &mut Out) -> Result<(), Failure> {
    let runtime = runtime(global);
    let report = runtime.report();
    let unmet = runtime.usable().err();
    let end = match &unmet {
        Some(_) => Err(Failure::Wanting),
        None => Ok(()),
    };
    if out.json() {
        let plugins: Vec<Value> = report.candidates.iter().map(candidate_json).collect();
        let searched: Vec<Value> = report
            .searched
            .iter()
            .map(|(place, found)| json!({"place": place.to_string(), "found": found.to_string()}))
            .collect();
        let unmet = unmet.map(|error| error.to_string());
        out.value(json!({
            "plugins": plugins, "searched": searched, "notes": report.notes, "unmet": unmet,
            "layers": layers_json(&runtime),
        }))?;
        return end;
    }
    if global.quiet {
        let used = report.candidates.iter().filter(|c| matches!(c.fate, Fate::Loaded { .. }));
        used.filter_map(|c| c.id.as_deref()).try_for_each(|id| out.line(id))?;
        return end;
    }
    let rows: Vec<Vec<String>> = report
        .candidates
        .iter()
        .map(|candidate| {
            let or_dash = |text: &Option<String>| text.as_deref().map_or_else(|| "-".into(), safe);
            vec![
                or_dash(&candidate.id),
                or_dash(&candidate.version),
                safe(&candidate.fate.to_string()),
                safe(&candidate.name()),
            ]
        })
        .collect();
    if rows.is_empty() {
        out.line("no plugins")?;
    } else {
        out.table(&["ID", "VERSION", "STATE", "FILE"], &rows, &[])?;
    }
    out.line("looked in:")?;
    report
        .searched
        .iter()
        .try_for_each(|(place, found)| out.line(&format!("  {}: {found}", safe(&place.to_string()))))?;
    report.notes.iter().try_for_each(|text| out.line(&format!("note: {}", safe(text))))?;
    if let Some(line) = layers_line(&runtime) {
        out.line(&line)?;
    }
    if let Some(error) = unmet {
        note(&format!("error: {error}"));
    }
    end
}

fn inspect(file: &Path, out: &mut Out) -> Result<(), Failure> {
    let found = plugin::inspect(file)?;
    if out.json() {
        return out.value(json!({"plugin": inspection_json(file, &found)}));
    }
    let some = |text: &str| if text.is_empty() { "-".into() } else { safe(text) };
    let mut facts = vec![("file", file.display().to_string())];
    if let Some(record) = &found.record {
        let draft = if record.draft == 0 { String::new() } else { format!(", draft {}", record.draft) };
        let host = format!("{}.{}", record.major, record.min_host_minor);
        facts.extend([
            ("id", record.id.clone()),
            ("vendor", record.vendor.clone()),
            ("version", record.version.clone()),
            ("backend", record.backend.clone()),
            ("licence", record.licence.clone().unwrap_or_default()),
            ("abi", format!("{}.{}{draft}; hosts from {host}", record.major, record.minor)),
            ("cpu features", record.cpu_features.join(", ")),
            ("panics", panics(record.contains_panics).into()),
        ]);
    } else {
        facts.push(("id", "unknown: the file has no record".into()));
    }
    facts.extend([
        ("needs", found.needed.join(", ")),
        ("sanitizer", found.sanitizer.unwrap_or_default().into()),
        ("build id", found.build_id.clone().unwrap_or_default()),
        ("types", if found.root { "compared at opening" } else { "not compared" }.into()),
    ]);
    facts.iter().try_for_each(|(name, value)| out.line(&format!("{name:<13} {}", some(value))))
}

fn panics(contained: bool) -> &'static str {
    if contained { "contained" } else { "end the process" }
}

fn inspection_json(file: &Path, found: &Inspection) -> Value {
    let record = found.record.as_ref();
    let text = |of: fn(&plugin::Record) -> &String| record.map(of);
    let abi = record.map(|record| {
        json!({"major": record.major, "minor": record.minor, "draft": record.draft,
               "min_host_minor": record.min_host_minor})
    });
    json!({
        "file": file.display().to_string(), "id": text(|r| &r.id), "vendor": text(|r| &r.vendor),
        "version": text(|r| &r.version), "backend": text(|r| &r.backend),
        "licence": record.and_then(|r| r.licence.as_ref()), "abi": abi, "needed": found.needed,
        "run_paths": found.run_paths, "cpu_features": record.map(|r| &r.cpu_features),
        "panics": record.map(|r| panics(r.contains_panics)), "sanitizer": found.sanitizer,
        "build_id": found.build_id, "types_compared": found.root,
    })
}

fn check(file: &Path, out: &mut Out) -> Result<(), Failure> {
    let check = plugin::check(file)?;
    if out.json() {
        let findings: Vec<Value> = check
            .findings
            .iter()
            .map(|f| json!({"weight": f.weight.word(), "class": f.class, "reason": f.reason}))
            .collect();
        let found = check.found.as_ref().map(|found| inspection_json(file, found));
        out.value(json!({"ok": !check.wanting(), "findings": findings, "plugin": found}))?;
    } else {
        for finding in &check.findings {
            out.line(&format!("{} ({}): {}", finding.weight.word(), finding.class, safe(&finding.reason)))?;
        }
        if !check.wanting() {
            out.line(&format!(
                "{}: fine, as far as can be told without running it",
                safe(&file.display().to_string())
            ))?;
        }
    }
    if check.wanting() { Err(Failure::Wanting) } else { Ok(()) }
}

fn candidate_json(candidate: &Candidate) -> Value {
    let (devices, class) = match &candidate.fate {
        Fate::Loaded { devices, .. } => (Some(*devices), None),
        Fate::Rejected { class, .. } => (None, Some(*class)),
        Fate::Judged | Fate::Duplicate { .. } => (None, None),
    };
    json!({
        "id": candidate.id, "vendor": candidate.vendor, "version": candidate.version,
        "file": candidate.path.as_ref().map(|path| path.display().to_string()), "place": candidate.place.to_string(),
        "manifest": candidate.manifest.as_ref().map(|path| path.display().to_string()),
        "state": candidate.fate.word(), "class": class, "devices": devices, "reason": candidate.fate.to_string(),
    })
}
