//! Rules on any file, and on what has to be there.

use super::Finding;
use crate::workspace::Package;

/// Folders of one machine. In two pieces, so that this file does not hold them.
const MACHINE: &[&str] = &[concat!("/", "root/"), concat!("/", "work/"), concat!("/", "home/")];

/// Absolute paths of the machine that somebody worked on.
pub(super) fn machine_paths(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for folder in MACHINE {
            // Inside a relative path there is something in front.
            let begins = |at: usize| {
                line[..at].chars().next_back().is_none_or(|c| !(c.is_alphanumeric() || "_-.*$}>".contains(c)))
            };
            if line.match_indices(folder).any(|(at, _)| begins(at)) {
                let what = format!("a path below {folder}");
                found.push(Finding::new(path, number + 1, what, "it is there on one machine only"));
            }
        }
    }
    found
}

/// Every package says under which licence it is.
pub(super) fn licences(packages: &[Package]) -> Vec<Finding> {
    let without = packages.iter().filter(|package| package.license.is_none());
    let finding = |package: &Package| {
        let what = format!("{} has no license field", package.name);
        Finding::new(&format!("{}/Cargo.toml", package.dir), 1, what, "users and tools look for it there")
    };
    without.map(finding).collect()
}

/// The lock file of the workspace, and of each package outside that depends on anything.
pub(super) fn locks(outside: &[Package], files: &[String]) -> Vec<Finding> {
    let needed = outside.iter().filter(|package| !package.dependencies.is_empty());
    let mut locks = vec!["Cargo.lock".to_owned()];
    locks.extend(needed.map(|package| format!("{}/Cargo.lock", package.dir)));
    locks.retain(|lock| !files.contains(lock));
    let why = "all builds use the same versions";
    locks.iter().map(|lock| Finding::new(lock, 1, "not committed", why)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_one_machine_are_found_and_relative_ones_are_not() {
        for folder in MACHINE {
            let inside = format!("see core/src{folder}mod.rs and $SOME{folder}x and target{folder}y\n");
            assert_eq!(machine_paths("a.md", &inside), []);
            let text = format!("fine\nrun `{folder}me/build`\n");
            let found = machine_paths("a.md", &text);
            assert_eq!(found.len(), 1, "{folder}");
            assert_eq!(found[0].line, 2);
        }
    }

    #[test]
    fn a_package_without_a_licence_is_found() {
        let with = Package { name: "a".into(), license: Some("MIT".into()), ..Package::default() };
        let without = Package { name: "b".into(), dir: "b".into(), ..Package::default() };
        let found: Vec<_> = licences(&[with, without]).into_iter().map(|finding| finding.what).collect();
        assert_eq!(found, ["b has no license field"]);
    }

    #[test]
    fn lock_files_are_committed() {
        let outside = Package {
            name: "x".into(),
            dir: "tests/x".into(),
            dependencies: vec![crate::workspace::Dependency {
                name: "y".into(),
                kind: crate::workspace::DependencyKind::Normal,
            }],
            ..Package::default()
        };
        let both = ["Cargo.lock".to_owned(), "tests/x/Cargo.lock".to_owned()];
        assert_eq!(locks(std::slice::from_ref(&outside), &both), []);
        let paths = |files: &[String]| {
            locks(std::slice::from_ref(&outside), files).into_iter().map(|f| f.path).collect::<Vec<_>>()
        };
        assert_eq!(paths(&both[..1]), ["tests/x/Cargo.lock"]);
        assert_eq!(paths(&[]), both);
    }
}
