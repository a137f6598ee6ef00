//! Archives that are written: their tensors come from other archives, from patterns or from memory.
//!
//! The file appears whole or not at all (`output`), never takes the place of a file that is being read, and memory
//! is bounded whatever the sizes: bytes are copied in pieces of 1 MiB.

mod output;

use crate::{
    error::{Error, ErrorKind, Result},
    near,
    parameters::{Content, Parameters},
};
use output::Output;
use std::{collections::HashMap, path::Path};
use wharf_core::archive::{
    self, Class, Dtype, Format,
    write::{Draft, DraftData, Sink, irpa, safetensors, zeros},
};

/// A tensor that is to be written.
#[derive(Clone)]
pub struct NewTensor<'a> {
    /// Its name.
    pub name: String,
    /// Its type, by name; IRPA keeps none, in safetensors a tensor without one becomes bytes (`U8`).
    pub dtype: Option<&'a str>,
    /// Its dimensions, outermost first.
    pub shape: Vec<u64>,
    /// What IRPA keeps with it.
    pub metadata: Vec<u8>,
    /// Its bytes; a splat stays one in IRPA.
    pub content: Content<'a>,
    /// For a splat: whether its bytes are stored all the same.
    pub stored: bool,
}

/// An archive that is to be written.
pub struct NewArchive<'a> {
    /// IRPA or safetensors.
    pub format: Format,
    /// A power of two: where stored tensors begin in IRPA, where the data begins in safetensors.
    pub alignment: u64,
    /// Pairs of metadata; only safetensors keeps them.
    pub metadata: Vec<(String, String)>,
    /// The tensors in their order; safetensors has those with the largest elements first.
    pub tensors: Vec<NewTensor<'a>>,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Tensors.
    pub tensors: usize,
    /// Bytes of all tensors, those of splats too.
    pub bytes: u64,
    /// Length of the file.
    pub file_bytes: u64,
}

/// The alignment that archives of a format get unless another is asked for.
pub fn alignment(format: Format) -> u64 {
    match format {
        Format::Safetensors => safetensors::ALIGNMENT,
        _ => irpa::ALIGNMENT,
    }
}

/// Where everything will be.
enum Layout {
    Irpa(irpa::Layout),
    Safetensors(safetensors::Layout),
}

