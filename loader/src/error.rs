//! The loader's one error: what, where, why and what to do next.

use crate::fork;
use std::{
    fmt, io,
    path::{Path, PathBuf},
};
use wharf_abi::text;
use wharf_core::{
    archive,
    fault::{Blame, Fault, Kind},
};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, as far as a caller can act on it. Its [`name`](ErrorKind::name) is what machine-readable output
/// shows, its [`exit_code`](ErrorKind::exit_code) what the command exits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A call or option that makes no sense.
    Usage,
    /// No file of that name.
    NoSuchFile,
    /// No device of that name.
    NoSuchDevice,
    /// No tensor of that name.
    NoSuchTensor,
    /// No metadata of that key.
    NoSuchKey,
    /// No kernel or other symbol of that name.
    NoSuchKernel,
    /// No plugin of that name.
    NoSuchPlugin,
    /// Reading or writing a file failed.
    Io,
    /// A plugin broke its contract or failed.
    Plugin,
    /// A driver is missing or failed.
    Driver,
    /// The device is gone.
    DeviceLost,
    /// Memory, or a limit that can be raised, is used up.
    OutOfMemory,
    /// Cancelled by the caller.
    Interrupted,
    /// An archive is at fault.
    Archive(archive::Class),
    /// A kernel image that the device does not take.
    Image,
    /// This device or plugin can never do it.
    Unsupported,
    /// A handle that is not live, an argument or a state that does not fit: a mistake of the program.
    Invalid(Kind),
    /// A bug of Wharf.
    Internal,
}

impl ErrorKind {
    /// A stable word.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Usage => "usage",
            ErrorKind::NoSuchFile => "no_such_file",
            ErrorKind::NoSuchDevice => "no_such_device",
            ErrorKind::NoSuchTensor => "no_such_tensor",
            ErrorKind::NoSuchKey => "no_such_key",
            ErrorKind::NoSuchKernel => "no_such_kernel",
            ErrorKind::NoSuchPlugin => "no_such_plugin",
            ErrorKind::Io => "io",
            ErrorKind::Plugin | ErrorKind::Image | ErrorKind::Unsupported => "plugin",
            ErrorKind::Driver => "driver",
            ErrorKind::DeviceLost => "device_lost",
            ErrorKind::OutOfMemory => "out_of_memory",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Archive(class) => class.name(),
            ErrorKind::Invalid(_) | ErrorKind::Internal => "internal",
        }
    }

    /// What the command exits with.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Usage => 2,
            ErrorKind::NoSuchFile
            | ErrorKind::NoSuchDevice
            | ErrorKind::NoSuchTensor
            | ErrorKind::NoSuchKey
            | ErrorKind::NoSuchKernel
            | ErrorKind::NoSuchPlugin => 3,
            ErrorKind::Archive(class) if class.name().starts_with("unsupported") => 5,
            ErrorKind::Archive(_) | ErrorKind::Io => 4,
            ErrorKind::OutOfMemory => 7,
            ErrorKind::Interrupted => 130,
            ErrorKind::Plugin
            | ErrorKind::Image
            | ErrorKind::Unsupported
            | ErrorKind::Driver
            | ErrorKind::DeviceLost
            | ErrorKind::Invalid(_)
            | ErrorKind::Internal => 6,
        }
    }
}

/// An error: a kind, a message, and where known the file, the fault below and what to do next.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    file: Option<PathBuf>,
    fault: Option<Fault>,
    next: Option<String>,
}

impl Error {
    /// An error of a kind, in words.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, message: message.into(), file: None, fault: None, next: None }))
    }

    /// A file that could not be used.
    pub(crate) fn io(path: &Path, what: &str, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NoSuchFile,
            io::ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
            _ => ErrorKind::Io,
        };
        Error::new(kind, format!("{}: {what}: {error}", path.display())).in_file(path)
    }

    /// The same error about a file.
    #[must_use]
    pub fn in_file(mut self, path: &Path) -> Self {
        self.0.file.get_or_insert_with(|| path.to_owned());
        self
    }

    /// The same error with advice.
    #[must_use]
    pub fn next(mut self, advice: impl Into<String>) -> Self {
        self.0.next = Some(advice.into());
        self
    }

    /// The same error with what it was about in front.
    #[must_use]
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// What kind it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// The file it is about.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }
    /// The fault of core or a backend below it.
    pub fn fault(&self) -> Option<&Fault> {
        self.0.fault.as_ref()
    }
    /// What to do next.
    pub fn advice(&self) -> Option<&str> {
        self.0.next.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let kind = match fault.kind {
            Kind::ResourceExhausted => ErrorKind::OutOfMemory,
            Kind::Cancelled => ErrorKind::Interrupted,
            Kind::Unavailable => ErrorKind::Driver,
            Kind::DeviceLost => ErrorKind::DeviceLost,
            Kind::BackendFailure | Kind::Panicked if fault.blame == Blame::Driver => ErrorKind::Driver,
            Kind::BackendFailure | Kind::Panicked => ErrorKind::Plugin,
            Kind::InvalidImage => ErrorKind::Image,
            Kind::Unsupported => ErrorKind::Unsupported,
            Kind::Io | Kind::DataLoss => ErrorKind::Io,
            Kind::Internal => ErrorKind::Internal,
            other => ErrorKind::Invalid(other),
        };
        let message = if fault == fork::FAULT { fork::WORDS.into() } else { text::of(&fault) };
        Error(Box::new(Inner { kind, message, file: None, fault: Some(fault), next: None }))
    }
}
