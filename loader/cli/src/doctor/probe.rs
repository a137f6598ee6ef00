//! What the doctor's child does: opens one plugin, and has each of its devices do a little work.

use crate::out::{Failure, Out};
use serde_json::{Value, json};
use std::path::Path;
use wharf::{Device, Result, Runtime, plugin::Fate};

/// Bytes that are moved.
const LEN: usize = 4096;

pub(super) fn run(plugin: &Path, out: &mut Out) -> std::result::Result<(), Failure> {
    let runtime = Runtime::builder().only_named().try_all().allow_unsafe_plugins().plugin_file(plugin).open();
    let candidates = &runtime.report().candidates;
    let last = candidates.last();
    let id = last.and_then(|candidate| candidate.id.clone());
    let reason = last.map(|candidate| candidate.fate.to_string()).unwrap_or_default();
    let tried: Vec<(String, Result<()>)> =
        runtime.devices().iter().map(|device| (device.id().to_owned(), work(device))).collect();
    let state = match last.map(|candidate| &candidate.fate) {
        Some(Fate::Loaded { .. }) if tried.is_empty() => "no_device",
        Some(Fate::Loaded { .. }) if tried.iter().all(|(_, worked)| worked.is_ok()) => "works",
        _ => "failed",
    };
    let said = |worked: &Result<()>| worked.as_ref().map_or_else(ToString::to_string, |()| "works".into());
    let devices: Vec<Value> = tried
        .iter()
        .map(|(id, worked)| json!({"id": id, "works": worked.is_ok(), "said": said(worked)}))
        .collect();
    let reason = if state == "works" { String::new() } else { reason };
    // The report comes after the end, which is part of the trial.
    drop(runtime);
    out.value(json!({"state": state, "id": id, "reason": reason, "devices": devices}))
}

/// Bytes there, and the same bytes back.
fn work(device: &Device) -> Result<()> {
    let buffer = device.allocate(LEN as u64)?;
    let queue = device.queue()?;
    let wrote: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
    let mut read = vec![0; LEN];
    queue.write(&buffer, &wrote)?;
    queue.read(&buffer, &mut read)?;
    if read == wrote {
        return Ok(());
    }
    let message = format!("{}: bytes come back changed", device.id());
    Err(wharf::Error::new(wharf::ErrorKind::Plugin, message))
}
