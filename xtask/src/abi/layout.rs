//! Where fields lie: the rules of `repr(C)` on a target with 64-bit pointers, which is what the ABI asks for.

use super::read::{Abi, Struct, Ty};
use crate::fail::Fail;

/// Bytes and alignment.
pub(super) fn of(abi: &Abi, ty: &Ty) -> Result<(u64, u64), Fail> {
    Ok(match ty {
        Ty::Number(_, bytes) => (*bytes, *bytes),
        Ty::Pointer { .. } | Ty::Function { .. } => (8, 8),
        Ty::Array(of_what, count) => {
            let (size, align) = of(abi, of_what)?;
            (size * count, align)
        }
        Ty::Void => return Err(Fail::new("a field of type void".to_owned())),
        Ty::Named(name) => {
            let found = abi.structs.iter().find(|known| known.name == *name);
            let found = found.ok_or_else(|| Fail::new(format!("no type `{name}`")))?;
            let placed = place(abi, found)?;
            (placed.size, placed.align)
        }
    })
}

pub(super) struct Placed {
    pub(super) size: u64,
    pub(super) align: u64,
    /// Offset and bytes of each field.
    pub(super) fields: Vec<(u64, u64)>,
}

pub(super) fn place(abi: &Abi, of_what: &Struct) -> Result<Placed, Fail> {
    let mut placed = Placed { size: 0, align: 1, fields: vec![] };
    for field in &of_what.fields {
        let (size, align) = of(abi, &field.ty)?;
        let at = if of_what.union { 0 } else { placed.size.next_multiple_of(align) };
        placed.fields.push((at, size));
        placed.size = placed.size.max(at + size);
        placed.align = placed.align.max(align);
    }
    placed.size = placed.size.next_multiple_of(placed.align);
    Ok(placed)
}
