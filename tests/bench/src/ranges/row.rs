//! One line of the result, as text and as JSON.

use std::fmt;

/// A figure beside the same of the peer.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) baseline: &'static str,
    pub(crate) baseline_value: f64,
    pub(crate) goal: f64,
}

pub(crate) const HEAD: &str =
    "what                                             ours       peer  unit   ratio    goal  met";

impl Row {
    fn ratio(&self) -> f64 {
        self.baseline_value / self.value
    }
    fn met(&self) -> bool {
        self.ratio() >= self.goal
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { name, value, unit, baseline_value, goal, .. } = self;
        let met = if self.met() { "yes" } else { "no" };
        write!(f, "{name:42}{value:11.1}{baseline_value:11.1}  {unit:5}{:7.1}{goal:8.1}  {met}", self.ratio())
    }
}

/// All rows as a JSON array; names and units need no escapes.
pub(crate) fn json(rows: &[Row]) -> String {
    let objects = rows.iter().map(|row| {
        format!(
            "  {{\"name\": \"{}\", \"value\": {:.2}, \"unit\": \"{}\", \"baseline\": \"{}\", \"baseline_value\": {:.2}, \
             \"ratio\": {:.3}, \"goal\": {}, \"met\": {}}}",
            row.name,
            row.value,
            row.unit,
            row.baseline,
            row.baseline_value,
            row.ratio(),
            row.goal,
            row.met()
        )
    });
    format!("[\n{}\n]\n", objects.collect::<Vec<_>>().join(",\n"))
}
