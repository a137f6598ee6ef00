//! Values of tensors: how plain types are read, and what a tensor's values come to.

use std::fmt;
use wharf::{Content, Error};

/// A value of any plain type.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Scalar {
    Whole(i128),
    Float(f64),
    /// A float of 32 or 16 bits, which is shown as short as it is.
    Short(f32),
    Bool(bool),
}

/// Reads values of one type.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) size: usize,
    read: fn(&[u8]) -> Scalar,
    /// Adds all values of a piece; a loop of its own for each type is many times faster than calls of `read`.
    add: fn(&[u8], &mut Summary),
    big: bool,
}

/// The bytes as an array; those that lack are zero.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
    out
}

macro_rules! reader {
    ($size:literal, $big:expr, |$bytes:ident| $read:expr) => {
        Reader {
            size: $size,
            read: |bytes| {
                let $bytes: [u8; $size] = array(bytes);
                $read
            },
            add: |bytes, summary| {
                for $bytes in bytes.as_chunks::<$size>().0 {
                    let $bytes = *$bytes;
                    summary.add($read);
                }
            },
            big: $big,
        }
    };
}

impl Reader {
    /// For a type with this name; none if its values are not plain.
    pub(crate) fn new(dtype: &str, big: bool) -> Option<Reader> {
        Some(match dtype {
            "F64" => reader!(8, big, |bytes| Scalar::Float(f64::from_le_bytes(bytes))),
            "F32" => reader!(4, big, |bytes| Scalar::Short(f32::from_le_bytes(bytes))),
            "F16" => reader!(2, big, |bytes| Scalar::Short(half::f16::from_le_bytes(bytes).to_f32())),
            "BF16" => reader!(2, big, |bytes| Scalar::Short(half::bf16::from_le_bytes(bytes).to_f32())),
            "I8" => reader!(1, big, |bytes| Scalar::Whole(i8::from_le_bytes(bytes).into())),
            "I16" => reader!(2, big, |bytes| Scalar::Whole(i16::from_le_bytes(bytes).into())),
            "I32" => reader!(4, big, |bytes| Scalar::Whole(i32::from_le_bytes(bytes).into())),
            "I64" => reader!(8, big, |bytes| Scalar::Whole(i64::from_le_bytes(bytes).into())),
            "U8" => reader!(1, big, |bytes| Scalar::Whole(u8::from_le_bytes(bytes).into())),
            "U16" => reader!(2, big, |bytes| Scalar::Whole(u16::from_le_bytes(bytes).into())),
            "U32" => reader!(4, big, |bytes| Scalar::Whole(u32::from_le_bytes(bytes).into())),
            "U64" => reader!(8, big, |bytes| Scalar::Whole(u64::from_le_bytes(bytes).into())),
            "BOOL" => reader!(1, big, |bytes| Scalar::Bool(bytes[0] != 0)),
            _ => return None,
        })
    }

    fn scalar(&self, bytes: &[u8]) -> Scalar {
        if !self.big {
            return (self.read)(bytes);
        }
        let mut swapped = array::<8>(bytes);
        swapped[..self.size].reverse();
        (self.read)(&swapped[..self.size])
    }

    /// The values in these bytes, which begin with one.
    pub(crate) fn scalars<'b>(&'b self, bytes: &'b [u8]) -> impl Iterator<Item = Scalar> + 'b {
        bytes.chunks_exact(self.size).map(|bytes| self.scalar(bytes))
    }

    /// What all values come to. Of a splat, however long, only the period is looked at.
    pub(crate) fn sum_up(
        &self,
        content: &Content<'_>,
        mut watch: impl FnMut(u64) -> Result<(), Error>,
    ) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        if let Some(pattern) = content.pattern() {
            let period = (pattern.len().max(self.size) as u64).min(content.len());
            self.scalars(&content.head(period)?).for_each(|value| summary.add(value));
            summary.times(content.len() / period.max(1));
            return Ok(summary);
        }
        content.read(|piece| {
            if self.big {
                self.scalars(piece).for_each(|value| summary.add(value));
            } else {
                (self.add)(piece, &mut summary);
            }
            watch(piece.len() as u64)
        })?;
        Ok(summary)
    }
}

/// What values come to. Least and greatest leave out what is no number, the mean also what is infinite.
#[derive(Default)]
pub(crate) struct Summary {
    pub(crate) least: Option<Scalar>,
    pub(crate) greatest: Option<Scalar>,
    pub(crate) nan: u64,
    pub(crate) infinite: u64,
    finite: u64,
    sum: f64,
}

impl Summary {
    #[inline(always)] // So that each type's loop sees which kind of value it adds.
    fn add(&mut self, value: Scalar) {
        let number = value.number();
        if number.is_nan() {
            self.nan += 1;
            return;
        }
        if number.is_infinite() {
            self.infinite += 1;
        } else {
            self.finite += 1;
            self.sum += number;
        }
        if self.least.is_none_or(|least| value.below(least)) {
            self.least = Some(value);
        }
        if self.greatest.is_none_or(|greatest| greatest.below(value)) {
            self.greatest = Some(value);
        }
    }

