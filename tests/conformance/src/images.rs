//! Sample kernels by backend. A backend that is not of this tree brings its own: the file
//! `$WHARF_TEST_IMAGES/<backend>.bin`, with the kernels of the host's sample image under the same names.

use std::{env, fs, path::Path, sync::OnceLock};

/// An image and what is in it.
pub struct Sample {
    /// The bytes.
    pub image: &'static [u8],
    /// Names of kernels.
    pub kernels: &'static [&'static str],
    /// Name of a global and its length, where the backend has globals.
    pub global: Option<(&'static str, u64)>,
    /// A kernel that changes nothing when launched with [`Sample::idle_args`].
    pub idle: &'static str,
    /// Packed arguments for `idle`, given the address of the global (0 if there is none).
    pub idle_args: fn(u64) -> Vec<u8>,
    /// The parameters of `idle` by size.
    pub idle_params: &'static [u32],
    /// The image as one of another machine.
    pub foreign: fn(&[u8]) -> Vec<u8>,
}

/// The kernels of the host's sample image that the suite uses.
const KERNELS: &[&str] = &[
    "foo",
    "noargs",
    "multiargs",
    "composite",
    "byte",
    "localmem",
    "localmem_static",
    "localmem_reduction",
    "sequence",
    "write",
    "read",
    "mark",
    "saxpy",
    "spin",
];

/// Bytes 18 and 19 of an ELF file are its machine; in any other image they are part of a magic or header.
fn other_machine(image: &[u8]) -> Vec<u8> {
    let mut image = image.to_vec();
    image[18] ^= 0x55;
    image
}

fn full(image: &'static [u8]) -> Sample {
    Sample {
        image,
        kernels: KERNELS,
        global: Some(("global", 256)),
        idle: "noargs",
        idle_args: |_| Vec::new(),
        idle_params: &[],
        foreign: other_machine,
    }
}

/// The null device's program: `add(to: u64, len: u64, by: u8)`, which leaves the global as it is when it adds 0.
fn null() -> Sample {
    Sample {
        image: wharf_null::IMAGE,
        kernels: &["add"],
        global: Some(("answer", 8)),
        idle: "add",
        idle_args: |global| [&global.to_le_bytes()[..], &8u64.to_le_bytes(), &[0]].concat(),
        idle_params: &[8, 8, 1],
        foreign: other_machine,
    }
}

/// The source that OpenCL compiles for whatever machine; what is of another machine is its compiler's output.
fn opencl() -> Sample {
    Sample {
        kernels: &[
            "foo",
            "noargs",
            "multiargs",
            "composite",
            "byte",
            "localmem",
            "localmem_static",
            "localmem_reduction",
            "sequence",
            "mark",
            "saxpy",
            "spin",
        ],
        global: None,
        foreign: |_| b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\xFF\xFF\x01\0\0\0".to_vec(),
        ..full(include_bytes!("../../../plugins/opencl/kernels/sample.cl"))
    }
}

/// The sample image for a backend, if there is one.
pub fn sample(backend: &str) -> Option<&'static Sample> {
    static HOST: OnceLock<Sample> = OnceLock::new();
    static NULL: OnceLock<Sample> = OnceLock::new();
    static OPENCL: OnceLock<Sample> = OnceLock::new();
    match backend {
        "host" => Some(HOST.get_or_init(|| full(wharf_host_image::bytes()))),
        "null" => Some(NULL.get_or_init(null)),
        "opencl" => Some(OPENCL.get_or_init(opencl)),
        other => {
            let file = Path::new(&env::var_os("WHARF_TEST_IMAGES")?).join(format!("{other}.bin"));
            Some(Box::leak(Box::new(full(fs::read(file).ok()?.leak()))))
        }
    }
}
