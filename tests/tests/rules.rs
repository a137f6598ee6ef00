//! `tests/RULES.md` names only tests and cases that exist.
#![allow(clippy::unwrap_used)]

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};
use wharf_tests::root;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The test functions of a file: what comes after `#[test]` and perhaps other attributes.
fn tests(text: &str) -> impl Iterator<Item = String> {
    text.split("#[test]").skip(1).filter_map(|part| {
        let (attributes, rest) = part.split_once("fn ")?;
        let plain = attributes.lines().all(|line| line.trim().is_empty() || line.trim().starts_with("#["));
        plain.then(|| rest.split(['(', '<']).next().unwrap_or_default().to_owned())
    })
}

/// Names of tests, and texts of the suite that look like a case (`group.name`).
fn names() -> HashSet<String> {
    let mut files = vec![];
    for folder in ["core", "loader", "host-plugin", "plugins", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    let mut names = HashSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        names.extend(tests(&text));
        if file.components().any(|part| part.as_os_str() == "cases") {
            names.extend(
                text.split('"').filter(|part| part.contains('.') && !part.contains(' ')).map(str::to_owned),
            );
        }
    }
    names
}

#[test]
fn every_rule_names_tests_that_exist() {
    let (known, text) = (names(), fs::read_to_string(root().join("tests/RULES.md")).unwrap());
    let mut rules = 0;
    for line in text.lines().filter(|line| line.starts_with("| ") && !line.contains("---")) {
        let last = line.trim_end_matches('|').rsplit('|').next().unwrap().trim();
        if last == "tests" {
            continue;
        }
        rules += 1;
        let named: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty() || last.starts_with('-'), "no test and no reason: {line}");
        for name in named {
            assert!(known.contains(name), "no test or case `{name}`: {line}");
        }
    }
    assert!(rules > 300, "{rules}");
}
