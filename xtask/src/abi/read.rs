//! The ABI as the sources of `plugins/abi` say it: structs, unions, constants, with their documentation.

use crate::fail::{Fail, Outcome};
use std::{fs, path::Path};
use syn::{
    Attribute, Expr, Fields, File, GenericArgument, Item, ItemMod, Lit, PathArguments, ReturnType, Type,
};

/// A type as C knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    /// `uint8_t` and so on: name in C, bytes.
    Number(&'static str, u64),
    /// A type of the ABI by its Rust name.
    Named(String),
    Array(Box<Ty>, u64),
    Pointer {
        to: Box<Ty>,
        mutable: bool,
    },
    Void,
    /// Nullable where the field is an option.
    Function {
        params: Vec<(String, Ty)>,
        result: Box<Ty>,
    },
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) ty: Ty,
    pub(super) docs: Vec<String>,
    /// The last of those that the first minor has.
    pub(super) ends_first: bool,
}

#[derive(Debug)]
pub(super) struct Struct {
    pub(super) name: String,
    pub(super) docs: Vec<String>,
    pub(super) fields: Vec<Field>,
    pub(super) union: bool,
}

#[derive(Debug)]
pub(super) enum Value {
    Number(u64),
    Text(String),
}

#[derive(Debug)]
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) value: Value,
    /// Bits of its type.
    pub(super) bits: u32,
    pub(super) docs: Vec<String>,
}

/// Constants that belong together.
#[derive(Debug)]
pub(super) struct Group {
    /// As it stands in names.
    pub(super) name: String,
    pub(super) docs: Vec<String>,
    pub(super) constants: Vec<Constant>,
}

/// Everything.
#[derive(Debug, Default)]
pub(super) struct Abi {
    pub(super) structs: Vec<Struct>,
    pub(super) groups: Vec<Group>,
}

/// Files of the tables, in the order in which their types build on each other.
const TABLES: [&str; 7] =
    ["mod.rs", "value.rs", "plugin.rs", "device.rs", "memory.rs", "program.rs", "queue.rs"];
/// Modules and enums of core whose numbers cross the ABI.
const OF_CORE: [(&str, &[&str]); 3] = [
    ("core/src/device.rs", &["op", "property"]),
    ("core/src/fault.rs", &["Kind", "Blame"]),
    ("core/src/bits.rs", &["MemoryType", "Access", "Usage"]),
];

pub(super) fn read(root: &Path) -> Result<Abi, Fail> {
    let mut abi = Abi::default();
    for name in TABLES {
        let path = root.join("plugins/abi/src/tables").join(name);
        for item in &parse(&path)?.items {
            abi.item(item, &path)?;
        }
    }
    for (file, names) in OF_CORE {
        let path = root.join(file);
        let parsed = parse(&path)?;
        for name in names {
            let group = parsed.items.iter().find_map(|item| core_group(item, name, &path).transpose());
            let group = group.ok_or_else(|| Fail::new(format!("{}: no `{name}`", path.display())))??;
            abi.groups.push(group);
        }
    }
    Ok(abi)
}

fn parse(path: &Path) -> Result<File, Fail> {
    let text = fs::read_to_string(path).map_err(|why| Fail::new(format!("{}: {why}", path.display())))?;
    syn::parse_file(&text).map_err(|why| Fail::new(format!("{}: {why}", path.display())))
}

