//! The sample kernels of the host device as an image, inside whoever links this: for tests, and for a conformance suite
//! that runs where nothing can be built.

use std::path::Path;

/// Where the image was built. Only good on the machine that built it.
pub fn path() -> &'static Path {
    Path::new(env!("WHARF_HOST_IMAGE"))
}

/// The bytes of the image.
pub fn bytes() -> &'static [u8] {
    include_bytes!(env!("WHARF_HOST_IMAGE"))
}
