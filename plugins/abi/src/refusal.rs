//! Why a host does not take a plugin.

use core::fmt;
use std::string::String;

/// Why a host does not take a plugin; one line, with what to do about it where there is something.
#[allow(missing_docs)] // The fields are the values in the message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The entry answered NULL.
    Refused { host_major: u16, host_minor: u16 },
    /// The root symbol is not one of this abi_stable.
    NotAbiStable { reason: String },
    /// An abi_stable library of another product.
    OtherProduct { name: String },
    /// Another major version.
    Major { host: u16, plugin: u16 },
    /// Another draft of this major.
    Draft { host: u16, plugin: u16 },
    /// The plugin needs a newer host.
    MinHostMinor { host: u16, needs: u16 },
    /// A Rust plugin that was built without its type layout.
    NoLayout,
    /// The types differ. `detail` is the whole comparison, many lines.
    Layout { reason: String, detail: String },
    /// The root module could not be made.
    Root { reason: String },
    /// A value of the descriptor or a table cannot be.
    Value { what: &'static str, given: u64, needed: u64 },
    /// A text of the descriptor is not one.
    Text { what: &'static str },
    /// A mandatory function is NULL.
    Missing { table: &'static str, function: &'static str },
    /// A mandatory table is not there.
    NoTable { table: &'static str },
    /// The check of the types panicked.
    Panicked { reason: String },
}

impl Refusal {
    /// What kind of refusal: `refused`, `other_product`, `too_old`, `too_new`, `layout`, `bad_descriptor` or `panicked`.
    /// Old and new are said of the plugin.
    pub fn class(&self) -> &'static str {
        match self {
            Refusal::Refused { .. } => "refused",
            Refusal::OtherProduct { .. } | Refusal::NotAbiStable { .. } => "other_product",
            Refusal::Major { host, plugin } | Refusal::Draft { host, plugin } if plugin < host => "too_old",
            Refusal::Major { .. } | Refusal::Draft { .. } | Refusal::MinHostMinor { .. } => "too_new",
            Refusal::NoLayout | Refusal::Layout { .. } => "layout",
            Refusal::Panicked { .. } => "panicked",
            _ => "bad_descriptor",
        }
    }
}

fn older(host: u16, plugin: u16) -> &'static str {
    if plugin < host { "plugin" } else { "host" }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Refused { host_major, host_minor } => {
                write!(f, "the plugin refused a host of abi {host_major}.{host_minor}")
            }
            Refusal::NotAbiStable { reason } => write!(f, "not a root module of this abi_stable: {reason}"),
            Refusal::OtherProduct { name } => write!(f, "an abi_stable library of another product: {name}"),
            Refusal::Major { host, plugin } => {
                let side = older(*host, *plugin);
                write!(f, "plugin has abi major {plugin}, host has {host}: upgrade the {side}")
            }
            Refusal::Draft { host, plugin } if *host != 0 && *plugin != 0 => {
                let side = older(*host, *plugin);
                write!(
                    f,
                    "plugin was built for draft {plugin} of the abi, host for draft {host}: upgrade the {side}"
                )
            }
            // Draft 0 is the final abi, so the side with another number is the older one.
            Refusal::Draft { host, plugin } => {
                let side = if *plugin == 0 { "host" } else { "plugin" };
                write!(
                    f,
                    "plugin was built for draft {plugin} of the abi, host for draft {host}: upgrade the {side}"
                )
            }
            Refusal::MinHostMinor { host, needs } => {
                write!(f, "plugin needs a host of abi minor {needs}, this one has {host}: upgrade the host")
            }
            Refusal::NoLayout => write!(f, "plugin was built without its type layout"),
            Refusal::Layout { reason, .. } => write!(f, "types differ: {reason}"),
            Refusal::Root { reason } => write!(f, "the root module could not be made: {reason}"),
            Refusal::Value { what, given, needed } => write!(f, "{what} is {given:#x}, needed {needed:#x}"),
            Refusal::Text { what } => write!(f, "{what} is not valid text"),
            Refusal::Missing { table, function } => {
                write!(f, "mandatory function {function} of {table} is null")
            }
            Refusal::NoTable { table } => write!(f, "mandatory table {table} is missing"),
            Refusal::Panicked { reason } => write!(f, "the check of the types panicked: {reason}"),
        }
    }
}

impl core::error::Error for Refusal {}
