//! One line of the result, as text and as JSON.

use crate::time::Times;
use std::fmt;

/// What a row should reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The baseline divided by ours, at least.
    Ratio(f64),
    /// Our own figure, at most.
    Most(f64),
    /// None: the row explains another one.
    None,
}

/// A figure, with its spread if it was measured in rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// What is compared: of rounds their lower quartile.
    pub value: f64,
    /// Fastest, middle and slowest round.
    pub spread: Option<[f64; 3]>,
}

impl From<f64> for Figure {
    fn from(value: f64) -> Figure {
        Figure { value, spread: None }
    }
}

impl From<Times> for Figure {
    fn from(times: Times) -> Figure {
        Figure { value: times.quartile(), spread: Some([times.min(), times.median(), times.max()]) }
    }
}

/// A figure beside the same of the baseline. Less is better.
#[derive(Clone, Debug)]
pub struct Row {
    /// What is measured.
    pub name: String,
    /// Ours.
    pub value: Figure,
    /// Of both.
    pub unit: &'static str,
    /// What it is compared with.
    pub baseline: &'static str,
    /// The baseline's.
    pub baseline_value: Figure,
    /// What should be reached.
    pub goal: Goal,
}

/// Over the columns of rows.
pub const HEAD: &str = "what                                                    ours    baseline  unit    ratio      goal  met  baseline is";

impl Row {
    /// How many times better ours is.
    pub fn ratio(&self) -> f64 {
        self.baseline_value.value / self.value.value
    }
    /// Whether the goal is reached; `None` without one.
    pub fn met(&self) -> Option<bool> {
        match self.goal {
            Goal::Ratio(least) => Some(self.ratio() >= least),
            Goal::Most(most) => Some(self.value.value <= most),
            Goal::None => None,
        }
    }
    fn json(&self) -> String {
        let (of, goal) = match self.goal {
            Goal::Ratio(least) => ("\"ratio\"", least.to_string()),
            Goal::Most(most) => ("\"value\"", most.to_string()),
            Goal::None => ("null", "null".into()),
        };
        let met = self.met().map_or("null".into(), |met| met.to_string());
        format!(
            "  {{\"name\": \"{}\", \"value\": {:.3}, \"unit\": \"{}\", \"baseline\": \"{}\", \"baseline_value\": {:.3}, \
             \"ratio\": {:.3}, \"goal\": {goal}, \"goal_of\": {of}, \"met\": {met}, \"spread\": {}, \
             \"baseline_spread\": {}}}",
            self.name,
            self.value.value,
            self.unit,
            self.baseline,
            self.baseline_value.value,
            self.ratio(),
            spread(&self.value),
            spread(&self.baseline_value),
        )
    }
}

fn spread(figure: &Figure) -> String {
    match figure.spread {
        Some([min, median, max]) => format!("[{min:.3}, {median:.3}, {max:.3}]"),
        None => "null".into(),
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { name, unit, baseline, .. } = self;
        let (value, peer, ratio) = (self.value.value, self.baseline_value.value, self.ratio());
        let goal = match self.goal {
            Goal::Ratio(least) => format!(">= {least:.2}"),
            Goal::Most(most) => format!("{most} {unit}"),
            Goal::None => "-".into(),
        };
        let met = match self.met() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        write!(f, "{name:48}{value:12.1}{peer:12.1}  {unit:5}{ratio:8.2}{goal:>10}  {met:3}  {baseline}")
    }
}

/// All rows as a JSON array; names and units need no escapes.
pub fn json(rows: &[Row]) -> String {
    let objects: Vec<_> = rows.iter().map(Row::json).collect();
    format!("[\n{}\n]\n", objects.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(goal: Goal) -> Row {
        let value = Times::new(vec![30.0, 10.0, 20.0, 40.0]).into();
        Row { name: "x".into(), value, unit: "ns", baseline: "y", baseline_value: 50.0.into(), goal }
    }

    #[test]
    fn a_goal_is_a_ratio_or_a_bound() {
        assert_eq!(row(Goal::Ratio(2.5)).met(), Some(true));
        assert_eq!(row(Goal::Ratio(2.6)).met(), Some(false));
        assert_eq!(row(Goal::Most(20.0)).met(), Some(true));
        assert_eq!(row(Goal::Most(19.0)).met(), Some(false));
        assert_eq!(row(Goal::None).met(), None);
    }

    #[test]
    fn json_has_every_column() {
        let text = json(&[row(Goal::Most(20.0))]);
        let expected = "[\n  {\"name\": \"x\", \"value\": 20.000, \"unit\": \"ns\", \"baseline\": \"y\", \
                        \"baseline_value\": 50.000, \"ratio\": 2.500, \"goal\": 20, \"goal_of\": \"value\", \
                        \"met\": true, \"spread\": [10.000, 30.000, 40.000], \"baseline_spread\": null}\n]\n";
        assert_eq!(text, expected);
    }
}
