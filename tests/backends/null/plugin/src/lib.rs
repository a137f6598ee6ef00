//! The null backend as a plugin.

wharf_abi::export! {
    backend: wharf_null::Null,
    id: "null",
    vendor: "Wharf",
    version: env!("CARGO_PKG_VERSION"),
    devices: wharf_null::devices,
    roles: [programs, host_access, properties],
}
