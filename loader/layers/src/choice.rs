//! Layers as people choose them: `name[:options],name[:options]`, the outermost first, and globs of names that switch
//! layers off.

use alloc::{format, string::String, vec::Vec};

/// Names of all layers, in the order in which they make sense, the outermost first.
pub const NAMES: [&str; 4] = ["validation", "trace", "capture", "faults"];

/// A layer that somebody chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which of [`NAMES`].
    pub name: &'static str,
    /// What follows the colon; empty without one.
    pub options: String,
}

impl Choice {
    /// One layer: `name` or `name:options`.
    ///
    /// # Errors
    /// The name that no layer has.
    pub fn parse(text: &str) -> Result<Choice, String> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let known = NAMES.into_iter().find(|known| *known == name.trim());
        let name = known.ok_or_else(|| String::from(name.trim()))?;
        Ok(Choice { name, options: options.into() })
    }

    /// All layers of a list with commas; nothing between two commas is nothing.
    ///
    /// # Errors
    /// The first name that no layer has.
    pub fn parse_all(text: &str) -> Result<Vec<Choice>, String> {
        text.split(',').filter(|one| !one.trim().is_empty()).map(Choice::parse).collect()
    }

    /// As it was chosen.
    pub fn text(&self) -> String {
        if self.options.is_empty() { self.name.into() } else { format!("{}:{}", self.name, self.options) }
    }
}

/// Whether a name fits one of the globs of a list with commas. `*` is any letters, `?` one.
pub fn fits(globs: &str, name: &str) -> bool {
    globs
        .split(',')
        .map(str::trim)
        .any(|glob| !glob.is_empty() && glob_fits(glob.as_bytes(), name.as_bytes()))
}

fn glob_fits(glob: &[u8], name: &[u8]) -> bool {
    // Where to go on when letters after the last star do not fit: the star takes one more.
    let (mut g, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g + 1, n));
                g += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[n] => (g, n) = (g + 1, n + 1),
            _ => {
                let Some((after, from)) = star else { return false };
                star = Some((after, from + 1));
                (g, n) = (after, from + 1);
            }
        }
    }
    glob[g..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_list_names_layers_in_order_with_their_options() {
        let choice = |name, options: &str| Choice { name, options: options.into() };
        let all = vec![choice("validation", "abort"), choice("trace", "a:b.json"), choice("faults", "")];
        assert_eq!(Choice::parse_all("validation:abort, trace:a:b.json,,faults"), Ok(all));
        assert_eq!(Choice::parse_all(""), Ok(vec![]));
    }

    #[test]
    fn a_name_that_no_layer_has_is_handed_back() {
        assert_eq!(Choice::parse_all("trace,valdation:abort"), Err("valdation".into()));
    }

    #[test]
    fn globs_switch_off_what_they_fit() {
        for (globs, name, fit) in [
            ("*", "trace", true),
            ("tr*", "trace", true),
            ("t?ace", "trace", true),
            ("*a*e", "trace", true),
            ("val*,trace", "trace", true),
            ("tra", "trace", false),
            ("", "trace", false),
            ("*x", "trace", false),
        ] {
            assert_eq!(fits(globs, name), fit, "{globs} {name}");
        }
    }
}
