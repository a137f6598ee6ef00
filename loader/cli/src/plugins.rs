//! `wharf plugins`.

use crate::{
    cli::Global,
    devices::{layers_json, layers_line, runtime},
    out::{Failure, Out, safe},
};
use serde_json::{Value, json};
use wharf::plugin::{Candidate, Fate};

pub(crate) fn run(global: &Global, out: &mut Out) -> Result<(), Failure> {
    let runtime = runtime(global)?;
    let report = runtime.report();
    if out.json() {
        let plugins: Vec<Value> = report.candidates.iter().map(candidate_json).collect();
        let searched: Vec<Value> = report
            .searched
            .iter()
            .map(|(place, found)| json!({"place": place.to_string(), "found": found.to_string()}))
            .collect();
        return out
            .value(json!({"plugins": plugins, "searched": searched, "layers": layers_json(&runtime)?}));
    }
    if global.quiet {
        let used = report.candidates.iter().filter(|c| matches!(c.fate, Fate::Loaded { .. }));
        return used.filter_map(|c| c.id.as_deref()).try_for_each(|id| out.line(id));
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
    match layers_line(&runtime)? {
        Some(line) => out.line(&line),
        None => Ok(()),
    }
}

fn candidate_json(candidate: &Candidate) -> Value {
    let (devices, class) = match &candidate.fate {
        Fate::Loaded { devices, .. } => (Some(*devices), None),
        Fate::Rejected { class, .. } => (None, Some(*class)),
        Fate::Duplicate { .. } => (None, None),
    };
    json!({
        "id": candidate.id, "vendor": candidate.vendor, "version": candidate.version,
        "file": candidate.path.as_ref().map(|path| path.display().to_string()), "place": candidate.place.to_string(),
        "state": candidate.fate.word(), "class": class, "devices": devices, "reason": candidate.fate.to_string(),
    })
}
