//! Manifests: small JSON files that name a plugin where it lies, which version of the ABI it is for, and perhaps what its
//! bytes must hash to. Fields that are not known are skipped, so that the format can grow; another major version of the
//! format is refused.

use crate::near;
use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};
use wharf_abi::meta::is_id;
use wharf_core::archive::{
    self,
    json::{Kind, Scanner},
};

/// How the names of manifests end.
pub(crate) const EXTENSION: &str = "json";
/// Bytes of a manifest at most.
pub(crate) const LEN_MAX: u64 = 1 << 20;
/// The major version of the format that is read here.
const FORMAT_MAJOR: u16 = 1;

/// A SHA-256.
pub(crate) type Hash = [u8; 32];

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The manifest itself.
    pub(crate) file: PathBuf,
    pub(crate) id: String,
    /// The library, relative paths from where the manifest lies.
    pub(crate) library: PathBuf,
    pub(crate) abi_major: u16,
    /// What the library's bytes must hash to.
    pub(crate) pin: Option<Hash>,
}

/// Reads a manifest; an error is one line.
pub(crate) fn read(file: &Path) -> Result<Manifest, String> {
    let opened = File::open(file).map_err(|error| error.to_string())?;
    let facts = opened.metadata().map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("not a file".into());
    }
    let mut text = vec![];
    opened.take(LEN_MAX + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    let said = parse(&text)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    Ok(Manifest {
        file: file.to_owned(),
        library: folder.join(said.path),
        id: said.id,
        abi_major: said.abi_major,
        pin: said.pin,
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Said {
    id: String,
    path: String,
    abi_major: u16,
    pin: Option<Hash>,
}

fn parse(text: &[u8]) -> Result<Said, String> {
    if text.len() as u64 > LEN_MAX {
        return Err(format!("longer than {LEN_MAX} bytes, which no manifest is"));
    }
    if text.starts_with(b"\xef\xbb\xbf") {
        return Err("begins with a byte order mark; plain UTF-8 is wanted".into());
    }
    if let Some(at) = text.iter().position(|byte| *byte == 0) {
        return Err(format!("has a NUL byte at byte {at}"));
    }
    let mut scanner = Scanner::new(text, 0);
    let mut plugin = None;
    let top = object(&mut scanner, "", |key, scanner| {
        let inner = key == "plugin" && scanner.kind().map_err(words)? == Kind::Object;
        if inner {
            plugin = Some(object(scanner, "plugin.", |_, _| Ok(false))?);
        }
        Ok(inner)
    })?;
    scanner.finish().map_err(words)?;
    let version = top.text("file_format_version")?;
    let major = major(version)
        .ok_or_else(|| format!("`file_format_version` is `{}`, no version", near::escaped(version)))?;
    if major != FORMAT_MAJOR {
        return Err(format!("`file_format_version` is {version}; this loader reads {FORMAT_MAJOR}.x"));
    }
    let Some(plugin) = plugin else {
        return Err(top.wrong("plugin", "an object"));
    };
    said(&plugin)
}

fn said(plugin: &Fields<'_>) -> Result<Said, String> {
    let id = plugin.text("id")?;
    if !is_id(id.as_bytes()) {
        return Err(format!("`plugin.id` is `{}`; an id is 1 to 64 of a-z 0-9 _ - .", near::escaped(id)));
    }
    let path = plugin.text("path")?;
    if path.is_empty() {
        return Err("`plugin.path` is empty".into());
    }
    if path.contains('\0') {
        return Err("`plugin.path` has a NUL in it".into());
    }
    let abi = plugin.text("abi")?;
    let abi_major =
        major(abi).ok_or_else(|| format!("`plugin.abi` is `{}`, no version", near::escaped(abi)))?;
    let pin = match plugin.0.get("sha256") {
        None => None,
        Some(_) => Some(hash(plugin.text("sha256")?).ok_or("`plugin.sha256` is not 64 hex digits")?),
    };
    if plugin.0.contains_key("description") {
        plugin.text("description")?;
    }
    Ok(Said { id: id.into(), path: path.into(), abi_major, pin })
}

/// The fields of an object: texts, and of all others what they are.
struct Fields<'a>(HashMap<String, Result<String, &'static str>>, &'a str);

impl Fields<'_> {
    fn text(&self, name: &str) -> Result<&str, String> {
        match self.0.get(name) {
            Some(Ok(text)) => Ok(text),
            _ => Err(self.wrong(name, "a string")),
        }
    }

    fn wrong(&self, name: &str, wanted: &str) -> String {
        let path = self.1;
        match self.0.get(name) {
            None => format!("`{path}{name}` is missing"),
            Some(Ok(_)) => format!("`{path}{name}` is a string, not {wanted}"),
            Some(Err(is)) => format!("`{path}{name}` is {is}, not {wanted}"),
        }
    }
}

/// Reads an object. `take` is asked first and answers whether it has read the value.
fn object<'a>(
    scanner: &mut Scanner<'_>,
    path: &'a str,
    mut take: impl FnMut(&str, &mut Scanner<'_>) -> Result<bool, String>,
) -> Result<Fields<'a>, String> {
    scanner.expect(b'{', "an object is wanted here").map_err(words)?;
    let (mut fields, mut first) = (HashMap::new(), true);
    while let Some(key) = scanner.key(&mut first).map_err(words)? {
        let name: String = key.chars().collect();
        let value = if take(&name, scanner)? { Err("an object") } else { value(scanner)? };
        if fields.insert(name.clone(), value).is_some() {
            return Err(format!("`{path}{}` is there twice", near::escaped(&name)));
        }
    }
    Ok(Fields(fields, path))
}

fn value(scanner: &mut Scanner<'_>) -> Result<Result<String, &'static str>, String> {
    let is = match scanner.kind().map_err(words)? {
        Kind::String => return Ok(Ok(scanner.string().map_err(words)?.chars().collect())),
        Kind::Object => "an object",
        Kind::Array => "an array",
        Kind::Number => "a number",
        Kind::Word => "true, false or null",
    };
    scanner.skip().map_err(words)?;
    Ok(Err(is))
}

fn words(error: archive::Error) -> String {
    error.to_string()
}

/// The first number of `1`, `1.0` or `1.0.0`.
fn major(version: &str) -> Option<u16> {
    let mut numbers =
        version.split('.').map(|n| n.parse().ok().filter(|_| n.bytes().all(|b| b.is_ascii_digit())));
    let first = numbers.next()??;
    numbers.all(|number: Option<u16>| number.is_some()).then_some(first)
}

fn hash(digits: &str) -> Option<Hash> {
    let mut hash = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, two) in hash.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests;
