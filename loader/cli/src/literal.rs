//! Tensors as they are written on a command line: `NAME=2x3xf32=1.5`, in the words of IREE's tools.

use half::{bf16, f16};

/// A type of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Element {
    Bool,
    /// Bits, and whether negative and large positive numbers are taken.
    Whole {
        bits: u32,
        negative: bool,
        large: bool,
    },
    F16,
    Bf16,
    F32,
    F64,
}

/// A tensor that was written out.
#[derive(Debug, PartialEq)]
pub(crate) struct Literal {
    pub(crate) name: String,
    pub(crate) element: Element,
    pub(crate) shape: Vec<u64>,
    /// Bytes of all elements.
    pub(crate) len: u64,
    /// The bytes of one value for all elements, or of each.
    pub(crate) values: Values,
}

/// What a tensor holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Values {
    One(Vec<u8>),
    Each(Vec<u8>),
}

impl Element {
    pub(crate) fn new(name: &str) -> Result<Element, String> {
        let whole = |rest: &str, negative, large| {
            let bits = rest.parse().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64));
            bits.map(|bits| Element::Whole { bits, negative, large })
        };
        let found = match name {
            "i1" | "bool" => Some(Element::Bool),
            "f16" => Some(Element::F16),
            "bf16" => Some(Element::Bf16),
            "f32" => Some(Element::F32),
            "f64" => Some(Element::F64),
            _ => {
                let signs = [
                    ("si", true, false),
                    ("ui", false, true),
                    ("i", true, true),
                    ("s", true, false),
                    ("u", false, true),
                ];
                let after = |(sign, negative, large): &(&str, bool, bool)| {
                    whole(name.strip_prefix(sign)?, *negative, *large)
                };
                signs.iter().find_map(after)
            }
        };
        found.ok_or_else(|| format!("`{name}` is no type; there are i1, i8, i16, i32, i64 (s or u in front for signed or unsigned), f16, bf16, f32 and f64"))
    }

    pub(crate) fn size(self) -> u64 {
        match self {
            Element::Bool => 1,
            Element::Whole { bits, .. } => u64::from(bits / 8),
            Element::F16 | Element::Bf16 => 2,
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }

    /// The bytes of a value, little-endian.
    pub(crate) fn encode(self, text: &str) -> Result<Vec<u8>, String> {
        let none = || format!("`{text}` is no value of this type");
        let float = || text.parse::<f64>().map_err(|_| none());
        let fits = |finite: bool, bytes: &[u8]| match finite || !float()?.is_finite() {
            true => Ok(bytes.to_vec()),
            false => Err(format!("{text} does not fit this type")),
        };
        match self {
            Element::Bool => match text {
                "0" | "false" => Ok(vec![0]),
                "1" | "true" => Ok(vec![1]),
                _ => Err(none()),
            },
            Element::Whole { bits, negative, large } => {
                let number = whole(text).ok_or_else(none)?;
                let least = if negative { -(1_i128 << (bits - 1)) } else { 0 };
                let most = (1_i128 << if large { bits } else { bits - 1 }) - 1;
                if number < least || number > most {
                    return Err(format!("{text} does not fit this type, which holds {least} to {most}"));
                }
                Ok(number.to_le_bytes()[..(bits / 8) as usize].to_vec())
            }
            Element::F16 => {
                let value = f16::from_f64(float()?);
                fits(value.is_finite(), &value.to_le_bytes())
            }
            Element::Bf16 => {
                let value = bf16::from_f64(float()?);
                fits(value.is_finite(), &value.to_le_bytes())
            }
            Element::F32 => {
                let value: f32 = text.parse().map_err(|_| none())?;
                fits(value.is_finite(), &value.to_le_bytes())
            }
            Element::F64 => {
                let value = float()?;
                Ok(value.to_le_bytes().to_vec())
            }
        }
    }
}

