//! "No such name": the names that are there, nearest first.

/// At most this many names are shown.
const SHOWN: usize = 5;

/// Letters to change to get from one name to the other, counting at most `limit`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = before + usize::from(ca != *cb);
            before = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

/// The names nearest to `asked`, a prefix or part of it counting as near.
pub fn nearest<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let asked = asked.to_lowercase();
    let mut ranked: Vec<(usize, usize, &str)> = names
        .enumerate()
        .map(|(order, name)| {
            let lower = name.to_lowercase();
            let part = !asked.is_empty() && (lower.contains(&asked) || asked.contains(&lower));
            (if part { 0 } else { distance(&asked, &lower) }, order, name)
        })
        .collect();
    ranked.sort_unstable_by_key(|(far, order, _)| (*far, *order));
    ranked.into_iter().take(SHOWN).map(|(_, _, name)| name).collect()
}

/// "; known devices: `a`, `b`" or "; there are no devices".
pub fn there_are<'a>(asked: &str, what: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return format!("; there are no {what}");
    }
    let near: Vec<String> =
        nearest(asked, names.iter().copied()).iter().map(|name| format!("`{}`", escaped(name))).collect();
    let more = if names.len() > near.len() {
        format!(" and {} more", names.len() - near.len())
    } else {
        String::new()
    };
    format!("; known {what}: {}{more}", near.join(", "))
}

/// A name that is safe to print on a terminal.
pub fn escaped(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { wharf_core::archive::Escaped(name.as_bytes()).to_string() }
}

/// Whether a name needs no escape, as most do.
pub fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_comes_first() {
        let names = ["blk.0.attn_q.weight", "blk.0.attn_k.weight", "output.weight"];
        assert_eq!(nearest("blk.0.atn_q.weight", names.into_iter())[0], names[0]);
        assert_eq!(nearest("output", names.into_iter())[0], names[2]);
        assert_eq!(distance("kitten", "sitting"), 3); // The textbook pair of Levenshtein's distance.
    }
}
