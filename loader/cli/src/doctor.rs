//! `wharf doctor`: each plugin is started in a process of its own, so that one that hangs, aborts or crashes is a line here
//! and nothing more; then drivers, device nodes and limits. What crashed is set aside until its file changes.

mod child;
mod probe;
mod system;

use crate::{
    cli::{DoctorArgs, Global},
    devices,
    out::{Failure, Out, note, safe},
};
use child::Ended;
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use wharf::plugin::{Candidate, Fate, SetAside};

/// A candidate, and what became of it.
struct Tried {
    file: String,
    id: Option<String>,
    state: &'static str,
    reason: String,
    devices: Value,
}

pub(crate) fn run(global: &Global, args: &DoctorArgs, out: &mut Out) -> Result<(), Failure> {
    if let Some(plugin) = &args.probe {
        return probe::run(plugin, out);
    }
    let mut aside = SetAside::of_user();
    if args.forgive {
        let gone = aside.forgive(None)?;
        note(&format!("{gone} taken off the list of plugins that are set aside"));
    }
    let report = devices::builder(global).survey();
    let limit = Duration::from_secs(args.timeout);
    let tried = report.candidates.iter().map(|candidate| try_one(candidate, limit, &mut aside));
    let tried = tried.collect::<Result<Vec<_>, Failure>>()?;
    let system = system::look();
    let good = tried.iter().all(|one| matches!(one.state, "works" | "duplicate" | "no_device" | "not_used"));
    if out.json() {
        let plugins: Vec<Value> = tried.iter().map(json_of).collect();
        let searched: Vec<String> = report.searched.iter().map(|(place, _)| place.to_string()).collect();
        let value = json!({"ok": good, "plugins": plugins, "searched": searched, "system": system.value()});
        out.value(value)?;
    } else {
        text(&tried, &system, out)?;
    }
    if good { Ok(()) } else { Err(Failure::Wanting) }
}

fn json_of(one: &Tried) -> Value {
    json!({
        "file": one.file, "id": one.id, "state": one.state, "reason": one.reason, "devices": one.devices,
    })
}

fn try_one(candidate: &Candidate, limit: Duration, aside: &mut SetAside) -> Result<Tried, Failure> {
    let mut tried = Tried {
        file: candidate.name(),
        id: candidate.id.clone(),
        state: "refused",
        reason: candidate.fate.to_string(),
        devices: json!([]),
    };
    match &candidate.fate {
        Fate::Judged => {}
        Fate::Duplicate { .. } => tried.state = "duplicate",
        Fate::Rejected { class: "disabled" | "not_selected", .. } => tried.state = "not_used",
        _ => {}
    }
    let (Fate::Judged, Some(path)) = (&candidate.fate, candidate.path.as_deref()) else { return Ok(tried) };
    (tried.state, tried.reason) = match child::start(path, limit)? {
        Ended::Told(value) => {
            tried.devices = value["devices"].clone();
            tried.id = value["id"].as_str().map(str::to_owned).or(tried.id);
            let state = match value["state"].as_str() {
                Some("works") => {
                    aside.forgive(Some(path))?;
                    "works"
                }
                Some("no_device") => "no_device",
                _ => "failed",
            };
            (state, value["reason"].as_str().unwrap_or_default().to_owned())
        }
        Ended::Silent(how) => ("crashed", set_aside(aside, path, &how)),
        Ended::Late => {
            let how = format!("did not start and work within {} s", limit.as_secs());
            ("hung", set_aside(aside, path, &how))
        }
    };
    Ok(tried)
}

fn set_aside(aside: &mut SetAside, path: &Path, how: &str) -> String {
    match aside.add(path, &format!("it {how} when it was tried")) {
        Ok(()) => format!("it {how}; it is set aside until its file changes"),
        Err(error) => format!("it {how}; it cannot be set aside: {error}"),
    }
}

fn text(tried: &[Tried], system: &system::System, out: &mut Out) -> Result<(), Failure> {
    if tried.is_empty() {
        out.line("no plugins: `wharf plugins` says where they are looked for")?;
    }
    for one in tried {
        let id = one.id.as_deref().unwrap_or("-");
        out.line(&format!("{:9} {:12} {}", one.state, safe(id), safe(&one.file)))?;
        if !one.reason.is_empty() {
            out.line(&format!("          {}", safe(&one.reason)))?;
        }
        for device in one.devices.as_array().into_iter().flatten() {
            let word = |key: &str| safe(device[key].as_str().unwrap_or("-"));
            out.line(&format!("          {}: {}", word("id"), word("said")))?;
        }
    }
    system.lines().iter().try_for_each(|line| out.line(line))
}
