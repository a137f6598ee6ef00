//! The committed dump of the ABI, and what may change between it and the sources: additions at the ends of tables.

use super::{
    layout,
    read::{Abi, Ty, Value, lower},
};
use crate::fail::Fail;
use serde_json::{Map, Value as Json, json};

pub(super) fn write(abi: &Abi) -> Result<Json, Fail> {
    let mut types = Map::new();
    for each in &abi.structs {
        let placed = layout::place(abi, each)?;
        let mut fields = vec![];
        for (field, (offset, size)) in each.fields.iter().zip(&placed.fields) {
            fields.push(json!({
                "name": field.name, "offset": offset, "size": size, "type": spell(&field.ty),
                "ends_first": field.ends_first,
            }));
        }
        let grows = each.fields.iter().any(|field| field.ends_first);
        types.insert(
            lower(&each.name),
            json!({ "size": placed.size, "grows": grows, "union": each.union, "fields": fields }),
        );
    }
    let mut constants = Map::new();
    for group in &abi.groups {
        for constant in &group.constants {
            let value = match &constant.value {
                Value::Number(number) => json!(number),
                Value::Text(text) => json!(text),
            };
            constants.insert(format!("{}.{}", group.name, constant.name), value);
        }
    }
    Ok(json!({ "types": types, "constants": constants }))
}

/// A type in one line.
fn spell(ty: &Ty) -> String {
    match ty {
        Ty::Number(name, _) => (*name).into(),
        Ty::Void => "void".into(),
        Ty::Named(name) => lower(name),
        Ty::Array(of, count) => format!("{}[{count}]", spell(of)),
        Ty::Pointer { to, mutable } => format!("{}{} *", if *mutable { "" } else { "const " }, spell(to)),
        Ty::Function { params, result } => {
            let params: Vec<_> = params.iter().map(|(name, ty)| format!("{name}: {}", spell(ty))).collect();
            format!("fn({}) -> {}", params.join(", "), spell(result))
        }
    }
}

/// Versions are numbers that move on their own; all other constants stay.
const VERSIONS: [&str; 2] = ["abi.MINOR", "abi.DRAFT"];

/// What of the old dump the new one does not keep, a line each.
pub(super) fn broken(old: &Json, new: &Json) -> Vec<String> {
    let mut found = vec![];
    let empty = Map::new();
    let of = |dump: &Json, what: &str| dump[what].as_object().cloned().unwrap_or_default();
    for (name, before) in &of(old, "types") {
        let Some(after) = new["types"].get(name) else {
            found.push(format!("type {name} is gone"));
            continue;
        };
        let fields = |dump: &Json| dump["fields"].as_array().cloned().unwrap_or_default();
        let (before_fields, after_fields) = (fields(before), fields(after));
        for (i, field) in before_fields.iter().enumerate() {
            let field_name = field["name"].as_str().unwrap_or_default();
            match after_fields.get(i) {
                None => found.push(format!("{name}.{field_name} is gone")),
                Some(now) if now == field => {}
                Some(now) => found.push(format!("{name}.{field_name} was {field}, is {now}")),
            }
        }
        let longer = after_fields.len() > before_fields.len();
        if longer && before["grows"] == false && before["union"] == false {
            found.push(format!("type {name} never changes, but has more fields"));
        }
        if before["union"] == true && before["size"] != after["size"] {
            found.push(format!("union {name} had {} bytes, has {}", before["size"], after["size"]));
        }
    }
    let constants = of(new, "constants");
    for (name, before) in old["constants"].as_object().unwrap_or(&empty) {
        match constants.get(name) {
            None => found.push(format!("constant {name} is gone")),
            Some(now) if now != before && !VERSIONS.contains(&name.as_str()) => {
                found.push(format!("constant {name} was {before}, is {now}"));
            }
            Some(_) => {}
        }
    }
    found
}

/// The version and draft of a dump.
pub(super) fn number(dump: &Json, name: &str) -> Result<u64, Fail> {
    let value = dump["constants"][format!("abi.{name}")].as_u64();
    value.ok_or_else(|| Fail::new(format!("the dump has no number abi.{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(fields: &[(&str, &str)], grows: bool) -> Json {
        let field = |(i, (name, ty)): (usize, &(&str, &str))| json!({ "name": name, "offset": i * 8, "size": 8, "type": ty, "ends_first": false });
        let fields: Vec<_> = fields.iter().enumerate().map(field).collect();
        let types =
            json!({ "t": { "size": fields.len() * 8, "grows": grows, "union": false, "fields": fields } });
        json!({ "types": types, "constants": { "abi.MINOR": 0, "op.COPY": 1 } })
    }

    #[test]
    fn fields_at_the_end_of_what_grows_and_new_numbers_are_kept() {
        let old = table(&[("a", "u64")], true);
        let mut new = table(&[("a", "u64"), ("b", "fn() -> status")], true);
        new["constants"]["abi.MINOR"] = json!(1);
        new["constants"]["op.FILL"] = json!(2);
        assert!(broken(&old, &new).is_empty());
    }

    #[test]
    fn everything_else_breaks() {
        let old = table(&[("a", "u64"), ("b", "u64")], true);
        let fixed = table(&[("a", "u64"), ("b", "u64")], false);
        for (new, what) in [
            (table(&[("b", "u64"), ("a", "u64")], true), "order"),
            (table(&[("a", "u64")], true), "a field less"),
            (table(&[("a", "i64"), ("b", "u64")], true), "another type"),
            (table(&[("a", "u64"), ("c", "u64")], true), "another name"),
        ] {
            assert!(!broken(&old, &new).is_empty(), "{what}");
        }
        assert!(!broken(&fixed, &table(&[("a", "u64"), ("b", "u64"), ("c", "u64")], false)).is_empty());
        let mut other = old.clone();
        other["constants"]["op.COPY"] = json!(2);
        assert_eq!(broken(&old, &other).len(), 1);
        other["constants"] = json!({});
        other["types"] = json!({});
        assert_eq!(broken(&old, &other).len(), 3);
    }
}
