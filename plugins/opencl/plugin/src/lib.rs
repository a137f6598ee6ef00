//! The OpenCL backend as a plugin.

wharf_abi::export! {
    backend: wharf_opencl::OpenclDevice,
    id: "opencl",
    vendor: "Wharf",
    version: env!("CARGO_PKG_VERSION"),
    devices: wharf_opencl::devices,
    roles: [programs, host_access, properties],
    text: wharf_opencl::text,
}
