//! `wharf meta`.

use crate::{
    cli::{Global, MetaArgs},
    list::hex,
    out::{Failure, Out, safe},
    values::Scalar,
};
use serde_json::{Value as Json, json};
use wharf::{
    Error, ErrorKind, Mode, Parameters,
    archive::{
        Archive, Input, Stop,
        gguf::{Array, Value, ValueType},
    },
    near,
};

/// Elements and characters that are shown of a long value.
const ELEMENTS: usize = 8;
const CHARACTERS: usize = 120;

/// A key, the type of its value, and the value as text and as JSON.
struct Pair {
    key: String,
    kind: String,
    text: String,
    json: Json,
}

pub(crate) fn run(global: &Global, args: &MetaArgs, out: &mut Out) -> Result<(), Failure> {
    let mut parameters = Parameters::default();
    parameters.add("", &args.file, Mode::Read)?;
    let (mut files, mut pairs) = (vec![], vec![]);
    for (_, file) in parameters.files() {
        let own = read(file.bytes(), args.full).map_err(|stop| {
            Error::new(ErrorKind::Internal, format!("{}: {stop}", file.path().display())).in_file(file.path())
        })?;
        let own = chosen(own, args, parameters.files().count())?;
        files.push(json!({
            "file": file.path().display().to_string(), "format": file.index().format().name(),
            "metadata": own.iter().map(Pair::json).collect::<Vec<_>>(),
        }));
        pairs.extend(own);
    }
    if out.json() {
        return out.value(json!({"files": files}));
    }
    if global.quiet {
        // Of one key the value alone, for scripts.
        let short = |pair: &Pair| if args.key.is_some() { pair.text.clone() } else { safe(&pair.key) };
        return pairs.iter().try_for_each(|pair| out.line(&short(pair)));
    }
    let rows: Vec<Vec<String>> =
        pairs.into_iter().map(|pair| vec![safe(&pair.key), pair.kind, pair.text]).collect();
    out.table(&["KEY", "TYPE", "VALUE"], &rows, &[])
}

/// The pairs that the key or glob means.
fn chosen(pairs: Vec<Pair>, args: &MetaArgs, files: usize) -> Result<Vec<Pair>, Error> {
    let Some(key) = &args.key else { return Ok(pairs) };
    let exact = pairs.iter().any(|pair| pair.key == *key);
    let pattern = glob::Pattern::new(key).ok().filter(|_| !exact);
    let takes = |pair: &Pair| pair.key == *key || pattern.as_ref().is_some_and(|p| p.matches(&pair.key));
    if files > 1 || pairs.iter().any(takes) {
        return Ok(pairs.into_iter().filter(|pair| takes(pair)).collect());
    }
    let there = near::there_are(key, "keys", pairs.iter().map(|pair| pair.key.as_str()));
    let message = format!("{}: no metadata `{}`{there}", args.file.display(), safe(key));
    Err(Error::new(ErrorKind::NoSuchKey, message)
        .in_file(&args.file)
        .next("`wharf meta FILE` lists them all"))
}

fn read(bytes: &[u8], full: bool) -> Result<Vec<Pair>, Stop> {
    let mut pairs = vec![];
    match Archive::open(Input::whole(bytes))? {
        Archive::Gguf(file) => {
            for pair in file.metadata() {
                let (key, value) = pair?;
                let (text, json) = show(value, full);
                pairs.push(Pair { key: key.chars().collect(), kind: kind(&value), text, json });
            }
        }
        Archive::Safetensors(file) => {
            for pair in file.metadata() {
                let (key, value) = pair?;
                let value: String = value.chars().collect();
                let text = shortened(&value, full);
                pairs.push(Pair {
                    key: key.chars().collect(),
                    kind: "string".into(),
                    text,
                    json: json!(value),
                });
            }
        }
        Archive::Irpa(_) => {}
    }
    Ok(pairs)
}

impl Pair {
    fn json(&self) -> Json {
        let mut value = self.json.clone();
        if value.get("elements").is_none() {
            value = json!({"value": value});
        }
        value["key"] = json!(self.key);
        value["type"] = json!(self.kind);
        value
    }
}

fn kind(value: &Value<'_>) -> String {
    match value {
        Value::Array(array) => format!("array of {} {}", array.count(), array.element().name()),
        value => value.kind().name().into(),
    }
}

/// A value as text, and as JSON: whole unless it is a long array.
fn show(value: Value<'_>, full: bool) -> (String, Json) {
    let scalar = |number: Scalar| (number.to_string(), number.json());
    match value {
        Value::Text(text) => match std::str::from_utf8(text.bytes()) {
            Ok(text) => (shortened(text, full), json!(text)),
            Err(_) => (format!("bytes {}", hex(text.bytes())), json!({"hex": hex(text.bytes())})),
        },
        Value::Array(array) => elements(array, full),
        Value::Bool(value) => (value.to_string(), json!(value)),
        Value::F32(number) => scalar(Scalar::Short(number)),
        Value::F64(number) => scalar(Scalar::Float(number)),
        Value::U64(number) => (number.to_string(), json!(number)),
        other => {
            let number = other.integer().unwrap_or_default();
            (number.to_string(), json!(i64::try_from(number).unwrap_or_default()))
        }
    }
}

fn elements(array: Array<'_>, full: bool) -> (String, Json) {
    let most = if full { usize::MAX } else { ELEMENTS };
    let quoted = array.element() == ValueType::Text;
    let (mut texts, mut values) = (vec![], vec![]);
    for value in array.iter().take(most) {
        let (text, json) = show(value, full);
        texts.push(if quoted { format!("\"{text}\"") } else { text });
        // An array in an array is a plain array.
        values.push(if json.get("elements").is_some() { json["elements"].clone() } else { json });
    }
    let left = array.count().saturating_sub(texts.len() as u64);
    let more = if left > 0 { format!(", ... {left} more (--full shows them)") } else { String::new() };
    let json = json!({"count": array.count(), "elements": values, "shortened": left > 0});
    (format!("[{}{more}]", texts.join(", ")), json)
}

/// A text on one line; a long one is cut.
fn shortened(text: &str, full: bool) -> String {
    let cut = text.char_indices().nth(CHARACTERS).map(|(at, _)| at).filter(|_| !full);
    match cut {
        Some(at) => format!("{}... {} bytes in all (--full shows them)", safe(&text[..at]), text.len()),
        None => safe(text),
    }
}
