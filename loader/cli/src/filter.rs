//! The little language of `--filter`: conditions with blanks between, all of which must hold.

use crate::{
    cli::Sort,
    out::{Failure, safe},
    typed::Typed,
};
use std::cmp::Ordering;
use wharf::{Error, ErrorKind, Tensor, TensorPlace};

/// Filters of which one must hold.
pub(crate) struct Filter(Vec<Vec<Condition>>);

enum Condition {
    Name(glob::Pattern, bool),
    Dtype(Vec<String>, bool),
    Place(&'static str, bool),
    Shape { dims: Vec<Option<u64>>, open: bool, equal: bool },
    Number(Number, Compare, u64),
}

#[derive(Clone, Copy)]
enum Number {
    Size,
    Offset,
    Rank,
}

#[derive(Clone, Copy, PartialEq)]
enum Compare {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
}

/// Longest first, so that `>=` is not read as `>`.
const COMPARES: [(&str, Compare); 6] = [
    ("!=", Compare::NotEqual),
    (">=", Compare::GreaterOrEqual),
    ("<=", Compare::LessOrEqual),
    ("=", Compare::Equal),
    (">", Compare::Greater),
    ("<", Compare::Less),
];

const UNITS: [(&str, u64); 9] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
];

impl Filter {
    pub(crate) fn new(filters: &[String]) -> Result<Self, Failure> {
        let bad = |filter: &str, why: String| {
            let message = format!("--filter '{}': {why}", safe(filter));
            Error::new(ErrorKind::Usage, message).next("`wharf list --help` has the language and examples")
        };
        let parse = |filter: &String| -> Result<Vec<Condition>, Error> {
            let words = filter.split_whitespace();
            words.map(|word| condition(word).map_err(|why| bad(filter, why))).collect()
        };
        Ok(Filter(filters.iter().map(parse).collect::<Result<_, _>>()?))
    }

    pub(crate) fn takes(&self, tensor: &Tensor<'_>, typed: &Typed) -> bool {
        let holds = |conditions: &Vec<Condition>| conditions.iter().all(|c| c.holds(tensor, typed));
        self.0.is_empty() || self.0.iter().any(holds)
    }
}

fn condition(word: &str) -> Result<Condition, String> {
    let end = word.find(['=', '<', '>', '!']).ok_or_else(|| format!("`{word}` compares nothing"))?;
    let (key, rest) = word.split_at(end);
    let (sign, compare) = COMPARES
        .iter()
        .find(|(sign, _)| rest.starts_with(sign))
        .ok_or_else(|| format!("`{word}` compares nothing"))?;
    let value = &rest[sign.len()..];
    if value.is_empty() {
        return Err(format!("`{word}` has no value"));
    }
    let numbers =
        [("size", Number::Size), ("bytes", Number::Size), ("offset", Number::Offset), ("rank", Number::Rank)];
    if let Some((_, number)) = numbers.iter().find(|(name, _)| *name == key) {
        return Ok(Condition::Number(*number, *compare, amount(value)?));
    }
    let equal = match compare {
        Compare::Equal => true,
        Compare::NotEqual => false,
        _ => return Err(format!("`{key}` is compared with = and != only")),
    };
    match key {
        "name" => {
            Ok(Condition::Name(glob::Pattern::new(value).map_err(|e| format!("`{value}`: {e}"))?, equal))
        }
        "dtype" | "type" => Ok(Condition::Dtype(value.split(',').map(str::to_uppercase).collect(), equal)),
        "place" => {
            let known = ["stored", "splat", "external"].into_iter().find(|place| *place == value);
            let place = known.ok_or_else(|| format!("`{value}` is no place: stored, splat or external"))?;
            Ok(Condition::Place(place, equal))
        }
        "shape" => shape(value, equal),
        _ => Err(format!("`{key}` is unknown; there are name, dtype, shape, rank, size, offset and place")),
    }
}