    fn times(&mut self, times: u64) {
        for count in [&mut self.nan, &mut self.infinite, &mut self.finite] {
            *count = count.saturating_mul(times);
        }
        self.sum *= times as f64;
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (self.finite > 0).then(|| self.sum / self.finite as f64)
    }
}

impl Scalar {
    #[inline]
    fn number(self) -> f64 {
        match self {
            Scalar::Whole(number) => number as f64,
            Scalar::Float(number) => number,
            Scalar::Short(number) => number.into(),
            Scalar::Bool(value) => f64::from(u8::from(value)),
        }
    }

    /// Exact also for whole numbers that no float holds.
    #[inline]
    fn below(self, other: Scalar) -> bool {
        match (self, other) {
            (Scalar::Whole(a), Scalar::Whole(b)) => a < b,
            _ => self.number() < other.number(),
        }
    }

    /// As JSON; what JSON has no number for is a text.
    pub(crate) fn json(self) -> serde_json::Value {
        match self {
            Scalar::Whole(number) => match (i64::try_from(number), u64::try_from(number)) {
                (Ok(number), _) => number.into(),
                (_, Ok(number)) => number.into(),
                _ => number.to_string().into(),
            },
            Scalar::Bool(value) => value.into(),
            // By its shortest decimal, which is the one that the text shows.
            Scalar::Short(number) if number.is_finite() => {
                number.to_string().parse::<f64>().unwrap_or(number.into()).into()
            }
            Scalar::Float(number) if number.is_finite() => number.into(),
            other => other.to_string().into(),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Scalar::Whole(number) => number.fmt(f),
            Scalar::Bool(value) => value.fmt(f),
            Scalar::Float(number) => float(
                f,
                number,
                number.abs() >= 1e16 || (number != 0.0 && number.abs() < 1e-5),
                format_args!("{number:e}"),
                format_args!("{number}"),
            ),
            Scalar::Short(number) => {
                let long = number.abs() >= 1e9 || (number != 0.0 && number.abs() < 1e-5);
                float(f, number.into(), long, format_args!("{number:e}"), format_args!("{number}"))
            }
        }
    }
}

/// Very large and very small numbers with an exponent, and `nan`, `inf`, `-inf` in small letters.
fn float(
    f: &mut fmt::Formatter<'_>,
    number: f64,
    long: bool,
    exponent: fmt::Arguments<'_>,
    plain: fmt::Arguments<'_>,
) -> fmt::Result {
    if number.is_nan() {
        f.write_str("nan")
    } else if number.is_infinite() {
        f.write_str(if number > 0.0 { "inf" } else { "-inf" })
    } else {
        f.write_fmt(if long { exponent } else { plain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_both_byte_orders() {
        let little = Reader::new("I16", false).unwrap();
        let big = Reader::new("I16", true).unwrap();
        assert!(little.scalars(&[0xfe, 0xff]).next() == Some(Scalar::Whole(-2)));
        assert!(big.scalars(&[0xff, 0xfe]).next() == Some(Scalar::Whole(-2)));
        // 1.5 in IEEE 754: half 0x3e00, bfloat16 0x3fc0.
        assert_eq!(Reader::new("F16", true).unwrap().scalars(&[0x3e, 0]).next().unwrap().to_string(), "1.5");
        assert_eq!(
            Reader::new("BF16", false).unwrap().scalars(&[0xc0, 0x3f]).next().unwrap().to_string(),
            "1.5"
        );
        assert!(Reader::new("Q4_K", false).is_none());
    }

    #[test]
    fn what_is_no_number_is_counted_and_left_out() {
        let values = [1.0_f32, f32::NAN, f32::INFINITY, -3.0];
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let reader = Reader::new("F32", false).unwrap();
        let summary = reader.sum_up(&Content::bytes(bytes), |_| Ok(())).unwrap();
        assert_eq!((summary.nan, summary.infinite, summary.mean()), (1, 1, Some(-1.0)));
        assert_eq!(summary.least.unwrap().to_string(), "-3");
        assert_eq!(summary.greatest.unwrap().to_string(), "inf");
    }

    #[test]
    fn a_splat_is_summed_up_by_its_pattern() {
        let content = Content::splat(&[1, 0, 3, 0], 1 << 60).unwrap();
        let summary = Reader::new("U16", false).unwrap().sum_up(&content, |_| Ok(())).unwrap();
        assert_eq!(summary.mean(), Some(2.0));
        let (least, greatest) = (summary.least.unwrap(), summary.greatest.unwrap());
        assert_eq!((least.to_string(), greatest.to_string()), ("1".into(), "3".into()));
    }
}
