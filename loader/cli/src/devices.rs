//! `wharf devices`.

use crate::{
    cli::{DevicesArgs, Global},
    out::{Failure, Out, safe},
};
use serde_json::{Value, json};
use wharf::{
    Builder, Device, Error, ErrorKind, Runtime,
    plugin::{Candidate, Fate},
    property,
};

/// The runtime that the options ask for, with all that they require.
pub(crate) fn usable(global: &Global) -> Result<Runtime, Error> {
    let runtime = runtime(global);
    runtime.usable().map(|()| runtime)
}

/// The runtime that the options ask for, whatever came of it.
pub(crate) fn runtime(global: &Global) -> Runtime {
    builder(global).open()
}

/// What the options say of plugins.
pub(crate) fn builder(global: &Global) -> Builder {
    let mut builder = Runtime::builder();
    for file in &global.plugin_files {
        builder = builder.plugin_file(file);
    }
    for folder in &global.plugin_paths {
        builder = builder.plugin_path(folder);
    }
    for layer in &global.layers {
        builder = builder.layer(layer);
    }
    if !global.select.is_empty() {
        builder = builder.select(&global.select);
    }
    if !global.disable.is_empty() {
        builder = builder.disable(&global.disable);
    }
    if !global.require.is_empty() {
        builder = builder.require(&global.require);
    }
    builder
}

