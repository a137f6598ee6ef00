//! Who else may have written a plugin: a file, and each folder above it, must belong to root or to the user, and nobody
//! else may write to it. A folder with the sticky bit (`/tmp`) is fine: there only an owner replaces what is his. So is
//! the user's private group, whose number by custom is the user's: many systems let it write by default.

use std::{fs, path::Path};

/// What is known of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) owner: u32,
    pub(crate) group: u32,
    pub(crate) mode: u32,
    pub(crate) folder: bool,
}

const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const WORLD_WRITES: u32 = 0o002;

/// What is wrong with a file or folder for a process of this user; nothing if all is well.
pub(crate) fn wrong(facts: Facts, user: u32) -> Option<&'static str> {
    if facts.owner != 0 && facts.owner != user {
        return Some("belongs to another user");
    }
    if facts.folder && facts.mode & STICKY != 0 {
        return None;
    }
    if facts.mode & WORLD_WRITES != 0 {
        return Some("can be written by everybody");
    }
    let private = user != 0 && facts.owner == user && facts.group == user;
    (facts.mode & GROUP_WRITES != 0 && !private).then_some("can be written by its group")
}

/// Why a file is not to be trusted, by itself or by a folder above it. `real` is without links.
pub(crate) fn distrust(real: &Path, user: u32) -> Option<String> {
    real.ancestors().find_map(|path| {
        let facts = facts(path)?;
        let what = wrong(facts, user)?;
        let owner = if what.starts_with("belongs") { format!(" ({})", facts.owner) } else { String::new() };
        Some(format!("{} {what}{owner}", path.display()))
    })
}

#[cfg(unix)]
fn facts(path: &Path) -> Option<Facts> {
    use std::os::unix::fs::MetadataExt;
    let facts = fs::metadata(path).ok()?;
    Some(Facts { owner: facts.uid(), group: facts.gid(), mode: facts.mode(), folder: facts.is_dir() })
}

#[cfg(not(unix))]
fn facts(_: &Path) -> Option<Facts> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: u32 = 1000;
    const STAFF: u32 = 50;
    const FILE: Facts = Facts { owner: ME, group: STAFF, mode: 0o755, folder: false };
    const FOLDER: Facts = Facts { owner: ME, group: STAFF, mode: 0o755, folder: true };

    #[test]
    fn own_files_and_those_of_root_are_trusted() {
        assert_eq!(wrong(FILE, ME), None);
        assert_eq!(wrong(Facts { owner: 0, ..FILE }, ME), None);
    }

    #[test]
    fn files_of_another_user_are_not_trusted() {
        assert_eq!(wrong(Facts { owner: 1001, ..FILE }, ME), Some("belongs to another user"));
    }

    #[test]
    fn root_does_not_trust_the_files_of_a_user() {
        assert_eq!(wrong(FILE, 0), Some("belongs to another user"));
    }

    #[test]
    fn a_file_that_its_group_writes_is_not_trusted() {
        assert_eq!(wrong(Facts { mode: 0o775, ..FILE }, ME), Some("can be written by its group"));
    }

    #[test]
    fn a_private_group_may_write_what_is_its_users() {
        let mine = Facts { group: ME, mode: 0o775, ..FILE };
        assert_eq!(wrong(mine, ME), None);
        assert_eq!(wrong(Facts { folder: true, ..mine }, ME), None);
        assert_eq!(wrong(Facts { mode: 0o777, ..mine }, ME), Some("can be written by everybody"));
    }

    #[test]
    fn a_private_group_may_not_write_what_is_roots() {
        let roots = Facts { owner: 0, group: ME, mode: 0o775, folder: false };
        assert_eq!(wrong(roots, ME), Some("can be written by its group"));
        assert_eq!(wrong(Facts { group: 0, ..roots }, 0), Some("can be written by its group"));
    }

    #[test]
    fn a_file_that_everybody_writes_is_not_trusted() {
        assert_eq!(wrong(Facts { mode: 0o757, ..FILE }, ME), Some("can be written by everybody"));
    }

    #[test]
    fn a_folder_that_others_write_is_not_trusted() {
        assert_eq!(wrong(Facts { mode: 0o777, ..FOLDER }, ME), Some("can be written by everybody"));
        assert_eq!(wrong(Facts { mode: 0o775, ..FOLDER }, ME), Some("can be written by its group"));
    }

    #[test]
    fn the_sticky_bit_makes_a_folder_trusted_but_no_file() {
        assert_eq!(wrong(Facts { mode: 0o1777, ..FOLDER }, ME), None);
        assert_eq!(wrong(Facts { mode: 0o1777, ..FILE }, ME), Some("can be written by everybody"));
    }

    #[test]
    fn a_sticky_folder_of_another_user_is_not_trusted() {
        assert_eq!(wrong(Facts { mode: 0o1777, owner: 1001, ..FOLDER }, ME), Some("belongs to another user"));
    }
}
