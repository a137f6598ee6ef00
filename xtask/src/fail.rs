//! How a command ends badly: the words for the user and the code for the shell.

use std::fmt::Display;

/// What a command comes to.
pub(crate) type Outcome = Result<(), Fail>;

/// A failure: 1 for what was found wanting or did not build, 2 for a wrong call, else the code of the program that was run.
#[derive(Debug)]
pub(crate) struct Fail {
    pub(crate) code: u8,
    /// Empty if everything has been said already.
    pub(crate) message: String,
}

impl Fail {
    /// Something did not work.
    pub(crate) fn new(message: impl Display) -> Self {
        Fail { code: 1, message: message.to_string() }
    }
    /// The user called it wrongly.
    pub(crate) fn usage(message: impl Display) -> Self {
        Fail { code: 2, message: message.to_string() }
    }
    /// An argument that the command does not take.
    pub(crate) fn argument(command: &str, argument: &str) -> Self {
        Fail::usage(format!("{command} takes no `{argument}`; see `cargo xtask {command} --help`"))
    }
}

/// Says what was being done when the system refused.
pub(crate) trait During<T> {
    fn during(self, what: impl Display) -> Result<T, Fail>;
}

impl<T, E: Display> During<T> for Result<T, E> {
    fn during(self, what: impl Display) -> Result<T, Fail> {
        self.map_err(|error| Fail::new(format!("{what}: {error}")))
    }
}

impl Display for Fail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
