//! A plugin that panics when it is asked for its devices.

wharf_abi::export! {
    backend: wharf_null::Null,
    id: "panics",
    vendor: "Wharf",
    version: env!("CARGO_PKG_VERSION"),
    devices: || panic!("on purpose, while starting"),
    roles: [programs],
}
