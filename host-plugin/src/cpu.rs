//! What the machine says about itself: processors, clocks, memory. Everything is read from the system; what it does not
//! tell is `None`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
    thread,
};

/// Processors that this process may use.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The first value of a line `key : value` of `/proc/cpuinfo`.
pub(crate) fn info(key: &str) -> Option<String> {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| fs::read_to_string("/proc/cpuinfo").unwrap_or_default());
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let mut values = pairs.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned());
    values.next().filter(|value| !value.is_empty())
}

/// The processor's name as the system knows it.
pub(crate) fn name() -> String {
    let found = ["model name", "cpu model", "cpu", "Processor", "uarch"].iter().find_map(|key| info(key));
    found.unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))
}

/// The vendor's usual name, and its number on the PCI bus where it has one, else the first bytes of its name.
pub(crate) fn vendor() -> (String, u32) {
    // "CPU implementer" is Arm's list of designers; 0x41 is Arm itself.
    let raw =
        info("vendor_id").or_else(|| info("CPU implementer").filter(|x| x == "0x41").map(|_| "ARM".into()));
    let raw = raw.unwrap_or_else(|| std::env::consts::ARCH.into());
    match raw.as_str() {
        "AuthenticAMD" => ("AMD".into(), 0x1022),
        "GenuineIntel" => ("Intel".into(), 0x8086),
        "HygonGenuine" => ("Hygon".into(), 0x1D94),
        "ARM" => ("Arm".into(), 0x13B5),
        _ => {
            let mut first = [0; 4];
            let len = raw.len().min(4);
            first[..len].copy_from_slice(&raw.as_bytes()[..len]);
            (raw, u32::from_le_bytes(first))
        }
    }
}

/// The highest clock in MHz: the limit of frequency scaling, else the clock now.
pub(crate) fn clock_mhz() -> Option<u32> {
    let scaled =
        number(Path::new("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")).map(|khz| khz / 1000);
    let now = || info("cpu MHz").and_then(|mhz| mhz.parse::<f64>().ok()).map(|mhz| mhz as u64);
    scaled.or_else(now).and_then(|mhz| u32::try_from(mhz).ok()).filter(|mhz| *mhz != 0)
}

/// The clock of the memory in MHz, from the firmware's table (SMBIOS type 17, "configured memory speed" at 0x20), which
/// mostly only the superuser may read.
pub(crate) fn memory_clock_mhz() -> Option<u32> {
    (0..16).find_map(|slot| {
        let table = fs::read(format!("/sys/firmware/dmi/entries/17-{slot}/raw")).ok()?;
        let speed = u16::from_le_bytes([*table.get(0x20)?, *table.get(0x21)?]);
        (speed != 0 && speed != u16::MAX).then_some(speed.into())
    })
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A line of `/proc/meminfo` in bytes.
fn meminfo(key: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Limit and use of each control group that holds this process, where a limit is set.
fn groups() -> Vec<(u64, u64)> {
    let Ok(text) = fs::read_to_string("/proc/self/cgroup") else { return Vec::new() };
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, used) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
            _ => continue,
        };
        let mut own = PathBuf::from(format!("{root}{path}"));
        while own.starts_with(root) {
            if let (Some(limit), Some(used)) = (number(&own.join(limit)), number(&own.join(used))) {
                found.push((limit, used));
            }
            own.pop();
        }
    }
    found
}

/// Bytes of memory that this process can have at most.
pub(crate) fn memory_total() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| {
        let machine = meminfo("MemTotal").unwrap_or(u64::MAX / 2);
        groups().into_iter().map(|(limit, _)| limit).fold(machine, u64::min)
    })
}

/// Bytes that can be had now without pushing others out, and whether a control group decides.
pub(crate) fn memory_available() -> Option<(u64, bool)> {
    let machine = meminfo("MemAvailable").or_else(|| meminfo("MemFree"))?.min(memory_total());
    let group = groups().into_iter().map(|(limit, used)| limit.saturating_sub(used)).min();
    Some(group.filter(|left| *left < machine).map_or((machine, false), |left| (left, true)))
}

/// Bytes of the widest vector register.
pub(crate) fn vector_bytes() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f") {
            return 64;
        }
        if std::is_x86_feature_detected!("avx2") {
            return 32;
        }
    }
    16
}

/// Whether the processor multiplies and adds in one rounding.
pub(crate) fn fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        cfg!(any(
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "powerpc64",
            target_arch = "s390x"
        ))
    }
}

/// Whether the processor calculates with 16-bit floating point.
pub(crate) fn half() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx512fp16")
    }
    #[cfg(target_arch = "aarch64")]
    {
        std::arch::is_aarch64_feature_detected!("fp16")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        false
    }
}