fn shape(value: &str, equal: bool) -> Result<Condition, String> {
    let bad = || format!("`{value}` is no shape such as [3,_,64]");
    let inside = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(bad)?;
    let mut parts: Vec<&str> = inside.split(',').filter(|part| !part.is_empty()).collect();
    let open = parts.last() == Some(&"..");
    if open {
        parts.pop();
    }
    let dim = |part: &&str| match *part {
        "_" | "*" => Ok(None),
        digits => digits.parse().map(Some).map_err(|_| bad()),
    };
    Ok(Condition::Shape { dims: parts.iter().map(dim).collect::<Result<_, _>>()?, open, equal })
}

/// A number with a unit, such as `1.5MB`.
fn amount(text: &str) -> Result<u64, String> {
    let lower = text.to_lowercase();
    let (digits, unit) = match UNITS.iter().find(|(name, _)| lower.ends_with(name)) {
        Some((name, unit)) => (&lower[..lower.len() - name.len()], *unit),
        None => (lower.as_str(), 1),
    };
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(unit).ok_or_else(|| format!("`{text}` is too large"));
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok((number * unit as f64) as u64),
        _ => Err(format!("`{text}` is no number of bytes such as 4096, 1.5MB or 2GiB")),
    }
}

impl Condition {
    fn holds(&self, tensor: &Tensor<'_>, typed: &Typed) -> bool {
        match self {
            Condition::Name(pattern, equal) => pattern.matches(tensor.name) == *equal,
            Condition::Dtype(names, equal) => {
                let own = typed.dtype.unwrap_or("NONE");
                names.iter().any(|name| name == own) == *equal
            }
            Condition::Place(place, equal) => (place_of(tensor) == *place) == *equal,
            Condition::Shape { dims, open, equal } => {
                let fits = typed.shape.as_ref().is_some_and(|own| {
                    let long = if *open { own.len() >= dims.len() } else { own.len() == dims.len() };
                    long && own.iter().zip(dims).all(|(own, dim)| dim.is_none_or(|dim| dim == *own))
                });
                fits == *equal
            }
            Condition::Number(number, compare, value) => {
                let own = match number {
                    Number::Size => Some(tensor.bytes),
                    Number::Offset => offset(tensor),
                    Number::Rank => typed.shape.as_ref().map(|shape| shape.len() as u64),
                };
                own.is_some_and(|own| compare.holds(own.cmp(value)))
            }
        }
    }
}

impl Compare {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Compare::Less => order.is_lt(),
            Compare::LessOrEqual => order.is_le(),
            Compare::Equal => order.is_eq(),
            Compare::NotEqual => order.is_ne(),
            Compare::Greater => order.is_gt(),
            Compare::GreaterOrEqual => order.is_ge(),
        }
    }
}

fn place_of(tensor: &Tensor<'_>) -> &'static str {
    match tensor.place {
        TensorPlace::Offset(_) => "stored",
        TensorPlace::Splat(_) => "splat",
        TensorPlace::External(..) => "external",
    }
}

fn offset(tensor: &Tensor<'_>) -> Option<u64> {
    match tensor.place {
        TensorPlace::Offset(offset) | TensorPlace::External(_, offset) => Some(offset),
        TensorPlace::Splat(_) => None,
    }
}

/// Sorts; what is alike stays in the order of the files.
pub(crate) fn sort(tensors: &mut [Tensor<'_>], by: Sort) {
    match by {
        Sort::Name => tensors.sort_by_key(|tensor| (tensor.name, tensor.scope)),
        Sort::Size => tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.bytes)),
        Sort::Offset => tensors.sort_by_key(|tensor| offset(tensor).unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units_of_both_kinds() {
        let cases = [("7", 7), ("1MB", 1_000_000), ("1.5kB", 1_500), ("2GiB", 2 << 30), ("0b", 0)];
        for (text, bytes) in cases {
            assert_eq!(amount(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "-1", "1e400", "nan", "99999999999TB"] {
            assert!(amount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_that_mean_nothing_are_refused() {
        for word in
            ["size", "size>", "size~3", "colour=red", "dtype>F32", "shape=3,4", "shape=[a]", "place=here"]
        {
            assert!(condition(word).is_err(), "{word}");
        }
    }
}