impl Abi {
    fn item(&mut self, item: &Item, path: &Path) -> Outcome {
        let bad = |what: String| Fail::new(format!("{}: {what}", path.display()));
        match item {
            Item::Struct(item) if is_c(&item.attrs) => {
                let Fields::Named(fields) = &item.fields else {
                    return Err(bad(format!("{} has fields without names", item.ident)));
                };
                let fields = fields.named.iter().map(field).collect::<Result<_, _>>().map_err(bad)?;
                let (name, docs) = (item.ident.to_string(), docs(&item.attrs));
                self.structs.push(Struct { name, docs, fields, union: false });
            }
            Item::Union(item) => {
                let fields = item.fields.named.iter().map(field).collect::<Result<_, _>>().map_err(bad)?;
                let (name, docs) = (item.ident.to_string(), docs(&item.attrs));
                self.structs.push(Struct { name, docs, fields, union: true });
            }
            Item::Mod(item) => self.groups.extend(group(item).map_err(bad)?),
            Item::Const(item) if item.ident != "_" => {
                let constant =
                    constant(&item.ident.to_string(), &item.expr, &item.ty, &item.attrs).map_err(bad)?;
                match self.groups.first_mut().filter(|group| group.name == "abi") {
                    Some(group) => group.constants.push(constant),
                    None => {
                        let docs = vec!["The version.".into()];
                        self.groups.insert(0, Group { name: "abi".into(), docs, constants: vec![constant] });
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn is_c(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("repr") && attr.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("C"))
    })
}

/// Lines of documentation; links lose their brackets, paths their Rust spelling.
fn docs(attrs: &[Attribute]) -> Vec<String> {
    let mut lines = vec![];
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("doc")) {
        if let Ok(named) = attr.meta.require_name_value()
            && let Expr::Lit(text) = &named.value
            && let Lit::Str(text) = &text.lit
        {
            lines.push(plain(text.value().trim()));
        }
    }
    lines
}

fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(open) = rest.find("[`") {
        out.push_str(&rest[..open]);
        rest = &rest[open + 1..];
        let Some(close) = rest.find(']') else { break };
        out.push_str(&rest[..close]);
        rest = &rest[close + 1..];
        if rest.starts_with('(') {
            rest = rest.find(')').map_or("", |end| &rest[end + 1..]);
        }
    }
    out + rest
}

fn field(field: &syn::Field) -> Result<Field, String> {
    let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    let ends_first = field.attrs.iter().any(|attr| {
        let is_last = |path: syn::Path| path.is_ident("last_prefix_field");
        attr.path().is_ident("sabi") && attr.parse_args().is_ok_and(is_last)
    });
    let ty = ty(&field.ty).map_err(|what| format!("field {name}: {what}"))?;
    Ok(Field { name, ty, docs: docs(&field.attrs), ends_first })
}

fn ty(from: &Type) -> Result<Ty, String> {
    match from {
        Type::Ptr(pointer) => {
            Ok(Ty::Pointer { to: Box::new(ty(&pointer.elem)?), mutable: pointer.mutability.is_some() })
        }
        Type::Tuple(tuple) if tuple.elems.is_empty() => Ok(Ty::Void),
        Type::Array(array) => Ok(Ty::Array(Box::new(ty(&array.elem)?), number(&array.len)?)),
        Type::BareFn(function) => {
            let params = function.inputs.iter().map(|input| {
                let name = input.name.as_ref().map(|(name, _)| name.to_string()).unwrap_or_default();
                let mut ty = ty(&input.ty)?;
                // What a call writes is named so: `To` does not say which way it goes.
                if let Ty::Pointer { mutable, .. } = &mut ty
                    && name == "out"
                {
                    *mutable = true;
                }
                Ok((name, ty))
            });
            let result = match &function.output {
                ReturnType::Default => Ty::Void,
                ReturnType::Type(_, result) => ty(result)?,
            };
            Ok(Ty::Function { params: params.collect::<Result<_, String>>()?, result: Box::new(result) })
        }
        Type::Path(path) => {
            let last = path.path.segments.last().ok_or("a type without a name")?;
            let inner = || match &last.arguments {
                PathArguments::AngleBracketed(args) => match args.args.first() {
                    Some(GenericArgument::Type(inner)) => ty(inner),
                    _ => Err(format!("{} without a type", last.ident)),
                },
                _ => Err(format!("{} without a type", last.ident)),
            };
            let number = |name, bytes| Ok(Ty::Number(name, bytes));
            match last.ident.to_string().as_str() {
                "u8" => number("uint8_t", 1),
                "u16" => number("uint16_t", 2),
                "u32" => number("uint32_t", 4),
                "u64" => number("uint64_t", 8),
                "i32" => number("int32_t", 4),
                "i64" => number("int64_t", 8),
                "c_void" => Ok(Ty::Void),
                "Option" => inner(),
                "To" => Ok(Ty::Pointer { to: Box::new(inner()?), mutable: false }),
                name => Ok(Ty::Named(name.into())),
            }
        }
        _ => Err("a type that C does not have".into()),
    }
}

fn group(item: &ItemMod) -> Result<Option<Group>, String> {
    let Some((_, items)) = &item.content else { return Ok(None) };
    let mut constants = vec![];
    for item in items {
        if let Item::Const(item) = item {
            constants.push(constant(&item.ident.to_string(), &item.expr, &item.ty, &item.attrs)?);
        }
    }
    Ok(Some(Group { name: item.ident.to_string(), docs: docs(&item.attrs), constants }))
}

fn core_group(item: &Item, name: &str, path: &Path) -> Result<Option<Group>, Fail> {
    let bad = |what: String| Fail::new(format!("{}: {what}", path.display()));
    match item {
        Item::Mod(item) if item.ident == name => group(item).map_err(bad),
        Item::Enum(item) if item.ident == name => {
            let constants = item.variants.iter().map(|variant| {
                let (_, value) = variant.discriminant.as_ref().ok_or("a kind without a number")?;
                let docs = docs(&variant.attrs);
                Ok(Constant {
                    name: upper(&variant.ident.to_string()),
                    value: Value::Number(number(value)?),
                    bits: 32,
                    docs,
                })
            });
            let constants = constants.collect::<Result<_, String>>().map_err(bad)?;
            Ok(Some(Group { name: lower(name), docs: docs(&item.attrs), constants }))
        }
        Item::Macro(item) if item.mac.path.is_ident("bitflags") => {
            let Ok(flags) = item.mac.parse_body::<Flags>() else { return Ok(None) };
            Ok((flags.0.name == lower(name)).then_some(flags.0))
        }
        _ => Ok(None),
    }
}

/// The body of `bitflags!`: attributes, a struct, and constants in its braces.
struct Flags(Group);

impl syn::parse::Parse for Flags {
    fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        input.parse::<syn::Visibility>()?;
        input.parse::<syn::Token![struct]>()?;
        let name = lower(&input.parse::<syn::Ident>()?.to_string());
        input.parse::<syn::Token![:]>()?;
        input.parse::<Type>()?;
        let body;
        syn::braced!(body in input);
        let mut constants = vec![];
        while !body.is_empty() {
            let attrs = body.call(Attribute::parse_outer)?;
            body.parse::<syn::Token![const]>()?;
            let ident = body.parse::<syn::Ident>()?;
            body.parse::<syn::Token![=]>()?;
            let value = body.parse::<Expr>()?;
            body.parse::<syn::Token![;]>()?;
            let value = number(&value).map_err(|what| syn::Error::new(ident.span(), what))?;
            let (name, docs) = (ident.to_string(), docs(&attrs));
            constants.push(Constant { name, value: Value::Number(value), bits: 32, docs });
        }
        Ok(Flags(Group { name, docs: docs(&attrs), constants }))
    }
}

