//! Errors as they cross: kind and blame in a status' code, words in the plugin's store.

use wharf_core::fault::{Blame, Fault, Kind, Site, Why};

use crate::tables::Status;

/// The code of a status.
pub const fn code(kind: Kind, blame: Blame) -> i32 {
    kind as i32 | (blame as i32) << 8
}

/// A status without words: an answer that is no failure, such as "no such property".
pub(crate) const fn plain(kind: Kind) -> Status {
    Status { code: code(kind, Blame::Backend), native: 0, err: 0 }
}

/// Kind and blame of a code that is not 0. A number that is not known, from a newer or a broken plugin, reads as a
/// failure of the backend.
pub const fn decode(code: i32) -> (Kind, Blame) {
    let kind = if code < 0 || code > 0xffff { Kind::BackendFailure } else { Kind::from_number(code as u8) };
    let blame = match code >> 8 {
        0 => Blame::Caller,
        2 => Blame::Driver,
        3 => Blame::Wharf,
        _ => Blame::Backend,
    };
    (kind, blame)
}

/// The fault of a status that is not a success; its words are `text`.
pub(crate) fn fault(status: &Status, site: Site, text: u32) -> Fault {
    let (kind, blame) = decode(status.code);
    let why = if status.native != 0 { Why::Native } else { Why::Unknown };
    let mut fault = Fault::new(kind, blame, site, why, [0; 2]).with_native(status.native as i32);
    fault.text = text;
    fault
}

/// A plugin answered what no plugin may answer.
pub(crate) fn broken(site: Site, why: Why, values: [u64; 2], text: &str) -> Fault {
    let mut fault = Fault::backend(Kind::BackendFailure, site, why, values);
    fault.text = crate::text::keep(text.into());
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_and_unknown_ones_blame_the_backend() {
        for kind in Kind::ALL {
            assert_eq!(decode(code(kind, Blame::Driver)), (kind, Blame::Driver));
        }
        assert_eq!(decode(-1), (Kind::BackendFailure, Blame::Backend));
        assert_eq!(decode(255), (Kind::BackendFailure, Blame::Caller));
        assert_eq!(decode(0x0900), (Kind::BackendFailure, Blame::Backend));
        assert_eq!(decode(0x10005), (Kind::BackendFailure, Blame::Backend));
    }
}
