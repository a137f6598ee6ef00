//! What a run came to: a line a case, a count, and JUnit's XML for whoever collects that.

use std::{fmt, time::Duration};

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Result {
    /// The rule holds.
    Passed,
    /// It does not, and this is why.
    Failed(String),
    /// It does not, and that is known: the reason in the table, and the failure.
    Known(String, String),
    /// The target lacks what the case needs.
    Skipped(String),
}

/// A case in a mode.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name.
    pub case: &'static str,
    /// The mode.
    pub mode: &'static str,
    /// What became of it.
    pub result: Result,
    /// How long it took.
    pub took: Duration,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, why) = match &self.result {
            Result::Passed => ("pass", None),
            Result::Failed(why) => ("FAIL", Some(why)),
            Result::Known(why, _) => ("known", Some(why)),
            Result::Skipped(why) => ("skip", Some(why)),
        };
        write!(f, "{word:5} {} [{}]", self.case, self.mode)?;
        why.map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

/// All lines of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Name of the target.
    pub target: String,
    /// In the order in which they ran.
    pub lines: Vec<Line>,
}

impl Report {
    fn count(&self, is: fn(&Result) -> bool) -> usize {
        self.lines.iter().filter(|line| is(&line.result)).count()
    }
    /// Cases that passed, known failures included: they behave as the table says.
    pub fn passed(&self) -> usize {
        self.count(|result| matches!(result, Result::Passed | Result::Known(..)))
    }
    /// Cases that failed, and known failures that passed.
    pub fn failed(&self) -> usize {
        self.count(|result| matches!(result, Result::Failed(_)))
    }
    /// Cases that were skipped.
    pub fn skipped(&self) -> usize {
        self.count(|result| matches!(result, Result::Skipped(_)))
    }
    /// Failures that the table knows.
    pub fn known(&self) -> usize {
        self.count(|result| matches!(result, Result::Known(..)))
    }
    /// The closing line.
    pub fn summary(&self) -> String {
        let known = match self.known() {
            0 => String::new(),
            known => format!(" ({known} of them fail as is known)"),
        };
        format!("{} passed{known}, {} failed, {} skipped", self.passed(), self.failed(), self.skipped())
    }

    /// The run as a JUnit test suite.
    pub fn junit(&self) -> String {
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
            escaped(&self.target),
            self.lines.len(),
            self.failed(),
            self.skipped()
        );
        for line in &self.lines {
            let seconds = line.took.as_secs_f64();
            let head = format!(
                "  <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.6}\"",
                line.mode, line.case
            );
            xml.push_str(&match &line.result {
                Result::Passed | Result::Known(..) => format!("{head}/>\n"),
                Result::Failed(why) => format!("{head}><failure message=\"{}\"/></testcase>\n", escaped(why)),
                Result::Skipped(why) => {
                    format!("{head}><skipped message=\"{}\"/></testcase>\n", escaped(why))
                }
            });
        }
        xml.push_str("</testsuite>\n");
        xml
    }
}

/// Text inside an attribute; characters that XML cannot hold become spaces.
fn escaped(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '&' => "&amp;".into(),
            '<' => "&lt;".into(),
            '>' => "&gt;".into(),
            '"' => "&quot;".into(),
            c if (c as u32) < 0x20 => " ".into(),
            c => String::from(c),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_counts_and_escapes() {
        let line = |result| Line { case: "a.b", mode: "pump", result, took: Duration::from_millis(1) };
        let report = Report {
            target: "x\"y".into(),
            lines: vec![
                line(Result::Passed),
                line(Result::Failed("1 < 2".into())),
                line(Result::Skipped("none".into())),
                line(Result::Known("r".into(), "f".into())),
            ],
        };
        assert_eq!(report.summary(), "2 passed (1 of them fail as is known), 1 failed, 1 skipped");
        let xml = report.junit();
        assert!(xml.contains("name=\"x&quot;y\" tests=\"4\" failures=\"1\" skipped=\"1\""), "{xml}");
        assert!(xml.contains("<failure message=\"1 &lt; 2\"/>"), "{xml}");
    }
}
