//! What the process was started with, as far as a search for plugins follows it: plain values, so that a test can have
//! others.
//!
//! # Safety
//! The only unsafe code asks the system for the rights of this process; those calls read and take no pointers.
#![allow(unsafe_code)]

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// Variable that names plugin files, before any folder.
pub(crate) const FILES: &str = "WHARF_PLUGIN_FILES";
/// Variable that names folders of plugins.
pub(crate) const PATH: &str = "WHARF_PLUGIN_PATH";
/// Variable with patterns: only plugins whose ids fit one are used.
pub(crate) const SELECT: &str = "WHARF_PLUGINS_SELECT";
/// Variable with patterns: plugins whose ids fit one are not used.
pub(crate) const DISABLE: &str = "WHARF_PLUGINS_DISABLE";
/// Variable with ids of plugins without which nothing is to be done.
pub(crate) const REQUIRE: &str = "WHARF_REQUIRE";
/// Variable that lets plugins in that others may have written, if it is `1`.
pub(crate) const ALLOW_UNSAFE: &str = "WHARF_ALLOW_UNSAFE_PLUGINS";
const DATA: &str = "XDG_DATA_HOME";
const CACHE: &str = "XDG_CACHE_HOME";
const HOME: &str = "HOME";
/// All that is read of the environment.
const VARIABLES: [&str; 9] = [FILES, PATH, SELECT, DISABLE, REQUIRE, ALLOW_UNSAFE, DATA, CACHE, HOME];
/// Folders of the system, last in the order.
const SYSTEM: [&str; 2] = ["/usr/local/lib/wharf/plugins", "/usr/lib/wharf/plugins"];

/// What a search follows of the process that it is made in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// More rights than its user has: then nothing is followed that the user can set.
    pub(crate) elevated: bool,
    /// Who it acts as.
    pub(crate) user: u32,
    pub(crate) variables: BTreeMap<&'static str, OsString>,
    /// The executable.
    pub(crate) program: Option<PathBuf>,
    /// Folders of the system.
    pub(crate) system: Vec<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn of_process() -> Self {
        let set = |name: &'static str| Some((name, env::var_os(name)?));
        Surroundings {
            elevated: elevated(),
            user: user(),
            variables: VARIABLES.into_iter().filter_map(set).collect(),
            program: env::current_exe().ok(),
            system: SYSTEM.iter().map(PathBuf::from).collect(),
        }
    }

    /// A variable that is set, not empty, and to be followed.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.get(name).filter(|_| !self.elevated)?;
        Some(value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// The entries of a path variable. Empty ones are skipped: they would mean the working folder.
    pub(crate) fn listed(&self, name: &str) -> Vec<PathBuf> {
        let value = self.variable(name).unwrap_or_default();
        env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect()
    }

    /// The folder beside the executable.
    pub(crate) fn beside(&self) -> Option<PathBuf> {
        let program = self.program.as_deref().filter(|_| !self.elevated)?;
        Some(program.parent()?.join("plugins"))
    }

    /// The user's folder. What is no absolute path is not followed: it would mean the working folder.
    pub(crate) fn user_folder(&self) -> Option<PathBuf> {
        Some(self.home(DATA, ".local/share")?.join("wharf/plugins"))
    }

    /// The user's folder of what can be found out again.
    pub(crate) fn cache_folder(&self) -> Option<PathBuf> {
        Some(self.home(CACHE, ".cache")?.join("wharf"))
    }

    fn home(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let set = |name| self.variable(name).map(Path::new).filter(|path| path.is_absolute());
        set(variable).map(Path::to_owned).or_else(|| Some(set(HOME)?.join(below_home)))
    }
}

#[cfg(target_os = "linux")]
fn elevated() -> bool {
    // SAFETY: `getauxval` takes any number and only reads.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) != 0 };
    secure || differs()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn elevated() -> bool {
    differs()
}

#[cfg(unix)]
fn differs() -> bool {
    // SAFETY: takes nothing and only reads, as the two below.
    let own = unsafe { libc::getuid() };
    // SAFETY: as above.
    let group = unsafe { libc::getgid() };
    // SAFETY: as above.
    let effective_group = unsafe { libc::getegid() };
    own != user() || group != effective_group
}

#[cfg(unix)]
fn user() -> u32 {
    // SAFETY: takes nothing and only reads.
    unsafe { libc::geteuid() }
}

#[cfg(not(unix))]
fn elevated() -> bool {
    false
}

#[cfg(not(unix))]
fn user() -> u32 {
    0
}
