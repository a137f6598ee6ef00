//! What the tests of the whole share: where the built things are, how the command is run, what it answered.
//!
//! `cargo xtask test` builds plugins and command first and names them in the environment; a plain `cargo test` builds
//! them here, once.

use serde_json::Value;
use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(""))
}

/// A file of the fixtures.
pub fn fixture(path: &str) -> PathBuf {
    root().join("tests/fixtures").join(path)
}

/// Where things were built.
struct Built {
    bin: PathBuf,
    plugins: PathBuf,
    test_plugins: PathBuf,
}

fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let named = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.exists());
        let all = (named("WHARF_BIN"), named("WHARF_TEST_PRODUCT_PLUGINS"), named("WHARF_TEST_PLUGINS"));
        let (Some(bin), Some(plugins), Some(test_plugins)) = all else { return build() };
        Built { bin, plugins, test_plugins }
    })
}

fn build() -> Built {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    // Test processes that run side by side build one after the other.
    let _ = fs::create_dir_all(&target);
    let lock = File::create(target.join("wharf-tests.lock"));
    let locked = lock.as_ref().is_ok_and(|lock| lock.lock().is_ok());
    assert!(locked, "{}: cannot be locked", target.display());
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = |args: &[&str]| {
        let status = Command::new(&cargo).current_dir(root()).args(args).status();
        assert!(status.is_ok_and(|status| status.success()), "cargo {args:?} failed");
    };
    run(&["run", "--quiet", "--package", "xtask", "--", "plugins", "--quiet"]);
    run(&["build", "--release", "--quiet", "--package", "wharf-cli"]);
    Built {
        bin: target.join("release").join(format!("wharf{}", env::consts::EXE_SUFFIX)),
        plugins: target.join("plugins"),
        test_plugins: target.join("test-plugins"),
    }
}

/// Folder of the plugins that users get.
pub fn plugins() -> &'static Path {
    &built().plugins
}

/// A plugin for tests by its crate's name, `wharf_null_plugin`.
pub fn test_plugin(name: &str) -> PathBuf {
    built().test_plugins.join(format!("{name}.{}", env::consts::DLL_EXTENSION))
}

/// The host plugin.
pub fn host_plugin() -> PathBuf {
    plugins().join(format!("wharf_host_plugin.{}", env::consts::DLL_EXTENSION))
}

/// The image with the kernels of the host device.
pub fn kernels() -> &'static Path {
    wharf_host_image::path()
}

/// The file of the command.
pub fn command() -> &'static Path {
    &built().bin
}

/// The command, in an environment without anything of the user's.
pub fn wharf() -> Command {
    let mut command = Command::new(&built().bin);
    for name in [
        "WHARF_PLUGIN_FILES",
        "WHARF_PLUGIN_PATH",
        "WHARF_PLUGINS_SELECT",
        "WHARF_PLUGINS_DISABLE",
        "WHARF_REQUIRE",
        "WHARF_LAYERS",
        "WHARF_ALLOW_UNSAFE_PLUGINS",
        "XDG_DATA_HOME",
        "NO_COLOR",
    ] {
        command.env_remove(name);
    }
    command.env("HOME", "/proc/none");
    command
}

/// The command with the host plugin alone: what drivers this machine has, and what memory they take, is no matter here.
pub fn wharf_with_plugins() -> Command {
    let mut command = wharf();
    command.arg("--plugin").arg(host_plugin());
    command
}

/// What a run of the command came to.
pub struct Ran {
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// The result.
    pub stdout: String,
    /// All else.
    pub stderr: String,
}

impl Ran {
    /// Runs to the end. A panic anywhere in it fails the test.
    ///
    /// # Panics
    /// If the command cannot be started, or panicked.
    pub fn of(command: &mut Command) -> Ran {
        let Output { status, stdout, stderr } =
            command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let ran = Ran {
            code: status.code(),
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        };
        assert!(!ran.stderr.contains("panicked at"), "{command:?}: {}", ran.stderr);
        ran
    }

    /// The one JSON value on stdout.
    ///
    /// # Panics
    /// If there is none, or it has no schema version.
    pub fn json(&self) -> Value {
        let value: Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout));
        assert_eq!(value["schema_version"], 1, "{value}");
        value
    }
}
