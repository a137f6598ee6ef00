//! The index of a sharded safetensors checkpoint (`model.safetensors.index.json`): which file holds which tensor. It
//! decides alone: a tensor of a shard that the index does not assign to it is not part of the set. The loader opens the
//! shards and answers `missing_file` and `not_found`.

use alloc::string::String;
use alloc::vec::Vec;

use hashbrown::HashMap;

use super::entry::Text;
use super::error::{Class, Error};
use super::json::{Kind, Scanner};
use super::{limits, path};

/// A parsed index.
#[derive(Clone, Debug, Default)]
pub struct Shards {
    tensors: Vec<(String, u32)>,
    files: Vec<String>,
    total_size: Option<u64>,
}

impl Shards {
    /// Parses the text of an index, all of it.
    ///
    /// # Errors
    /// `invalid_json` and `invalid_type` for what is no index; `duplicate_name` for a tensor that is assigned twice;
    /// `path_escape` for a file that is not named plainly; `bad_magic` for a file that can be no safetensors file.
    pub fn parse(text: &[u8]) -> Result<Shards, Error> {
        if text.len() as u64 > limits::SHARD_INDEX_BYTES {
            let error = Error::new(Class::LimitExceeded, 0, "an index of {a} bytes, at most {b} are read");
            return Err(error.values(text.len() as u64, limits::SHARD_INDEX_BYTES));
        }
        let mut scan = Scanner::new(text, 0);
        object(&mut scan, "the index is no object")?;
        let mut shards = Shards::default();
        let (mut first, mut seen, mut described) = (true, false, false);
        while let Some(key) = scan.key(&mut first)? {
            let twice = if key == *"weight_map" {
                shards.map(&mut scan)?;
                core::mem::replace(&mut seen, true)
            } else if key == *"metadata" {
                shards.metadata(&mut scan)?;
                core::mem::replace(&mut described, true)
            } else {
                scan.skip()?;
                false
            };
            if twice {
                return Err(Error::new(Class::DuplicateKey, key.at(), "{name} occurs twice").name(key));
            }
        }
        scan.finish()?;
        if !seen {
            return Err(Error::new(Class::InvalidJson, 0, "the index has no weight_map"));
        }
        Ok(shards)
    }

    /// The tensors in the order of the index, each with the number of its file.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = (&str, usize)> {
        self.tensors.iter().map(|(name, file)| (name.as_str(), *file as usize))
    }
    /// The files, each once, in the order in which the index names them first.
    pub fn files(&self) -> &[String] {
        &self.files
    }
    /// Bytes of all tensors together, as the index says. Often wrong in the field: worth a warning, no more.
    pub fn total_size(&self) -> Option<u64> {
        self.total_size
    }

    fn map(&mut self, scan: &mut Scanner<'_>) -> Result<(), Error> {
        object(scan, "weight_map is no object")?;
        let mut names = HashMap::new();
        let mut files: HashMap<String, u32> = HashMap::new();
        let mut first = true;
        while let Some(name) = scan.key(&mut first)? {
            let decoded: String = name.chars().collect();
            if names.insert(decoded.clone(), ()).is_some() {
                let detail = "{name} is assigned to a file twice";
                return Err(Error::new(Class::DuplicateName, name.at(), detail).name(name));
            }
            let file = file_name(name, scan)?;
            let number = match files.get(&file) {
                Some(&number) => number,
                None => {
                    // An index is limited to fewer than 2^32 bytes.
                    let number = self.files.len() as u32;
                    self.files.push(file.clone());
                    files.insert(file, number);
                    number
                }
            };
            self.tensors.push((decoded, number));
        }
        Ok(())
    }

    /// Keeps `total_size`; the rest is free. Some writers make it a float, which is as good as none.
    fn metadata(&mut self, scan: &mut Scanner<'_>) -> Result<(), Error> {
        if scan.kind()? != Kind::Object {
            return scan.skip();
        }
        scan.eat(b'{');
        let mut first = true;
        while let Some(key) = scan.key(&mut first)? {
            let before = *scan;
            scan.skip()?;
            if key == *"total_size" {
                self.total_size = { before }.number().ok();
            }
        }
        Ok(())
    }
}

fn object(scan: &mut Scanner<'_>, detail: &'static str) -> Result<(), Error> {
    if scan.kind()? != Kind::Object {
        return Err(Error::new(Class::InvalidType, scan.offset(), detail));
    }
    scan.eat(b'{');
    Ok(())
}

/// The file that a tensor is assigned to.
fn file_name(name: Text<'_>, scan: &mut Scanner<'_>) -> Result<String, Error> {
    if scan.kind()? != Kind::String {
        return Err(Error::new(Class::InvalidType, scan.offset(), "{name} is assigned to what is no string")
            .name(name));
    }
    let text = scan.string()?;
    let file: String = text.chars().collect();
    let fail = |class, detail| Error::new(class, text.at(), detail).name(name).word(text.bytes());
    if let Some(why) = path::leaves(&file) {
        return Err(fail(Class::PathEscape, why));
    }
    if file.len() as u64 > limits::NAME_BYTES {
        return Err(fail(
            Class::LimitExceeded,
            "{name} is assigned to a file whose name is too long, `{word}`",
        ));
    }
    if file.to_ascii_lowercase().ends_with(".json") {
        return Err(fail(Class::BadMagic, "{name} is assigned to `{word}`, which is no safetensors file"));
    }
    Ok(file)
}
