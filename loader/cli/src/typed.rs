//! Types and shapes of tensors in IRPA, which has neither: IREE's Python tools keep both as JSON in an entry's metadata,
//! behind `TENSORv0:` (older: `PYTORCH:`), with NumPy's names of types.

use serde_json::{Value, json};
use wharf::{Parameters, Tensor, archive::Dtype};

/// A type by its name here and in NumPy.
const NAMES: [(&str, &str); 18] = [
    ("F32", "float32"),
    ("F16", "float16"),
    ("BF16", "bfloat16"),
    ("F64", "float64"),
    ("I8", "int8"),
    ("I16", "int16"),
    ("I32", "int32"),
    ("I64", "int64"),
    ("U8", "uint8"),
    ("U16", "uint16"),
    ("U32", "uint32"),
    ("U64", "uint64"),
    ("BOOL", "bool"),
    ("C64", "complex64"),
    ("F8_E4M3", "float8_e4m3fn"),
    ("F8_E4M3FNUZ", "float8_e4m3fnuz"),
    ("F8_E5M2", "float8_e5m2"),
    ("F8_E5M2FNUZ", "float8_e5m2fnuz"),
];

/// What is known of a tensor's type.
#[derive(Default, PartialEq)]
pub(crate) struct Typed {
    pub(crate) dtype: Option<&'static str>,
    pub(crate) shape: Option<Vec<u64>>,
}

/// Type and shape by the format, or by metadata that fits the tensor's bytes.
pub(crate) fn typed(parameters: &Parameters, tensor: &Tensor<'_>) -> Typed {
    if tensor.dtype.is_some() {
        return Typed { dtype: tensor.dtype, shape: tensor.shape.map(<[u64]>::to_vec) };
    }
    described(parameters.metadata(tensor), tensor.bytes).unwrap_or_default()
}

fn described(metadata: &[u8], bytes: u64) -> Option<Typed> {
    let json = metadata.strip_prefix(b"TENSORv0:").or_else(|| metadata.strip_prefix(b"PYTORCH:"))?;
    let json: Value = serde_json::from_slice(json).ok()?;
    let named = json["dtype"].as_str()?;
    let (name, _) = NAMES.iter().find(|(_, numpy)| *numpy == named)?;
    let dims = json["shape"].as_array()?;
    let shape: Vec<u64> = dims.iter().map(Value::as_u64).collect::<Option<_>>()?;
    let fits = Dtype::from_name(name)?.bytes(&shape) == Ok(bytes);
    fits.then_some(Typed { dtype: Some(name), shape: Some(shape) })
}

/// The metadata that says this; none for types that NumPy lacks.
pub(crate) fn metadata(typed: &Typed) -> Option<Vec<u8>> {
    let (dtype, shape) = (typed.dtype?, typed.shape.as_ref()?);
    let (_, numpy) = NAMES.iter().find(|(name, _)| *name == dtype)?;
    let float = dtype.starts_with(['F', 'B']) && dtype != "BOOL";
    let complex = dtype == "C64";
    let json = json!({
        "type": "Tensor", "dtype": numpy, "shape": shape,
        "dtype_desc": {
            "class_name": "dtype", "is_complex": complex, "is_floating_point": float,
            "is_signed": float || complex || dtype.starts_with('I'),
            "itemsize": Dtype::from_name(dtype)?.block_bytes()?,
        },
    });
    Some(format!("TENSORv0:{json}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_believed_only_if_it_fits() {
        let typed = Typed { dtype: Some("BF16"), shape: Some(vec![2, 3]) };
        let written = metadata(&typed).unwrap();
        assert!(described(&written, 12).unwrap() == typed);
        assert!(described(&written, 13).is_none());
        // As iree.runtime.parameter_index_add_numpy_ndarray writes it.
        let theirs = br#"TENSORv0:{"type": "Tensor", "dtype": "int8", "shape": [4], "dtype_desc": {}}"#;
        assert_eq!(described(theirs, 4).unwrap().dtype, Some("I8"));
        assert!(metadata(&Typed { dtype: Some("Q4_K"), shape: Some(vec![256]) }).is_none());
    }
}
