//! Models that were split into several GGUF files. Each part is an archive and is listed as that part; a set is used only
//! as a whole, since half a model is a model that computes wrong.

use super::Parameters;
use crate::{
    error::{Error, ErrorKind, Result},
    near,
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use wharf_core::archive::Class;

/// Most missing parts that a message names.
const NAMED: usize = 8;

/// A part that is open.
struct Found<'a> {
    path: &'a Path,
    number: u64,
    count: u64,
    tensors: Option<u64>,
    own: u64,
}

impl Parameters {
    /// Refuses a set of split files of which a part is missing, is there twice, or belongs to another set.
    ///
    /// # Errors
    /// `missing_file` with the names of the parts; `invalid_value` for parts that do not agree.
    pub fn whole_sets(&self) -> Result<()> {
        let mut sets: BTreeMap<(&str, PathBuf), Vec<Found<'_>>> = BTreeMap::new();
        for (scope, file) in self.files() {
            let Some(part) = file.index().part() else { continue };
            let (path, own) = (file.path(), file.index().len() as u64);
            let found = Found { path, number: part.number, count: part.count, tensors: part.tensors, own };
            sets.entry((scope, stem(path))).or_default().push(found);
        }
        sets.values().try_for_each(|parts| whole(parts))
    }
}

/// A file's path without `-00002-of-00003.gguf`; parts whose names do not say so are one set by folder.
fn stem(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = numbered(&name).map_or("", |(stem, ..)| stem);
    path.parent().unwrap_or(Path::new("")).join(stem)
}

/// Stem, digits of the number and the rest, which begins with `-of-`.
fn numbered(name: &str) -> Option<(&str, &str, &str)> {
    let of = name.rfind("-of-")?;
    let dash = name[..of].rfind('-')?;
    let digits = &name[dash + 1..of];
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then_some((&name[..dash], digits, &name[of..]))
}

/// What the file of another part would be called.
fn name_of(sibling: &Path, number: u64) -> String {
    let name = sibling.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match numbered(&name) {
        Some((stem, digits, rest)) => format!("{stem}-{number:0width$}{rest}", width = digits.len()),
        None => format!("part {number}"),
    }
}

fn whole(parts: &[Found<'_>]) -> Result<()> {
    let Some(first) = parts.first() else { return Ok(()) };
    let bad = |class: Class, path: &Path, what: String| {
        let message = format!("{}: {}: {what}", path.display(), class.name());
        Error::new(ErrorKind::Archive(class), message).in_file(path)
    };
    let mut there: BTreeMap<u64, &Path> = BTreeMap::new();
    for part in parts {
        if part.count != first.count {
            let what = format!(
                "it is a part of {}, but {} is one of {}",
                part.count,
                first.path.display(),
                first.count
            );
            return Err(bad(Class::InvalidValue, part.path, what).next("give the parts of one set only"));
        }
        if let Some(other) = there.insert(part.number, part.path) {
            let what = format!("part {} of {} is in {} too", part.number, part.count, other.display());
            return Err(bad(Class::InvalidValue, part.path, what).next("give each part once"));
        }
    }
    let missing = (1..=first.count).filter(|number| !there.contains_key(number));
    let names: Vec<String> =
        missing.take(NAMED).map(|number| near::escaped(&name_of(first.path, number))).collect();
    let count = first.count - there.len() as u64;
    if count > 0 {
        let more = if count > names.len() as u64 { ", ..." } else { "" };
        let what = format!("{count} of {} parts are missing: {}{more}", first.count, names.join(", "));
        return Err(bad(Class::MissingFile, first.path, what).next("name all parts of the set together"));
    }
    let own = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.own));
    match first.tensors {
        Some(total) if total != own => {
            let what = format!("all parts together should have {total} tensors, they have {own}");
            Err(bad(Class::InvalidValue, first.path, what).next("download the set again"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_another_part_follows_from_one() {
        assert_eq!(name_of(Path::new("a/m-of-x-00002-of-00003.gguf"), 1), "m-of-x-00001-of-00003.gguf");
        assert_eq!(name_of(Path::new("model.gguf"), 3), "part 3");
        assert_eq!(stem(Path::new("a/m-00002-of-00003.gguf")), Path::new("a/m"));
    }
}
