//! The one error of Wharf: plain data, made where something went wrong, turned into words only where somebody reads it.
//! A firmware that prints none links no formatting code.

use core::fmt;

/// What a caller can act on. The numbers are stable: they cross the ABI and only grow.
/// `status` and `ol_code` give the numbers of the two systems whose callers Wharf serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// An argument is outside what the call takes.
    InvalidArgument = 1,
    /// A handle is null, stale, of another kind or of another runtime.
    InvalidHandle = 2,
    /// A range ends past what it lies in.
    OutOfRange = 3,
    /// A value is not one of a listed set.
    InvalidEnumeration = 4,
    /// A name or address is not known.
    NotFound = 5,
    /// The name or range is taken.
    AlreadyExists = 6,
    /// Memory type, access or usage does not allow the operation.
    PermissionDenied = 7,
    /// Memory, slots or another limited thing are used up.
    ResourceExhausted = 8,
    /// The object is in a state that does not allow the operation.
    FailedPrecondition = 9,
    /// Somebody cancelled the operation or destroyed what it waits for.
    Cancelled = 10,
    /// A deadline passed first.
    DeadlineExceeded = 11,
    /// This backend can never do it.
    Unsupported = 12,
    /// A driver or plugin is not there.
    Unavailable = 13,
    /// An image is of another format or architecture.
    InvalidImage = 14,
    /// A symbol is there but of another kind.
    SymbolKind = 15,
    /// The device is gone; nothing on it can be trusted.
    DeviceLost = 16,
    /// A backend or its driver failed; `native` holds its own code.
    BackendFailure = 17,
    /// Stored bytes are not what they must be.
    DataLoss = 18,
    /// Reading or writing a file failed; `native` holds the system's code.
    Io = 19,
    /// A bug of Wharf.
    Internal = 20,
    /// A queue of another device, or a device that is not there.
    InvalidDevice = 21,
    /// A panic was stopped inside a plugin.
    Panicked = 22,
}

impl Kind {
    /// All kinds in the order of their numbers.
    pub const ALL: [Kind; 22] = {
        use Kind::*;
        [
            InvalidArgument,
            InvalidHandle,
            OutOfRange,
            InvalidEnumeration,
            NotFound,
            AlreadyExists,
            PermissionDenied,
            ResourceExhausted,
            FailedPrecondition,
            Cancelled,
            DeadlineExceeded,
            Unsupported,
            Unavailable,
            InvalidImage,
            SymbolKind,
            DeviceLost,
            BackendFailure,
            DataLoss,
            Io,
            Internal,
            InvalidDevice,
            Panicked,
        ]
    };

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The kind with this number; an unknown one (a newer backend's) reads as `BackendFailure`.
    pub const fn from_number(number: u8) -> Kind {
        if number == 0 || number as usize > Self::ALL.len() {
            Kind::BackendFailure
        } else {
            Self::ALL[number as usize - 1]
        }
    }

    /// IREE's status number (1 CANCELLED .. 18 INCOMPATIBLE).
    pub const fn status(self) -> u8 {
        match self {
            Kind::Cancelled => 1,
            Kind::Io => 2,
            Kind::InvalidArgument
            | Kind::InvalidHandle
            | Kind::InvalidEnumeration
            | Kind::SymbolKind
            | Kind::InvalidDevice => 3,
            Kind::DeadlineExceeded => 4,
            Kind::NotFound => 5,
            Kind::AlreadyExists => 6,
            Kind::PermissionDenied => 7,
            Kind::ResourceExhausted => 8,
            Kind::FailedPrecondition => 9,
            Kind::DeviceLost => 10,
            Kind::OutOfRange => 11,
            Kind::Unsupported => 12,
            Kind::BackendFailure | Kind::Internal | Kind::Panicked => 13,
            Kind::Unavailable => 14,
            Kind::DataLoss => 15,
            Kind::InvalidImage => 18,
        }
    }

    /// liboffload's `ol_errc_t` of LLVM 22.1. An invalid handle answers 5; the C side knows its kind and refines it.
    pub const fn ol_code(self) -> u32 {
        match self {
            Kind::InvalidArgument | Kind::InvalidHandle | Kind::AlreadyExists | Kind::PermissionDenied => 5,
            Kind::OutOfRange => 8,
            Kind::InvalidEnumeration => 9,
            Kind::NotFound => 6,
            Kind::ResourceExhausted => 7,
            Kind::FailedPrecondition => 11,
            Kind::Cancelled
            | Kind::DeadlineExceeded
            | Kind::Unavailable
            | Kind::DeviceLost
            | Kind::BackendFailure
            | Kind::Panicked => 17,
            Kind::Unsupported => 13,
            Kind::InvalidImage => 3,
            Kind::SymbolKind => 24,
            Kind::DataLoss | Kind::Io => 2,
            Kind::Internal => 1,
            Kind::InvalidDevice => 21,
        }
    }

    /// One lower-case word or two, as it begins a message.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::InvalidArgument => "invalid argument",
            Kind::InvalidHandle => "invalid handle",
            Kind::OutOfRange => "out of range",
            Kind::InvalidEnumeration => "invalid enumeration",
            Kind::NotFound => "not found",
            Kind::AlreadyExists => "already exists",
            Kind::PermissionDenied => "permission denied",
            Kind::ResourceExhausted => "resource exhausted",
            Kind::FailedPrecondition => "failed precondition",
            Kind::Cancelled => "cancelled",
            Kind::DeadlineExceeded => "deadline exceeded",
            Kind::Unsupported => "unsupported",
            Kind::Unavailable => "unavailable",
            Kind::InvalidImage => "invalid image",
            Kind::SymbolKind => "wrong kind of symbol",
            Kind::DeviceLost => "device lost",
            Kind::BackendFailure => "backend failure",
            Kind::DataLoss => "data loss",
            Kind::Io => "input or output failed",
            Kind::Internal => "internal error",
            Kind::InvalidDevice => "invalid device",
            Kind::Panicked => "plugin panicked",
        }
    }
}

