//! Asserts in Rust on the offsets that the header and the dump have.

use super::{layout, read::Abi};
use crate::fail::Fail;
use std::fmt::Write;

pub(super) fn write(abi: &Abi) -> Result<String, Fail> {
    let mut out = String::from(
        "//! Made by `cargo xtask abi check --accept`; do not edit. Where the fields of the tables lie.\n\
         use core::mem::offset_of;\nuse wharf_abi::tables::*;\n\n\
         #[rustfmt::skip]\n#[test]\nfn fields_lie_where_the_header_and_the_dump_say() {\n",
    );
    for each in &abi.structs {
        let placed = layout::place(abi, each)?;
        let name = &each.name;
        let _ = writeln!(out, "    assert_eq!(size_of::<{name}>(), {}, \"{name}\");", placed.size);
        for (field, (at, _)) in each.fields.iter().zip(&placed.fields) {
            let field = &field.name;
            let _ = writeln!(out, "    assert_eq!(offset_of!({name}, {field}), {at}, \"{name}.{field}\");");
        }
    }
    out.push_str("}\n");
    Ok(out)
}
