//! A case: its name, its rule, what it needs, and the function that checks the rule.

use crate::{ctx::Ctx, need::Need};
use std::{fmt, panic::Location};
use wharf_abi::text;
use wharf_core::fault::{Fault, Kind};

/// One rule and its check.
#[derive(Clone, Copy)]
pub struct Case {
    /// Group and name, as `memory.free_twice_is_refused`.
    pub name: &'static str,
    /// The rule in one line, with where it comes from.
    pub rule: &'static str,
    /// What a target must have.
    pub needs: &'static [Need],
    /// The check, over a runtime of its own.
    pub check: fn(&Ctx) -> Outcome,
}

/// What a check comes to.
pub type Outcome<T = ()> = Result<T, Fail>;

/// Why a check failed: what was expected, what was there, and where.
#[derive(Clone, Debug)]
pub struct Fail {
    /// Expected and actual values.
    pub message: String,
    /// Line of the check.
    pub place: &'static Location<'static>,
}

impl Fail {
    /// A failure at the caller's line.
    #[track_caller]
    pub fn new(message: impl Into<String>) -> Self {
        Fail { message: message.into(), place: Location::caller() }
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.message, self.place.file(), self.place.line())
    }
}

impl From<Fault> for Fail {
    #[track_caller]
    fn from(fault: Fault) -> Self {
        Fail::new(format!("expected success, got `{}`", text::of(&fault)))
    }
}

/// The fault of a call that must be refused with this kind.
///
/// # Errors
/// What the call answered instead.
#[track_caller]
pub fn refused<T>(answer: Result<T, Fault>, kind: Kind) -> Outcome<Fault> {
    match answer {
        Err(fault) if fault.kind == kind => Ok(fault),
        Err(fault) => {
            Err(Fail::new(format!("expected {kind:?}, got {:?}: `{}`", fault.kind, text::of(&fault))))
        }
        Ok(_) => Err(Fail::new(format!("expected {kind:?}, got success"))),
    }
}

/// Fails the check, with words about the values, unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return ::core::result::Result::Err($crate::Fail::new(format!($($words)+)));
        }
    };
}

/// Fails the check unless both values are equal.
#[macro_export]
macro_rules! ensure_eq {
    ($actual:expr, $expected:expr $(, $($words:tt)+)?) => {
        match (&$actual, &$expected) {
            (actual, expected) => {
                if actual != expected {
                    let words = $crate::case::words(&[$(format!($($words)+))?]);
                    return ::core::result::Result::Err($crate::Fail::new(format!("{words}expected {expected:?}, got {actual:?}")));
                }
            }
        }
    };
}

/// The beginning of a message.
#[doc(hidden)]
pub fn words(given: &[String]) -> String {
    given.iter().map(|words| format!("{words}: ")).collect()
}

/// Fails the check at the first byte that differs, without printing all of them.
///
/// # Errors
/// The first difference.
#[track_caller]
pub fn same(actual: &[u8], expected: &[u8]) -> Outcome {
    if actual.len() != expected.len() {
        return Err(Fail::new(format!("expected {} bytes, got {}", expected.len(), actual.len())));
    }
    match actual.iter().zip(expected).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => {
            let end = actual.len().min(at + 8);
            Err(Fail::new(format!(
                "at byte {at}: expected {:02x?}, got {:02x?}",
                &expected[at..end],
                &actual[at..end]
            )))
        }
    }
}