/// The chain of layers in one line, if there is any.
pub(crate) fn layers_line(runtime: &Runtime) -> Option<String> {
    let each = runtime.layers().iter().map(|layer| {
        let off = if layer.off { ", switched off" } else { "" };
        format!("{} ({}{off})", safe(&layer.text), layer.by)
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("layers, the outermost first: {}", each.join(" -> ")))
}

/// The same for machines.
pub(crate) fn layers_json(runtime: &Runtime) -> Value {
    let each = runtime.layers().iter();
    each.map(|layer| json!({"layer": layer.text, "by": layer.by, "off": layer.off})).collect()
}

pub(crate) fn run(global: &Global, args: &DevicesArgs, out: &mut Out) -> Result<(), Failure> {
    let runtime = usable(global)?;
    let wanted = |backend: &str| args.backend.as_deref().is_none_or(|name| name == backend);
    let devices: Vec<Device> =
        runtime.devices().into_iter().filter(|device| wanted(device.backend())).collect();
    let unavailable: Vec<(&Candidate, String)> = runtime
        .report()
        .candidates
        .iter()
        .filter(|candidate| args.backend.is_none() || candidate.id == args.backend)
        .filter_map(|candidate| Some((candidate, why_not(&candidate.fate)?)))
        .collect();
    if out.json() {
        let searched: Vec<String> =
            runtime.report().searched.iter().map(|(place, _)| place.to_string()).collect();
        let unavailable: Vec<Value> =
            unavailable.iter().map(|(candidate, reason)| unavailable_json(candidate, reason)).collect();
        let devices_json: Vec<Value> = devices.iter().map(device_json).collect();
        out.value(json!({"devices": devices_json, "unavailable": unavailable, "searched": searched}))?;
    } else if global.quiet {
        devices.iter().try_for_each(|device| out.line(device.id()))?;
    } else {
        text(&devices, args.verbose, out)?;
        if args.verbose
            && let Some(line) = layers_line(&runtime)
        {
            out.line(&line)?;
        }
        not_available(&runtime, &devices, &unavailable, out)?;
    }
    match &args.backend {
        Some(name) if devices.is_empty() => Err(none_of(name, &unavailable).into()),
        _ => Ok(()),
    }
}

/// Why a candidate gives no device; `None` if it does, or if another copy of it does.
fn why_not(fate: &Fate) -> Option<String> {
    match fate {
        Fate::Loaded { devices: 0, reason } => {
            Some(reason.clone().unwrap_or_else(|| "no device found".into()))
        }
        Fate::Loaded { .. } | Fate::Judged | Fate::Duplicate { .. } => None,
        Fate::Rejected { class, reason } => Some(format!("{class}: {reason}")),
    }
}

fn none_of(name: &str, unavailable: &[(&Candidate, String)]) -> Error {
    let reasons: Vec<String> =
        unavailable.iter().map(|(c, reason)| format!("{}: {reason}", c.name())).collect();
    let why = if reasons.is_empty() { "no plugin of that name was found".into() } else { reasons.join("; ") };
    Error::new(ErrorKind::Driver, format!("backend `{}` has no devices: {why}", safe(name)))
        .next("`wharf plugins` says what was found and where it was looked for")
}

fn text(devices: &[Device], verbose: bool, out: &mut Out) -> Result<(), Failure> {
    if devices.is_empty() {
        return Ok(());
    }
    let rows: Vec<Vec<String>> = devices
        .iter()
        .map(|device| {
            let size = |bytes: Option<u64>| bytes.map_or_else(|| "?".into(), |bytes| out.size(bytes));
            vec![
                device.id().into(),
                device.backend().into(),
                safe(&device.name()),
                format!("{} / {}", size(device.memory_free()), size(device.memory_total())),
                device.memory_kind(),
                device.stable_id().map_or_else(|| "-".into(), |id| safe(&id)),
            ]
        })
        .collect();
    out.table(&["ID", "BACKEND", "NAME", "FREE / TOTAL", "KIND", "STABLE ID"], &rows, &[])?;
    if verbose {
        devices.iter().try_for_each(|device| facts(device, out))?;
    }
    Ok(())
}

/// Facts beyond the table, those that the device has.
fn facts(device: &Device, out: &mut Out) -> Result<(), Failure> {
    out.line(&format!("{}:", device.id()))?;
    let texts = [
        ("product", property::PRODUCT_NAME),
        ("vendor", property::VENDOR),
        ("driver", property::DRIVER_VERSION),
        ("memory", property::MEMORY_NOTE),
    ];
    for (name, id) in texts {
        if let Some(text) = device.text(id).filter(|text| !text.is_empty()) {
            out.line(&format!("  {name:<24} {}", safe(&text)))?;
        }
    }
    let numbers = [
        ("compute units", property::NUM_COMPUTE_UNITS),
        ("clock, MHz", property::MAX_CLOCK_FREQUENCY),
        ("work-group items, max", property::MAX_WORK_GROUP_SIZE),
        ("shared memory, bytes", property::WORK_GROUP_LOCAL_MEM_SIZE),
        ("allocation, bytes, max", property::MAX_MEM_ALLOC_SIZE),
        ("address bits", property::ADDRESS_BITS),
        ("vector width, float", property::NATIVE_VECTOR_WIDTH_FLOAT),
    ];
    for (name, id) in numbers {
        if let Some(number) = device.number(id) {
            out.line(&format!("  {name:<24} {number}"))?;
        }
    }
    out.line(&format!("  {:<24} {}", "queues, max", device.caps().lanes))
}

fn not_available(
    runtime: &Runtime,
    devices: &[Device],
    unavailable: &[(&Candidate, String)],
    out: &mut Out,
) -> Result<(), Failure> {
    if !unavailable.is_empty() {
        out.line("not available:")?;
        for (candidate, reason) in unavailable {
            let id = candidate.id.as_deref().unwrap_or("-");
            out.line(&format!("  {id:<11} {}  ({})", safe(reason), safe(&candidate.name())))?;
        }
    }
    if devices.is_empty() {
        out.line("no devices; plugins were looked for in:")?;
        for (place, found) in &runtime.report().searched {
            out.line(&format!("  {}: {found}", safe(&place.to_string())))?;
        }
    }
    Ok(())
}

pub(crate) fn device_json(device: &Device) -> Value {
    json!({
        "id": device.id(), "backend": device.backend(), "name": device.name(), "kind": device.memory_kind(),
        "memory_total": device.memory_total(), "memory_free": device.memory_free(),
        "memory_note": device.memory_note(), "stable_id": device.stable_id(),
    })
}

fn unavailable_json(candidate: &Candidate, reason: &str) -> Value {
    json!({"backend": candidate.id, "plugin": candidate.name(), "reason": reason})
}
