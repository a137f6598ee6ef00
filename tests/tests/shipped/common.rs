//! Folders of plugins, plugins in C, bytes that are changed, and what the command says of them.

use serde_json::Value;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};
use wharf_tests::{Ran, host_plugin, root, wharf};

/// A folder that a test fills with plugins.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where a plugin of this name would lie.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path().join(format!("{name}.{}", env::consts::DLL_EXTENSION))
    }

    /// The host plugin under this name.
    pub(crate) fn host(&self, name: &str) -> PathBuf {
        fs::copy(host_plugin(), self.at(name)).unwrap();
        self.at(name)
    }

    /// The host plugin with other bytes.
    pub(crate) fn changed(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
        let mut bytes = fs::read(host_plugin()).unwrap();
        change(&mut bytes);
        self.bytes(name, &bytes)
    }

    pub(crate) fn bytes(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.at(name), bytes).unwrap();
        self.at(name)
    }

    /// A plugin in C of this source, behind the header of the ABI.
    pub(crate) fn c(&self, name: &str, source: &str, options: &[&str]) -> PathBuf {
        let (from, to) = (self.path().join(format!("{name}.c")), self.at(name));
        fs::write(&from, format!("#include \"wharf_plugin.h\"\n{source}")).unwrap();
        let mut cc = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
        cc.args(["-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-I"]);
        cc.arg(root().join("plugins/abi/include")).arg("-o").arg(&to).arg(&from).args(options);
        let made = cc.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        fs::remove_file(from).unwrap();
        to
    }

    /// A manifest with these fields of `plugin` beside id and ABI.
    pub(crate) fn manifest(&self, name: &str, path: &str, fields: &str) -> PathBuf {
        let file = self.path().join(format!("{name}.json"));
        let text = format!(
            r#"{{"file_format_version":"1.0.0","plugin":{{"id":"host","abi":"1.0","path":"{path}"{fields}}}}}"#
        );
        fs::write(&file, text).unwrap();
        file
    }

    /// The command over this folder.
    pub(crate) fn wharf(&self) -> Command {
        let mut command = wharf();
        command.arg("--plugin-path").arg(self.path());
        command
    }

    /// What became of each candidate.
    pub(crate) fn plugins(&self) -> Plugins {
        Plugins::of(&mut self.wharf())
    }
}

/// The answer of `wharf plugins --json`.
pub(crate) struct Plugins(pub(crate) Value);

impl Plugins {
    pub(crate) fn of(command: &mut Command) -> Plugins {
        let json = Ran::of(command.args(["plugins", "--json"])).json();
        for plugin in json["plugins"].as_array().unwrap() {
            assert!(!plugin["reason"].as_str().unwrap().contains('\n'), "one line: {plugin}");
        }
        Plugins(json)
    }

    pub(crate) fn all(&self) -> &Vec<Value> {
        self.0["plugins"].as_array().unwrap()
    }

    /// The one candidate whose file ends so.
    pub(crate) fn one(&self, file: &str) -> &Value {
        let ends = |p: &&Value| Path::new(p["file"].as_str().unwrap()).file_stem().unwrap() == file;
        let found: Vec<&Value> = self.all().iter().filter(ends).collect();
        assert_eq!(found.len(), 1, "{file} in {}", self.0);
        found[0]
    }

    pub(crate) fn state(&self, file: &str) -> &str {
        self.one(file)["state"].as_str().unwrap()
    }

    /// The class of a candidate that is not used.
    pub(crate) fn class(&self, file: &str) -> &str {
        self.one(file)["class"].as_str().unwrap_or_else(|| panic!("{}", self.one(file)))
    }

    pub(crate) fn reason(&self, file: &str) -> &str {
        self.one(file)["reason"].as_str().unwrap()
    }
}

/// An entry that refuses every host, and a record with flags.
pub(crate) fn refuses(id: &str) -> String {
    format!("{REFUSES}WHARF_PLUGIN_META(\"{id}\", \"Test\", \"1.0\", WHARF_PLUGIN_FLAG_CONTAINS_PANICS);\n")
}

/// An entry that refuses every host.
pub(crate) const REFUSES: &str = "
WHARF_EXPORT const wharf_plugin_v1 *wharf_plugin_entry_v1(uint32_t major, uint32_t minor) {
  return (void)major, (void)minor, (const wharf_plugin_v1 *)0;
}
";

/// Code that makes this file as soon as the library is opened.
pub(crate) fn tells(file: &Path) -> String {
    format!(
        "#include <stdio.h>\n__attribute__((constructor)) static void began(void) {{\n  FILE *file = fopen(\"{}\", \"w\");\n  \
         if (file) fclose(file);\n}}\n",
        file.display()
    )
}

/// Where the record begins in a file.
pub(crate) fn record(bytes: &[u8]) -> usize {
    let magic = b"WHARFMD1";
    let at = bytes.windows(8).rposition(|eight| eight == magic).unwrap();
    let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap());
    assert!(len > 12 && len < 4096, "a record, not another use of its magic");
    at
}

/// Where the value of a field of the record begins.
pub(crate) fn field(bytes: &[u8], tag: u16) -> usize {
    let mut at = record(bytes) + 12;
    loop {
        let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if number(at) == tag {
            return at + 4;
        }
        at += 4 + usize::from(number(at + 2));
    }
}

/// Puts other bytes in the place of those, everywhere.
pub(crate) fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let mut found = 0;
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
            found += 1;
        }
    }
    assert!(found > 0, "{} is not there", String::from_utf8_lossy(from));
}

/// The host plugin's build id, as bytes.
pub(crate) fn build_id() -> Vec<u8> {
    let found = wharf::plugin::inspect(&host_plugin()).unwrap().build_id;
    let digits = found.expect("the linker writes build ids");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}
