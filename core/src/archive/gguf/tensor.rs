//! Tensor infos: name, dimensions (innermost first in the file), type and offset from the beginning of the data.

use super::super::dtype::{Dtype, Unsized};
use super::super::entry::{Data, Entry, Shape, Text};
use super::super::error::{Class, Error};
use super::super::input::{Cursor, Stop};
use super::super::limits;
use super::{Gguf, count, value};

/// An info as stored, not yet held against the data.
pub(super) struct Info<'a> {
    name: Text<'a>,
    shape: Shape,
    kind: u32,
    offset: u64,
}

impl<'a> Info<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>, version: u32) -> Result<Self, Stop> {
        let name = value::name(cursor, version, "name of a tensor")?;
        let at = cursor.at;
        let rank = u64::from(cursor.u32()?);
        if rank > limits::GGUF_DIMENSIONS {
            let error =
                Error::new(Class::LimitExceeded, at, "{name} has {a} dimensions, ggml has at most {b}");
            return Err(error.name(name).values(rank, limits::GGUF_DIMENSIONS).into());
        }
        let mut shape = Shape::scalar();
        for _ in 0..rank {
            let fits = shape.push(count(cursor, version)?);
            debug_assert!(fits, "ggml's limit is below ours");
        }
        shape.reverse();
        Ok(Info { name, shape, kind: cursor.u32()?, offset: cursor.u64()? })
    }

    /// The entry, proven to be inside the file.
    fn entry(self, file: &Gguf<'a>) -> Result<Entry<'a>, Error> {
        let Info { name, shape, kind, offset } = self;
        let fail = |class, detail| Error::new(class, name.at(), detail).name(name);
        let Some(dtype) = Dtype::from_ggml(kind) else {
            let detail = match Dtype::withdrawn_ggml(kind) {
                true => "{name} has type {a}, which ggml withdrew",
                false => "{name} has the unknown type {a}",
            };
            return Err(fail(Class::UnsupportedDtype, detail).values(u64::from(kind), 0));
        };
        let len = dtype.bytes(shape.dims()).map_err(|why| match why {
            Unsized::Overflow => fail(Class::Overflow, "the shape of {name} has more bytes than fit 64 bits"),
            Unsized::Ragged => {
                let inner = shape.dims().last().copied().unwrap_or(1);
                fail(
                    Class::SizeMismatch,
                    "rows of {name} have {a} elements, no whole number of blocks of {b}",
                )
                .values(inner, dtype.block_elements())
            }
        })?;
        // The alignment is a power of two.
        if offset & (file.alignment - 1) != 0 {
            let error =
                fail(Class::Misaligned, "the offset {a} of {name} is no multiple of the alignment {b}");
            return Err(error.values(offset, file.alignment));
        }
        let place = file.data_at.checked_add(offset);
        file.input.prove(place, len).map_err(|error| error.name(name))?;
        let data = Data::Range { offset: file.data_at + offset, len };
        Ok(Entry { name, dtype: Some(dtype), shape, alignment: file.alignment, metadata: None, data })
    }
}

/// The tensors of a file.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    file: Gguf<'a>,
    at: u64,
    left: u64,
}

impl<'a> Entries<'a> {
    pub(super) fn new(file: Gguf<'a>) -> Self {
        Entries { file, at: file.infos_at, left: file.tensors }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Stop>;
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut cursor = Cursor { input: self.file.input, at: self.at, big: self.file.big };
        let info = match Info::read(&mut cursor, self.file.version) {
            Ok(info) => info,
            Err(stop) => {
                self.left = 0;
                return Some(Err(stop));
            }
        };
        self.at = cursor.at;
        Some(info.entry(&self.file).map_err(Stop::Bad))
    }
}