fn constant(name: &str, value: &Expr, ty: &Type, attrs: &[Attribute]) -> Result<Constant, String> {
    let text = match value {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        Expr::Unary(unary) => match &*unary.expr {
            Expr::Lit(lit) => match &lit.lit {
                Lit::ByteStr(bytes) => Some(String::from_utf8_lossy(&bytes.value()).into_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let bits = match self::ty(ty) {
        Ok(Ty::Number(_, bytes)) => bytes as u32 * 8,
        _ => 32,
    };
    let value = text.map(Value::Text).map_or_else(|| number(value).map(Value::Number), Ok);
    let value = value.map_err(|what| format!("constant {name}: {what}"))?;
    Ok(Constant { name: name.into(), value, bits, docs: docs(attrs) })
}

fn number(value: &Expr) -> Result<u64, String> {
    match value {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(number) => number.base10_parse().map_err(|why| why.to_string()),
            _ => Err("no number".into()),
        },
        Expr::Binary(both) => {
            let (a, b) = (number(&both.left)?, number(&both.right)?);
            match both.op {
                syn::BinOp::Shl(_) => Ok(a << b),
                syn::BinOp::BitOr(_) => Ok(a | b),
                syn::BinOp::Add(_) => Ok(a + b),
                _ => Err("an operator that is not known here".into()),
            }
        }
        Expr::Paren(inner) => number(&inner.expr),
        _ => Err("no number".into()),
    }
}

/// `DeviceV1` as `device_v1`.
pub(super) fn lower(name: &str) -> String {
    let mut out = String::new();
    for (i, letter) in name.char_indices() {
        if letter.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

fn upper(name: &str) -> String {
    lower(name).to_uppercase()
}
