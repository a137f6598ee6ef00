//! Rust source as the rules look at it: its code, its comments, and how it nests; no full parse, so that also code inside
//! macros is seen.
//!
//! [`Source::code`] and [`Source::comments`] are as long as the text, line by line; whatever is not theirs is blank. What
//! is inside quotes is in neither.

/// A source file, taken apart.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    /// The code without comments and without what is inside quotes.
    pub(crate) code: String,
    /// The comments.
    pub(crate) comments: String,
}

/// What a byte belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Comment,
    Quote,
}

/// A function: its name and its first and last line, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl<'a> Source<'a> {
    /// Takes a file apart.
    pub(crate) fn new(text: &'a str) -> Self {
        let parts = parts(text.as_bytes());
        let keep = |part: Part| {
            let kept = text
                .bytes()
                .zip(&parts)
                .map(|(byte, at)| if *at == part || byte == b'\n' { byte } else { b' ' });
            String::from_utf8_lossy(&kept.collect::<Vec<u8>>()).into_owned()
        };
        Source { text, code: keep(Part::Code), comments: keep(Part::Comment) }
    }

    /// Whether the first line says that a program wrote the file.
    pub(crate) fn is_generated(&self) -> bool {
        self.text.lines().next().is_some_and(|line| line.to_lowercase().contains("generated"))
    }

    /// Lines without a module of tests that ends the file.
    pub(crate) fn lines_without_tests(&self) -> usize {
        let all = self.text.lines().count();
        let Some(at) = self.code.rfind("#[cfg(test)]") else { return all };
        let Some(open) = self.code[at..].find('{').map(|open| at + open) else { return all };
        let module = self.code[at..open].contains("mod ");
        let ends = self.close(open).is_some_and(|close| self.code[close + 1..].trim().is_empty());
        if module && ends { self.line(at) - 1 } else { all }
    }

    /// Lines of the code in which `word` stands alone.
    pub(crate) fn lines_of_word<'s>(&'s self, word: &'s str) -> impl Iterator<Item = usize> + 's {
        let lines = self.code.lines().enumerate();
        lines.filter(move |(_, line)| has_word(line, word)).map(|(number, _)| number + 1)
    }

    /// All functions that have a body.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for (at, _) in self.code.match_indices("fn ") {
            let alone = self.code[..at].chars().next_back().is_none_or(|c| !is_word(c));
            let name: String = self.code[at + 3..].trim_start().chars().take_while(|c| is_word(*c)).collect();
            if !alone || name.is_empty() {
                continue;
            }
            if let Some(close) = self.body(at).and_then(|open| self.close(open)) {
                found.push(Function { name, first: self.line(at), last: self.line(close) });
            }
        }
        found
    }

    /// Where the body of the function at `at` opens; `None` if it has none. Braces inside brackets belong to its types.
    fn body(&self, at: usize) -> Option<usize> {
        let mut depth = 0;
        for (offset, byte) in self.code[at..].bytes().enumerate() {
            match byte {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth -= 1,
                b'{' if depth == 0 => return Some(at + offset),
                b';' if depth == 0 => return None,
                _ => {}
            }
            if depth < 0 {
                return None;
            }
        }
        None
    }

    /// Where the brace that opens at `open` closes.
    fn close(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        for (offset, byte) in self.code[open..].bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' if depth == 1 => return Some(open + offset),
                b'}' => depth -= 1,
                _ => {}
            }
        }
        None
    }

    fn line(&self, at: usize) -> usize {
        self.code[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
    }
}

/// Whether `word` is in the line and no part of a longer word.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_none_or(|c| !is_word(c));
        before && line[at + word.len()..].chars().next().is_none_or(|c| !is_word(c))
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What each byte belongs to. Quotation marks count as code, what is between them does not.
fn parts(text: &[u8]) -> Vec<Part> {
    let mut parts = vec![Part::Code; text.len()];
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let (part, len) = if rest.starts_with(b"//") {
            (Part::Comment, rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()))
        } else if rest.starts_with(b"/*") {
            (Part::Comment, block_comment(rest))
        } else if let Some(len) =
            raw_string(rest).filter(|_| at == 0 || !word_byte(text[at - 1]) || text[at - 1] == b'b')
        {
            (Part::Quote, len)
        } else if rest[0] == b'"' {
            (Part::Quote, quoted(rest, b'"'))
        } else if rest[0] == b'\'' {
            character(rest).map_or((Part::Code, 1), |len| (Part::Quote, len))
        } else {
            (Part::Code, 1)
        };
        parts[at..at + len].fill(part);
        at += len;
    }
    parts
}

fn word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Length of a block comment; they nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Length of `r"…"`, `r#"…"#` and so on, if there is one here.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest.strip_prefix(b"r")?.iter().take_while(|byte| **byte == b'#').count();
    let inside = rest.get(1 + hashes..)?.strip_prefix(b"\"")?;
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let len = inside.windows(end.len()).position(|window| window == end)?;
    Some(2 + hashes + len + end.len())
}

/// Length of a quoted text with its quotes.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Length of a character literal; `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return Some(quoted(rest, b'\''));
    }
    // One character of UTF-8 and a quote.
    (2..=5)
        .find(|end| rest.get(*end) == Some(&b'\''))
        .filter(|end| std::str::from_utf8(&rest[1..*end]).is_ok_and(|inside| inside.chars().count() == 1))
        .map(|end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_quotes_are_told_from_code() {
        let source = Source::new(
            "let a = \"x // y\"; // dbg\nlet b = '\"'; /* c /* d */ e */ let f: &'static str = r#\"g\"h\"#;",
        );
        assert_eq!(source.code.split_whitespace().collect::<String>(), "leta=;letb=;letf:&'staticstr=;");
        assert_eq!(source.comments.split_whitespace().collect::<String>(), "//dbg/*c/*d*/e*/");
        assert_eq!(source.code.len(), source.text.len());
    }

    #[test]
    fn functions_are_found_with_their_lines() {
        let source = Source::new(
            "fn a() {}\nimpl X {\n    const fn b(x: [u8; { 2 }]) -> u8 {\n        0\n    }\n}\ntrait T {\n    fn c();\n}\ntype F = fn (u8);\n",
        );
        let names: Vec<_> = source.functions().into_iter().map(|f| (f.name, f.first, f.last)).collect();
        assert_eq!(names, [("a".to_owned(), 1, 1), ("b".to_owned(), 3, 5)]);
    }

    #[test]
    fn only_a_module_of_tests_at_the_end_is_not_counted() {
        assert_eq!(Source::new("a\n\n#[cfg(test)]\nmod tests {\n    x\n}\n").lines_without_tests(), 2);
        assert_eq!(Source::new("a\n#[cfg(test)]\nmod tests {\n    x\n}\nb\n").lines_without_tests(), 6);
        assert_eq!(Source::new("a\n#[cfg(test)]\nuse b;\n").lines_without_tests(), 3);
    }

    #[test]
    fn a_word_stands_alone() {
        assert!(has_word("use libloading::Library;", "libloading"));
        assert!(!has_word("my_libloading", "libloading"));
    }
}