/// Who broke the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Blame {
    /// The caller of Wharf.
    Caller = 0,
    /// A backend or plugin.
    Backend = 1,
    /// The driver under a backend.
    Driver = 2,
    /// Wharf itself, or what it runs on.
    Wharf = 3,
}

/// An enum whose variants have numbers from 0 in order, so that a fault can be kept in plain words.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        #[allow(missing_docs)] // A variant without words of its own is named after the call it stands for.
        pub enum $name { $($(#[$vdoc])* $variant,)* }
        impl $name {
            const ALL: &'static [$name] = &[$($name::$variant,)*];
            pub(crate) fn from_number(number: u16) -> $name {
                Self::ALL.get(number as usize).copied().unwrap_or(Self::ALL[0])
            }
            /// Its words in messages.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

numbered! {
    /// The operation during which it went wrong.
    Site {
        Submit = "submit", Allocate = "allocate", Free = "free", Map = "map", Unmap = "unmap", Flush = "flush",
        Register = "register", Find = "find", Queue = "queue", Close = "close", Barrier = "barrier", Copy = "copy",
        Fill = "fill", Update = "update", Read = "read", Write = "write", Launch = "launch", Call = "host call",
        Prefetch = "prefetch", Wait = "wait", Signal = "signal", Fail = "fail", Timeline = "timeline", Query = "query",
        Load = "load program", Unload = "unload program", Kernel = "kernel", Global = "global", Symbols = "symbols",
        Occupancy = "occupancy", Property = "property", Start = "start", Batch = "batch", Resolve = "resolve",
        Subspan = "subspan", Event = "event", Device = "device", Plugin = "plugin",
    }
}

numbered! {
    /// What was wrong; says how [`Fault::values`] are to be read.
    Why {
        /// Nothing more is known.
        Unknown = "",
        /// `values[0]` is the end of a range, `values[1]` the length of what it must lie in.
        PastEnd = "end past the length",
        /// `values[0]` and `values[1]` together do not fit 64 bits.
        Overflow = "overflow",
        /// `values[0]` is a handle that is not live here.
        Stale = "handle not live",
        /// All `values[0]` of them are in use.
        Full = "all in use",
        /// `values[0]` was given, `values[1]` is needed.
        Mismatch = "mismatch",
        /// Argument number `values[0]` is zero.
        Zero = "zero",
        /// `values[0]` is above the limit `values[1]`.
        Limit = "above the limit",
        /// `values[0]` is not a multiple of `values[1]`.
        Multiple = "not a multiple",
        /// `values[0]` is not above the current value `values[1]`.
        Past = "not above the current value",
        /// The ranges that begin at `values[0]` and `values[1]` overlap.
        Overlap = "overlap",
        /// Bits `values[0]` are needed, bits `values[1]` are there.
        Bits = "bits missing",
        /// The backend does not take operation `values[0]`.
        Missing = "not taken by the backend",
        /// The state is `values[0]`.
        State = "state",
        /// Entry number `values[0]`.
        Entry = "entry",
        /// The address is `values[0]`.
        Address = "address",
        /// The driver or system said no; `native` holds its code.
        Native = "refused by the driver or system",
        /// `values[0]` bytes could not be had.
        Memory = "no memory",
    }
}

impl Blame {
    /// The blame with this number; an unknown one reads as `Backend`.
    pub const fn from_number(number: u8) -> Blame {
        match number {
            0 => Blame::Caller,
            2 => Blame::Driver,
            3 => Blame::Wharf,
            _ => Blame::Backend,
        }
    }
}

/// An error: what (`kind`, `why`, `values`), where (`site`), who (`blame`), and the other side's own words
/// (`native`: its code; `text`: key of a message kept by whoever has room for text, 0 none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What a caller can act on.
    pub kind: Kind,
    /// Who broke the contract.
    pub blame: Blame,
    /// During which operation.
    pub site: Site,
    /// What was wrong.
    pub why: Why,
    /// Code of the driver or the system, 0 none.
    pub native: i32,
    /// Numbers that `why` explains.
    pub values: [u64; 2],
    /// Key of a message kept outside core, 0 none.
    pub text: u32,
}

impl Fault {
    /// A fault with everything named.
    pub const fn new(kind: Kind, blame: Blame, site: Site, why: Why, values: [u64; 2]) -> Self {
        Fault { kind, blame, site, why, native: 0, values, text: 0 }
    }
    /// The caller's mistake.
    pub const fn caller(kind: Kind, site: Site, why: Why, values: [u64; 2]) -> Self {
        Self::new(kind, Blame::Caller, site, why, values)
    }
    /// A backend's mistake or failure.
    pub const fn backend(kind: Kind, site: Site, why: Why, values: [u64; 2]) -> Self {
        Self::new(kind, Blame::Backend, site, why, values)
    }
    /// A limit of this runtime was met.
    pub const fn full(site: Site, limit: u64) -> Self {
        Self::new(Kind::ResourceExhausted, Blame::Wharf, site, Why::Full, [limit, 0])
    }
    /// A handle that is not live.
    pub const fn stale(site: Site, raw: u64) -> Self {
        Self::caller(Kind::InvalidHandle, site, Why::Stale, [raw, 0])
    }
    /// The same fault with the code of a driver or the system.
    pub const fn with_native(mut self, native: i32) -> Self {
        self.native = native;
        self
    }
    /// The same fault seen from another operation.
    pub const fn at(mut self, site: Site) -> Self {
        self.site = site;
        self
    }
}

impl Fault {
    /// The fault as plain words, the form in which timelines keep it.
    pub(crate) const fn to_words(self) -> [u32; 8] {
        let [a, b] = self.values;
        [
            self.kind as u32 | (self.blame as u32) << 8,
            self.site as u32 | (self.why as u32) << 16,
            self.native as u32,
            self.text,
            a as u32,
            (a >> 32) as u32,
            b as u32,
            (b >> 32) as u32,
        ]
    }
    /// The fault back from its words.
    pub(crate) fn from_words(w: [u32; 8]) -> Fault {
        let wide = |low: u32, high: u32| low as u64 | (high as u64) << 32;
        Fault {
            kind: Kind::from_number(w[0] as u8),
            blame: Blame::from_number((w[0] >> 8) as u8),
            site: Site::from_number(w[1] as u16),
            why: Why::from_number((w[1] >> 16) as u16),
            native: w[2] as i32,
            text: w[3],
            values: [wide(w[4], w[5]), wide(w[6], w[7])],
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.values;
        write!(f, "{}: {}", self.site.name(), self.kind.name())?;
        match self.why {
            Why::Unknown => Ok(()),
            Why::PastEnd => write!(f, ": ends at {a}, past the length {b}"),
            Why::Overflow => write!(f, ": {a} and {b} together do not fit 64 bits"),
            Why::Stale => write!(f, ": handle {a:#x} is not live"),
            Why::Full => write!(f, ": all {a} are in use"),
            Why::Mismatch => write!(f, ": {a} given, {b} needed"),
            Why::Zero => write!(f, ": argument {a} is zero"),
            Why::Limit => write!(f, ": {a} is above the limit {b}"),
            Why::Multiple => write!(f, ": {a} is not a multiple of {b}"),
            Why::Past => write!(f, ": {a} is not above the current value {b}"),
            Why::Overlap => write!(f, ": ranges at {a:#x} and {b:#x} overlap"),
            Why::Bits => write!(f, ": needs bits {a:#x}, has {b:#x}"),
            Why::Missing => write!(f, ": the backend does not take operation {a}"),
            Why::State => write!(f, ": state {a}"),
            Why::Entry => write!(f, ": entry {a}"),
            Why::Address => write!(f, ": address {a:#x}"),
            Why::Native => Ok(()),
            Why::Memory => write!(f, ": {a} bytes could not be had"),
        }?;
        if self.native != 0 { write!(f, " (code {})", self.native) } else { Ok(()) }
    }
}

impl core::error::Error for Fault {}
