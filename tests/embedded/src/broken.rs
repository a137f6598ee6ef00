//! What went wrong, where.

use core::fmt;
use wharf_core::fault::{Fault, Kind};

/// A step of a scene that did not end as it should.
pub struct Broken {
    place: &'static str,
    fault: Option<Fault>,
}

impl Broken {
    /// A step without a fault of its own.
    pub const fn at(place: &'static str) -> Broken {
        Broken { place, fault: None }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        self.fault.map_or(Ok(()), |fault| write!(f, ": {fault}"))
    }
}

/// A call that must succeed.
pub fn at<T>(place: &'static str, result: Result<T, Fault>) -> Result<T, Broken> {
    result.map_err(|fault| Broken { place, fault: Some(fault) })
}

/// A thing that must hold.
pub fn hold(place: &'static str, holds: bool) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken::at(place)) }
}

/// A call that must fail so; its fault.
pub fn refused<T>(place: &'static str, kind: Kind, result: Result<T, Fault>) -> Result<Fault, Broken> {
    match result {
        Ok(_) => Err(Broken::at(place)),
        Err(fault) if fault.kind == kind => Ok(fault),
        Err(fault) => Err(Broken { place, fault: Some(fault) }),
    }
}