fn whole(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?.into(),
        None => digits.parse::<u64>().ok().map(i128::from)?,
    };
    Some(if negative { -number } else { number })
}

impl Literal {
    /// Reads `NAME=SHAPExTYPE[=VALUE]`.
    pub(crate) fn new(text: &str) -> Result<Literal, String> {
        let (name, rest) = text.split_once('=').ok_or("it is not NAME=SHAPExTYPE[=VALUE]")?;
        if name.is_empty() {
            return Err("the name is empty".into());
        }
        let (kind, value) = match rest.split_once('=') {
            Some((kind, value)) => (kind, Some(value)),
            None => (rest, None),
        };
        let mut words: Vec<&str> = kind.split('x').collect();
        let element = Element::new(words.pop().unwrap_or_default())?;
        let dim = |word: &&str| word.parse::<u64>().map_err(|_| format!("`{word}` is no dimension"));
        let shape: Vec<u64> = words.iter().map(dim).collect::<Result<_, _>>()?;
        let elements = wharf::archive::elements(&shape);
        let Some(len) = elements.and_then(|elements| elements.checked_mul(element.size())) else {
            return Err("it has more bytes than fit 64 bits".into());
        };
        let values = values(element, value, len / element.size())?;
        Ok(Literal { name: name.to_owned(), element, shape, len, values })
    }
}

fn values(element: Element, text: Option<&str>, elements: u64) -> Result<Values, String> {
    let Some(text) = text else { return Ok(Values::One(vec![0; element.size() as usize])) };
    let words: Vec<&str> = text.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [] => Err("it has no value after `=`".into()),
        [one] => Ok(Values::One(element.encode(one)?)),
        each if each.len() as u64 == elements => {
            let bytes: Vec<Vec<u8>> =
                each.iter().map(|word| element.encode(word)).collect::<Result<_, _>>()?;
            Ok(Values::Each(bytes.concat()))
        }
        each => Err(format!("{} values for {elements} elements: give one, or one for each", each.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(element: &str, value: &str) -> Option<Vec<u8>> {
        Element::new(element).unwrap().encode(value).ok()
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        assert_eq!(encoded("i8", "-128"), Some(vec![0x80]));
        assert_eq!(encoded("i8", "255"), Some(vec![0xff]));
        assert_eq!(encoded("si8", "255"), None);
        assert_eq!(encoded("u8", "-1"), None);
        assert_eq!(encoded("u64", "0xffffffffffffffff"), Some(vec![0xff; 8]));
        assert_eq!(encoded("i16", "70000"), None);
        assert_eq!(encoded("f16", "70000"), None, "the largest half is 65504");
        assert_eq!(encoded("f16", "inf"), Some(vec![0, 0x7c]));
        assert_eq!(encoded("f32", "1e39"), None);
        assert_eq!(encoded("bf16", "1.5"), Some(vec![0xc0, 0x3f]));
        assert_eq!(encoded("i1", "2"), None);
        assert!(["f8", "i7", "x", "", "i128", "ix"].into_iter().all(|name| Element::new(name).is_err()));
    }

    #[test]
    fn a_literal_is_name_shape_type_and_value() {
        let literal = Literal::new("a b=2x3xi16=1,2,3,4,5,6").unwrap();
        assert_eq!((literal.name.as_str(), literal.shape, literal.len), ("a b", vec![2, 3], 12));
        assert_eq!(literal.values, Values::Each(vec![1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]));
        assert_eq!(Literal::new("s=f32=-1").unwrap().values, Values::One(vec![0, 0, 0x80, 0xbf]));
        let bad = [
            "",
            "a",
            "=4xf32",
            "a=4x",
            "a=xf32",
            "a=-1xf32",
            "a=4xf32=",
            "a=3xi8=1,2",
            "a=99999999999x99999999999xf64",
        ];
        assert!(bad.into_iter().all(|text| Literal::new(text).is_err()));
    }
}
