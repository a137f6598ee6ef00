//! Which file is behind an address of this process, by the system's own list. Both addresses that are compared come from
//! that list, since some file systems (overlayfs, btrfs) show other numbers in it than `stat` answers.

use std::fs;

/// Whether both addresses are mapped from one file; also if the system has no such list.
pub(crate) fn same_file(one: usize, other: usize) -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    let Ok(list) = fs::read_to_string("/proc/self/maps") else { return true };
    same(&list, one, other)
}

fn same(list: &str, one: usize, other: usize) -> bool {
    match (file_at(list, one), file_at(list, other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// Device and inode of the line that holds the address: `7f00-7f10 r-xp 00000000 fd:01 1234 /path`.
fn file_at(list: &str, address: usize) -> Option<(&str, &str)> {
    list.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        if !(number(begin)?..number(end)?).contains(&address) {
            return None;
        }
        let mut words = words.skip(2);
        Some((words.next()?, words.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
1000-2000 r--p 00000000 fd:01 77                         /lib/a.so
2000-3000 r-xp 00001000 fd:01 77                         /lib/a.so
5000-6000 r--p 00000000 fd:01 78                         /lib/b.so
7000-8000 r--p 00000000 00:1f 77                         /other/a.so (deleted)
9000-a000 rw-p 00000000 00:00 0
";

    #[test]
    fn two_addresses_of_one_file_are_the_same_also_in_two_mappings() {
        assert!(same(LIST, 0x1000, 0x2fff));
    }

    #[test]
    fn another_inode_is_another_file() {
        assert!(!same(LIST, 0x1000, 0x5000));
    }

    #[test]
    fn the_same_inode_of_another_device_is_another_file() {
        assert!(!same(LIST, 0x1000, 0x7fff));
    }

    #[test]
    fn an_address_that_is_not_mapped_is_of_no_file() {
        assert!(!same(LIST, 0x1000, 0x3000));
        assert_eq!(file_at("nonsense\n", 0), None);
    }
}
