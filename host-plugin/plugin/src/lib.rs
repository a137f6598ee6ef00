//! The host backend as a plugin.

wharf_abi::export! {
    backend: wharf_host::HostDevice,
    id: "host",
    vendor: "Wharf",
    version: env!("CARGO_PKG_VERSION"),
    devices: || Ok(vec![wharf_host::HostDevice::new()]),
    roles: [programs, host_access, properties],
    text: wharf_host::text,
}
