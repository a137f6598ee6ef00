//! The nearest of some words to one that was mistyped.

/// The candidate that takes the fewest changes of single letters, if these are few for its length.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(changes, candidate)| *changes <= candidate.len().div_ceil(3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, delete or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_guessed_and_another_word_is_not() {
        let known = ["plugins", "demo", "test", "tidy", "ci"];
        assert_eq!(nearest("plugin", known.into_iter()), Some("plugins"));
        assert_eq!(nearest("tets", known.into_iter()), Some("test"));
        assert_eq!(nearest("tydy", known.into_iter()), Some("tidy"));
        assert_eq!(nearest("release", known.into_iter()), None);
    }
}
