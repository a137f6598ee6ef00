//! All that is wrong with a file, not only the first of it: entries are judged one by one where the format lets a reader
//! step over a bad one, then names and ranges of the good ones together. What is wrong with the header itself ends it.

use alloc::string::String;
use alloc::vec::Vec;

use super::entry::{Data, Entry, Text};
use super::error::{Class, Error};
use super::gguf::Gguf;
use super::input::{Input, Stop};
use super::irpa::Irpa;
use super::limits;
use super::safetensors::Safetensors;
use super::sniff::{self, Format};

/// What was found so far.
pub(super) struct Survey {
    problems: Vec<Error>,
    names: Vec<(String, u64)>,
    /// Begin, end and number of the entries' names.
    ranges: Vec<(u64, u64, usize)>,
    /// Bytes of names that may still be kept: entries that all share one name would make much of a small file.
    room: u64,
}

impl Survey {
    /// One entry more, good or bad.
    pub(super) fn entry(&mut self, entry: Result<Entry<'_>, Error>) {
        match entry {
            Err(error) => self.problem(error),
            Ok(entry) => {
                let len = entry.name.raw().len() as u64;
                let Some(room) = self.room.checked_sub(len) else {
                    let detail = "the names up to {name} take more bytes together than the file has";
                    return self
                        .problem(Error::new(Class::LimitExceeded, entry.name.at(), detail).name(entry.name));
                };
                self.room = room;
                if let Data::Range { offset, len } = entry.data {
                    self.ranges.push((offset, offset + len, self.names.len()));
                }
                self.names.push((entry.name.chars().collect(), entry.name.at()));
            }
        }
    }

    fn problem(&mut self, error: Error) {
        if self.problems.len() < limits::PROBLEMS {
            self.problems.push(error);
        }
    }

    /// Keys or names, each of which may occur once.
    pub(super) fn once(&mut self, mut names: Vec<(String, u64)>, class: Class) {
        names.sort_unstable();
        for pair in names.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            let detail = "{name} occurs twice, at byte {a} and again";
            let name = Text::plain(&pair[1].0, pair[1].1);
            self.problem(Error::new(class, pair[1].1, detail).name(name).values(pair[0].1, 0));
        }
    }

    /// Ranges that share bytes, and bytes between `dense` that belong to none.
    fn ranges(&mut self, dense: Option<(u64, u64)>) {
        let mut ranges = core::mem::take(&mut self.ranges);
        ranges.retain(|(begin, end, _)| end > begin);
        ranges.sort_unstable();
        let (mut end, mut before) = (dense.map_or(0, |(begin, _)| begin), None);
        for (begin, stop, number) in ranges {
            let name = self.names[number].0.clone();
            let name = Text::plain(&name, 0);
            if begin < end {
                let other = before.map_or("the header", |before: usize| self.names[before].0.as_str());
                let detail = "{name} begins at {a}, before `{word}` ends at {b}";
                let error = Error::new(Class::Overlap, begin, detail).values(begin, end);
                self.problem(error.name(name).word(other.bytes()));
            } else if dense.is_some() && begin > end {
                let detail = "{a-b} bytes before {name}, which begins at {a}, belong to no tensor";
                self.problem(Error::new(Class::Hole, end, detail).values(begin, end).name(name));
            }
            if stop > end {
                (end, before) = (stop, Some(number));
            }
        }
        if let Some((_, stop)) = dense.filter(|(_, stop)| *stop > end) {
            let detail = "{a-b} bytes after the last tensor, which ends at {b}, belong to no tensor";
            self.problem(Error::new(Class::Hole, end, detail).values(stop, end));
        }
    }
}

/// Everything that is wrong with a file of this format, or of the one that its content shows; at most
/// [`limits::PROBLEMS`].
///
/// # Errors
/// [`Stop::Need`] until the header is in memory.
pub fn examine(format: Option<Format>, input: Input<'_>) -> Result<Vec<Error>, Stop> {
    let mut survey =
        Survey { problems: Vec::new(), names: Vec::new(), ranges: Vec::new(), room: input.len() };
    match survey_as(format, input, &mut survey) {
        Ok(()) => {}
        Err(Stop::Bad(error)) => survey.problem(error),
        Err(need) => return Err(need),
    }
    Ok(survey.problems)
}

fn survey_as(format: Option<Format>, input: Input<'_>, survey: &mut Survey) -> Result<(), Stop> {
    let format = match format {
        Some(format) => format,
        None => sniff::format(&input)?,
    };
    let dense = match format {
        Format::Gguf => {
            Gguf::survey(input, survey)?;
            Some(None)
        }
        Format::Safetensors => {
            let data_at = Safetensors::survey(input, survey)?;
            // A bad tensor leaves a hole that is no problem of its own.
            Some(survey.problems.is_empty().then_some((data_at, input.len())))
        }
        Format::Irpa => {
            Irpa::survey(input, survey)?;
            None
        }
    };
    let names = survey.names.clone();
    survey.once(names, Class::DuplicateName);
    // Entries of IRPA may share bytes.
    if let Some(dense) = dense {
        survey.ranges(dense);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec;

    fn classes(bytes: &[u8]) -> Vec<&'static str> {
        let found = examine(None, Input::whole(bytes)).unwrap();
        found.iter().map(|error| error.class().name()).collect()
    }

    fn safetensors(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    }

    #[test]
    fn every_bad_tensor_is_named() {
        let header = r#"{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,8]},"c":{"dtype":"I8","shape":[4],"data_offsets":[8,12]},"d":{"dtype":"I8","shape":[900],"data_offsets":[12,912]},"c":{"dtype":"I8","shape":[4],"data_offsets":[8,12]}}"#;
        assert_eq!(
            classes(&safetensors(header, 12)),
            ["unsupported_dtype", "size_mismatch", "truncated", "duplicate_name", "overlap"]
        );
    }

    #[test]
    fn every_hole_and_overlap_is_named() {
        let tensor = |name, begin, end| {
            format!(r#""{name}":{{"dtype":"U8","shape":[{}],"data_offsets":[{begin},{end}]}}"#, end - begin)
        };
        let all = [tensor('a', 1, 4), tensor('b', 3, 6), tensor('c', 8, 9)].join(",");
        let bytes = safetensors(&format!("{{{all}}}"), 10);
        assert_eq!(classes(&bytes), ["hole", "overlap", "hole", "hole"]);
    }

    #[test]
    fn a_header_that_cannot_be_read_is_the_one_problem() {
        assert_eq!(classes(b"GGUF\x09\0\0\0"), ["unsupported_version"]);
        assert_eq!(classes(&safetensors("{", 0)), ["invalid_json"]);
        assert_eq!(classes(b""), ["truncated"]);
    }

    #[test]
    fn problems_are_limited() {
        let tensor = |n: usize| format!(r#""{n}":{{"dtype":"F99","shape":[],"data_offsets":[0,0]}}"#);
        for (count, found) in [(limits::PROBLEMS, limits::PROBLEMS), (limits::PROBLEMS + 1, limits::PROBLEMS)]
        {
            let all: Vec<String> = (0..count).map(tensor).collect();
            assert_eq!(
                classes(&safetensors(&format!("{{{}}}", all.join(",")), 0)),
                vec!["unsupported_dtype"; found]
            );
        }
    }
}
