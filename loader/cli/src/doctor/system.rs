//! What of vendors' drivers the system has: libraries, device nodes; and the limits that loads meet.

use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A vendor's driver: its name, its library, and nodes of which one must be there for its devices.
struct Driver {
    name: &'static str,
    library: &'static str,
    nodes: &'static [&'static str],
    advice: &'static str,
}

const DRIVERS: &[Driver] = &[
    Driver {
        name: "CUDA",
        library: "libcuda.so.1",
        nodes: &["/dev/nvidiactl", "/dev/nvidia0"],
        advice: "in a container, start it with access to the GPU (`--gpus all`)",
    },
    Driver {
        name: "HIP",
        library: "libamdhip64.so",
        nodes: &["/dev/kfd"],
        advice: "in a container, pass `/dev/kfd` and `/dev/dri`; be in the groups `video` and `render`",
    },
    Driver {
        name: "Level Zero",
        library: "libze_loader.so.1",
        nodes: &["/dev/dri"],
        advice: "in a container, pass `/dev/dri`; be in the group `render`",
    },
    Driver {
        name: "OpenCL",
        library: "libOpenCL.so.1",
        nodes: &[],
        advice: "install a driver, such as PoCL for the CPU",
    },
];

/// Folders in which the system looks for libraries.
const FOLDERS: &[&str] = &["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"];
/// glibc's list of libraries.
const CACHE: &str = "/etc/ld.so.cache";

pub(super) struct System {
    drivers: Vec<(&'static Driver, bool, Vec<&'static str>)>,
    limits: Vec<(&'static str, String)>,
}

pub(super) fn look() -> System {
    let cache = fs::read(CACHE).unwrap_or_default();
    let drivers = DRIVERS.iter().map(|driver| {
        let there = library(driver.library, &cache);
        let missing = driver.nodes.iter().copied().filter(|node| !Path::new(node).exists()).collect();
        (driver, there, missing)
    });
    System { drivers: drivers.collect(), limits: limits() }
}

fn library(name: &str, cache: &[u8]) -> bool {
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    let in_folder = |folder: &&str| [PathBuf::from(folder), Path::new(folder).join(&machine)];
    let listed = cache.split(|byte| *byte == 0).any(|word| word == name.as_bytes());
    listed || FOLDERS.iter().flat_map(in_folder).any(|folder| folder.join(name).exists())
}

/// Limits of this process as the system tells them.
fn limits() -> Vec<(&'static str, String)> {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let of = |name: &'static str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some((name, line[name.len()..].split_whitespace().next()?.to_owned()))
    };
    ["Max locked memory", "Max open files", "Max processes", "Max address space"]
        .into_iter()
        .filter_map(of)
        .collect()
}

impl System {
    pub(super) fn value(&self) -> Value {
        let driver = |(driver, there, missing): &(&Driver, bool, Vec<&str>)| {
            let advice = (*there && !missing.is_empty()).then_some(driver.advice);
            json!({
                "name": driver.name, "library": driver.library, "installed": there, "nodes_missing": missing,
                "advice": advice,
            })
        };
        let limits: serde_json::Map<String, Value> =
            self.limits.iter().map(|(name, value)| ((*name).into(), value.clone().into())).collect();
        json!({"drivers": self.drivers.iter().map(driver).collect::<Vec<_>>(), "limits": limits})
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec!["drivers:".to_owned()];
        for (driver, there, missing) in &self.drivers {
            let state = match (*there, missing.is_empty()) {
                (false, _) => format!("{} is not installed", driver.library),
                (true, true) => format!("{} is installed", driver.library),
                (true, false) => {
                    format!(
                        "{} is installed, but {} is missing: {}",
                        driver.library,
                        missing.join(", "),
                        driver.advice
                    )
                }
            };
            lines.push(format!("  {:11} {state}", driver.name));
        }
        lines.push("limits:".into());
        lines.extend(self.limits.iter().map(|(name, value)| format!("  {name}: {value}")));
        lines
    }
}
