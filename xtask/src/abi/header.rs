//! `wharf_plugin.h`: the ABI in C, with asserts that hold it to the offsets that Rust has.

use super::{
    layout,
    read::{Abi, Constant, Field, Group, Struct, Ty, Value, lower},
};
use crate::fail::Fail;
use std::fmt::Write;

/// Everything that is not read from the tables.
const TOP: &str = include_str!("top.h");
const BOTTOM: &str = include_str!("bottom.h");

pub(super) fn write(abi: &Abi) -> Result<String, Fail> {
    let mut out = body(abi)?;
    // Documentation names types as Rust does.
    for each in &abi.structs {
        let c = type_name(&each.name);
        out = out.replace(&format!("`{}::", each.name), &format!("`{c}."));
        out = out.replace(&format!("`{}`", each.name), &format!("`{c}`"));
    }
    Ok(out)
}

fn body(abi: &Abi) -> Result<String, Fail> {
    let mut out = String::from(TOP);
    for group in &abi.groups {
        constants(&mut out, group);
    }
    out.push_str("#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    for name in order(abi) {
        structure(&mut out, name);
    }
    out.push_str(BOTTOM);
    out.push_str("/* Offsets as Rust has them. */\n");
    for each in &abi.structs {
        let placed = layout::place(abi, each)?;
        let name = type_name(&each.name);
        let _ = writeln!(out, "WHARF_ASSERT(sizeof({name}) == {}, \"size of {name}\");", placed.size);
        for (field, (at, _)) in each.fields.iter().zip(&placed.fields) {
            let field = &field.name;
            let _ = writeln!(out, "WHARF_ASSERT(offsetof({name}, {field}) == {at}, \"{name}.{field}\");");
        }
    }
    out.push_str("\n#endif /* WHARF_PLUGIN_H */\n");
    Ok(out)
}

/// Types before their users: a struct comes once all that it holds by value has come.
fn order(abi: &Abi) -> Vec<&Struct> {
    let mut done: Vec<&Struct> = vec![];
    while done.len() < abi.structs.len() {
        let before = done.len();
        for each in &abi.structs {
            let known = |name: &str| done.iter().any(|known| known.name == name);
            if !known(&each.name) && each.fields.iter().all(|field| needs(&field.ty).iter().all(|n| known(n)))
            {
                done.push(each);
            }
        }
        assert!(done.len() > before, "types that hold each other by value");
    }
    done
}

/// Types that must be complete for this one.
fn needs(ty: &Ty) -> Vec<&str> {
    match ty {
        Ty::Named(name) => vec![name],
        Ty::Array(of, _) => needs(of),
        Ty::Pointer { to, .. } => needs(to),
        Ty::Function { params, result } => {
            params.iter().flat_map(|(_, ty)| needs(ty)).chain(needs(result)).collect()
        }
        Ty::Number(..) | Ty::Void => vec![],
    }
}

fn type_name(rust: &str) -> String {
    format!("wharf_{}", lower(rust))
}

fn comment(out: &mut String, indent: &str, docs: &[String]) {
    let docs: Vec<&String> = docs.iter().filter(|line| !line.is_empty()).collect();
    match docs.as_slice() {
        [] => {}
        [line] => _ = writeln!(out, "{indent}/* {line} */"),
        [first, middle @ .., last] => {
            let _ = writeln!(out, "{indent}/* {first}");
            middle.iter().for_each(|line| _ = writeln!(out, "{indent}   {line}"));
            let _ = writeln!(out, "{indent}   {last} */");
        }
    }
}

fn constants(out: &mut String, group: &Group) {
    comment(out, "", &group.docs);
    for Constant { name, value, bits, docs } in &group.constants {
        comment(out, "", docs);
        let name = format!("WHARF_{}_{name}", group.name.to_uppercase());
        let _ = match value {
            Value::Text(text) => writeln!(out, "#define {name} \"{text}\""),
            Value::Number(number) if *bits == 64 => writeln!(out, "#define {name} UINT64_C({number})"),
            Value::Number(number) => writeln!(out, "#define {name} {number}u"),
        };
    }
    out.push('\n');
}

fn structure(out: &mut String, of: &Struct) {
    comment(out, "", &of.docs);
    let (word, name) = (if of.union { "union" } else { "struct" }, type_name(&of.name));
    let _ = writeln!(out, "typedef {word} {name} {{");
    for Field { name, ty, docs, .. } in &of.fields {
        comment(out, "  ", docs);
        let _ = writeln!(out, "  {};", declare(ty, name));
    }
    let _ = writeln!(out, "}} {name};\n");
}

/// A declaration of `name` with this type.
fn declare(ty: &Ty, name: &str) -> String {
    match ty {
        Ty::Number(c, _) => format!("{c} {name}"),
        Ty::Void => format!("void {name}"),
        Ty::Named(rust) => format!("{} {name}", type_name(rust)),
        Ty::Array(of, count) => declare(of, &format!("{name}[{count}]")),
        Ty::Pointer { to, mutable } => {
            let star = declare(to, &format!("*{name}"));
            // Behind a further pointer the const belongs to the innermost type.
            if *mutable || matches!(**to, Ty::Pointer { .. }) { star } else { format!("const {star}") }
        }
        Ty::Function { params, result } => {
            let params: Vec<_> = params.iter().map(|(name, ty)| declare(ty, name)).collect();
            let params = if params.is_empty() { "void".into() } else { params.join(", ") };
            declare(result, &format!("(*{name})({params})"))
        }
    }
}