impl NewArchive<'_> {
    /// Writes the file, unless it is one of those that `inputs` reads. `watch` is told of each piece of data, and can
    /// end it by an error.
    ///
    /// # Errors
    /// A name twice; what the format cannot hold; a file that cannot be read or written; what `watch` answers. Nothing
    /// is left then, and a file that was there is as it was.
    pub fn write(
        mut self,
        path: &Path,
        inputs: &Parameters,
        mut watch: impl FnMut(u64) -> Result<()>,
    ) -> Result<Written> {
        if inputs.reads(path)? {
            let message = format!("{} is read to make it: it would be lost", path.display());
            return Err(Error::new(ErrorKind::Usage, message)
                .in_file(path)
                .next("name another file with -o"));
        }
        self.unique(path)?;
        if self.format == Format::Safetensors {
            self.for_safetensors(path)?;
        }
        let layout = self.layout().map_err(|error| self.refused(path, &error))?;
        let mut file = Output::create(path)?;
        self.head(&layout, &mut file)?;
        let offsets = self.offsets(&layout);
        for (tensor, offset) in self.tensors.iter().zip(offsets) {
            let Some(offset) = offset else { continue };
            let gap = offset.saturating_sub(file.written());
            zeros(&mut file, gap)?;
            tensor.content.read(|piece| {
                file.put(piece)?;
                watch(piece.len() as u64)
            })?;
        }
        let file_bytes = match &layout {
            Layout::Irpa(layout) => layout.file_len(),
            Layout::Safetensors(layout) => layout.file_len(),
        };
        let rest = file_bytes.saturating_sub(file.written());
        zeros(&mut file, rest)?;
        file.finish()?;
        let bytes = self.tensors.iter().fold(0_u64, |sum, tensor| sum.saturating_add(tensor.content.len()));
        Ok(Written { tensors: self.tensors.len(), bytes, file_bytes })
    }

    /// Bytes of data that will be copied.
    pub fn copied(&self) -> u64 {
        let lens = self.tensors.iter().map(|tensor| match self.draft(tensor).data {
            DraftData::Stored(len) => len,
            DraftData::Splat { .. } => 0,
        });
        lens.fold(0, u64::saturating_add)
    }

    /// What the format asks: a type for each tensor, and elements at multiples of their size.
    fn for_safetensors(&mut self, path: &Path) -> Result<()> {
        for tensor in self.tensors.iter_mut().filter(|tensor| tensor.dtype.is_none()) {
            tensor.dtype = Some("U8");
            tensor.shape = vec![tensor.content.len()];
        }
        // What is wrong is said of the first tensor in the caller's order.
        self.layout().map_err(|error| self.refused(path, &error))?;
        let unit = |tensor: &NewTensor<'_>| {
            let bytes = tensor.dtype.and_then(Dtype::from_name).and_then(Dtype::block_bytes).unwrap_or(1);
            1_u64 << bytes.trailing_zeros().min(3)
        };
        self.tensors.sort_by_key(|tensor| std::cmp::Reverse(unit(tensor)));
        Ok(())
    }

    fn unique(&self, path: &Path) -> Result<()> {
        let mut seen = HashMap::new();
        for (number, tensor) in self.tensors.iter().enumerate() {
            if let Some(before) = seen.insert(tensor.name.as_str(), number) {
                let message = format!(
                    "{}: duplicate_name: two tensors would be `{}`, number {} and number {}",
                    path.display(),
                    near::escaped(&tensor.name),
                    before + 1,
                    number + 1
                );
                let error = Error::new(ErrorKind::Archive(Class::DuplicateName), message).in_file(path);
                return Err(error.next("rename one of them, or leave one out"));
            }
        }
        Ok(())
    }

    fn draft<'t>(&self, tensor: &'t NewTensor<'_>) -> Draft<'t> {
        let len = tensor.content.len();
        let data = match tensor.content.pattern() {
            Some(bytes) if self.format == Format::Irpa && !tensor.stored => {
                let mut pattern = [0; 16];
                pattern.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
                DraftData::Splat { pattern, pattern_len: bytes.len().min(16) as u8, len }
            }
            _ => DraftData::Stored(len),
        };
        let dtype = tensor.dtype.and_then(Dtype::from_name);
        Draft { name: &tensor.name, dtype, shape: &tensor.shape, metadata: &tensor.metadata, data }
    }

    fn drafts(&self) -> impl Iterator<Item = Draft<'_>> + Clone {
        self.tensors.iter().map(|tensor| self.draft(tensor))
    }
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    fn layout(&self) -> std::result::Result<Layout, archive::Error> {
        Ok(match self.format {
            Format::Safetensors => {
                Layout::Safetensors(safetensors::Layout::of(self.drafts(), self.pairs(), self.alignment)?)
            }
            _ => Layout::Irpa(irpa::Layout::of(self.drafts(), self.alignment)?),
        })
    }

    fn head(&self, layout: &Layout, file: &mut Output) -> Result<()> {
        match layout {
            Layout::Irpa(layout) => layout.head(self.drafts(), file),
            Layout::Safetensors(layout) => layout.head(self.drafts(), self.pairs(), file),
        }
    }

    /// Where each tensor's bytes go; none for a splat.
    fn offsets(&self, layout: &Layout) -> Vec<Option<u64>> {
        match layout {
            Layout::Irpa(layout) => layout.offsets(self.drafts()).collect(),
            Layout::Safetensors(layout) => layout.offsets(self.drafts()).map(Some).collect(),
        }
    }

    fn refused(&self, path: &Path, error: &archive::Error) -> Error {
        let kind = match error.class() {
            Class::InvalidValue => ErrorKind::Usage,
            class => ErrorKind::Archive(class),
        };
        let error = Error::new(kind, format!("{}: {error}", path.display())).in_file(path);
        match (kind, self.format) {
            (ErrorKind::Archive(Class::UnsupportedDtype), Format::Safetensors) => {
                error.next("an .irpa file holds tensors of any type; --exclude leaves one out")
            }
            (ErrorKind::Usage, _) => error.next("`wharf convert --help` says what can be given"),
            _ => error.next("--exclude leaves a tensor out"),
        }
    }
}
