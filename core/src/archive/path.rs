//! Paths that a file names. Only the name is judged, the same on every system; where a link of the user's leads is the
//! user's business.

/// Why a path is not one below the archive's folder, as a detail of an [`Error`](super::Error); none if it is one.
pub(super) fn leaves(path: &str) -> Option<&'static str> {
    let bytes = path.as_bytes();
    if bytes.is_empty() {
        return Some("{name} names a file without a name");
    }
    if bytes.contains(&0) {
        return Some("{name} names `{word}`, which holds a NUL");
    }
    if matches!(bytes, [b'/' | b'\\', ..]) || matches!(bytes, [_, b':', ..]) {
        return Some("{name} names `{word}`, an absolute path");
    }
    if bytes.split(|&b| b == b'/' || b == b'\\').any(|step| step == b"..") {
        return Some("{name} names `{word}`, which leaves the archive's folder");
    }
    if bytes.contains(&b'\\') {
        return Some("{name} names `{word}`, which is a path on one system and a name on another");
    }
    None
}
