//! A global variable, written and read by kernels and by the host.

use wharf_kernel::{Global, kernel};

/// 64 numbers.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)] // The name is what tests of every backend ask for.
pub static global: Global<[u32; 64]> = Global::new([0; 64]);

/// A number that tests change in the bytes of the image, to tell two images apart once they are loaded.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)] // As above.
pub static stamp: Global<u64> = Global::new(u64::from_ne_bytes(*b"stamp:01"));

/// What the image's constructors leave: each appends a digit, the one of the lower number first.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)] // As above.
pub static order: Global<u32> = Global::new(0);

extern "C" fn append<const DIGIT: u32>() {
    // SAFETY: constructors run one after another, before anything else of the image.
    let now = unsafe { order.as_ptr().read() };
    // SAFETY: as above.
    unsafe { order.as_ptr().write(10 * now + DIGIT) }
}

#[used]
#[unsafe(link_section = ".init_array.00202")]
static THIRD: extern "C" fn() = append::<3>;
#[used]
#[unsafe(link_section = ".init_array.00200")]
static FIRST: extern "C" fn() = append::<1>;
#[used]
#[unsafe(link_section = ".init_array.00201")]
static SECOND: extern "C" fn() = append::<2>;

kernel! {
    /// `global[i] = 2 * i` for the group's items.
    pub fn write(group: &WorkGroup) {
        for i in 0..group.items().min(64) {
            // SAFETY: inside the array; one group is launched at a time.
            unsafe { global.as_ptr().cast::<u32>().add(i as usize).write(2 * i) }
        }
    }
}

kernel! {
    /// `out[i] = global[i]` for the group's items.
    pub fn read(group: &WorkGroup, out: *mut u32) {
        for i in 0..group.items().min(64) as usize {
            // SAFETY: inside the array; nothing writes it while this runs.
            let value = unsafe { global.as_ptr().cast::<u32>().add(i).read() };
            // SAFETY: the launch promised a value for every item.
            unsafe { out.add(i).write(value) }
        }
    }
}
